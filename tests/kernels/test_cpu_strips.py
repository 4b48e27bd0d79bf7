"""The CPU leaves out quarters of a strip that have no cell in a block of steps: bands and lengths where they come and go.

A strip has 64 rows, a quarter and a block of steps 16. Several coordinates and small gammas go through costs of their own.
"""

import numpy as np
import oracle
import pytest
import torch
from cases import COSTS, GRADIENT_TOLERANCE, VALUE_TOLERANCE, KernelCase, normal, numpy64, run

from torchsoftdtw._kernels import ops

CPU = KernelCase("cpu", "cpu")
LENGTHS = [(64, 64), (65, 63), (79, 81), (97, 130), (130, 97), (128, 192), (200, 33), (17, 190)]
RADII = [0, 1, 7, 8, 15, 16, 23, 31, 32, 48, 100]


def assert_like_oracle(x, y, gamma, cost="sqeuclidean", **options):
    dtype = x.dtype
    actual = run(CPU, x, y, gamma, cost=cost, **options)
    expected = oracle.soft_dtw(numpy64(x), numpy64(y), gamma, cost, **options)
    value_bound = VALUE_TOLERANCE[dtype] * np.maximum(np.abs(expected[0]), gamma)
    np.testing.assert_array_less(np.abs(actual[0] - expected[0]), value_bound)
    for gradient, wanted in zip(actual[1:], expected[1:], strict=True):
        assert np.abs(gradient - wanted).max() <= 4 * GRADIENT_TOLERANCE[dtype] * max(np.abs(wanted).max(), 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("penalty", [0.0, 0.4])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_bands_around_the_quarters_of_a_strip(lengths, penalty, dtype):
    n, m = lengths
    x, y = normal(len(RADII), n, 1, seed=n, dtype=dtype), normal(len(RADII), m, 1, seed=m, dtype=dtype)
    assert_like_oracle(x, y, 0.5, bandwidth=RADII, warp_penalty=penalty)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("lengths", [*LENGTHS, (500, 420), (421, 900), (700, 700)], ids=str)
def test_a_band_of_all_pairs_is_kept_closer_together(lengths, dtype):
    """Strips share what neither of two needs; where pairs have bands of their own each has its place."""
    x, y = (normal(2, size, 1, seed=size, dtype=dtype) for size in lengths)
    for radius in (*RADII, 178, 300):
        shared, own = (run(CPU, x, y, 0.5, bandwidth=band) for band in (radius, [radius, radius]))
        for result, expected in zip(shared, own, strict=True):
            np.testing.assert_array_equal(result, expected)


def test_what_is_kept_goes_with_the_band():
    whole, banded = (
        ops.cpu_saved_size(4, 2048, 2048, 1, False, "sqeuclidean", False, False, radius, False, "cpu", 0, 0)
        for radius in (-1, 204)
    )
    assert banded < 0.31 * whole


@pytest.mark.parametrize("gamma", [1.0, 0.01])
@pytest.mark.parametrize("dim", [2, 8, 9, 19])
@pytest.mark.parametrize("cost", COSTS)
def test_costs_of_vectors_under_bands(cost, dim, gamma):
    radii = [0, 9, 33, 100]
    x, y = (normal(4, n, dim, seed=n, dtype=torch.float32) for n in (83, 71))
    assert_like_oracle(x, y, gamma, cost, bandwidth=radii)


@pytest.mark.parametrize("gamma", [1.0, 1e-3])
@pytest.mark.parametrize("cost", ["sqeuclidean", "euclidean", "huber"])
def test_vectors_that_nearly_match_far_from_zero(cost, gamma):
    """Products of vectors would lose such distances."""
    x = normal(2, 70, 20, seed=1, dtype=torch.float32) + 1e4
    y = (x + 1e-2 * normal(2, 70, 20, seed=2, dtype=torch.float32))[:, 3:]
    assert_like_oracle(x, y, gamma, cost)


def test_nan_beyond_a_band_spoils_its_pair_alone():
    x, y = normal(3, 90, 2, seed=1, dtype=torch.float32), normal(3, 80, 2, seed=2, dtype=torch.float32)
    spoiled = x.clone()
    spoiled[1, 40] = float("nan")
    expected, actual = (run(CPU, z, y, 1.0, bandwidth=5) for z in (x, spoiled))
    for wanted, got in zip(expected, actual, strict=True):
        assert np.isnan(got[1]).all()
        np.testing.assert_array_equal(got[[0, 2]], wanted[[0, 2]])
