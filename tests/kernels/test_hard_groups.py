"""Many pairs of hard DTW on the CPU are swept in groups, a lane each: with the values of single pairs to the bit."""

import math

import pytest
import torch
from cases import normal

from torchsoftdtw import cdist, dtw

SHAPES = [(1, 1, 1), (1, 7, 2), (7, 1, 1), (2, 2, 3), (12, 17, 1), (17, 12, 2), (40, 33, 1)]  # n, m, dim


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("cost", ["sqeuclidean", "euclidean", "cityblock", "huber"])
@pytest.mark.parametrize(("n", "m", "dim"), SHAPES)
def test_groups_have_the_values_of_single_pairs(n, m, dim, cost, dtype):
    x, y = normal(8, n, dim, seed=1, dtype=dtype), normal(9, m, dim, seed=2, dtype=dtype)
    for bandwidth in (None, 0, 1, 3, 50):
        for penalty in (0.0, 0.3):
            options = {"cost": cost, "bandwidth": bandwidth, "warp_penalty": penalty}
            found = cdist(x, y, **options)
            for i, j in ((0, 0), (3, 5), (7, 8)):
                assert torch.equal(found[i, j], dtw(x[i : i + 1], y[j : j + 1], **options)[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("one", ["x", "y", "both", "none"])
def test_series_of_any_strides_and_one_series_of_all_pairs(one, dim, dtype):
    x, y = normal(40, 21, dim, seed=1, dtype=dtype), normal(40, 18, dim, seed=2, dtype=dtype)
    if one in ("x", "both"):
        x = x[:1].expand(40, -1, -1)
    if one in ("y", "both"):
        y = y[:1].expand(40, -1, -1)
    expected = torch.cat([dtw(x[i : i + 1], y[i : i + 1], bandwidth=5) for i in range(40)])
    apart = torch.empty(40, 21, dim + 2, dtype=dtype)[:, :, :dim].copy_(x)
    askew = torch.empty(dim, 18, 40, dtype=dtype).permute(2, 1, 0).copy_(y)
    for own_x, own_y in ((x, y), (apart, y), (x, askew), (apart, askew)):
        assert torch.equal(dtw(own_x, own_y, bandwidth=5), expected)


def test_what_is_not_finite_in_one_series_of_all_pairs_spoils_all():
    x, y = normal(1, 13, 1, seed=1), normal(40, 13, 1, seed=2)
    x[0, 5] = math.nan
    assert cdist(x, y).isnan().all()
    x[0, 5], y[7, 3] = math.inf, -math.inf
    assert cdist(x, y)[0, :7].eq(math.inf).all()


def test_what_is_not_finite_spoils_its_own_pairs_alone():
    x, y = normal(8, 13, 1, seed=1), normal(9, 13, 1, seed=2)
    expected = cdist(x, y)
    x[2, 3], x[4, 0], y[1, 12] = math.nan, math.inf, math.inf
    found = cdist(x, y)
    assert found[2].isnan().all()
    assert found[4, 0] == found[0, 1] == math.inf
    kept = torch.tensor([0, 1, 3, 5, 6, 7])
    assert torch.equal(found[kept][:, 2:], expected[kept][:, 2:])


@pytest.mark.parametrize("cost", ["sqeuclidean", "euclidean", "cityblock", "huber"])
def test_of_one_dimension_float32_series_have_the_values_of_float64(cost):
    x, y = normal(8, 40, 1, seed=1, dtype=torch.float32) * 100, normal(9, 33, 1, seed=2, dtype=torch.float32)
    for options in ({}, {"bandwidth": 4}, {"warp_penalty": 0.3}):
        values = cdist(x.double(), y.double(), cost=cost, **options).float()
        assert torch.equal(cdist(x, y, cost=cost, **options), values)
        assert torch.equal(dtw(x, y[:8], cost=cost, **options), values.diagonal())


def test_a_distance_of_one_dimension_does_not_overflow_where_its_square_would():
    x, y = torch.full((2, 5, 1), 1e25), torch.zeros(2, 5, 1)
    assert torch.equal(dtw(x, y, cost="euclidean"), dtw(x, y, cost="cityblock"))
    assert dtw(x, y, cost="sqeuclidean").isinf().all()
