"""Unit vectors of float32 and their gradients, by the op and by the expression that stands for it in other dtypes."""

import math

import pytest
import torch
from cases import DEVICES, normal

from torchsoftdtw._inputs.unit_vectors import UnitVectors, _by_steps
from torchsoftdtw._kernels import ops

on_devices = pytest.mark.parametrize("device", DEVICES)


def both(series, flag):
    """Unit vectors and the gradient of a product with them, of the op in float32 and of the expression in float64."""
    answers = []
    weights = normal(*series.shape[:2], series.shape[2] + 2, seed=9, dtype=torch.float64)
    for function, dtype in ((UnitVectors.apply, torch.float32), (_by_steps, torch.float64)):
        own = series.detach().to(dtype, copy=True).requires_grad_()
        unit = function(own, flag)
        (unit[..., : weights.shape[2]] * weights.to(unit)).sum().backward()
        answers += [unit.detach().cpu(), own.grad.cpu()]
    return answers


@pytest.mark.parametrize("flag", [0, 1])
@pytest.mark.parametrize("dim", [1, 2, 3, 5, 8, 31, 32, 33, 64, 100])
@on_devices
def test_unit_vectors_and_gradients(device, dim, flag):
    series = normal(3, 41, dim, seed=dim).float().to(device)
    series[1, 7] = 0
    unit, grad, expected, expected_grad = both(series, flag)
    torch.testing.assert_close(unit[..., : dim + 2], expected.float(), rtol=1.2e-7, atol=1e-45)
    assert (unit[..., dim + 2 :] == 0).all()
    assert unit[1, 7, dim + flag] == 1 and unit[..., dim + 1 - flag].eq(0).all()
    # Numbers of a unit vector are rounded to float32 before the gradient is made of them.
    scale = expected_grad.abs().amax(2, keepdim=True) + 1 / series.double().norm(dim=2, keepdim=True).cpu()
    assert (((grad - expected_grad).abs() / scale)[expected_grad.isfinite()] < 1e-6 * math.sqrt(dim)).all()
    assert (grad[1, 7] == 0).all()


@on_devices
def test_any_strides_and_no_vectors(device):
    series = normal(4, 6, 10, dtype=torch.float32).to(device)
    for view in (series.transpose(0, 1), series.transpose(1, 2), series[:, ::2], series[:, :0], series[:0]):
        unit, inverse = ops.unit_vectors(view, 1, view.shape[2] + 2)
        same, same_inverse = ops.unit_vectors(view.contiguous(), 1, view.shape[2] + 2)
        assert torch.equal(unit, same) and torch.equal(inverse, same_inverse)
        gradient = torch.ones_like(unit).transpose(0, 1).contiguous().transpose(0, 1)
        grad = ops.unit_vectors_backward(gradient, unit, inverse, view.shape[2])
        assert grad.shape == view.shape


@pytest.mark.parametrize("scale", [1e-44, 1e-30, 1e30, 3e38])
@on_devices
def test_huge_and_tiny_vectors(device, scale):
    series = torch.tensor([[[3.0, -4.0], [0.0, 1.0], [1.0, 0.0]]]).div(4) * scale
    unit, _ = ops.unit_vectors(series.to(device), 0, 4)
    exact = series.double()
    torch.testing.assert_close(unit[..., :2].cpu().double(), exact / exact.norm(dim=2, keepdim=True), rtol=1e-7, atol=0)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@on_devices
def test_a_bad_number_spoils_its_vector_alone(device, bad):
    series = normal(2, 9, 12, dtype=torch.float32).to(device)
    expected, _ = ops.unit_vectors(series, 0, 14)
    series[1, 4, 3] = bad
    unit, _ = ops.unit_vectors(series, 0, 14)
    assert unit[1, 4].isnan().any()
    others = torch.ones(2, 9, dtype=torch.bool)
    others[1, 4] = False
    assert torch.equal(unit.cpu()[others], expected.cpu()[others])


@on_devices
def test_opcheck(device, filled_memory):
    series = normal(2, 5, 3, dtype=torch.float32).to(device)
    unit, inverse = ops.unit_vectors(series, 0, 8)
    torch.library.opcheck(ops.unit_vectors, (series, 0, 8))
    torch.library.opcheck(ops.unit_vectors_backward, (torch.ones_like(unit), unit, inverse, 3))


def test_what_does_not_fit_is_refused():
    series = torch.ones(2, 3, 4)
    unit, inverse = ops.unit_vectors(series, 0, 6)
    refused = [
        (ops.unit_vectors, (series.double(), 0, 6), "series: expected a float32 tensor"),
        (ops.unit_vectors, (series[0], 0, 6), "series: expected a float32 tensor"),
        (ops.unit_vectors, (series, 2, 6), "flag: expected 0 or 1, got 2"),
        (ops.unit_vectors, (series, 0, 5), "width: expected at least 6, got 5"),
        (ops.unit_vectors_backward, (unit[:1], unit, inverse, 4), "grad_unit: expected the shape"),
        (ops.unit_vectors_backward, (unit, unit, inverse.float(), 4), "inverse: expected a float64 tensor"),
        (ops.unit_vectors_backward, (unit, unit, inverse, 5), "dim: expected 1 to 4, got 5"),
    ]
    for op, arguments, message in refused:
        with pytest.raises(RuntimeError, match=message):
            op(*arguments)
