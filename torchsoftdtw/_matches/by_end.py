"""The best range for every end: of all ranges of y that end there, the one that x is nearest to.

Ways through the table that meet go on together (csrc/core/ranges.h), so the start of the best range never falls from one
end to the next. Hence two things that all of this rests on. Where the best range of an end starts, a sweep may begin: it
finds the best ranges of all later ends. And a series may be swept in segments at once, each from a halo before its own
columns on: a segment is right if the best range of the last end before it starts within its halo, or behind that.
"""

import torch
from torch.nn.functional import pad

from .._internals import below_autograd
from .._kernels import ops

CPU_SPAN, CUDA_SPAN = 8192, 1024  # columns of a segment's own, where its halo is no longer


class ByEnd:
    """The least DTW of x (N, D) with a range of y (M, D) that ends with a column, in a kernel's own cost."""

    def __init__(self, x, y, warp_penalty, cost):
        self.x = x.T.contiguous().T.unsqueeze(0)  # neighbours in time next to each other, as kernels read them
        self.y = y.T.contiguous()
        self.options = warp_penalty, cost
        self.halo = 2 * len(x)
        self.span = max(CUDA_SPAN, self.halo) if x.is_cuda else max(CPU_SPAN, 4 * self.halo)

    def between(self, first, last):
        """(value, start) for the ends with columns first to last - 1 of the ranges that start at first or later: float64
        and int64, on the CPU. A range's columns are start to end, both counted; start is below first where none is."""
        count = last - first
        segments = -(-(count - self.halo) // self.span)
        if segments <= 1:
            return self._swept(first, last)
        value, start = self._in_segments(first, last, segments)
        known, again = self.halo + self.span, self.span
        while known < count:  # all columns before are right
            if start[known - 1] >= first + known - self.halo:
                known += self.span
                continue
            begin, end = max(first, start[known - 1].item()), min(known + again, count)
            own = slice(first + known - begin, None)
            value[known:end], start[known:end] = (found[own] for found in self._swept(begin, first + end))
            known, again = end, 2 * again  # where ranges are that long, the next one is likely to be, too
        return value, start

    def _swept(self, first, last):
        value, start = self._sweep(self.y[:, first:last].T.unsqueeze(0))
        return value[0], start[0] + first

    def _in_segments(self, first, last, segments):
        span, halo = self.span, self.halo
        missing = halo + segments * span - (last - first)
        parts = pad(self.y[:, first:last], (0, missing)).unfold(1, halo + span, span).permute(1, 2, 0)
        value, start = self._sweep(parts)
        start += first + span * torch.arange(segments, device="cpu").unsqueeze(1)
        return tuple(torch.cat([each[0], each[1:, halo:].reshape(-1)])[: last - first] for each in (value, start))

    def _sweep(self, parts):
        with below_autograd():
            value, start = ops.best_ranges(self.x.expand(len(parts), -1, -1), parts, *self.options)
        return value.cpu(), start.cpu().long()
