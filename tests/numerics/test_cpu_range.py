"""float32 pairs whose tables leave the whole numbers that float32 holds: the CPU sweeps them in double."""

import numpy as np
import oracle
import pytest
import torch
from cases import KernelCase, normal, numpy64, run, run_from_cost

from torchsoftdtw import soft_dtw

CPU = KernelCase("cpu", "cpu")


def with_outlier(series, at, height):
    series = series.clone()
    series[0, at] = height
    return series


def noise(n, seed=1):
    return normal(1, n, 1, seed=seed)


def runs(n):
    return normal(1, n // 9 + 1, 1, seed=3).repeat_interleave(9, 1)[:, :n]


# Pairs of series, gamma, options: every optimal path meets a cost above 2^24 gamma, or passes between two of them.
HARMFUL = {
    "constant_and_spike": (torch.zeros(1, 100, 1), with_outlier(torch.zeros(1, 110, 1), 40, 50), 1e-4, {}),
    "spike_under_a_band": (torch.zeros(1, 100, 1), with_outlier(torch.zeros(1, 130, 1), 90, 50), 1e-4, {"bandwidth": 3}),
    "spike_and_penalty": (noise(100), with_outlier(noise(70, 2), 30, 1e4), 1e-2, {"warp_penalty": 0.3}),
    "spike_in_runs": (runs(130), with_outlier(runs(200), 100, 1e5), 10.0, {}),
    "outlier_first": (noise(70), with_outlier(noise(90, 2), 0, 1e5), 1.0, {}),
    "outlier_last": (noise(70), with_outlier(noise(90, 2), 89, 1e5), 1.0, {}),
    "outlier_of_1e6": (noise(140), with_outlier(noise(66, 2), 33, 1e6), 1e3, {}),
    "outliers_that_match": (with_outlier(noise(65), 64, 1e5), with_outlier(0 * noise(65), 64, 1e5), 1e-1, {}),
    "matches_far_apart": (with_outlier(noise(150), 20, 1e5), with_outlier(noise(140, 2), 120, 1e5), 1.0, {}),
    "penalty_that_forbids": (0 * noise(100), 1e-3 * noise(100), 1e-4, {"warp_penalty": 1e6}),
    "short_and_long": (noise(2), with_outlier(noise(300, 2), 100, 1e4), 1e-2, {}),
    "long_and_short": (noise(300), with_outlier(noise(2, 2), 1, 1e4), 1e-2, {}),
    "two_levels": (runs(100) + 1e3, runs(120), 1e-2, {}),
}


def reference(costs, gamma, options):
    """The value, E, and the bound on an error of E: see test_accuracy."""
    bandwidth, penalty = options.get("bandwidth"), options.get("warp_penalty", 0.0)
    value, alignment = oracle.value_and_alignment(costs, gamma, bandwidth, penalty)
    rounded = oracle.value_and_alignment(costs.astype(np.float32).astype(np.float64), gamma, bandwidth, penalty)[1]
    return value, alignment, 1e-4 + 20 * np.abs(rounded - alignment).max()


@pytest.mark.parametrize("name", HARMFUL)
def test_range_of_float32_is_no_limit(name):
    x, y, gamma, options = HARMFUL[name]
    x, y = x.float(), y.float()
    costs, x_slope, y_slope = oracle.cost_and_slopes(numpy64(x[0]), numpy64(y[0]), "sqeuclidean")
    expected, alignment, bound = reference(costs, gamma, options)
    value, actual = run_from_cost(CPU, torch.from_numpy(costs).float().unsqueeze(0), gamma, **options)
    assert abs(value[0] - expected) <= 1e-5 * max(abs(expected), gamma)
    assert np.abs(actual[0] - alignment).max() <= bound
    value, grad_x, grad_y = run(CPU, x, y, gamma, **options)
    assert abs(value[0] - expected) <= 1e-5 * max(abs(expected), gamma)
    for gradient, slope, axis in ((grad_x[0], x_slope, 1), (grad_y[0], y_slope, 0)):
        wanted = (alignment[:, :, None] * slope).sum(axis)
        assert np.abs(gradient - wanted).max() <= 4 * bound * max(np.abs(slope).max(), 1e-6)


def heights(dim, largest):
    """A row of noise is so far away that its costs are about `largest`; they differ by some units from column to column."""
    height = (largest / dim) ** 0.5
    x, y = normal(1, 130, dim, seed=1), normal(1, 70, dim, seed=2) / height
    x[0, 40] = 0.9 * height
    return x, y


@pytest.mark.parametrize("moved", [0, 1000])
@pytest.mark.parametrize("dim", [1, 2, 8])
@pytest.mark.parametrize("largest", [200, 300, 600, 2000, 30_000, 34_000, 64_000, 300_000])
def test_large_costs_keep_their_fraction(largest, dim, moved):
    """Up to 256 units in float32, whose last place is felt by then, and beyond with more digits."""
    bound = 2e-5 if largest <= 300 else 1.5e-6
    for gamma, scale in ((1.0, 1.0), (1e-3, 1e-3**0.5)):
        x, y = (((series + moved) * scale).float() for series in heights(dim, largest * np.log(2)))
        expected = oracle.soft_dtw(numpy64(x), numpy64(y), gamma)
        for actual, wanted in zip(run(CPU, x, y, gamma), expected, strict=True):
            assert np.abs(actual - wanted).max() <= bound * np.abs(wanted).max()


@pytest.mark.parametrize("seed", [3, 4, 8])
def test_vectors_that_fill_no_ball(seed):
    """Stairs in eight dimensions end in corners of the box. In float32 costs alone would be off by 2e-6 to 1e-5 here."""
    generator = torch.Generator().manual_seed(seed)

    def stairs(length):
        rise = (torch.rand(1, length, 8, generator=generator) < 0.05).float().cumsum(1)
        series = rise + 0.05 * torch.randn(1, length, 8, generator=generator)
        return series / series.std()

    x, y = stairs(200), stairs(150)
    expected = oracle.soft_dtw(numpy64(x), numpy64(y), 0.2)
    for actual, wanted in zip(run(CPU, x, y, 0.2), expected, strict=True):
        assert np.abs(actual - wanted).max() <= 1e-6 * np.abs(wanted).max()


@pytest.mark.parametrize("dim", [8, 64, 200])
@pytest.mark.parametrize(
    "cost, gamma", [("sqeuclidean", 4.0), ("sqeuclidean", 10.0), ("euclidean", 0.3), ("cityblock", 1.0), ("cityblock", 3.0)]
)
def test_sums_of_many_coordinates_are_as_exact_as_one(dim, cost, gamma):
    x, y = (normal(1, 200, dim, seed=seed).float() for seed in (1, 2))
    expected = oracle.soft_dtw(numpy64(x), numpy64(y), gamma, cost=cost)
    for actual, wanted in zip(run(CPU, x, y, gamma, cost=cost), expected, strict=True):
        assert np.abs(actual - wanted).max() <= 5e-6 * np.abs(wanted).max()


@pytest.mark.parametrize("seed", range(40))
def test_costs_from_tiny_to_huge(seed):
    generator = np.random.default_rng(seed)
    n, m = generator.choice([1, 3, 40, 64, 65, 130], 2)
    gamma = float(10.0 ** generator.integers(-4, 4))
    kind = seed % 4
    if kind == 0:
        costs = 10.0 ** generator.uniform(-6, 6, (n, m))
    elif kind == 1:  # the best path hugs the edge
        costs = np.full((n, m), 10.0 ** generator.integers(0, 10))
        costs[0], costs[:, -1] = generator.random(m), generator.random(n)
    elif kind == 2:  # blocks of equal costs
        costs = np.kron(generator.choice([0, 1, 1e3, 1e6, 1e9], (n // 9 + 1, m // 9 + 1)), np.ones((9, 9)))[:n, :m]
    else:  # a row and a column that every path has to cross
        costs = generator.random((n, m))
        costs[n // 2] += 10.0 ** generator.integers(3, 10)
        costs[:, m // 3] += 10.0 ** generator.integers(3, 10)
    costs = (costs.astype(np.float32) * np.float32(gamma)).astype(np.float64)
    options = [{}, {"bandwidth": 5}, {"warp_penalty": 0.5 * gamma}, {"bandwidth": 2, "warp_penalty": 1e8 * gamma}][
        seed // 4 % 4
    ]
    expected, alignment, _ = reference(costs, gamma, options)
    value, actual = run_from_cost(CPU, torch.from_numpy(costs).float().unsqueeze(0), gamma, **options)
    assert abs(value[0] - expected) <= 1e-5 * max(abs(expected), gamma)
    assert np.abs(actual[0] - alignment).max() <= 1e-4  # the oracle has these very costs


def test_negative_costs_of_any_size():
    costs = normal(1, 90, 100, seed=1)
    costs[0, 40], costs[0, :, 60] = costs[0, 40] + 1e9, costs[0, :, 60] - 1e9
    costs = costs.float()
    expected, alignment, _ = reference(numpy64(costs[0]), 1.0, {})
    value, actual = run_from_cost(CPU, costs, 1.0)
    assert abs(value[0] - expected) <= 1e-5 * abs(expected)
    assert np.abs(actual[0] - alignment).max() <= 1e-4


def test_other_pairs_of_the_batch_are_untouched():
    x, y = normal(6, 90, 2, seed=1, dtype=torch.float32), normal(6, 70, 2, seed=2, dtype=torch.float32)
    options = dict(gamma=1e-3, x_lengths=[90, 64, 90, 65, 1, 90], y_lengths=[70, 70, 70, 1, 70, 69])
    clean = run(CPU, x, y, **options)
    spoiled = run(CPU, x, with_outlier(y.flip(0), 30, 1e4).flip(0), **options)
    for before, after in zip(clean, spoiled, strict=True):
        np.testing.assert_array_equal(before[:5], after[:5])
        assert np.isfinite(after).all() and not np.array_equal(before[5], after[5])


def test_the_gradient_that_arrives_scales_the_gradients():
    x, y, gamma, options = HARMFUL["spike_and_penalty"]
    x, y = x.float(), y.float()
    plain = run(CPU, x, y, gamma, **options)
    scaled = run(CPU, x, y, gamma, grad_value=torch.tensor([-3.0]), **options)
    for before, after in zip(plain[1:], scaled[1:], strict=True):
        np.testing.assert_allclose(after, -3 * before, rtol=1e-6)


def test_a_value_beyond_float32_is_infinite_and_one_within_is_not():
    x, y = torch.zeros(1, 5, 1), torch.zeros(1, 70, 1)
    assert soft_dtw(x, with_outlier(y, 30, 1e20), 1e-4).isinf()
    large = soft_dtw(x, with_outlier(y, 30, 1e16), 1e-4)
    torch.testing.assert_close(large, torch.tensor([1e32]), rtol=1e-5, atol=0)
