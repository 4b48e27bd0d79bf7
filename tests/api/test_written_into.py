"""A value may be written into, as in `loss /= 4`, and its backward pass goes on as it would have."""

import pytest
import torch
from cases import DEVICES, normal

from torchsoftdtw import dtw, soft_dtw, soft_dtw_alignment, soft_dtw_divergence, soft_dtw_from_cost


def series(device, batch=3):
    x, y = normal(batch, 9, 2, seed=1), normal(batch, 7, 2, seed=2)
    return [x.to(device).requires_grad_(), y.to(device).requires_grad_()]


def costs(device):
    return [normal(3, 9, 7, seed=3).square().to(device).requires_grad_()]


def with_gamma(function, inputs):
    def call(device):
        tensors = inputs(device)
        gamma = torch.full((3,), 0.5, device=device, dtype=torch.float64, requires_grad=True)
        return function(*tensors, gamma), [*tensors, gamma]

    return call


def plain(function, inputs, **options):
    def call(device):
        tensors = inputs(device)
        return function(*tensors, **options), tensors

    return call


def alignment(x, y):
    return soft_dtw_alignment(x, y)[0]


CALLS = {
    "soft_dtw": plain(soft_dtw, series),
    "lengths": plain(soft_dtw, series, x_lengths=[9, 4, 2]),
    "gamma": with_gamma(soft_dtw, series),
    "from_cost": plain(soft_dtw_from_cost, costs),
    "gamma_from_cost": with_gamma(soft_dtw_from_cost, costs),
    "alignment": plain(alignment, series),
    **{kind: plain(soft_dtw_divergence, series, kind=kind) for kind in ("soft", "sharp", "mean")},
    "dtw": plain(dtw, series),
    "hard_from_cost": plain(soft_dtw_from_cost, costs, gamma=0),
    "penalty": plain(dtw, series, warp_penalty=torch.tensor(0.5, requires_grad=True)),
    "normed": plain(soft_dtw, series, length_norm=True),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_gradients_are_those_of_what_was_computed(call, create_graph, device):
    (value, tensors), (written, others) = call(device), call(device)
    higher = create_graph and not any(tensor.dim() == 1 for tensor in tensors)  # gamma has none
    written /= 4
    expected = torch.autograd.grad(value.sum() / 4, tensors, create_graph=higher)
    actual = torch.autograd.grad(written.sum(), others, create_graph=higher)
    assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))
    if not (higher and all(gradient.requires_grad for gradient in expected)):
        return
    seconds = [
        torch.autograd.grad(sum(g.square().sum() for g in gradients), inputs)
        for gradients, inputs in ((expected, tensors), (actual, others))
    ]
    assert all(torch.equal(a, b) for a, b in zip(*seconds, strict=True))


@pytest.mark.parametrize("call", [CALLS["soft_dtw"], CALLS["gamma"], CALLS["from_cost"], CALLS["dtw"]])
def test_what_is_written_does_not_matter(call):
    """Nor does an infinity in the place of a number, or a number in that of an infinity."""
    for number in (0.0, float("nan"), float("inf")):
        (value, tensors), (written, others) = call("cpu"), call("cpu")
        written[1:2].detach().fill_(number)
        written[0] = number
        weights = torch.tensor([0.0, 2.0, 3.0], dtype=torch.float64)
        expected = torch.autograd.grad((value * weights).sum(), tensors)
        actual = torch.autograd.grad((written * weights)[1:].sum(), others)
        assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))


def test_a_pair_without_a_batch_is_written_into():
    (x, y), (a, b) = series("cpu"), series("cpu")
    loss = soft_dtw(x[0], y[0])
    loss /= 4
    loss.backward()
    (soft_dtw(a[0], b[0]) / 4).backward()
    assert torch.equal(x.grad, a.grad) and torch.equal(y.grad, b.grad)


@pytest.mark.parametrize("function", [soft_dtw, dtw])
def test_compiled_code_writes_into_it(function):
    def loss_of(x, y):
        loss = function(x, y)
        loss /= 4
        return loss.sum()

    (x, y), (a, b) = series("cpu"), series("cpu")
    torch.compile(loss_of, backend="aot_eager", fullgraph=True)(x, y).backward()
    loss_of(a, b).backward()
    assert torch.equal(x.grad, a.grad) and torch.equal(y.grad, b.grad)


def test_the_value_of_a_graph_that_is_gone_is_gone():
    x, y = series("cpu")
    value = soft_dtw(x, y)
    storage = value.untyped_storage()._weak_ref()
    del value
    assert torch.UntypedStorage._expired(storage)
