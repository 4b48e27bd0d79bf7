"""Ends with an error unless PyTorch here is the oldest that pyproject.toml allows. For `make test-oldest`."""

import re
import sys
from pathlib import Path

import torch

text = (Path(__file__).parent.parent / "pyproject.toml").read_text()
oldest = re.search(r'^dependencies = \["torch>=([\d.]+)"\]$', text, re.MULTILINE)[1]
if torch.__version__.split("+")[0].split(".")[:2] != oldest.split(".")[:2]:
    sys.exit(
        f"expected an environment with PyTorch {oldest}, the oldest that is supported, and {sys.executable} has "
        f"{torch.__version__}; name the interpreter of one by PYTHON=..."
    )
