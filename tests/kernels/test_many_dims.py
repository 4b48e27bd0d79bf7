"""Series of many dimensions in float32, whose costs and gradients may come from matrix products.

|x|^2 + |y|^2 - 2 x.y cancels where x is near y, and a product of E and y where x is near the y that it is matched with, so
the cases are such series, and sizes at which no tile of a product is full. The bounds are those of test_accuracy.
"""

from functools import cache

import numpy as np
import oracle
import pytest
import torch
from cases import normal, numpy64, run

from torchsoftdtw import soft_dtw, soft_dtw_from_cost
from torchsoftdtw._kernels import ops, selection

DIMS = [2, 3, 8, 11, 16, 17, 64, 100, 300]
OPTIONS = {
    "plain": {},
    "lengths": {"x_lengths": [71, 1, 64], "y_lengths": [5, 90, 37]},
    "band": {"bandwidth": 6},
    "bands": {"bandwidth": [0, 3, 80]},
    "penalty": {"warp_penalty": 0.7},
}


def noise(dim, n=71, m=90, batch=3):
    return normal(batch, n, dim, seed=dim), normal(batch, m, dim, seed=dim + 1)


def walk(*shape, seed):
    return 0.1 * normal(*shape, seed=seed).cumsum(1)


def with_outlier(series, height):
    series = series.clone()
    series[:, 40] *= height
    return series


CASES = {
    "identical": lambda d: (normal(1, 90, d, seed=1), normal(1, 90, d, seed=1)),
    "nearly_identical": lambda d: (normal(1, 90, d, seed=1), normal(1, 90, d, seed=1) + 1e-3 * normal(1, 90, d, seed=2)),
    "constant": lambda d: (torch.full((1, 70, d), 0.3).double(), torch.full((1, 80, d), 0.3).double()),
    "smooth": lambda d: (walk(1, 130, d, seed=1), walk(1, 120, d, seed=1)),
    "offset": lambda d: (normal(1, 90, d, seed=1) + 1e3, normal(1, 80, d, seed=2) + 1e3),
    "apart": lambda d: (normal(1, 70, d, seed=1) + 100, normal(1, 80, d, seed=2) - 100),
    "outlier_in_x": lambda d: (with_outlier(normal(1, 90, d, seed=1), 1e4), normal(1, 80, d, seed=2)),
    "outlier_in_the_middle_of_a_strip": lambda d: (
        torch.cat([normal(1, 32, d, seed=1), 1e4 * normal(1, 1, d, seed=3), normal(1, 50, d, seed=4)], 1),
        normal(1, 80, d, seed=2),
    ),
    "outlier_in_y": lambda d: (normal(1, 90, d, seed=1), with_outlier(normal(1, 80, d, seed=2), 1e4)),
    "tiny": lambda d: (1e-3 * normal(1, 90, d, seed=1), 1e-3 * normal(1, 80, d, seed=2)),
    "one_row": lambda d: (normal(1, 1, d, seed=1), normal(1, 200, d, seed=2)),
    "one_column": lambda d: (normal(1, 200, d, seed=1), normal(1, 1, d, seed=2)),
}


def expected_of(x, y, gamma, cost="sqeuclidean", **options):
    """Values and gradients of float32 series, and per pair what a gradient may be off by."""
    x, y = numpy64(x), numpy64(y)
    lengths = [options.get(key) for key in ("x_lengths", "y_lengths")]
    bandwidth, penalty = options.get("bandwidth"), options.get("warp_penalty", 0.0)
    bounds = []
    for b in range(len(x)):
        n, m = (len(z[b]) if known is None else known[b] for z, known in zip((x, y), lengths, strict=True))
        costs, slopes, _ = oracle.cost_and_slopes(x[b, :n], y[b, :m], cost)
        band = bandwidth[b] if isinstance(bandwidth, list) else bandwidth
        exact, rounded = (
            oracle.value_and_alignment(table, gamma, band, penalty)[1]
            for table in (costs, costs.astype(np.float32).astype(np.float64))
        )
        # A row's errors of E add up over the few cells where E is not near 0.
        bounds.append(4 * (1e-4 + 20 * np.abs(rounded - exact).max()) * max(np.abs(slopes).max(), 1e-6))
    return *oracle.soft_dtw(x, y, gamma, cost, **options), np.array(bounds)


def assert_close(actual, expected, gamma):
    value, *gradients, bounds = expected
    assert np.all(np.abs(actual[0] - value) <= 1e-5 * np.maximum(np.abs(value), gamma)), (actual[0], value)
    for gradient, wanted in zip(actual[1:], gradients, strict=True):
        error = np.abs(gradient - wanted).max(axis=(1, 2))
        assert np.all(error <= bounds), (error, bounds)


@cache
def expected_noise(dim, options):
    x, y = (z.float() for z in noise(dim))
    return x, y, expected_of(x, y, 1.0, **OPTIONS[options])


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dim", DIMS)
def test_value_and_gradients_of_noise(template, dim, options):
    x, y, expected = expected_noise(dim, options)
    for series in (x, y):
        for b, length in enumerate(OPTIONS[options].get("x_lengths" if series is x else "y_lengths", [])):
            series[b, length:] = torch.nan
    actual = run(template, x, y, 1.0, **OPTIONS[options])
    assert_close(actual, expected, 1.0)
    for gradient, key in zip(actual[1:], ("x_lengths", "y_lengths"), strict=True):
        for b, length in enumerate(OPTIONS[options].get(key, [])):
            assert np.all(gradient[b, length:] == 0)


@pytest.mark.parametrize("differs", ["nothing", "x", "y", "both", "middle_of_x", "end_of_y"])
@pytest.mark.parametrize("dim", [20, 70, 140])
def test_blocks_of_dimensions_in_which_series_are_the_same(template, dim, differs):
    """No products are computed of these; mostly they flag zero vectors of cosine costs."""
    x, y = (z.float() for z in noise(dim, 150, 130, 2))
    x[..., 16 * (dim // 17) :] = y[..., 16 * (dim // 17) :] = 0.5
    if differs in ("x", "both"):
        x[0, 100, -1], x[1, ::7, -2] = 1.5, -0.5
    if differs in ("y", "both"):
        y[0, 90, -1], y[1, ::5, -3] = 0.3, 2.5
    if differs == "middle_of_x":  # the vector that both are moved by
        x[:, 32, -1] = 1.5
    if differs == "end_of_y":
        y[:, -1, -1] = 0.0
    assert_close(run(template, x, y, 10.0), expected_of(x, y, 10.0), 10.0)


@cache
def expected_case(name, dim, gamma):
    x, y = (z.float() for z in CASES[name](dim))
    return x, y, expected_of(x, y, gamma)


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("dim", [3, 40])
@pytest.mark.parametrize("name", CASES)
def test_awkward_series(template, name, dim, gamma):
    x, y, expected = expected_case(name, dim, gamma)
    assert_close(run(template, x, y, gamma), expected, gamma)


# Backward looks for E near the diagonal of pairs of several strips, and where else it may be.
def long_pair(path, dim):
    x = normal(1, 330, dim, seed=dim).float()
    if path == "diagonal":
        return x, normal(1, 310, dim, seed=dim + 1).float()
    third = x[:, ::3]
    if path == "middle":  # of a strip, where E goes on for long after the last that comes from the strip below
        return x, torch.cat([third[:, :55], third[:, 55:56].expand(-1, 200, -1), third[:, 56:]], 1)
    stays = {"top": x[:, :1], "bottom": x[:, -1:]}[path].expand(-1, 200, -1)
    return x, torch.cat([stays, third] if path == "top" else [third, stays], 1)


# By the CPU's kernel in float64, since the oracle takes seconds for a table of this size.
@cache
def expected_long_pair(path, dim, gamma):
    x, y = long_pair(path, dim)
    differences = x.double()[:, :, None] - y.double()[:, None]
    costs = differences.square().sum(-1)
    exact, rounded = (
        torch.autograd.grad(soft_dtw_from_cost(table, gamma).sum(), table)[0]
        for table in (costs.requires_grad_(), costs.detach().float().double().requires_grad_())
    )
    bound = 4 * (1e-4 + 20 * (rounded - exact).abs().max()) * 2 * differences.abs().max()
    value = soft_dtw_from_cost(costs.detach(), gamma)
    slopes = 2 * exact[..., None] * differences
    return x, y, (*map(numpy64, (value, slopes.sum(2), -slopes.sum(1))), numpy64(bound))


@pytest.mark.parametrize("gamma", [1.0, 300.0])
@pytest.mark.parametrize("dim", [3, 40])
@pytest.mark.parametrize("path", ["diagonal", "top", "middle", "bottom"])
def test_paths_of_long_pairs(template, path, dim, gamma):
    x, y, expected = expected_long_pair(path, dim, gamma)
    assert_close(run(template, x, y, gamma), expected, gamma)


@pytest.mark.parametrize("dim", [2, 16, 40])
def test_costs_near_zero_are_as_exact_as_differences(kernel, dim):
    x = 100 * normal(50, 1, dim, seed=1, dtype=torch.float32)
    for distance in (1e-1, 1e-3):
        y = x + distance * normal(50, 1, dim, seed=2, dtype=torch.float32)
        expected = (x.double() - y.double()).square().sum((1, 2))
        value = soft_dtw(x.to(kernel.device), y.to(kernel.device), 1e-12, kernel=kernel.name)
        torch.testing.assert_close(value.cpu().double(), expected, rtol=2e-6, atol=0)


@pytest.mark.parametrize("dim", [5, 64])
@pytest.mark.parametrize("wanted", ["x", "y"])
def test_one_series_gradient_alone(template, wanted, dim):
    x, y = (z.float().to(template.device) for z in noise(dim, 150, 140))
    both = run(template, x, y)
    leaf = (x if wanted == "x" else y).clone().requires_grad_()
    value = soft_dtw(*((leaf, y) if wanted == "x" else (x, leaf)), gamma=1.0, kernel=template.name)
    (gradient,) = torch.autograd.grad(value.sum(), leaf)
    np.testing.assert_array_equal(numpy64(gradient), both[1 if wanted == "x" else 2])


@pytest.mark.parametrize("dim", [5, 64])
@pytest.mark.parametrize("options", [{}, {"bandwidth": 9}], ids=["full", "band"])
def test_runs_are_bitwise_equal(template, dim, options):
    x, y = (z.float() for z in noise(dim, 300, 333, 2))
    first = run(template, x, y, **options)
    for _ in range(4):
        for a, b in zip(first, run(template, x, y, **options), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dim", [3, 40])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("where", ["x", "y"])
def test_a_bad_number_spoils_its_pair_alone(template, where, bad, dim):
    x, y = (z.float() for z in noise(dim, 150, 90, 4))
    clean = run(template, x, y)
    (x if where == "x" else y)[2, 32, dim - 1] = bad
    spoiled = run(template, x, y)
    for before, after in zip(clean, spoiled, strict=True):
        np.testing.assert_array_equal(before[[0, 1, 3]], after[[0, 1, 3]])
    assert not np.isfinite(spoiled[0][2])
    assert not np.isfinite(spoiled[1][2]).any() and not np.isfinite(spoiled[2][2]).any()


@pytest.mark.parametrize("dim", [8, 20])
def test_vectors_that_are_not_aligned(template, dim):
    x, y = (z.float().to(template.device) for z in noise(dim))
    expected = run(template, x, y)
    for view in (
        lambda z: torch.cat([z.new_zeros(1), z.flatten()])[1:].view(z.shape),
        lambda z: torch.cat([z, z[:, :, :3]], 2)[:, :, :dim],
        lambda z: z.transpose(1, 2).contiguous().transpose(1, 2),
    ):
        for a, b in zip(run(template, view(x), view(y)), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dim", [7, 8, 16])
def test_fakes_know_what_is_saved_and_how_gradients_lie_in_memory(template, dim):
    for batch, n, m, bandwidth in ((2, 65, 300, -1), (1, 500, 129, 9)):
        x, y = (torch.zeros(batch, length, dim, device=template.device) for length in (n, m))
        plan = selection.plan(template.name, x)
        shared = (*(None,) * 5, bandwidth, 0.7, 0.0, "sqeuclidean", *plan)
        value, saved = ops.forward(x, y, *shared, True)
        arguments = (torch.ones_like(value), x, y, value, saved)
        real = ops.backward(*arguments, *shared, True, True)
        with torch._subclasses.FakeTensorMode() as mode:
            fakes = [mode.from_tensor(t) for t in arguments]
            assert ops.forward(fakes[1], fakes[2], *shared, True)[1].shape == saved.shape
            fake = ops.backward(*fakes, *shared, True, True)
        assert [(t.shape, t.stride()) for t in fake] == [(t.shape, t.stride()) for t in real]


@pytest.mark.parametrize("dim", [8, 16, 40])
def test_identical_series_matched_one_to_one_have_no_gradient(template, dim):
    x = normal(2, 130, dim, seed=1, dtype=torch.float32)
    _, grad_x, grad_y = run(template, x, x.clone(), 1e-3, bandwidth=0)
    assert np.all(grad_x == 0) and np.all(grad_y == 0)


@pytest.mark.cuda
@pytest.mark.parametrize("cost", ["sqeuclidean", "euclidean", "cityblock"])
@pytest.mark.parametrize("name", ["stencil", "tiled"])
def test_no_table_is_kept_in_either_direction(name, cost):
    x, y = (z.float().cuda().requires_grad_() for z in noise(64, 512, 512, 32))
    soft_dtw(x, y, gamma=1.0, cost=cost, kernel=name).sum().backward()
    x.grad = y.grad = None
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    soft_dtw(x, y, gamma=1.0, cost=cost, kernel=name).sum().backward()
    torch.cuda.synchronize()
    assert torch.cuda.max_memory_allocated() - before <= 20 * 2**20


@cache
def expected_pairs(dim, m):
    x, y = (normal(3, size, dim, seed=dim + size).float() for size in (130, m))
    leaves = [z.double().requires_grad_() for z in (x, y)]
    value = soft_dtw(*leaves, gamma=1.0)
    return x, y, [numpy64(z) for z in (value, *torch.autograd.grad(value.sum(), leaves))]


# With more of them than a GPU sweeps at a time costs come to the sweeps in other ways, by dimensions and columns.
@pytest.mark.parametrize("times", [1, 150])
@pytest.mark.parametrize("m", [200, 280])
@pytest.mark.parametrize("dim", [16, 64, 200])
def test_pairs_do_not_depend_on_how_many_there_are(template, dim, m, times):
    if times > 1 and template.device == "cpu":
        pytest.skip("the CPU's kernel goes through pairs one by one")
    x, y, expected = expected_pairs(dim, m)
    actual = run(template, x.repeat(times, 1, 1), y.repeat(times, 1, 1))
    for got, wanted in zip(actual, expected, strict=True):
        assert np.abs(got - np.concatenate([wanted] * times)).max() <= 1e-3 * np.abs(wanted).max()
        assert np.array_equal(got, np.concatenate([got[:3]] * times))
    assert np.abs(actual[0][:3] - expected[0]).max() <= 1e-5 * np.abs(expected[0]).max()
