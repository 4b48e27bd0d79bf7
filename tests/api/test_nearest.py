"""The nearest series: the smallest entries of each row of the matrix that is never there."""

import numpy as np
import pytest
import torch
from cases import DEVICES, normal

from torchsoftdtw import cdist, nearest
from torchsoftdtw._pairs import bar
from torchsoftdtw._pairs.measure import Measure
from torchsoftdtw._pairs.task import Task

pytestmark = pytest.mark.usefixtures("one_thread")
P, Q = 13, 11
on_devices = pytest.mark.parametrize("device", DEVICES)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(Measure, "tile_shape", lambda *_, **__: (4, 4))


def sets(device="cpu", dtype=torch.float32):
    return normal(P, 9, 2, seed=1, dtype=dtype).to(device), normal(Q, 8, 2, seed=2, dtype=dtype).to(device)


def expected_of(matrix, k, is_half=False):
    """NumPy's stable sort of whole rows, of which the series itself is left out."""
    matrix = matrix.cpu().numpy()
    indices, distances = [], []
    for row, values in enumerate(matrix):
        columns = np.delete(np.arange(len(values)), row) if is_half else np.arange(len(values))
        order = columns[np.argsort(values[columns], kind="stable")][:k]
        indices.append(order)
        distances.append(values[order])
    return np.array(indices), np.array(distances)


def assert_nearest(found, matrix, k, is_half=False, rtol=0):
    """`rtol`: of soft distances, whose last bits are those of the kernel that a tile's number of pairs chooses."""
    indices, distances = found
    assert indices.dtype == torch.int64 and distances.dtype == matrix.dtype and distances.device == matrix.device
    expected = expected_of(matrix, k, is_half)
    np.testing.assert_array_equal(indices.cpu(), expected[0])
    np.testing.assert_allclose(distances.cpu(), expected[1], rtol=rtol, atol=0)


OPTIONS = {
    "dtw": {},
    "soft_dtw": {"distance": "soft_dtw", "gamma": 0.1, "cost": "cosine", "length_norm": True},
    "divergence": {"distance": "divergence", "warp_penalty": 0.1, "bandwidth": 3, "x_lengths": [*range(1, 10), 9, 4, 2, 5]},
}


@on_devices
@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_nearest_are_the_smallest_of_the_matrix(device, options, k):
    x, y = sets(device)
    rtol = 1e-5 if "distance" in options else 0
    assert_nearest(nearest(x, y, k, **options), cdist(x, y, **options), k, rtol=rtol)
    assert_nearest(nearest(x, None, k, **options), cdist(x, **options), k, is_half=True, rtol=rtol)


def test_all_of_them():
    x, y = sets()
    assert_nearest(nearest(x, y, Q), cdist(x, y), Q)
    assert_nearest(nearest(x, None, P - 1), cdist(x), P - 1, is_half=True)


@on_devices
@pytest.mark.parametrize("k", [1, 2, 5, 9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_of_equal_distances_the_lower_position(device, dtype, k):
    kinds = normal(3, 6, 1, seed=4, dtype=dtype)
    x, y = kinds[torch.tensor([0, 1, 2, 1, 0, 0, 2, 1, 0, 2, 0, 1, 1])].to(device), kinds[[1, 1, 0, 2, 0, 1, 2, 2, 1, 0, 0]]
    assert_nearest(nearest(x, y.to(device), k), cdist(x, y.to(device)), k)
    assert_nearest(nearest(x, None, k), cdist(x), k, is_half=True)
    # Equal series are neighbours of each other.
    assert not nearest(x, None, 2)[1].any()


def test_nan_comes_last_and_inf_counts():
    x, y = sets()
    y[2, 3], y[5, 1], y[7] = torch.nan, torch.inf, 1e30
    matrix = cdist(x, y)
    assert matrix[:, 2].isnan().all() and not matrix[:, [5, 7]].isfinite().any()
    indices, distances = nearest(x, y, Q)
    assert_nearest((indices, distances), matrix, Q)
    assert distances[:, :8].isfinite().all() and distances[:, -1].isnan().all()


def test_half_of_the_pairs_and_never_the_matrix(monkeypatch):
    shapes, values = [], Task.values
    monkeypatch.setattr(Task, "values", lambda task: shapes.append(task.shape) or values(task))
    x, y = sets()
    nearest(x, None, 2)
    assert sum(rows * columns for rows, columns in shapes) == 6 * 16 + 3 * 4 + 1
    shapes.clear()
    nearest(x, y, 2)
    assert sum(rows * columns for rows, columns in shapes) == P * Q and max(shapes) == (4, 4)


def test_forms_of_sets():
    x, y = sets()
    expected = nearest(x, y, 3)
    found = nearest(x.numpy(), y.numpy(), 3)
    assert all(isinstance(each, np.ndarray) for each in found) and found[0].dtype == np.int64
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    ragged = nearest(list(x), [series[:5] for series in y], 3)
    assert all(torch.equal(a, b) for a, b in zip(ragged, nearest(x, y[:, :5], 3), strict=True))
    assert nearest(x.half(), y.half(), 3)[1].dtype == torch.float32


def test_memory_mapped_sets(tmp_path):
    x, y = (series.numpy() for series in sets())
    np.save(tmp_path / "y.npy", y)
    for a, b in zip(nearest(x, np.load(tmp_path / "y.npy", mmap_mode="r"), 2), nearest(x, y, 2), strict=True):
        np.testing.assert_array_equal(a, b)


def test_empty_set():
    x, y = sets()
    indices, distances = nearest(x[:0], y, 2)
    assert indices.shape == distances.shape == (0, 2)


def test_progress(monkeypatch, capsys):
    monkeypatch.setattr(bar, "QUIET", 0)
    monkeypatch.setattr(bar, "OFTEN", 0)
    x, y = sets()
    nearest(x, y, 1, progress=False)
    assert capsys.readouterr() == ("", "")
    nearest(x, y, 1)
    shown = capsys.readouterr()
    assert shown.out == "" and "nearest: " in shown.err


X, Y = sets()
WRONG = {
    "no neighbour": ((X, Y, 0), {}, ValueError, "k: expected an integer from 1 to 11, the number of series .*, got 0"),
    "too many": ((X, Y, 12), {}, ValueError, "k: expected an integer from 1 to 11, .* got 12"),
    "itself": ((X, None, 13), {}, ValueError, "k: expected an integer from 1 to 12, .* got 13"),
    "no integer": ((X, Y, 1.0), {}, TypeError, "k: expected an integer, got float"),
    "one series": ((X[0], Y, 1), {}, ValueError, r"x: expected \(series, length, dim\), got \(9, 2\)"),
    "device": ((X, Y, 1), {"device": "gpu"}, ValueError, "device: expected the CPU or CUDA"),
    "progress": ((X, Y, 1), {"progress": 0}, ValueError, "progress: expected None or False, got 0"),
}


@pytest.mark.parametrize(("inputs", "options", "error", "message"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_named(inputs, options, error, message):
    with pytest.raises(error, match=message):
        nearest(*inputs, **options)


def test_there_is_no_gradient():
    x = X.clone().requires_grad_()
    with pytest.raises(
        RuntimeError, match=r"nearest: x or y requires a gradient, and there is none; call it under torch.no_grad"
    ):
        nearest(x, Y, 1)
    with torch.no_grad():
        assert torch.equal(nearest(x, Y, 1)[0], nearest(X, Y, 1)[0])


@pytest.mark.cuda
@pytest.mark.parametrize("is_half", [False, True], ids=["two_sets", "one_set"])
def test_series_on_the_host_and_computation_on_a_gpu(is_half):
    y = None if is_half else Y
    expected = nearest(X.cuda(), None if is_half else Y.cuda(), 3)
    found = nearest(X, y, 3, device="cuda")
    for a, b in zip(found, expected, strict=True):
        assert a.device.type == "cpu" and b.is_cuda and torch.equal(a, b.cpu())
