"""Soft elastic values on the CPU: any gamma, strips cut anywhere, costs beyond float32, threads that share a pair."""

import math

import numpy as np
import oracle
import pytest
import torch
from cases import normal, numpy64

from torchsoftdtw import edr, elastic_from_costs, erp, lcss, msm, twed, wdtw

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


@pytest.mark.parametrize("name", MEASURES)
def test_gradients_follow_values_at_any_gamma(name):
    if name == "lcss":
        return  # which has none
    for gamma in (1e-2, 100.0):
        x, y = (normal(1, length, 1, seed=length, dtype=F64) for length in (70, 66))
        exact = torch.autograd.grad(MEASURES[name](own := x.requires_grad_(), y, gamma=gamma).sum(), own)[0]
        x32 = x.detach().float().requires_grad_()
        found = torch.autograd.grad(MEASURES[name](x32, y.float(), gamma=gamma).sum(), x32)[0]
        assert (found - exact).abs().max() <= 2e-3 * exact.abs().max()


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


def test_threads_that_share_a_pair_compute_the_same():
    x, y = normal(1, 1100, 1, seed=1, dtype=F32), normal(1, 900, 1, seed=2, dtype=F32)
    before = torch.get_num_threads()
    try:
        values = []
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            values.append([function(x, y, gamma=0.2) for function in (twed, erp, msm, wdtw)])
    finally:
        torch.set_num_threads(before)
    for others in values[1:]:
        assert all(torch.equal(a, b) for a, b in zip(others, values[0], strict=True))
