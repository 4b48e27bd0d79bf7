"""Bands and penalties of several dimensions in float32, whose costs come from warps beside the sweeps: tiled/few_dims,
tiled/multivariate and stencil/multivariate. The oracle and the bounds are those of test_engines."""

import numpy as np
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, normal, run
from test_few_pair_options import PENALTIES, RADII, check_options, pairs_of, per_pair

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


@pytest.mark.parametrize("cost", COSTS)
@of_kernels
def test_penalties_and_gammas_of_every_pair(kernel, dim, cost):
    x, y = pairs_of(150, 140, len(PENALTIES), dim)
    check_options(kernel, x, y, cost, per_pair(GAMMAS, len(x)), per_pair(PENALTIES, len(x), 2))


@of_kernels
def test_a_penalty_where_paths_have_to_pay_it(kernel, dim):
    """More columns than rows, by hundreds, at penalties of cells and of steps."""
    x, y = 0.1 * normal(4, 70, dim, seed=1).float(), 0.1 * normal(4, 370, dim, seed=2).float()
    check_options(kernel, x, y, gammas=0.01, penalties=torch.tensor([0.01, 30.0, 110.0, 3000.0], dtype=torch.float64))


@pytest.mark.parametrize("cost", COSTS)
@of_kernels
def test_bands_of_every_pair(kernel, dim, cost):
    x, y = pairs_of(150, 190, len(RADII), dim)
    check_options(kernel, x, y, cost, radii=torch.tensor(RADII))


@pytest.mark.parametrize("sizes", [(64, 64), (65, 80), (200, 191), (150, 300)], ids=str)
@of_kernels
def test_one_band_for_all_pairs(kernel, dim, sizes):
    x, y = pairs_of(*sizes, 2, dim)
    for radius in (0, 1, 15, 16, 40):
        check_options(kernel, x, y, gammas=0.3, radii=radius)


@pytest.mark.parametrize("cost", COSTS)
@of_kernels
def test_bands_penalties_and_lengths_together(kernel, dim, cost):
    n, m = 140, 170
    x, y = pairs_of(n, m, 8, dim)
    generator = torch.Generator().manual_seed(5)
    lengths = [torch.randint(1, z + 1, (8,), generator=generator) for z in (n, m)]
    check_options(kernel, x, y, cost, per_pair(GAMMAS, 8), per_pair(PENALTIES, 8, 3), torch.tensor(RADII), lengths)
    check_options(kernel, x, y, cost, 0.5, 0.2, 12, lengths)


@of_kernels
def test_a_path_along_the_edge_of_a_band(kernel, dim):
    """Costs of 0 there, and beyond it."""
    steps = torch.rand(270, dim, generator=torch.Generator().manual_seed(0)) * 0.6 + 0.2
    wave = 2 * steps.cumsum(0).sin()[None]
    for radius in (1, 33, 64):
        x, y = wave[:, :200], wave[:, radius : 200 + radius]
        check_options(kernel, x, y, gammas=1.0, radii=radius)
        check_options(kernel, y, x, gammas=0.1, radii=radius - 1)


@of_kernels
def test_bands_whose_values_fall_far_along_them(kernel, dim):
    """References differ by far more than float32 holds between the first and the last lane that a band is in."""
    x, y = 300 * normal(3, 200, dim, seed=1).float(), 300 * normal(3, 200, dim, seed=2).float()
    check_options(kernel, x, y, gammas=torch.tensor([1e-2, 1.0, 30.0], dtype=torch.float64), radii=20)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("cost", ["sqeuclidean", "euclidean"])
@of_kernels
def test_a_bad_number_spoils_its_pair_alone(kernel, dim, cost, bad):
    x, y = pairs_of(150, 140, 4, dim)
    clean = run(kernel, x, y, cost=cost, bandwidth=9, warp_penalty=0.2)
    x[2, 132, dim - 1] = bad
    spoiled = run(kernel, x, y, cost=cost, bandwidth=9, warp_penalty=0.2)
    for before, after in zip(clean, spoiled, strict=True):
        np.testing.assert_array_equal(before[[0, 1, 3]], after[[0, 1, 3]])
    assert not np.isfinite(spoiled[0][2])
    assert not np.isfinite(spoiled[1][2]).any() and not np.isfinite(spoiled[2][2]).any()


@pytest.mark.parametrize(("dim", "kernel"), [case for case in KERNELS if "few_dims" not in case.id])
def test_so_many_pairs_that_blocks_take_turns(kernel, dim):
    """tiled/few_dims takes no more pairs than have a place at once."""
    x, y = pairs_of(140, 130, 4, dim)
    for options in ({"warp_penalty": 0.3}, {"bandwidth": 25}):
        times = 100 if GPU == "cuda" else 3
        alone = run(kernel, x, y, **options)
        together = run(kernel, x.repeat(times, 1, 1), y.repeat(times, 1, 1), **options)
        for many, own in zip(together, alone, strict=True):
            assert np.array_equal(many, np.concatenate([own] * times))
