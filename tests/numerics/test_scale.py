"""Many pairs, and long ones."""

import numpy as np
import oracle
import pytest
import torch
from cases import assert_gradients_close, assert_values_close, normal, numpy64, run

from torchsoftdtw import soft_dtw

soft_dtw_alignment = pytest.importorskip("tslearn.metrics").soft_dtw_alignment

pytestmark = pytest.mark.long


def test_seventy_thousand_pairs(template):
    count = 70_000
    x, y = normal(count, 3, 1, seed=1, dtype=torch.float32), normal(count, 4, 1, seed=2, dtype=torch.float32)
    lengths = torch.arange(count) % 3 + 1
    value, grad_x, grad_y = run(template, x, y, x_lengths=lengths)
    some = [0, 1, 2, 32_767, 32_768, 65_534, 65_535, 65_536, 65_537, 69_999]
    expected = oracle.soft_dtw(numpy64(x[some]), numpy64(y[some]), 1.0, x_lengths=lengths[some])
    assert_values_close(value[some], expected[0], torch.float32, 1.0)
    assert_gradients_close(grad_x[some], expected[1], torch.float32)
    assert_gradients_close(grad_y[some], expected[2], torch.float32)
    # And every pair against itself in a batch that is 100 times smaller.
    parts = [run(template, *part) for part in zip(x.split(700), y.split(700), strict=True)][:3]
    for b, part in enumerate(parts):
        full = lengths[700 * b : 700 * (b + 1)].numpy() == 3
        np.testing.assert_allclose(value[700 * b : 700 * (b + 1)][full], part[0][full], rtol=1e-6, atol=1e-6)


def tslearn_value_and_gradients(x, y, gamma):
    """Squared euclidean cost: dx_i = 2 (x_i sum_j E - sum_j E y_j)."""
    alignment, value = soft_dtw_alignment(x, y, gamma=gamma)
    grad_x = 2 * (x * alignment.sum(1)[:, None] - alignment @ y)
    grad_y = 2 * (y * alignment.sum(0)[:, None] - alignment.T @ x)
    return np.array([value]), grad_x[None], grad_y[None]


@pytest.mark.parametrize(("n", "m"), [(3000, 5000), (20_000, 200), (150, 20_000)])
def test_long_series_agree_with_tslearn(kernel, n, m):
    x, y = normal(1, n, 1, seed=1, dtype=torch.float32), normal(1, m, 1, seed=2, dtype=torch.float32)
    expected = tslearn_value_and_gradients(numpy64(x[0]), numpy64(y[0]), 1.0)
    value, grad_x, grad_y = run(kernel, x, y)
    assert_values_close(value, expected[0], torch.float32, 1.0)
    # float32 tables of this length are held to 1e-4 of the largest gradient, as E is to 1e-4 of its largest value, 1.
    for actual, wanted in ((grad_x, expected[1]), (grad_y, expected[2])):
        assert np.abs(actual - wanted).max() <= 1e-4 * np.abs(wanted).max()


@pytest.mark.parametrize("gamma", [1.0, 0.01])
def test_length_5000_under_a_band(kernel, gamma):
    x, y = normal(2, 5000, 1, seed=1, dtype=torch.float32), normal(2, 5000, 1, seed=2, dtype=torch.float32)
    expected = [
        oracle.value_by_diagonals(*map(numpy64, pair), gamma, 60) for pair in zip(x[:, :, 0], y[:, :, 0], strict=True)
    ]
    value, grad_x, grad_y = run(kernel, x, y, gamma, bandwidth=60)
    assert_values_close(value, np.array(expected), torch.float32, gamma)
    # Moving both series leaves every cost as it is, so the gradients cancel.
    assert np.abs((grad_x.sum(1) + grad_y.sum(1)) / np.abs(grad_x).sum(1)).max() < 1e-5


def test_length_20000_under_a_band(kernel):
    x, y = normal(1, 20_000, 1, seed=1, dtype=torch.float32), normal(1, 19_990, 1, seed=2, dtype=torch.float32)
    expected = oracle.value_by_diagonals(numpy64(x[0, :, 0]), numpy64(y[0, :, 0]), 1.0, 40)
    value, grad_x, _ = run(kernel, x, y, bandwidth=40)
    assert_values_close(value, np.array([expected]), torch.float32, 1.0)
    assert np.isfinite(grad_x).all()


def test_length_20000_forward(kernel):
    x, y = normal(1, 20_000, 1, seed=1, dtype=torch.float32), normal(1, 20_000, 1, seed=2, dtype=torch.float32)
    x, y = x.to(kernel.device), y.to(kernel.device)
    value, swapped = soft_dtw(x, y, gamma=1.0, kernel=kernel.name), soft_dtw(y, x, gamma=1.0, kernel=kernel.name)
    assert value.item() == pytest.approx(swapped.item(), rel=1e-5)
    banded = soft_dtw(x, y, gamma=1.0, bandwidth=2000, kernel=kernel.name).item()
    assert value.item() <= banded + 1e-5 * abs(banded)


def test_the_oracle_by_diagonals_is_the_oracle():
    x, y = numpy64(normal(40, seed=1)), numpy64(normal(47, seed=2))
    for band in (0, 1, 5, 60):
        expected = oracle.soft_dtw(x[None, :, None], y[None, :, None], 0.5, bandwidth=band)[0][0]
        assert oracle.value_by_diagonals(x, y, 0.5, band) == pytest.approx(expected, rel=1e-12)
