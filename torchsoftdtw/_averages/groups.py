"""Which series are averaged together, with which weights, and sums over the series of each group."""

from typing import NamedTuple

import torch

from .._pairs.tiles import Listed

CHUNK = 32  # series whose sum is one thread's


class Block(NamedTuple):
    """Some of the pairs of an average with a series of its group."""

    pairs: Listed
    weight: torch.Tensor  # (count,) float64; those of a group sum to 1
    chunks: torch.Tensor  # (T + 1,): from where to where the pairs of each partial sum are
    of_group: torch.Tensor  # (G + 1,): and from where to where the partial sums of each group

    def sums(self, per_pair):
        """(count, ...) summed over the pairs of each group, (G, ...); in one order, so the same from run to run."""
        flat = per_pair.reshape(len(per_pair), -1)
        # Unchecked: a check would wait for the device.
        partial = torch.segment_reduce(flat, "sum", offsets=self.chunks, unsafe=True, initial=0)
        total = torch.segment_reduce(partial, "sum", offsets=self.of_group, unsafe=True, initial=0)
        return total.view(-1, *per_pair.shape[1:])


class Groups:
    """The series (K, M, D) with their lengths (K,) or None, and the pairs of G averages with their own series, group by
    group."""

    def __init__(self, series, lengths, weights, labels, count):
        """weights: (K,) float64; labels: (K,) int64 from 0 to count - 1, or None for groups of equal size, one after
        another."""
        self.series, self.lengths, self.count = series, lengths, count
        of_all, device = len(series), series.device
        if labels is None:
            order = torch.arange(of_all, device=device)
            self.labels = labels = torch.arange(count, device=device).repeat_interleave(of_all // count)
        else:
            self.labels = labels
            labels, order = labels.sort(stable=True)
        self._x_index, self._y_index = labels.int(), order.int()
        self._starts = torch.searchsorted(labels, torch.arange(count + 1, device=device))
        self._weight = weights[order]
        self._whole = self._block(0, of_all)
        self.total = self._whole.sums(self._weight)  # (G,)
        self._weight = self._weight / self.total[labels]
        self._whole = self._whole._replace(weight=self._weight)

    def blocks(self, most):
        """Blocks of at most so many pairs."""
        of_all = len(self._x_index)
        if most >= of_all:
            return [self._whole]
        return [self._block(first, min(first + most, of_all)) for first in range(0, of_all, most)]

    def members(self, group):
        """Which series belong to a group, and their weights."""
        first, last = self._starts[group : group + 2].tolist()
        return self._y_index[first:last].long(), self._weight[first:last]

    def _block(self, first, last):
        counts = self._starts.clamp(first, last).diff()
        per_group = (counts + CHUNK - 1) // CHUNK
        ends = per_group.cumsum(0)
        # As many as there can be: those beyond the last one are empty.
        chunk = torch.arange((last - first) // CHUNK + self.count, device=counts.device)
        owner = torch.searchsorted(ends, chunk, right=True).clamp(max=self.count - 1)
        before = CHUNK * (chunk - (ends - per_group)[owner])
        own = slice(first, last)
        pairs = Listed(self._x_index[own], self._y_index[own])
        return Block(pairs, self._weight[own], _offsets((counts[owner] - before).clamp(0, CHUNK)), _offsets(per_group))


def _offsets(lengths):
    """Where each part begins and, last, where all end."""
    return torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
