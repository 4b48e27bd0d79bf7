"""What PyTorch does not document is used in one file, and something stands in for it, or an error names it."""

import contextlib
import importlib.util
import re
from pathlib import Path

import pytest
import torch
import torch._dynamo  # torch.func loads it, and not where the names are missing that tests take away here
from cases import normal
from torch.autograd import forward_ad

import torchsoftdtw
from torchsoftdtw import _internals, dtw, soft_dtw
from torchsoftdtw._autograd import first_order, hard_dtw

PACKAGE = Path(torchsoftdtw.__file__).parent
PRIVATE = re.compile(r"torch\._\w|\b_C\b|forward_ad|\._ragged|torch\.fx\.experimental|torch\.\w+\._\w")


def loaded():
    """The module as a PyTorch would load it that lacks what has been removed from this one."""
    spec = importlib.util.spec_from_file_location("torchsoftdtw._internals_again", _internals.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_other_file_uses_private_names():
    files = [path for path in PACKAGE.rglob("*.py") if path.name != "_internals.py"]
    found = [f"{path.name}: {line}" for path in files for line in path.read_text().splitlines() if PRIVATE.search(line)]
    assert len(files) > 20 and not found, found


def test_what_stands_in_for_a_missing_name(monkeypatch):
    for owner, name in (
        (torch._C, "_AutoDispatchBelowAutograd"),
        (torch._C, "_are_functorch_transforms_active"),
        (torch._C._functorch, "get_dynamic_layer_stack_depth"),
    ):
        monkeypatch.delattr(owner, name)
    module = loaded()
    assert module.below_autograd is contextlib.nullcontext
    assert not module.under_transform() and module.depth_of_transforms() == 0
    seen = []
    torch.func.grad(lambda x: seen.append((module.under_transform(), module.depth_of_transforms())) or x)(torch.tensor(1.0))
    with forward_ad.dual_level():
        seen.append((module.under_transform(), module.has_tangents()))
    assert seen == [(True, 1), (True, True)]


@pytest.mark.parametrize("is_known", [True, False])
def test_tangents_are_seen_beneath_other_transforms(monkeypatch, is_known):
    if not is_known:
        monkeypatch.delattr(torch._C._functorch, "get_interpreter_stack")
    module, seen = loaded(), []
    look = lambda x: seen.append(module.has_tangents()) or x  # noqa: E731
    one = torch.ones(1)
    look(one)
    torch.func.vmap(look)(one)
    torch.func.jvp(torch.func.vmap(look), (one,), (one,))
    assert seen == [False, not is_known, True] and not module.has_tangents()


@pytest.mark.parametrize("function", [soft_dtw, dtw])
def test_ops_work_through_autograd(monkeypatch, function):
    def answer():
        x, y = normal(2, 6, 2, seed=1).requires_grad_(), normal(2, 5, 2, seed=2)
        value = function(x, y)
        (gradient,) = torch.autograd.grad(value.sum(), x, create_graph=True)
        with torch.no_grad():
            assert torch.equal(function(x, y), value)
        return value, gradient

    expected = answer()
    for user in (first_order, hard_dtw):
        monkeypatch.setattr(user, "below_autograd", contextlib.nullcontext)
    assert all(torch.equal(a, b) for a, b in zip(answer(), expected, strict=True))


@pytest.mark.parametrize(
    ("owner", "name"), [(torch._C._functorch, "is_functorch_wrapped_tensor"), (forward_ad, "_current_level")]
)
def test_what_nothing_stands_in_for_is_named(monkeypatch, owner, name):
    monkeypatch.delattr(owner, name)
    with pytest.raises(ImportError, match=rf"torchsoftdtw: PyTorch .* has no torch\..*{name}, which PyTorch [\d.]+ has"):
        loaded()


def test_a_store_that_is_not_to_be_had_is_named_by_the_call_that_needs_it(monkeypatch):
    monkeypatch.delattr(torch.distributed.distributed_c10d, "_get_default_store")
    module = loaded()
    with pytest.raises(ImportError, match=r"torchsoftdtw: PyTorch .* has no torch\.distributed\..*_get_default_store"):
        module.default_store()


def test_a_constant_is_marked_as_pytorch_marks_it():
    theirs, ours = (
        mark(lambda: 0) for mark in (torch.compiler.assume_constant_result, _internals.constant_while_compiling)
    )
    assert vars(theirs) == vars(ours) != {}
