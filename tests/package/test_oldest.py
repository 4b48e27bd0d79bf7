"""`make test-oldest` asks for the oldest PyTorch that is supported, and for no other."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "is_oldest.py"


@pytest.mark.parametrize(
    ("version", "is_oldest"), [("2.10.0", True), ("2.10.1+cpu", True), ("2.1.0", False), ("2.13.0", False)]
)
def test_the_oldest_version_is_told_from_others(tmp_path, version, is_oldest):
    (tmp_path / "torch.py").write_text(f"__version__ = {version!r}\n")
    command = [sys.executable, str(SCRIPT)]
    done = subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert (done.returncode == 0) == is_oldest, done.stderr
    assert is_oldest or f"PyTorch 2.10, the oldest that is supported, and {sys.executable} has {version}" in done.stderr
