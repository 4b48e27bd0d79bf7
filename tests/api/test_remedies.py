"""Errors say what one could write instead; shapes that may mean something else than they are taken for are warned of."""

import re
import warnings

import numpy as np
import pytest
import torch
from torch.func import vmap

from torchsoftdtw import (
    SoftDTW,
    SoftDTWDivergence,
    cdist,
    dtw,
    soft_dtw,
    soft_dtw_alignment,
    soft_dtw_divergence,
    soft_dtw_from_cost,
)
from torchsoftdtw._inputs import remedies, repeats

FUNCTIONS = [soft_dtw, dtw, soft_dtw_alignment, soft_dtw_divergence]
X, Y = torch.zeros(4, 50, 1), torch.zeros(4, 60, 1)
COSTS = {
    "manhattan": "cityblock",
    "L1": "cityblock",
    "l2": "euclidean",
    "Euclidian": "euclidean",
    "squared_euclidean": "sqeuclidean",
    "squared-euclidean": "sqeuclidean",
    "sqeuclidian": "sqeuclidean",
    "mse": "sqeuclidean",
    "Cosine": "cosine",
}


def remedy_of(function, *inputs, **options):
    """What an error says after a semicolon."""
    with pytest.raises((TypeError, ValueError)) as error:
        function(*inputs, **options)
    return str(error.value).partition("; ")[2]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_to_write_for_what_is_no_tensor(function):
    parts = list(torch.zeros(2, 3, 1)), [torch.zeros(3, 1), torch.zeros(5, 1)]
    for name, inputs in (("x", lambda given: (given, Y)), ("y", lambda given: (X, given))):
        assert remedy_of(function, *inputs(np.zeros((4, 50, 1)))) == f"write torch.from_numpy({name})"
        assert remedy_of(function, *inputs([[[0.0]]])) == f"write torch.tensor({name})"
        assert remedy_of(function, *inputs("series")) == ""
        for given in parts:
            stack, pack = remedy_of(function, *inputs(given)).removesuffix(" where the lengths differ").split(", or ")
            assert stack == f"write torch.stack({name})"
            packed = eval(pack.replace(f"({name},", "(given,"))
            assert function(packed, packed) is not None
    assert remedy_of(function, X.long(), Y) == "write x.float()"
    assert remedy_of(function, X.to(torch.complex64), Y) == ""
    assert remedy_of(soft_dtw_from_cost, np.zeros((4, 5))) == "write torch.from_numpy(cost_matrix)"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_to_write_for_a_wrong_shape(function):
    batch = "a series of one channel is x[None, :, None], or without a batch x[:, None]"
    x = torch.zeros(50)
    assert remedy_of(function, x, x) == batch
    assert function(x[None, :, None], x[None, :, None]) is not None and function(x[:, None], x[:, None]) is not None
    assert remedy_of(function, torch.zeros(4, 50), torch.zeros(4, 60)).endswith("want .unsqueeze(2)")
    assert remedy_of(function, torch.zeros(4, 3, 50), torch.zeros(4, 3, 60)).endswith("write .transpose(1, 2)")
    assert remedy_of(function, torch.zeros(4, 50, 3), torch.zeros(4, 60, 2)) == ""
    for name, inputs in (("x", (X[:1], Y)), ("y", (X, Y[:1]))):
        assert remedy_of(function, *inputs) == f"write {name}.expand(4, -1, -1), or cdist(x, y) for every pair"
    assert remedy_of(function, X[:2], Y) == ""
    with pytest.raises(ValueError, match=r"got \(4, 50\) and \(4, 60\)"):
        function(torch.zeros(4, 50), torch.zeros(4, 60))


@pytest.mark.parametrize(("wrong", "right"), COSTS.items())
def test_a_cost_of_another_name(wrong, right):
    for call in (*FUNCTIONS, cdist, lambda x, y, cost: SoftDTW(cost=cost)):
        assert remedy_of(call, X, Y, cost=wrong) == f"did you mean {right!r}?"


def test_a_cost_that_is_like_no_other():
    assert remedy_of(soft_dtw, X, Y, cost="edit") == ""


@pytest.mark.parametrize("number", [float, np.float64])
def test_a_band_counts_cells(number):
    for call in (*FUNCTIONS, lambda x, y, bandwidth: SoftDTW(bandwidth=bandwidth), cdist):
        assert remedy_of(call, X, Y, bandwidth=number(0.1)) == "it counts cells: a share of the length is round(0.1 * N)"
        assert remedy_of(call, X, Y, bandwidth=number(5.0)) == "it counts cells: write 5"
        assert remedy_of(call, X, Y, bandwidth=number("nan")) == ""


def test_the_limit_of_gamma_has_a_name():
    for call in (soft_dtw_alignment, soft_dtw_divergence, lambda x, y, gamma: SoftDTWDivergence(gamma)):
        assert "hard DTW: dtw, dtw_path" in remedy_of(call, X, Y, gamma=0)
        assert remedy_of(call, X, Y, gamma=-1.0) == ""
    # As it says of divergences.
    x, y = torch.randn(4, 9, 1).double(), torch.randn(4, 7, 1).double()
    for kind in ("soft", "sharp"):
        torch.testing.assert_close(soft_dtw_divergence(x, y, 1e-9, kind=kind), dtw(x, y))


@pytest.fixture
def new_process(monkeypatch):
    """One that has not warned yet, nor seen any call."""
    monkeypatch.setattr(remedies, "_said", set())
    monkeypatch.setattr(repeats, "known", {})


def said(function, *inputs, **options):
    """The warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*inputs, **options)
    assert all(w.filename == __file__ for w in caught)  # the caller's line, not one of the package
    return [(w.category, str(w.message)) for w in caught]


MISTAKABLE = [
    ((4, 50), r"\(4, 50\) are one pair of series of 4 vectors of dimension 50; .* one channel want \.unsqueeze\(2\)"),
    ((4, 1, 50), r"\(4, 1, 50\) are 4 pairs of series of a single vector, of dimension 50; .*: \.transpose\(1, 2\) makes"),
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("shape", "message"), MISTAKABLE)
def test_a_shape_that_may_mean_something_else_is_warned_of_once(new_process, function, shape, message):
    x = torch.zeros(shape)
    ((category, text),) = said(function, x, x)
    assert category is UserWarning and re.search(message, text)
    for other in FUNCTIONS:
        assert not said(other, x, x, bandwidth=3)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_other_shapes_are_not_warned_of(new_process, function):
    x = torch.zeros(8, 50)
    # A pair of more steps than dimensions; of different lengths, as batches of series do not have; in a batch.
    for pair in (
        (x.T, x.T),
        (x, x[:7]),
        (x[None], x[None]),
        (x[:, None, :3], x[:, None, :3]),
        (x[:, :, None], x[:, :, None]),
    ):
        assert not said(function, *pair)
    assert said(function, x, x)


def test_a_repeated_call_does_not_look_at_its_shape(new_process, monkeypatch):
    looks = []
    monkeypatch.setattr(remedies, "warn_of_shape", lambda *given: looks.append(given))
    x = torch.zeros(4, 1, 50)
    for _ in range(3):
        soft_dtw(x, x)
    assert len(looks) == 1


@pytest.mark.parametrize("module", [SoftDTW, SoftDTWDivergence])
def test_modules_take_a_pair_without_a_batch_for_one_version(new_process, module):
    x, y = torch.randn(4, 50), torch.randn(6, 50)
    loss = module()
    for _ in range(2):  # every time, as the warnings' filter allows
        ((category, text),) = said(loss, x, y)
        assert category is FutureWarning
        assert text.startswith(f"{module.__name__}: x of shape (4, 50) is taken as a single series of 4 vectors")
        assert ".unsqueeze(2)" in text and ".unsqueeze(0)" in text
    assert not said(loss, x[None], y[None])
    assert len(said(loss, x, x)) == 1  # not a second time by the function
    assert len(said(vmap(loss), x[None], y[None])) == 1


@pytest.mark.parametrize("call", [soft_dtw, dtw, SoftDTW(), SoftDTWDivergence()], ids=lambda call: type(call).__name__)
def test_compiled_code_does_not_warn(new_process, call):
    torch._dynamo.reset()
    x = torch.zeros(4, 50)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("error", FutureWarning)
        torch.compile(lambda x: call(x, x), backend="eager", fullgraph=True)(x)
    assert not remedies._said
    torch._dynamo.reset()
