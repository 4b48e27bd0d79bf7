"""Values of few pairs of several dimensions, whose tables tiled sweeps from both ends at once where nothing is kept
(csrc/cuda/kernels/bidirectional/bidirectional_vectors.cu). The oracle and the bounds are those of test_engines."""

import numpy as np
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, normal, numpy64
from test_engines import Case, assert_values_alone, expected
from test_few_pair_options import pairs_of

from torchsoftdtw import soft_dtw

pytestmark = OF_GPU
KERNEL = KernelCase(GPU, "tiled/bidirectional")
COSTS = ["sqeuclidean", "euclidean", "cityblock", "cosine", "huber"]
DIMS = [2, 4, 5, 8]


def check(x, y, *gammas, **options):
    case = Case(x.float(), y.float(), gammas, options)
    for gamma in gammas:
        pairs = expected(case, gamma)
        assert_values_alone(KERNEL, torch.float32, gamma, pairs, [case.x, case.y], options)


def values(x, y, gamma=1.0, **options):
    return numpy64(soft_dtw(x.to(GPU), y.to(GPU), gamma, kernel=KERNEL.name, **options))


# Rows and columns that a side's first lanes and first chunk lack: none, one, an odd number, as many as there can be.
@pytest.mark.parametrize("n", [129, 191, 192, 193, 450])
@pytest.mark.parametrize("m", [256, 257, 287, 288, 450])
def test_every_way_that_sides_fit_together(n, m):
    dim = DIMS[(n + m) % len(DIMS)]
    check(normal(2, n, dim, seed=n), normal(2, m, dim, seed=n + m), 0.01, 1.0, 100.0)


# A unit vector has a coordinate more, of which eight are the most.
@pytest.mark.parametrize(("cost", "dim"), [(cost, dim) for cost in COSTS for dim in DIMS if (cost, dim) != ("cosine", 8)])
def test_costs_penalties_and_bands(cost, dim):
    x, y = pairs_of(300, 330, 2, dim)
    for options in ({}, {"warp_penalty": 0.3}, {"bandwidth": 41}, {"bandwidth": 33, "warp_penalty": 2.0}):
        check(x, y, 1.0, 0.05, cost=cost, **options)


@pytest.mark.parametrize("radius", [0, 1, 20, 63, 90, 200])
@pytest.mark.parametrize("sizes", [(129, 256), (300, 311), (711, 700), (500, 260), (150, 600)], ids=str)
def test_one_band_for_all_pairs(sizes, radius):
    """Either side sweeps most strips as a whole."""
    check(*pairs_of(*sizes, 2, 3), 0.1, bandwidth=radius)


@pytest.mark.parametrize(("n", "m"), [(1500, 260), (140, 1900), (1030, 1027)])
def test_the_cut_leaves_the_table_above_or_at_its_sides(n, m):
    check(normal(2, n, 6, seed=3), normal(2, m, 6, seed=4), 0.1, 10.0)


def along(n, m, seed):
    """Series of which one stands still, at the first or the last vector of the other: paths along the table's edges."""
    still = torch.zeros(1, n, 3, dtype=torch.float64)
    return still, torch.cat([still[:, :1], 4 + normal(1, m - 1, 3, seed=seed)], 1)


@pytest.mark.parametrize("n", [640, 1030])
@pytest.mark.parametrize("m", [256, 257, 286, 287, 288])
def test_paths_along_an_edge_of_tall_tables(n, m):
    x, y = along(n, m, m)
    check(x, y, 0.1, 3.0)
    check(x, y.flip(1), 0.1, 3.0)


# Of which the general sweep takes most chunks, with costs in float64 where rounding them would count.
@pytest.mark.parametrize("cost", ["sqeuclidean", "cityblock"])
@pytest.mark.parametrize("dim", [3, 8])
def test_costs_far_beyond_what_the_plain_sweep_holds(dim, cost):
    x, y = 1000 * normal(2, 460, dim, seed=1), 1000 * normal(2, 430, dim, seed=9)
    check(x, y, 1e-3, 0.01, cost=cost)
    check(x, y, 1e-3, cost=cost, bandwidth=50)


@pytest.mark.parametrize("at", [0, 200, 399])
@pytest.mark.parametrize("dim", [2, 7])
def test_outliers_are_seen_from_both_ends_alike(dim, at):
    """Costs of so many gammas that they are computed in float64, from the series as the side sees them."""
    x, y = 0.01 * normal(1, 400, dim, seed=3), 0.01 * normal(1, 420, dim, seed=4)
    x[:, at] += 300.0
    check(x, y, 0.003, 0.09)
    check(y, x, 0.003)
    check(y, x, 0.003, bandwidth=40)


def test_gammas_of_their_own_and_blocks_that_take_turns():
    x, y = pairs_of(330, 300, 3, 5)
    gammas = torch.tensor([0.1, 1.0, 30.0], dtype=torch.float64)
    alone = np.concatenate([values(x[b : b + 1], y[b : b + 1], gammas[b].item()) for b in range(3)])
    assert np.array_equal(values(x, y, gammas), alone)
    times = 120 if GPU == "cuda" else 4
    many = values(x.repeat(times, 1, 1), y.repeat(times, 1, 1), gammas.repeat(times))
    assert np.array_equal(many, np.concatenate([alone] * times))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_bad_number_spoils_its_pair_alone(bad):
    x, y = pairs_of(300, 330, 3, 4)
    good = values(x, y)
    for which, at in ((0, 0), (0, 299), (1, 0), (1, 329)):
        series = [x.clone(), y.clone()]
        series[which][1, at, 2] = bad
        value = values(*series)
        assert not np.isfinite(value[1])
        assert np.array_equal(value[[0, 2]], good[[0, 2]])


def test_series_that_are_views():
    x, y = normal(2, 600, 3, seed=1).float(), normal(2, 660, 3, seed=2).float()
    for view in (lambda z: z[:, ::2], lambda z: z.repeat(1, 1, 2)[:, ::2, 1:4], lambda z: z.transpose(1, 2).clone().mT):
        assert np.array_equal(values(view(x), view(y)), values(view(x).contiguous(), view(y).contiguous()))


def test_gradients_are_for_other_kernels():
    x, y = (z.to(GPU).requires_grad_() for z in pairs_of(300, 330, 2, 3))
    with pytest.raises(ValueError, match="kernel: 'tiled/bidirectional' does not take these series and options"):
        soft_dtw(x, y, 1.0, kernel=KERNEL.name)
    soft_dtw(x, y, 1.0, kernel="tiled").sum().backward()
    assert x.grad.isfinite().all() and y.grad.isfinite().all()
