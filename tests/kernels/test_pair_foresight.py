"""Which number format a warp tries first on its pairs, where these have no lists (kernels/foresight/pair_foresight.cuh)."""

import pytest
import torch
from cases import GPU, OF_GPU, normal

from torchsoftdtw._kernels import ops
from torchsoftdtw._kernels.number_formats import of_saved

pytestmark = OF_GPU


def formats(x, y, gamma):
    inputs = (series.float().to(GPU) for series in (x, y))
    saved = ops.forward(*inputs, *[None] * 5, -1, gamma, 0.0, "sqeuclidean", "stencil", 0, True)[1]
    return of_saved(saved, len(x))


def noise(length, count=12):
    return normal(count, length, 1, seed=1), normal(count, length - 5, 1, seed=2)


def walks(length, size):
    return (size * series.cumsum(1) / length**0.5 for series in noise(length))


@pytest.mark.parametrize(("gamma", "expected"), [(1.0, "linear_domain"), (0.3, "linear_domain"), (0.12, "integer_log2")])
def test_noise_goes_by_its_spread(gamma, expected):
    # Without foresight the linear domain would take a good part of the last ones, which just fit.
    assert set(formats(*noise(256), gamma)) == {expected}


@pytest.mark.parametrize(("size", "expected"), [(0.3, "linear_domain"), (8.0, "integer_log2")])
def test_walks_go_by_their_coarse_table(size, expected):
    assert set(formats(*walks(250, size), 0.1)) == {expected}


def test_the_linear_domain_is_tried_last_for_a_value_near_0():
    # Deep weights, and beyond the range by their spread; but equal series cost nothing along the diagonal.
    x = 1.5 * (-1.0) ** torch.arange(200)[:, None] + 0.01 * noise(200)[0]
    assert set(formats(x, x, 0.1)) == {"linear_domain"}


def test_short_pairs_are_tried():
    assert set(formats(*noise(100), 0.1)) == {"linear_domain"}


def test_pairs_of_a_warp_that_are_foreseen_in_different_ways():
    # So many pairs have 16 lanes each. The first of a warp is known to stay within the range, the second only by its coarse
    # table: in every other warp it does not, and then both go to integer log2 first.
    count, (x, y) = 2048, walks(165, 3.0)
    number, size = torch.tensor([2, 6, 2, 8]), torch.tensor([0.1, 1.0, 0.1, 1.0])[:, None, None]
    x, y = ((size * series[number]).repeat(count // 4, 1, 1) for series in (x, y))
    assert formats(x, y, 0.1) == ["linear_domain", "linear_domain", "integer_log2", "integer_log2"] * (count // 4)
