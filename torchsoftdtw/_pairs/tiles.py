"""All pairs of two sets as tiles: some series of x against some of y."""

import functools
import math
from typing import NamedTuple

import torch


class Tile(NamedTuple):
    """The pairs of x[top:bottom] and y[left:right]. is_triangle: of one set with itself, where both ranges are the same,
    those with p <= q alone."""

    top: int
    bottom: int
    left: int
    right: int
    is_triangle: bool = False

    @property
    def shape(self):
        return self.bottom - self.top, self.right - self.left

    @property
    def count(self):
        rows, columns = self.shape
        return rows * (rows + 1) // 2 if self.is_triangle else rows * columns

    def is_whole(self, rows, columns):
        """Whether these are all pairs of so many series."""
        return self.shape == (rows, columns)

    def index(self, device):
        """(x_index, y_index), (count,) int32: which of its own series the pairs have."""
        return _triangle(self.shape[0], device) if self.is_triangle else _rectangle(*self.shape, device)

    def table(self, values):
        """The values (count,) of the pairs as (rows, columns); of a triangle on both sides of the diagonal."""
        if self.is_triangle:
            values = values[_square(self.shape[0], values.device)]
        return values.view(self.shape)

    def put(self, values, out, is_half):
        """Write the values (count,) of the pairs to the (P, Q) `out`; is_half: on both sides of the diagonal."""
        table = self.table(values)
        out[self.top : self.bottom, self.left : self.right].copy_(table)
        if is_half and not self.is_triangle:
            out[self.left : self.right, self.top : self.bottom].copy_(table.T)

    def take(self, table):
        """(count,): the entries of the (P, Q) `table` that belong to the pairs."""
        block = table if self.is_whole(*table.shape) else table[self.top : self.bottom, self.left : self.right]
        if not self.is_triangle:
            return block.flatten()
        return block.take(_cells(self.shape[0], table.device))

    def sums(self, of_x, of_y):
        """What reaches the series of x (rows, ...) and of y (columns, ...) from gradients of their pairs, each (count,
        ...); of a triangle what reaches its one set, and None. In one order: the result is the same from run to run."""
        if self.is_triangle:
            both = torch.cat([of_x, of_y])[_shares(self.shape[0], of_x.device)]
            return both.unflatten(0, (self.shape[0], -1)).sum(1), None
        return of_x.unflatten(0, self.shape).sum(1), of_y.unflatten(0, self.shape).sum(0)


class Listed(NamedTuple):
    """Pairs of any series of x and of y, (count,) int32 each: what a Measure takes for values and gradients of each."""

    x_index: torch.Tensor
    y_index: torch.Tensor

    def is_whole(self, _rows, _columns):
        """The positions are those in the whole sets."""
        return True

    def index(self, _device):
        return self.x_index, self.y_index


def tile_shape(rows, columns, most, is_half):
    """(height, width) of tiles of at most so many pairs: squares, or wider or higher where one of the sets is small.

    is_half: of one set with itself, of which a tile on the diagonal has half of the pairs.
    """
    side = math.isqrt(most)
    if not is_half:
        return max(side, most // max(1, columns)), max(side, most // max(1, rows))
    return (max(1, rows),) * 2 if rows * (rows + 1) // 2 <= most else (side, side)


def tiles(rows, columns, height, width, is_half):
    """The tiles of at most `height` by `width` pairs, row by row; is_half: of one set with itself, from the diagonal on, by
    squares."""
    for top in range(0, rows, height):
        bottom = min(top + height, rows)
        for left in range(top if is_half else 0, columns, width):
            yield Tile(top, bottom, left, min(left + width, columns), is_half and left == top)


@functools.lru_cache(maxsize=16)
def _rectangle(rows, columns, device):
    x_index = torch.arange(rows, dtype=torch.int32, device=device).repeat_interleave(columns)
    return x_index, torch.arange(columns, dtype=torch.int32, device=device).repeat(rows)


@functools.lru_cache(maxsize=8)
def _triangle(rows, device):
    x_index, y_index = torch.triu_indices(rows, rows, dtype=torch.int32, device=device)
    return x_index.contiguous(), y_index.contiguous()


@functools.lru_cache(maxsize=8)
def _cells(rows, device):
    """(count,): where a triangle's pairs stand in a table of `rows` by `rows`."""
    x_index, y_index = (index.long() for index in _triangle(rows, device))
    return x_index * rows + y_index


@functools.lru_cache(maxsize=8)
def _numbers(rows, device):
    """(rows, rows): which pair of a triangle stands there, or beyond the diagonal."""
    table = torch.zeros(rows * rows, dtype=torch.int64, device=device)
    cells = _cells(rows, device)
    table[cells] = torch.arange(len(cells), device=device)
    table = table.view(rows, rows)
    return table.triu() + table.triu(1).T


@functools.lru_cache(maxsize=8)
def _square(rows, device):
    return _numbers(rows, device).flatten()


@functools.lru_cache(maxsize=8)
def _shares(rows, device):
    """(rows * (rows + 1),): of the gradients to x of all pairs and then those to y, which reach the series of each row:
    as x where it is the first of a pair, as y where it is the second."""
    numbers = _numbers(rows, device)
    as_x = numbers.triu() + (numbers + rows * (rows + 1) // 2).tril(-1)
    itself = numbers.diagonal() + rows * (rows + 1) // 2
    return torch.cat([as_x, itself.unsqueeze(1)], 1).flatten()
