"""The kinds of data that every benchmark is run on: x and y of a pair are independent draws of one kind.

Everything is drawn on the CPU from a fixed seed, so it is the same on every device. All kinds but noise are z-normalised:
each dimension of a series has mean 0 and variance 1 over time (a constant one is 0).

    noise      unit normal
    walks      sums of unit normal steps
    sines      a random phase and a random frequency of 1 to 8 waves a series, with 5 % noise
    steps      8 jumps at random places to unit normal levels, with 5 % noise
    smoothed   means of noise over windows of 21
    real       series of real_series.npz; x and y of a pair are of one data set. `real:NAME` takes that set alone.
"""

import functools
import json
import math
import pathlib
from typing import NamedTuple

import numpy as np
import torch

REAL_SERIES = pathlib.Path(__file__).parent / "real_series.npz"  # of write_real_series.py
REAL_LABELS = REAL_SERIES.with_name("real_labels.npz")
SYNTHETIC = ("noise", "walks", "sines", "steps", "smoothed")
KINDS = (*SYNTHETIC, "real")
GAMMAS = (1.0, 0.1, 0.01)

WAVES = (1, 8)
JUMPS = 8
NOISE = 0.05  # of unit amplitude
WINDOW = 21
MOST_STRETCHED = 4  # times its own length, a real series


def pairs(kind, batch, length, dim=1, dtype=torch.float32, device="cpu", seed=0):
    """x and y (batch, length, dim) of a kind. ValueError for one that is unknown."""
    generator = torch.Generator().manual_seed(seed)
    name, _, data_set = kind.partition(":")
    if name == "real":
        x, y = _real_pairs(data_set, batch, length, dim, generator)
    elif kind in SYNTHETIC:
        x, y = (_SYNTHETIC[kind](batch, length, dim, generator) for _ in range(2))
    else:
        raise ValueError(f"kind: expected one of {', '.join(KINDS)} or real:NAME, got {kind!r}")
    return x.to(device, dtype), y.to(device, dtype)


def z_normalised(series):
    """(batch, length, dim) with mean 0 and variance 1 along the length; 0 where it is constant but for rounding."""
    centred = series - series.mean(1, keepdim=True)
    deviation = centred.square().mean(1, keepdim=True).sqrt()
    constant = deviation <= 1e-9 * series.abs().amax(1, keepdim=True)
    return torch.where(constant, 0.0, centred / deviation)


def _normal(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _uniform(generator, *shape):
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


def _noise(batch, length, dim, generator):
    return torch.randn(batch, length, dim, generator=generator)  # in float32, as in the records of earlier versions


def _walks(batch, length, dim, generator):
    return z_normalised(_normal(generator, batch, length, dim).cumsum(1))


def _sines(batch, length, dim, generator):
    first, last = WAVES
    waves = first + (last - first) * _uniform(generator, batch, 1, dim)
    phase = _uniform(generator, batch, 1, dim)
    time = torch.arange(length, dtype=torch.float64)[:, None] / length
    sines = (2 * math.pi * (waves * time + phase)).sin_()
    return z_normalised(sines + NOISE * _normal(generator, batch, length, dim))


def _steps(batch, length, dim, generator):
    places = (length * _uniform(generator, batch, JUMPS, dim)).long()
    jumped = torch.zeros(batch, length, dim, dtype=torch.long).scatter_add_(1, places, torch.ones_like(places)).cumsum_(1)
    levels = _normal(generator, batch, JUMPS + 1, dim).gather(1, jumped)
    return z_normalised(levels + NOISE * _normal(generator, batch, length, dim))


def _smoothed(batch, length, dim, generator):
    sums = torch.nn.functional.pad(_normal(generator, batch, length + WINDOW - 1, dim).cumsum_(1), (0, 0, 1, 0))
    return z_normalised(sums[:, WINDOW:] - sums[:, :-WINDOW])


_SYNTHETIC = dict(zip(SYNTHETIC, (_noise, _walks, _sines, _steps, _smoothed), strict=True))


@functools.cache
def _file():
    with np.load(REAL_SERIES) as arrays:
        return {name: arrays[name] for name in arrays.files}


def real_sources():
    """What the file says of its data sets: for each name, where the series come from."""
    return json.loads(str(_file()["sources"]))


def real_sets():
    """The data sets of the file: for each name its series (P, L, D) in float32, as they were recorded."""
    return {name: torch.from_numpy(_file()[name]) for name in real_sources()}


class Split(NamedTuple):
    """A real data set in its own split; series (P, L, D) are float32 and z-normalised, classes int64."""

    train: torch.Tensor
    train_classes: torch.Tensor
    test: torch.Tensor
    test_classes: torch.Tensor


@functools.cache
def real_splits():
    """The data sets whose series are for training or for tests, and have classes: for each name a Split."""
    with np.load(REAL_LABELS) as arrays:
        classes = {name: torch.from_numpy(arrays[name]).long() for name in arrays.files if "/" not in name}
        counts = {name: int(arrays[f"{name}/training"]) for name in classes}
    series = {name: z_normalised(real_sets()[name].double()).float() for name in classes}
    return {
        name: Split(series[name][:count], classes[name][:count], series[name][count:], classes[name][count:])
        for name, count in counts.items()
    }


def _real_pairs(data_set, batch, length, dim, generator):
    """Of one data set, or of one drawn for each pair: in one dimension of the sets that have one, otherwise of those that
    have several."""
    sets = real_sets()
    if data_set and data_set not in sets:
        raise ValueError(f"kind: expected real or real: and one of {', '.join(sets)}, got {data_set!r}")
    names = [data_set] if data_set else [name for name, series in sets.items() if (series.shape[2] > 1) == (dim > 1)]
    drawn = torch.randint(len(names), (batch,), generator=generator)
    x, y = (torch.empty(batch, length, dim, dtype=torch.float64) for _ in range(2))
    for number, name in enumerate(names):
        here = (drawn == number).nonzero()[:, 0]
        for series in (x, y):
            series[here] = _real(sets[name], len(here), length, dim, generator)
    return x, y


def _real(series, count, length, dim, generator):
    """`count` draws (count, length, dim) from a data set (P, L, D).

    A series is stretched or shrunk by linear interpolation, to at most MOST_STRETCHED times L: of a longer one, as many
    series as it takes follow one another. Beyond D dimensions come those of further series.
    """
    population, own, own_dim = series.shape
    parts = -(-length // (MOST_STRETCHED * own))
    part = -(-length // parts)
    draws = -(-dim // own_dim)

    place = torch.linspace(0, own - 1, part, dtype=torch.float64)
    before = place.long().clamp(max=max(own - 2, 0))
    weight = (place - before)[:, None]
    chosen = torch.randint(population, (count, draws, parts), generator=generator)
    pieces = [
        torch.lerp(drawn[..., before, :], drawn[..., (before + 1).clamp(max=own - 1), :], weight)
        for drawn in (series[chosen[:, k]].double() for k in range(draws))
    ]
    joined = torch.cat([piece.flatten(1, 2)[:, :length] for piece in pieces], 2)[:, :, :dim]
    return z_normalised(joined)


def squared_distances(x, y):
    """The matrices (B, N, M) of costs between series, ready-made."""
    return torch.cdist(x.double(), y.double()).square().to(x)
