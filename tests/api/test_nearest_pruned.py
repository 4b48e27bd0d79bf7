"""Nearest series by lower bounds: to the bit what the values of all pairs give, of which most are not computed."""

import numpy as np
import pytest
import torch
from cases import COSTS, normal
from hypothesis import given
from hypothesis import strategies as st

from torchsoftdtw import dtw, nearest
from torchsoftdtw._pairs import bounds, pruning
from torchsoftdtw._pairs.best import Best
from torchsoftdtw._pairs.measure import Measure

pytestmark = pytest.mark.usefixtures("one_thread")
P, Q, N = 60, 70, 48


def walks(count, dim=1, seed=0, length=N, dtype=torch.float32):
    series = normal(count, length, dim, seed=seed).cumsum(1)
    return ((series - series.mean(1, keepdim=True)) / series.std(1, keepdim=True)).to(dtype)


def nearest_both_ways(x, y, k, **options):
    """What all values give, what the search by bounds gives, and the share of pairs whose values that computes."""
    computed, values = [], pruning.Block._values
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pruning.Block, "_values", lambda *inputs: computed.append(len(inputs[1])) or values(*inputs))
        patch.setattr(pruning, "is_worthwhile", lambda *_: False)
        expected = nearest(x, y, k, **options)
        assert not computed
        patch.setattr(pruning, "is_worthwhile", lambda *_: True)
        found = nearest(x, y, k, **options)
    return expected, found, sum(computed) / (len(x) * len(x if y is None else y))


def assert_same(expected, found):
    for a, b in zip(expected, found, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(b), np.asarray(a))


def assert_pruned(x, y, k, most=0.8, **options):
    expected, found, share = nearest_both_ways(x, y, k, **options)
    assert_same(expected, found)
    assert share <= most, share


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
@pytest.mark.parametrize("cost", COSTS)
def test_every_cost_and_dtype(cost, dtype, k):
    x, y = walks(P, 2, 1, dtype=dtype), walks(Q, 2, 2, dtype=dtype)
    for bandwidth in (0, 2, 5):
        assert_pruned(x, y, k, cost=cost, bandwidth=bandwidth)
        assert_pruned(x, None, k, cost=cost, bandwidth=bandwidth)


OPTIONS = {
    "penalty": {"warp_penalty": 0.1},
    "norm": {"length_norm": True},
    "norm_of_cosine": {"length_norm": True, "cost": "cosine", "warp_penalty": 0.5},
}
LENGTHS = torch.arange(P) % 7 + N - 6, torch.arange(Q) % 5 + N - 4


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("lengths", [(0, 0), (1, 0), (0, 1), (1, 1)], ids=str)
def test_lengths_and_options(lengths, options):
    x, y = walks(P, 2, 3), walks(Q, 2, 4)
    lengths = {f"{name}_lengths": own for name, own, has in zip("xy", LENGTHS, lengths, strict=True) if has}
    for name, series in (("x", x), ("y", y)):
        if f"{name}_lengths" in lengths:
            series[torch.arange(N) >= lengths[f"{name}_lengths"].unsqueeze(1)] = torch.nan
    assert_pruned(x, y, 2, bandwidth=3, **lengths, **options)
    lengths.pop("y_lengths", None)
    assert_pruned(x, None, 2, bandwidth=3, **lengths, **options)


@pytest.mark.parametrize("lengths", [(1, 1), (1, 9), (9, 1), (2, 2), (17, 16), (31, 48), (600, 590)], ids=str)
def test_sets_of_two_lengths(lengths):
    x, y = (normal(20, length, 1, seed=length) + 3 * normal(20, 1, 1, seed=length + 1) for length in lengths)
    for bandwidth in (0, 3, 10**9):
        expected, found, _ = nearest_both_ways(x, y, 3, bandwidth=bandwidth)
        assert_same(expected, found)


@pytest.mark.parametrize("k", [1, 2, 5, 30])
@pytest.mark.parametrize("cost", ["sqeuclidean", "euclidean", "cityblock"])
def test_of_equal_distances_the_lower_position(cost, k):
    """Series of few whole numbers, of which many are equal and many more equally far."""
    whole = (2 * walks(12, 1, 5)).round()
    x, y = (whole[torch.randint(12, (count,), generator=torch.Generator().manual_seed(k))] for count in (P, Q))
    assert_pruned(x, y, k, most=1, cost=cost, bandwidth=2)
    assert_pruned(x, None, k, most=1, cost=cost, bandwidth=2)
    assert_pruned(x, y, 1, most=0.5, cost=cost, bandwidth=2)


@given(st.data())
def test_any_small_set_of_whole_numbers(data):
    draw = data.draw
    n, m, dim = (draw(st.integers(1, most)) for most in (9, 9, 2))
    numbers = st.integers(-2, 2)
    sets = [
        torch.tensor(draw(st.lists(numbers, min_size=count * length * dim, max_size=count * length * dim))).view(
            count, length, dim
        )
        for count, length in ((draw(st.integers(1, 5)), n), (draw(st.integers(1, 7)), m))
    ]
    k, bandwidth = draw(st.integers(1, len(sets[1]))), draw(st.integers(0, 4))
    x, y = (series.float() for series in sets)
    assert_same(*nearest_both_ways(x, y, k, bandwidth=bandwidth, cost=draw(st.sampled_from(COSTS)))[:2])


def test_nan_and_inf_as_without_bounds():
    x, y = walks(P, 2, 6), walks(Q, 2, 7)
    x[3, 5, 1], x[8, 0, 0], x[9, -1], x[11] = torch.nan, torch.inf, -torch.inf, 1e30
    y[2, 7, 0], y[5, 1], y[7], y[20:30, 3] = torch.nan, torch.inf, -1e30, torch.nan
    for k in (1, 3, Q):
        assert_pruned(x, y, k, most=1, bandwidth=3)
        assert_pruned(x, None, min(k, P - 1), most=1, bandwidth=3)
    expected, _, share = nearest_both_ways(x, y, 1, bandwidth=3)
    assert share < 0.5 and not expected[1][3].isfinite() and expected[1][0].isfinite()


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e17, 1.5e18, 1e19])
def test_costs_that_leave_the_range_of_float32(scale):
    x, y = scale * walks(P, 1, 8), scale * walks(Q, 1, 9)
    assert_pruned(x, y, 2, most=1, bandwidth=2, length_norm=True)
    assert_pruned(x, y, 2, most=1, bandwidth=2)


def test_blocks_of_any_size(monkeypatch):
    x, y = walks(P, 1, 10), walks(Q, 1, 11)
    for name, number in (("MOST_BOUNDS", 130), ("MOST_BYTES", 13 * N * 4), ("MOST_PAIRS", 7)):
        monkeypatch.setattr(pruning, name, number)
        assert_pruned(x, y, 3, bandwidth=3)
        assert_pruned(x, None, 3, bandwidth=3)
    assert len(pruning.blocks(pruning_task(x, y))) == 6 * 6


def pruning_task(x, y):
    from torchsoftdtw._pairs.task import of_sets

    return of_sets(x, y, "dtw", 1.0, "sqeuclidean", None, None, 3, 0.0, False, False, "auto")[0]


def test_memory_mapped_sets(tmp_path):
    x, y = walks(P, 1, 12), walks(Q, 1, 13)
    np.save(tmp_path / "y.npy", y.numpy())
    mapped = np.load(tmp_path / "y.npy", mmap_mode="r")
    expected, found, _ = nearest_both_ways(x.numpy(), mapped, 2, bandwidth=3)
    assert all(isinstance(each, np.ndarray) for each in found)
    assert_same(expected, found)


KINDS = {
    "walks": (walks(400, 1, 14, length=300), True),
    "noise": (normal(400, 150, 1, dtype=torch.float32), False),
    "short_walks": (walks(400, 1, 14, length=20), False),
}


@pytest.mark.parametrize(("series", "pays"), KINDS.values(), ids=KINDS)
def test_a_sample_decides(series, pays, monkeypatch):
    searched, search = [], pruning.search
    monkeypatch.setattr(pruning, "search", lambda *inputs: searched.append(1) or search(*inputs))
    monkeypatch.setattr(pruning, "LEAST_TIME", 0)
    nearest(series, None, 1, bandwidth=40)
    nearest(series[:200], series[200:], 1, bandwidth=40)
    assert len(searched) == 2 * pays


NOT_PRUNED = {
    "soft": {"distance": "soft_dtw"},
    "no_band": {"bandwidth": None},
    "callable": {"cost": lambda x, y: torch.cdist(x, y)},
    "many_neighbours": {"k": 60},
}


@pytest.mark.parametrize("options", NOT_PRUNED.values(), ids=NOT_PRUNED)
def test_all_values_where_there_are_no_bounds(options, monkeypatch):
    monkeypatch.setattr(pruning, "Block", None)
    x = walks(300, 1, 15)
    nearest(x[:200], x[200:], **{"k": 1, "bandwidth": 2, **options})


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("cost", ["sqeuclidean", "euclidean", "cityblock", "huber"])
def test_bounds_are_below_the_values_and_near_them(cost, dim):
    x, y = walks(20, dim, 16, dtype=torch.float64), walks(30, dim, 17, length=N - 5, dtype=torch.float64)
    measure = Measure(True, cost, 1, 1.0, 0.0, False, "auto", None, None)
    found = bounds.lower_bounds(*bounds.sides(measure, x, y), cost)
    values = torch.stack([dtw(own.expand(30, -1, -1), y, cost=cost, bandwidth=1) for own in x])
    relative, _ = bounds.slack(torch.float64, N, N - 5, dim)
    assert (found <= values * (1 + relative)).all()
    assert (found / values).mean() > 0.2


def test_a_box_holds_what_the_band_lets_a_vector_meet():
    x, y = normal(1, 9, 2), normal(1, 7, 2, seed=1)
    measure = Measure(True, "sqeuclidean", 1, 1.0, 0.0, False, "auto", None, None)
    side = bounds.sides(measure, x, y)[1]
    for i in range(9):
        met = y[0, max(0, i - 3) : i + 2] if 0 < i < 8 else y[0, [0 if i == 0 else 6]]
        assert torch.equal(side.low[0, :, i], met.amin(0)) and torch.equal(side.high[0, :, i], met.amax(0))
    assert side.low[0, :, 9:].isnan().all()


def test_the_best_of_pairs_in_any_order():
    distance = torch.tensor([[3.0, 1.0, torch.nan, 1.0, torch.inf, 1.0]])
    for k, expected in ((1, [1]), (3, [1, 3, 5]), (6, [1, 3, 5, 0, 4, 2])):
        best = Best(2, k, torch.float32)
        for index in (4, 2, 5, 3, 0, 1):
            row = torch.tensor([1])
            best.add(row, torch.tensor([index]), distance[:, index])
        assert best.indices[1].tolist() == expected and best.limit()[0].isnan()
