"""The gradient of a measure of all pairs, which keeps the series alone: backward computes the values anew, tile by tile."""

import torch
from torch.autograd.function import once_differentiable

from .._inputs.arguments import wants_gradient
from .._pairs.tiles import tiles


def values(measure, x, y, is_half):
    """(P, Q): the Measure of x (P, N, D) and y (Q, M, D), differentiable with respect to both. is_half: they are one set, of
    which one half of the pairs is computed."""
    if wants_gradient(x, y):
        return _AllPairs.apply(x, y, measure, is_half)
    return _values(measure, x, y, is_half)


def _values(measure, x, y, is_half):
    out = x.new_empty((x.shape[0], y.shape[0]))
    for tile in tiles(*out.shape, measure.side(x, y), is_half):
        found = measure.values(x, y, tile)
        tile.put(found, out)
        if is_half:
            tile.mirror(found, out)
    return out


class _AllPairs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, measure, is_half):
        ctx.save_for_backward(x, y)
        ctx.measure, ctx.is_half = measure, is_half
        return _values(measure, x, y, is_half)

    @staticmethod
    @once_differentiable
    def backward(ctx, arriving):
        x, y = ctx.saved_tensors
        need_x, need_y = ctx.needs_input_grad[:2]
        if ctx.is_half:  # a value above the diagonal stands below it, too
            arriving = arriving + arriving.T
            arriving.diagonal().mul_(0.5)
        of_x, of_y = torch.zeros_like(x) if need_x else None, torch.zeros_like(y) if need_y else None
        for tile in tiles(*arriving.shape, ctx.measure.side(x, y, with_gradients=True), ctx.is_half):
            own = tile.take(arriving).contiguous()
            part_x, part_y = ctx.measure.gradients(x, y, tile, own, need_x, need_y)
            if need_x:
                of_x[tile.top : tile.bottom] += part_x
            if need_y:
                of_y[tile.left : tile.right] += part_y
        return of_x, of_y, None, None
