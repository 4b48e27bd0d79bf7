"""Where the values of all pairs go: memory, or a file, with a journal of the finished blocks beside it."""

import contextlib
import os
from typing import Any, NamedTuple

import torch

from .._inputs import kinds
from .journal import Marks, open_journal

SUFFIX = ".progress"  # of the journal's name


class Result(NamedTuple):
    tensor: torch.Tensor  # (P, Q), what is written to
    answer: Any  # what the caller gets
    marks: Marks
    flush: Any = None  # puts what was written on disk; None: there is no disk

    @property
    def is_shared(self):
        """Whether ranks that are given the same `out` write to the same place."""
        return self.flush is not None


def new(shape, dtype, device, is_array, count):
    """In memory, of zeros."""
    tensor = torch.zeros(shape, dtype=dtype, device=device)
    return Result(tensor, tensor.numpy() if is_array else tensor, Marks(count))


def given(out, shape, dtype, count, problem, is_over):
    """The `out` of a caller, checked. problem(): what tells it from others, for one on disk; is_over as in open_journal."""
    if isinstance(out, torch.Tensor):
        _check(shape, dtype, out.shape, out.dtype)
        if out.requires_grad:
            raise ValueError("out: expected a tensor that requires no gradient")
        return Result(out, out, Marks(count))
    if kinds.is_array(out):
        _check_array(out, shape, dtype)
        place = _place_of_mapped(out)
        if place is None:
            return Result(torch.from_numpy(out), out, Marks(count))
        marks = open_journal(
            f"{out.filename}{SUFFIX}", out.filename, problem() | place, count, lambda: _reserve(out.filename), is_over
        )
        return Result(torch.from_numpy(out), out, marks, out.flush)
    if not isinstance(out, (str, os.PathLike)):
        raise TypeError(f"out: expected a tensor, a NumPy array or a path, got {kinds.describe(out)}")
    return _at_path(os.fspath(out), shape, dtype, count, problem, is_over)


def _at_path(path, shape, dtype, count, problem, is_over):
    import numpy as np

    if not path.endswith(".npy"):
        raise ValueError(f"out: expected a path that ends in .npy, got {path!r}")
    name = kinds.name_of(dtype)

    def prepare():
        try:
            np.lib.format.open_memmap(path, "w+", name, tuple(shape))
            _reserve(path)
        except OSError as error:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            raise OSError(
                error.errno, f"out: {os.strerror(error.errno)}: {tuple(shape)} in {name} do not fit", path
            ) from error

    marks = open_journal(path + SUFFIX, path, problem(), count, prepare, is_over)
    mapped = np.lib.format.open_memmap(path, "r+")
    _check_array(mapped, shape, dtype)
    return Result(torch.from_numpy(mapped), mapped, marks, mapped.flush)


def _reserve(path):
    """Have a file's room on disk reserved: a mapped file for which there is none, kills the process that writes to it."""
    if not hasattr(os, "posix_fallocate"):
        return
    with open(path, "r+b") as file:
        os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)


def _place_of_mapped(array):
    """Which bytes of its file an array is, if it is one whose values reach a file; None otherwise."""
    import numpy as np

    if not isinstance(array, np.memmap) or array.filename is None or array.mode not in ("r+", "w+"):
        return None
    whole = array
    while isinstance(whole.base, np.memmap):
        whole = whole.base
    return {"place": [whole.offset + array.ctypes.data - whole.ctypes.data, *array.strides]}


def _check_array(array, shape, dtype):
    _check(shape, dtype, array.shape, array.dtype)
    if not array.flags.writeable:
        raise ValueError("out: expected an array that can be written to")


def _check(shape, dtype, found_shape, found_dtype):
    name = kinds.name_of(found_dtype)
    if tuple(found_shape) != tuple(shape) or name != kinds.name_of(dtype):
        expected = f"{tuple(shape)} in {kinds.name_of(dtype)}"
        raise ValueError(f"out: expected {expected}, got {tuple(found_shape)} in {name}")
