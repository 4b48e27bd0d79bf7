"""Where averages start, and series brought to another length."""

import torch

from ..pairwise import cdist

SERIES = 1 << 20  # numbers of a block


def mean(groups, length):
    """(G, length, D) float64: the weighted means of the series, each brought to the length."""
    total = 0
    per_series = length * groups.series.shape[2]
    for block in groups.blocks(max(1, SERIES // per_series)):
        own = block.pairs.y_index.long()
        lengths = None if groups.lengths is None else groups.lengths[own]
        resampled = with_length(groups.series[own], lengths, length).double()
        total = total + block.sums(block.weight.view(-1, 1, 1) * resampled)
    return total


def medoid(groups, length, **options):
    """(G, length, D): of each group the series with the least weighted sum of distances to all of it."""
    found = []
    for group in range(groups.count):
        own, weight = groups.members(group)
        lengths = None if groups.lengths is None else groups.lengths[own]
        sums = cdist(groups.series[own], x_lengths=lengths, **options).double() @ weight
        found.append(own[sums.argmin()])
    own = torch.stack(found)
    lengths = None if groups.lengths is None else groups.lengths[own]
    return with_length(groups.series[own], lengths, length)


def with_length(series, lengths, length):
    """Series (K, M, D) interpolated linearly to (K, length, D), from end to end of each; to one vector: its middle."""
    if lengths is None and series.shape[1] == length:
        return series
    last = series.shape[1] - 1 if lengths is None else (lengths - 1).unsqueeze(1)
    share = (
        torch.linspace(0, 1, length, dtype=torch.float64, device=series.device)
        if length > 1
        else series.new_full((1,), 0.5)
    )
    place = (share * last).expand(len(series), -1)
    left = place.long()
    right = (place.ceil()).long()
    vectors = [series.gather(1, index.unsqueeze(2).expand(-1, -1, series.shape[2])) for index in (left, right)]
    return torch.lerp(*vectors, (place - left).to(series.dtype).unsqueeze(2))
