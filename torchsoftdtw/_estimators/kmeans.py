"""k-means of series, for any distances and averages: where it starts, and rounds of averages and assignments."""

import math
from typing import NamedTuple

import torch


class Clusters(NamedTuple):
    centers: torch.Tensor  # (k, t, d)
    labels: torch.Tensor  # (n,) int64: the nearest centre of each series
    distances: torch.Tensor  # (n,): to it
    rounds: int  # in which they were found

    @property
    def inertia(self):
        return self.distances.sum(dtype=torch.float64).item()

    @property
    def sizes(self):
        return torch.bincount(self.labels, minlength=len(self.centers))


def seeds(series, count, distances, random):
    """(count, t, d): some of the series, by greedy k-means++ (Arthur & Vassilvitskii, 2007): each is the best of a few that
    are drawn with probabilities in proportion to the distances to the nearest seed before it.

    distances(x, y) are not squared here: those of a squared cost are the potential of k-means already.
    """

    def potential(index):
        own = distances(series, series[index]).double().clamp(min=0)  # rounding, or a callable cost, may go below
        own[index, torch.arange(len(index), device=own.device)] = 0
        return own

    chosen = [random.randint(len(series))]
    closest = potential(chosen)  # (n, 1)
    trials = 2 + int(math.log(count))
    while len(chosen) < count:
        total = closest.sum()
        if 0 < total < math.inf:
            candidates = random.choice(len(series), trials, p=(closest / total).squeeze(1).cpu().numpy())
        else:  # all series are equal to seeds, or some costs too large for their sum
            candidates = random.choice(sorted({*range(len(series))} - {*chosen}), 1)
        candidates = candidates.tolist()
        with_each = torch.minimum(closest, potential(candidates))
        best = with_each.sum(0).argmin()
        chosen.append(candidates[best])
        closest = with_each[:, best : best + 1]
    return series[chosen]


def assigned(series, centers, distances, rounds=0):
    nearest = distances(series, centers).min(1)
    return Clusters(centers, nearest.indices, nearest.values, rounds)


def filled(series, clusters):
    """(centres, labels) without an empty cluster: it gets the series that is farthest from its centre, of those whose
    clusters have others, and starts there."""
    centers, labels, sizes = clusters.centers.clone(), clusters.labels.clone(), clusters.sizes
    for empty in (sizes == 0).nonzero().flatten().tolist():
        farthest = clusters.distances.masked_fill(sizes[labels] == 1, -math.inf).argmax()
        sizes[labels[farthest]] -= 1
        sizes[empty] = 1
        labels[farthest] = empty
        centers[empty] = series[farthest]
    return centers, labels


def run(series, centers, distances, averages, max_iter, tol):
    """Clusters: Lloyd's rounds from some centres, until one lowers the inertia by no more than tol times what all have
    lowered it by. (Its own size says nothing: soft-DTW has no zero to measure it from.)

    A round that does not lower it is not taken.
    """
    first = now = assigned(series, centers, distances)
    for rounds in range(1, max_iter + 1):
        centers, labels = filled(series, now)
        trial = assigned(series, averages(series, labels, centers), distances, rounds)
        if not trial.inertia < now.inertia:
            return now._replace(rounds=rounds)
        is_little = now.inertia - trial.inertia <= tol * (first.inertia - trial.inertia)
        has_ended = is_little and bool((trial.sizes > 0).all())
        now = trial
        if has_ended:
            break
    return now
