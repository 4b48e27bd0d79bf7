"""Named costs against other packages' and at their singular points, and costs that the user supplies."""

import numpy as np
import pytest
import torch
from cases import COSTS, KernelCase, normal, numpy64, run
from scipy.spatial.distance import cdist
from torch.nn.functional import huber_loss, smooth_l1_loss

from torchsoftdtw import dtw, soft_dtw, soft_dtw_from_cost
from torchsoftdtw._autograd.cost_matrix import cost_matrix

CPU = KernelCase("cpu", "cpu")


def costs_of_pairs(x, y, cost, kernel, gamma=1.0):
    """The cost of each x with the y beside it: the value between series of length one, whatever gamma is."""
    x, y = x.unsqueeze(1).to(kernel.device), y.unsqueeze(1).to(kernel.device)
    return soft_dtw(x, y, gamma, cost=cost, kernel=kernel.name)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("cost", ["sqeuclidean", "euclidean", "cityblock", "cosine"])
def test_costs_are_scipys(kernel, cost, dtype):
    x, y = normal(50, 4, seed=1, dtype=dtype), normal(50, 4, seed=2, dtype=dtype)
    expected = np.array([cdist(a[None], b[None], cost)[0, 0] for a, b in zip(numpy64(x), numpy64(y), strict=True)])
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    np.testing.assert_allclose(numpy64(costs_of_pairs(x, y, cost, kernel)), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_huber_is_torchs_loss(kernel, dtype):
    x, y = 2 * normal(50, 4, seed=1, dtype=dtype), 2 * normal(50, 4, seed=2, dtype=dtype)
    below, above = (torch.nextafter(torch.ones((), dtype=dtype), torch.tensor(end, dtype=dtype)) for end in (0.0, 2.0))
    corners = torch.tensor([0.0, 1.0, below, above, 1e-5, 1e4], dtype=dtype)
    x[:6], y[:6] = torch.stack([corners, -corners, corners.flip(0), 0 * corners], 1), 0
    expected = huber_loss(x, y, reduction="none").sum(1)
    assert torch.equal(smooth_l1_loss(x, y, reduction="none").sum(1), expected)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    actual = costs_of_pairs(x, y, "huber", kernel).cpu()
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
    hard = dtw(x.unsqueeze(1).to(kernel.device), y.unsqueeze(1).to(kernel.device), cost="huber").cpu()
    torch.testing.assert_close(hard, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("difference", [0.0, -0.0, 0.25, 1.0, -1.0, 1.0 + 2**-23, -1.0 + 2**-24, 3.0, -1e6])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("dim", [1, 3, 40])
def test_slope_of_huber(kernel, dtype, difference, dim):
    x, y = torch.full((1, 1, dim), difference, dtype=dtype), torch.zeros(1, 1, dim, dtype=dtype)
    slope = max(-1.0, min(difference, 1.0))
    for gamma in (1.0, 0):
        _, grad_x, grad_y = run(kernel, x, y, gamma, cost="huber")
        # In the linear domain E is a quotient that is rounded, and series are multiplied with a factor.
        tolerance = (1e-15 if dtype == torch.float64 else 1e-6) if gamma and dim == 1 and kernel.name == "stencil" else 0
        np.testing.assert_allclose(grad_x, slope, rtol=tolerance, atol=0)
        np.testing.assert_allclose(grad_y, -slope, rtol=tolerance, atol=0)


def test_a_matrix_of_hubers_costs_is_torchs_to_the_second_derivative():
    series = [2 * normal(2, n, 3, seed=n) for n in (5, 6)]
    series[1][0, 0] = series[0][0, 0] + torch.tensor([0.0, 0.5, -2.0])
    weights, directions = normal(2, 5, 6, seed=1), [normal(2, n, 3, seed=n + 10) for n in (5, 6)]

    def by_torch(x, y, _):
        return huber_loss(*torch.broadcast_tensors(x[:, :, None], y[:, None]), reduction="none").sum(3)

    found = []
    for costs_of in (cost_matrix, by_torch):
        leaves = [side.clone().requires_grad_() for side in series]
        costs = costs_of(*leaves, "huber")
        slopes = torch.autograd.grad((costs * weights).sum(), leaves, create_graph=True)
        along = sum((slope * direction).sum() for slope, direction in zip(slopes, directions, strict=True))
        found.append((costs, *slopes, *torch.autograd.grad(along, leaves)))
    torch.testing.assert_close(*found, rtol=1e-12, atol=1e-12)


def test_cosine_cost_of_zero_vectors_is_one_and_their_gradient_zero(kernel):
    zero, other = torch.zeros(3, 2, dtype=torch.float64), normal(3, 2, seed=1)
    for x, y in ((zero, other), (other, zero), (zero, zero)):
        value, grad_x, grad_y = run(kernel, x.unsqueeze(1), y.unsqueeze(1), cost="cosine")
        np.testing.assert_allclose(value, 1.0, rtol=1e-12)
        np.testing.assert_allclose(grad_x, 0.0, atol=1e-12)
        np.testing.assert_allclose(grad_y, 0.0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-38, 1e-20, 1e20, 5e37])
def test_cosine_cost_of_huge_and_tiny_vectors(kernel, scale):
    x, y = normal(20, 3, seed=1, dtype=torch.float32), normal(20, 3, seed=2, dtype=torch.float32)
    expected = costs_of_pairs(x, y, "cosine", kernel)
    torch.testing.assert_close(costs_of_pairs(x * scale, y, "cosine", kernel), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(costs_of_pairs(x, y * scale, "cosine", kernel), expected, rtol=1e-4, atol=1e-5)


def test_cosine_cost_near_zero_does_not_cancel(kernel):
    # 1 - cos(t) = t^2 / 2, far below the rounding of a float32 near 1.
    angle = torch.tensor([1e-3, 1e-4, 1e-5])
    x = torch.stack([torch.ones(3), torch.zeros(3)], 1)
    y = torch.stack([angle.cos(), angle.sin()], 1)
    value = costs_of_pairs(x, y, "cosine", kernel, gamma=1e-12).cpu()
    torch.testing.assert_close(value, angle.square() / 2, rtol=1e-2, atol=1e-14)


@pytest.mark.parametrize("dim", [2, 5, 20])
def test_cosine_costs_are_off_in_no_direction(kernel, dim):
    """Where all costs are equal, and cost and entropy cancel, the value shows what every cost is off by."""
    n, gamma_of_cost = 700, 0.9141  # cost and entropy cancel near there
    unit = torch.eye(dim).flip(0)[:2]
    for vectors in (unit, normal(2, dim, seed=dim).float()):
        x, y = (vector.expand(1, n, dim) for vector in vectors)
        gamma = gamma_of_cost * costs_of_pairs(x[:, 0].double(), y[:, 0].double(), "cosine", CPU).item()
        expected = soft_dtw(x.double(), y.double(), gamma, cost="cosine").item()
        assert abs(expected) < 3 * gamma
        value = soft_dtw(x.to(kernel.device), y.to(kernel.device), gamma, cost="cosine", kernel=kernel.name).item()
        allowed = 1e-5 * max(abs(expected), gamma)
        if vectors is not unit:
            allowed += 1e-7 * 2 * n * gamma  # such vectors and their costs are rounded themselves
        if kernel.name in ("stencil", "tiled"):
            allowed += 3e-8 * 2 * n * gamma  # the bias of a step, as docs/gamma.md says
        assert abs(value - expected) <= allowed, (value, expected, allowed)


@pytest.mark.parametrize("open_ends", [False, True])
def test_hard_dtw_of_cosine_costs_is_their_sum(open_ends):
    x, y = torch.tensor([[1.0, 0.0]]).expand(1, 4000, 2), torch.tensor([[0.0, 1.0]]).expand(1, 4000, 2)
    penalty = torch.tensor([0.25], requires_grad=True)
    value = dtw(x, y[:, :1], cost="cosine", warp_penalty=penalty, open_ends=open_ends)
    assert value.item() == 4000 + 3999 * 0.25
    value.backward()
    assert penalty.grad.item() == 3999
    assert dtw(x, y, cost="cosine", open_ends=open_ends).item() == 4000


@pytest.mark.parametrize("cost", COSTS[1:])
def test_gradient_is_finite_where_the_cost_has_a_corner(kernel, cost):
    x = normal(2, 12, 3, seed=1, dtype=torch.float32)
    x[:, 3] = 0
    x[:, 5] = x[:, 4]
    value, grad_x, grad_y = run(kernel, x, x.clone(), cost=cost)
    assert np.isfinite(value).all() and np.isfinite(grad_x).all() and np.isfinite(grad_y).all()


def test_a_callable_gets_a_batch_in_the_dtype_of_the_computation(kernel):
    seen = []

    def cost(x, y):
        seen.append((x.shape, y.shape, x.dtype, y.dtype))
        return torch.cdist(x, y)

    x, y = normal(5, 2, seed=1, dtype=torch.float16), normal(6, 2, seed=2, dtype=torch.float32)
    soft_dtw(x.to(kernel.device), y.to(kernel.device), cost=cost, kernel=kernel.name)
    assert seen == [((1, 5, 2), (1, 6, 2), torch.float32, torch.float32)]


def test_a_callable_may_have_parameters_that_learn(kernel):
    weight = torch.nn.Parameter(torch.tensor([0.5, 2.0], device=kernel.device))
    x, y = (normal(2, n, 2, seed=n, dtype=torch.float32).to(kernel.device) for n in (5, 6))

    def weighted(x, y):
        return ((x.unsqueeze(2) - y.unsqueeze(1)).square() * weight).sum(3)

    soft_dtw(x, y, cost=weighted, kernel=kernel.name).sum().backward()
    matrix = weighted(x, y)
    expected = torch.autograd.grad(soft_dtw_from_cost(matrix, kernel=kernel.name).sum(), weight)[0]
    torch.testing.assert_close(weight.grad, expected)
    assert weight.grad.abs().min() > 0


def test_costs_may_be_negative(kernel):
    costs = torch.tensor([[[-3.0]], [[2.5]]], device=kernel.device)
    torch.testing.assert_close(soft_dtw_from_cost(costs, kernel=kernel.name), costs[:, 0, 0])
