"""float32 against the float64 oracle: from small gamma to large, and awkward series.

The bounds: values to 1e-5 of the larger of |value| and gamma; E to 1e-4 plus 20 times the change that rounding the costs to
float32 makes by itself, which no float32 computation can avoid.
"""

from functools import cache

import numpy as np
import oracle
import pytest
import torch
from cases import assert_values_close, normal, numpy64, run, run_from_cost

from torchsoftdtw import soft_dtw

GAMMAS = [1e-4, 1e-3, 1e-2, 0.1, 0.3, 1.0, 10.0, 1e3]


def step_and_noise(n, seed):
    series = normal(1, n, 1, seed=seed) * 0.1
    series[:, n // 2 :] += 3
    return series


def spike(n, height):
    series = torch.zeros(1, n, 1, dtype=torch.float64)
    series[0, n // 3] = height
    return series


AWKWARD = {
    "noise": lambda: (normal(1, 140, 1, seed=1), normal(1, 130, 1, seed=2)),
    "identical": lambda: (normal(1, 100, 1, seed=1), normal(1, 100, 1, seed=1)),
    "constant_and_constant": lambda: (torch.full((1, 90, 1), 0.3).double(), torch.full((1, 100, 1), 0.3).double()),
    "constant_and_spike": lambda: (torch.zeros(1, 100, 1).double(), spike(110, 50.0)),
    "outlier_of_1000": lambda: (normal(1, 70, 1, seed=1) + spike(70, 1e3), normal(1, 80, 1, seed=2)),
    "outliers_of_1e6": lambda: (normal(1, 70, 1, seed=1) + spike(70, 1e6), normal(1, 70, 1, seed=2) + spike(70, -1e6)),
    "steps": lambda: (step_and_noise(110, 1), step_and_noise(90, 2)),
    "far_apart": lambda: (normal(1, 64, 1, seed=1) + 100, normal(1, 64, 1, seed=2) - 100),
    "tiny": lambda: (normal(1, 64, 1, seed=1) * 1e-3, normal(1, 64, 1, seed=2) * 1e-3),
    "long_and_short": lambda: (normal(1, 300, 1, seed=1), normal(1, 5, 1, seed=2)),
    "short_and_long": lambda: (normal(1, 5, 1, seed=1), normal(1, 300, 1, seed=2)),
    "random_walks": lambda: (normal(1, 100, 2, seed=1).cumsum(1), normal(1, 100, 2, seed=2).cumsum(1)),
}


@cache
def reference(series, gamma):
    """The series in float32, and from the oracle: costs, value, E, the bound on an error of E."""
    x, y = (s.float() for s in AWKWARD[series]())
    costs = oracle.cost_and_slopes(numpy64(x[0]), numpy64(y[0]), "sqeuclidean")[0]
    value, alignment = oracle.value_and_alignment(costs, gamma)
    rounded = costs.astype(np.float32).astype(np.float64)
    unavoidable = np.abs(oracle.value_and_alignment(rounded, gamma)[1] - alignment).max()
    return x, y, costs, value, alignment, 1e-4 + 20 * unavoidable


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("series", AWKWARD)
def test_alignment_of_a_cost_matrix(template, series, gamma):
    _, _, costs, expected_value, expected, bound = reference(series, gamma)
    value, alignment = run_from_cost(template, torch.from_numpy(costs).float().unsqueeze(0), gamma)
    assert abs(value[0] - expected_value) <= 1e-5 * max(abs(expected_value), gamma)
    assert alignment.min() >= 0 and alignment.max() <= 1 + 1e-4
    assert np.abs(alignment[0] - expected).max() <= bound
    # Where rounding the costs changes all of E and the bound says nothing: every path goes through every row and column.
    assert alignment[0].sum(0).min() >= 1 - 1e-3 and alignment[0].sum(1).min() >= 1 - 1e-3


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("series", AWKWARD)
def test_value_and_gradients_of_series(template, series, gamma):
    x, y, _, expected_value, alignment, bound = reference(series, gamma)
    value, grad_x, grad_y = run(template, x, y, gamma)
    assert abs(value[0] - expected_value) <= 1e-5 * max(abs(expected_value), gamma)
    assert np.isfinite(grad_x).all() and np.isfinite(grad_y).all()
    _, x_slope, y_slope = oracle.cost_and_slopes(numpy64(x[0]), numpy64(y[0]), "sqeuclidean")
    for gradient, slope, axis in ((grad_x[0], x_slope, 1), (grad_y[0], y_slope, 0)):
        expected = (alignment[:, :, None] * slope).sum(axis)
        # A row's errors of E add up over the few cells where E is not near 0; each gradient is itself rounded to float32.
        allowed = 4 * bound * max(np.abs(slope).max(), 1e-6)
        assert np.abs(gradient - expected).max() <= allowed


@pytest.mark.parametrize("gamma", [1e-100, 1e-30, 1e-6, 1e6, 1e30, 1e100])
def test_extreme_gamma_in_float64(kernel, gamma):
    x, y = normal(1, 20, 1, seed=1), normal(1, 25, 1, seed=2)
    expected = oracle.soft_dtw(numpy64(x), numpy64(y), gamma)
    value, grad_x, _ = run(kernel, x, y, gamma)
    np.testing.assert_allclose(value, expected[0], rtol=1e-10)
    np.testing.assert_allclose(grad_x, expected[1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("n", "m"), [(1, 916), (1, 6000), (6000, 1), (2, 1400), (5, 3000)])
def test_many_equal_costs_far_below_gamma(kernel, n, m):
    """Every step rounds in the same direction, and the value is small."""
    if kernel.name in ("stencil", "tiled"):
        pytest.skip("off by up to 3e-8 gamma a step, as docs/gamma.md says")
    for cost in 10.0 ** np.arange(-7, 0, 0.5):
        x, y = torch.zeros(1, n, 1), torch.full((1, m, 1), cost**0.5)
        expected = soft_dtw(x.double(), y.double(), gamma=1.0)
        actual = soft_dtw(x.to(kernel.device), y.to(kernel.device), gamma=1.0, kernel=kernel.name)
        assert_values_close(numpy64(actual), numpy64(expected), torch.float32, 1.0)


def test_value_falls_below_dtw_by_less_than_the_number_of_paths_allows(kernel):
    x, y = normal(1, 40, 1, seed=1), normal(1, 40, 1, seed=2)
    hard = run(kernel, x, y, 1e-9)[0][0]
    for gamma in (0.01, 0.1, 1.0, 10.0):
        value = run(kernel, x, y, gamma)[0][0]
        # There are fewer than 3^(N + M) paths.
        assert hard - gamma * 80 * np.log(3) <= value <= hard


@cache
def rest_of(dim):
    """A few vectors, the last but one near the last, at which the other series rests; and the gradients of both."""
    rest = torch.zeros(6, 12_000, dim, dtype=torch.float32)
    goes = torch.cat([normal(6, 4, dim, seed=dim).abs() + 1, torch.zeros(6, 2, dim)], 1).float()
    goes[:, 4, 0] = torch.linspace(0.2, 0.45, 6)
    return rest, goes, oracle.soft_dtw(numpy64(rest), numpy64(goes), 0.002)[1:]


@pytest.mark.long
@pytest.mark.parametrize("dim", [1, 3, 17])
def test_no_share_of_e_leaks_where_a_series_rests(template, dim):
    """E of one column is 1 for long there; what is missing of a share would add up in the next one."""
    rest, goes, expected = rest_of(dim)
    for pair, gradients in (((rest, goes), expected), ((goes, rest), expected[::-1])):
        _, *actual = run(template, *pair, gamma=0.002)
        for found, wanted in zip(actual, gradients, strict=True):
            np.testing.assert_allclose(found, wanted, atol=2e-4, rtol=2e-5)
