"""Elastic measures against the oracle's three-cost recursion, and the oracle against other packages."""

import math

import numpy as np
import oracle
import pytest
import torch
from cases import KernelCase, normal, numpy64

from torchsoftdtw import (
    edr,
    elastic_from_costs,
    elastic_path,
    erp,
    lcss,
    measures,
    msm,
    twed,
    wdtw,
)

KERNELS = [KernelCase("cpu", "cpu")]
FUNCTIONS = {"twed": twed, "erp": erp, "msm": msm, "edr": edr, "lcss": lcss, "wdtw": wdtw}
NUMBERS = {
    "twed": {"nu": 0.3, "lmbda": 0.5},
    "erp": {"g": 0.4},
    "msm": {"c": 0.3},
    "edr": {"epsilon": 0.6},
    "lcss": {"epsilon": 0.6},
    "wdtw": {"g": 0.2},
}
OBJECTS = {
    "twed": measures.TWED(nu=0.3, lmbda=0.5),
    "erp": measures.ERP(g=0.4),
    "msm": measures.MSM(c=0.3),
    "edr": measures.EDR(epsilon=0.6, normalize=False),
    "lcss": measures.LCSS(epsilon=0.6),
    "wdtw": measures.WDTW(g=0.2),
}
GAMMAS = (0.0, 1e-3, 0.1, 1.0, 100.0)
# Costs are rounded to the dtype of the series, each relative to itself, and added up in float64; soft values near 0, where
# costs and entropy cancel, keep what gamma keeps.
TOLERANCE = {torch.float64: 1e-11, torch.float32: 2e-6}
GRADIENT_TOLERANCE = {torch.float64: 1e-9, torch.float32: 5e-5}


@pytest.fixture(params=[pytest.param(case, id=str(case)) for case in KERNELS])
def kernel(request):
    return request.param


def value_of(name, table, n, m):
    """What a function makes of the oracle's R."""
    if name == "lcss":
        return 1 - (n + m - table) / 2 / min(n, m)
    return table / max(n, m) if name == "edr" else table


def series(n, m, dim, dtype=torch.float64, seed=0, batch=2):
    return normal(batch, n, dim, seed=seed, dtype=dtype), normal(batch, m, dim, seed=seed + 1, dtype=dtype)


def expected_values(name, x, y, gamma, bandwidth=None, **numbers):
    values = []
    for own_x, own_y in zip(numpy64(x), numpy64(y), strict=True):
        *costs, border = oracle.measure_costs(name, own_x, own_y, **(numbers or NUMBERS[name]))
        table, *_ = oracle.elastic(*costs, gamma, border, bandwidth)
        values.append(value_of(name, table, len(own_x), len(own_y)))
    return np.array(values)


def assert_close(actual, expected, dtype, gamma=0.0, unit=1e-3):
    """unit: the size of what a value is the difference of."""
    bound = TOLERANCE[dtype] * np.maximum(np.maximum(np.abs(expected), gamma), unit)
    assert np.all(np.abs(actual - expected) <= bound), (actual, expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_the_oracle(kernel, name, gamma, dtype):
    for n, m, dim in ((1, 1, 1), (1, 6, 3), (5, 1, 1), (9, 7, 28), (64, 65, 1), (67, 70, 3), (31, 130, 1)):
        if name == "msm" and dim > 1:
            continue
        x, y = series(n, m, dim, dtype)
        value = FUNCTIONS[name](x.to(kernel.device), y.to(kernel.device), gamma=gamma, kernel=kernel.name, **NUMBERS[name])
        assert value.dtype == dtype
        unit = 1.0 if name == "lcss" else 1e-3
        assert_close(numpy64(value), expected_values(name, x, y, gamma), dtype, gamma, unit)


@pytest.mark.parametrize("degree", [1, 2, -1, -2])
def test_degrees_of_twed_are_those_of_the_oracle(kernel, degree):
    numbers = {"nu": 0.3, "lmbda": 0.5, "degree": degree}
    for dim in (1, 3):
        x, y = series(12, 9, dim)
        value = twed(x.to(kernel.device), y.to(kernel.device), kernel=kernel.name, **numbers)
        assert_close(numpy64(value), expected_values("twed", x, y, 0.0, **numbers), torch.float64)


@pytest.mark.parametrize("gamma", [0.0, 0.1])
@pytest.mark.parametrize("bandwidth", [0, 1, 5, 40])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bands_are_those_of_the_oracle(kernel, name, bandwidth, gamma):
    for n, m in ((1, 4), (8, 8), (66, 50), (50, 130)):
        x, y = series(n, m, 1)
        options = {"gamma": gamma, "bandwidth": bandwidth, "kernel": kernel.name}
        value = FUNCTIONS[name](x.to(kernel.device), y.to(kernel.device), **options, **NUMBERS[name])
        assert_close(numpy64(value), expected_values(name, x, y, gamma, bandwidth), torch.float64, gamma)


@pytest.mark.parametrize("gamma", [0.0, 0.1])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_padding_has_no_influence_and_no_gradient_even_when_nan(kernel, name, gamma):
    x, y = series(20, 90, 1, batch=3)
    x_lengths, y_lengths = [20, 1, 7], [66, 90, 1]
    expected = []
    for b, (n, m) in enumerate(zip(x_lengths, y_lengths, strict=True)):
        expected += list(expected_values(name, x[b : b + 1, :n], y[b : b + 1, :m], gamma))
        x[b, n:], y[b, m:] = math.nan, math.nan
    x, y = (series.to(kernel.device).requires_grad_() for series in (x, y))
    lengths = {"x_lengths": x_lengths, "y_lengths": y_lengths}
    value = FUNCTIONS[name](x, y, gamma=gamma, kernel=kernel.name, **lengths, **NUMBERS[name])
    assert_close(numpy64(value), np.array(expected), torch.float64, gamma)
    for gradient, own in zip(torch.autograd.grad(value.sum(), (x, y)), (x_lengths, y_lengths), strict=True):
        for b, length in enumerate(own):
            assert gradient[b, :length].isfinite().all()
            assert (gradient[b, length:] == 0).all()


@pytest.mark.parametrize("gamma", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("border", ["inf", "sum"])
@pytest.mark.parametrize("of_gaps", [True, False])
@pytest.mark.parametrize("bandwidth", [None, 2])
def test_gradients_of_costs_are_the_masses_of_the_oracle(kernel, gamma, border, of_gaps, bandwidth):
    if border == "sum" and not of_gaps:
        return
    for n, m in ((1, 1), (6, 4), (70, 66)):
        diagonal = normal(2, n, m, seed=1).abs()
        up = normal(2, n, seed=2).abs() if of_gaps else normal(2, n, m, seed=2).abs()
        left = normal(2, m, seed=3).abs() if of_gaps else normal(2, n, m, seed=3).abs()
        costs = [table.to(kernel.device).requires_grad_() for table in (diagonal, up, left)]
        value = elastic_from_costs(*costs, gamma, border=border, bandwidth=bandwidth, kernel=kernel.name)
        found = torch.autograd.grad(value.sum(), costs)
        for b in range(2):
            tables = [
                numpy64(diagonal[b]),
                numpy64(up[b, :, None].expand(n, m) if of_gaps else up[b]),
                numpy64(left[b, None].expand(n, m) if of_gaps else left[b]),
            ]
            expected, by_diagonal, by_up, by_left = oracle.elastic(*tables, gamma, border, bandwidth)
            assert_close(value[b].item(), expected, torch.float64, gamma)
            by_up = by_up[1:].sum(1) if of_gaps else by_up[1:, 1:]
            by_left = by_left[:, 1:].sum(0) if of_gaps else by_left[1:, 1:]
            for actual, mass in zip(found, (by_diagonal[1:, 1:], by_up, by_left), strict=True):
                np.testing.assert_allclose(numpy64(actual[b]), mass, rtol=0, atol=1e-10)


def gradients_by_differences(function, tensors, step=1e-6):
    found = []
    for tensor in tensors:
        gradient, flat = torch.zeros_like(tensor), tensor.view(-1)
        for k in range(len(flat)):
            kept = flat[k].item()
            flat[k] = kept + step
            above = function().item()
            flat[k] = kept - step
            gradient.view(-1)[k] = (above - function().item()) / (2 * step)
            flat[k] = kept
        found.append(gradient)
    return found


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("gamma", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("name", ["twed", "erp", "msm", "wdtw"])
def test_gradients_to_series_are_those_of_the_oracle(kernel, name, gamma, dtype):
    """Central differences of the oracle, of values of order 10 with a step of 1e-6: to some 1e-8."""
    for n, m, dim in ((1, 1, 1), (6, 9, 1), (7, 5, 3)):
        if name == "msm" and dim > 1:
            continue
        x, y = series(n, m, dim, dtype, seed=4, batch=1)
        wide = x.double(), y.double()
        expected = gradients_by_differences(lambda own=wide: expected_values(name, *own, gamma)[0], wide)
        x, y = (series.to(kernel.device).requires_grad_() for series in (x, y))
        value = FUNCTIONS[name](x, y, gamma=gamma, kernel=kernel.name, **NUMBERS[name])
        for actual, own in zip(torch.autograd.grad(value.sum(), (x, y)), expected, strict=True):
            assert actual.dtype == dtype
            bound = max(GRADIENT_TOLERANCE[dtype], 1e-7) * max(1.0, own.abs().max().item())
            np.testing.assert_allclose(numpy64(actual), own, rtol=0, atol=bound)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("bandwidth", [None, 3])
def test_paths_cost_what_the_value_says_and_are_those_of_the_oracle(kernel, name, bandwidth):
    for n, m in ((1, 1), (5, 9), (9, 4), (70, 66), (66, 140)):
        x, y = series(n, m, 1, seed=6)
        found = elastic_path(
            x.to(kernel.device), y.to(kernel.device), OBJECTS[name], bandwidth=bandwidth, kernel=kernel.name
        )
        for b in range(2):
            *costs, border = oracle.measure_costs(name, numpy64(x[b]), numpy64(y[b]), **NUMBERS[name])
            total = 0.0
            place = -1, -1
            for (i, j), step in zip(found.paths[b].tolist(), found.steps[b].tolist(), strict=True):
                assert (i, j) == (place[0] + (step != 2), place[1] + (step != 1))
                total += costs[step][max(i, 0), max(j, 0)]
                place = i, j
            assert place == (n - 1, m - 1)
            value = found.value[b].item() * (max(n, m) if name == "edr" and OBJECTS[name].normalize else 1)
            assert value == pytest.approx(value_of("lcss", total, n, m) if name == "lcss" else total, rel=1e-11, abs=1e-12)
            cells, steps = oracle.elastic_path(*costs, border, bandwidth)
            assert (found.paths[b].tolist(), found.steps[b].tolist()) == (cells, steps)


@pytest.mark.parametrize("border", ["inf", "sum"])
def test_the_oracle_counts_paths(border):
    rng = np.random.default_rng(0)
    for n, m in ((1, 1), (3, 2), (4, 5)):
        diagonal = rng.random((n, m))
        up, left = np.tile(rng.random((n, 1)), m), np.tile(rng.random((1, m)), (n, 1))
        costs = oracle.elastic_path_costs(diagonal, up, left, border)
        assert oracle.elastic(diagonal, up, left, 0.0, border)[0] == pytest.approx(costs.min())
        for gamma in (0.1, 1.0):
            least = costs.min()
            soft = least - gamma * np.log(np.exp((least - costs) / gamma).sum())
            assert oracle.elastic(diagonal, up, left, gamma, border)[0] == pytest.approx(soft, rel=1e-12)


@pytest.mark.parametrize("name", ["twed", "msm", "lcss", "wdtw"])
def test_aeon_agrees_where_it_follows_the_publications(name):
    aeon = pytest.importorskip("aeon.distances")
    rng = np.random.default_rng(0)
    for n, m, dim in ((20, 20, 1), (13, 25, 1), (17, 12, 3)):
        if name == "msm" and dim > 1:
            continue
        x, y = rng.standard_normal((n, dim)), rng.standard_normal((m, dim))
        functions = {
            "twed": lambda a, b: aeon.twe_distance(a, b, nu=0.3, lmbda=0.5),
            "msm": lambda a, b: aeon.msm_distance(a, b, c=0.3),
            "lcss": lambda a, b: aeon.lcss_distance(a, b, epsilon=0.6),
            "wdtw": lambda a, b: aeon.wdtw_distance(a, b, g=0.2),
        }
        own = FUNCTIONS[name](torch.tensor(x), torch.tensor(y), **NUMBERS[name]).item()
        assert own == pytest.approx(functions[name](x.T.copy(), y.T.copy()), rel=1e-11)


def test_aeon_agrees_on_msm_of_several_dimensions():
    aeon = pytest.importorskip("aeon.distances")
    x, y = normal(14, 3, seed=1), normal(11, 3, seed=2)
    expected = aeon.msm_distance(numpy64(x).T.copy(), numpy64(y).T.copy(), c=0.3, independent=True)
    assert msm(x, y, c=0.3).item() == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("name", ["twed", "msm", "lcss"])
def test_tsdistances_agrees(name):
    theirs = pytest.importorskip("tsdistances")
    x, y = normal(30, seed=1), normal(30, seed=2)
    functions = {
        "twed": lambda a, b: theirs.twe_distance(a, b, stifness=0.3, penalty=0.5, par=False),
        "msm": lambda a, b: theirs.msm_distance(a, b, par=False),
        "lcss": lambda a, b: theirs.lcss_distance(a, b, epsilon=0.6, par=False),
    }
    numbers = {"c": 1.0} if name == "msm" else NUMBERS[name]
    own = FUNCTIONS[name](x.unsqueeze(1), y.unsqueeze(1), **numbers).item()
    assert own == pytest.approx(functions[name](numpy64(x), numpy64(y)), rel=1e-11)
