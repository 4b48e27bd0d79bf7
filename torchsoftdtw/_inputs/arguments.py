"""What the user passed -> what the ops take, with an error that names the argument, what came and what was expected."""

import math
from typing import NamedTuple

import torch

from . import remedies
from .kinds import COMPUTED, FLOATS, compute_dtype, describe, layout_of, name_of
from .per_pair import (
    any_penalty,
    band_radius,
    integers_per_pair,
    is_integer,
    is_number,
    non_negative_penalty,
    number_per_pair,
    positive_gamma,
)

LONGEST = 1 << 28


class Options(NamedTuple):
    """The arguments that every op shares, in the ops' order."""

    x_lengths: torch.Tensor | None
    y_lengths: torch.Tensor | None
    bandwidths: torch.Tensor | None
    gammas: torch.Tensor | None  # None: the number `gamma` holds for every pair; likewise the others
    warp_penalties: torch.Tensor | None
    bandwidth: int
    gamma: float
    warp_penalty: float

    def in_unit_of(self, factor):
        """The same beside costs that are `factor` times as large."""
        gammas, penalties = (None if tensor is None else factor * tensor for tensor in (self.gammas, self.warp_penalties))
        numbers = {"gamma": factor * self.gamma, "warp_penalty": factor * self.warp_penalty}
        return self._replace(gammas=gammas, warp_penalties=penalties, **numbers)


PER_PAIR = 5  # x_lengths, y_lengths, bandwidths, gammas, warp_penalties: Options begins with them


def wants_gradient(*tensors):
    """Whether a forward pass should keep what its backward pass needs. A tensor may be None."""
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor is not None and tensor.requires_grad:
                return True
    return False


def series(x, y):
    """Check x and y. Returns them as (B, N, D) and (B, M, D) in the dtype of the computation, and whether they had a B."""
    check_float_tensor("x", x)
    check_float_tensor("y", y)
    dims = x.dim()
    for name, tensor in (("x", x), ("y", y)):
        if tensor.dim() not in (2, 3):
            remedy = remedies.of_dimensions(name, tensor.shape)
            raise ValueError(
                f"{name}: expected shape (batch, length, dim) or (length, dim), got {tuple(tensor.shape)}{remedy}"
            )
    if dims != y.dim():
        raise ValueError(f"x and y: expected both with a batch or both without, got {_shapes(x, y)}")
    if x.device != y.device:
        raise ValueError(f"x and y: expected one device, got {x.device} and {y.device}")
    given = x, y
    if dims == 2:
        x, y = x.unsqueeze(0), y.unsqueeze(0)
    (batch, n, dim), (y_batch, m, y_dim) = x.shape, y.shape
    if batch != y_batch:
        got = f"{_shapes(x, y)}{remedies.of_batches(x, y)}"
        raise ValueError(f"x and y: expected the same batch size (there is no broadcasting), got {got}")
    if dim != y_dim:
        got = f"{_shapes(*given)}{remedies.of_vectors(*given)}"
        raise ValueError(f"x and y: expected vectors of the same dimension, got {got}")
    _check_length("x", x, n)
    _check_length("y", y, m)
    if dim < 1:
        raise ValueError(f"x: expected a dimension of at least 1, got shape {tuple(x.shape)}")
    if not torch.compiler.is_compiling() and n == m and dim > n:
        remedies.warn_of_shape(x, dims == 3)
    if x.dtype != y.dtype or x.dtype not in COMPUTED:
        dtype = compute_dtype(torch.promote_types(x.dtype, y.dtype))
        x, y = x.to(dtype), y.to(dtype)
    return x, y, dims == 3


def cost_matrix(matrix):
    """Check a ready-made cost matrix. Returns it as (B, N, M) in the dtype of the computation, and whether it had a B."""
    check_float_tensor("cost_matrix", matrix)
    if matrix.dim() not in (2, 3):
        raise ValueError(f"cost_matrix: expected shape (batch, N, M) or (N, M), got {tuple(matrix.shape)}")
    batched = matrix.dim() == 3
    if not batched:
        matrix = matrix.unsqueeze(0)
    for length in matrix.shape[1:]:
        _check_length("cost_matrix", matrix, length)
    return matrix.to(compute_dtype(matrix.dtype)), batched


def options(like, n, m, batched, gamma, warp_penalty, bandwidth, x_lengths, y_lengths):
    """Check what the ops share, for `like` (B, ...) in the dtype of the computation."""
    gammas, penalties = None, None
    if is_number(gamma):
        gamma = positive_gamma(gamma, like.dtype)
    else:
        gammas, gamma = number_per_pair("gamma", gamma, like, batched, positive_gamma), 1.0
    if is_number(warp_penalty):
        penalty = non_negative_penalty(warp_penalty)
    else:
        penalties, penalty = number_per_pair("warp_penalty", warp_penalty, like, batched, any_penalty), 0.0
    # With gammas on a CUDA device the kernels answer NaN for such a pair.
    if gammas is None and penalties is None and penalty and penalty / (gamma * math.log(2)) > torch.finfo(like.dtype).max:
        raise ValueError(f"warp_penalty: {warp_penalty} / gamma = {gamma} overflows {name_of(like.dtype)}")
    radius, radii = -1, None
    if bandwidth is not None:
        if is_integer(bandwidth):
            radius = band_radius(bandwidth)
        else:
            radii = integers_per_pair("bandwidth", bandwidth, like, batched, 0, None)
    return Options(
        integers_per_pair("x_lengths", x_lengths, like, batched, 1, n),
        integers_per_pair("y_lengths", y_lengths, like, batched, 1, m),
        radii,
        gammas,
        penalties,
        radius,
        gamma,
        penalty,
    )


def one_of(name, value, choices):
    """`value`, checked to be one of the strings `choices`."""
    if not isinstance(value, str) or value not in choices:
        *others, last = (repr(choice) for choice in choices)
        raise ValueError(f"{name}: expected {', '.join(others)} or {last}, got {value!r}")
    return value


def flag(name, value):
    if not isinstance(value, bool):
        raise TypeError(f"{name}: expected True or False, got {describe(value)}")
    return value


def check_progress(progress):
    if progress is not None and progress is not False:
        raise ValueError(f"progress: expected None or False, got {progress!r}")


def check_ends(open_ends, bandwidth):
    """Raise for open ends beside a band: a band is laid around the corners, which open ends leave open."""
    if flag("open_ends", open_ends) and bandwidth is not None:
        raise ValueError("open_ends: expected bandwidth=None, since a band has fixed ends")


def per_length(value, options, n, m):
    """`value` divided by the summed lengths of each pair."""
    lengths = (n if options.x_lengths is None else options.x_lengths) + (
        m if options.y_lengths is None else options.y_lengths
    )
    return value / lengths


def check_float_tensor(name, tensor):
    if not isinstance(tensor, torch.Tensor):
        remedy = remedies.of_object(name, tensor)
        raise TypeError(f"{name}: expected a torch.Tensor, got {describe(tensor)}{remedy}")
    if tensor.layout != torch.strided or tensor.is_nested:
        raise TypeError(f"{name}: expected a dense tensor, got {layout_of(tensor)}; call .to_dense() or pad it first")
    if tensor.dtype not in FLOATS:
        got = f"{name_of(tensor.dtype)}{remedies.of_dtype(name, tensor.dtype)}"
        raise TypeError(f"{name}: expected dtype float64, float32, float16 or bfloat16, got {got}")
    if not (tensor.is_cuda or tensor.is_cpu or tensor.is_meta):
        raise ValueError(f"{name}: expected a tensor on the CPU or CUDA, got {tensor.device}")


def _check_length(name, tensor, length):
    # A bound on a symbolic length would become one of the exported program; the ops look at the length themselves.
    if length < 1 or (not torch.compiler.is_compiling() and length > LONGEST):
        raise ValueError(f"{name}: expected lengths from 1 to 2^28, got shape {tuple(tensor.shape)}")


def _shapes(x, y):
    return f"{tuple(x.shape)} and {tuple(y.shape)}"
