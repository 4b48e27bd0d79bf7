"""What `import torchsoftdtw` loads, and what it shows."""

import json
import re
import subprocess
import sys
from pathlib import Path

import torchsoftdtw

ROOT = Path(__file__).parents[2]
LOADED = """
import json, sys
import torch
before = set(sys.modules)
import torchsoftdtw
print(json.dumps(sorted(set(sys.modules) - before)))
x = torch.randn(3, 5, 2, requires_grad=True)
torchsoftdtw.SoftDTWDivergence()(x, torch.randn(3, 6, 2)).backward()
torchsoftdtw.cdist(torch.randn(4, 9, 1))
print(json.dumps(sorted(set(sys.modules) - before)))
"""
LATE = {"torch", "sympy", "matplotlib", "sklearn", "scipy", "pandas"}  # torch: parts that PyTorch itself has not loaded


def test_import_loads_little_but_the_package():
    done = subprocess.run([sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    by_import, by_calls = map(json.loads, done.stdout.splitlines())
    others = [name for name in by_import if name.split(".")[0] != "torchsoftdtw"]
    assert len(by_import) - len(others) <= 100 and len(others) <= 20, others
    assert not [name for name in by_import if name.split(".")[0] in LATE]
    assert not [name for name in by_calls if name.startswith(("torch._dynamo", "torch._inductor", "sympy"))]


def test_dir_shows_public_names_only():
    code = "import torchsoftdtw; print(*dir(torchsoftdtw))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == sorted([*torchsoftdtw.__all__, "__version__", "measures", "plot"]), done.stderr
    assert all(hasattr(torchsoftdtw, name) for name in dir(torchsoftdtw))


def test_one_version_everywhere():
    for name, line in (("pyproject.toml", r'^version = "(.+)"$'), ("CITATION.cff", r"^version: (.+)$")):
        assert re.findall(line, (ROOT / name).read_text(), re.MULTILINE) == [torchsoftdtw.__version__], name
