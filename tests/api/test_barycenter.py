"""Averages: against tslearn and a plain loop, in batches and alone, and what is wrong to ask for."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from cases import DEVICES, normal, numpy64

from torchsoftdtw import barycenter, cdist, dtw, soft_dtw, soft_dtw_divergence
from torchsoftdtw._pairs import measure

sys.path.append(str(Path(__file__).parents[2] / "examples"))

METHODS = ["soft", "dba", "divergence"]
LENGTHS = [9, 12, 5, 12, 7, 10]
SMOOTH = ["sqeuclidean", "cosine", lambda x, y: (x.unsqueeze(2) - y.unsqueeze(1)).square().sum(3)]


def noisy(count=6, length=12, dim=2, seed=0, dtype=torch.float64, device="cpu"):
    """Series that have an average: one shape, each with noise of its own."""
    step = torch.linspace(0, 6, length, dtype=torch.float64)
    shape = torch.stack([(step + phase).sin() for phase in range(dim)], 1)
    return (shape + 0.3 * normal(count, length, dim, seed=seed)).to(device, dtype)


def objective(average, series, gamma, weights=None, function=soft_dtw, **options):
    """What `barycenter` minimises, by the function for pairs. gamma 0: of hard DTW."""
    weights = torch.ones(len(series), dtype=torch.float64) if weights is None else weights
    pairs = average.expand(len(series), -1, -1), series
    values = function(*pairs, gamma, **options) if gamma else dtw(*pairs, **options)
    return (weights.to(values) * values).sum() / weights.sum()


def padded(series, lengths):
    """Series with NaN in the place of what lies beyond their lengths."""
    return torch.stack(
        [torch.cat([s[:n], torch.full_like(s[n:], torch.nan)]) for s, n in zip(series, lengths, strict=True)]
    )


def classes(name):
    """Some series of each class of real data, with every other step, float64, (K, L, 1)."""
    pytest.importorskip("aeon")
    import real_series

    series, labels, _, _ = real_series.load(name)
    for label in sorted(set(labels.tolist())):
        yield series[torch.from_numpy(labels == label)][:8, ::2].double()


@pytest.mark.parametrize("gamma", [1.0, 0.1])
@pytest.mark.parametrize("name", ["arrow_head", "gun_point", "trace"])
def test_objective_of_real_classes_is_no_higher_than_that_of_tslearn(name, gamma):
    tslearn = pytest.importorskip("tslearn.barycenters")
    for series in classes(name):
        theirs = torch.from_numpy(tslearn.softdtw_barycenter(series.numpy(), gamma=gamma))
        ours = barycenter(series, gamma=gamma)
        value = objective(ours.series, series, gamma)
        assert value <= objective(theirs, series, gamma)
        torch.testing.assert_close(ours.history[-1], value)


@pytest.mark.parametrize("name", ["arrow_head", "gun_point", "trace"])
def test_dba_of_real_classes_is_no_worse_than_that_of_tslearn(name):
    tslearn = pytest.importorskip("tslearn.barycenters")
    for series in classes(name):
        theirs = torch.from_numpy(tslearn.dtw_barycenter_averaging(series.numpy()))
        ours = barycenter(series, method="dba")
        # Both may end at the same average, but for rounding.
        assert objective(ours.series, series, 0) <= objective(theirs, series, 0) * (1 + 1e-12)


def plain_dba(series, average, weights, rounds):
    """By loops over series, cells and rows; float64 arrays. Returns the averages before each round, with their values."""
    for _ in range(rounds):
        total, count, value = np.zeros_like(average), np.zeros(len(average)), 0.0
        for own, weight in zip(series, weights / weights.sum(), strict=True):
            costs = ((average[:, None] - own[None]) ** 2).sum(2)
            table = np.full((len(average) + 1, len(own) + 1), np.inf)
            table[0, 0] = 0
            for i, j in np.ndindex(costs.shape):
                table[i + 1, j + 1] = costs[i, j] + min(table[i, j], table[i, j + 1], table[i + 1, j])
            value += weight * table[-1, -1]
            i, j = costs.shape
            while i and j:
                total[i - 1] += weight * own[j - 1]
                count[i - 1] += weight
                i, j = min(((i - 1, j - 1), (i - 1, j), (i, j - 1)), key=lambda cell: table[cell])
        yield average, value
        average = total / count[:, None]


@pytest.mark.parametrize("device", DEVICES)
def test_dba_is_that_of_plain_loops(device):
    series, lengths = noisy(), [12, 9, 5, 12, 7, 11]
    weights = torch.tensor([1.0, 2.0, 0.5, 0.0, 1.0, 3.0], dtype=torch.float64)
    start = noisy(1, 8, seed=1)[0]
    arrays = [numpy64(own[:length]) for own, length in zip(series, lengths, strict=True)]
    expected = list(plain_dba(arrays, numpy64(start), numpy64(weights), rounds=20))
    given = {"weights": weights, "lengths": lengths, "init": start.to(device), "method": "dba"}
    average, history = barycenter(padded(series, lengths).to(device), **given)
    values = [value for _, value in expected]
    assert 2 < len(history) < len(values) and values[len(history)] == pytest.approx(values[len(history) - 1])
    np.testing.assert_allclose(numpy64(history), values[: len(history)], rtol=1e-12)
    np.testing.assert_allclose(numpy64(average), expected[len(history) - 1][0], rtol=1e-12, atol=1e-12)
    assert (history.diff() < 0).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("method", METHODS)
def test_history_is_the_objective_from_the_start_to_the_end(device, method):
    series, gamma = noisy(device=device), 0.1 * (method != "dba")
    function = soft_dtw_divergence if method == "divergence" else soft_dtw
    average, history = barycenter(series, method=method, gamma=0.1)
    torch.testing.assert_close(history[0], objective(series.mean(0), series, gamma, function=function))
    torch.testing.assert_close(history[-1], objective(average, series, gamma, function=function))
    assert (history.diff() <= 0).all() and history[-1] < history[0]
    assert history.dtype == torch.float64 and history.device == average.device == series.device
    three = barycenter(series, method=method, gamma=0.1, max_iter=3)
    torch.testing.assert_close(three.history, history[:4])
    torch.testing.assert_close(barycenter(series, method=method, max_iter=0).series, series.mean(0))


@pytest.mark.parametrize("cost", SMOOTH, ids=["sqeuclidean", "cosine", "callable"])
@pytest.mark.parametrize(("method", "function"), [("soft", soft_dtw), ("divergence", soft_dtw_divergence)])
def test_gradient_vanishes_at_the_average(cost, method, function):
    series = noisy() + 2
    options = {"gamma": 0.5, "cost": cost, "bandwidth": 4, "warp_penalty": 0.1}
    average, history = barycenter(series, method=method, max_iter=500, tol=0.0, **options)
    start, average = series.mean(0).requires_grad_(), average.requires_grad_()
    slopes = [
        torch.autograd.grad(objective(at, series, function=function, **options), at)[0].abs().max()
        for at in (start, average)
    ]
    assert slopes[1] < 1e-5 * slopes[0]
    assert len(history) < 200


def test_equal_series_are_their_own_average_under_the_divergence():
    """With a start near them, and a gamma for which no divergence there is below 0."""
    series = noisy(1).expand(3, -1, -1)
    start = series[0] + 0.3 * normal(12, 2, seed=4)
    found = barycenter(series, method="divergence", gamma=3.0, init=start, max_iter=500, tol=0.0)
    torch.testing.assert_close(found.series, series[0], rtol=1e-5, atol=1e-5)
    assert (barycenter(series, gamma=3.0, init=start).series - series[0]).abs().max() > 0.1  # that of soft-DTW is another


@pytest.mark.parametrize("cost", ["euclidean", "cityblock"])
def test_nothing_near_the_average_is_lower_where_a_cost_has_kinks(cost):
    series = noisy() + 2
    average, history = barycenter(series, cost=cost, gamma=0.5)
    value = objective(average, series, 0.5, cost=cost)
    assert history[0] - value > 0.1
    near = [objective(average + 0.02 * normal(12, 2, seed=seed), series, 0.5, cost=cost) for seed in range(20)]
    assert min(near) > value


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("method", METHODS)
def test_groups_in_a_batch_are_what_they_are_alone(device, method):
    series = torch.stack([noisy(4, seed=seed, device=device) * (1 + 3 * seed) for seed in range(3)])
    weights = normal(3, 4, seed=9).abs()
    lengths = torch.tensor([[12, 9, 5, 12], [7, 7, 7, 10], [12, 12, 12, 12]])
    options = {"method": method, "gamma": 0.3, "length": 10, "max_iter": 6}
    together = barycenter(series, weights=weights, lengths=lengths, **options)
    assert together.series.shape == (3, 10, 2)
    for group in range(3):
        alone = barycenter(series[group], weights=weights[group], lengths=lengths[group], **options)
        torch.testing.assert_close(together.series[group], alone.series, rtol=1e-7, atol=1e-7)
        steps = len(alone.history)
        torch.testing.assert_close(together.history[:steps, group], alone.history, rtol=1e-9, atol=1e-9)
        assert (together.history[steps:, group] == together.history[steps - 1, group]).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("init", ["mean", "medoid"])
def test_labels_say_which_group_a_series_is_in(device, init):
    series, labels = noisy(7, device=device), torch.tensor([2, 0, 2, 1, 0, 2, 2])
    options = {"gamma": 0.3, "init": init, "max_iter": 5}
    average, _ = barycenter(series, labels=labels, **options)
    for group in range(3):
        alone, _ = barycenter(series[(labels == group).to(device)], **options)
        torch.testing.assert_close(average[group], alone, rtol=1e-7, atol=1e-7)


def test_blocks_of_pairs_give_what_one_call_gives(monkeypatch):
    series, labels = noisy(150), torch.arange(150) % 4 % 3
    expected = [barycenter(series, labels=labels, method=method, max_iter=5) for method in METHODS]
    monkeypatch.setattr(measure, "CPU_PAIRS", 37)
    for method, wanted in zip(METHODS, expected, strict=True):
        found = barycenter(series, labels=labels, method=method, max_iter=5)
        torch.testing.assert_close(found.series, wanted.series, rtol=1e-7, atol=1e-7)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("method", METHODS)
def test_forms_of_unequal_series_are_alike(method):
    series = noisy()
    parts = [own[:length] for own, length in zip(series, LENGTHS, strict=True)]
    expected = barycenter(padded(series, LENGTHS), lengths=LENGTHS, method=method)
    for form in (parts, torch.nested.as_nested_tensor(parts), torch.nested.as_nested_tensor(parts, layout=torch.jagged)):
        torch.testing.assert_close(barycenter(form, method=method).series, expected.series)
    arrays = barycenter([part.numpy() for part in parts], method=method)
    assert isinstance(arrays.series, np.ndarray) and isinstance(arrays.history, np.ndarray)
    np.testing.assert_array_equal(arrays.series, expected.series.numpy())
    assert isinstance(barycenter(series.numpy(), method=method, init=arrays.series).series, np.ndarray)


@pytest.mark.parametrize("length", [1, 2, 7, 12, 30])
def test_the_mean_is_that_of_series_interpolated_to_the_length(length):
    series, weights = noisy(), torch.arange(1.0, 7.0)
    found = barycenter(padded(series, LENGTHS), lengths=LENGTHS, weights=weights, length=length, max_iter=0).series
    expected = 0
    for own, count, weight in zip(numpy64(series), LENGTHS, weights.tolist(), strict=True):
        place = np.linspace(0, count - 1, length) if length > 1 else np.array([(count - 1) / 2])
        expected += weight * np.stack([np.interp(place, np.arange(count), own[:count, d]) for d in range(2)], 1)
    np.testing.assert_allclose(numpy64(found), expected / 21, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("method", "distance"), [("soft", "soft_dtw"), ("dba", "dtw"), ("divergence", "divergence")])
def test_the_medoid_is_the_series_nearest_to_all(method, distance):
    series, weights = noisy(), torch.tensor([1.0, 1.0, 1.0, 1.0, 9.0, 1.0])
    for own in (None, weights):
        sums = (cdist(series, distance=distance) * (1 if own is None else own)).sum(1)
        found = barycenter(series, method=method, weights=own, init="medoid", max_iter=0).series
        torch.testing.assert_close(found, series[sums.argmin()])


@pytest.mark.parametrize("method", METHODS)
def test_a_weight_counts_as_so_many_series(method):
    series, counts = noisy(3), torch.tensor([1, 3, 2])
    expected = barycenter(series.repeat_interleave(counts, 0), method=method, max_iter=5)
    for weights in (counts, 0.1 * counts, counts.tolist(), counts.numpy()):
        found = barycenter(series, weights=weights, method=method, max_iter=5)
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    without = barycenter(series, weights=[1, 0, 1], method=method)
    torch.testing.assert_close(without, barycenter(series[[0, 2]], method=method), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "optimizer",
    [torch.optim.LBFGS, lambda parameters: torch.optim.Adam(parameters, 0.1), lambda own: torch.optim.SGD(own, 0.05)],
    ids=["LBFGS", "Adam", "SGD"],
)
def test_any_optimizer_of_torch_lowers_the_objective(device, optimizer):
    series = torch.stack([noisy(4, seed=seed, device=device) for seed in range(2)])
    average, history = barycenter(series, gamma=0.5, optimizer=optimizer, max_iter=8)
    best, _ = barycenter(series, gamma=0.5)
    assert history.shape == (9, 2) and not average.requires_grad
    for group in range(2):
        torch.testing.assert_close(history[0, group], objective(series[group].mean(0), series[group], 0.5))
        value = objective(average[group], series[group], 0.5)
        torch.testing.assert_close(value, history[:, group].min())
        lowest = objective(best[group], series[group], 0.5)
        assert value - lowest < 0.3 * (history[0, group] - lowest)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_other_dtypes_are_computed_in_float32(device, dtype, method):
    series = noisy(dtype=dtype, device=device)
    found = barycenter(series, method=method, max_iter=4, init=series[0])
    expected = barycenter(series.double(), method=method, max_iter=4, init=series[0].double())
    assert found.series.dtype == torch.float32
    torch.testing.assert_close(found.series.double(), expected.series, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(found.history, expected.history, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("gamma", [1.0, 1e-3])
def test_steps_in_float32_come_to_an_end(gamma):
    history = barycenter(noisy(dtype=torch.float32), gamma=gamma, tol=0.0, max_iter=400).history
    exact = barycenter(noisy(), gamma=gamma, tol=0.0, max_iter=400)
    assert len(history) < 200
    torch.testing.assert_close(history[-1], exact.history[-1], rtol=2e-3, atol=0.0)


def test_an_average_that_starts_where_it_ends_stays_there():
    series = noisy(1).expand(3, -1, -1)
    for method in METHODS:
        found = barycenter(series, method=method, gamma=1e-4)
        torch.testing.assert_close(found.series, series[0])
    average = barycenter(noisy(), tol=0.0, max_iter=500).series
    again = barycenter(noisy(), init=average)
    assert len(again.history) <= 2
    torch.testing.assert_close(again.series, average)


def test_the_size_of_the_numbers_does_not_matter():
    expected = barycenter(noisy(), gamma=0.1, max_iter=10, tol=0.0)
    for scale in (1e-6, 1e6):
        found = barycenter(noisy() * scale, gamma=0.1 * scale**2, max_iter=10, tol=0.0)
        torch.testing.assert_close(found.series / scale, expected.series, rtol=1e-5, atol=1e-5)


WRONG = [
    ({"method": "mean"}, ValueError, "method: expected 'soft', 'dba' or 'divergence', got 'mean'"),
    ({"method": "dba", "cost": "cosine"}, ValueError, "cost: expected 'sqeuclidean' for the method 'dba'"),
    ({"method": "dba", "optimizer": torch.optim.SGD}, ValueError, "optimizer: expected None for the method 'dba'"),
    ({"cost": "manhattan"}, ValueError, "cost: expected one of"),
    ({"gamma": 0.0}, ValueError, "gamma: expected a positive finite number, got 0.0"),
    ({"gamma": torch.ones(6)}, TypeError, "gamma: expected one number for all pairs"),
    ({"warp_penalty": -1.0}, ValueError, "warp_penalty: expected a finite number of at least 0"),
    ({"bandwidth": -1}, ValueError, "bandwidth: expected None or an integer of at least 0"),
    ({"weights": [1, 1]}, ValueError, r"weights: expected shape \(6,\), one per series, got \(2,\)"),
    ({"weights": [1, 1, 1, 1, 1, -1]}, ValueError, "weights: expected finite numbers of at least 0"),
    ({"weights": [0] * 6}, ValueError, "weights: expected a positive sum in every group"),
    ({"lengths": [0, 1, 1, 1, 1, 1]}, ValueError, "lengths: expected integers from 1 to 12, got values from 0 to 1"),
    ({"lengths": [1, 1]}, ValueError, r"lengths: expected shape \(6,\)"),
    ({"labels": [0, 0, 2, 2, 0, 0]}, ValueError, "labels: expected every label from 0 to 2, got no series of 1"),
    ({"labels": [0, 0, -1, 0, 0, 0]}, ValueError, "labels: expected integers from 0 to 5"),
    ({"length": 0}, ValueError, r"length: expected an integer from 1 to 2\^28, got 0"),
    ({"length": 2.0}, TypeError, "length: expected an integer or None, got float"),
    ({"init": "median"}, ValueError, "init: expected 'mean' or 'medoid', got 'median'"),
    ({"init": torch.zeros(9, 3)}, ValueError, r"init: expected shape \(length, 2\), got \(9, 3\)"),
    ({"init": torch.zeros(2)}, ValueError, r"init: expected shape \(length, 2\), got \(2,\)"),
    ({"init": torch.zeros(9, 2), "length": 8}, ValueError, r"init: expected shape \(8, 2\), got \(9, 2\)"),
    ({"init": torch.zeros(9, 2), "labels": [0, 1] * 3}, ValueError, r"init: expected shape \(2, length, 2\), got \(9, 2\)"),
    ({"init": torch.full((9, 2), torch.nan)}, ValueError, "init: expected finite numbers"),
    ({"init": 3}, TypeError, "init: expected a torch.Tensor, got int"),
    ({"optimizer": "Adam"}, TypeError, "optimizer: expected a callable that returns a torch.optim.Optimizer, got str"),
    ({"optimizer": lambda own: own}, TypeError, "optimizer: expected a callable that returns .*, got list"),
    ({"max_iter": -1}, ValueError, "max_iter: expected an integer of at least 0, got -1"),
    ({"max_iter": 1.5}, TypeError, "max_iter: expected an integer, got float"),
    ({"tol": -1.0}, ValueError, "tol: expected a number of at least 0, got -1.0"),
    ({"tol": "small"}, TypeError, "tol: expected a number or None, got str"),
    ({"kernel": "tiled"}, ValueError, "kernel: 'tiled' runs on CUDA tensors only"),
]


@pytest.mark.parametrize(("options", "error", "message"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_a_wrong_argument_is_named(options, error, message):
    with pytest.raises(error, match=message):
        barycenter(noisy(), **options)


def test_wrong_series_are_named():
    series = noisy()
    broken = series.clone()
    broken[3, 5, 1] = torch.nan
    for wrong, message in [
        (broken, r"series: expected finite numbers, got NaN or infinity in series\[3\]"),
        (broken.view(2, 3, 12, 2), r"series: expected finite numbers, got NaN or infinity in series\[1, 0\]"),
        (series[:0], "series: expected at least one of them in each group"),
        (series[:, :0], "series: expected series of at least one vector"),
        (series[0], r"series: expected \(series, length, dim\), got \(12, 2\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            barycenter(wrong)
    assert barycenter(broken, lengths=[12, 12, 12, 5, 12, 12]).series.isfinite().all()
    with pytest.raises(ValueError, match="lengths: expected None unless series is a dense tensor"):
        barycenter(list(series), lengths=LENGTHS)
    with pytest.raises(ValueError, match=r"lengths: expected shape \(2, 3\), one per series, got \(6,\)"):
        barycenter(series.view(2, 3, 12, 2), lengths=LENGTHS)
    with pytest.raises(ValueError, match=r"labels: expected None if series is \(groups, series, length, dim\)"):
        barycenter(series.view(2, 3, 12, 2), labels=[0, 1])
