"""Matches in a long series: all ranges in order, of which those are taken that do not overlap."""

import numpy as np
import oracle
import pytest
import torch
from cases import COSTS, DEVICES, normal, numpy64

from torchsoftdtw import dtw, soft_dtw, subsequence_matches
from torchsoftdtw._kernels import ops
from torchsoftdtw._matches import by_end
from torchsoftdtw._pairs import bar

pytestmark = pytest.mark.usefixtures("one_thread")
on_devices = pytest.mark.parametrize("device", DEVICES)
both_dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def small_segments(monkeypatch, span=4):
    """Segments and halos as short as these series ask for."""
    monkeypatch.setattr(by_end, "CPU_SPAN", span)
    monkeypatch.setattr(by_end, "CUDA_SPAN", span)


def whole_numbers(length, dim, largest, seed, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, largest + 1, (length, dim), generator=generator).to(dtype)


def costs_of(x, y, cost="sqeuclidean"):
    return oracle.cost_and_slopes(numpy64(x), numpy64(y), cost)[0]


def rows(matches):
    """[(value, start, end)], as the oracle has them."""
    return list(zip(matches.value.tolist(), matches.start.tolist(), matches.end.tolist(), strict=True))


def by_every_end(values):
    """(value, start) of the best range for every end, of equal ones the one with the earliest start."""
    return values[:, 1:].min(0), values[:, 1:].argmin(0)


# Whole numbers are sums without a rounding, and full of ties.
@on_devices
@both_dtypes
@pytest.mark.parametrize("span", [4, 8192])
def test_ranges_are_those_of_all_ranges_in_order(monkeypatch, device, dtype, span):
    small_segments(monkeypatch, span)
    for seed in range(24):
        n, m, dim = 1 + seed % 6, 1 + seed * 7 % 23, 1 + seed % 2
        x, y = whole_numbers(n, dim, 2, seed, dtype), whole_numbers(m, dim, 2, 100 + seed, dtype)
        for penalty in (0.0, 0.5):
            values = oracle.range_values(costs_of(x, y), penalty)
            for k in (1, 3, m + 1):
                found = subsequence_matches(x.to(device), y.to(device), k, warp_penalty=penalty, profile=True)
                assert rows(found) == oracle.greedy_ranges(values, k), (seed, penalty, k)
                np.testing.assert_array_equal(found.profile.cpu(), by_every_end(values)[0])
                assert found.value.dtype == found.profile.dtype == dtype
                assert found.start.dtype == found.end.dtype == torch.int64


FLAT = {
    "zeros": (torch.zeros(5, 1), torch.zeros(40, 1)),
    "another constant": (torch.zeros(5, 1), torch.ones(40, 1)),
    # The best range of every end starts with the first vector, and when it is taken with the next one.
    "a chain": (torch.tensor([[0.0], [9.0], [9.0]]), torch.tensor([[0.0], [1.0], [2.0], *[[9.0]] * 37])),
    "steps": (torch.tensor([[0.0], [1.0]]), torch.tensor([0.0, 0, 0, 0, 1, 1, 1, 1] * 5).unsqueeze(1)),
}


@on_devices
@pytest.mark.parametrize("name", FLAT)
def test_long_ranges_and_flat_series(monkeypatch, device, name):
    """Where ranges are longer than the halo of a segment, what was swept is swept again."""
    small_segments(monkeypatch, 3)
    x, y = FLAT[name]
    values = oracle.range_values(costs_of(x, y))
    for k in (1, 4, 100):
        found = subsequence_matches(x.to(device), y.to(device), k, profile=True)
        assert rows(found) == oracle.greedy_ranges(values, k)
        np.testing.assert_array_equal(found.profile.cpu(), by_every_end(values)[0])


def test_work_grows_with_what_changes(monkeypatch):
    """Many matches, also in a flat series, are not as many sweeps of the whole."""
    swept = []
    op = ops.best_ranges
    monkeypatch.setattr(ops, "best_ranges", lambda x, y, *rest: swept.append(y.shape[0] * y.shape[1]) or op(x, y, *rest))
    m = 20_000
    for x, y in ((torch.zeros(20, 1), torch.zeros(m, 1)), (normal(20, 1), normal(m, 1, seed=1))):
        swept.clear()
        assert len(subsequence_matches(x, y, 500).value) == 500
        assert sum(swept) < 5 * m


# One strip and several, and more strips than a block has warps: of 128 rows in float32, of 64 in float64.
@pytest.mark.always
@on_devices
@both_dtypes
@pytest.mark.parametrize(
    ("n", "m", "dim"), [(1, 9, 1), (33, 50, 2), (150, 40, 1), (150, 41, 3), (700, 24, 1), (1100, 19, 2)]
)
def test_best_range_of_every_end(device, dtype, n, m, dim):
    x = torch.stack([whole_numbers(n, dim, 3, seed, dtype) for seed in (n, n + 1)]).to(device)
    y = torch.stack([whole_numbers(m, dim, 3, seed, dtype) for seed in (m, m + 7)]).to(device)
    value, start = ops.best_ranges(x, y, 1.0, "sqeuclidean")
    assert value.dtype == torch.float64 and start.dtype == torch.int32
    for b in range(2):
        expected = by_every_end(oracle.range_values(costs_of(x[b], y[b]), 1.0))
        np.testing.assert_array_equal(value[b].cpu(), expected[0])
        np.testing.assert_array_equal(start[b].cpu(), expected[1])


@on_devices
@both_dtypes
@pytest.mark.parametrize("cost", COSTS)
def test_costs(device, dtype, cost):
    x, y = normal(6, 3, seed=1).to(dtype), normal(30, 3, seed=2).to(dtype)
    values = oracle.range_values(costs_of(x, y, cost), 0.25)
    expected = oracle.greedy_ranges(values, 4)
    found = subsequence_matches(x.to(device), y.to(device), 4, cost=cost, warp_penalty=0.25, profile=True)
    assert [row[1:] for row in rows(found)] == [row[1:] for row in expected]
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    np.testing.assert_allclose(found.value.cpu(), [row[0] for row in expected], rtol=tolerance)
    np.testing.assert_allclose(found.profile.cpu(), by_every_end(values)[0], rtol=tolerance)


@both_dtypes
def test_values_are_those_of_dtw_to_the_bit(dtype):
    x, y = normal(20, 2, seed=1).to(dtype), normal(300, 2, seed=2).to(dtype)
    for value, start, end in rows(subsequence_matches(x, y, 12, warp_penalty=0.1)):
        assert value == dtw(x, y[start:end], warp_penalty=0.1).item()


def test_the_best_is_that_of_open_ends():
    x, y = normal(20, 2, seed=1), normal(300, 2, seed=2)
    assert subsequence_matches(x, y, 1).value.item() == dtw(x, y, open_ends=True).item()
    assert soft_dtw(x, y, 1e-3, open_ends=True).item() == pytest.approx(dtw(x, y, open_ends=True).item(), rel=1e-2)


@on_devices
@pytest.mark.parametrize("spoiler", [torch.nan, torch.inf, -torch.inf])
def test_ranges_that_are_no_numbers_are_left_out(monkeypatch, device, spoiler):
    small_segments(monkeypatch)
    x, y = whole_numbers(4, 2, 3, 1), whole_numbers(40, 2, 3, 2)
    y[[0, 9, 10, 25, 39], 1] = spoiler
    values = oracle.range_values(costs_of(x, y))
    for k in (1, 5, 100):
        found = subsequence_matches(x.to(device), y.to(device), k, profile=True)
        assert rows(found) == oracle.greedy_ranges(values, k)
        np.testing.assert_array_equal(found.profile.cpu(), by_every_end(values)[0])
    assert found.profile.isinf().nonzero().flatten().tolist() == [0, 9, 10, 25, 39]


@pytest.mark.parametrize("gap", [(0, 30), (20, 50), (5, 8), (60, 80)], ids=str)
def test_gaps_longer_than_segments(monkeypatch, gap):
    small_segments(monkeypatch)
    x, y = whole_numbers(3, 1, 3, 1), whole_numbers(80, 1, 3, 2)
    y[slice(*gap)] = torch.nan
    values = oracle.range_values(costs_of(x, y))
    for k in (1, 5, 100):
        found = subsequence_matches(x, y, k, profile=True)
        assert rows(found) == oracle.greedy_ranges(values, k)
        np.testing.assert_array_equal(found.profile, by_every_end(values)[0])


@on_devices
def test_none_is_left(device):
    x, y = normal(4, 1), torch.full((30, 1), torch.nan, dtype=torch.float64)
    found = subsequence_matches(x.to(device), y.to(device), 3, profile=True)
    assert rows(found) == [] and found.profile.shape == (30,) and found.profile.isinf().all()
    assert found.start.dtype == torch.int64 and found.value.dtype == torch.float64


def test_costs_that_overflow_are_no_number():
    x, y = torch.tensor([[1e30], [0.0]]), torch.tensor([[1e30], [0.0], [1e30], [1e30], [0.0]])
    assert rows(subsequence_matches(x, y, 9)) == [(0.0, 0, 2), (0.0, 2, 5)]


def test_longest_query_and_shortest_series():
    x = normal(50, 1, seed=3)
    assert rows(subsequence_matches(x, x[:1], 2)) == [(dtw(x, x[:1]).item(), 0, 1)]
    assert rows(subsequence_matches(x, x, 1)) == [(0.0, 0, 50)]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_computed_in_float32(dtype):
    x, y = normal(8, 1, seed=1).to(dtype), normal(90, 1, seed=2).to(dtype)
    found, expected = (subsequence_matches(*series, 3) for series in ((x, y), (x.float(), y.float())))
    assert found.value.dtype == torch.float32 and rows(found) == rows(expected)
    mixed = subsequence_matches(x, y.double(), 3)
    assert mixed.value.dtype == torch.float64


@on_devices
@pytest.mark.parametrize("normalize", [False, True])
def test_strides(monkeypatch, device, normalize):
    small_segments(monkeypatch)
    x, y = normal(2, 8, seed=1).to(device).T, normal(60, 6, seed=2).to(device)[:, ::3]
    found = subsequence_matches(x, y, 3, normalize=normalize)
    assert rows(found) == rows(subsequence_matches(x.contiguous(), y.contiguous(), 3, normalize=normalize))


@pytest.mark.parametrize("normalize", [False, True])
def test_arrays_in_and_out(tmp_path, normalize):
    x, y = normal(8, 1, seed=1), normal(90, 1, seed=2)
    expected = subsequence_matches(x, y, 3, profile=True, normalize=normalize)
    np.save(tmp_path / "y.npy", y.numpy())
    backwards = y.numpy()[::-1].copy()[::-1]
    for array in (y.numpy(), np.load(tmp_path / "y.npy", mmap_mode="r"), backwards):
        found = subsequence_matches(x.numpy(), array, 3, profile=True, normalize=normalize)
        for a, b in zip(found, expected, strict=True):
            assert isinstance(a, np.ndarray)
            np.testing.assert_array_equal(a, b)
    start, end, value = subsequence_matches(x, y, 3, normalize=normalize)
    assert torch.equal(torch.stack([start, end]), torch.stack(expected[:2])) and torch.equal(value, expected.value)


def windows_by_brute_force(x, y, bandwidth=None, warp_penalty=0.0):
    """(M,) values by the last column of a window."""
    n, m = len(x), len(y)
    values = np.full(m, np.inf)
    for start in range(m - n + 1):
        window = oracle.z_normalised(y[start : start + n])
        if not np.isnan(window).any():
            costs = oracle.cost_and_slopes(oracle.z_normalised(x), window, "sqeuclidean")[0]
            values[start + n - 1] = oracle.hard_dtw_from_cost(costs, bandwidth, warp_penalty)[0]
    return values


def take_windows(values, n, k):
    found = []
    for end in np.argsort(values, kind="stable") + 1:
        if len(found) < k and np.isfinite(values[end - 1]) and all(abs(end - other) >= n for _, _, other in found):
            found.append((values[end - 1], end - n, end))
    return found


@on_devices
@both_dtypes
@pytest.mark.parametrize("options", [{}, {"bandwidth": 1}, {"warp_penalty": 0.2}], ids=str)
def test_z_normalised_windows(device, dtype, options):
    x, y = normal(7, 2, seed=1).to(dtype), normal(60, 2, seed=2).to(dtype).cumsum(0)
    y[20:30], y[40, 0] = y[20], torch.nan
    values = windows_by_brute_force(numpy64(x), numpy64(y), **options)
    tolerance = 1e-9 if dtype == torch.float64 else 1e-4
    for k in (1, 3, 20):
        found = subsequence_matches(x.to(device), y.to(device), k, normalize=True, profile=True, **options)
        expected = take_windows(values, len(x), k)
        assert [row[1:] for row in rows(found)] == [row[1:] for row in expected]
        np.testing.assert_allclose(found.value.cpu(), [row[0] for row in expected], rtol=tolerance)
        np.testing.assert_allclose(found.profile.cpu(), values, rtol=tolerance)
        assert found.value.dtype == dtype


def test_offsets_and_scales_do_not_count_in_windows():
    x, y = normal(9, 1, seed=1), normal(80, 1, seed=2)
    expected = subsequence_matches(x, y, 3, normalize=True)
    for scale, offset in ((1e-3, 1e6), (1e8, -1e15), (-1.0, 0.0)):
        sign = 1 if scale > 0 else -1
        found = subsequence_matches(sign * x, scale * y + offset, 3, normalize=True)
        assert found.start.tolist() == expected.start.tolist()
        torch.testing.assert_close(found.value, expected.value, rtol=1e-5, atol=1e-6)


def test_constant_windows_are_zero():
    x, y = torch.tensor([[0.0], [1.0], [0.0]]), torch.full((12, 1), 0.1)
    found = subsequence_matches(x, y, 9, normalize=True)
    value = oracle.z_normalised(numpy64(x)).__pow__(2).sum()
    assert found.start.tolist() == [0, 3, 6, 9] and found.value.tolist() == pytest.approx([value] * 4)
    assert subsequence_matches(torch.ones(3, 1), y, 9, normalize=True).value.tolist() == [0.0] * 4


def test_windows_of_a_callable_cost():
    x, y = normal(5, 2, seed=1), normal(40, 2, seed=2)
    found = subsequence_matches(x, y, 3, normalize=True, cost=lambda a, b: torch.cdist(a, b, p=1))
    expected = subsequence_matches(x, y, 3, normalize=True, cost="cityblock")
    assert found.start.tolist() == expected.start.tolist()


def test_no_window_is_as_long_as_the_query():
    found = subsequence_matches(normal(9, 1), normal(8, 1), 2, normalize=True, profile=True)
    assert rows(found) == [] and found.profile.shape == (8,) and found.profile.isinf().all()


def test_progress(monkeypatch, capsys):
    monkeypatch.setattr(bar, "QUIET", 0)
    monkeypatch.setattr(bar, "OFTEN", 0)
    x, y = normal(9, 1), normal(80, 1)
    subsequence_matches(x, y, 1, normalize=True, progress=False)
    assert capsys.readouterr() == ("", "")
    subsequence_matches(x, y, 1, normalize=True)
    assert "subsequence_matches: " in capsys.readouterr().err


X, Y = normal(5, 2, seed=1), normal(30, 2, seed=2)
WITH_NAN = X.clone()
WITH_NAN[3, 1] = torch.nan
WRONG = {
    "nan": ((WITH_NAN, Y, 1), {}, ValueError, r"x: expected finite numbers, got nan in x\[3, 1\]"),
    "inf": ((WITH_NAN.nan_to_num(torch.inf), Y, 1), {}, ValueError, r"x: expected finite numbers, got inf in x\[3, 1\]"),
    "no match": ((X, Y, 0), {}, ValueError, "k: expected an integer of at least 1, got 0"),
    "no integer": ((X, Y, 1.0), {}, TypeError, "k: expected an integer, got float"),
    "no channel": ((X[:, 0], Y, 1), {}, ValueError, r"x: expected a series \(length, dim\), .* \(5,\); .* is x\[:, None\]"),
    "a batch": ((X, Y[None], 1), {}, ValueError, r"y: expected a series .* \(1, 30, 2\); pass one series at a time"),
    "other vectors": (
        (X, Y[:, :1], 1),
        {},
        ValueError,
        r"x and y: expected vectors of the same dimension, got .*\(30, 1\)",
    ),
    "rows": ((X[None, :, 0], Y[None, :, 0], 1), {}, ValueError, r"\(1, 5\) and \(1, 30\); .* channel is x\[:, None\]"),
    "no vector": ((X[:0], Y, 1), {}, ValueError, r"x: expected a length from 1 to 2\^28"),
    "integers": ((X.long(), Y, 1), {}, TypeError, "x: expected dtype float64, .* got int64"),
    "a list": ((X.tolist(), Y, 1), {}, TypeError, "x: expected a torch.Tensor, got list"),
    "cost": ((X, Y, 1), {"cost": "l2"}, ValueError, "cost: expected one of .* did you mean 'euclidean'"),
    "callable": (
        (X, Y, 1),
        {"cost": torch.cdist},
        ValueError,
        "cost: expected a name without normalize=True, got a callable",
    ),
    "band": ((X, Y, 1), {"bandwidth": 3}, ValueError, "bandwidth: expected None without normalize=True"),
    "share": ((X, Y, 1), {"bandwidth": 0.1, "normalize": True}, TypeError, "bandwidth: expected an integer or None"),
    "penalty": ((X, Y, 1), {"warp_penalty": -1}, ValueError, "warp_penalty: expected a finite number of at least 0"),
    "penalties": ((X, Y, 1), {"warp_penalty": [1.0]}, TypeError, "warp_penalty: expected one number, got list"),
    "normalize": ((X, Y, 1), {"normalize": 1}, TypeError, "normalize: expected True or False, got int"),
    "profile": ((X, Y, 1), {"profile": None}, TypeError, "profile: expected True or False"),
    "device": ((X, Y, 1), {"device": "gpu"}, ValueError, "device: expected the CPU or CUDA"),
    "progress": ((X, Y, 1), {"progress": 0}, ValueError, "progress: expected None or False, got 0"),
}


@pytest.mark.parametrize(("inputs", "options", "error", "message"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_named(inputs, options, error, message):
    with pytest.raises(error, match=message):
        subsequence_matches(*inputs, **options)


def test_there_is_no_gradient():
    for x, y in ((X.clone().requires_grad_(), Y), (X, Y.clone().requires_grad_())):
        with pytest.raises(
            RuntimeError, match=r"subsequence_matches: x or y requires a gradient, and there is none; .* x.detach"
        ):
            subsequence_matches(x, y, 1)
        with torch.no_grad():
            assert rows(subsequence_matches(x, y, 1)) == rows(subsequence_matches(X, Y, 1))


@pytest.mark.cuda
@pytest.mark.parametrize("normalize", [False, True])
def test_series_on_the_host_and_computation_on_a_gpu(normalize):
    expected = subsequence_matches(X.cuda(), Y.cuda(), 3, normalize=normalize, profile=True)
    found = subsequence_matches(X, Y, 3, normalize=normalize, profile=True, device="cuda")
    for a, b in zip(found, expected, strict=True):
        assert a.device.type == "cpu" and b.is_cuda and torch.equal(a, b.cpu())


@pytest.mark.cuda
@both_dtypes
@pytest.mark.parametrize("n", [1, 150, 1500])
def test_long_series_on_a_gpu(dtype, n):
    """Many segments, and as many more sweeps: whole numbers give what the CPU gives, to the bit."""
    x, y = whole_numbers(n, 1, 9, 1, dtype), whole_numbers(60_000, 1, 9, 2, dtype)
    y[30_000:40_000] = 5
    expected = subsequence_matches(x, y, 100, profile=True)
    for a, b in zip(subsequence_matches(x.cuda(), y.cuda(), 100, profile=True), expected, strict=True):
        assert torch.equal(a.cpu(), b)
