"""Divergences: their three terms against sums over all paths, and what makes them divergences."""

import math

import oracle
import pytest
import torch
from cases import COSTS, DEVICES, normal
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from torchsoftdtw import SoftDTWDivergence, soft_dtw, soft_dtw_divergence
from torchsoftdtw._kernels import ops

KINDS = ["soft", "sharp", "mean"]
LENGTHS = {"full": {}, "lengths": {"x_lengths": [4, 1, 3], "y_lengths": [2, 5, 4]}}
BANDS = {"no_band": None, "band": 1, "bands": [0, 1, 9]}


def expected_divergence(x, y, gamma, kind, cost, x_lengths=None, y_lengths=None, bandwidth=None, warp_penalty=0.0):
    """By listing every path, as (B,) torch scalars that autograd differentiates."""

    def term(a, b, radius):
        costs = oracle.torch_costs(a, b, cost)
        if kind == "soft":
            return oracle.value_by_paths(costs, len(a), len(b), gamma, radius, warp_penalty)
        return oracle.expected_cost_by_paths(
            costs, len(a), len(b), gamma if kind == "sharp" else math.inf, radius, warp_penalty
        )

    values = []
    for b in range(len(x)):
        one = x[b, : x.shape[1] if x_lengths is None else x_lengths[b]]
        two = y[b, : y.shape[1] if y_lengths is None else y_lengths[b]]
        radius = bandwidth[b] if isinstance(bandwidth, list) else bandwidth
        values.append(term(one, two, radius) - (term(one, one, radius) + term(two, two, radius)) / 2)
    return torch.stack(values)


@pytest.mark.parametrize("penalty", [0.0, 0.7], ids=["", "penalty"])
@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_values_and_gradients_agree_with_sums_over_all_paths(kernel, dtype, kind, lengths, band, penalty):
    x, y = normal(3, 4, 2, seed=1, dtype=dtype), normal(3, 5, 2, seed=2, dtype=dtype)
    options = dict(kind=kind, bandwidth=BANDS[band], warp_penalty=penalty, **LENGTHS[lengths])
    here = [series.to(kernel.device).requires_grad_() for series in (x, y)]
    exact = [series.double().requires_grad_() for series in (x, y)]
    value = soft_dtw_divergence(*here, 0.6, kernel=kernel.name, **options)
    expected = expected_divergence(*exact, 0.6, cost="sqeuclidean", **options)
    rounding = 1e-9 if dtype == torch.float64 else 2e-5
    torch.testing.assert_close(value.double().cpu(), expected, rtol=rounding, atol=rounding)
    gradients, wanted = torch.autograd.grad(value.sum(), here), torch.autograd.grad(expected.sum(), exact)
    for gradient, truth in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(gradient.double().cpu(), truth, rtol=5 * rounding, atol=5 * rounding)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_cost(kernel, kind, cost):
    x, y = normal(2, 4, 3, seed=1), normal(2, 5, 3, seed=2)
    value = soft_dtw_divergence(x.to(kernel.device), y.to(kernel.device), 0.6, kind=kind, cost=cost, kernel=kernel.name)
    torch.testing.assert_close(value.cpu(), expected_divergence(x, y, 0.6, kind, cost), rtol=1e-8, atol=1e-8)
    called = soft_dtw_divergence(
        x.to(kernel.device),
        y.to(kernel.device),
        0.6,
        kind=kind,
        cost=lambda a, b: torch.stack([oracle.torch_costs(*pair, cost) for pair in zip(a, b, strict=True)]),
        kernel=kernel.name,
    )
    # A root has no digits below the square root of a rounding near 0.
    torch.testing.assert_close(called, value, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("device", DEVICES)
def test_first_and_second_derivatives_are_those_of_finite_differences(device, kind, cost, lengths):
    x = normal(3, 4, 2, seed=1).to(device).requires_grad_()
    y = normal(3, 5, 2, seed=2).to(device).requires_grad_()

    def divergence(x, y):
        return soft_dtw_divergence(x, y, 0.5, kind=kind, cost=cost, bandwidth=2, warp_penalty=0.3, **LENGTHS[lengths])

    assert gradcheck(divergence, (x, y), atol=1e-6, fast_mode=True)
    assert gradgradcheck(divergence, (x, y), atol=1e-6, fast_mode=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gamma", [1e-3, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16], ids=str)
def test_is_zero_at_itself(kernel, dtype, gamma, kind):
    x = normal(4, 60, 3, seed=1, dtype=dtype).to(kernel.device)
    terms = soft_dtw(x, x, gamma).abs().max().item() + 1
    # The mean over all paths visits every cell alike, some 90 of them, whatever gamma is.
    scale = terms if kind != "mean" else 90 * (x.unsqueeze(2) - x.unsqueeze(1)).double().square().sum(3).mean().item()
    epsilon = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    for options in ({}, {"bandwidth": 3}, {"x_lengths": [60, 7, 1, 30], "y_lengths": [60, 7, 1, 30]}):
        leaf = x.clone().requires_grad_()
        value = soft_dtw_divergence(leaf, x, gamma, kind=kind, kernel=kernel.name, **options)
        # Two launches, one that keeps something for a gradient and one that does not, may round differently.
        assert value.abs().max() <= 60 * epsilon * scale
        # x = y is where a divergence has its least value, so its slope is 0 there: that of the costs' rounding.
        (slope,) = torch.autograd.grad(value.sum(), leaf)
        assert slope.abs().max() <= max(1e3 * epsilon / min(gamma, 1), 2e-3 if dtype == torch.float16 else 0)


@pytest.mark.parametrize("kind", KINDS)
def test_swapping_x_and_y_swaps_the_gradients(kernel, kind):
    x = normal(3, 12, 2, seed=1).to(kernel.device).requires_grad_()
    y = normal(3, 9, 2, seed=2).to(kernel.device).requires_grad_()
    options = dict(kind=kind, warp_penalty=0.2, bandwidth=[1, 4, 20], kernel=kernel.name)
    there = soft_dtw_divergence(x, y, 0.4, x_lengths=[12, 5, 8], **options)
    back = soft_dtw_divergence(y, x, 0.4, y_lengths=[12, 5, 8], **options)
    torch.testing.assert_close(there, back, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(
        torch.autograd.grad(there.sum(), (x, y)), torch.autograd.grad(back.sum(), (x, y)), rtol=1e-8, atol=1e-9
    )


@given(
    kind=st.sampled_from(["soft", "mean"]),
    n=st.integers(1, 40),
    m=st.integers(1, 40),
    dim=st.sampled_from([1, 3]),
    gamma=st.sampled_from([1e-3, 0.1, 1.0, 30.0]),
    step=st.sampled_from([1e-3, 0.1, 1.0]),
    seed=st.integers(0, 1000),
)
def test_is_never_below_zero_for_squared_distances(kind, n, m, dim, gamma, step, seed):
    """To rounding: 1e-12 of the terms, in float64. y is x moved a little where the lengths allow it, or another series.

    The mean one has this property for equal lengths alone, where it is (x - y)' E (x - y) with one E for all three terms.
    """
    m = n if kind == "mean" else m
    x = normal(1, n, dim, seed=seed)
    y = normal(1, m, dim, seed=seed + 1)
    y = x + step * y if n == m else y
    value = soft_dtw_divergence(x, y, gamma, kind=kind)
    size = sum(
        soft_dtw(a, b, gamma).abs() + (a.unsqueeze(2) - b.unsqueeze(1)).square().mean() for a in (x, y) for b in (x, y)
    )
    assert value.item() >= -1e-12 * (n + m) * (size.item() + gamma)


def test_mean_and_sharp_divergences_of_unequal_lengths_fall_below_zero_for_some_series():
    """A property of theirs, not a mistake: so says the list of all paths."""
    x, y = torch.tensor([[[3.0], [-4.4], [-2.2], [0.8], [-1.4]]], dtype=torch.float64), torch.zeros(1, 1, 1).double()
    for kind in ("mean", "sharp"):
        value = soft_dtw_divergence(x, y, 1e3, kind=kind)
        assert value.item() < -0.1
        torch.testing.assert_close(value, expected_divergence(x, y, 1e3, kind, "sqeuclidean"))
    assert soft_dtw_divergence(x, y, 1e3).item() > 0


def test_terms_share_launches_and_keep_only_what_gradients_need(kernel, monkeypatch):
    x, y = normal(2, 5, 1, seed=1).to(kernel.device), normal(2, 4, 1, seed=2).to(kernel.device)
    launches = []
    forward = ops.forward
    monkeypatch.setattr(ops, "forward", lambda *inputs: launches.append((len(inputs[0]), inputs[-1])) or forward(*inputs))
    soft_dtw_divergence(x, y, kernel=kernel.name)
    assert launches == [(6, False)]
    launches.clear()
    soft_dtw_divergence(x.requires_grad_(), y, kernel=kernel.name).sum().backward()
    assert launches == [(4, True), (2, False)]
    launches.clear()
    soft_dtw_divergence(x, y.requires_grad_(), kernel=kernel.name)
    assert launches == [(6, True)]
    launches.clear()
    with torch.no_grad():
        soft_dtw_divergence(x, y, kernel=kernel.name)
    assert launches == [(6, False)]


@pytest.mark.parametrize("kind", KINDS)
def test_padding_gets_zero_gradient_even_when_nan(kernel, kind):
    x, y = normal(3, 9, 2, seed=1), normal(3, 12, 2, seed=2)
    lengths = dict(x_lengths=[9, 4, 6], y_lengths=[3, 12, 5])
    for b, (n, m) in enumerate(zip(*lengths.values(), strict=True)):
        x[b, n:], y[b, m:] = float("nan"), float("nan")
    x, y = x.to(kernel.device).requires_grad_(), y.to(kernel.device).requires_grad_()
    value = soft_dtw_divergence(x, y, 0.5, kind=kind, warp_penalty=0.1, kernel=kernel.name, **lengths)
    gradients = torch.autograd.grad(value.sum(), (x, y))
    for b, (n, m) in enumerate(zip(*lengths.values(), strict=True)):
        one, two = x[b, :n].detach().requires_grad_(), y[b, :m].detach().requires_grad_()
        alone = soft_dtw_divergence(one, two, 0.5, kind=kind, warp_penalty=0.1, kernel=kernel.name)
        torch.testing.assert_close(value[b], alone)
        for gradient, length, wanted in zip(gradients, (n, m), torch.autograd.grad(alone, (one, two)), strict=True):
            torch.testing.assert_close(gradient[b, :length], wanted)
            assert not gradient[b, length:].any()


def test_mean_cost_of_long_series_counts_paths_beyond_any_number(kernel):
    """The number of paths of 1500 x 1500 has over 1100 digits; every anti-diagonal still carries one path's worth."""
    x, y = normal(1, 1500, 1, seed=1).float(), normal(1, 1500, 1, seed=2).float()
    value = soft_dtw_divergence(x.to(kernel.device), y.to(kernel.device), kind="mean", kernel=kernel.name)
    exact = soft_dtw_divergence(x.double(), y.double(), kind="mean")
    torch.testing.assert_close(value.double().cpu(), exact, rtol=1e-3, atol=1e-3)
    near = soft_dtw_divergence(x[:, :40].double(), y[:, :40].double(), kind="mean")
    # Soft-DTW's own limit: V + gamma log(number of paths) is the mean cost, up to 1 / gamma.
    far = soft_dtw_divergence(x[:, :40].double(), y[:, :40].double(), 1e8)
    torch.testing.assert_close(near, far, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_module(kernel, kind):
    x, y = normal(4, 6, 2, seed=1).to(kernel.device), normal(4, 5, 2, seed=2).to(kernel.device)
    options = dict(cost="cityblock", bandwidth=2, warp_penalty=0.3)
    lengths = dict(x_lengths=[6, 1, 2, 3], y_lengths=[5, 4, 3, 2])
    value = soft_dtw_divergence(x, y, 0.2, kind=kind, **options, **lengths)
    assert torch.equal(SoftDTWDivergence(0.2, kind=kind, reduction="none", **options)(x, y, **lengths), value)
    assert torch.equal(SoftDTWDivergence(0.2, kind=kind, reduction="sum", **options)(x, y, **lengths), value.sum())
    assert torch.equal(SoftDTWDivergence(0.2, kind=kind, **options)(x, y, **lengths), value.mean())


def test_repr_tells_the_options():
    expected = "SoftDTWDivergence(kind=sharp, gamma=0.5, cost=euclidean, bandwidth=3, warp_penalty=0, reduction=sum)"
    assert repr(SoftDTWDivergence(0.5, kind="sharp", cost="euclidean", bandwidth=3, reduction="sum")) == expected


def test_a_pair_without_a_batch_and_an_empty_batch(kernel):
    x, y = normal(6, 2, seed=1).to(kernel.device), normal(5, 2, seed=2).to(kernel.device)
    for kind in KINDS:
        value = soft_dtw_divergence(x, y, kind=kind, x_lengths=4, kernel=kernel.name)
        assert value.shape == ()
        torch.testing.assert_close(value, soft_dtw_divergence(x[None, :4], y[None], kind=kind)[0])
        assert soft_dtw_divergence(x[None][:0], y[None][:0], kind=kind, kernel=kernel.name).shape == (0,)
