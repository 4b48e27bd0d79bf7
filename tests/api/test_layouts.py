"""Strides, views, and sizes of zero and one."""

import numpy as np
import pytest
import torch
from cases import normal, run, run_from_cost

from torchsoftdtw import SoftDTW, dtw, soft_dtw, soft_dtw_from_cost

LAYOUTS = {
    "transposed_time": lambda make, b, n, d: make(b, d, n).transpose(1, 2),
    "transposed_batch": lambda make, b, n, d: make(n, b, d).transpose(0, 1),
    "every_second": lambda make, b, n, d: make(2 * b, 2 * n, 2 * d)[::2, 1::2, ::2],
    "offset": lambda make, b, n, d: make(b + 1, n + 3, d + 2)[1:, 2:-1, 1:-1],
    "expanded_batch": lambda make, b, n, d: make(1, n, d).expand(b, n, d),
    "expanded_time": lambda make, b, n, d: make(b, 1, d).expand(b, n, d),
    "one_number": lambda make, b, n, d: make(1, 1, 1).expand(b, n, d),
    "at_an_odd_address": lambda make, b, n, d: make(b * n * d + 1)[1:].view(b, n, d),
    "overlapping_windows": lambda make, b, n, d: make(b + n * d).as_strided((b, n, d), (1, d, 1)),
}


def make_on(device, seed):
    return lambda *shape: normal(*shape, seed=seed, dtype=torch.float32).to(device)


@pytest.mark.parametrize("dim", [2, 3, 8])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_strides_give_what_a_contiguous_copy_gives(template, layout, dim):
    x = LAYOUTS[layout](make_on(template.device, 1), 3, 34, dim)
    other = LAYOUTS[layout](make_on(template.device, 2), 3, 20, dim)
    y = make_on(template.device, 3)(3, 20, dim)
    assert not (x.is_contiguous() and other.is_contiguous()) or x.data_ptr() % 16 == 4
    for a, b in ((x, y), (y, x), (x, other)):
        copies = (z.clone(memory_format=torch.contiguous_format) for z in (a, b))
        for actual, expected in zip(run(template, a, b), run(template, *copies), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cost_matrices_of_any_strides(template, layout):
    costs = LAYOUTS[layout](make_on(template.device, 1), 3, 34, 20)
    for actual, expected in zip(run_from_cost(template, costs), run_from_cost(template, costs.contiguous()), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_gradients_through_views_reach_the_base(kernel):
    base = normal(5, 12, 4, seed=1).to(kernel.device).requires_grad_()
    y = normal(5, 6, 2, seed=2).to(kernel.device)
    soft_dtw(base[:, ::2, 1:3], y, kernel=kernel.name).sum().backward()
    leaf = base.detach()[:, ::2, 1:3].contiguous().requires_grad_()
    soft_dtw(leaf, y, kernel=kernel.name).sum().backward()
    torch.testing.assert_close(base.grad[:, ::2, 1:3], leaf.grad)
    assert base.grad.count_nonzero() == leaf.grad.count_nonzero()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("what", [1, 2, 17, "matrix", "hard"])
def test_incoming_gradients_of_any_strides(kernel, what, dtype):
    dim = what if isinstance(what, int) else 2
    x, y = (normal(4, n, dim, seed=n, dtype=dtype).to(kernel.device).requires_grad_() for n in (5, 6))
    costs = normal(4, 5, 6, seed=1, dtype=dtype).to(kernel.device).requires_grad_()
    weights = normal(4, 4, seed=3, dtype=dtype).to(kernel.device)
    for weight in (weights[:, 1], weights[0, :1].expand(4), weights[:, ::2].t()[1], weights.t()[2]):
        if what == "matrix":
            inputs, value = (costs,), soft_dtw_from_cost(costs, kernel=kernel.name)
        else:
            inputs, value = (x, y), dtw(x, y) if what == "hard" else soft_dtw(x, y, kernel=kernel.name)
        actual = torch.autograd.grad(value, inputs, weight, retain_graph=True)
        expected = torch.autograd.grad(value, inputs, weight.contiguous())
        assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))


@pytest.mark.parametrize("cost", ["sqeuclidean", "cosine", lambda x, y: torch.cdist(x, y)])
def test_an_empty_batch_gives_empty_values_and_gradients(kernel, cost):
    x = torch.zeros(0, 5, 2, device=kernel.device, requires_grad=True)
    y = torch.zeros(0, 4, 2, device=kernel.device, requires_grad=True)
    for lengths in ({}, {"x_lengths": [], "y_lengths": torch.zeros(0, dtype=torch.int64), "bandwidth": []}):
        value = soft_dtw(x, y, cost=cost, kernel=kernel.name, **lengths)
        assert value.shape == (0,)
        gradients = torch.autograd.grad(value.sum(), (x, y))
        assert [g.shape for g in gradients] == [x.shape, y.shape]
    assert SoftDTW(reduction="sum")(x, y) == 0


def test_a_pair_without_a_batch_gives_a_scalar(kernel):
    x, y = normal(5, 2, seed=1).to(kernel.device).requires_grad_(), normal(6, 2, seed=2).to(kernel.device)
    value = soft_dtw(x, y, kernel=kernel.name)
    assert value.shape == ()
    value.backward()
    assert x.grad.shape == x.shape
    torch.testing.assert_close(value, soft_dtw(x[None], y[None], kernel=kernel.name)[0])
    costs = torch.cdist(x, y).square()
    torch.testing.assert_close(soft_dtw_from_cost(costs, kernel=kernel.name), value)


def test_series_of_length_one(kernel):
    x, y = normal(3, 1, 2, seed=1), normal(3, 1, 2, seed=2)
    value, grad_x, grad_y = run(kernel, x, y, gamma=0.3, warp_penalty=5.0)
    np.testing.assert_allclose(value, (x - y).square().sum((1, 2)), rtol=1e-12)
    np.testing.assert_allclose(grad_x, 2 * (x - y), rtol=1e-12)
    np.testing.assert_allclose(grad_y, 2 * (y - x), rtol=1e-12)
