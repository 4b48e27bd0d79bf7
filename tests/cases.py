"""What the tests share: the kernels to test, data, and one way to run a problem and compare it with the oracle."""

import os
import subprocess
from typing import NamedTuple

import numpy as np
import pytest
import torch
from emulation.build import COMPILER
from emulation.device import CAN_EMULATE

from torchsoftdtw import soft_dtw, soft_dtw_from_cost


def commit():
    """The commit that is checked out, as a number; 0 where git does not say."""
    try:
        git = ["git", "-C", os.path.dirname(__file__), "rev-parse", "HEAD"]
        return int(subprocess.run(git, capture_output=True, text=True, check=True).stdout, 16)
    except (OSError, subprocess.CalledProcessError):
        return 0


# Where there is no GPU, tests of CUDA kernels run on an emulated one, which takes tensors of the CPU: all or none as
# EMULATED_GPU says, or else a twelfth of those that do not take long there, the one that it names or that of the commit.
EMULATED = os.environ.get("EMULATED_GPU", "some")
PARTS = 12
NAMES_OF_PARTS = [f"{part}/{PARTS}" for part in range(1, PARTS + 1)]
if EMULATED not in ("all", "some", "none", *NAMES_OF_PARTS):
    raise ValueError(f"EMULATED_GPU: expected all, some, none, or 1/{PARTS} to {PARTS}/{PARTS}, got {EMULATED!r}")
if torch.cuda.is_available() or COMPILER is None or not CAN_EMULATE:
    EMULATED = "none"
if EMULATED == "some":
    EMULATED = NAMES_OF_PARTS[commit() % PARTS]
GPU = "cuda" if EMULATED == "none" else "cpu"


class KernelCase(NamedTuple):
    device: str
    name: str
    rows: int = 0  # per thread; 0: as the package chooses

    @property
    def is_cuda(self):
        return self.name != "cpu"

    def __str__(self):
        return f"{self.name}-{self.rows}" if self.rows else self.name


OF_GPU = pytest.mark.cuda if GPU == "cuda" else pytest.mark.emulated
# For tests of what names no kernel.
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.cuda)
    if GPU == "cuda"
    else pytest.param("cpu", id="emulated", marks=pytest.mark.emulated(every_op=True)),
]
KERNELS = [KernelCase("cpu", "cpu"), *(KernelCase(GPU, name) for name in ("diagonal", "stencil", "tiled"))]
EVERY_TEMPLATE = [*KERNELS[:2], *(KernelCase(GPU, name, rows) for name in ("stencil", "tiled") for rows in (2, 4))]
# float64 has one number of rows per thread.
ENGINES = [
    (case, dtype)
    for case in (EVERY_TEMPLATE[0], *EVERY_TEMPLATE[2:])
    for dtype in (torch.float32, torch.float64)
    if dtype == torch.float32 or case.rows != 4
]


def marks_of(case):
    return OF_GPU if case.is_cuda else ()


def parameters(cases):
    return [pytest.param(case, id=str(case), marks=marks_of(case)) for case in cases]


COSTS = ["sqeuclidean", "euclidean", "cityblock", "huber", "cosine"]

# What one rounding to the dtype of a gradient costs, with some room. The arithmetic in between is float32 at least, and its
# error against E of about 1e-6 (short series, gamma of 0.1 and more) disappears in the float32 figure.
GRADIENT_TOLERANCE = {torch.float64: 1e-9, torch.float32: 3e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
# Values are float32 unless the inputs are float64: relative to the value, or to gamma where the value is near 0.
VALUE_TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-5, torch.float16: 1e-5, torch.bfloat16: 1e-5}


def normal(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def numpy64(tensor):
    return tensor.detach().double().cpu().numpy()


def run(kernel, x, y, gamma=1.0, grad_value=None, **options):
    """Value and gradients of soft_dtw on the kernel's device, as float64 numpy arrays."""
    x = x.detach().to(kernel.device).requires_grad_()
    y = y.detach().to(kernel.device).requires_grad_()
    value = soft_dtw(x, y, gamma, kernel=kernel.name, **options)
    weights = torch.ones_like(value) if grad_value is None else grad_value.to(value)
    grad_x, grad_y = torch.autograd.grad(value, (x, y), weights)
    assert grad_x.dtype == x.dtype and grad_y.dtype == y.dtype
    return numpy64(value), numpy64(grad_x), numpy64(grad_y)


def run_from_cost(kernel, costs, gamma=1.0, **options):
    costs = costs.detach().to(kernel.device).requires_grad_()
    value = soft_dtw_from_cost(costs, gamma, kernel=kernel.name, **options)
    (gradient,) = torch.autograd.grad(value.sum(), costs)
    return numpy64(value), numpy64(gradient)


def assert_values_close(actual, expected, dtype, gamma):
    bound = VALUE_TOLERANCE[dtype] * np.maximum(np.abs(expected), gamma)
    assert np.all(np.abs(actual - expected) <= bound), (actual, expected)


def assert_gradients_close(actual, expected, dtype):
    """Relative to the largest entry of a pair: an entry is a sum of terms of both signs."""
    axes = tuple(range(1, expected.ndim))
    bound = GRADIENT_TOLERANCE[dtype] * np.maximum(np.abs(expected).max(axis=axes, keepdims=True), 1e-3)
    error = np.abs(actual - expected)
    assert np.all(error <= bound), f"off by {np.max(error / bound):.3g} times the tolerance"
