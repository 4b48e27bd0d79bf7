"""Gradients against finite differences, in float64."""

import pytest
import torch
from cases import COSTS, normal

from torchsoftdtw import soft_dtw, soft_dtw_from_cost

LENGTHS = {"full": {}, "lengths": {"x_lengths": [5, 1, 3], "y_lengths": [2, 6, 4]}}
BANDS = {"no_band": None, "band": 1, "bands": [0, 1, 9]}


def gradcheck(function, *inputs):
    return torch.autograd.gradcheck(function, inputs, eps=1e-6, atol=1e-6, rtol=1e-5, nondet_tol=0.0)


def product_cost(x, y):
    return torch.cos(x @ y.transpose(1, 2)) + 2


@pytest.mark.parametrize("penalty", [0.0, 0.4], ids=["", "penalty"])
@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("cost", [*COSTS, product_cost])
def test_gradients_are_those_of_finite_differences(kernel, cost, lengths, band, penalty):
    x = normal(3, 5, 2, seed=1).to(kernel.device).requires_grad_()
    y = normal(3, 6, 2, seed=2).to(kernel.device).requires_grad_()
    options = dict(cost=cost, bandwidth=BANDS[band], warp_penalty=penalty, kernel=kernel.name, **LENGTHS[lengths])
    assert gradcheck(lambda x, y: soft_dtw(x, y, 0.5, **options), x, y)


@pytest.mark.parametrize("penalty", [0.0, 0.4], ids=["", "penalty"])
@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("lengths", LENGTHS)
def test_gradients_of_cost_matrices_are_those_of_finite_differences(kernel, lengths, band, penalty):
    costs = normal(3, 5, 6, seed=1).to(kernel.device).requires_grad_()
    options = dict(bandwidth=BANDS[band], warp_penalty=penalty, kernel=kernel.name, **LENGTHS[lengths])
    assert gradcheck(lambda costs: soft_dtw_from_cost(costs, 0.5, **options), costs)


def test_only_the_gradient_that_is_asked_for(kernel):
    x, y = normal(2, 5, 2, seed=1).to(kernel.device), normal(2, 6, 2, seed=2).to(kernel.device)
    both = torch.autograd.grad(
        soft_dtw(x.requires_grad_(), y.requires_grad_(), gamma=1.0, kernel=kernel.name).sum(), (x, y)
    )
    for wanted in (0, 1):
        inputs = [x.detach(), y.detach()]
        inputs[wanted].requires_grad_()
        soft_dtw(*inputs, gamma=1.0, kernel=kernel.name).sum().backward()
        assert torch.equal(inputs[wanted].grad, both[wanted])
        assert inputs[1 - wanted].grad is None


def test_same_tensor_as_x_and_y(kernel):
    x = normal(2, 5, 2, seed=1).to(kernel.device).requires_grad_()
    assert gradcheck(lambda x: soft_dtw(x, x, 0.5, kernel=kernel.name), x)
