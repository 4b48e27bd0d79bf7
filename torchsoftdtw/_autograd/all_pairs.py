"""The gradient of a measure of all pairs, which keeps the series alone: backward computes the values anew, tile by tile."""

import functools

import torch
from torch.autograd.function import once_differentiable

from .._inputs.arguments import wants_gradient
from .._pairs.tiles import tiles


def values(measure, x, y, is_half):
    """(P, Q): the Measure of x (P, N, D) and y (Q, M, D), differentiable with respect to both. is_half: they are one set,
    of which one half of the pairs is computed."""
    if wants_gradient(x, y):
        return _AllPairs.apply(x, y, measure, is_half)
    return _values(measure, x, y, is_half)


def _values(measure, x, y, is_half):
    shape = x.shape[0], y.shape[0]
    parts = list(tiles(*shape, *measure.tile_shape(shape, x, y, is_half), is_half))
    if len(parts) == 1:
        return parts[0].table(measure.values(x, y, parts[0]))
    out = x.new_empty(shape)
    for tile in parts:
        tile.put(measure.values(x, y, tile), out, is_half)
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
        is_half = ctx.is_half and x is y
        folded = functools.cache(lambda: _folded(arriving, is_half) if ctx.is_half else arriving)
        shape = ctx.measure.tile_shape(arriving.shape, x, y, is_half, with_gradients=True)
        parts = list(tiles(*arriving.shape, *shape, is_half))
        if len(parts) == 1:
            of_x, of_y = ctx.measure.gradients(x, y, parts[0], lambda: parts[0].take(folded()))
            return of_x if need_x else None, None if is_half or not need_y else of_y, None, None
        of_x = torch.zeros_like(x) if need_x else None
        of_y = of_x if is_half else torch.zeros_like(y) if need_y else None
        for tile in parts:
            part_x, part_y = ctx.measure.gradients(x, y, tile, lambda tile=tile: tile.take(folded()))
            if need_x:
                of_x[tile.top : tile.bottom] += part_x
            if need_y and part_y is not None:
                of_y[tile.left : tile.right] += part_y
        return of_x, None if is_half else of_y, None, None


def _folded(arriving, is_half):
    """A value above the diagonal stands below it, too. is_half: one half of the pairs answers for both."""
    both = arriving + arriving.T
    (both.diagonal() if is_half else both).mul_(0.5)
    return both
