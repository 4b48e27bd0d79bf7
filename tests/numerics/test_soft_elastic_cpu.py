"""Soft elastic measures on the CPU: any gamma, strips cut anywhere, costs beyond float32, threads that share a pair."""

import math

import numpy as np
import oracle
import pytest
import torch
from cases import normal, numpy64
from test_elastic_kernels import MEASURES as GRADIENT_CASES
from test_elastic_kernels import assert_as_expected, gradients_of, made, run

from torchsoftdtw import edr, elastic_from_costs, erp, lcss, msm, twed, wdtw
from torchsoftdtw._kernels import ops

F32, F64 = torch.float32, torch.float64
BOUND = {F32: 1e-5, F64: 1e-11}
MEASURES = {"twed": twed, "erp": erp, "msm": msm, "lcss": lcss, "wdtw": wdtw}
SHAPES = ((1, 1), (1, 5), (7, 1), (64, 64), (63, 80), (70, 150), (290, 65))


def expected_of(name, x, y, gamma, bandwidth=None):
    *costs, border = oracle.measure_costs(name, numpy64(x[0]), numpy64(y[0]))
    value = oracle.elastic(*costs, gamma, border, bandwidth)[0]
    n, m = x.shape[1], y.shape[1]
    return 1 - (n + m - value) / 2 / min(n, m) if name == "lcss" else value


def assert_close(value, expected, gamma, dtype):
    assert abs(value - expected) <= BOUND[dtype] * max(abs(expected), 1.0, gamma)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("gamma", [1e-3, 0.2, 100.0])
@pytest.mark.parametrize("name", MEASURES)
def test_any_gamma_shape_and_band(name, gamma, dtype):
    for n, m in SHAPES:
        for dim in (1,) if name == "msm" else (1, 3):
            x, y = normal(1, n, dim, seed=1, dtype=dtype), normal(1, m, dim, seed=2, dtype=dtype)
            for bandwidth in (None, 0, 3, 30):
                value = MEASURES[name](x, y, gamma=gamma, bandwidth=bandwidth).item()
                assert_close(value, expected_of(name, x, y, gamma, bandwidth), gamma, dtype)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("border", ["inf", "sum"])
def test_ready_made_costs(border, dtype):
    n, m = 70, 150
    diagonal, up, left = (normal(1, n, m, seed=seed).abs().to(dtype) for seed in range(3))
    if border == "sum":
        up, left = up[:, :, 0], left[:, 0]
    for bandwidth in (None, 2, 30):
        for gamma in (1e-3, 0.2, 100.0):
            value = elastic_from_costs(diagonal, up, left, gamma, border=border, bandwidth=bandwidth).item()
            tables = [numpy64(diagonal[0])]
            tables += [np.broadcast_to(numpy64(up[0, :, None] if border == "sum" else up[0]), (n, m))]
            tables += [np.broadcast_to(numpy64(left[0]), (n, m))]
            assert_close(value, oracle.elastic(*tables, gamma, border, bandwidth)[0], gamma, dtype)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("name", MEASURES)
def test_a_band_of_all_pairs_is_kept_closer_together(name, dtype):
    """Strips share what neither of two needs; where pairs have bands of their own each has its place."""
    gamma = torch.tensor([0.3, 0.3], dtype=dtype, requires_grad=True)
    for n, m in ((64, 64), (65, 63), (130, 97), (200, 33), (421, 500), (700, 700)):
        x, y = (normal(2, size, 1, seed=size, dtype=dtype).requires_grad_() for size in (n, m))
        for radius in (0, 7, 16, 48, 100, 300):
            results = []
            for bandwidth in (radius, torch.tensor([radius, radius])):
                value = MEASURES[name](x, y, gamma=gamma, bandwidth=bandwidth)
                gradients = torch.autograd.grad(value.sum(), (x, y, gamma), allow_unused=True, materialize_grads=True)
                results.append((value, *gradients))
            for shared, own in zip(*results, strict=True):
                assert torch.equal(shared, own), f"{n} x {m}, radius {radius}"


@pytest.mark.parametrize("sum_border", [False, True])
def test_what_is_kept_goes_with_the_band(sum_border):
    sizes = [
        ops.cpu_elastic_saved_size(4, 2048, 2048, 1, False, "msm", "cityblock", sum_border, False, False, radius, "cpu")
        for radius in (-1, 204)
    ]
    assert sizes[1] < 0.31 * sizes[0]


@pytest.mark.parametrize("name", MEASURES)
def test_values_are_the_same_where_gradients_are_wanted(name):
    for dtype in (F32, F64):
        x, y = normal(2, 130, 1, seed=1, dtype=dtype), normal(2, 90, 1, seed=2, dtype=dtype)
        for gamma in (1e-3, 0.2):
            value = MEASURES[name](x, y, gamma=gamma)
            assert torch.equal(MEASURES[name](x.clone().requires_grad_(), y, gamma=gamma).detach(), value)


@pytest.mark.parametrize("name", ["twed", "erp", "msm", "wdtw"])
def test_costs_beyond_float32_are_swept_in_double(name):
    """Costs of 2^24 gamma and more in a cell that paths go through."""
    x, y = 1e6 * normal(1, 70, 1, seed=1, dtype=F32), 1e6 * normal(1, 90, 1, seed=2, dtype=F32)
    assert_close(MEASURES[name](x, y, gamma=1e-3).item(), expected_of(name, x, y, 1e-3), 1e-3, F32)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("gamma", [1e-3, 0.3, 1e3])
@pytest.mark.parametrize("measure", GRADIENT_CASES, ids=str)
def test_gradients_are_those_of_the_oracle_at_any_gamma(measure, gamma, dtype):
    """To series, times, gaps, parameters and gamma, with those of numbers and without."""
    dim = 3 if measure.cost == "euclidean" else 1
    for n, m, options in (
        (70, 150, {"batch": 1}),
        (290, 65, {"batch": 1, "bandwidth": 9}),
        (66, 80, {"batch": 2, "lengths": ([66, 65], [1, 70]), "bandwidth": 30}),
    ):
        assert_as_expected(made(measure, n, m, dim, dtype=dtype, **options), "cpu", gamma, dtype, at="cpu")


@pytest.mark.parametrize("measure", [own for own in GRADIENT_CASES if own.cost != "sqeuclidean"], ids=str)
def test_gradients_of_costs_beyond_float32(measure):
    problem = made(measure, 70, 90, batch=2, dtype=F32)
    for numbers in problem[1:7]:
        if numbers is not None:
            numbers[1] *= 2.0**20  # of the second pair
    assert_as_expected(problem, "cpu", 1e-3, F32, at="cpu")


def test_infinite_and_missing_numbers_stay_in_their_pair():
    x, y = normal(3, 70, 1, seed=1, dtype=F32), normal(3, 80, 1, seed=2, dtype=F32)
    clean = [function(x, y, gamma=0.2) for function in (twed, erp, msm, wdtw)]
    x[1, 69] = math.nan
    for function, expected in zip((twed, erp, msm, wdtw), clean, strict=True):
        value = function(x, y, gamma=0.2)
        assert value[1].isnan()
        assert torch.equal(value[[0, 2]], expected[[0, 2]])
    assert edr(x, y, epsilon=0.5, gamma=0.2)[1].isnan()


def test_forbidden_cells_of_ready_made_costs():
    diagonal, up, left = (normal(1, 66, 70, seed=seed).abs() for seed in range(3))
    diagonal[:, 20:40, 10:60] = math.inf
    up[:, 50], left[:, :, 66] = math.inf, math.inf
    for gamma in (1e-3, 1.0):
        for dtype in (F32, F64):
            costs = [own.to(dtype) for own in (diagonal, up, left)]
            expected = oracle.elastic(*(numpy64(own[0]) for own in costs), gamma, "inf", None)[0]
            assert_close(elastic_from_costs(*costs, gamma).item(), expected, gamma, dtype)


def with_threads(compute):
    """compute() by one thread, and by as many as share pairs, or have some each."""
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            found.append(compute())
    finally:
        torch.set_num_threads(before)
    return found


def all_of(problem, dtype):
    series, rest, (value, saved) = run(problem, "cpu", 0.2, dtype, at="cpu")
    found = [value]
    for need_numbers in (False, True):
        found += gradients_of(series, rest, value, saved, torch.ones_like(value), need_numbers)
    return found


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("measure", GRADIENT_CASES, ids=str)
def test_results_do_not_depend_on_the_number_of_threads(measure, dtype):
    dim = 2 if measure.cost == "euclidean" else 1
    for batch, n, m, bandwidth in ((1, 1100, 900, -1), (3, 330, 420, -1), (1, 900, 1000, 200), (7, 140, 300, -1)):
        problem = made(measure, n, m, dim, batch=batch, dtype=dtype, bandwidth=bandwidth)
        first, *others = with_threads(lambda own=problem: all_of(own, dtype))
        assert all(torch.equal(a, b) for other in others for a, b in zip(other, first, strict=True)), (batch, n, m)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("border", ["inf", "sum"])
def test_ready_made_costs_do_not_depend_on_the_number_of_threads(border, dtype):
    for batch, n, m in ((1, 500, 600), (3, 330, 420)):
        costs = [normal(batch, n, m, seed=seed).abs().to(dtype) for seed in range(3)]
        if border == "sum":
            costs[1:] = costs[1][:, :, 0], costs[2][:, 0]
        inputs = [*costs, torch.tensor(0.2, dtype=F64)]

        def compute(inputs=inputs):
            own = [tensor.clone().requires_grad_() for tensor in inputs]
            value = elastic_from_costs(*own, border=border)
            return [value.detach(), *torch.autograd.grad(value.sum(), own)]

        first, *others = with_threads(compute)
        assert all(torch.equal(a, b) for other in others for a, b in zip(other, first, strict=True)), (batch, n, m)
