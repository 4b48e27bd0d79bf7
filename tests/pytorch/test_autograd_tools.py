"""What PyTorch offers around autograd beside torch.func: checkpoints, hooks on saved tensors, torch.autograd.functional,
torch.jit.trace."""

import pytest
import torch
from cases import DEVICES, normal
from torch.autograd.functional import hessian, hvp, jacobian, vhp
from torch.utils.checkpoint import checkpoint

from torchsoftdtw import dtw, soft_dtw, soft_dtw_alignment, soft_dtw_divergence, soft_dtw_from_cost

LENGTHS = dict(x_lengths=[6, 1, 4], y_lengths=[2, 5, 5])


def costs_of(x, y):
    return (x.unsqueeze(-2) - y.unsqueeze(-3)).square().sum(-1)


FUNCTIONS = {
    "soft_dtw": lambda x, y: soft_dtw(x, y, 0.5, **LENGTHS),
    "cosine": lambda x, y: soft_dtw(x, y, 0.5, cost="cosine", **LENGTHS),
    "callable": lambda x, y: soft_dtw(x, y, 0.5, cost=costs_of, **LENGTHS),
    "open_ends": lambda x, y: soft_dtw(x, y, 0.5, open_ends=True),
    "gamma": lambda x, y: soft_dtw(x, y, x.square().mean((1, 2))),
    "gamma_and_penalty": lambda x, y: soft_dtw(x, y, x.square().mean((1, 2)), warp_penalty=y.square().mean((1, 2))),
    "from_cost": lambda x, y: soft_dtw_from_cost(costs_of(x, y), x.square().mean((1, 2))),
    "alignment": lambda x, y: soft_dtw_alignment(x, y, 0.5, **LENGTHS)[1],
    "soft": lambda x, y: soft_dtw_divergence(x, y, 0.5, **LENGTHS),
    "sharp": lambda x, y: soft_dtw_divergence(x, y, 0.5, kind="sharp"),
    "dtw": lambda x, y: dtw(x, y, warp_penalty=y.square().mean((1, 2)), **LENGTHS),
    "dtw_cosine": lambda x, y: dtw(x, y, cost="cosine"),
    "dtw_from_cost": lambda x, y: soft_dtw_from_cost(costs_of(x, y), 0),
}
SECOND_ORDER = [name for name in FUNCTIONS if name not in ("gamma", "gamma_and_penalty", "from_cost")]


def series(device):
    return tuple(normal(3, n, 2, seed=n).to(device).requires_grad_() for n in (6, 5))


def gradients(function, x, y, **options):
    value = function(x, y)
    return torch.autograd.grad((value * torch.ones_like(value).cumsum(0)).sum(), (x, y), **options)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("device", DEVICES)
def test_checkpointing_changes_nothing(device, name):
    """It computes anew what a backward pass asks for when it asks, and only once."""
    x, y = series(device)

    def recomputed(x, y):
        return checkpoint(FUNCTIONS[name], 2 * x, y.cos(), use_reentrant=False)

    def kept(x, y):
        return FUNCTIONS[name](2 * x, y.cos())

    torch.testing.assert_close(gradients(recomputed, x, y), gradients(kept, x, y), rtol=0, atol=0)
    if name in SECOND_ORDER:
        squares = [sum(slope.square().sum() for slope in gradients(f, x, y, create_graph=True)) for f in (recomputed, kept)]
        torch.testing.assert_close(*(torch.autograd.grad(square, (x, y)) for square in squares), rtol=0, atol=0)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("device", DEVICES)
def test_what_is_saved_passes_through_hooks_once(device, name):
    x, y = series(device)
    packed, unpacked = [], []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: packed.append(tensor) or len(packed) - 1, lambda k: unpacked.append(k) or packed[k].clone()
    ):
        value = FUNCTIONS[name](x, y)
    actual = torch.autograd.grad((value * torch.ones_like(value).cumsum(0)).sum(), (x, y))
    assert len(set(unpacked)) == len(unpacked)
    torch.testing.assert_close(actual, gradients(FUNCTIONS[name], x, y), rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", [name for name in SECOND_ORDER if name != "alignment"])
@pytest.mark.parametrize("device", DEVICES)
def test_autograd_functional_agrees_with_itself(device, name):
    x, y = (tensor.detach() for tensor in series(device))

    def values(x):
        return FUNCTIONS[name](x, y)

    def total(x):
        return values(x).sum()

    plain = jacobian(values, x)
    torch.testing.assert_close(jacobian(values, x, vectorize=True), plain)
    torch.testing.assert_close(jacobian(values, x, vectorize=True, strategy="forward-mode"), plain)
    plain = hessian(total, x)
    torch.testing.assert_close(hessian(total, x, vectorize=True), plain)
    torch.testing.assert_close(hessian(total, x, vectorize=True, outer_jacobian_strategy="forward-mode"), plain)
    product = torch.einsum("abcdef,def->abc", plain, x)
    torch.testing.assert_close(hvp(total, x, x)[1], product)
    torch.testing.assert_close(vhp(total, x, x)[1], product)


@pytest.mark.parametrize("device", DEVICES)
def test_products_with_third_derivatives_are_linear_in_their_directions(device):
    """Which is what hvp makes use of: no derivative of the fourth order is in that of a direction."""
    x, y = series(device)
    (slope,) = torch.autograd.grad(FUNCTIONS["sharp"](x, y).sum(), x, create_graph=True)
    direction, along = normal(3, 6, 2, seed=1).to(device).requires_grad_(), normal(3, 6, 2, seed=2).to(device)

    def product(direction):
        return torch.autograd.grad(slope, x, direction, create_graph=True)[0]

    (derivative,) = torch.autograd.grad((product(direction) * along).sum(), direction)
    torch.testing.assert_close(derivative, product(along).detach())
    with pytest.raises(RuntimeError, match="up to the third order"):
        torch.autograd.grad(product(direction).square().sum(), (direction, x))


@pytest.mark.filterwarnings("ignore:.*torch.jit", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("device", DEVICES)
def test_traces_are_right_without_gradients_and_an_error_with_them(device, name):
    """PyTorch would put the example's own tensors in the place of an autograd.Function's."""
    x, y = series(device)
    with torch.no_grad():
        traced = torch.jit.trace(FUNCTIONS[name], (x, y))
        torch.testing.assert_close(traced(x.cos(), y.sin()), FUNCTIONS[name](x.cos(), y.sin()))
    if name not in ("alignment", "sharp"):
        with pytest.raises(RuntimeError, match=r"no gradients under torch\.jit\.trace"):
            torch.jit.trace(FUNCTIONS[name], (x, y))
