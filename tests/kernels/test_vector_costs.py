"""Costs of several dimensions in float32 by warps beside the sweeps: each cost, with few dimensions and with many.

With many dimensions euclidean costs are products of matrices, which cancel where x is near y, and so are their gradients,
of E divided by costs: the cases are those of test_many_dims. The bounds are those of test_accuracy.
"""

from functools import cache

import numpy as np
import oracle
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, normal, numpy64, run
from test_many_dims import CASES, OPTIONS, assert_close, expected_of, noise

from torchsoftdtw import soft_dtw, soft_dtw_from_cost

pytestmark = OF_GPU
AWKWARD = ("3-tiled/few_dims", "3-tiled/multivariate", "8-tiled/multivariate", "33-tiled/multivariate")
COSTS = ["euclidean", "cityblock", "huber"]
DIMS = [2, 3, 4, 7, 8, 9, 16, 20, 33, 64]
KERNELS_OF_DIM = [
    pytest.param(dim, KernelCase(GPU, name), id=f"{dim}-{name}")
    for dim in DIMS
    for name in ("tiled/few_dims", "tiled/multivariate", "stencil/multivariate")
    if (dim <= 8 or "few_dims" not in name) and (dim >= 16 or "stencil" not in name)
]


@cache
def expected_noise(dim, cost, options):
    x, y = (z.float() for z in noise(dim))
    return x, y, expected_of(x, y, 1.0, cost, **OPTIONS[options])


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize(("dim", "kernel"), KERNELS_OF_DIM)
def test_value_and_gradients_of_noise(kernel, dim, cost, options):
    x, y, expected = expected_noise(dim, cost, options)
    x, y = x.clone(), y.clone()
    keys = ("x_lengths", "y_lengths")
    for series, key in ((x, keys[0]), (y, keys[1])):
        for b, length in enumerate(OPTIONS[options].get(key, [])):
            series[b, length:] = torch.nan
    actual = run(kernel, x, y, 1.0, cost=cost, **OPTIONS[options])
    assert_close(actual, expected, 1.0)
    for gradient, key in zip(actual[1:], keys, strict=True):
        for b, length in enumerate(OPTIONS[options].get(key, [])):
            assert np.all(gradient[b, length:] == 0)


@cache
def expected_case(name, dim, gamma, cost):
    x, y = (z.float() for z in CASES[name](dim))
    return x, y, expected_of(x, y, gamma, cost)


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize(("dim", "kernel"), [case for case in KERNELS_OF_DIM if case.id in AWKWARD])
@pytest.mark.parametrize("name", CASES)
def test_awkward_series(kernel, name, dim, cost, gamma):
    x, y, expected = expected_case(name, dim, gamma, cost)
    assert_close(run(kernel, x, y, gamma, cost=cost), expected, gamma)


# Several strips, with E that is wide where distances hardly differ.
@cache
def expected_long_pair(dim, cost):
    x, y = (normal(1, size, dim, seed=dim + size).float() for size in (330, 310))
    differences = x.double()[:, :, None] - y.double()[:, None]
    costs = {
        "euclidean": lambda u: u.square().sum(-1).sqrt(),
        "cityblock": lambda u: u.abs().sum(-1),
        "huber": lambda u: torch.where(u.abs() <= 1, u.square() / 2, u.abs() - 0.5).sum(-1),
    }[cost]
    leaf = differences.clone().requires_grad_()
    value = soft_dtw_from_cost(costs(leaf), 1.0)
    (slopes,) = torch.autograd.grad(value.sum(), leaf)
    bound = 4e-4 * np.ones(1)
    return x, y, (*map(numpy64, (value, slopes.sum(2), -slopes.sum(1))), bound)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize(("dim", "kernel"), KERNELS_OF_DIM)
def test_long_pairs(kernel, dim, cost):
    x, y, expected = expected_long_pair(dim, cost)
    assert_close(run(kernel, x, y, cost=cost), expected, 1.0)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("distance", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize(("dim", "kernel"), KERNELS_OF_DIM)
def test_costs_and_slopes_near_zero_are_as_exact_as_differences(kernel, dim, distance, cost):
    """A single cell, far from the origin: its cost is the value, and its slopes the gradients."""
    x = 100 * normal(20, 1, dim, seed=1, dtype=torch.float32)
    y = x + distance * normal(20, 1, dim, seed=2, dtype=torch.float32)
    y[0] = x[0]  # where a distance has no slope
    y[1, :, 1:] = x[1, :, 1:]
    pairs = [oracle.cost_and_slopes(a, b, cost) for a, b in zip(numpy64(x), numpy64(y), strict=True)]
    costs, x_slopes, y_slopes = (np.stack(parts) for parts in zip(*pairs, strict=True))
    value, grad_x, grad_y = run(kernel, x, y, 1e-16, cost=cost)
    np.testing.assert_allclose(value, costs[:, 0, 0], rtol=2e-6, atol=0)
    for gradient, slopes in ((grad_x, x_slopes), (grad_y, y_slopes)):
        np.testing.assert_allclose(gradient, slopes[:, 0], rtol=2e-6, atol=0)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("dim", [2, 8, 16, 40])
def test_identical_series_have_no_gradient_one_to_one(dim, cost):
    x = normal(2, 130, dim, seed=1, dtype=torch.float32)
    _, grad_x, grad_y = run(KernelCase(GPU, "tiled"), x, x.clone(), 1e-3, bandwidth=0, cost=cost)
    assert np.all(grad_x == 0) and np.all(grad_y == 0)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("dim", [5, 40])
@pytest.mark.parametrize("wanted", ["x", "y"])
def test_one_series_gradient_alone_and_again(wanted, dim, cost):
    kernel = KernelCase(GPU, "tiled")
    x, y = (z.float().to(GPU) for z in noise(dim, 150, 140))
    both = run(kernel, x, y, cost=cost)
    for first, second in zip(both, run(kernel, x, y, cost=cost), strict=True):
        np.testing.assert_array_equal(first, second)
    leaf = (x if wanted == "x" else y).clone().requires_grad_()
    value = soft_dtw(*((leaf, y) if wanted == "x" else (x, leaf)), 1.0, cost=cost, kernel=kernel.name)
    (gradient,) = torch.autograd.grad(value.sum(), leaf)
    np.testing.assert_array_equal(numpy64(gradient), both[1 if wanted == "x" else 2])


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("dim", [3, 40])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_bad_number_spoils_its_pair_alone(bad, dim, cost):
    kernel = KernelCase(GPU, "tiled")
    x, y = (z.float() for z in noise(dim, 150, 90, 4))
    clean = run(kernel, x, y, cost=cost)
    x[2, 32, dim - 1] = bad
    spoiled = run(kernel, x, y, cost=cost)
    for before, after in zip(clean, spoiled, strict=True):
        np.testing.assert_array_equal(before[[0, 1, 3]], after[[0, 1, 3]])
    assert not np.isfinite(spoiled[0][2])
    assert not np.isfinite(spoiled[1][2]).any() and not np.isfinite(spoiled[2][2]).any()
