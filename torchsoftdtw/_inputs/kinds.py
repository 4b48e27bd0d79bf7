"""Dtypes and layouts: which are taken, and how errors call what came."""

import sys

import torch

COMPUTED = (torch.float64, torch.float32)
FLOATS = (*COMPUTED, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def compute_dtype(dtype):
    """The dtype that something in `dtype` is computed in."""
    return dtype if dtype == torch.float64 else torch.float32


def describe(value):
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def layout_of(tensor):
    strided_nested = tensor.is_nested and tensor.layout == torch.strided
    return "a nested tensor" if strided_nested else f"layout {tensor.layout}"


def is_array(value):
    """Whether `value` is a NumPy array; nobody has one who has not imported NumPy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)
