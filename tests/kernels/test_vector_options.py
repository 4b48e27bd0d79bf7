"""Bands and penalties of several dimensions in float32, whose costs come from warps beside the sweeps: tiled/few_dims,
tiled/multivariate and stencil/multivariate. The oracle and the bounds are those of test_engines."""

import numpy as np
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, normal, numpy64, run
from test_few_pair_options import PENALTIES, RADII, per_pair
from test_short_pair_options import assert_pair

from torchsoftdtw import soft_dtw

pytestmark = OF_GPU
COSTS = ["sqeuclidean", "euclidean", "cityblock", "huber"]
GAMMAS = (4.0, 1.0, 0.1)
KERNELS = [
    pytest.param(dim, KernelCase(GPU, name), id=f"{dim}-{name}")
    for dim, names in (
        (2, ["tiled/few_dims", "tiled/multivariate"]),
        (8, ["tiled/few_dims", "tiled/multivariate"]),
        (12, ["tiled/multivariate"]),
        (20, ["tiled/multivariate", "stencil/multivariate"]),
    )
    for name in names
]
of_kernels = pytest.mark.parametrize(("dim", "kernel"), KERNELS)


def pairs_of(n, m, dim, count):
    x, y = normal(count, n, dim, seed=n).float(), normal(count, m, dim, seed=m + 1).float()
    x[1, 1::2], y[1, 1::2] = x[1, 0], y[1, 0]  # ties
    y[1, 0] = x[1, 0]
    return x, y


def check(kernel, x, y, cost="sqeuclidean", gammas=1.0, penalties=0.0, radii=None, lengths=None):
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


@pytest.mark.parametrize("cost", COSTS)
@of_kernels
def test_penalties_and_gammas_of_every_pair(kernel, dim, cost):
    x, y = pairs_of(150, 140, dim, len(PENALTIES))
    check(kernel, x, y, cost, per_pair(GAMMAS, len(x)), per_pair(PENALTIES, len(x), 2))


@of_kernels
def test_a_penalty_where_paths_have_to_pay_it(kernel, dim):
    """More columns than rows, by hundreds, at penalties of cells and of steps."""
    x, y = 0.1 * normal(4, 70, dim, seed=1).float(), 0.1 * normal(4, 370, dim, seed=2).float()
    check(kernel, x, y, gammas=0.01, penalties=torch.tensor([0.01, 30.0, 110.0, 3000.0], dtype=torch.float64))


@pytest.mark.parametrize("cost", COSTS)
@of_kernels
def test_bands_of_every_pair(kernel, dim, cost):
    x, y = pairs_of(150, 190, dim, len(RADII))
    check(kernel, x, y, cost, radii=torch.tensor(RADII))


@pytest.mark.parametrize("sizes", [(64, 64), (65, 80), (200, 191), (150, 300)], ids=str)
@of_kernels
def test_one_band_for_all_pairs(kernel, dim, sizes):
    x, y = pairs_of(*sizes, dim, 2)
    for radius in (0, 1, 15, 16, 40):
        check(kernel, x, y, gammas=0.3, radii=radius)


@pytest.mark.parametrize("cost", COSTS)
@of_kernels
def test_bands_penalties_and_lengths_together(kernel, dim, cost):
    n, m = 140, 170
    x, y = pairs_of(n, m, dim, 8)
    generator = torch.Generator().manual_seed(5)
    lengths = [torch.randint(1, z + 1, (8,), generator=generator) for z in (n, m)]
    check(kernel, x, y, cost, per_pair(GAMMAS, 8), per_pair(PENALTIES, 8, 3), torch.tensor(RADII), lengths)
    check(kernel, x, y, cost, 0.5, 0.2, 12, lengths)


@of_kernels
def test_a_path_along_the_edge_of_a_band(kernel, dim):
    """Costs of 0 there, and beyond it."""
    steps = torch.rand(270, dim, generator=torch.Generator().manual_seed(0)) * 0.6 + 0.2
    wave = 2 * steps.cumsum(0).sin()[None]
    for radius in (1, 33, 64):
        x, y = wave[:, :200], wave[:, radius : 200 + radius]
        check(kernel, x, y, gammas=1.0, radii=radius)
        check(kernel, y, x, gammas=0.1, radii=radius - 1)


@of_kernels
def test_bands_whose_values_fall_far_along_them(kernel, dim):
    """References differ by far more than float32 holds between the first and the last lane that a band is in."""
    x, y = 300 * normal(3, 200, dim, seed=1).float(), 300 * normal(3, 200, dim, seed=2).float()
    check(kernel, x, y, gammas=torch.tensor([1e-2, 1.0, 30.0], dtype=torch.float64), radii=20)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("cost", ["sqeuclidean", "euclidean"])
@of_kernels
def test_a_bad_number_spoils_its_pair_alone(kernel, dim, cost, bad):
    x, y = pairs_of(150, 140, dim, 4)
    clean = run(kernel, x, y, cost=cost, bandwidth=9, warp_penalty=0.2)
    x[2, 132, dim - 1] = bad
    spoiled = run(kernel, x, y, cost=cost, bandwidth=9, warp_penalty=0.2)
    for before, after in zip(clean, spoiled, strict=True):
        np.testing.assert_array_equal(before[[0, 1, 3]], after[[0, 1, 3]])
    assert not np.isfinite(spoiled[0][2])
    assert not np.isfinite(spoiled[1][2]).any() and not np.isfinite(spoiled[2][2]).any()


@of_kernels
def test_so_many_pairs_that_blocks_take_turns(kernel, dim):
    x, y = pairs_of(140, 130, dim, 4)
    for options in ({"warp_penalty": 0.3}, {"bandwidth": 25}):
        times = 100 if GPU == "cuda" else 3
        alone = run(kernel, x, y, **options)
        together = run(kernel, x.repeat(times, 1, 1), y.repeat(times, 1, 1), **options)
        for many, own in zip(together, alone, strict=True):
            assert np.array_equal(many, np.concatenate([own] * times))
