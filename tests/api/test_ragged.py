"""Nested tensors and packed sequences as input."""

import pytest
import torch
from cases import DEVICES, normal
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from torchsoftdtw import (
    SoftDTW,
    SoftDTWDivergence,
    dtw,
    dtw_path,
    soft_dtw,
    soft_dtw_alignment,
    soft_dtw_divergence,
)

X_LENGTHS, Y_LENGTHS = (5, 9, 1, 7), (8, 3, 4, 6)
GAMMAS, PENALTIES, BANDS = (0.05, 0.5, 1.0, 20.0), (0.0, 0.3, 2.0, 0.1), [3, 1, 0, 2]
KINDS = ["soft", "sharp", "mean"]

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


def numbers_per_pair(device):
    gammas, penalties = (torch.tensor(n, dtype=torch.float64, device=device) for n in (GAMMAS, PENALTIES))
    return gammas, {"warp_penalty": penalties, "bandwidth": BANDS}


def own_numbers():
    """Each pair's gamma and options, as numbers."""
    pairs = zip(GAMMAS, PENALTIES, BANDS, strict=True)
    return [(gamma, {"warp_penalty": penalty, "bandwidth": band}) for gamma, penalty, band in pairs]


def assert_gradients_agree(value, expected, series):
    """Those of weighted sums, so that no pair can stand for another."""
    weights = torch.arange(1.0, 5.0, dtype=torch.float64, device=value.device)
    actual, wanted = (torch.autograd.grad((v * weights).sum(), series) for v in (value, expected))
    assert any(gradient.any() for gradient in wanted)
    torch.testing.assert_close(actual, wanted, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form_of_y", FORMS)
@pytest.mark.parametrize("form_of_x", FORMS)
def test_divergences_of_ragged_batches_with_numbers_per_pair(device, form_of_x, form_of_y, kind):
    xs, ys = parts(X_LENGTHS, device), parts(Y_LENGTHS, device)
    gammas, options = numbers_per_pair(device)
    value = soft_dtw_divergence(form_of_x(xs), form_of_y(ys), gammas, kind=kind, **options)
    pairs = zip(xs, ys, own_numbers(), strict=True)
    alone = torch.stack([soft_dtw_divergence(x, y, gamma, kind=kind, **own) for x, y, (gamma, own) in pairs])
    torch.testing.assert_close(value, alone, rtol=1e-9, atol=1e-9)
    assert_gradients_agree(value, alone, xs + ys)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_module_of_a_divergence_with_numbers_per_pair(device, kind, form):
    xs, ys = parts(X_LENGTHS, device), parts(Y_LENGTHS, device)
    gammas, options = numbers_per_pair(device)
    loss = SoftDTWDivergence(gammas, kind=kind, warp_penalty=options["warp_penalty"], reduction="sum").to(device)
    value = loss(form(xs), form(ys))
    pairs = zip(xs, ys, GAMMAS, PENALTIES, strict=True)
    alone = sum(soft_dtw_divergence(x, y, gamma, kind=kind, warp_penalty=penalty) for x, y, gamma, penalty in pairs)
    torch.testing.assert_close(value, alone, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(
        torch.autograd.grad(value, xs + ys), torch.autograd.grad(alone, xs + ys), rtol=1e-7, atol=1e-9
    )
    # As in training, where the true series need no gradient.
    loss(form(xs), form([y.detach() for y in ys])).backward()
    assert all(x.grad.isfinite().all() and x.grad.any() for x in xs)


@pytest.mark.parametrize("form_of_y", FORMS)
@pytest.mark.parametrize("form_of_x", FORMS)
def test_alignments_of_ragged_batches_with_numbers_per_pair(device, form_of_x, form_of_y):
    xs, ys = parts(X_LENGTHS, device), parts(Y_LENGTHS, device)
    gammas, options = numbers_per_pair(device)
    value, alignment = soft_dtw_alignment(form_of_x(xs), form_of_y(ys), gammas, **options)
    assert alignment.shape == (4, max(X_LENGTHS), max(Y_LENGTHS))
    weights = normal(*alignment.shape, seed=3).to(device)
    alone, weighted = [], []
    for b, (x, y, (gamma, own)) in enumerate(zip(xs, ys, own_numbers(), strict=True)):
        own_value, own_alignment = soft_dtw_alignment(x, y, gamma, **own)
        torch.testing.assert_close(alignment[b, : len(x), : len(y)], own_alignment, rtol=1e-8, atol=1e-10)
        assert not alignment[b, len(x) :].any() and not alignment[b, :, len(y) :].any()
        alone.append(own_value)
        weighted.append((own_alignment * weights[b, : len(x), : len(y)]).sum())
    torch.testing.assert_close(value, torch.stack(alone), rtol=1e-9, atol=1e-9)
    together, one_by_one = value + (alignment * weights).sum((1, 2)), torch.stack(alone) + torch.stack(weighted)
    assert_gradients_agree(together, one_by_one, xs + ys)


@pytest.mark.parametrize("form", FORMS)
def test_gammas_beside_ragged_batches_get_gradients(device, form):
    xs, ys = ([part.detach() for part in parts(lengths, device)] for lengths in (X_LENGTHS, Y_LENGTHS))
    for penalties in (None, torch.tensor(PENALTIES, dtype=torch.float64, device=device)):
        gammas = numbers_per_pair(device)[0].requires_grad_()
        options = {} if penalties is None else {"warp_penalty": penalties}
        (actual,) = torch.autograd.grad(soft_dtw_divergence(form(xs), form(ys), gammas, **options).sum(), gammas)
        for b, (x, y, number) in enumerate(zip(xs, ys, GAMMAS, strict=True)):
            gamma = torch.tensor(number, dtype=torch.float64, device=device, requires_grad=True)
            options = {} if penalties is None else {"warp_penalty": PENALTIES[b]}
            (wanted,) = torch.autograd.grad(soft_dtw_divergence(x, y, gamma, **options), gamma)
            torch.testing.assert_close(actual[b], wanted, rtol=1e-7, atol=1e-9)


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
