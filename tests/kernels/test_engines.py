"""The engines of stencil and tiled: where either could lose a number.

The cases make the table rise and fall so fast that an exponent which several cells share could not hold them. In tiled the
extended range computes all of them, in stencil those that the level and integer log2 give up.

The bounds are those of test_accuracy in float32. In float64, E may be off by the oracle's own roundings of numbers as large
as the value.
"""

from functools import cache
from math import inf, log, nan
from typing import NamedTuple

import numpy as np
import oracle
import pytest
import torch
from cases import VALUE_TOLERANCE, normal, numpy64, run, run_from_cost

from torchsoftdtw import soft_dtw, soft_dtw_from_cost

NO_PATH = 1e300  # stands for an infinite cost in the oracle, which would subtract infinities
GAMMAS = (1e-4, 1e-3, 0.01, 0.1, 0.3, 1.0, 10.0, 1e3)
BORDER = tuple(1 / (log(2) * height) for height in (60, 118, 122, 236, 244, 1000))  # for costs of 1


class Case(NamedTuple):
    """A batch: series x and y, or cost matrices (y is None), all numbers of which are float32."""

    x: torch.Tensor
    y: torch.Tensor | None
    gammas: tuple
    options: dict = {}  # noqa: RUF012


def noise(*shape, seed=1):
    return normal(*shape, seed=seed)


def flat(*runs):
    """(1, N, 1): runs of (length, level), one after the other."""
    return torch.cat([torch.full((length,), float(level)) for length, level in runs]).double().view(1, -1, 1)


def with_spike(series, at, height):
    series = series.clone()
    series[:, at] += height
    return series


def in_runs(n, length, seed):
    return noise(1, n // length + 1, 1, seed=seed).repeat_interleave(length, 1)[:, :n]


def growing(batch, n, m, dim=1, seed=1):
    """Noise whose amplitude grows from pair to pair: at most gammas some pairs have costs out of range, others not."""
    scale = torch.linspace(0.5, 2, batch).view(-1, 1, 1)
    return noise(batch, n, dim, seed=seed) * scale, noise(batch, m, dim, seed=seed + 50) * scale


def matrix_along(n, m, *edges):
    """Costs of 0 along some of the table's edges, and of 1 elsewhere."""
    costs = torch.ones(1, n, m).double()
    for edge in edges:
        {"top": costs[:, 0], "bottom": costs[:, -1], "left": costs[:, :, 0], "right": costs[:, :, -1]}[edge].fill_(0)
    return costs


def staircase(n, m, run):
    """Costs of 0 on a path of long straight runs, and of 1 elsewhere."""
    costs = torch.ones(1, n, m).double()
    i = j = 0
    while i < n and j < m:
        costs[0, i, j : j + run] = 0
        j = min(j + run, m) - 1
        costs[0, i : i + run, j] = 0
        i, j = i + run - 1, j + (j < m - 1)
    costs[0, i - run + 1 :, -1] = 0
    return costs


def with_holes(costs, share):
    holes = torch.rand(costs.shape, generator=torch.Generator().manual_seed(7)) < share
    n, m = costs.shape[1:]
    i = torch.arange(max(n, m))
    holes[:, i.clamp(max=n - 1), i.clamp(max=m - 1)] = False  # a path remains
    return costs.masked_fill(holes, inf)


def level(exponent):
    """The difference of two numbers whose cost is a factor of 2^-exponent at gamma 1."""
    return (exponent * log(2)) ** 0.5


def last_column_rises(n, m, exponent):
    """Every column but the last falls from row to row, by so many binary orders."""
    return Case(flat((n, 0)), flat((m - 1, level(exponent)), (1, 1)), (1.0,))


def edge_rises(rows, exponent):
    """The path leaves a strip of so many rows in its first columns, where the table is far below that of the later ones."""
    return Case(flat((rows, level(exponent)), (rows + 40, 0)), flat((12, 0), (12, level(exponent))), (1.0,))


def around(n, m, column, exponent):
    """A matrix of which two ways through cost nothing: down the first column and along the last row, or along the first row
    and down `column`, all within a column far below what is left of it. Any other cell costs exponents of 2.
    """
    costs = torch.full((1, n, m), exponent * log(2), dtype=torch.float64)
    costs[:, :, 0] = costs[:, :, column] = costs[:, -1] = costs[:, 0, :column] = 0
    return costs.float().double()


def penalised(penalty, bandwidth):
    options = {"warp_penalty": penalty, "bandwidth": bandwidth}
    return Case(*growing(3, 75, 70), (0.02, 0.3, 1.0), options)


def two_corridors(n, m, dim):
    """Series whose likely paths go along the table's left and lower edges, and as many along the upper and right ones.

    In the strips between, E counts at both ends and nowhere else.
    """
    x, y = (flat((1, side), (length - 2, 3 - side), (1, side)) for length, side in ((n, 3), (m, 0)))
    return Case(x.expand(-1, -1, dim), y.expand(-1, -1, dim), (0.3, 1.0))


STRADDLE = (0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 1.0)
RISE = flat((3, 4), (37, 0))
CASES = {
    "noise": lambda: Case(noise(1, 120, 1), noise(1, 110, 1, seed=2), GAMMAS),
    "straddling": lambda: Case(*growing(8, 70, 66), STRADDLE),
    "straddling_in_two_dimensions": lambda: Case(*growing(6, 70, 40, 2), (0.1, 0.15, 0.2, 0.3, 0.6)),
    "straddling_ragged": lambda: Case(
        *growing(6, 140, 130),
        (0.2, 0.3, 1.0),
        {"x_lengths": [1, 140, 64, 65, 33, 129], "y_lengths": [130, 2, 130, 9, 31, 77]},
    ),
    "rows_rise": lambda: Case(flat((600, 0)), RISE, (0.1, 0.19, 0.3, 1.0)),
    "columns_rise": lambda: Case(RISE, flat((600, 0)), (0.1, 0.19, 0.3, 1.0)),
    "rows_rise_slowly": lambda: Case(0.1 * noise(1, 300, 1), torch.linspace(6, 0, 40).double().view(1, -1, 1), STRADDLE),
    "rows_rise_over_many_blocks": lambda: Case(flat((1100, 0)), flat((9, 4), (20, 0)), (0.2, 1.0)),
    # The table falls by more than 2^24 units of m within a few columns, though no single cost is large.
    "falls_fast": lambda: Case(flat((1300, 0)), torch.linspace(6, 0, 40).float().double().view(1, -1, 1), (0.002, 0.004)),
    "columns_fall_fast": lambda: Case(
        torch.linspace(6, 0, 40).float().double().view(1, -1, 1), flat((1300, 0)), (0.002, 0.004)
    ),
    # By 2^19 to 2^22 within a chunk, on either side of what the plain sweep bears (is_exact).
    "falls": lambda: Case(
        flat((1300, 0)), torch.linspace(6, 0, 40).float().double().view(1, -1, 1), (0.007, 0.01, 0.015, 0.02, 0.04)
    ),
    # The lane above a row is far above it until both are worth the same: it must not have been left out (shift_of).
    "two_ways_around": lambda: Case(torch.cat([around(101, 60, column, 60000) for column in range(26, 44)]), None, (1.0,)),
    # Every cost is just below or above half a unit of m, so that fractions add up along every path.
    "half_units": lambda: Case(
        torch.stack([torch.full((640, 60), share * log(2)) for share in (0.4999, 0.501)]).float().double(), None, (1.0,)
    ),
    "half_units_of_long_rows": lambda: Case(
        torch.stack([torch.full((60, 640), share * log(2)) for share in (0.4999, 0.501)]).float().double(), None, (1.0,)
    ),
    "two_rows_that_change_places": lambda: Case(flat((1, 0), (1, 5)), flat((100, 5), (100, 0)), GAMMAS),
    "two_rows_swapped": lambda: Case(flat((1, 5), (1, 0)), flat((100, 5), (100, 0)), GAMMAS),
    "two_columns_that_change_places": lambda: Case(flat((100, 5), (100, 0)), flat((1, 0), (1, 5)), GAMMAS),
    "levels_in_opposite_order": lambda: Case(flat((70, 0), (70, 5)), flat((70, 5), (70, 0)), (0.01, 0.25, 0.31, 1.0)),
    "alternating_rows": lambda: Case(flat(*[(1, 0), (1, 5)] * 35), flat((80, 5), (80, 0)), (0.01, 0.25, 0.31, 1.0)),
    # By more than a float64 holds, between two lanes, between two strips, and within a column.
    "last_column_rises_by_75": lambda: last_column_rises(40, 23, 75),
    "last_column_rises_by_76": lambda: last_column_rises(136, 35, 76),
    "last_column_rises_by_105": lambda: last_column_rises(72, 31, 105),
    "edge_of_64_rows_rises": lambda: edge_rises(64, 20),
    "edge_of_256_rows_rises": lambda: edge_rises(256, 20),
    "costly_column": lambda: Case(flat((20, 0)), with_spike(flat((60, 0)), 7, level(890)), (1.0,)),
    "second_column_falls": lambda: Case(flat((1, level(105)), (140, 0)), flat((1, 0), (1, level(105))), (1.0,)),
    "late_reject": lambda: Case(
        torch.cat([noise(1, 600, 1), with_spike(noise(1, 600, 1), 599, 30)]), noise(2, 30, 1, seed=2), (0.5, 1.0)
    ),
    "constant_and_spike": lambda: Case(flat((100, 0)), with_spike(flat((110, 0)), 40, 50), (1e-4,)),
    "constant_and_spike_of_1024": lambda: Case(with_spike(flat((100, 0)), 64, 2**10), flat((110, 0)), (1e-3,)),
    "spike_at_the_start_or_end": lambda: Case(
        flat((100, 0)).expand(2, -1, -1),
        torch.cat([with_spike(flat((110, 0)), 0, 50), with_spike(flat((110, 0)), 109, 50)]),
        (1e-4, 1.0),
    ),
    "runs": lambda: Case(in_runs(130, 9, 3), in_runs(120, 9, 4), GAMMAS),
    "long_runs": lambda: Case(in_runs(160, 40, 3), in_runs(150, 70, 4), (1e-3, 0.3, 1.0)),
    "outlier_of_1e3": lambda: Case(with_spike(noise(1, 70, 1), 23, 1e3), noise(1, 90, 1, seed=2), (1e-3,)),
    "outlier_of_1e6": lambda: Case(with_spike(noise(1, 70, 1), 23, 1e6), noise(1, 90, 1, seed=2), (1.0,)),
    "outlier_of_1e6_in_a_constant": lambda: Case(with_spike(flat((70, 0)), 23, 1e6), flat((90, 0)), (1.0,)),
    "offset": lambda: Case(noise(1, 90, 1) + 1e4, noise(1, 80, 1, seed=2) + 1e4, (1e-3, 0.1, 0.3, 1.0)),
    "5x300": lambda: Case(noise(1, 5, 1), noise(1, 300, 1, seed=2), GAMMAS),
    "300x5": lambda: Case(noise(1, 300, 1), noise(1, 5, 1, seed=2), GAMMAS),
    "1x500": lambda: Case(noise(1, 1, 1), noise(1, 500, 1, seed=2), GAMMAS),
    "500x1": lambda: Case(noise(1, 500, 1), noise(1, 1, 1, seed=2), GAMMAS),
    "penalty_0.1": lambda: penalised(0.1, None),
    "penalty_5": lambda: penalised(5.0, None),
    "penalty_1e4": lambda: penalised(1e4, None),
    "penalty_0.1_band": lambda: penalised(0.1, 9),
    "penalty_5_bands": lambda: penalised(5.0, [0, 3, 40]),
    "penalty_1e4_band": lambda: penalised(1e4, 2),
    "band": lambda: Case(*growing(3, 150, 140), (0.02, 0.3, 1.0), {"bandwidth": 5}),
    "top_and_right": lambda: Case(matrix_along(140, 150, "top", "right"), None, BORDER),
    "left_and_bottom": lambda: Case(matrix_along(140, 150, "left", "bottom"), None, BORDER),
    "all_edges": lambda: Case(matrix_along(150, 140, "top", "left", "bottom", "right"), None, BORDER),
    "staircase": lambda: Case(staircase(150, 140, 30), None, BORDER),
    # Long enough for backward to leave out what E does not reach.
    "two_corridors": lambda: two_corridors(300, 420, 1),
    "two_corridors_in_two_dimensions": lambda: two_corridors(200, 420, 2),
    "long_noise": lambda: Case(noise(1, 330, 1), noise(1, 440, 1, seed=2), (0.1, 1.0)),
    "long_noise_ragged": lambda: Case(
        noise(3, 280, 2), noise(3, 420, 2, seed=2), (1.0,), {"x_lengths": [280, 70, 200], "y_lengths": [420, 400, 290]}
    ),
    "long_noise_band": lambda: Case(
        noise(1, 380, 1), noise(1, 400, 1, seed=2), (0.3, 1.0), {"bandwidth": 150, "warp_penalty": 0.1}
    ),
    "negative_costs": lambda: Case(torch.cat([noise(1, 90, 80) * 10**k for k in range(4)]), None, (0.3, 1.0)),
    "infinite_costs": lambda: Case(with_holes(noise(2, 90, 80).square(), 0.1), None, (0.01, 0.3, 1.0)),
    "infinite_and_negative_costs": lambda: Case(with_holes(noise(2, 90, 80), 0.4), None, (0.01, 1.0)),
}


@cache
def case_of(name):
    case = CASES[name]()
    return case._replace(x=case.x.float(), y=None if case.y is None else case.y.float())


class Expected(NamedTuple):
    rows: int
    columns: int
    costs: np.ndarray
    value: float
    alignment: np.ndarray
    magnitude: float  # of R, in units of gamma
    unavoidable: float  # the change of E where the costs are rounded to float32


@cache
def expected_pairs(name, gamma):
    return expected(case_of(name), gamma)


def expected(case, gamma):
    """What the oracle says of each pair of a case."""
    results = []
    for b, x in enumerate(numpy64(case.x)):
        cost = case.options.get("cost", "sqeuclidean")
        costs = x if case.y is None else oracle.cost_and_slopes(x, numpy64(case.y[b]), cost)[0]
        sizes = [case.options.get(key) for key in ("x_lengths", "y_lengths")]
        n, m = (whole if size is None else size[b] for whole, size in zip(costs.shape, sizes, strict=True))
        costs = np.minimum(costs[:n, :m], NO_PATH)
        band = case.options.get("bandwidth")
        band = band[b] if isinstance(band, list) else band
        penalty = case.options.get("warp_penalty", 0.0)
        penalty = penalty[b] if isinstance(penalty, list) else penalty
        value, alignment = oracle.value_and_alignment(costs, gamma, band, penalty)
        rounded = np.minimum(costs, 1e38).astype(np.float32).astype(np.float64)
        changed = 0.0
        if (rounded != np.minimum(costs, 1e38)).any():
            changed = np.abs(oracle.value_and_alignment(rounded, gamma, band, penalty)[1] - alignment).max()
        magnitude = (abs(value) + np.abs(costs[costs < NO_PATH]).max()) / gamma
        results.append(Expected(n, m, costs, value, alignment, magnitude, changed))
    return results


def bound_of(pair, dtype):
    """On an error of E."""
    return 1e-4 + 20 * pair.unavoidable if dtype == torch.float32 else 1e-9 + 4e-15 * pair.magnitude


def assert_value(value, pair, gamma, dtype, what):
    bound = VALUE_TOLERANCE[dtype] * max(abs(pair.value), gamma)
    assert abs(value - pair.value) <= bound, f"{what}: value {value}, expected {pair.value}"


def costs_of(case, pairs):
    if case.y is None:
        return case.x
    costs = torch.zeros(len(pairs), case.x.shape[1], case.y.shape[1], dtype=torch.float64)
    for b, pair in enumerate(pairs):
        costs[b, : pair.rows, : pair.columns] = torch.from_numpy(pair.costs)
    return costs


def repeated(options, times):
    return {key: option * times if isinstance(option, list) else option for key, option in options.items()}


def values_alone(kernel, times, gamma, *tensors, **options):
    """(times, pairs) values from a forward pass that keeps nothing, of every pair so many times."""
    tensors = [z.to(kernel.device).repeat(times, 1, 1) for z in tensors]
    function = soft_dtw if len(tensors) == 2 else soft_dtw_from_cost
    return numpy64(function(*tensors, gamma, kernel=kernel.name, **repeated(options, times))).reshape(times, -1)


def assert_values_alone(kernel, dtype, gamma, pairs, tensors, options):
    values = values_alone(kernel, 2, gamma, *(z.to(dtype) for z in tensors), **options)
    assert np.all(values == values[0]), f"gamma {gamma:g}: a pair's value depends on its place in the batch"
    for b, pair in enumerate(pairs):
        assert_value(values[0, b], pair, gamma, dtype, f"gamma {gamma:g}, pair {b}, nothing kept")


@pytest.mark.parametrize("name", CASES)
def test_value_alignment_and_gradients(engine, name):
    kernel, dtype = engine
    case = case_of(name)
    for gamma in case.gammas:
        pairs = expected_pairs(name, gamma)
        value, alignment = run_from_cost(kernel, costs_of(case, pairs).to(dtype), gamma, **case.options)
        for b, pair in enumerate(pairs):
            what = f"gamma {gamma:g}, pair {b}"
            own = alignment[b, : pair.rows, : pair.columns]
            assert_value(value[b], pair, gamma, dtype, what)
            error = np.abs(own - pair.alignment).max()
            assert error <= bound_of(pair, dtype), f"{what}: E is off by {error:.3g}, more than {bound_of(pair, dtype):.3g}"
            # Whatever the bound, every path goes through every row and column.
            assert own.sum(0).min() >= 1 - 1e-3 and own.sum(1).min() >= 1 - 1e-3, what
            assert np.all(alignment[b, pair.rows :] == 0) and np.all(alignment[b, :, pair.columns :] == 0), what
        assert_values_alone(kernel, dtype, gamma, pairs, [costs_of(case, pairs)], case.options)
        if case.y is not None:
            assert_values_alone(kernel, dtype, gamma, pairs, [case.x, case.y], case.options)
            assert_gradients_of_series(kernel, dtype, case, gamma, pairs)


def assert_gradients_of_series(kernel, dtype, case, gamma, pairs):
    value, *gradients = run(kernel, case.x.to(dtype), case.y.to(dtype), gamma, **case.options)
    for b, pair in enumerate(pairs):
        what = f"gamma {gamma:g}, pair {b}"
        assert_value(value[b], pair, gamma, dtype, what)
        x, y = numpy64(case.x[b, : pair.rows]), numpy64(case.y[b, : pair.columns])
        _, x_slope, y_slope = oracle.cost_and_slopes(x, y, "sqeuclidean")
        for gradient, slope, axis in zip(gradients, (x_slope, y_slope), (1, 0), strict=True):
            expected = (pair.alignment[:, :, None] * slope).sum(axis)
            allowed = 4 * bound_of(pair, dtype) * max(np.abs(slope).max(), 1e-6)  # as in test_accuracy
            error = np.abs(gradient[b, : len(expected)] - expected).max()
            assert error <= allowed, f"{what}: a gradient is off by {error:.3g}, more than {allowed:.3g}"
            assert np.all(gradient[b, len(expected) :] == 0), what


@pytest.mark.parametrize("exponent", [33, 43, 51])
def test_the_height_of_a_wall_that_every_path_crosses_changes_nothing(engine, exponent):
    """The oracle rounds a table as high as this, but E is that of a low wall, since nothing crosses either twice."""
    kernel, dtype = engine
    if exponent > 43 and kernel.is_cuda:
        pytest.skip("between the chunks of the backward pass the kernels for CUDA keep 45 bits")
    for where in ("row", "column"):
        costs = noise(1, 90, 100).square().float().double()
        wall = costs[:, 40] if where == "row" else costs[:, :, 60]
        wall.fill_(2**12)
        expected = oracle.value_and_alignment(numpy64(costs[0]), 1.0)[1]
        wall.fill_(2.0**exponent)
        value, alignment = run_from_cost(kernel, costs.to(dtype))
        assert value[0] == pytest.approx(2.0**exponent, rel=1e-4), where
        assert np.abs(alignment[0] - expected).max() <= (1e-4 if dtype == torch.float32 else 1e-9), where


LENGTHS = {"x_lengths": [140, 1, 64, 65, 33, 129, 140], "y_lengths": [130, 2, 130, 9, 31, 77, 130]}
MIXED = {"gamma": 0.3, **LENGTHS}


def mixed(dtype):
    x, y = growing(7, 140, 130)
    return x.to(dtype), y.to(dtype)


def test_two_runs_are_bitwise_equal(engine):
    kernel, dtype = engine
    first = run(kernel, *mixed(dtype), **MIXED)
    for _ in range(3):
        for a, b in zip(first, run(kernel, *mixed(dtype), **MIXED), strict=True):
            np.testing.assert_array_equal(a, b)


def test_saving_for_backward_leaves_the_value_as_it_is(engine):
    kernel, dtype = engine
    x, y = (z.to(kernel.device) for z in mixed(dtype))
    for gamma in (1e-3, 0.1, 0.3, 1.0, 100.0):
        for options in ({}, {"bandwidth": 8}, {"warp_penalty": 0.5}):
            alone = soft_dtw(x, y, gamma, kernel=kernel.name, **options)
            saving = soft_dtw(x.clone().requires_grad_(), y, gamma, kernel=kernel.name, **options).detach()
            assert torch.equal(alone, saving), (gamma, options)


@pytest.mark.parametrize("bad", [nan, inf])
def test_a_bad_number_spoils_its_pair_alone(engine, bad):
    kernel, dtype = engine
    for spoiled_pair in (0, 6):
        x, y = mixed(dtype)
        clean = run(kernel, x, y, **MIXED)
        x[spoiled_pair, 100] = bad
        spoiled = run(kernel, x, y, **MIXED)
        others = [b for b in range(7) if b != spoiled_pair]
        for before, after in zip(clean, spoiled, strict=True):
            np.testing.assert_array_equal(before[others], after[others])
        assert not np.isfinite(spoiled[0][spoiled_pair])
        before, after = (values_alone(kernel, 2, 0.3, z, y, **LENGTHS) for z in (mixed(dtype)[0], x))
        np.testing.assert_array_equal(before[:, others], after[:, others])
        assert not np.isfinite(after[:, spoiled_pair]).any()


def test_a_neighbour_out_of_range_changes_nothing(engine):
    kernel, dtype = engine
    x, y = mixed(dtype)
    clean = run(kernel, x, y, **MIXED)
    x[3, 20] = 1e3
    spoiled = run(kernel, x, y, **MIXED)
    for before, after in zip(clean, spoiled, strict=True):
        np.testing.assert_array_equal(before[[0, 1, 2, 4, 5, 6]], after[[0, 1, 2, 4, 5, 6]])
        assert np.isfinite(after).all() and not np.array_equal(before[3], after[3])


def test_the_gradient_that_arrives_scales_those_of_series(engine):
    kernel, dtype = engine
    weights = torch.tensor([-3.0, 0.0, 0.5, 1e3, 1.0, -1.0, 2.0], dtype=dtype)
    plain = run(kernel, *mixed(dtype), **MIXED)
    scaled = run(kernel, *mixed(dtype), **MIXED, grad_value=weights)
    tolerance = 1e-9 if dtype == torch.float64 else 3e-5
    for before, after in zip(plain[1:], scaled[1:], strict=True):
        wanted = before * weights.double().numpy()[:, None, None]
        largest = np.abs(wanted).max(axis=(1, 2), keepdims=True)
        assert np.all(np.abs(after - wanted) <= tolerance * largest)
