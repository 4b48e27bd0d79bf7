"""Which GPU architectures the CUDA library is compiled for."""

import ctypes
import os
import re
import shutil
import subprocess

OLDEST = (7, 5)  # what the kernels need at least
WITHOUT_GPU = (9, 0)  # and as PTX, for newer ones
EVERY = ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0")  # `make archs`
COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76  # CUdevice_attribute


def chosen(nvcc):
    """Names as TORCH_CUDA_ARCH_LIST has them: that list's, or those of the GPUs that are present."""
    return listed() or choose(capabilities_of_gpus(), known_to(nvcc))


def listed():
    return os.environ.get("TORCH_CUDA_ARCH_LIST", "").replace(";", " ").split()


def choose(present, known):
    """Names for GPUs of the (major, minor) in present, by a compiler that knows those in known (nothing: all).

    A GPU that the compiler does not know gets the newest older architecture as PTX, which its driver translates.
    GPUs too old for the kernels are left out. Where no GPU is left, WITHOUT_GPU is chosen.
    """
    names = {_nearest(capability, known) for capability in present if capability >= OLDEST} - {None}
    if names:
        return sorted(names, key=_capability)
    name = _nearest(WITHOUT_GPU, known) or _name(WITHOUT_GPU)
    return [name.removesuffix("+PTX") + "+PTX"]


def every(known):
    """Of EVERY, what a compiler knows that knows those in known (nothing: all)."""
    return [name for name in EVERY if not known or _capability(name) in known]


def gencode(names):
    """nvcc's flags: machine code for each name, and PTX as well for names that end in +PTX."""
    flags = []
    for name in names:
        number = name.removesuffix("+PTX").replace(".", "")
        flags += ["-gencode", f"arch=compute_{number},code=sm_{number}"]
        if name.endswith("+PTX"):
            flags += ["-gencode", f"arch=compute_{number},code=compute_{number}"]
    return flags


def capabilities_of_gpus():
    """{(major, minor)} of the GPUs of this machine. PyTorch is not asked: it may be one for the CPU."""
    return _from_driver() or _from_nvidia_smi()


def known_to(nvcc):
    """{(major, minor)} that an nvcc compiles for; empty where it does not say."""
    try:
        answer = subprocess.run([nvcc, "--list-gpu-arch"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return set()
    return {divmod(int(number), 10) for number in re.findall(r"\bcompute_(\d+)\b", answer)}


def parse_capabilities(text):
    """{(major, minor)} of lines such as "9.0"; nvidia-smi writes words into others."""
    found = (re.fullmatch(r"(\d+)\.(\d)", line.strip()) for line in text.splitlines())
    return {(int(match[1]), int(match[2])) for match in found if match}


def _nearest(capability, known):
    if not known or capability in known:
        return _name(capability)
    older = [other for other in known if OLDEST <= other < capability]
    return _name(max(older)) + "+PTX" if older else None


def _name(capability):
    return "{}.{}".format(*capability)


def _capability(name):
    major, minor = name.removesuffix("+PTX").split(".")
    return int(major), int(minor)


def _from_driver():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        count, device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return set()
        found = set()
        for ordinal in range(count.value):
            failed = driver.cuDeviceGet(ctypes.byref(device), ordinal)
            failed |= driver.cuDeviceGetAttribute(ctypes.byref(major), COMPUTE_CAPABILITY_MAJOR, device)
            failed |= driver.cuDeviceGetAttribute(ctypes.byref(minor), COMPUTE_CAPABILITY_MINOR, device)
            if not failed:
                found.add((major.value, minor.value))
        return found
    except (OSError, AttributeError):  # no driver, or one that lacks a function
        return set()


def _from_nvidia_smi():
    command = [shutil.which("nvidia-smi"), "--query-gpu=compute_cap", "--format=csv,noheader"]
    if command[0] is None:
        return set()
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return set()
    return parse_capabilities(answer.stdout)
