"""A pair without a value (inf or NaN) that is masked out, at which nothing arrives in backward, has a gradient of 0."""

import numpy as np
import pytest
import torch
from cases import COSTS, DEVICES, normal, run, run_from_cost

from torchsoftdtw import dtw, soft_dtw, soft_dtw_alignment, soft_dtw_divergence, soft_dtw_from_cost

MASK = torch.tensor([1.0, 1.0, 0.0, 1.0])
BAD = [float("nan"), float("inf")]
# (n, m, dim): a short pair, one of several strips, one swept from both ends, and costs and gradients by matrix products.
SHAPES = [(20, 17, 1), (70, 90, 3), (150, 270, 1), (40, 70, 20)]


@pytest.mark.parametrize("options", [{}, {"x_lengths": [9, 20, 13, 2]}, {"bandwidth": 5}], ids=["full", "lengths", "band"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_masked_pair_gets_no_gradient(template, shape, dtype, options):
    n, m, dim = shape
    x, y = normal(4, n, dim, seed=1, dtype=dtype), normal(4, m, dim, seed=2, dtype=dtype)
    clean = run(template, x, y, grad_value=MASK, **options)
    for bad in BAD:
        x[2, 7, 0] = bad
        masked = run(template, x, y, grad_value=MASK, **options)
        assert not np.isfinite(masked[0][2])
        for before, after in zip(clean[1:], masked[1:], strict=True):
            np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("cost", COSTS[1:-1])
def test_it_gets_none_with_other_costs(template, cost):
    x, y = normal(4, 70, 3, seed=1, dtype=torch.float32), normal(4, 40, 3, seed=2, dtype=torch.float32)
    clean = run(template, x, y, cost=cost, grad_value=MASK)
    y[2, 7, 1] = float("inf")
    for before, after in zip(clean[1:], run(template, x, y, cost=cost, grad_value=MASK)[1:], strict=True):
        np.testing.assert_array_equal(before, after)


def gradient_of_costs(function, costs, **options):
    costs = costs.detach().requires_grad_()
    value = function(costs, **options)
    (gradient,) = torch.autograd.grad(torch.where(MASK.to(value.device) == 0, 0, value).sum(), costs)
    return value, gradient


@pytest.mark.parametrize("options", [{}, {"y_lengths": [9, 20, 13, 2]}, {"bandwidth": 5}], ids=["full", "lengths", "band"])
def test_a_pair_that_no_path_crosses_gets_none(template, options):
    costs = normal(4, 70, 40, seed=1, dtype=torch.float32).square().to(template.device)
    clean = gradient_of_costs(soft_dtw_from_cost, costs, kernel=template.name, **options)[1]
    for bad in BAD:
        costs[2, 5] = bad
        value, gradient = gradient_of_costs(soft_dtw_from_cost, costs, kernel=template.name, **options)
        assert not value[2].isfinite() and torch.equal(gradient, clean)


@pytest.mark.parametrize("device", DEVICES)
def test_hard_dtw_has_none_either(device):
    costs = normal(4, 20, 30, seed=1).square().to(device)
    clean = gradient_of_costs(soft_dtw_from_cost, costs, gamma=0)[1]
    costs[2, 5] = float("inf")
    value, gradient = gradient_of_costs(soft_dtw_from_cost, costs, gamma=0)
    assert value[2] == torch.inf and torch.equal(gradient, clean)
    x, y = normal(4, 20, 2, seed=1).to(device), normal(4, 30, 2, seed=2).to(device)
    x[2, 3] = torch.nan
    for inputs in ((x.requires_grad_(), y), (x, y.requires_grad_())):
        found = torch.autograd.grad(dtw(*inputs), inputs[-1] if inputs[-1].requires_grad else x, MASK.to(y))[0]
        assert (found[2] == 0).all() and (found[0] != 0).any()


@pytest.mark.parametrize("function", [soft_dtw, soft_dtw_divergence, lambda x, y, gamma: dtw(x, y, warp_penalty=gamma)])
def test_numbers_of_a_masked_pair_get_none(function):
    x, y = normal(4, 20, 2, seed=1), normal(4, 30, 2, seed=2)
    gammas = torch.full((4,), 0.5, dtype=torch.float64, requires_grad=True)
    x[2, 3] = torch.nan
    (gradient,) = torch.autograd.grad(function(x.requires_grad_(), y, gammas), gammas, MASK.double())
    assert gradient[2] == 0 and gradient.isfinite().all()
    (gradient,) = torch.autograd.grad(function(x.requires_grad_(), y, gammas), gammas, torch.ones(4).double())
    assert gradient[2].isnan()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("function", [soft_dtw, dtw])
def test_gradients_of_gradients_have_none(function, device):
    x, y = normal(4, 12, 2, seed=1), normal(4, 9, 2, seed=2)
    x[2, 3] = torch.nan
    x, y = x.to(device).requires_grad_(), y.to(device)
    (gradient,) = torch.autograd.grad(function(x, y), x, MASK.to(y), create_graph=True)
    assert (gradient[2] == 0).all()
    (second,) = torch.autograd.grad(gradient.square().sum(), x)
    assert (second[2] == 0).all() and second.isfinite().all() and (second[0] != 0).any()


@pytest.mark.parametrize("device", DEVICES)
def test_alignments_of_a_masked_pair_have_none(device):
    costs = normal(4, 12, 9, seed=1).square()
    costs[2, 5] = torch.inf
    costs = costs.to(device).requires_grad_()

    def with_alignment(x, y):
        return costs

    x, y = (
        torch.zeros(4, 12, 1, dtype=torch.float64, device=device),
        torch.zeros(4, 9, 1, dtype=torch.float64, device=device),
    )
    value, alignment = soft_dtw_alignment(x, y, gamma=1.0, cost=with_alignment)
    assert value[2] == torch.inf and alignment[2].isnan().any()
    weights = torch.rand(4, 12, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(device)
    kept = MASK.to(device)[:, None, None].bool()
    total = torch.where(kept, weights * alignment, 0).sum() + torch.where(kept[:, 0, 0], value, 0).sum()
    (gradient,) = torch.autograd.grad(total, costs)
    assert (gradient[2] == 0).all() and gradient.isfinite().all() and (gradient[0] != 0).any()


@pytest.mark.parametrize("function", [soft_dtw, dtw])
def test_transforms_give_none(function):
    x, y = normal(4, 12, 2, seed=1), normal(4, 9, 2, seed=2)
    x[2, 3] = torch.nan
    gradient = torch.func.grad(lambda x: (torch.where(MASK == 0, 0, function(x, y))).sum())(x)
    assert (gradient[2] == 0).all() and gradient.isfinite().all() and (gradient[0] != 0).any()
    rows = torch.func.jacrev(lambda x: function(x, y))(x)
    assert (rows[:2, 2] == 0).all() and rows[2, 2].isnan().any() and (rows[0, 0] != 0).any()


def test_a_gradient_that_arrives_still_finds_nan(template):
    x, y = normal(4, 20, 1, seed=1, dtype=torch.float32), normal(4, 17, 1, seed=2, dtype=torch.float32)
    x[2, 7, 0] = float("nan")
    _, grad_x, grad_y = run(template, x, y)
    assert np.isnan(grad_x[2]).all() and np.isnan(grad_y[2]).all()
    costs = normal(4, 20, 17, seed=1, dtype=torch.float32).square()
    costs[2, 5] = float("inf")
    assert np.isnan(run_from_cost(template, costs)[1][2]).all()
