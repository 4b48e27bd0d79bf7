"""Distances of all pairs of two sets: those of the functions of single pairs, whatever the tiles."""

import functools

import numpy as np
import pytest
import torch
from cases import DEVICES, normal

from torchsoftdtw import cdist, dtw, soft_dtw, soft_dtw_divergence
from torchsoftdtw._pairs import measure
from torchsoftdtw._pairs.measure import Measure

GAMMA = 0.5
FUNCTIONS = {
    "dtw": dtw,
    "soft_dtw": functools.partial(soft_dtw, gamma=GAMMA),
    "divergence": functools.partial(soft_dtw_divergence, gamma=GAMMA),
}
X_LENGTHS, Y_LENGTHS = (9, 4, 1, 6, 9, 7, 2), (3, 8, 5, 1, 8)
OPTIONS = {
    "plain": {},
    "lengths": {"x_lengths": X_LENGTHS, "y_lengths": Y_LENGTHS},
    "band": {"bandwidth": 2},
    "penalty": {"warp_penalty": 0.3},
    "cosine": {"cost": "cosine"},
    "cityblock": {"cost": "cityblock"},
    "callable": {"cost": torch.cdist},
    "length_norm": {"length_norm": True},
    "open_ends": {"open_ends": True},
    "all": {"cost": "euclidean", "bandwidth": 3, "warp_penalty": 0.1, "x_lengths": X_LENGTHS, "length_norm": True},
}
# A sum of 12 to 17 costs and as many steps, and of P or Q pairs for a gradient.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 1e-5, torch.bfloat16: 1e-5}
GRADIENT_TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}

pytestmark = pytest.mark.usefixtures("one_thread")
on_devices = pytest.mark.parametrize("device", DEVICES)
of_every_distance = pytest.mark.parametrize("distance", FUNCTIONS)


def sets(device="cpu", dtype=torch.float64, dim=2):
    return normal(7, 9, dim, seed=1, dtype=dtype).to(device), normal(5, 8, dim, seed=2, dtype=dtype).to(device)


def by_pairs(distance, x, y, x_lengths=None, y_lengths=None, length_norm=False, **options):
    """What cdist is to return: a loop over pairs, each without a batch."""
    n = [x.shape[1]] * len(x) if x_lengths is None else x_lengths
    m = [y.shape[1]] * len(y) if y_lengths is None else y_lengths
    rows = []
    for i in range(len(x)):
        row = [FUNCTIONS[distance](x[i, : n[i]], y[j, : m[j]], **options) for j in range(len(y))]
        row = [value / (n[i] + m[j]) for j, value in enumerate(row)] if length_norm else row
        rows.append(torch.stack(row))
    return torch.stack(rows)


def test_tiles_are_as_large_as_what_many_pairs_keep_allows(monkeypatch):
    kept = {measure.FEW_PAIRS: 4000, "many": 1000}  # bytes of a pair, which is held by fewer lanes among many
    monkeypatch.setattr(measure, "_saved_bytes", lambda _, pairs, *__: kept.get(pairs, kept["many"]))
    monkeypatch.setattr(measure, "MOST_BYTES", 100 * 2000)
    asked, tile_shape = [], measure.tile_shape
    monkeypatch.setattr(measure, "tile_shape", lambda *given: asked.append(given[2]) or tile_shape(*given))
    x = sets(dtype=torch.float32)[0].requires_grad_()
    cdist(x, distance="soft_dtw").sum().backward()
    others = 2 * (9 + 9) * 2 * 4 + 16  # bytes that a pair has beside
    assert asked[-1] == 100 * 2000 // (1000 + others)


def small_tiles(monkeypatch, side):
    monkeypatch.setattr(Measure, "tile_shape", lambda *_, **__: (side, side))


def weights_of(value):
    return normal(*value.shape, seed=3).to(value)


@functools.cache
def expected_of(distance, name, is_half, device, dtype, dim):
    """The loop's values and gradients, computed once for all tiles."""
    x, y = (series.requires_grad_() for series in sets(device, dtype, dim))
    options = OPTIONS[name]
    if is_half:
        y, options = x, options | {"y_lengths": options.get("x_lengths")}
    value = by_pairs(distance, x, y, **options)
    return value.detach(), torch.autograd.grad(value, [x] if is_half else [x, y], weights_of(value))


def assert_every_pair_as_alone(distance, name, device, dtype=torch.float64, dim=2, is_half=False):
    expected, expected_gradients = expected_of(distance, name, is_half, device, dtype, dim)
    x, y = (series.requires_grad_() for series in sets(device, dtype, dim))
    inputs = (x,) if is_half else (x, y)
    options = {key: value for key, value in OPTIONS[name].items() if not (is_half and key == "y_lengths")}
    found = cdist(*inputs, distance=distance, gamma=GAMMA, **options)
    with torch.no_grad():  # another way through the tiles
        without_gradients = cdist(*inputs, distance=distance, gamma=GAMMA, **options)
    for value in (found.detach(), without_gradients):
        assert value.dtype == expected.dtype and value.device == x.device
        torch.testing.assert_close(value, expected, rtol=0, atol=TOLERANCE[dtype] * expected.abs().max().item())
    for got, want in zip(torch.autograd.grad(found, inputs, weights_of(found)), expected_gradients, strict=True):
        assert got.dtype == dtype
        torch.testing.assert_close(got, want, rtol=0, atol=GRADIENT_TOLERANCE[dtype] * want.abs().max().item())


@on_devices
@pytest.mark.parametrize("options", OPTIONS)
@of_every_distance
def test_every_pair_as_alone(device, distance, options):
    if distance == "divergence" and options == "open_ends":
        pytest.skip("the divergence has no open ends")
    assert_every_pair_as_alone(distance, options, device)


@on_devices
@pytest.mark.parametrize("options", [name for name in OPTIONS if name != "open_ends"])
@of_every_distance
def test_a_set_with_itself(device, distance, options):
    assert_every_pair_as_alone(distance, options, device, is_half=True)


@on_devices
@pytest.mark.parametrize("is_half", [False, True], ids=["two_sets", "one_set"])
@pytest.mark.parametrize("side", [1, 3])  # of tiles smaller than the sets: some are cut off, some lie on the diagonal
@of_every_distance
def test_tiles_do_not_matter(monkeypatch, side, device, distance, is_half):
    small_tiles(monkeypatch, side)
    for options in ("lengths", "callable"):
        assert_every_pair_as_alone(distance, options, device, is_half=is_half)


@on_devices
@pytest.mark.parametrize("dim", [1, 3, 20])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@of_every_distance
def test_dtypes(device, distance, dtype, dim):
    assert_every_pair_as_alone(distance, "plain", device, dtype, dim)


@of_every_distance
def test_gradients_are_those_of_finite_differences(distance):
    x, y = normal(3, 4, 2, seed=1).requires_grad_(), normal(2, 3, 2, seed=2).requires_grad_()

    def function(x, y=None):
        return cdist(x, y, distance=distance, gamma=GAMMA)

    assert torch.autograd.gradcheck(function, (x, y))
    assert torch.autograd.gradcheck(function, (x,))
    # Each only where it is asked for.
    assert torch.autograd.gradcheck(function, (x.detach(), y))


@of_every_distance
def test_one_set_is_symmetric_and_half_of_it_computed(monkeypatch, distance):
    small_tiles(monkeypatch, 3)
    counts, values = [], Measure.values
    monkeypatch.setattr(Measure, "values", lambda *inputs: counts.append(inputs[3].count) or values(*inputs))
    x, _ = sets()
    found = cdist(x, distance=distance, gamma=GAMMA)
    assert torch.equal(found, found.T) and sum(counts) == 28
    if distance != "soft_dtw":
        assert not found.diagonal().any()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@of_every_distance
def test_lists_and_nested_tensors_have_their_own_lengths(distance):
    x, y = sets()
    expected = cdist(x, y, distance=distance, x_lengths=X_LENGTHS, y_lengths=Y_LENGTHS)
    x_parts = [x[i, :length].clone().requires_grad_() for i, length in enumerate(X_LENGTHS)]
    y_parts = [y[j, :length] for j, length in enumerate(Y_LENGTHS)]
    found = cdist(x_parts, y_parts, distance=distance)
    assert torch.equal(found, expected)
    found.sum().backward()
    whole = x.clone().requires_grad_()
    cdist(whole, y, distance=distance, x_lengths=X_LENGTHS, y_lengths=Y_LENGTHS).sum().backward()
    for part, gradient in zip(x_parts, whole.grad, strict=True):
        torch.testing.assert_close(part.grad, gradient[: len(part)])
    for layout in (torch.strided, torch.jagged):
        nested = torch.nested.nested_tensor([part.detach() for part in x_parts], layout=layout)
        assert torch.equal(cdist(nested, y_parts, distance=distance), expected)


def test_numpy_in_gives_numpy_out():
    x, y = (series.numpy() for series in sets())
    found = cdist(x, y)
    assert isinstance(found, np.ndarray) and found.dtype == np.float64
    np.testing.assert_array_equal(found, cdist(torch.from_numpy(x), torch.from_numpy(y)).numpy())
    of_lists = cdist([part[:length] for part, length in zip(x, X_LENGTHS, strict=True)], list(y))
    np.testing.assert_array_equal(of_lists, cdist(x, y, x_lengths=X_LENGTHS))
    assert isinstance(cdist(torch.from_numpy(x), y), torch.Tensor)  # as x came
    assert cdist(x.astype(np.float16)).dtype == np.float32


def test_empty_sets():
    x, y = sets()
    assert cdist(x[:0], y).shape == (0, 5) and cdist(x, y[:0]).shape == (7, 0) and cdist(x[:0]).shape == (0, 0)


def test_a_bad_number_spoils_its_pairs_alone():
    x, y = sets()
    expected = cdist(x, y)
    x[2, 3] = torch.nan
    found = cdist(x, y)
    assert found[2].isnan().all()
    found[2] = expected[2]
    assert torch.equal(found, expected)


@pytest.mark.parametrize("distance", ["dtw", "soft_dtw"])
def test_backward_keeps_the_series_alone(distance):
    x, y = normal(60, 40, 2, seed=1).requires_grad_(), normal(50, 40, 2, seed=2).requires_grad_()
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: saved.append(tensor) or tensor, lambda tensor: tensor):
        value = cdist(x, y, distance=distance)
    assert {tensor.data_ptr() for tensor in saved} == {x.data_ptr(), y.data_ptr()}
    assert sum(tensor.nbytes for tensor in saved) == x.nbytes + y.nbytes
    value.sum().backward()
    assert x.grad.any() and y.grad.any()


@of_every_distance
def test_gradients_are_bitwise_the_same_in_every_run(distance):
    x, y = sets(dtype=torch.float32)
    x, y = x.requires_grad_(), y.requires_grad_()

    def run():
        return torch.autograd.grad(cdist(x, y, distance=distance).sum(), (x, y))

    first = run()
    assert all(torch.equal(a, b) for a, b in zip(first, run(), strict=True))


X, Y = torch.zeros(3, 4, 2), torch.zeros(2, 5, 2)
WRONG = {
    "two dimensions": (
        (X[0], Y),
        {},
        ValueError,
        r"x: expected \(series, length, dim\), got \(4, 2\); write x.unsqueeze\(2\)",
    ),
    "two dimensions of y": ((X, Y[0]), {}, ValueError, r"y: expected \(series, length, dim\), got \(5, 2\)"),
    "four dimensions": ((X[None], Y), {}, ValueError, r"x: expected \(series, length, dim\), got shape \(1, 3, 4, 2\)"),
    "other vectors": (
        (X, Y[:, :, :1]),
        {},
        ValueError,
        r"x and y: .* same dimension, got shapes \(3, 4, 2\) and \(2, 5, 1\)",
    ),
    "no vectors": ((X[:, :0], Y), {}, ValueError, r"x: expected series of at least one vector"),
    "integers": ((X.int(), Y), {}, TypeError, "x: expected dtype float64, .* got int32"),
    "no tensor": (("x", Y), {}, TypeError, "x: expected a torch.Tensor, got str"),
    "empty list": (([], Y), {}, ValueError, "x: expected at least one series, got an empty list"),
    "list of one channel": (
        ([X[0, :, 0]], Y),
        {},
        ValueError,
        r"x\[0\]: expected a series \(length, dim\), .*unsqueeze\(1\)",
    ),
    "mixed list": (([X[0], X[1, :, :1]], Y), {}, ValueError, r"x\[1\]: expected the dimension and the device of x\[0\]"),
    "lengths of a list": (([X[0]], Y), {"x_lengths": [2]}, ValueError, "x_lengths: expected None if x is a list"),
    "distance": (
        (X, Y),
        {"distance": "erp"},
        ValueError,
        "distance: expected 'dtw', 'soft_dtw' or 'divergence', got 'erp'",
    ),
    "cost": ((X, Y), {"cost": "manhattan"}, ValueError, "cost: expected one of"),
    "gammas": (
        (X, Y),
        {"distance": "soft_dtw", "gamma": [1.0, 2.0]},
        TypeError,
        "gamma: expected one number for all pairs",
    ),
    "no gamma": ((X, Y), {"distance": "soft_dtw", "gamma": 0.0}, ValueError, "gamma: expected a positive finite number"),
    "penalties": ((X, Y), {"warp_penalty": [0.1]}, TypeError, "warp_penalty: expected one number for all pairs, got list"),
    "bands": ((X, Y), {"bandwidth": [1, 2, 3]}, TypeError, "bandwidth: expected an integer or None, got list"),
    "x_lengths": ((X, Y), {"x_lengths": [1, 2, 5]}, ValueError, "x_lengths: expected integers from 1 to 4"),
    "y_lengths": ((X, Y), {"y_lengths": [1, 2, 3]}, ValueError, r"y_lengths: expected shape \(2,\)"),
    "y_lengths of x": ((X,), {"y_lengths": [1, 2, 3]}, ValueError, "y_lengths: expected None if y is None"),
    "open ends of x": ((X,), {"open_ends": True}, ValueError, "open_ends: expected False without y"),
    "open ends, band": ((X, Y), {"open_ends": True, "bandwidth": 1}, ValueError, "open_ends: expected bandwidth=None"),
    "open divergence": ((X, Y), {"open_ends": True, "distance": "divergence"}, ValueError, "open_ends: expected False"),
    "length_norm": ((X, Y), {"length_norm": 1}, TypeError, "length_norm: expected True or False, got int"),
    "kernel": ((X, Y), {"kernel": "stencil"}, ValueError, "kernel: 'stencil' runs on CUDA tensors only"),
}


@pytest.mark.parametrize(("series", "options", "error", "message"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_named(series, options, error, message):
    with pytest.raises(error, match=message):
        cdist(*series, **options)
