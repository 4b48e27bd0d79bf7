"""Calls like an earlier one skip its checks: they must answer as it did, and calls unlike it must be checked."""

import functools
import inspect

import pytest
import torch

from torchsoftdtw import cdist, divergence, dtw, functional, hard, soft_dtw, soft_dtw_divergence
from torchsoftdtw._inputs import repeats, sets

# Each function, and where it has its arguments checked.
CHECKED = {
    "soft_dtw": (soft_dtw, functional, "of_series"),
    "dtw": (dtw, hard, "of_series"),
    "soft_dtw_divergence": (soft_dtw_divergence, divergence, "of_series"),
    "cdist": (cdist, sets, "pair"),
    "cdist of soft_dtw": (functools.partial(cdist, distance="soft_dtw"), sets, "pair"),
}


@pytest.fixture
def data(monkeypatch):
    """Two series, after a first call with them in a process that has seen no other."""
    monkeypatch.setattr(repeats, "known", {})
    torch.manual_seed(0)
    x, y = torch.randn(3, 6, 2), torch.randn(3, 7, 2)
    soft_dtw(x, y)
    assert len(repeats.known) == 1
    return x, y


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("options", [{}, {"bandwidth": 2}, {"warp_penalty": 0.5, "cost": "cityblock"}], ids=str)
@pytest.mark.parametrize("name", CHECKED)
def test_a_repeat_is_not_checked_and_answers_as_a_first_call(monkeypatch, name, options, gradient):
    function, module, check = CHECKED[name]
    checks, right = [], getattr(module, check)
    monkeypatch.setattr(module, check, lambda *given: checks.append(given) or right(*given))
    monkeypatch.setattr(repeats, "known", {})

    def call(x, y):
        value = function(x, y, **options)
        assert value.requires_grad == gradient
        return value, *(torch.autograd.grad(value.sum(), x) if gradient else ())

    call(torch.randn(3, 6, 2, requires_grad=gradient), torch.randn(3, 7, 2))
    assert len(checks) == 1
    x, y = torch.randn(3, 6, 2, requires_grad=gradient), torch.randn(3, 7, 2)
    repeated = call(x, y)
    assert len(checks) == 1
    repeats.known.clear()
    checked = call(x, y)
    assert len(checks) == 2
    assert all(torch.equal(*both) for both in zip(repeated, checked, strict=True))


def test_a_repeat_with_gradients_is_not_one_without(data):
    x, y = data
    assert not soft_dtw(x, y).requires_grad
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(soft_dtw(x, y).sum(), x)
    assert gradient.abs().sum() > 0
    with torch.no_grad():
        assert not soft_dtw(x, y).requires_grad
    assert len(repeats.known) == 2


WRONG = [
    (TypeError, "gamma", dict(gamma=True)),  # equal to 1.0, which has been seen
    (TypeError, "gamma", dict(gamma="1.0")),
    (ValueError, "gamma", dict(gamma=-1.0)),
    (ValueError, "gamma", dict(gamma=torch.ones(2))),
    (TypeError, "warp_penalty", dict(warp_penalty=False)),
    (ValueError, "warp_penalty", dict(warp_penalty=-1.0)),
    (ValueError, "cost", dict(cost="sqeuclid")),
    (TypeError, "cost", dict(cost=None)),
    (ValueError, "kernel", dict(kernel="tile")),
    (ValueError, "kernel", dict(kernel="tiled")),
    (TypeError, "kernel", dict(kernel=None)),
    (TypeError, "length_norm", dict(length_norm=0)),
    (TypeError, "open_ends", dict(open_ends=0)),
    (TypeError, "bandwidth", dict(bandwidth=1.5)),
    (ValueError, "x_lengths", dict(x_lengths=[1, 2, 7])),
    (ValueError, "x and y", dict(y=torch.zeros(2, 7, 2))),
    (ValueError, "x and y", dict(y=torch.zeros(3, 7, 1))),
    (ValueError, "y", dict(y=torch.zeros(3, 0, 2))),
    (TypeError, "y", dict(y=torch.zeros(3, 7, 2, dtype=torch.int32))),
    (TypeError, "y", dict(y=torch.zeros(3, 7, 2).to_sparse())),
    (TypeError, "y", dict(y=[[[0.0, 0.0]]])),
    (ValueError, "x and y", dict(y=torch.zeros(3, 7, 2, device="meta"))),
    (ValueError, "x and y", dict(x=torch.zeros(3, 6, 2, device="meta"))),
]


WRONG_CALLS = [
    (function, *wrong)
    for function in (soft_dtw, dtw, soft_dtw_divergence)
    for wrong in WRONG
    if {*wrong[-1]} <= inspect.signature(function).parameters.keys()
]


@pytest.mark.parametrize("function, error, name, changed", WRONG_CALLS)
def test_a_wrong_argument_after_a_right_call_is_named(data, function, error, name, changed):
    x, y = data
    function(x, y)
    known = {*repeats.known}
    for _ in range(2):
        with pytest.raises(error, match=f"^{name}"):
            function(**{"x": x, "y": y, **changed})
        if name != "kernel":  # which the divergence looks at in every call
            assert {*repeats.known} == known


@pytest.mark.parametrize(
    "error, name, changed",
    [
        (ValueError, "distance", dict(distance="soft")),
        (ValueError, "distance", dict(distance=["dtw"])),
        (TypeError, "gamma", dict(gamma=True, distance="soft_dtw")),
        (TypeError, "bandwidth", dict(bandwidth=1.5)),
        (ValueError, "kernel", dict(kernel="tile")),
        (ValueError, "x and y", dict(y=torch.zeros(3, 7, 1))),
        (ValueError, "x and y", dict(y=torch.zeros(3, 7, 2, device="meta"))),
        (ValueError, "y_lengths", dict(y=None, y_lengths=[1, 2, 3])),
        (ValueError, "open_ends", dict(y=None, open_ends=True)),
    ],
)
def test_a_wrong_argument_of_all_pairs_after_a_right_call_is_named(data, error, name, changed):
    x, y = data
    cdist(x, y), cdist(x)
    for _ in range(2):
        with pytest.raises(error, match=f"^{name}"):
            cdist(**{"x": x, "y": y, **changed})


def test_all_pairs_of_one_set_and_of_two_and_by_another_distance_are_told_apart(data):
    x, _ = data
    for _ in range(2):
        assert torch.equal(cdist(x, x), cdist(x))
        assert not torch.equal(cdist(x, distance="soft_dtw"), cdist(x))
        assert cdist(x, distance="divergence").diagonal().count_nonzero() == 0
    arrays = cdist(x.numpy())
    assert torch.equal(torch.from_numpy(arrays), cdist(x))
    whole = cdist(x)
    assert torch.equal(cdist(x[:, :5]), cdist(x[:, :5].clone())) and torch.equal(cdist(x), whole)


def test_other_calls_are_not_taken_for_a_repeat(data):
    x, y = data
    value = soft_dtw(x, y)
    torch.testing.assert_close(soft_dtw(x.double(), y), value.double(), rtol=1e-5, atol=1e-5)
    assert soft_dtw(x.double(), y).dtype == torch.float64
    assert soft_dtw(x[0], y[0]).shape == ()
    assert not torch.equal(soft_dtw(x, y, 2.0), value)
    assert not torch.equal(soft_dtw(x, y, warp_penalty=1.0), value)
    assert not torch.equal(soft_dtw(x, y, cost="cityblock"), value)
    assert not torch.equal(soft_dtw(x, y, bandwidth=0), value)
    assert not torch.equal(soft_dtw(x, y, x_lengths=[6, 5, 4]), value)
    torch.testing.assert_close(soft_dtw(x, y, length_norm=True), value / 13)
    nested = torch.nested.nested_tensor([torch.zeros(4, 2), torch.zeros(6, 2), torch.ones(2, 2)])
    padded = torch.nested.to_padded_tensor(nested, 0.0)
    assert torch.equal(soft_dtw(nested, y), soft_dtw(padded, y, x_lengths=[4, 6, 2]))
    assert torch.equal(soft_dtw(x, y), value)


def test_a_call_on_another_device_is_not_taken_for_a_repeat(data):
    x, y = data
    for _ in range(2):
        assert soft_dtw(x.to("meta"), y.to("meta")).device.type == "meta"
    assert len(repeats.known) == 2
    assert soft_dtw(x, y).device.type == "cpu"


@pytest.mark.cuda
def test_calls_on_the_cpu_and_on_cuda_are_told_apart(data):
    x, y = data
    expected = soft_dtw(x, y)
    for _ in range(2):
        torch.testing.assert_close(soft_dtw(x.cuda(), y.cuda()).cpu(), expected)
        assert torch.equal(soft_dtw(x, y), expected)
        for mixed in ((x.cuda(), y), (x, y.cuda())):
            with pytest.raises(ValueError, match="x and y: expected one device"):
                soft_dtw(*mixed)


def test_not_more_is_remembered_than_fits(data, monkeypatch):
    monkeypatch.setattr(repeats, "MOST", 4)
    x, y = data
    for n in range(1, 7):
        soft_dtw(x[:, :n], y)
        assert len(repeats.known) <= 4
