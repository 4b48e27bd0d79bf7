"""Lengths, a band's radius, gamma and the warp penalty, given for all pairs or for each."""

import contextlib

import pytest
import torch
from cases import DEVICES, normal
from torch.nn.utils.rnn import pack_sequence

from torchsoftdtw import SoftDTW, SoftDTWDivergence, dtw, soft_dtw, soft_dtw_alignment, soft_dtw_divergence

LISTS = [
    ({"x_lengths": [6, 1, 3]}, {"x_lengths": [6, 0, 3]}),
    ({"y_lengths": [2, 7, 3]}, {"y_lengths": [2, 8, 3]}),
    ({"bandwidth": [0, 2, 5]}, {"bandwidth": [0, -1, 5]}),
    ({"gamma": [0.5, 1.0, 2.0]}, {"gamma": [0.5, 0.0, 2.0]}),
    ({"warp_penalty": (0.5, 0.0, 2.0)}, {"warp_penalty": (0.5, -1.0, 2.0)}),
]


@contextlib.contextmanager
def default_device():
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


# Tensors are then made on no device that has numbers, unless one is named.
NOWHERE = pytest.mark.parametrize("nowhere", [default_device, lambda: torch.device("meta")], ids=["set", "context"])


@pytest.fixture
def data():
    return normal(3, 6, 2, seed=1), normal(3, 7, 2, seed=2)


@NOWHERE
@pytest.mark.parametrize(("right", "wrong"), LISTS, ids=lambda given: next(iter(given)))
def test_a_list_is_checked_and_lands_on_the_device_of_the_series(data, right, wrong, nowhere):
    (name,) = wrong
    with nowhere():
        value = soft_dtw(*data, **right)
        with pytest.raises(ValueError, match=f"^{name}: expected"):
            soft_dtw(*data, **wrong)
    assert torch.equal(value, soft_dtw(*data, **right))


@NOWHERE
def test_numbers_of_a_module_do_not_follow_the_default_device(data, nowhere):
    with nowhere():
        loss = SoftDTW(gamma=[0.5, 1.0, 2.0], reduction="none")
        with pytest.raises(ValueError, match="gamma: expected"):
            SoftDTW(gamma=[0.5, 0.0])
    assert torch.equal(loss(*data), soft_dtw(*data, [0.5, 1.0, 2.0]))


@NOWHERE
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_lengths_of_ragged_series_do_not_follow_the_default_device(data, nowhere):
    x, y = data
    parts = [x[0], x[1, :2], x[2, :4]]
    forms = [torch.nested.nested_tensor(parts, layout=layout) for layout in (torch.strided, torch.jagged)]
    forms.append(pack_sequence(parts, enforce_sorted=False))
    expected = soft_dtw(x, y, x_lengths=[6, 2, 4])
    with nowhere():
        values = [soft_dtw(form, y) for form in forms]
    for value in values:
        torch.testing.assert_close(value, expected)


BAD = {
    "gamma": [0.0, -1.0, float("nan"), float("inf"), 1e-42],
    "warp_penalty": [-1.0, float("nan"), float("inf")],
}


@pytest.mark.parametrize("as_list", [True, False], ids=["list", "tensor"])
@pytest.mark.parametrize(("name", "bad"), [(name, bad) for name, numbers in BAD.items() for bad in numbers])
def test_a_bad_number_is_found_at_any_place(name, bad, as_list):
    x, y = torch.zeros(5, 3, 1), torch.zeros(5, 4, 1)
    for place in range(5):
        for others in ([1.0] * 5, [0.5, 1.0, 2.0, 3.0, 4.0]):
            numbers = [bad if k == place else number for k, number in enumerate(others)]
            numbers = numbers if as_list else torch.tensor(numbers)
            for call in (soft_dtw, soft_dtw_alignment, soft_dtw_divergence):
                with pytest.raises(ValueError, match=f"^{name}: "):
                    call(x, y, **{name: numbers})


def test_a_bad_penalty_of_hard_dtw_is_found_at_any_place():
    for place in range(5):
        penalties = torch.ones(5)
        penalties[place] = -1
        with pytest.raises(ValueError, match="warp_penalty: expected a finite number of at least 0, got -1"):
            dtw(torch.zeros(5, 3, 1), torch.zeros(5, 4, 1), warp_penalty=penalties)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["gamma", "warp_penalty"])
def test_a_tensor_of_one_number_holds_for_all_pairs(data, name, device):
    x, y = (series.to(device) for series in data)
    gradients = []
    for shape in ((), (1,)):
        number = torch.full(shape, 0.5, device=device, requires_grad=True)
        value = soft_dtw(x, y, **{name: number})
        torch.testing.assert_close(value, soft_dtw(x, y, **{name: 0.5}))
        gradients.append(torch.autograd.grad(value.sum(), number)[0])
        assert gradients[-1].shape == shape
    torch.testing.assert_close(gradients[0], gradients[1][0])


@pytest.mark.parametrize("module", [SoftDTW, SoftDTWDivergence])
def test_a_learnable_gamma_of_one_element_trains(data, module):
    loss = module(gamma=torch.nn.Parameter(torch.ones(1)))
    loss(*data).backward()
    assert loss.gamma.grad.shape == (1,) and loss.gamma.grad.abs() > 0
    loss(data[0][:1], data[1][:1])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("function", [soft_dtw, dtw, soft_dtw_divergence])
def test_a_radius_without_dimensions_holds_for_all_pairs(data, function, device):
    x, y = (series.to(device) for series in data)
    for radius in (0, 2, 100):
        for tensor in (torch.tensor(radius), torch.tensor(radius, device=device, dtype=torch.int32)):
            assert torch.equal(function(x, y, bandwidth=tensor), function(x, y, bandwidth=radius))
            assert torch.equal(function(x[0], y[0], bandwidth=tensor), function(x[0], y[0], bandwidth=radius))
