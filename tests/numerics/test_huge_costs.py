"""Costs far beyond the sum of all others: large numbers in the place of inf, that every path goes round, and those that
every path has to cross. The oracle holds R in float64, so it is exact where no path of any weight meets one.
"""

from functools import cache

import numpy as np
import oracle
import pytest
import torch
from cases import assert_gradients_close, assert_values_close, normal, numpy64, run, run_from_cost

GAMMA = 0.1
N, M = 140, 150
MASKS = [1e6, 1e12, 1e16, 1e20, 1e31, 3e38, np.inf, "jumps"]
LARGEST = np.finfo(np.float32).max


def corridor(right, down):
    """Cells around a path that goes so many columns to the right and so many rows down, in turn."""
    inside = np.zeros((N, M), bool)
    i = j = 0
    while (i, j) != (N - 1, M - 1):
        for rows, columns in ((0, right), (down, 0)):
            to_i, to_j = min(i + rows, N - 1), min(j + columns, M - 1)
            inside[i : to_i + 2, j : to_j + 2] = True
            i, j = to_i, to_j
    return inside


def gates(gate, *lines):
    """All rows but these, which have a gate in one place."""
    inside = np.ones((N, M), bool)
    for line in lines:
        inside[line] = False
        inside[line, gate(line) : gate(line) + 2] = True
    return inside


AHEAD = np.arange(M) - np.arange(N)[:, None]
# Where paths may go: borders of masks above, below, to the left and to the right of them, at the edges of strips (64 and
# 128 rows), of lanes (2 and 4 rows) and of chunks (8 columns), and inside.
OPEN = {
    "band": np.abs(AHEAD) <= 10,
    "above": AHEAD >= 0,
    "below": AHEAD <= M - N,
    "gates_in_rows": gates(lambda row: row // 2, 63, 64, 65, 127, 128, 129),
    "gates_in_rows_at_the_left": gates(lambda row: row // 40, 63, 64, 65, 128),
    "gates_in_columns": corridor(M, 1) | ~gates(lambda row: 0, *range(30, 38)) | (np.arange(N)[:, None] > 100),
    "long_runs": corridor(53, 37),
    "short_runs": corridor(3, 5),
    "holes": (np.random.default_rng(1).random((N, M)) < 0.5) | (np.abs(AHEAD) < 6) | (AHEAD == M - N),
}


@cache
def masked(shape):
    """Costs with every mask, and the oracle's value and E."""
    costs = np.random.default_rng(1).random((N, M)).astype(np.float32)
    jumps = np.where(np.arange(N) % 2, 1e25, 1e10)[:, None]
    tables = [np.where(OPEN[shape], costs, jumps if mask == "jumps" else mask) for mask in MASKS]
    forbidden = np.where(OPEN[shape], costs.astype(np.float64), 1e300)
    return torch.tensor(np.array(tables)).float(), *oracle.value_and_alignment(forbidden, GAMMA)


@pytest.mark.parametrize("shape", OPEN)
def test_a_large_number_forbids_cells_as_inf_does(engine, shape):
    kernel, dtype = engine
    costs, expected_value, expected = masked(shape)
    assert expected_value < N + M
    value, alignment = run_from_cost(kernel, costs.to(dtype), GAMMA)
    assert_values_close(value, expected_value, dtype, GAMMA)
    assert np.abs(alignment - expected).max() <= (1e-4 if dtype == torch.float32 else 1e-9)


HEIGHTS = (1e7, 1e18)


@cache
def series_that_meet(dim, bandwidth):
    """Series with spikes. Paths of any weight match each with its like, and so go round the costs that it makes."""
    n, m = 131, 260 if dim == 1 else 150  # enough for tiled to sweep the table of one dimension from both ends
    x, y = normal(2, n, dim, seed=1), normal(2, m, dim, seed=2)
    for pair, height in enumerate(HEIGHTS):
        for row, column, factor in ((20, 30, 1), (63, 71, -1), (64, 72, 2), (127, m - 9, -2), (n - 1, m - 1, 1)):
            x[pair, row] += factor * height
            y[pair, column] += factor * height
    x, y = x.float(), y.float()
    return x, y, *oracle.soft_dtw(numpy64(x), numpy64(y), 1.0, bandwidth=bandwidth)


@pytest.mark.parametrize("bandwidth", [None, 40])
@pytest.mark.parametrize("dim", [1, 3, 20])
def test_spikes_that_match_leave_the_rest_as_it_is(template, dim, bandwidth):
    x, y, expected_value, *expected = series_that_meet(dim, bandwidth)
    value, *gradients = run(template, x, y, 1.0, bandwidth=bandwidth)
    assert_values_close(value, expected_value, torch.float32, 1.0)
    for series, gradient, wanted in zip((x, y), gradients, expected, strict=True):
        # What E is off by counts times a slope. Where sums of E y are taken from sums of E x, that is the steepest of all.
        differs = dim == 1 and template.name != "diagonal"
        steepest = np.abs(numpy64(series)) if differs else np.reshape(HEIGHTS, (2, 1, 1))
        assert np.all(np.abs(gradient - wanted) <= 2e-3 + 2e-6 * steepest)


@cache
def walls(gamma):
    """Rows and columns that every path has to cross, and the oracle's values."""
    heights = [1e6, 1e16, 1e29, 1e30, 1e35, 3e38, -1e6, -1e20, -1e35]
    costs = np.random.default_rng(1).random((len(heights), 70, 80)).astype(np.float32)
    for pair, height in enumerate(heights):
        costs[pair, 5 * pair + 2 : 5 * pair + 3] = height
        costs[pair, :, 7 * pair] = np.minimum(costs[pair, :, 7 * pair], height) if height < 0 else abs(height) / 3
    return torch.from_numpy(costs), oracle.soft_dtw_from_cost(costs.astype(np.float64), gamma)[0]


@pytest.mark.parametrize("gamma", [1e-30, 1e-3, 1.0, 1e30])
def test_costs_of_any_size_are_added(template, gamma):
    costs, expected = walls(gamma)
    value, alignment = run_from_cost(template, costs, gamma)
    fits = np.abs(expected) <= LARGEST
    assert fits.sum() > 5
    assert_values_close(value[fits], expected[fits], torch.float32, gamma)
    assert (value[~fits] == np.sign(expected[~fits]) * np.inf).all()
    assert np.isfinite(alignment[fits]).all()


@pytest.mark.parametrize("dim", [1, 3, 20])
@pytest.mark.parametrize("gamma", [1e-3, 1.0])
def test_huge_costs_of_series_are_right_or_infinite(template, gamma, dim):
    x, y = normal(5, 70, dim, seed=1), normal(5, 80, dim, seed=2)
    x[:, 23] += torch.tensor([1e8, 1e12, 1e16, 1e18, 1e25]).double().unsqueeze(1)
    x, y = x.float(), y.float()
    expected = oracle.soft_dtw(numpy64(x), numpy64(y), gamma)[0]
    value, *gradients = run(template, x, y, gamma)
    assert_values_close(value[:4], expected[:4], torch.float32, gamma)
    assert value[4] == np.inf
    assert all(np.isfinite(gradient[:4]).all() for gradient in gradients)


def test_nan_spoils_a_pair_whose_last_cell_nothing_else_reaches(template):
    costs = torch.rand(1, 75, 232, generator=torch.Generator().manual_seed(1))
    costs[0, 37, 114] = torch.nan
    value = run_from_cost(template, costs, 1.0, bandwidth=2)[0]
    assert np.isnan(value[0])


@cache
def euclidean_of_size(size, dim):
    """Series of a size, and the oracle's value and gradients for distances, which grow with it."""
    x, y = (normal(2, length, dim, seed=length, dtype=torch.float32) * size for length in (70, 90))
    return x, y, *oracle.soft_dtw(numpy64(x), numpy64(y), 1.0, cost="euclidean")


@pytest.mark.parametrize("size", [1e-30, 1e-20, 1e20, 1e30])
def test_distances_of_one_dimension_have_gradients_where_squares_are_beyond_float32(template, size):
    x, y, expected_value, *expected = euclidean_of_size(size, 1)
    value, *gradients = run(template, x, y, 1.0, cost="euclidean")
    assert_values_close(value, expected_value, torch.float32, 1.0)
    for gradient, wanted in zip(gradients, expected, strict=True):
        assert_gradients_close(gradient, wanted, torch.float32)


@pytest.mark.parametrize("size", [1e20, 1e30])
@pytest.mark.parametrize("dim", [2, 8, 12])
def test_distances_of_vectors_have_no_wrong_gradient_where_squares_are_infinite(template, dim, size):
    x, y, expected_value, *expected = euclidean_of_size(size, dim)
    value, *gradients = run(template, x, y, 1.0, cost="euclidean")
    assert_values_close(value, expected_value, torch.float32, 1.0)
    for gradient, wanted in zip(gradients, expected, strict=True):
        if template.name == "cpu" or not np.isnan(gradient).all():
            assert_gradients_close(gradient, wanted, torch.float32)
