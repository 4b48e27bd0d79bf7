"""Distances between all pairs of two sets of series."""

import torch

from ._autograd import all_pairs
from ._inputs import arguments, sets
from ._inputs import cost as costs
from ._kernels import ops, selection
from ._pairs.measure import Measure, reduced
from .functional import soft_dtw

DISTANCES = ("dtw", "soft_dtw", "divergence")


def cdist(
    x,
    y=None,
    *,
    distance="dtw",
    gamma=1.0,
    cost="sqeuclidean",
    x_lengths=None,
    y_lengths=None,
    bandwidth=None,
    warp_penalty=0.0,
    length_norm=False,
    open_ends=False,
    kernel="auto",
):
    """The distance of every series of x to every series of y, differentiable with respect to both.

    Nothing is copied for a pair, and backward keeps the series alone: it computes the values anew, some pairs at a time. So
    the memory is that of the inputs, of the result, and some 256 MiB.

    Args:
        x: (P, N, D), series of length N and dimension D: a tensor, or a NumPy array. Or a list of P series (length, D), or
            a nested tensor, each with a length of its own.
        y: (Q, M, D), in any of these forms. None: x itself, and half of the pairs are computed.
        distance: "dtw", "soft_dtw", or "divergence" (`soft_dtw_divergence` of kind "soft"). `dtw` and `soft_dtw` say what
            their values are.
        gamma: smoothing of "soft_dtw" and "divergence", one positive number for all pairs. "dtw" has none.
        cost: as in `soft_dtw`. A callable gets the series of some pairs at a time.
        x_lengths: (P,) integers from 1 to N, as in `soft_dtw`.
        y_lengths: (Q,) integers from 1 to M; where y is None those of x.
        bandwidth: Sakoe-Chiba radius, one integer for all pairs, or None.
        warp_penalty: cost of a step that advances in one series only, one number for all pairs.
        length_norm: divide every value by the sum of the pair's lengths.
        open_ends: match every series of x with any contiguous part of those of y. Needs a y, and no bandwidth; not for
            "divergence".
        kernel: "auto", or a name that `select_kernel` can return; "dtw" has one alone.

    Returns:
        (P, Q) values: a tensor on the device of x, float64 for float64 inputs and float32 otherwise, or a NumPy array where
        x is one. Gradients are of the first order.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        RuntimeError: CUDA tensors, and this build has no CUDA part.

    Example:
        >>> import torch
        >>> x = torch.tensor([[[0.0], [1.0], [2.0]], [[0.0], [0.0], [2.0]], [[5.0], [5.0], [5.0]]])
        >>> cdist(x).tolist()
        [[0.0, 1.0, 50.0], [1.0, 0.0, 59.0], [50.0, 59.0, 0.0]]
    """
    arguments.one_of("distance", distance, DISTANCES)
    costs.check(cost)
    arguments.check_ends(open_ends, bandwidth)
    arguments.flag("length_norm", length_norm)
    is_half = y is None
    if open_ends and (is_half or distance == "divergence"):
        raise ValueError("open_ends: expected False without a y, and for the divergence: neither is symmetric then")
    if is_half and y_lengths is not None:
        raise ValueError("y_lengths: expected None where y is None; x_lengths holds for both")
    pair = sets.pair(x, y, x_lengths, y_lengths)
    options = sets.options(pair, 1.0 if distance == "dtw" else gamma, warp_penalty, bandwidth)
    own_kernel = selection.plan(kernel, pair.x).kernel
    ops.require_build_for(pair.x)

    own_x, own_y, cost_name, own_options, factor = reduced(pair.x, pair.y, cost, options)
    numbers = own_options.bandwidth, own_options.gamma, own_options.warp_penalty
    lengths = options.x_lengths, options.y_lengths
    measure = Measure(distance == "dtw", cost_name, *numbers, open_ends, own_kernel, *lengths)
    value = all_pairs.values(measure, own_x, own_y, is_half)
    value = value if factor == 1 else value / factor
    if distance == "divergence":
        kept = {"cost": cost, "bandwidth": bandwidth, "warp_penalty": warp_penalty, "kernel": kernel}
        of_x = soft_dtw(pair.x, pair.x, gamma, x_lengths=lengths[0], y_lengths=lengths[0], **kept)
        of_y = of_x if is_half else soft_dtw(pair.y, pair.y, gamma, x_lengths=lengths[1], y_lengths=lengths[1], **kept)
        value = value - 0.5 * (of_x.unsqueeze(1) + of_y)
        if is_half:  # where other kernels may have left a rounding
            value = value.masked_fill(torch.eye(len(of_x), dtype=torch.bool, device=value.device), 0.0)
    if length_norm:
        n = pair.x.shape[1] if lengths[0] is None else lengths[0].unsqueeze(1)
        value = value / (n + (pair.y.shape[1] if lengths[1] is None else lengths[1]))
    return pair.answer(value)
