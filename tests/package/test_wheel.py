"""The wheel holds all of the package: installed elsewhere, it works without the checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "torchsoftdtw"
CHECK = """
import sys
from pathlib import Path

import torch

import torchsoftdtw

place = Path(sys.argv[1])
for name, module in sys.modules.items():
    if name.split(".")[0] == "torchsoftdtw":
        assert place in Path(module.__file__).parents, (name, module.__file__)
x, y = torch.randn(3, 5, 2, requires_grad=True), torch.randn(3, 6, 2)
torchsoftdtw.SoftDTW(gamma=0.1)(x, y).backward()
assert x.grad.isfinite().all() and x.grad.abs().sum() > 0
assert torchsoftdtw.dtw(x, y).isfinite().all()
"""


def test_an_installed_wheel_works(tmp_path):
    for name in ("setuptools", "wheel", "pip"):
        pytest.importorskip(name)
    environment = {**os.environ, "TORCHSOFTDTW_BUILD_CUDA": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment.pop("PYTHONPATH", None)

    def run(*command, folder=tmp_path):
        done = subprocess.run([sys.executable, *command], env=environment, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    # Everything but the object files, which a build that has been made lends, is made here: nothing of an earlier build's.
    commands = {
        "egg_info": {"egg-base": tmp_path},
        "build": {"build-base": tmp_path / "build"},
        "bdist_wheel": {"bdist-dir": tmp_path / "bdist", "dist-dir": tmp_path},
    }
    options = [[name, *(f"--{key}={value}" for key, value in values.items())] for name, values in commands.items()]
    run("setup.py", "--quiet", *(word for words in options for word in words), folder=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = {str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*.py")}
    assert inside == files | {"torchsoftdtw/_cpu.abi3.so", "torchsoftdtw/py.typed"}

    place = tmp_path / "installed"
    run("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(place), str(wheel))
    environment["PYTHONPATH"] = str(place)
    run("-c", CHECK, str(place))
