"""Every combination of lengths, band, penalty, cost and dtype, and every kernel, against the oracle."""

import oracle
import pytest
import torch
from cases import COSTS, assert_gradients_close, assert_values_close, normal, numpy64, run, run_from_cost

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
LENGTHS = {"full": {}, "lengths": {"x_lengths": [37, 1, 20], "y_lengths": [5, 45, 24]}}
BANDS = {"no_band": None, "band": 6, "bands": [0, 3, 50]}
PENALTIES = [0.0, 0.7]


def squared_distances(x, y):
    return (x.unsqueeze(2) - y.unsqueeze(1)).square().sum(3)


@pytest.mark.parametrize("penalty", PENALTIES, ids=["", "penalty"])
@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_value_and_gradients_agree_with_the_oracle(template, dtype, cost, lengths, band, penalty):
    if template.rows == 4 and dtype == torch.float64:
        pytest.skip("float64 kernels have one number of rows per thread")
    gamma = 0.6
    x, y = normal(3, 37, 3, seed=1, dtype=dtype), normal(3, 45, 3, seed=2, dtype=dtype)
    options = dict(cost=cost, bandwidth=BANDS[band], warp_penalty=penalty, **LENGTHS[lengths])
    expected = oracle.soft_dtw(numpy64(x), numpy64(y), gamma, **options)
    value, grad_x, grad_y = run(template, x, y, gamma, **options)
    assert_values_close(value, expected[0], dtype, gamma)
    assert_gradients_close(grad_x, expected[1], dtype)
    assert_gradients_close(grad_y, expected[2], dtype)


@pytest.mark.parametrize("penalty", PENALTIES, ids=["", "penalty"])
@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cost_matrices_agree_with_the_oracle(template, dtype, lengths, band, penalty):
    if template.rows == 4 and dtype == torch.float64:
        pytest.skip("float64 kernels have one number of rows per thread")
    gamma = 0.6
    costs = normal(3, 37, 45, seed=3, dtype=dtype).square()
    options = dict(bandwidth=BANDS[band], warp_penalty=penalty, **LENGTHS[lengths])
    value, alignment = oracle.soft_dtw_from_cost(numpy64(costs), gamma, **options)
    actual = run_from_cost(template, costs, gamma, **options)
    assert_values_close(actual[0], value, dtype, gamma)
    assert_gradients_close(actual[1], alignment, dtype)


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_callable_cost_agrees_with_the_named_one(kernel, dtype, lengths, band):
    x, y = normal(3, 37, 3, seed=1, dtype=dtype), normal(3, 45, 3, seed=2, dtype=dtype)
    options = dict(bandwidth=BANDS[band], **LENGTHS[lengths])
    named = run(kernel, x, y, **options)
    called = run(kernel, x, y, cost=squared_distances, **options)
    assert_values_close(called[0], named[0], dtype, 1.0)
    assert_gradients_close(called[1], named[1], dtype)
    assert_gradients_close(called[2], named[2], dtype)


@pytest.mark.parametrize(
    ("n", "m"),
    [
        (1, 1),
        (1, 2),
        (2, 1),
        (1, 300),
        (300, 1),
        (2, 2),
        (3, 200),
        (200, 3),
        (31, 33),
        (32, 32),
        (64, 63),
        (65, 64),
        (129, 140),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_any_two_lengths(template, dtype, n, m):
    if template.rows == 4 and dtype == torch.float64:
        pytest.skip("float64 kernels have one number of rows per thread")
    x, y = normal(2, n, 2, seed=n, dtype=dtype), normal(2, m, 2, seed=m, dtype=dtype)
    for band in (None, 0, 9):
        expected = oracle.soft_dtw(numpy64(x), numpy64(y), 1.0, bandwidth=band)
        value, grad_x, grad_y = run(template, x, y, bandwidth=band)
        assert_values_close(value, expected[0], dtype, 1.0)
        assert_gradients_close(grad_x, expected[1], dtype)
        assert_gradients_close(grad_y, expected[2], dtype)


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 8, 16, 17, 33, 64, 130])
@pytest.mark.parametrize("cost", COSTS)
def test_any_dimension(template, cost, dim):
    x, y = normal(2, 20, dim, seed=1, dtype=torch.float32), normal(2, 23, dim, seed=2, dtype=torch.float32)
    if cost == "cosine" and dim == 1:
        pytest.skip("in one dimension the cosine cost is a constant with a gradient of rounding errors")
    gamma = 0.5 * dim if cost != "cosine" else 0.5
    expected = oracle.soft_dtw(numpy64(x), numpy64(y), gamma, cost=cost)
    value, grad_x, grad_y = run(template, x, y, gamma, cost=cost)
    assert_values_close(value, expected[0], torch.float32, gamma)
    assert_gradients_close(grad_x, expected[1], torch.float32)
    assert_gradients_close(grad_y, expected[2], torch.float32)


def test_incoming_gradient_scales_each_pair(kernel):
    x, y, weights = normal(4, 9, 2, seed=1), normal(4, 7, 2, seed=2), torch.tensor([0.0, -2.0, 1e3, 0.5])
    plain = run(kernel, x, y)
    scaled = run(kernel, x, y, grad_value=weights.double())
    for before, after in zip(plain[1:], scaled[1:], strict=True):
        assert_gradients_close(after, before * weights.numpy()[:, None, None], torch.float64)
