"""What subsequence_matches is asked, checked."""

import operator
from typing import Any, NamedTuple

import torch

from .._inputs import arguments, kinds, per_pair, sets
from .._inputs import cost as costs
from .._kernels import ops


class Query(NamedTuple):
    x: torch.Tensor  # (N, D), and y (M, D), in the dtype of the computation and on its device
    y: torch.Tensor
    k: int
    cost: Any
    warp_penalty: float
    bandwidth: int | None
    is_array: bool  # whether x came as a NumPy array
    home: torch.device  # of the answer


def of_call(x, y, k, cost, warp_penalty, normalize, bandwidth, device):
    """The Query of a call, or an error that names the argument."""
    is_array = kinds.is_array(x)
    x, y = _series("x", x), _series("y", y)
    if x.device != y.device:
        raise ValueError(f"x and y: expected one device, got {x.device} and {y.device}")
    if x.shape[1] != y.shape[1]:
        remedy = "; a series of one channel is x[:, None]" if len(x) == len(y) == 1 else ""
        shapes = f"{tuple(x.shape)} and {tuple(y.shape)}"
        raise ValueError(f"x and y: expected vectors of the same dimension, got shapes {shapes}{remedy}")
    if not per_pair.is_integer(k):
        raise TypeError(f"k: expected an integer, got {kinds.describe(k)}")
    if k < 1:
        raise ValueError(f"k: expected an integer of at least 1, got {k}")
    costs.check(cost)
    if not per_pair.is_number(warp_penalty):
        raise TypeError(f"warp_penalty: expected one number, got {kinds.describe(warp_penalty)}")
    penalty = per_pair.non_negative_penalty(warp_penalty)
    if arguments.flag("normalize", normalize):
        bandwidth = None if bandwidth is None else per_pair.band_radius(bandwidth)
    elif bandwidth is not None:
        raise ValueError(
            "bandwidth: expected None without normalize=True, since ranges of different lengths have no common band"
        )
    elif callable(cost):
        raise ValueError(
            "cost: expected a name without normalize=True, got a callable, which would compute all of the N x M "
            "costs; use a name, and apply a feature map to x and y first if you need one"
        )
    device = sets.device_to_compute_on(device, x)
    if arguments.wants_gradient(x, y):
        raise RuntimeError(
            "subsequence_matches: x or y requires a gradient, and there is none; call it under torch.no_grad(), or with "
            "x.detach() and y.detach()"
        )
    _check_finite(x)
    dtype = kinds.compute_dtype(torch.promote_types(x.dtype, y.dtype))
    own_x, own_y = (series.detach().to(device, dtype) for series in (x, y))
    ops.require_build_for(own_x)
    return Query(own_x, own_y, operator.index(k), cost, penalty, bandwidth, is_array, x.device)


def _series(name, series):
    if kinds.is_array(series):
        series = sets.from_numpy(series)
    arguments.check_float_tensor(name, series)
    if series.dim() != 2:
        remedy = f"; a series of one channel is {name}[:, None]" if series.dim() == 1 else "; pass one series at a time"
        raise ValueError(f"{name}: expected a series (length, dim), got shape {tuple(series.shape)}{remedy}")
    if 0 in series.shape or len(series) > arguments.LONGEST:
        raise ValueError(
            f"{name}: expected a length from 1 to 2^28 and at least one dimension, got shape {tuple(series.shape)}"
        )
    return series


def _check_finite(x):
    is_wrong = ~x.isfinite()
    if is_wrong.any():
        row, column = is_wrong.nonzero()[0].tolist()
        raise ValueError(f"x: expected finite numbers, got {x[row, column].item()} in x[{row}, {column}]")
