"""Other implementations of soft-DTW behind one signature: a callable (x, y) -> (B,), differentiable."""

import importlib.util
import pathlib
import sys


def mend_numpy():
    """numba's CUDA target of 2025 asks for a function that NumPy 2.4 removed; without it no rival would run there."""
    import numpy

    if not hasattr(numpy, "row_stack"):
        numpy.row_stack = numpy.vstack


class Missing(Exception):
    """Why a library takes no part: "not installed", or what it cannot do."""


def ours(device, gamma):
    import torchsoftdtw

    return lambda x, y: torchsoftdtw.soft_dtw(x, y, gamma)


def tslearn(device, gamma):
    try:
        from tslearn.metrics import SoftDTWLossPyTorch
    except ImportError:
        raise Missing("not installed") from None
    return SoftDTWLossPyTorch(gamma=gamma)


def pysdtw(device, gamma):
    mend_numpy()
    try:
        import pysdtw
    except ImportError:
        raise Missing("not installed") from None
    return pysdtw.SoftDTW(gamma=gamma, use_cuda=device.type == "cuda")


def maghoumi(path, device, gamma):
    """soft_dtw_cuda.py of Maghoumi's pytorch-softdtw-cuda, or a fork with the same class."""
    mend_numpy()
    return load_file(path).SoftDTW(use_cuda=device.type == "cuda", gamma=gamma)


def other(path, device, gamma):
    """A file, or a package's folder, with soft_dtw(x, y, gamma) or a module SoftDTW(gamma) that returns (B,) values."""
    module = load_file(path)
    if hasattr(module, "soft_dtw"):
        return lambda x, y: module.soft_dtw(x, y, gamma)
    if hasattr(module, "SoftDTW"):
        return module.SoftDTW(gamma=gamma)
    raise Missing("has neither soft_dtw nor SoftDTW")


def load_file(path):
    """The module of a Python file, or of a folder with __init__.py."""
    path = pathlib.Path(path).resolve()
    package = path.is_dir()
    source = path / "__init__.py" if package else path
    if not source.is_file():
        raise Missing("no file at the path given")
    name = f"rival_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    locations = [str(path)] if package else None
    specification = importlib.util.spec_from_file_location(name, source, submodule_search_locations=locations)
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise Missing(f"does not load: {one_line(error)}") from None
    return module


def one_line(error):
    """An exception's type and first line, without the paths that the rest may hold."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:80]}" if lines else type(error).__name__
