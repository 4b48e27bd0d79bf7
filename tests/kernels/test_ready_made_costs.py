"""Ready-made costs, which CUDA kernels of strips copy to shared memory by groups of columns (costs/matrix_tile.cuh), and
whose gradients go back through it, and those of few pairs, which warps of their own copy and write: sizes at which no
group, stage or strip is full, layouts of every kind, lengths, bands, penalties, and costs so far apart that backward leaves
stages out.
"""

import numpy as np
import oracle
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, assert_values_close, numpy64, parameters

from torchsoftdtw import soft_dtw_from_cost

NAMES = ("diagonal", "stencil/extended_range", "tiled/ready_made", "tiled/extended_range")
KERNELS = [KernelCase("cpu", "cpu"), *(KernelCase(GPU, name) for name in NAMES)]
SIZES = [(1, 1), (1, 40), (40, 1), (5, 8), (64, 64), (65, 31), (64, 100), (70, 63), (130, 97), (33, 300), (200, 132)]
LAYOUTS = {
    "dense": lambda costs: costs.contiguous(),
    "columns_first": lambda costs: costs.transpose(1, 2).contiguous().transpose(1, 2),
    "wider_rows": lambda costs: torch.nn.functional.pad(costs, (0, 3), value=torch.nan)[:, :, : costs.shape[2]],
    "off_by_one": lambda costs: torch.nn.functional.pad(costs, (1, 3), value=torch.nan)[:, :, 1 : 1 + costs.shape[2]],
    "batch_last": lambda costs: costs.permute(1, 2, 0).contiguous().permute(2, 0, 1),
}
OPTIONS = {
    "plain": {},
    "lengths": {"x_lengths": [130, 1, 64], "y_lengths": [5, 97, 37]},
    "band": {"bandwidth": 9},
    "bands": {"bandwidth": [0, 3, 80]},
    "penalty": {"warp_penalty": 0.7},
}


@pytest.fixture(params=parameters(KERNELS))
def template(request):
    """Each kernel that takes ready-made costs of few pairs."""
    return request.param


def costs_of(batch, n, m, seed=1, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return (3 * torch.rand(batch, n, m, generator=generator)).to(dtype)


def check(template, costs, gamma, padding=None, **options):
    """Against the oracle, pair by pair; what lies beyond lengths is `padding`, and gets a gradient of 0."""
    weights = torch.arange(1, len(costs) + 1, dtype=torch.float32)
    given = costs.to(template.device).detach().requires_grad_()
    value = soft_dtw_from_cost(given, gamma, kernel=template.name, **options)
    (gradient,) = torch.autograd.grad(value, given, weights.to(template.device))
    alone = numpy64(soft_dtw_from_cost(given.detach(), gamma, kernel=template.name, **options))
    value, gradient = numpy64(value), numpy64(gradient)
    for b, table in enumerate(numpy64(costs)):
        n, m = (
            options[key][b] if key in options else size
            for key, size in zip(("x_lengths", "y_lengths"), table.shape, strict=True)
        )
        band = options.get("bandwidth")
        expected, alignment = oracle.value_and_alignment(
            np.where(np.isinf(table), 1e300, table)[:n, :m],
            gamma,
            band[b] if isinstance(band, list) else band,
            options.get("warp_penalty", 0.0),
        )
        assert_values_close(value[b], expected, torch.float32, gamma)
        assert_values_close(alone[b], expected, torch.float32, gamma)
        assert np.abs(gradient[b, :n, :m] - (b + 1) * alignment).max() <= 1e-4 * (b + 1)
        outside = gradient[b].copy()
        outside[:n, :m] = 0
        assert (outside == 0).all()


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_sizes(template, n, m):
    check(template, costs_of(2, n, m), 0.5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [(70, 64), (66, 45)])
def test_layouts(template, layout, size):
    check(template, LAYOUTS[layout](costs_of(3, *size)), 0.5)


@pytest.mark.parametrize("options", OPTIONS)
def test_options(template, options):
    costs = costs_of(3, 130, 97)
    for b, (n, m) in enumerate(zip(*OPTIONS["lengths"].values(), strict=True)):
        if options == "lengths":
            costs[b, n:], costs[b, :, m:] = torch.nan, torch.nan
    check(template, costs, 0.5, **OPTIONS[options])


@pytest.mark.parametrize("gamma", [0.01, 1.0])
def test_stages_in_which_nothing_flows_are_written_too(template, gamma):
    """More than 32 chunks of a strip: those far from the diagonal are left out in backward."""
    n, m = 200, 420
    ahead = np.abs(np.arange(m) / m - np.arange(n)[:, None] / n)
    costs = costs_of(2, n, m) + torch.from_numpy(300 * ahead).float()
    check(template, costs, gamma)


@pytest.mark.parametrize("large", [1e5, 1e20, np.inf])
def test_large_costs_beside_small_ones(template, large):
    costs = costs_of(2, 90, 100)
    costs[:, 10:80, :5] = large
    costs[:, 20, 30:] = large
    check(template, costs, 0.1)


def test_a_pair_without_a_value_has_no_gradient(template):
    costs = costs_of(3, 70, 50)
    costs[1, 40, 30] = torch.nan
    given = costs.to(template.device).requires_grad_()
    value = soft_dtw_from_cost(given, 1.0, kernel=template.name)
    (gradient,) = torch.autograd.grad(value.sum(), given)
    assert torch.isnan(value).tolist() == [False, True, False]
    assert torch.isnan(gradient).flatten(1).all(1).tolist() == [False, True, False]
    assert torch.isfinite(gradient[[0, 2]]).all()


@OF_GPU
@pytest.mark.parametrize("options", OPTIONS)
def test_values_alone_of_so_many_pairs_that_a_lane_has_four_rows(options):
    """As they are with gradients, for which it has two."""
    multiprocessors = torch.cuda.get_device_properties(GPU).multi_processor_count if GPU == "cuda" else 132
    times = multiprocessors // 3 + 1
    costs = costs_of(3, 130, 97).repeat(times, 1, 1).to(GPU)
    given = {name: of * times if isinstance(of, list) else of for name, of in OPTIONS[options].items()}
    alone = soft_dtw_from_cost(costs, 0.5, kernel="tiled/ready_made", **given)
    kept = soft_dtw_from_cost(costs.requires_grad_(), 0.5, kernel="tiled/ready_made", **given)
    torch.testing.assert_close(alone, kept.detach(), rtol=1e-5, atol=1e-6)
