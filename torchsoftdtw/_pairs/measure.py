"""What is computed of each pair of two sets: soft-DTW or hard DTW with its options, by kernels or from cost matrices."""

import functools
from typing import Any, NamedTuple

import torch

from .._inputs import arguments
from .._inputs import cost as costs
from .._inputs.problem import Problem
from .._internals import below_autograd
from .._kernels import ops, selection
from ..functional import values_of
from ..hard import values_of as hard_values_of
from .tiles import tile_shape

MOST_PAIRS = 1 << 18  # of a call: they keep a GPU busy for a millisecond or more
MOST_BYTES = 192 << 20  # of memory that a call takes for its pairs
CPU_PAIRS = 1 << 14
FEW_PAIRS = 64  # yet so many that what a call keeps beside its pairs does not count


class Measure(NamedTuple):
    """The options of a measure, and the lengths of both sets' series. cost: one of the kernels' own, or a callable.
    From cost matrices come the values of a callable, and soft-DTW with open ends."""

    is_hard: bool
    cost: Any
    bandwidth: int
    gamma: float
    warp_penalty: float
    open_ends: bool
    kernel: str
    x_lengths: torch.Tensor | None
    y_lengths: torch.Tensor | None

    @property
    def needs_matrix(self):
        return callable(self.cost) or (self.open_ends and not self.is_hard)

    def tile_shape(self, shape, x, y, is_half, with_gradients=False):
        """(height, width) of tiles whose pairs fit a call, of (P, Q) pairs of series like x and y."""
        return tile_shape(*shape, self.pairs_of_call(x, y, with_gradients), is_half)

    def pairs_of_call(self, x, y, with_gradients=False):
        most = MOST_PAIRS if x.is_cuda else CPU_PAIRS
        pairs = FEW_PAIRS
        for _ in range(1 + with_gradients):  # kernels keep less of a pair where there are many
            pairs = min(most, max(1, MOST_BYTES // self._bytes_of_pair(x, y, with_gradients, pairs)))
        return pairs

    def _bytes_of_pair(self, x, y, with_gradients, pairs):
        n, m, dim = x.shape[1], y.shape[1], x.shape[2]
        numbers = 4 * m  # an edge of the table, where strips hand one on
        of_series = (n + m) * dim
        saved = of_sums = 0
        if self.needs_matrix:
            numbers = of_series + (3 + 2 * with_gradients) * n * m
        elif with_gradients:
            numbers = (1 + (dim > 1)) * of_series + 2 * n * self.is_hard  # vectors may be put into another order
            of_sums = 3 * of_series  # when nothing else is left (Tile.sums)
        if with_gradients and not (self.is_hard or self.needs_matrix):
            has_lengths = self.x_lengths is not None or self.y_lengths is not None
            options = has_lengths, False, self.bandwidth, self.warp_penalty != 0, self.kernel, 0, x.device.index or 0
            saved = _saved_bytes(x.is_cuda, pairs, n, m, dim, x.dtype == torch.float64, self.cost, *options)
        return int(max(numbers * x.element_size() + saved, of_sums * x.element_size()) + 16)

    def values(self, x, y, tile):
        """(count,): the measure of a tile's pairs."""
        if self.needs_matrix:
            return self._values_from_matrix(*self._gathered(x, y, tile))
        return self.forward(x, y, tile, save=False)[0]

    def gradients(self, x, y, tile, arriving):
        """What reaches the series of a tile, (rows, N, D) and (columns, M, D), where arriving() (count,) reaches the pairs'
        values; of a triangle what reaches its one set, and None.

        It is called once the device has something to do.
        """
        _, of_x, of_y = self.values_and_gradients(x, y, tile, arriving, True, True)
        return tile.sums(of_x, of_y)

    def values_and_gradients(self, x, y, tile, arriving, need_x, need_y):
        """(count,) values, and what reaches each pair's series: (count, N, D) and (count, M, D), of use where needed."""
        if self.needs_matrix:
            return self._gradients_from_matrix(x, y, tile, arriving(), need_x, need_y)
        return self._backward(x, y, tile, arriving, need_x, need_y)

    def _part(self, x, y, tile):
        """The tile's series and their lengths."""
        if tile.is_whole(len(x), len(y)):
            return x, y, self.x_lengths, self.y_lengths
        own_x, own_y = slice(tile.top, tile.bottom), slice(tile.left, tile.right)
        x_lengths = None if self.x_lengths is None else self.x_lengths[own_x]
        y_lengths = None if self.y_lengths is None else self.y_lengths[own_y]
        return x[own_x], y[own_y], x_lengths, y_lengths

    def forward(self, x, y, tile, save):
        """(count,) values, and what the kernel keeps for the gradients: of hard DTW the spans of the paths."""
        x, y, *lengths = self._part(x, y, tile)
        index = tile.index(x.device)
        with below_autograd():
            if self.is_hard:
                numbers = self.bandwidth, self.warp_penalty, self.open_ends, self.cost
                return ops.dtw_of_pairs(*index, x, y, *lengths, None, None, *numbers, save)
            return ops.forward_of_pairs(*index, x, y, *lengths, None, None, None, *self._numbers(), save)

    def _backward(self, x, y, tile, arriving, need_x, need_y):
        value, kept = self.forward(x, y, tile, save=True)
        arriving = arriving()
        x, y, *lengths = self._part(x, y, tile)
        index = tile.index(x.device)
        with below_autograd():
            if self.is_hard:
                needs = need_x, need_y
                found = ops.dtw_backward_of_pairs(*index, arriving, x, y, value, kept, *lengths, self.cost, *needs)
                return value, *found
            tensors = x, y, value, kept, *lengths, None, None, None
            found = ops.backward_of_pairs(*index, arriving, *tensors, *self._numbers(), need_x, need_y)
            return value, *found

    def _numbers(self):
        return self.bandwidth, self.gamma, self.warp_penalty, self.cost, *selection.Plan(self.kernel, 0)

    def _gathered(self, x, y, tile):
        """The series of each pair, as a Problem has them: a cost matrix of every pair takes more memory anyway."""
        x, y, *lengths = self._part(x, y, tile)
        index = [part.long() for part in tile.index(x.device)]
        lengths = (None if own is None else own[at] for own, at in zip(lengths, index, strict=True))
        return x[index[0]], y[index[1]], *lengths

    def _values_from_matrix(self, x, y, x_lengths, y_lengths):
        numbers = self.bandwidth, self.gamma, self.warp_penalty
        options = arguments.Options(x_lengths, y_lengths, None, None, None, *numbers)
        problem = Problem(x, y, self.cost, options, True, open_ends=self.open_ends)
        return hard_values_of(problem) if self.is_hard else values_of(problem, self.kernel)

    def _gradients_from_matrix(self, x, y, tile, arriving, need_x, need_y):
        with torch.enable_grad():
            x, y, *lengths = self._gathered(x, y, tile)
            x, y = x.detach().requires_grad_(need_x), y.detach().requires_grad_(need_y)
            value = self._values_from_matrix(x, y, *lengths)
            wanted = [series for series, needed in ((x, need_x), (y, need_y)) if needed]
            found = iter(torch.autograd.grad(value, wanted, arriving))
        return value.detach(), next(found) if need_x else None, next(found) if need_y else None


@functools.lru_cache(maxsize=64)
def _saved_bytes(is_cuda, pairs, *problem):
    """What the kernels keep for the gradients of a pair, one of so many."""
    return (ops.cuda_saved_size if is_cuda else ops.cpu_saved_size)(pairs, *problem) / pairs


def reduced(x, y, cost, options):
    """(x, y, cost, options, factor) in a cost of the kernels' own, of which the values are to be divided by the factor."""
    if callable(cost):
        return x, y, cost, options, 1
    reduction = costs.reduce_to_kernel_cost(cost, x, y, options)
    return reduction.x, reduction.y, reduction.name, reduction.options, reduction.factor
