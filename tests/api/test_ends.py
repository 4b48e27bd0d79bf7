"""Open ends (x against any contiguous part of y) and the division by the lengths, for soft-DTW."""

import math

import numpy as np
import oracle
import pytest
import torch
from cases import COSTS, assert_gradients_close, assert_values_close, normal, numpy64

from torchsoftdtw import SoftDTW, dtw, soft_dtw, soft_dtw_from_cost

LENGTHS = {"full": {}, "lengths": {"x_lengths": [7, 1, 4], "y_lengths": [10, 3, 1]}}


def squared_distances(x, y):
    return (x.unsqueeze(2) - y.unsqueeze(1)).square().sum(3)


def softmin_over_parts(costs, gamma, penalty):
    """The softmin of soft-DTW over all contiguous parts of the columns, and its gradient, part by part."""
    m = costs.shape[1]
    parts = [(i, j) for i in range(m) for j in range(i + 1, m + 1)]
    results = [oracle.value_and_alignment(costs[:, i:j], gamma, None, penalty) for i, j in parts]
    values = np.array([value for value, _ in results])
    weights = np.exp((values.min() - values) / gamma)
    alignment = np.zeros_like(costs)
    for (i, j), (_, own), weight in zip(parts, results, weights / weights.sum(), strict=True):
        alignment[:, i:j] += weight * own
    return values.min() - gamma * math.log(weights.sum()), alignment


def series(device, dtype=torch.float64):
    return (normal(3, length, 2, seed=length, dtype=dtype).to(device).requires_grad_() for length in (7, 10))


@pytest.mark.parametrize("penalty", [0.0, 0.6], ids=["", "penalty"])
@pytest.mark.parametrize("gamma", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_open_ends_are_the_softmin_over_all_parts(kernel, dtype, cost, lengths, gamma, penalty):
    x, y = series(kernel.device, dtype)
    options = dict(cost=cost, warp_penalty=penalty, open_ends=True, kernel=kernel.name, **LENGTHS[lengths])
    value = soft_dtw(x, y, gamma, **options)
    gradients = [numpy64(gradient) for gradient in torch.autograd.grad(value.sum(), (x, y))]
    for b in range(3):
        n = LENGTHS[lengths].get("x_lengths", [7] * 3)[b]
        m = LENGTHS[lengths].get("y_lengths", [10] * 3)[b]
        costs, x_slope, y_slope = oracle.cost_and_slopes(numpy64(x)[b, :n], numpy64(y)[b, :m], cost)
        expected, alignment = softmin_over_parts(costs, gamma, penalty)
        assert_values_close(numpy64(value)[b], expected, dtype, gamma)
        for gradient, slope, axis, length in zip(gradients, (x_slope, y_slope), (1, 0), (n, m), strict=True):
            wanted = np.zeros_like(gradient[b : b + 1])
            wanted[0, :length] = (alignment[:, :, None] * slope).sum(axis)
            assert_gradients_close(gradient[b : b + 1], wanted, dtype)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("cost", [*COSTS, squared_distances])
def test_gradients_are_those_of_finite_differences(kernel, cost, lengths):
    x, y = series(kernel.device)
    gamma, penalty = (
        torch.tensor(numbers, dtype=torch.float64, device=kernel.device, requires_grad=True)
        for numbers in ([0.3, 1.0, 5.0], [0.2, 0.5, 2.0])
    )
    options = dict(cost=cost, open_ends=True, length_norm=True, kernel=kernel.name, **LENGTHS[lengths])
    assert torch.autograd.gradcheck(
        lambda x, y, gamma, penalty: soft_dtw(x, y, gamma, warp_penalty=penalty, **options),
        (x, y, gamma, penalty),
        atol=1e-6,
    )


def test_cost_matrices(kernel):
    costs = normal(3, 7, 10, seed=1).square().to(kernel.device).requires_grad_()
    options = dict(warp_penalty=0.3, open_ends=True, kernel=kernel.name, **LENGTHS["lengths"])
    value = soft_dtw_from_cost(costs, 0.5, **options)
    (gradient,) = torch.autograd.grad(value.sum(), costs)
    for b, (n, m) in enumerate(zip(*LENGTHS["lengths"].values(), strict=True)):
        expected, alignment = softmin_over_parts(numpy64(costs)[b, :n, :m], 0.5, 0.3)
        assert value[b].item() == pytest.approx(expected, rel=1e-10)
        np.testing.assert_allclose(numpy64(gradient)[b, :n, :m], alignment, atol=1e-9)
        assert not gradient[b, n:].any() and not gradient[b, :, m:].any()


def test_padding_may_be_nan(kernel):
    x, y = (tensor.detach() for tensor in series(kernel.device))
    options = dict(open_ends=True, kernel=kernel.name, **LENGTHS["lengths"])
    clean = soft_dtw(x, y, **options)
    for batch, ends in zip((x, y), LENGTHS["lengths"].values(), strict=True):
        for row, end in zip(batch, ends, strict=True):
            row[end:] = torch.nan
    x.requires_grad_()
    value = soft_dtw(x, y, **options)
    assert torch.equal(value, clean)
    assert torch.autograd.grad(value.sum(), x)[0].isfinite().all()


def test_open_ends_approach_those_of_hard_dtw(kernel):
    x, y = (tensor.detach() for tensor in series(kernel.device))
    options = dict(warp_penalty=0.1, open_ends=True)
    expected = dtw(x, y, **options)
    torch.testing.assert_close(soft_dtw(x, y, 1e-6, kernel=kernel.name, **options), expected, rtol=1e-5, atol=1e-5)
    assert torch.equal(soft_dtw(x, y, 0, kernel=kernel.name, **options), expected)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_length_norm_divides_by_both_lengths(kernel, lengths):
    x, y = series(kernel.device)
    options = dict(kernel=kernel.name, **LENGTHS[lengths])
    total = torch.tensor([17, 4, 5] if lengths == "lengths" else [17] * 3, device=kernel.device)
    plain, divided = soft_dtw(x, y, 0.5, **options), soft_dtw(x, y, 0.5, length_norm=True, **options)
    torch.testing.assert_close(divided, plain / total)
    for weights, value in ((1 / total, plain), (torch.ones_like(plain), divided)):
        gradient = torch.autograd.grad(value, x, weights.to(value), retain_graph=True)[0]
        torch.testing.assert_close(gradient, torch.autograd.grad((plain / total).sum(), x, retain_graph=True)[0])
    costs = torch.cdist(x, y).detach()
    actual = soft_dtw_from_cost(costs, 0.5, length_norm=True, **options)
    torch.testing.assert_close(actual, soft_dtw_from_cost(costs, 0.5, **options) / total)
    assert soft_dtw(x[0], y[0], length_norm=True, kernel=kernel.name).shape == ()


def test_the_module_has_both(kernel):
    x, y = series(kernel.device)
    for options in (
        {"length_norm": True},
        {"open_ends": True},
        {"open_ends": True, "length_norm": True, "warp_penalty": 0.2},
    ):
        for gamma in (0.5, 0):
            actual = SoftDTW(gamma, reduction="none", **options)(x, y, **LENGTHS["lengths"])
            torch.testing.assert_close(actual, soft_dtw(x, y, gamma, **options, **LENGTHS["lengths"]))
    assert repr(SoftDTW(open_ends=True)).endswith("reduction=mean, open_ends=True)")


def test_open_ends_compile(kernel):
    torch._dynamo.reset()
    x, y = series(kernel.device, torch.float32)

    def loss(x, y):
        return soft_dtw(x, y, 0.5, open_ends=True, length_norm=True, warp_penalty=0.1, kernel=kernel.name).sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(torch.autograd.grad(compiled(x, y), (x, y)), torch.autograd.grad(loss(x, y), (x, y)))


@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize(
    ("n", "m", "dim", "cost", "gamma"), [(17, 138, 2, "sqeuclidean", 0.008), (7, 452, 3, "cosine", 0.02)]
)
def test_a_penalty_in_float32_cancels_where_the_rest_of_y_is_left_out(kernel, n, m, dim, cost, gamma, as_tensor):
    x, y = normal(4, n, dim, seed=1, dtype=torch.float32), normal(4, m, dim, seed=2, dtype=torch.float32)
    y[:, 40 : 40 + n] = x  # so that the value is small
    penalty = torch.tensor(10.1) if as_tensor else 10.1
    options = dict(cost=cost, warp_penalty=penalty, y_lengths=[m, m - 1, m - 40, m // 2], open_ends=True)
    expected = soft_dtw(x.double(), y.double(), gamma, **options)
    x.requires_grad_()
    actual = soft_dtw(x.to(kernel.device), y.to(kernel.device), gamma, kernel=kernel.name, **options)
    assert actual.dtype == torch.float32
    assert_values_close(numpy64(actual), numpy64(expected), torch.float32, gamma)
    (gradient,) = torch.autograd.grad(actual.sum(), x)
    assert gradient.dtype == torch.float32 and gradient.isfinite().all()
