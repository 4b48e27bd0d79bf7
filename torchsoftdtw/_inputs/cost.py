"""The cost of matching two vectors: the names that the kernels know, cosine by reduction to one of them, and callables."""

from typing import NamedTuple

import torch

from .._costs import KERNEL_COSTS
from . import kinds, remedies
from .arguments import Options
from .unit_vectors import unit_vectors

NAMES = (*KERNEL_COSTS, "cosine")


def is_homogeneous(cost):
    """Whether <E, C>, and so a derivative with respect to gamma, follows from gradients (derivatives.py)."""
    return cost == "cosine" or KERNEL_COSTS[cost].degree is not None


def check(cost):
    """Raise unless `cost` is a known name or a callable."""
    if callable(cost):
        return
    if not isinstance(cost, str):
        raise TypeError(f"cost: expected a name or a callable, got {type(cost).__name__}")
    if cost not in NAMES:
        names = ", ".join(repr(name) for name in NAMES)
        raise ValueError(f"cost: expected one of {names} or a callable, got {cost!r}{remedies.of_cost(cost, NAMES)}")


class Reduction(NamedTuple):
    """A problem in a kernel's own cost `name`, which between these x and y is `factor` times the cost that was asked for.

    The options are in the unit of the kernel's cost, and so is what comes out: value() brings it back.
    """

    name: str
    x: torch.Tensor
    y: torch.Tensor
    options: Options
    factor: int = 1  # a power of two: nothing is rounded by it

    def value(self, value):
        """Values, or costs, in the unit of the cost that was asked for."""
        return value if self.factor == 1 else value / self.factor


def reduce_to_kernel_cost(cost, x, y, options):
    """The Reduction of a cost by name to one of KERNEL_COSTS."""
    if cost in KERNEL_COSTS:
        return Reduction(cost, x, y, options)
    # Squared Euclidean: |a - b|^2 = 2 (1 - a.b) for unit vectors, without the cancellation of 1 - a.b. Vectors of length
    # sqrt(1/2) would give the cost itself, but for the rounding of that root: all costs would be off in one direction.
    unit_x, unit_y = unit_vectors(without_padding(x, options.x_lengths), without_padding(y, options.y_lengths))
    return Reduction("sqeuclidean", unit_x, unit_y, options.in_unit_of(2), 2)


def matrix_from_callable(cost, x, y, x_lengths, y_lengths):
    """The (B, N, M) matrix of a user's `cost`, checked, in the dtype of the computation. `cost` never sees padding."""
    matrix = cost(without_padding(x, x_lengths), without_padding(y, y_lengths))
    expected = (x.shape[0], x.shape[1], y.shape[1])
    if not isinstance(matrix, torch.Tensor):
        raise TypeError(f"cost: expected the callable to return a torch.Tensor, got {type(matrix).__name__}")
    if matrix.layout != torch.strided or matrix.is_nested:
        raise TypeError(f"cost: expected the callable to return a dense tensor, got {kinds.layout_of(matrix)}")
    if matrix.dtype not in kinds.FLOATS:
        name = kinds.name_of(matrix.dtype)
        raise TypeError(f"cost: expected the callable to return dtype float64, float32, float16 or bfloat16, got {name}")
    if tuple(matrix.shape) != expected:
        raise ValueError(f"cost: expected the callable to return shape {expected}, got {tuple(matrix.shape)}")
    if matrix.device != x.device:
        raise ValueError(f"cost: expected the callable to return a tensor on {x.device}, got one on {matrix.device}")
    return matrix.to(kinds.compute_dtype(matrix.dtype))


def without_padding(series, lengths):
    """`series` with the vectors beyond each length replaced by the pair's first one, whose gradient they do not touch.

    Padding may hold NaN, and a NaN times a gradient of zero is still NaN. A real vector in its place is one that any cost
    defined on the data can take.
    """
    if lengths is None:
        return series
    inside = torch.arange(series.shape[1], device=series.device) < lengths.unsqueeze(1)
    with torch.no_grad():  # not detach, which torch.autograd.functional's own vmap lacks
        first = series[:, :1]
    return torch.where(inside.unsqueeze(2), series, first)
