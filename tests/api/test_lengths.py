"""Per-pair lengths and bands inside a padded batch."""

import numpy as np
import pytest
import torch
from cases import COSTS, assert_gradients_close, assert_values_close, normal, run, run_from_cost

from torchsoftdtw import soft_dtw

X_LENGTHS, Y_LENGTHS = [70, 1, 33, 64], [5, 90, 40, 64]


def padded_with(value, series, lengths):
    series = series.clone()
    for row, length in zip(series, lengths, strict=True):
        row[length:] = value
    return series


def square_root_cost(x, y):
    return (x.unsqueeze(2) - y.unsqueeze(1)).square().sum(3).sqrt()


def angle_cost(x, y):
    return 1 - torch.nn.functional.normalize(x, dim=2, eps=0) @ torch.nn.functional.normalize(y, dim=2, eps=0).transpose(
        1, 2
    )


@pytest.mark.parametrize("padding", [0.0, 1e30, float("inf"), float("nan")])
@pytest.mark.parametrize("cost", [*COSTS, square_root_cost, angle_cost])
def test_padding_gets_zero_gradient_even_when_nan(template, cost, padding):
    x, y = normal(4, 70, 3, seed=1, dtype=torch.float32), normal(4, 90, 3, seed=2, dtype=torch.float32)
    options = dict(cost=cost, x_lengths=X_LENGTHS, y_lengths=Y_LENGTHS)
    clean = run(template, x, y, **options)
    spoiled = run(template, padded_with(padding, x, X_LENGTHS), padded_with(padding, y, Y_LENGTHS), **options)
    assert np.all(np.isfinite(clean[0]))
    for before, after in zip(clean, spoiled, strict=True):
        np.testing.assert_array_equal(before, after)
    for gradient, lengths in ((spoiled[1], X_LENGTHS), (spoiled[2], Y_LENGTHS)):
        for row, length in zip(gradient, lengths, strict=True):
            assert np.all(row[length:] == 0) and np.any(row[:length] != 0)


@pytest.mark.parametrize("padding", [0.0, float("inf"), float("nan")])
def test_padding_of_cost_matrices_gets_zero_gradient_even_when_nan(template, padding):
    costs = normal(4, 70, 90, seed=1, dtype=torch.float32).square()
    spoiled = costs.clone()
    for matrix, n, m in zip(spoiled, X_LENGTHS, Y_LENGTHS, strict=True):
        matrix[n:], matrix[:, m:] = padding, padding
    options = dict(x_lengths=X_LENGTHS, y_lengths=Y_LENGTHS)
    clean, actual = run_from_cost(template, costs, **options), run_from_cost(template, spoiled, **options)
    np.testing.assert_array_equal(clean[0], actual[0])
    np.testing.assert_array_equal(clean[1], actual[1])
    for gradient, n, m in zip(actual[1], X_LENGTHS, Y_LENGTHS, strict=True):
        assert not gradient[n:].any() and not gradient[:, m:].any()


@pytest.mark.parametrize("bandwidth", [None, 4, [0, 9, 2, 70]], ids=str)
@pytest.mark.parametrize("cost", COSTS)
def test_padded_pairs_equal_the_unpadded_ones(template, cost, bandwidth):
    x, y = normal(4, 70, 3, seed=1, dtype=torch.float32), normal(4, 90, 3, seed=2, dtype=torch.float32)
    value, grad_x, grad_y = run(template, x, y, cost=cost, x_lengths=X_LENGTHS, y_lengths=Y_LENGTHS, bandwidth=bandwidth)
    for b, (n, m) in enumerate(zip(X_LENGTHS, Y_LENGTHS, strict=True)):
        radius = bandwidth[b] if isinstance(bandwidth, list) else bandwidth
        alone = run(template, x[b : b + 1, :n], y[b : b + 1, :m], cost=cost, bandwidth=radius)
        assert_values_close(value[b : b + 1], alone[0], torch.float32, 1.0)
        assert_gradients_close(grad_x[b : b + 1, :n], alone[1], torch.float32)
        assert_gradients_close(grad_y[b : b + 1, :m], alone[2], torch.float32)


@pytest.mark.parametrize(
    "form",
    [
        list,
        tuple,
        np.array,
        torch.tensor,
        lambda lengths: np.array(lengths, dtype=np.int32),
        lambda lengths: torch.tensor(lengths, dtype=torch.uint8),
        lambda lengths: torch.tensor([lengths, lengths]).t()[:, 0],
    ],
    ids=["list", "tuple", "array", "tensor", "int32_array", "uint8_tensor", "strided_tensor"],
)
def test_lengths_in_any_form(kernel, form):
    x, y = normal(3, 7, 1, seed=1).to(kernel.device), normal(3, 6, 1, seed=2).to(kernel.device)
    options = dict(kernel=kernel.name)
    expected = soft_dtw(x, y, x_lengths=[7, 2, 1], y_lengths=[1, 6, 3], bandwidth=[1, 0, 5], **options)
    actual = soft_dtw(x, y, x_lengths=form([7, 2, 1]), y_lengths=form([1, 6, 3]), bandwidth=form([1, 0, 5]), **options)
    assert torch.equal(actual, expected)


def test_lengths_of_a_pair_without_a_batch(kernel):
    x, y = normal(7, 2, seed=1).to(kernel.device), normal(6, 2, seed=2).to(kernel.device)
    expected = soft_dtw(x[:4], y[:3], kernel=kernel.name)
    for form in (lambda n: n, lambda n: [n], torch.tensor, np.int64):
        value = soft_dtw(x, y, x_lengths=form(4), y_lengths=form(3), kernel=kernel.name)
        assert value.shape == ()
        torch.testing.assert_close(value, expected)


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["diagonal", "stencil", "tiled"])
@pytest.mark.parametrize("wrong", [0, -3, 8, 2**40])
def test_a_wrong_length_on_the_device_gives_nan_for_its_pair_alone(name, wrong):
    x, y = normal(3, 7, 1, seed=1).cuda().requires_grad_(), normal(3, 6, 1, seed=2).cuda()
    value = soft_dtw(x, y, x_lengths=torch.tensor([7, wrong, 7], device="cuda"), kernel=name)
    expected = soft_dtw(x, y, kernel=name)
    assert value[1].isnan()
    torch.testing.assert_close(value[::2], expected[::2])
    (gradient,) = torch.autograd.grad(value[::2].sum(), x)
    torch.testing.assert_close(gradient[::2], torch.autograd.grad(expected[::2].sum(), x)[0][::2])


def test_a_band_as_wide_as_the_table_is_no_band(kernel):
    x, y = normal(2, 30, 2, seed=1), normal(2, 41, 2, seed=2)
    plain = run(kernel, x, y)
    for bandwidth in (41, 10**9, 10**30, [41, 2**31]):
        for before, after in zip(plain, run(kernel, x, y, bandwidth=bandwidth), strict=True):
            np.testing.assert_allclose(before, after, rtol=1e-10, atol=1e-12)


def test_a_band_of_zero_between_equal_lengths_is_the_diagonal(kernel):
    x, y = normal(2, 50, 2, seed=1), normal(2, 50, 2, seed=2)
    value, grad_x, _ = run(kernel, x, y, bandwidth=0)
    np.testing.assert_allclose(value, (x - y).square().sum((1, 2)), rtol=1e-12)
    np.testing.assert_allclose(grad_x, 2 * (x - y), rtol=1e-12)


def test_swapping_x_and_y_swaps_the_gradients(kernel):
    x, y = normal(2, 30, 2, seed=1), normal(2, 41, 2, seed=2)
    for bandwidth in (None, 0, 3, [1, 8]):
        value, grad_x, grad_y = run(kernel, x, y, bandwidth=bandwidth, warp_penalty=0.3)
        swapped = run(kernel, y, x, bandwidth=bandwidth, warp_penalty=0.3)
        np.testing.assert_allclose(value, swapped[0], rtol=1e-11)
        np.testing.assert_allclose(grad_x, swapped[2], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(grad_y, swapped[1], rtol=1e-9, atol=1e-10)
