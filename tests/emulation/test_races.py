"""A barrier or the like stands between any two accesses of CUDA kernels that must not meet (races.h)."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cases import EMULATED

from emulation.build import build_kernels, build_watched, once

TESTS = Path(__file__).parents[1]


@pytest.mark.skipif(EMULATED == "none", reason="needs an emulated GPU: a C++ compiler, no GPU, PyTorch 2.9 or later")
def test_nothing_but_order_keeps_accesses_apart(tmp_path_factory):
    plain = once(tmp_path_factory, "kernels", build_kernels)
    library = once(tmp_path_factory, "watched", functools.partial(build_watched, plain=plain.parent))
    path = os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "emulation.watch", str(library)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
