"""All pairs of two sets as tiles: some series of x against some of y."""

import functools
from typing import NamedTuple

import torch


class Tile(NamedTuple):
    """The pairs of x[top:bottom] and y[left:right]. is_triangle: of one set with itself, p <= q alone, where both ranges are
    the same."""

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

    def index(self, device):
        """(x_index, y_index), (count,) int32: which of its own series the pairs have."""
        return _triangle(self.shape[0], device) if self.is_triangle else _rectangle(*self.shape, device)

    def put(self, values, out):
        """Write the values (count,) of the pairs to the (P, Q) `out`; those of one set with itself on both sides of the
        diagonal, so that its tiles below need not be computed."""
        block = out[self.top : self.bottom, self.left : self.right]
        if not self.is_triangle:
            block.copy_(values.view(self.shape))
            return
        x_index, y_index = self.index(values.device)
        values = values.to(out)
        block[x_index, y_index] = values
        block[y_index, x_index] = values

    def mirror(self, values, out):
        """The same below the diagonal, for a rectangle above it."""
        if not self.is_triangle:
            out[self.left : self.right, self.top : self.bottom].copy_(values.view(self.shape).T)

    def take(self, table):
        """(count,): the entries of the (P, Q) `table` that belong to the pairs."""
        block = table[self.top : self.bottom, self.left : self.right]
        if not self.is_triangle:
            return block.flatten()
        return block[self.index(table.device)]

    def dense(self, per_pair):
        """(count, ...) as (rows, columns, ...), with zeros where the tile has no pair."""
        if not self.is_triangle:
            return per_pair.unflatten(0, self.shape)
        table = per_pair.new_zeros((*self.shape, *per_pair.shape[1:]))
        table[self.index(per_pair.device)] = per_pair
        return table


class Listed(NamedTuple):
    """Pairs of any series of x and of y, (count,) int32 each: what a Measure takes for values and gradients of each pair."""

    x_index: torch.Tensor
    y_index: torch.Tensor

    top = left = 0
    bottom = right = None  # slices to the end

    def index(self, _device):
        return self.x_index, self.y_index


def tiles(rows, columns, side, is_half):
    """The tiles of at most `side` by `side` pairs, row by row; is_half: of one set with itself, on the diagonal and above."""
    for top in range(0, rows, side):
        bottom = min(top + side, rows)
        for left in range(top if is_half else 0, columns, side):
            yield Tile(top, bottom, left, min(left + side, columns), is_half and left == top)


@functools.lru_cache(maxsize=16)
def _rectangle(rows, columns, device):
    x_index = torch.arange(rows, dtype=torch.int32, device=device).repeat_interleave(columns)
    return x_index, torch.arange(columns, dtype=torch.int32, device=device).repeat(rows)


@functools.lru_cache(maxsize=8)
def _triangle(rows, device):
    x_index, y_index = torch.triu_indices(rows, rows, dtype=torch.int32, device=device)
    return x_index.contiguous(), y_index.contiguous()
