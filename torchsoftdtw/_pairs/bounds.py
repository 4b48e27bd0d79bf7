"""Lower bounds of hard DTW, with which the nearest series are found without the values of all pairs.

LB_Keogh (Keogh & Ratanamahatana, "Exact indexing of dynamic time warping", Knowl. Inf. Syst., 2005): a vector
of a series costs at least what it costs against the box around all vectors that a path may match it with. A path begins
with both first vectors and ends with both last ones, so the boxes for these are points, as in LB_Kim (Kim, Park & Chu, "An
index-based approach for similarity search supporting time warping in large sequence databases", ICDE 2001).
"""

from typing import NamedTuple

import torch

from .._kernels import ops

LANES = 16  # numbers of a register: series of whole registers are summed fastest


class Side(NamedTuple):
    """The series of one set, (count, D, L), with NaN beyond their ends, and boxes for the vectors of the other set's."""

    series: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor


def sides(measure, x, y):
    """The Sides of (P, N, D) and (Q, M, D), by a Measure of hard DTW with a band and a cost of the kernels' own."""
    n, m = x.shape[1], y.shape[1]
    least_n, most_n = _range(measure.x_lengths, n)
    least_m, most_m = _range(measure.y_lengths, m)
    # The band of every pair lies in low <= j - i <= high.
    low = min(0, least_m - most_n) - measure.bandwidth
    high = max(0, most_m - least_n) + measure.bandwidth
    return (
        _side(x, measure.x_lengths, m, -high, -low, least_m == m),
        _side(y, measure.y_lengths, n, low, high, least_n == n),
    )


def lower_bounds(x_side, y_side, cost):
    """(P, Q): what no value of a pair is below, but for rounding (slack); of one with a NaN it may be any number."""
    of_x = ops.dtw_bounds(x_side.series, y_side.low, y_side.high, cost)
    of_y = ops.dtw_bounds(y_side.series, x_side.low, x_side.high, cost)
    return torch.maximum(of_x, of_y.T)


def slack(dtype, n, m, dim):
    """(relative, absolute): by how much a limit has to be raised, so that what the kernels compute as a bound exceeds it
    only where what they compute as the value, rounded and divided as it may be, exceeds the limit itself.

    With u the unit of rounding, a bound is a sum of at most n + m numbers, and off by at most (n + m) u of itself. Costs of
    `dim` coordinates are sums of that many, which may be fused in one place and not in the other: 2 (dim + 2) u. The value
    is summed in float64, rounded, and divided: 3 u. This is twice as much; the second number is for what underflows.
    """
    number = torch.finfo(dtype)
    return (n + m + 2 * dim + 16) * number.eps, number.smallest_normal


def _range(lengths, longest):
    """The least and the largest length."""
    return (longest, longest) if lengths is None else (int(lengths.min()), int(lengths.max()))


def _side(series, lengths, others, low, high, others_end_alike):
    """others: the length of the other set, whose i-th vector meets those from i + low to i + high."""
    count, length, _ = series.shape
    series = series.mT
    inside = None if lengths is None else torch.arange(length) < lengths.view(-1, 1, 1)
    width = -(-others // LANES) * LANES
    boxes = []
    for sign in (-1, 1):  # the least of numbers is minus the largest of minus them
        far = sign * series if inside is None else torch.where(inside, sign * series, -torch.inf)
        box = sign * _sliding_max(far, others, max(low, 1 - others), min(high, length - 1))
        box[:, :, 0] = series[:, :, 0]
        if others_end_alike:
            ends = torch.full((count,), length) if lengths is None else lengths
            box[:, :, -1] = series[torch.arange(count), :, ends - 1]
        boxes.append(_padded(box, width))
    own = series if inside is None else torch.where(inside, series, torch.nan)
    return Side(_padded(own, -(-length // LANES) * LANES), *boxes)


def _sliding_max(series, count, low, high):
    """(..., count): the largest of series (..., L) from i + low to i + high, for each i; low <= 0 <= high."""
    length = series.shape[-1]
    found = torch.nn.functional.pad(series, (-low, max(0, count + high - length)), value=-torch.inf)
    width, wanted = 1, high - low + 1
    while width < wanted:  # windows of `width` make those of twice that, or less
        step = min(width, wanted - width)
        found = torch.maximum(found[..., :-step], found[..., step:])
        width += step
    return found[..., :count].contiguous()


def _padded(series, length):
    return torch.nn.functional.pad(series, (0, length - series.shape[-1]), value=torch.nan).contiguous()
