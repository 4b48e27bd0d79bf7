"""Penalties, costs and bands of few pairs of one dimension, whose strips have several warps: tiled/warp_specialised and
tiled/bidirectional. The oracle and the bounds are those of test_engines."""

import functools

import numpy as np
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, normal, numpy64, run
from test_short_pair_options import assert_pair

from torchsoftdtw import soft_dtw

pytestmark = OF_GPU
KERNEL = KernelCase(GPU, "tiled")
COSTS = ["sqeuclidean", "euclidean", "cityblock", "huber"]
GAMMAS = (1.0, 0.1, 0.01)
PENALTIES = (0.0, 1e-6, 0.03, 0.7, 40.0, 1e4, 1e9)  # the last ones are more than a cell may cost
SIZES = [(130, 256), (420, 300), (300, 200), (70, 400), (700, 150)]  # both kernels, one block and several


def pairs_of(n, m, count, dim=1):
    x, y = normal(count, n, dim, seed=n).float(), normal(count, m, dim, seed=m + 1).float()
    x[1, 1::2], y[1, 1::2] = x[1, 0], y[1, 0]  # ties, where the slope of a distance is 0
    y[1, 0] = x[1, 0]
    return x, y


def per_pair(values, count, step=1):
    return torch.tensor(values, dtype=torch.float64)[torch.arange(count) * step % len(values)]


def check_options(kernel, x, y, cost="sqeuclidean", gammas=1.0, penalties=0.0, radii=None, lengths=None):
    """Pair by pair, with gradients, and alone in a call that keeps nothing."""
    options = {"cost": cost, "warp_penalty": penalties}
    if radii is not None:
        options["bandwidth"] = radii
    x, y = x.clone(), y.clone()
    if lengths is not None:
        options["x_lengths"], options["y_lengths"] = lengths
        for b, (rows, columns) in enumerate(zip(*lengths, strict=True)):
            x[b, rows:] = y[b, columns:] = np.nan
    value, dx, dy = run(kernel, x, y, gammas, **options)
    alone = numpy64(soft_dtw(x.to(GPU), y.to(GPU), gammas, kernel=kernel.name, **options))
    np.testing.assert_allclose(alone, value, rtol=1e-5, atol=1e-6)
    for b in range(len(x)):
        rows, columns = (x.shape[1], y.shape[1]) if lengths is None else (int(z[b]) for z in lengths)
        gamma, penalty, radius = (z if z is None or np.ndim(z) == 0 else z[b].item() for z in (gammas, penalties, radii))
        what = f"pair {b}, gamma {gamma:g}, penalty {penalty:g}, radius {radius}, {rows} x {columns}"
        own = value[b], dx[b, :rows], dy[b, :columns]
        assert_pair(own, x[b, :rows], y[b, :columns], cost, gamma, penalty, what, radius)
        assert np.all(dx[b, rows:] == 0) and np.all(dy[b, columns:] == 0), what


check = functools.partial(check_options, KERNEL)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_costs_with_penalties_and_gammas_of_every_pair(sizes, cost):
    x, y = pairs_of(*sizes, len(PENALTIES))
    check(x, y, cost, per_pair(GAMMAS, len(x)), per_pair(PENALTIES, len(x), 2))


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("penalty", [0.0, 0.4])
def test_one_penalty_and_one_gamma_for_all_pairs(cost, penalty):
    x, y = pairs_of(200, 330, 3)
    check(x, y, cost, 0.1, penalty)


@pytest.mark.parametrize("n", [129, 450])
def test_a_penalty_where_paths_have_to_pay_it(n):
    """More columns than rows, by hundreds, at penalties of cells and of steps."""
    x, y = 0.1 * normal(4, n, 1, seed=n).float(), 0.1 * normal(4, n + 300, 1, seed=2).float()
    check(x, y, gammas=0.01, penalties=torch.tensor([0.01, 30.0, 110.0, 3000.0], dtype=torch.float64))


RADII = [0, 1, 7, 31, 32, 64, 65, 150]


@pytest.mark.parametrize("cost", ["sqeuclidean", "huber"])
@pytest.mark.parametrize("gamma", [1.0, 0.01])
@pytest.mark.parametrize("sizes", [(330, 330), (257, 300), (390, 290), (64, 64)], ids=str)
def test_bands_of_every_pair(sizes, gamma, cost):
    x, y = pairs_of(*sizes, len(RADII))
    check(x, y, cost, gamma, radii=torch.tensor(RADII))


@pytest.mark.parametrize("cost", ["sqeuclidean", "cityblock"])
@pytest.mark.parametrize("radius", [0, 1, 20, 63, 90, 200])
@pytest.mark.parametrize("sizes", [(129, 256), (300, 311), (711, 700), (500, 260), (150, 600)], ids=str)
def test_one_band_for_all_pairs(sizes, radius, cost):
    """From both ends: either side sweeps most strips as a whole, and what is kept has room for the band alone."""
    x, y = pairs_of(*sizes, 2)
    check(x, y, cost, 0.1, radii=radius)


@pytest.mark.parametrize("cost", COSTS)
def test_one_band_with_a_penalty_and_a_gamma_for_every_pair(cost):
    x, y = pairs_of(400, 420, 7)
    check(x, y, cost, per_pair(GAMMAS, 7), per_pair(PENALTIES, 7, 3), 30)


def test_a_path_along_the_edge_of_one_band():
    """Costs of 0 there, and beyond it; so also where the sides meet."""
    steps = torch.rand(700, generator=torch.Generator().manual_seed(0)) * 0.6 + 0.2
    wave = 2 * steps.cumsum(0).sin()
    for radius in (33, 64, 90):
        x, y = wave[:600].view(1, -1, 1), wave[radius : 600 + radius].view(1, -1, 1)
        check(x, y, gammas=1.0, radii=radius)
        check(y, x, gammas=0.01, radii=radius - 1)


@pytest.mark.parametrize("cost", COSTS)
def test_bands_penalties_and_lengths_together(cost):
    n, m = 280, 310
    x, y = pairs_of(n, m, 8)
    generator = torch.Generator().manual_seed(5)
    lengths = [torch.randint(z // 2, z + 1, (8,), generator=generator) for z in (n, m)]
    check(x, y, cost, per_pair(GAMMAS, 8), per_pair(PENALTIES, 8, 3), torch.tensor(RADII), lengths)
    check(x, y, cost, 0.1, 0.2, 12, lengths)


def test_bands_whose_values_fall_far_along_them():
    """References differ by far more than float32 holds between the first and the last lane that a band is in."""
    x, y = 300 * normal(3, 400, 1, seed=1).float(), 300 * normal(3, 400, 1, seed=2).float()
    check(x, y, gammas=torch.tensor([1e-3, 1e-2, 1.0], dtype=torch.float64), radii=20)


def test_so_many_pairs_that_blocks_take_turns():
    x, y = pairs_of(330, 130, 4)
    for options in ({"warp_penalty": 0.3}, {"cost": "cityblock"}, {"bandwidth": 25}):
        alone = run(KERNEL, x, y, **options)
        together = run(KERNEL, x.repeat(80, 1, 1), y.repeat(80, 1, 1), **options)
        for many, own in zip(together, alone, strict=True):
            assert np.array_equal(many, np.concatenate([own] * 80))
        pairs = [z.repeat(80, 1, 1).to(GPU) for z in (x, y)]
        many = numpy64(soft_dtw(*pairs, 1.0, kernel="tiled", **options))
        np.testing.assert_allclose(many, np.concatenate([alone[0]] * 80), rtol=1e-5)
