"""The wheel holds all of the package: installed elsewhere, it works without the checkout.

What `make wheels` has built is looked at too, and installed where there is nothing else.
"""

import os
import platform
import re
import struct
import subprocess
import sys
import zipfile
from collections import Counter
from email.parser import Parser
from pathlib import Path

import pytest

import torchsoftdtw

sys.path.append(str(next(folder for folder in Path(__file__).resolve().parents if (folder / "setup.py").exists())))
from build_support import wheels

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "torchsoftdtw"
LIBRARIES = {"cpu": {"torchsoftdtw/_cpu.abi3.so"}, "cuda": {"torchsoftdtw/_cpu.abi3.so", "torchsoftdtw/_cuda.abi3.so"}}
MOST_MEGABYTES = {"cpu": 3, "cuda": 42}  # docs/install.md says how large they are
FAT_BINARY = struct.pack("<IH", 0xBA55ED50, 1)  # how one begins: a mark, and its version
CHECK = """
import sys
from pathlib import Path

import torch

import torchsoftdtw

place, part = Path(sys.argv[1]), sys.argv[2]
for name, module in sys.modules.items():
    if name.split(".")[0] == "torchsoftdtw":
        assert place in Path(module.__file__).parents, (name, module.__file__)
devices = ["cpu", "cuda"] if part == "cuda" and torch.cuda.is_available() else ["cpu"]
for device in devices:
    x, y = torch.randn(3, 5, 2, device=device, requires_grad=True), torch.randn(3, 6, 2, device=device)
    torchsoftdtw.SoftDTW(gamma=0.1)(x, y).backward()
    assert x.grad.isfinite().all() and x.grad.abs().sum() > 0
    assert torchsoftdtw.dtw(x, y).isfinite().all()
    assert torchsoftdtw.cdist(x.detach(), y).shape == (3, 3)
print(*devices)
"""


def files_of(wheel):
    """What a wheel installs into the package."""
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name and not name.endswith("/")}


def files_of_package(part):
    return {str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*.py")} | LIBRARIES[part] | {"torchsoftdtw/py.typed"}


def run(*command, folder):
    """Its standard output."""
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_installed_wheel_works(tmp_path):
    for name in ("setuptools", "wheel", "pip"):
        pytest.importorskip(name)
    wheel = wheels.build("cpu", tmp_path)
    assert files_of(wheel) == files_of_package("cpu")

    place = tmp_path / "installed"
    pip = sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(place)
    run(*pip, str(wheel), folder=tmp_path)
    code = f"import sys; sys.path.insert(0, {str(place)!r})\n{CHECK}"
    run(sys.executable, "-c", code, str(place), "cpu", folder=tmp_path)


@pytest.fixture(scope="module", params=["cpu", "cuda"])
def built(request):
    """A part, and the wheel of it in dist."""
    if request.param not in os.environ.get("BUILT_WHEELS", "").split():
        pytest.skip("`make wheels` builds it and runs this")
    (wheel,) = (ROOT / "dist" / request.param).glob("*.whl")
    return request.param, wheel


def test_a_built_wheel_holds_the_package_and_nothing_of_pytorch(built):
    part, wheel = built
    assert files_of(wheel) == files_of_package(part)
    assert wheel.stat().st_size <= MOST_MEGABYTES[part] * 1e6


def test_a_built_wheel_is_for_every_later_python_and_c_library(built):
    _, wheel = built
    start = rf"torchsoftdtw-{re.escape(torchsoftdtw.__version__)}-cp310-abi3-manylinux_2_(\d+)_{platform.machine()}"
    found = re.match(start, wheel.name)
    assert found, wheel.name
    assert int(found[1]) <= int(platform.libc_ver()[1].split(".")[1])


def test_a_built_wheel_says_what_it_is(built):
    _, wheel = built
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    assert metadata["Version"] == torchsoftdtw.__version__
    assert metadata["Requires-Python"] == ">=3.10" and "torch>=2.10" in metadata.get_all("Requires-Dist")
    assert metadata["License-Expression"] == "MIT" and metadata["Summary"] and metadata["Author"]
    assert "time series" in metadata["Keywords"] and "Typing :: Typed" in metadata.get_all("Classifier")
    assert metadata.get_payload().startswith("# torchsoftdtw")


def device_code(library):
    """How often a library's bytes hold machine code ("sm_90") and PTX ("compute_90") for each GPU: nvcc's fat binaries."""
    found, place = Counter(), library.find(FAT_BINARY)
    while place >= 0:
        header, size = struct.unpack_from("<HQ", library, place + 6)
        entry, end = place + header, place + header + size
        while entry < end <= len(library):
            kind, _, header, size = struct.unpack_from("<HHIQ", library, entry)
            (architecture,) = struct.unpack_from("<I", library, entry + 28)
            found[f"{'compute' if kind == 1 else 'sm'}_{architecture}"] += 1
            entry += header + size
        place = library.find(FAT_BINARY, place + 4)
    return found


def test_a_built_cuda_wheel_has_code_for_every_gpu_from_ampere_on(built):
    part, wheel = built
    if part != "cuda":
        pytest.skip("the CPU wheel has none")
    kernels = list((ROOT / "csrc" / "cuda").rglob("*.cu"))
    found = device_code(zipfile.ZipFile(wheel).read("torchsoftdtw/_cuda.abi3.so"))
    assert found["sm_80"] == found["sm_90"] == found["compute_90"] == len(kernels), found


def test_a_built_wheel_works_where_there_is_nothing_else(built, tmp_path):
    part, wheel = built
    run(sys.executable, "-m", "venv", "empty", folder=tmp_path)
    python = str(tmp_path / "empty" / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt"), str(wheel), folder=tmp_path)
    devices = run(python, "-c", CHECK, str(tmp_path / "empty"), part, folder=tmp_path)
    print(f"{wheel.name} ({part}) ran on: {devices}")
