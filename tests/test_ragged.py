"""Nested tensors and packed sequences as input."""

import pytest
import torch
from cases import normal
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from torchsoftdtw import SoftDTW, dtw, dtw_path, soft_dtw

X_LENGTHS, Y_LENGTHS = (5, 9, 1, 7), (8, 3, 4, 6)
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]

pytestmark = [
    pytest.mark.parametrize("device", DEVICES),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
]


def parts(lengths, device, dtype=torch.float64):
    return [normal(n, 2, seed=n, dtype=dtype).to(device).requires_grad_() for n in lengths]


def strided(series):
    return torch.nested.as_nested_tensor(series, layout=torch.strided)


def jagged(series):
    return torch.nested.as_nested_tensor(series, layout=torch.jagged)


def with_gaps(series):
    """Jagged, in a tensor that holds numbers between the series."""
    longest = max(len(part) for part in series)
    dense = torch.stack([torch.cat([part, part.new_full((longest - len(part), 2), 7.0)]) for part in series])
    lengths = torch.tensor([len(part) for part in series], device=dense.device)
    return torch.nested.narrow(dense, 1, torch.zeros_like(lengths), lengths, layout=torch.jagged)


def packed(series):
    return pack_sequence(series, enforce_sorted=False)


FORMS = [strided, jagged, with_gaps, packed]


@pytest.mark.parametrize("form_of_y", FORMS)
@pytest.mark.parametrize("form_of_x", FORMS)
def test_a_ragged_batch_equals_its_pairs_one_by_one(device, form_of_x, form_of_y):
    xs, ys = parts(X_LENGTHS, device), parts(Y_LENGTHS, device)
    for function, options in ((soft_dtw, {"gamma": 0.5, "bandwidth": 2}), (dtw, {}), (dtw, {"open_ends": True})):
        value = function(form_of_x(xs), form_of_y(ys), **options)
        alone = torch.stack([function(x, y, **options) for x, y in zip(xs, ys, strict=True)])
        torch.testing.assert_close(value, alone)
        weights = torch.arange(1.0, 5.0, dtype=torch.float64, device=device)
        expected = torch.autograd.grad(alone, xs + ys, weights)
        for actual, wanted in zip(torch.autograd.grad(value, xs + ys, weights), expected, strict=True):
            torch.testing.assert_close(actual, wanted)


@pytest.mark.parametrize("form", FORMS)
def test_modules_and_paths_take_them(device, form):
    xs, ys = parts(X_LENGTHS, device), parts(Y_LENGTHS, device)
    options = dict(length_norm=True, warp_penalty=0.1)
    loss = SoftDTW(0.5, reduction="sum", **options)(form(xs), form(ys))
    torch.testing.assert_close(loss, sum(soft_dtw(x, y, 0.5, **options) for x, y in zip(xs, ys, strict=True)))
    _, paths = dtw_path(form(xs), form(ys))
    for path, x, y in zip(paths, xs, ys, strict=True):
        assert torch.equal(path, dtw_path(x, y)[1])


@pytest.mark.parametrize("form", FORMS)
def test_one_may_be_dense(device, form):
    xs, y = parts(X_LENGTHS, device), normal(4, 6, 2, seed=1).to(device)
    expected = torch.stack([soft_dtw(x, row[:n]) for x, row, n in zip(xs, y, (6, 2, 1, 4), strict=True)])
    torch.testing.assert_close(soft_dtw(form(xs), y, y_lengths=[6, 2, 1, 4]), expected)
    torch.testing.assert_close(soft_dtw(y, form(xs), x_lengths=[6, 2, 1, 4]), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("form", [strided, jagged, packed])
def test_gradients_come_back_in_the_form_and_dtype_of_the_input(device, form, dtype):
    leaf = form([part.detach() for part in parts(X_LENGTHS, device, dtype)])
    values = leaf.data if isinstance(leaf, PackedSequence) else leaf
    values.requires_grad_()
    soft_dtw(leaf, form(parts(Y_LENGTHS, device, dtype))).sum().backward()
    assert values.grad.dtype == dtype and values.grad.is_nested == values.is_nested
    total = values.grad.values() if values.is_nested and form is jagged else values.grad
    rows = total.unbind() if form is strided else [total]
    assert sum(len(row) for row in rows) == sum(X_LENGTHS) and all(row.isfinite().all() for row in rows)


def test_a_network_on_packed_sequences_trains(device):
    torch.manual_seed(0)
    recurrent = torch.nn.GRU(2, 2).to(device)
    predicted, _ = recurrent(packed(parts(X_LENGTHS, device, torch.float32)))
    soft_dtw(predicted, packed(parts(Y_LENGTHS, device, torch.float32))).mean().backward()
    assert all(parameter.grad.isfinite().all() and parameter.grad.any() for parameter in recurrent.parameters())
