"""(6): the derivatives of the value with respect to gamma and to the warp penalty, from what a backward pass gives."""

import torch

from .._costs import KERNEL_COSTS


def path_cost_by_euler(cost, x, y, grad_x, grad_y, x_lengths, y_lengths):
    """<E, C> (B,) float64, from the gradients (B, N, D), (B, M, D) of the value.

    A cost that is homogeneous of a degree has x dC/dx + y dC/dy = degree C. It also stays what it is when x and y move
    together, so any centre may be subtracted from both: near their mean the products are small, and little cancels.
    """
    centre = _mean(x, y, x_lengths, y_lengths)

    def products(series, gradient):
        # Padding has a gradient of 0 and may hold NaN.
        moved = (series.double() - centre) * gradient
        return moved.masked_fill(gradient == 0, 0).sum((1, 2))

    return (products(x, grad_x) + products(y, grad_y)) / KERNEL_COSTS[cost].degree


def sums_over_alignment(cost_matrix, alignment, gamma, x_lengths, y_lengths):
    """<E, C> and the expected number of steps that are not diagonal, 2 sum(E) - N - M; (B,) float64 each.

    With H steps along x only, V along y only and D diagonal ones, N - 1 = H + D, M - 1 = V + D, and a path has
    H + V + D + 1 cells.
    """
    # Rounding may leave a little of E where a cost forbids the cell, and that cost, or infinity, must not multiply it.
    # Padding has none of E and may be NaN.
    rounding = 8 * torch.finfo(alignment.dtype).eps
    limit = 1000 * (gamma.view(-1, 1, 1) if isinstance(gamma, torch.Tensor) else gamma)
    nothing = (alignment == 0) | ((alignment < rounding) & (cost_matrix > limit))
    path_cost = (alignment * cost_matrix).masked_fill(nothing, 0).sum((1, 2), dtype=torch.float64)
    n, m = alignment.shape[1:]
    lengths = (n if x_lengths is None else x_lengths) + (m if y_lengths is None else y_lengths)
    return path_cost, 2 * alignment.sum((1, 2), dtype=torch.float64) - lengths


def of_gamma_and_penalty(value, path_cost, steps, warp_penalty, gamma):
    """(6), and the expected number of steps that are not diagonal; `steps` is None where there is no penalty."""
    spent = path_cost if steps is None else path_cost + warp_penalty * steps
    return (value.double() - spent) / gamma, steps


def steps_of_spans(spans):
    """The number of steps (B,) of a best path that are not diagonal, from the columns that it meets in each row."""
    first, last = spans[..., 0], spans[..., 1]
    sideways = (last - first).clamp(min=0).sum(1)
    return sideways + (first[:, 1:] == last[:, :-1]).sum(1)


def _mean(x, y, x_lengths, y_lengths):
    total, count = 0, 0
    for series, lengths in ((x, x_lengths), (y, y_lengths)):
        if lengths is None:
            total = total + series.sum(1, keepdim=True, dtype=torch.float64)
            count = count + series.shape[1]
        else:
            inside = torch.arange(series.shape[1], device=series.device) < lengths.unsqueeze(1)
            total = total + series.masked_fill(~inside.unsqueeze(2), 0).sum(1, keepdim=True, dtype=torch.float64)
            count = count + lengths[:, None, None]
    return total / count
