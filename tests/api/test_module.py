import copy
import io
import pickle

import pytest
import torch
from cases import DEVICES, normal

from torchsoftdtw import SoftDTW, SoftDTWDivergence, soft_dtw
from torchsoftdtw._kernels import selection


def module_level_cost(x, y):
    return torch.cdist(x, y)


@pytest.mark.parametrize("device", DEVICES)
def test_reductions(device):
    x, y = normal(4, 6, 2, seed=1).to(device), normal(4, 5, 2, seed=2).to(device)
    options = dict(cost="cityblock", bandwidth=2, warp_penalty=0.3)
    lengths = dict(x_lengths=[6, 1, 2, 3], y_lengths=[5, 4, 3, 2])
    value = soft_dtw(x, y, 0.2, **options, **lengths)
    assert torch.equal(SoftDTW(0.2, reduction="none", **options)(x, y, **lengths), value)
    assert torch.equal(SoftDTW(0.2, reduction="sum", **options)(x, y, **lengths), value.sum())
    assert torch.equal(SoftDTW(0.2, **options)(x, y, **lengths), value.mean())


def test_a_pair_without_a_batch():
    x, y = normal(6, 2, seed=1), normal(5, 2, seed=2)
    for reduction in ("mean", "sum", "none"):
        with pytest.warns(FutureWarning, match="SoftDTW: x of shape"):
            value = SoftDTW(reduction=reduction)(x, y)
        assert torch.equal(value, soft_dtw(x, y))


def test_repr_tells_the_options():
    assert repr(SoftDTW()) == "SoftDTW(gamma=0.1, cost=sqeuclidean, bandwidth=None, warp_penalty=0, reduction=mean)"
    module = SoftDTW(0.01, cost=module_level_cost, bandwidth=7, warp_penalty=0.5, reduction="sum")
    assert repr(module) == "SoftDTW(gamma=0.01, cost=module_level_cost, bandwidth=7, warp_penalty=0.5, reduction=sum)"


@pytest.mark.parametrize("cost", ["euclidean", module_level_cost])
def test_pickles_copies_and_saves(cost):
    module = SoftDTW(0.3, cost=cost, bandwidth=3, warp_penalty=0.1, reduction="none")
    x, y = normal(2, 6, 2, seed=1), normal(2, 5, 2, seed=2)
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    for other in (pickle.loads(pickle.dumps(module)), copy.deepcopy(module), torch.load(buffer, weights_only=False)):
        assert repr(other) == repr(module)
        assert torch.equal(other(x, y), module(x, y))


@pytest.mark.parametrize("module", [SoftDTW, SoftDTWDivergence])
def test_the_kernel_is_the_one_that_is_asked_for(kernel, module, monkeypatch):
    x, y = normal(2, 6, 2, seed=1).to(kernel.device), normal(2, 5, 2, seed=2).to(kernel.device)
    asked = []
    plan = selection.plan
    monkeypatch.setattr(selection, "plan", lambda name, like: asked.append(name) or plan(name, like))
    loss = module(kernel=kernel.name)
    assert loss(x, y).isfinite() and set(asked) == {kernel.name}
    assert repr(loss).endswith(f"reduction=mean, kernel={kernel.name})")
    assert repr(pickle.loads(pickle.dumps(loss))) == repr(loss)


def test_has_no_state():
    assert not SoftDTW().state_dict() and not list(SoftDTW().parameters())


def test_a_band_may_be_a_tensor_of_one_number():
    assert repr(SoftDTW(bandwidth=torch.tensor(2))) == repr(SoftDTW(bandwidth=2))
    with pytest.raises(TypeError, match="bandwidth: expected an integer or None"):
        SoftDTW(bandwidth=torch.tensor([2]))
