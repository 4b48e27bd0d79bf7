"""Open ends for soft-DTW: x against every contiguous part of y, as an ordinary problem with a larger cost matrix.

The value wanted is the softmin of soft-DTW(x, y[i..j]) over all parts i <= j. With q = exp(-p / gamma) and entries
exp(-R / gamma) as in (2), that is a sum over the paths that enter the first row in any column from outside, with weight
1, and leave the last row in any column. A row of wildcards above the costs, one below, and a forbidden column on either
side do that:

    a row of wildcards    g  -p  -p  ... -p        moves to the right in it are free: each costs p - p
    the N rows of costs  inf  C   C  ... inf
    a row of wildcards   inf -p  -p  ...  g        g = gamma log(1 + q)

All entries of the upper row are u = 1 / (1 + q). A cell of the first row of costs is entered from it diagonally and from
above, together with weight u + q u = 1. A cell of the last row leaves to the lower row diagonally and downwards, with
weights 1 / q and 1, and is carried on to the corner at no cost, whose own cost makes of their sum (1 + q) / q again 1.
"""

import math

import torch


def extend(matrix, options):
    """(costs (B, N + 2, M + 2), options) whose value is that of `matrix` (B, N, M) with open ends.

    In float64 where there is a penalty: what a cost of -p and a step of p, rounded each, leave of one another adds up over
    a row of wildcards, to a number of steps times the rounding of p, however small gamma and the value are.
    """
    batch, n, m = matrix.shape
    if options.warp_penalties is not None or options.warp_penalty:
        matrix = matrix.double()
    gamma = _column(options.gammas, options.gamma)
    penalty = _column(options.warp_penalties, options.warp_penalty)
    # Lengths are tensors of integers or the padded ones.
    x_lengths = n if options.x_lengths is None else options.x_lengths.view(-1, 1, 1)
    y_lengths = m if options.y_lengths is None else options.y_lengths.view(-1, 1, 1)
    row = torch.arange(n + 2, device=matrix.device).view(1, -1, 1)
    column = torch.arange(m + 2, device=matrix.device).view(1, 1, -1)
    is_first, is_last = row == 0, row == x_lengths + 1
    is_inside = (column >= 1) & (column <= y_lengths)
    corner = (is_first & (column == 0)) | (is_last & (column == y_lengths + 1))

    ratio = penalty / gamma
    is_tensor = isinstance(ratio, torch.Tensor)
    joint = gamma * (torch.log1p(torch.exp(-ratio)) if is_tensor else math.log1p(math.exp(-ratio)))
    costs = torch.nn.functional.pad(matrix, (1, 1, 1, 1))
    costs = costs.masked_fill(~is_inside, torch.inf)
    costs = _fill(costs, (is_first | is_last) & (column > 0), -penalty)
    costs = _fill(costs, corner, joint)
    longer = {
        name: None if lengths is None else lengths + 2
        for name, lengths in (("x_lengths", options.x_lengths), ("y_lengths", options.y_lengths))
    }
    return costs.expand(batch, -1, -1), options._replace(**longer)


def inside(alignment, options):
    """The part (B, N, M) of an alignment of what `extend` answers that belongs to the series."""
    own = alignment[:, 1:-1, 1:-1]
    if options.x_lengths is None:
        return own
    row = torch.arange(1, own.shape[1] + 1, device=own.device).view(1, -1, 1)
    return own.masked_fill(row > (options.x_lengths - 2).view(-1, 1, 1), 0)  # beyond is the lower row of wildcards


def _fill(costs, where, number):
    if isinstance(number, torch.Tensor):
        return torch.where(where, number.to(costs.dtype), costs)
    return costs.masked_fill(where, number)


def _column(per_pair, number):
    return number if per_pair is None else per_pair.view(-1, 1, 1)
