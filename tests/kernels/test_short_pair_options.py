"""Penalties, and the costs of one dimension, in the linear domain and in integer log2, beside pairs that neither takes."""

import numpy as np
import oracle
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, normal, numpy64, run
from test_engines import Expected, assert_value, bound_of

from torchsoftdtw import soft_dtw
from torchsoftdtw._kernels import ops
from torchsoftdtw._kernels.number_formats import of_saved

pytestmark = [OF_GPU, pytest.mark.always]
KERNEL = KernelCase(GPU, "stencil")
DTYPES = [torch.float32, torch.float64]
COSTS = ["sqeuclidean", "euclidean", "cityblock", "huber"]  # all are fast in one dimension
GAMMAS = (1.0, 0.1, 0.01)
PENALTIES = (0.0, 1e-6, 0.03, 0.7, 5.0, 40.0, 1e6)
LINEAR, GIVEN_UP, LOG2 = "linear_domain", "extended_range", "integer_log2"


def statuses(x, y, cost, gammas, penalties):
    """The number format that has taken each pair."""
    per_pair = (torch.as_tensor(z, dtype=torch.float64).expand(len(x)).contiguous().to(GPU) for z in (gammas, penalties))
    options = (None, None, None, *per_pair, -1, 1.0, 0.0, cost, "stencil", 0, True)
    return of_saved(ops.forward(x.to(GPU), y.to(GPU), *options)[1], len(x))


def assert_pair(results, x, y, cost, gamma, penalty, what, radius=None):
    """Against the oracle, by the bounds of test_engines."""
    dtype = x.dtype
    costs, *slopes = oracle.cost_and_slopes(numpy64(x), numpy64(y), cost)
    value, alignment = oracle.value_and_alignment(costs, gamma, radius, penalty)
    rounded = oracle.value_and_alignment(costs.astype(np.float32).astype(np.float64), gamma, radius, penalty)[1]
    magnitude = (abs(value) + costs.max()) / gamma
    pair = Expected(*costs.shape, costs, value, alignment, magnitude, np.abs(rounded - alignment).max())
    assert_value(results[0], pair, gamma, dtype, what)
    for actual, slope, axis in zip(results[1:], slopes, (1, 0), strict=True):
        error = np.abs(actual - (alignment[:, :, None] * slope).sum(axis)).max()
        allowed = 4 * bound_of(pair, dtype) * max(np.abs(slope).max(), 1e-6)
        assert error <= allowed, f"{what}: a gradient is off by {error:.3g}, more than {allowed:.3g}"


# Of a pair 8, 16 and 32 lanes of a warp, and 4 to 16 rows a lane.
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("sizes", [(4098, 20, 9), (40, 70, 60), (2050, 130, 3), (6, 390, 41)], ids=str)
def test_penalties_gammas_and_lengths_of_every_pair(sizes, cost, dtype):
    batch, n, m = sizes
    generator = torch.Generator().manual_seed(n)
    some, at = min(batch, 21), torch.arange(batch) % min(batch, 21)
    x, y = normal(some, n, 1, seed=1).to(dtype), normal(some, m, 1, seed=2).to(dtype)
    x[1, 1::2], y[1, 1::2] = x[1, 0], y[1, 0]  # ties, where the slope of a distance is 0
    y[1, 0] = x[1, 0]
    gammas = torch.tensor(GAMMAS, dtype=torch.float64)[torch.arange(some) % len(GAMMAS)]
    penalties = torch.tensor(PENALTIES, dtype=torch.float64)[torch.arange(some) * 2 % len(PENALTIES)]
    x_lengths, y_lengths = (torch.randint(max(1, z // 2), z + 1, (some,), generator=generator) for z in (n, m))
    for b in range(some):
        x[b, x_lengths[b] :] = y[b, y_lengths[b] :] = np.nan
    options = {"x_lengths": x_lengths[at], "y_lengths": y_lengths[at]}
    results = run(KERNEL, x[at], y[at], gammas[at].to(GPU), cost=cost, warp_penalty=penalties[at].to(GPU), **options)
    for b in range(some):
        rows, columns = int(x_lengths[b]), int(y_lengths[b])
        gamma, penalty = gammas[b].item(), penalties[b].item()
        what = f"pair {b}, gamma {gamma:g}, penalty {penalty:g}, {rows} x {columns}"
        # Beside others in its warp a pair may have weights of another kind, which are rounded otherwise.
        for place in {b, np.flatnonzero(at.numpy() == b)[-1]}:
            value, dx, dy = (result[place] for result in results)
            assert_pair((value, dx[:rows], dy[:columns]), x[b, :rows], y[b, :columns], cost, gamma, penalty, what)
            assert np.all(dx[rows:] == 0) and np.all(dy[columns:] == 0), what


@pytest.mark.parametrize("cost", COSTS)
def test_gradients_in_windows(cost):
    """Of so many cells that backward goes where E counts; all pairs but some have a single one."""
    batch, some, n, m = 1024, 6, 512, 512
    x, y = normal(some, n, 1, seed=3).float(), (normal(some, m, 1, seed=4).cumsum(1) / 5).float()
    gammas, penalties = torch.tensor([1.0, 0.1, 0.01] * 2).double(), torch.tensor([0.3, 0.7, 30.0, 0.0, 1e-3, 0.2]).double()
    more = {"x": x, "y": y, "gamma": gammas, "warp_penalty": penalties}
    given = {key: torch.cat([z, torch.ones(batch - some, *z.shape[1:], dtype=z.dtype)]) for key, z in more.items()}
    lengths = {f"{z}_lengths": torch.tensor([size] * some + [1] * (batch - some)) for z, size in (("x", n), ("y", m))}
    taken = statuses(x, y, cost, gammas, penalties)
    assert taken[0] == LINEAR and taken[2] == LOG2
    x_of_all, y_of_all = given.pop("x"), given.pop("y")
    results = run(KERNEL, x_of_all, y_of_all, cost=cost, **{key: z.to(GPU) for key, z in given.items()}, **lengths)
    for b in range(some):
        gamma, penalty = gammas[b].item(), penalties[b].item()
        assert_pair([result[b] for result in results], x[b], y[b], cost, gamma, penalty, f"pair {b}, by {taken[b]}")


@pytest.mark.parametrize("cost", COSTS)
def test_engines_take_penalties_within_their_ranges(cost):
    x, y = normal(len(PENALTIES), 60, 1, seed=1).float(), normal(len(PENALTIES), 60, 1, seed=2).float()
    penalties = torch.tensor(PENALTIES)
    assert statuses(x, y, cost, 1.0, penalties) == [LINEAR] * 6 + [GIVEN_UP]
    assert statuses(x, y, cost, 0.01, penalties)[-3:] == [LOG2, LOG2, GIVEN_UP]
    assert statuses(x.double(), y.double(), cost, 1.0, penalties) == [LINEAR] * 6 + [GIVEN_UP]


def test_a_penalty_leaves_more_of_the_range_to_costs():
    """Since there are fewer paths that count, of which the linear domain need not take out as many."""
    x, y = 1.15 * normal(6, 500, 1, seed=1).float(), 1.15 * normal(6, 500, 1, seed=2).float()
    assert statuses(x, y, "sqeuclidean", 1.0, 0.5) == [LINEAR] * 6


@pytest.mark.parametrize("cost", ["euclidean", "cityblock"])
def test_a_distance_has_the_slope_of_numbers_that_hardly_differ(cost):
    """Its sign, which no rounding may lose: of numbers far from 0, whose last places differ."""
    x = (1000 + torch.arange(8) / 16384).view(1, -1, 1)
    y = x + torch.tensor([1, -1, 0, 1, 1, -1, -1, 0]).view(1, -1, 1) / 16384
    for gamma, taken in ((1.0, LINEAR), (1e-4, LOG2)):
        assert statuses(x, y, cost, gamma, 0.1) == [taken]
        value, dx, dy = run(KERNEL, x, y, gamma, cost=cost, warp_penalty=0.1)
        assert_pair((value[0], dx[0], dy[0]), x[0], y[0], cost, gamma, 0.1, f"gamma {gamma:g}")


def test_rows_of_a_lane_that_penalties_put_far_apart():
    """So that what integer log2 keeps of the row above them is farther away still, and is all that counts there."""
    gamma, penalty, chosen = 0.01, 30.0, [16, 28, 58]  # of walks, those in which it is
    x, y = (normal(60, size, 1, seed=seed).cumsum(1) for size, seed in ((391, 5), (409, 6)))
    x, y = (((z - z.mean(1, keepdim=True)) / z.std(1, keepdim=True))[chosen].float() for z in (x, y))
    assert statuses(x, y, "huber", gamma, penalty) == [LOG2] * len(chosen)
    results = run(KERNEL, x, y, gamma, cost="huber", warp_penalty=penalty)
    for b in range(len(chosen)):
        assert_pair([result[b] for result in results], x[b], y[b], "huber", gamma, penalty, f"pair {b}")


@pytest.mark.parametrize("cost", COSTS)
def test_one_penalty_is_the_same_as_one_of_every_pair(cost):
    x, y = normal(70, 50, 1, seed=1).float(), normal(70, 60, 1, seed=2).float()
    for penalty in (0.0, 0.2):
        one = run(KERNEL, x, y, 0.5, cost=cost, warp_penalty=penalty)
        each = run(KERNEL, x, y, 0.5, cost=cost, warp_penalty=torch.full((70,), penalty, dtype=torch.float64, device=GPU))
        for actual, expected in zip(each, one, strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=3e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e7])
@pytest.mark.parametrize("cost", ["cityblock", "huber"])
def test_a_bad_number_spoils_its_pair_alone(cost, bad):
    x, y = normal(1500, 30, 1, seed=1).float(), normal(1500, 30, 1, seed=2).float()
    clean = run(KERNEL, x, y, 1.0, cost=cost, warp_penalty=0.1)
    x[1200, 10] = bad
    spoiled = run(KERNEL, x, y, 1.0, cost=cost, warp_penalty=0.1)
    others = np.arange(len(x)) != 1200
    for before, after in zip(clean, spoiled, strict=True):
        np.testing.assert_array_equal(before[others], after[others])
    value, dx, dy = (result[1200] for result in spoiled)
    if np.isfinite(bad):
        assert_pair((value, dx, dy), x[1200], y[1200], cost, 1.0, 0.1, "a large number")
    else:
        assert not np.isfinite(value)


def test_gradients_of_gamma_and_penalty():
    """(6), which needs what flows through the alignment, whichever engine has the values."""
    x, y = normal(40, 30, 1, seed=1), normal(40, 28, 1, seed=2)
    gammas, penalties = torch.full((40,), 0.8, dtype=torch.float64), torch.full((40,), 0.3, dtype=torch.float64)
    for cost in COSTS:
        g, p = (z.to(GPU).requires_grad_() for z in (gammas, penalties))
        value = soft_dtw(x.float().to(GPU), y.float().to(GPU), g, cost=cost, warp_penalty=p, kernel="stencil")
        found = torch.autograd.grad(value.sum(), (g, p))
        step = 1e-5
        for i, actual in enumerate(found):
            sides = []
            for sign in (1, -1):
                moved = [z.clone() for z in (gammas, penalties)]
                moved[i] += sign * step
                sides.append(soft_dtw(x.float().double(), y.float().double(), moved[0], cost=cost, warp_penalty=moved[1]))
            np.testing.assert_allclose(numpy64(actual), numpy64(sides[0] - sides[1]) / (2 * step), rtol=2e-4, atol=1e-4)
