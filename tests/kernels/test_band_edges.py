"""Bands of every radius around which strips, tiles and chunks begin and end, where paths follow the band's edge.

Costs are 0 on the edge, and low or 0 beyond it, so that one cell too many or too few changes the value and E. Others are
small, so that the kernels' fast sweeps take them.
"""

from functools import cache

import numpy as np
import oracle
import pytest
import torch
from cases import DEVICES, GRADIENT_TOLERANCE, VALUE_TOLERANCE, numpy64, run, run_from_cost

from torchsoftdtw import soft_dtw_from_cost

pytestmark = pytest.mark.always
LENGTH, RADII = 220, range(60, 141)


@cache
def matrices():
    """Costs (B, LENGTH, LENGTH), and the oracle's values and alignments: 0 along the first row, the upper edge of the band
    RADII[b] and the last column, and beyond that edge; 4 below it."""
    t = np.arange(LENGTH)
    costs = np.stack([np.where(t - t[:, None] >= radius, 0.0, 4.0) for radius in RADII])
    costs[:, 0] = costs[:, :, -1] = 0
    return costs, *oracle.in_bands(costs, 1.0, RADII)


@cache
def series():
    """x and y (B, LENGTH, 1): y is x so many steps later, as far as that goes; and the oracle's values and alignments."""
    phases = np.random.default_rng(0).uniform(0.2, 0.8, LENGTH + max(RADII)).cumsum()
    wave = np.float32(2 * np.sin(phases)).astype(float)
    x = np.broadcast_to(wave[max(RADII) :], (len(RADII), LENGTH))
    y = np.stack([wave[max(RADII) - radius :][:LENGTH] for radius in RADII])
    return x, y, *oracle.in_bands((x[:, :, None] - y[:, None, :]) ** 2, 1.0, RADII)


@pytest.mark.parametrize("edge", ["upper", "lower"])
def test_no_path_leaves_a_band_of_any_radius(engine, edge):
    kernel, dtype = engine
    costs, values, alignments = matrices()
    if edge == "lower":
        costs, alignments = costs.swapaxes(1, 2), alignments.swapaxes(1, 2)
    value, alignment = run_from_cost(kernel, torch.from_numpy(costs).to(dtype), bandwidth=list(RADII))
    assert_close(value, values, VALUE_TOLERANCE[dtype] * np.maximum(np.abs(values), 1))
    t = np.arange(LENGTH)
    outside = np.abs(t - t[:, None]) > np.array(RADII)[:, None, None]
    assert not alignment[outside].any()
    assert_close(alignment, alignments, 1e-4 if dtype == torch.float32 else 1e-9)  # as in test_engines


@pytest.mark.parametrize("edge", ["upper", "lower"])
def test_series_whose_paths_follow_an_edge(engine, edge):
    kernel, dtype = engine
    x, y, values, alignments = series()
    # The ring gives some of these pairs up, but not all.
    cases = (kernel, kernel._replace(name="stencil/extended_range")) if kernel.name == "stencil" else (kernel,)
    if edge == "lower":
        x, y, alignments = y, x, alignments.swapaxes(1, 2)
    moved = 2 * alignments * (x[:, :, None] - y[:, None, :])
    x, y = (torch.tensor(z, dtype=dtype)[:, :, None] for z in (x, y))
    for case in cases:
        value, *gradients = run(case, x, y, bandwidth=list(RADII))
        assert_close(value, values, VALUE_TOLERANCE[dtype] * np.maximum(np.abs(values), 1))
        for gradient, wanted in zip(gradients, (moved.sum(2), -moved.sum(1)), strict=True):
            assert_close(gradient[:, :, 0], wanted, 4 * GRADIENT_TOLERANCE[dtype] * np.abs(wanted).max())


@pytest.mark.parametrize("edge", ["upper", "lower"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_no_best_path_leaves_a_band_of_any_radius(device, dtype, edge):
    """Costs of -1 along the edge and on the way to it, and beyond it: the best path takes all of them within the band."""
    costs = torch.from_numpy(matrices()[0] - 1)
    costs = (costs if edge == "upper" else costs.transpose(1, 2)).to(device, dtype)
    value = numpy64(soft_dtw_from_cost(costs, 0, bandwidth=list(RADII)))
    assert_close(value, -np.array([float(LENGTH + radius) for radius in RADII]), 0)


def assert_close(actual, wanted, bound):
    off = np.abs(actual - wanted) > bound
    pairs = np.flatnonzero(off.reshape(len(RADII), -1).any(1))
    assert not len(pairs), f"wrong at radius {[RADII[b] for b in pairs]}, by {np.abs(actual - wanted).max():.3g}"
