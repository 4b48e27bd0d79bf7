"""The nearest series under hard DTW with a band, on the CPU: of most pairs a lower bound is all that is computed.

A pair whose bound is above the k-th distance that its series has so far is left out, and one whose value has to be above is
given up on the way. Both are certain, rounding included, so what is found is to the bit what the values of all pairs give.
"""

import torch

from .._internals import below_autograd
from .._kernels import ops
from . import bounds
from .best import Best
from .tiles import tiles

LEAST_TIME = 3e7  # ns that all values take of one thread: below, what a sample takes is no less than what it saves
FIRST = 8  # pairs of a series, or k, of which the bounds are least: their values say of most others that they are too far
LEAST_GAIN = 1.1  # times as long as the search is what all values have to take
MOST_SAMPLED = 16, 2048  # series of either set in a sample
MOST_BOUNDS = 1 << 22  # at once
MOST_PAIRS = 1 << 12  # likewise; what they say of others is known behind them
MOST_BYTES = 256 << 20  # of a block's series


def is_worthwhile(task, k, device):
    """Whether `search` is expected to take less time than all values do: what it leaves out, a sample of pairs says."""
    rows, columns = task.shape
    if device.type != "cpu" or task.distance != "dtw" or callable(task.cost) or task.options.bandwidth < 0:
        return False
    every, _, _ = _times(task)
    if rows * columns * every < LEAST_TIME or _gain(task, max(k, FIRST) / columns) < LEAST_GAIN:
        return False
    most_rows, most_columns = MOST_SAMPLED
    at_x, at_y = _spread(rows, min(most_rows, -(-rows // 16))), _spread(columns, most_columns)
    block = Block(task, at_x, at_y, k)
    best = Best(len(at_x), k, task.dtype)
    block.begin(best)
    return _gain(task, 1 - block.known_to_be_far(best)) >= LEAST_GAIN


def _gain(task, left):
    """How many times as long as `search` all values take, if that share of the pairs is left."""
    every, bound, alone = _times(task)
    return every / (bound + left * alone)


def _times(task):
    """ns of one thread for each pair: for its value among all values, for its bound, for its value if it is left. Fitted to
    what `benchmarks/bench_nearest.py` measures: 16 pairs of one series go at once if all are wanted, else one by one."""
    n, m, dims = task.x.shape[1], task.y.shape[1], task.x.shape[2]
    cells = min(n * m, min(n, m) * (2 * task.options.bandwidth + 1 + abs(n - m)))
    every = 60 + 0.7 * (n + m) * dims + (0.09 + 0.024 * dims) * cells
    return every / (2 if task.is_half else 1), 80 + 0.25 * (n + m) * dims, (n + m) * (9.5 + 3 * dims) + 0.2 * cells


def blocks(task):
    """The blocks, as Tiles, in which this is computed."""
    rows, columns = task.shape
    width = max(1, MOST_BYTES // (max(task.x.shape[1], task.y.shape[1]) * task.x.shape[2] * task.dtype.itemsize))
    width = min(width, MOST_BOUNDS)
    return list(tiles(rows, columns, max(1, MOST_BOUNDS // min(width, columns)), width, False))


def search(task, k, blocks, kept):
    """kept[top]: (indices, distances) of the rows of the blocks() that begin there. Yields the numbers of blocks that are
    done."""
    for number, block in enumerate(blocks):
        if block.left == 0:
            best = Best(block.bottom - block.top, k, task.dtype)
        own = Block(task, torch.arange(block.top, block.bottom), torch.arange(block.left, block.right), k)
        own.begin(best)
        own.finish(best)
        kept[block.top] = best.indices, best.distances
        yield number


class Block:
    """The pairs of some series of x and of y, at the positions at_x and at_y."""

    def __init__(self, task, at_x, at_y, k):
        lengths = task.options.x_lengths, task.options.y_lengths
        of_x, of_y = (_series(*each) for each in zip((task.x, task.y), lengths, (at_x, at_y), strict=True))
        part = task.part(of_x, of_y, False)
        x, y = (series.to(task.dtype) for series in (part.x, part.y))
        self.measure, self.x, self.y, self.factor = part.measure(x, y)
        self.at_y, self.k = at_y, k
        x_side, self.boxes = bounds.sides(self.measure, self.x, self.y)
        self.bounds = bounds.lower_bounds(x_side, self.boxes, self.measure.cost)
        # What the kernels' values are divided by, and so are bounds.
        self.norm = torch.as_tensor(part.lengths() if task.length_norm else 1).expand(self.bounds.shape)
        self.unknown = torch.ones_like(self.bounds, dtype=torch.bool)
        if task.is_half:
            self.unknown &= at_x.unsqueeze(1) != at_y

    def begin(self, best):
        """Takes the first pairs of each row."""
        count = min(max(self.k, FIRST), len(self.at_y))
        least = self.bounds.masked_fill(~self.unknown, torch.inf).topk(count, largest=False)
        chosen = torch.zeros_like(self.unknown).scatter_(1, least.indices, True)
        self._take(best, *(chosen & self.is_left(best)).nonzero(as_tuple=True))

    def finish(self, best):
        """Takes all others that are left, the least bounds first."""
        row, column = self.is_left(best).nonzero(as_tuple=True)
        order = (self.bounds[row, column] / self._limits(best, row, column)).argsort()
        for some in order.split(MOST_PAIRS):
            self._take(best, row[some], column[some])

    def is_left(self, best):
        """(rows, columns): which pairs may be among the nearest, and are not known."""
        return self.unknown & ~(self.bounds > self._limits(best, slice(None), slice(None)))

    def known_to_be_far(self, best):
        """The share of the pairs that bounds leave out."""
        return 1 - (~self.unknown | self.is_left(best)).double().mean().item()

    def _limits(self, best, row, column):
        """float64: what the bounds of pairs that are among the nearest do not exceed."""
        relative, absolute = bounds.slack(self.x.dtype, self.x.shape[1], self.y.shape[1], self.x.shape[2])
        limit = (best.limit().double() * (1 + relative) + absolute).unsqueeze(1).expand(self.bounds.shape)
        limit = limit[row, column] * self.norm[row, column] * self.factor
        return limit.where(limit < torch.finfo(self.x.dtype).max / 2, torch.inf)  # there is none, or bounds may overflow

    def _take(self, best, row, column):
        limits = self._limits(best, row, column)
        near = ~(self.bounds[row, column] > limits)
        row, column = row[near], column[near]
        self.unknown[row, column] = False
        distance = self._values(row, column, limits[near]) / self.factor / self.norm[row, column]
        best.add(row, self.at_y[column], distance)

    def _values(self, row, column, limits):
        """(count,) of the kernels; infinity for some that are above their limit."""
        measure, boxes = self.measure, self.boxes
        numbers = measure.x_lengths, measure.y_lengths, measure.bandwidth, measure.warp_penalty, measure.cost
        with below_autograd():
            index = row.int(), column.int()
            return ops.dtw_within_of_pairs(*index, self.x, self.y, boxes.low, boxes.high, limits, *numbers)


def _spread(count, most):
    """Positions of at most so many series, from the first to the last."""
    return torch.linspace(0, count - 1, min(count, most), dtype=torch.float64).round().long()


def _series(series, lengths, at):
    return series[at], None if lengths is None else lengths[at]
