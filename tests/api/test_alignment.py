"""soft_dtw_alignment: the alignment against the oracle, its range at every gamma, and what it promises about its shape."""

import numpy as np
import oracle
import pytest
import torch
from cases import COSTS, GRADIENT_TOLERANCE, assert_values_close, normal, numpy64

from torchsoftdtw import soft_dtw, soft_dtw_alignment, soft_dtw_from_cost

LENGTHS = {"full": {}, "lengths": {"x_lengths": [37, 1, 20], "y_lengths": [5, 45, 24]}}
BANDS = {"no_band": None, "band": 6, "bands": [0, 3, 50]}


def oracle_alignments(x, y, gamma, cost, x_lengths=None, y_lengths=None, bandwidth=None, warp_penalty=0.0):
    batch, n, m = len(x), x.shape[1], y.shape[1]
    values, alignments = np.empty(batch), np.zeros((batch, n, m))
    for b in range(batch):
        rows, columns = n if x_lengths is None else x_lengths[b], m if y_lengths is None else y_lengths[b]
        radius = bandwidth[b] if isinstance(bandwidth, list) else bandwidth
        costs, _, _ = oracle.cost_and_slopes(x[b, :rows], y[b, :columns], cost)
        values[b], alignments[b, :rows, :columns] = oracle.value_and_alignment(costs, gamma, radius, warp_penalty)
    return values, alignments


@pytest.mark.parametrize("penalty", [0.0, 0.7], ids=["", "penalty"])
@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_values_and_alignments_agree_with_the_oracle(kernel, dtype, cost, lengths, band, penalty):
    x, y = normal(3, 37, 3, seed=1, dtype=dtype), normal(3, 45, 3, seed=2, dtype=dtype)
    options = dict(cost=cost, bandwidth=BANDS[band], warp_penalty=penalty, **LENGTHS[lengths])
    expected = oracle_alignments(numpy64(x), numpy64(y), 0.6, **options)
    value, alignment = soft_dtw_alignment(x.to(kernel.device), y.to(kernel.device), 0.6, kernel=kernel.name, **options)
    computed = torch.float64 if dtype == torch.float64 else torch.float32
    assert value.dtype == alignment.dtype == computed
    assert_values_close(numpy64(value), expected[0], computed, 0.6)
    np.testing.assert_allclose(numpy64(alignment), expected[1], rtol=0, atol=GRADIENT_TOLERANCE[computed])


@pytest.mark.parametrize("gamma", [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_entries_are_probabilities_at_any_gamma(kernel, dtype, gamma):
    x, y = (normal(2, 256, 80, seed=s, dtype=dtype).to(kernel.device) for s in (1, 2))
    value, alignment = soft_dtw_alignment(x, y, gamma, kernel=kernel.name)
    assert value.isfinite().all()
    assert alignment.min() >= 0 and alignment.max() <= 1
    rounding = 1e-9 if dtype == torch.float64 else 1e-4
    for dim in (1, 2):
        assert alignment.sum(dim).min() >= 1 - rounding
    torch.testing.assert_close(alignment[:, [0, -1], [0, -1]], torch.ones_like(alignment[:, :2, 0]), rtol=0, atol=rounding)


@pytest.mark.parametrize("gamma", [1e-4, 1e-2, 1.0, 1e3])
def test_float32_alignments_are_those_of_their_costs(kernel, gamma):
    """Beside the exact alignment: 1e-4 and 20 times what rounding the costs to float32 changes, at 256 x 256, D = 80."""
    x, y = (normal(1, 256, 80, seed=s, dtype=torch.float32) for s in (1, 2))
    costs, _, _ = oracle.cost_and_slopes(numpy64(x[0]), numpy64(y[0]), "sqeuclidean")
    _, exact = oracle.value_and_alignment(costs, gamma)
    _, rounded = oracle.value_and_alignment(costs.astype(np.float32).astype(np.float64), gamma)
    _, alignment = soft_dtw_alignment(x.to(kernel.device), y.to(kernel.device), gamma, kernel=kernel.name)
    allowed = 1e-4 + 20 * np.abs(rounded - exact).max()
    assert np.abs(numpy64(alignment[0]) - exact).max() <= allowed


def test_series_gradients_are_those_of_soft_dtw(kernel):
    for cost in COSTS:
        x = normal(2, 9, 3, seed=1).to(kernel.device).requires_grad_()
        y = normal(2, 7, 3, seed=2).to(kernel.device).requires_grad_()
        options = dict(cost=cost, x_lengths=[9, 4], bandwidth=3, kernel=kernel.name)
        value, _ = soft_dtw_alignment(x, y, 0.3, **options)
        expected = soft_dtw(x, y, 0.3, **options)
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(
            torch.autograd.grad(value.sum(), (x, y)), torch.autograd.grad(expected.sum(), (x, y)), rtol=1e-9, atol=1e-9
        )


def test_the_alignment_is_the_gradient_of_a_cost_matrix(kernel):
    x, y = normal(2, 9, 3, seed=1).to(kernel.device), normal(2, 7, 3, seed=2).to(kernel.device)
    costs = (x.unsqueeze(2) - y.unsqueeze(1)).square().sum(3).requires_grad_()
    (expected,) = torch.autograd.grad(soft_dtw_from_cost(costs, 0.3, kernel=kernel.name).sum(), costs)
    torch.testing.assert_close(soft_dtw_alignment(x, y, 0.3, kernel=kernel.name)[1], expected, rtol=1e-10, atol=1e-12)


def test_padding_is_zero_and_gets_no_gradient_even_when_nan(kernel):
    for cost in COSTS:
        x = normal(2, 9, 3, seed=1)
        y = normal(2, 7, 3, seed=2)
        x[1, 4:], y[0, 5:] = float("nan"), float("nan")
        x, y = x.to(kernel.device).requires_grad_(), y.to(kernel.device).requires_grad_()
        _, alignment = soft_dtw_alignment(x, y, cost=cost, x_lengths=[9, 4], y_lengths=[5, 7], kernel=kernel.name)
        assert not alignment[1, 4:].any() and not alignment[0, :, 5:].any()
        weights = normal(2, 9, 7, seed=3).to(kernel.device)
        for gradient in torch.autograd.grad((alignment * weights).sum(), (x, y)):
            assert gradient.isfinite().all()
        assert not gradient[0, 5:].any() and gradient[0, :5].any()


def test_a_bad_number_spoils_its_pair_alone(kernel):
    x, y = normal(3, 9, 2, seed=1).to(kernel.device), normal(3, 7, 2, seed=2).to(kernel.device)
    weights = normal(3, 9, 7, seed=3).to(kernel.device)

    def run(x):
        x = x.clone().requires_grad_()
        value, alignment = soft_dtw_alignment(x, y, kernel=kernel.name)
        return value, alignment, torch.autograd.grad((alignment * weights).sum(), x)[0]

    clean = run(x)
    x[1, 3, 0] = float("nan")
    for before, after in zip(clean, run(x), strict=True):
        assert torch.equal(before[[0, 2]], after[[0, 2]])
        assert not after[1].isfinite().all()


def test_a_pair_without_a_batch(kernel):
    x, y = normal(6, 2, seed=1).to(kernel.device), normal(5, 2, seed=2).to(kernel.device)
    value, alignment = soft_dtw_alignment(x, y, x_lengths=4, bandwidth=2, kernel=kernel.name)
    assert value.shape == () and alignment.shape == (6, 5)
    batched = soft_dtw_alignment(x[None], y[None], x_lengths=[4], bandwidth=2, kernel=kernel.name)
    assert torch.equal(value, batched[0][0]) and torch.equal(alignment, batched[1][0])


def test_an_empty_batch(kernel):
    x, y = torch.zeros(0, 6, 2, device=kernel.device, requires_grad=True), torch.zeros(0, 5, 2, device=kernel.device)
    value, alignment = soft_dtw_alignment(x, y, kernel=kernel.name)
    assert value.shape == (0,) and alignment.shape == (0, 6, 5)
    (gradient,) = torch.autograd.grad(alignment.sum(), x)
    assert gradient.shape == x.shape


def test_half_precision_gradients_come_back_in_half_precision(kernel):
    x = normal(2, 9, 3, seed=1, dtype=torch.float16).to(kernel.device).requires_grad_()
    y = normal(2, 7, 3, seed=2, dtype=torch.float16).to(kernel.device)
    with torch.autocast(kernel.device, dtype=torch.bfloat16):
        _, alignment = soft_dtw_alignment(x, y, kernel=kernel.name)
        (gradient,) = torch.autograd.grad(alignment.square().sum(), x)
    assert alignment.dtype == torch.float32 and gradient.dtype == torch.float16
    wide = x.detach().double().requires_grad_()
    (expected,) = torch.autograd.grad(soft_dtw_alignment(wide, y.double())[1].square().sum(), wide)
    assert (gradient - expected).abs().max() <= 2e-3 * expected.abs().max()
