"""Values of few pairs of more than eight dimensions, whose tables tiled sweeps from both ends at once where nothing is kept
(csrc/cuda/kernels/bidirectional/many_dims). The oracle and the bounds are those of test_engines."""

import numpy as np
import pytest
import torch
from cases import GPU, OF_GPU, normal
from test_bidirectional_vectors import COSTS, KERNEL, check, values
from test_few_pair_options import pairs_of

from torchsoftdtw import soft_dtw

pytestmark = OF_GPU
DIMS = [9, 16, 20]  # differences, products, and some dimensions more than a block of them


# Rows and columns that a side's first lanes and first chunk lack: none, one, an odd number, as many as there can be.
@pytest.mark.parametrize("n", [129, 191, 192, 193, 450])
@pytest.mark.parametrize("m", [256, 257, 287, 288, 450])
def test_every_way_that_sides_fit_together(n, m):
    dim = DIMS[(n + m) % 3]
    check(normal(1, n, dim, seed=n), normal(1, m, dim, seed=n + m), *((0.01, 10.0) if n + m < 600 else (1.0,)))


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("cost", COSTS)
def test_costs_penalties_and_bands(cost, dim):
    x, y = pairs_of(140, 260, 2, dim)
    for options in ({}, {"warp_penalty": 0.3}, {"bandwidth": 33, "warp_penalty": 2.0}):
        check(x, y, 1.0, cost=cost, **options)


# Vectors of several blocks of dimensions, and those that are not read by fours.
@pytest.mark.parametrize(("cost", "dim"), [("sqeuclidean", 64), ("euclidean", 65), ("huber", 65), ("cosine", 64)])
def test_many_more_dimensions(cost, dim):
    x, y = pairs_of(135, 257, 2, dim)
    check(x, y, 1.0, cost=cost, bandwidth=60)


def test_rows_of_which_a_block_holds_the_first_dimensions():
    check(normal(1, 129, 350, seed=1), normal(1, 256, 350, seed=2), 1.0, bandwidth=0)


@pytest.mark.parametrize("radius", [0, 20, 63, 200])
@pytest.mark.parametrize("sizes", [(129, 256), (300, 311), (500, 260), (150, 500)], ids=str)
def test_one_band_for_all_pairs(sizes, radius):
    """Either side sweeps most strips as a whole."""
    check(normal(1, sizes[0], 16, seed=1), normal(1, sizes[1], 16, seed=2), 0.1, bandwidth=radius)


# With more strips than blocks of two strips have a place for there are others, in which the sweep splits costs.
@pytest.mark.parametrize("options", [{}, {"bandwidth": 30}, {"warp_penalty": 0.5}], ids=str)
@pytest.mark.parametrize(("cost", "dim"), [("sqeuclidean", 20), ("euclidean", 17), ("huber", 9)])
def test_gammas_of_their_own_and_blocks_that_take_turns(cost, dim, options):
    x, y = pairs_of(140, 270, 2, dim)
    gammas = torch.tensor([0.1, 30.0], dtype=torch.float64)
    check(x, y, 0.1, cost=cost, **options)
    alone = np.concatenate([values(x[b : b + 1], y[b : b + 1], gammas[b].item(), cost=cost, **options) for b in range(2)])
    times = 60 if GPU == "cuda" else 2
    many = values(x.repeat(times, 1, 1), y.repeat(times, 1, 1), gammas.repeat(times), cost=cost, **options)
    np.testing.assert_allclose(many, np.concatenate([alone] * times), rtol=1e-6)


# Of which the general sweep takes most chunks, with costs in float64 where rounding them would count.
@pytest.mark.parametrize("cost", ["sqeuclidean", "cityblock"])
def test_costs_far_beyond_what_the_plain_sweep_holds(cost):
    x, y = 1000 * normal(2, 240, 17, seed=1), 1000 * normal(2, 270, 17, seed=9)
    check(x, y, 1e-3, 0.01, cost=cost)
    check(x, y, 1e-3, cost=cost, bandwidth=50)


@pytest.mark.parametrize("at", [0, 100, 239])
@pytest.mark.parametrize("dim", [9, 32])
def test_outliers_are_seen_from_both_ends_alike(dim, at):
    """Costs of so many gammas that they are computed in float64, from the series as the side sees them."""
    x, y = 0.01 * normal(1, 240, dim, seed=3), 0.01 * normal(1, 260, dim, seed=4)
    x[:, at] += 300.0
    check(x, y, 0.003, 0.09)
    check(y, x.repeat(1, 2, 1)[:, :270], 0.003)
    check(x, y, 0.003, bandwidth=40)


@pytest.mark.parametrize("differs", ["nothing", "first", "last"])
def test_the_last_dimensions_where_series_are_the_same(differs):
    """No products are computed of them: a strip looks for what differs in the rows and columns that its side sees."""
    x, y = (z.float() for z in (normal(1, 200, 18, seed=1), normal(1, 300, 18, seed=2)))
    x[..., 16:] = y[..., 16:] = 0.5
    if differs != "nothing":
        at = 0 if differs == "first" else -1
        x[:, at, -1], y[:, at, -2] = 2.5, -1.5
    check(x, y, 0.1)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("dim", [9, 20])
def test_a_bad_number_spoils_its_pair_alone(dim, bad):
    x, y = pairs_of(140, 257, 3, dim)
    good = values(x, y)
    for which, at in ((0, 0), (0, 139), (1, 0), (1, 256)):
        series = [x.clone(), y.clone()]
        series[which][1, at, 2] = bad
        value = values(*series)
        assert not np.isfinite(value[1])
        assert np.array_equal(value[[0, 2]], good[[0, 2]])


def test_penalties_of_pairs_of_their_own():
    x, y = pairs_of(200, 270, 3, 20)
    penalties = torch.tensor([0.0, 0.7, 1e9], dtype=torch.float64)
    alone = [values(x[b : b + 1], y[b : b + 1], warp_penalty=penalties[b].item()) for b in range(3)]
    assert np.array_equal(values(x, y, warp_penalty=penalties), np.concatenate(alone))
    check(x, y, 1.0, warp_penalty=1e4)


def test_series_that_are_views():
    x, y = normal(2, 280, 20, seed=1).float(), normal(2, 540, 20, seed=2).float()
    for view in (lambda z: z[:, ::2], lambda z: z.repeat(1, 1, 2)[:, ::2, 1:14], lambda z: z.transpose(1, 2).clone().mT):
        assert np.array_equal(values(view(x), view(y)), values(view(x).contiguous(), view(y).contiguous()))


def test_gradients_are_for_other_kernels():
    x, y = (z.to(GPU).requires_grad_() for z in pairs_of(200, 270, 2, 20))
    with pytest.raises(ValueError, match="kernel: 'tiled/bidirectional' does not take these series and options"):
        soft_dtw(x, y, 1.0, kernel=KERNEL.name)
    soft_dtw(x, y, 1.0, kernel="tiled").sum().backward()
    assert x.grad.isfinite().all() and y.grad.isfinite().all()
