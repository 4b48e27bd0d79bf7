"""The nearest of some series, as distances of pairs come in, in any order."""

import torch

NONE = torch.iinfo(torch.int64).max  # the index of a neighbour that is still to come


class Best:
    """The k nearest so far of each of some series: `indices` and `distances` (rows, k), by distance, of equal distances by
    index, NaN last."""

    def __init__(self, rows, k, dtype):
        self.indices = torch.full((rows, k), NONE)
        self.distances = torch.full((rows, k), torch.nan, dtype=dtype)

    def limit(self):
        """(rows,): the k-th distance, above which none is of use; NaN where any may be."""
        return self.distances[:, -1]

    def add(self, row, index, distance):
        """Pairs that have not come before, (count,) each: of which row, with which series, at what distance."""
        wanted = ~(distance > self.limit()[row])
        rows, k = self.indices.shape
        row = torch.cat([torch.arange(rows).repeat_interleave(k), row[wanted]])
        index = torch.cat([self.indices.flatten(), index[wanted]])
        distance = torch.cat([self.distances.flatten(), distance[wanted]])
        order = index.argsort()
        for key in (distance, row):
            order = order[key[order].sort(stable=True)[1]]
        place = torch.searchsorted(row[order], torch.arange(rows)).unsqueeze(1) + torch.arange(k)
        order = order[place]
        self.indices, self.distances = index[order], distance[order]
