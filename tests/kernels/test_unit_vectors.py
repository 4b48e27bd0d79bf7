"""Unit vectors of float32 and their gradients, by the op and by the expression that stands for it in other dtypes."""

import math

import pytest
import torch
from cases import DEVICES, normal

from torchsoftdtw._inputs.unit_vectors import UnitVectors, _by_steps
from torchsoftdtw._kernels import ops

on_devices = pytest.mark.parametrize("device", DEVICES)


def by_steps(x, y):
    return _by_steps(x, 0), _by_steps(y, 1)


def with_gradients(function, x, y, dtype, needed=(True, True)):
    """(unit vectors, gradient) of x and of y."""
    series = [z.detach().to(dtype, copy=True).requires_grad_(need) for z, need in zip((x, y), needed, strict=True)]
    units = function(*series)
    width = x.shape[2] + 2
    weights = [normal(*z.shape[:2], width, seed=9, dtype=torch.float64) for z in (x, y)]
    sum((unit[..., :width] * w.to(unit)).sum() for unit, w in zip(units, weights, strict=True)).backward()
    grads = [z.grad if z.grad is None else z.grad.cpu() for z in series]
    return [(unit.detach().cpu(), grad) for unit, grad in zip(units, grads, strict=True)]


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 8, 9, 31, 32, 33, 64, 65, 100, 128, 257, 300])
@on_devices
def test_unit_vectors_and_gradients(device, dim):
    x, y = (normal(*shape, dim, seed=dim).float().to(device) for shape in ((3, 41), (2, 57)))
    x[1, 7] = y[1, 9] = 0
    found, expected = with_gradients(UnitVectors.apply, x, y, torch.float32), with_gradients(by_steps, x, y, torch.float64)
    for flag, series, zero, own, exact in zip((0, 1), (x, y), ((1, 7), (1, 9)), found, expected, strict=True):
        unit, grad, expected_unit, expected_grad = *own, *exact
        torch.testing.assert_close(unit[..., : dim + 2], expected_unit.float(), rtol=1.2e-7, atol=1e-45)
        assert (unit[..., dim + 2 :] == 0).all()
        assert unit[(*zero, dim + flag)] == 1 and unit[..., dim + 1 - flag].eq(0).all()
        # Numbers of a unit vector are rounded to float32 before the gradient is made of them.
        scale = expected_grad.abs().amax(2, keepdim=True) + 1 / series.double().norm(dim=2, keepdim=True).cpu()
        assert (((grad - expected_grad).abs() / scale)[expected_grad.isfinite()] < 1e-6 * math.sqrt(dim)).all()
        assert (grad[zero] == 0).all()


@pytest.mark.parametrize("needed", [(True, False), (False, True)])
@on_devices
def test_the_gradient_to_one_series_alone(device, needed):
    x, y = (normal(2, length, 5, seed=length).float().to(device) for length in (7, 300))
    alone = with_gradients(UnitVectors.apply, x, y, torch.float32, needed)
    together = with_gradients(UnitVectors.apply, x, y, torch.float32)
    for (_, grad), (_, expected), need in zip(alone, together, needed, strict=True):
        assert torch.equal(grad, expected) if need else grad is None
    series = [z.requires_grad_(need) for z, need in zip((x, y), needed, strict=True)]
    assert tuple(unit.requires_grad for unit in UnitVectors.apply(*series)) == needed


@pytest.mark.parametrize("flag", [0, 1])
def test_second_derivatives(flag):
    series = [normal(2, length, 3, seed=length).float().requires_grad_() for length in (4, 5)]

    def second(function):
        unit = function(*series)[flag][..., :3]
        first = torch.autograd.grad(unit.pow(3).sum(), series[flag], create_graph=True)[0]
        return torch.autograd.grad(first.square().sum(), series[flag])[0]

    torch.testing.assert_close(second(UnitVectors.apply), second(by_steps), rtol=1e-5, atol=1e-5)


@on_devices
def test_any_strides_and_no_vectors(device):
    series = normal(4, 6, 10, dtype=torch.float32).to(device)
    other = normal(3, 5, 10, seed=1, dtype=torch.float32).to(device)
    for view in (series.transpose(0, 1), series.transpose(1, 2), series[:, ::2], series[:, :0], series[:0]):
        dim = view.shape[2]
        for x, y in ((view, other[..., :dim]), (other[..., :dim], view)):
            made = ops.unit_vectors(x, y, dim + 2)
            for one, same in zip(made, ops.unit_vectors(x.contiguous(), y.contiguous(), dim + 2), strict=True):
                assert torch.equal(one, same)
            gradients = [normal(*unit.shape, seed=3, dtype=torch.float32).to(device) for unit in made[::2]]
            askew = [gradient.transpose(0, 1).contiguous().transpose(0, 1) for gradient in gradients]
            grads = ops.unit_vectors_backward(*askew, *made, dim)
            assert [grad.shape for grad in grads] == [x.shape, y.shape]
            for grad, same in zip(grads, ops.unit_vectors_backward(*gradients, *made, dim), strict=True):
                assert torch.equal(grad, same)


@pytest.mark.parametrize("scale", [1e-44, 1e-30, 1e30, 3e38])
@on_devices
def test_huge_and_tiny_vectors(device, scale):
    series = torch.tensor([[[3.0, -4.0], [0.0, 1.0], [1.0, 0.0]]]).div(4) * scale
    unit, *_ = ops.unit_vectors(series.to(device), series.to(device), 4)
    exact = series.double()
    torch.testing.assert_close(unit[..., :2].cpu().double(), exact / exact.norm(dim=2, keepdim=True), rtol=1e-7, atol=0)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@on_devices
def test_a_bad_number_spoils_its_vector_alone(device, bad):
    series = normal(2, 9, 12, dtype=torch.float32).to(device)
    expected, *_ = ops.unit_vectors(series, series, 14)
    spoiled = series.clone()
    spoiled[1, 4, 3] = bad
    unit, _, unit_y, _ = ops.unit_vectors(spoiled, series, 14)
    assert unit[1, 4].isnan().any() and unit_y.isfinite().all()
    others = torch.ones(2, 9, dtype=torch.bool)
    others[1, 4] = False
    assert torch.equal(unit.cpu()[others], expected.cpu()[others])


@on_devices
def test_opcheck(device, filled_memory):
    x, y = (normal(2, length, 3, dtype=torch.float32).to(device) for length in (5, 6))
    made = ops.unit_vectors(x, y, 8)
    ones = [torch.ones_like(unit) for unit in made[::2]]
    torch.library.opcheck(ops.unit_vectors, (x, y, 8))
    for arriving in (ones, (ones[0], None), (None, ones[1])):
        torch.library.opcheck(ops.unit_vectors_backward, (*arriving, *made, 3))


def test_what_does_not_fit_is_refused():
    x, y = torch.ones(2, 3, 4), torch.ones(2, 5, 4)
    unit, inverse, *of_y = ops.unit_vectors(x, y, 6)
    refused = [
        (ops.unit_vectors, (x.double(), y, 6), "x: expected a float32 tensor"),
        (ops.unit_vectors, (x, y[0], 6), "y: expected a float32 tensor"),
        (ops.unit_vectors, (x, y[..., :3], 6), "y: expected 4 dimensions, as x has, got 3"),
        (ops.unit_vectors, (x, y, 5), "width: expected at least 6, got 5"),
        (ops.unit_vectors_backward, (unit[:1], None, unit, inverse, *of_y, 4), "grad_unit_x: expected the shape"),
        (ops.unit_vectors_backward, (None, unit, unit, inverse, *of_y, 4), "grad_unit_y: expected the shape"),
        (ops.unit_vectors_backward, (unit, None, unit, inverse.float(), *of_y, 4), "inverse_x: expected a float64 tensor"),
        (ops.unit_vectors_backward, (unit, None, unit, inverse, *of_y, 5), "dim: expected 1 to 4, got 5"),
    ]
    for op, arguments, message in refused:
        with pytest.raises(RuntimeError, match=message):
            op(*arguments)
