"""Pictures show what they say: the artists' data, not their looks."""

import builtins

import numpy as np
import pytest
import torch
from cases import normal

from torchsoftdtw import cdist, dtw_path, plot, soft_dtw_alignment

pytest.importorskip("matplotlib")

import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection


@pytest.fixture(autouse=True)
def without_a_screen():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


@pytest.fixture
def data():
    return normal(9, 2, seed=1), normal(12, 2, seed=2)


def lines_of(ax):
    return [line.get_xydata() for line in ax.lines]


def of_forms(x, y):
    """The same two series in all forms that are taken."""
    leaf = x.clone().requires_grad_()
    return [(x, y), (leaf, y), (x.float(), y.float()), (x.numpy(), y.numpy()), (x.bfloat16(), y.bfloat16())]


def test_a_pair_has_a_line_for_every_matched_cell(data):
    x, y = data
    path = dtw_path(x, y).paths
    for a, b in of_forms(x, y):
        for matched in (path, path.numpy(), dtw_path(x, y)) + (() if a.dtype == torch.bfloat16 else (None,)):
            ax = plot.pair(a, b, matched, channel=1)
            upper, lower = lines_of(ax)
            np.testing.assert_array_equal(upper[:, 0], range(9))
            np.testing.assert_allclose(lower[:, 1], torch.as_tensor(b)[:, 1].double())
            # x is moved as a whole, above y.
            moved = upper[:, 1] - torch.as_tensor(a)[:, 1].detach().double().numpy()
            np.testing.assert_allclose(moved, moved[0])
            assert upper[:, 1].min() > lower[:, 1].max()
            (matches,) = [artist for artist in ax.collections if isinstance(artist, LineCollection)]
            ends = np.array(matches.get_segments())
            np.testing.assert_array_equal(ends[:, :, 0], path)
            np.testing.assert_allclose(ends[:, 0, 1], upper[path[:, 0], 1])
            np.testing.assert_allclose(ends[:, 1, 1], lower[path[:, 1], 1])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["x", "y"]


def test_a_pair_of_numbers_and_of_one_step():
    ax = plot.pair(torch.arange(5.0), torch.zeros(1), np.zeros((0, 2), dtype=np.int64))
    assert [len(line) for line in lines_of(ax)] == [5, 1]
    assert not ax.collections[0].get_segments()
    constant = plot.pair(torch.zeros(4), torch.zeros(6))
    assert lines_of(constant)[0][0, 1] > lines_of(constant)[1][0, 1]


@pytest.mark.parametrize("cost", ["sqeuclidean", "cityblock", lambda x, y: (x @ y.transpose(1, 2)).cos()])
def test_an_alignment_lies_over_the_costs_beside_its_series(data, cost):
    x, y = data
    ax = plot.alignment(x, y, cost=cost, channel=1)
    expected = cost(x[None], y[None])[0] if callable(cost) else cdist(x.unsqueeze(1), y.unsqueeze(1), cost=cost)
    (image,) = ax.images
    np.testing.assert_allclose(image.get_array(), expected, atol=1e-12)
    path = dtw_path(x, y, cost=cost).paths
    np.testing.assert_array_equal(lines_of(ax)[0], path.flip(1))
    left, above, bar = ax.child_axes
    np.testing.assert_allclose(lines_of(left)[0], torch.stack([x[:, 1], torch.arange(9.0)], 1))
    np.testing.assert_allclose(lines_of(above)[0], torch.stack([torch.arange(12.0), y[:, 1]], 1))
    assert left.get_ylim() == ax.get_ylim() == (8.5, -0.5) and above.get_xlim() == ax.get_xlim() == (-0.5, 11.5)
    assert bar.get_ylabel() == "cost"


def test_a_soft_alignment_is_as_opaque_as_it_is_likely(data):
    x, y = data
    answer = soft_dtw_alignment(x, y, 0.5)
    for matched in (answer, answer.alignment, answer.alignment.numpy(), answer.alignment.requires_grad_()):
        ax = plot.alignment(x, y, matched)
        _, over = ax.images
        np.testing.assert_allclose(over.get_array()[..., 3], answer.alignment.detach())
        assert not ax.lines
    path = dtw_path(x, y)
    for matched in (path, path.paths, path.paths.numpy(), path.paths.int()):
        ax = plot.alignment(x, y, matched)
        assert len(ax.images) == 1
        np.testing.assert_array_equal(lines_of(ax)[0], path.paths.flip(1))


def test_the_margins_lie_inside_a_new_figure(data):
    ax = plot.alignment(*data)
    ax.figure.draw_without_rendering()
    whole = ax.figure.bbox
    for own in (ax, *ax.child_axes):
        box = own.get_tightbbox()
        assert box.x0 >= whole.x0 and box.y0 >= whole.y0 and box.x1 <= whole.x1 and box.y1 <= whole.y1


def test_distances_have_their_names():
    matrix = cdist(normal(3, 6, 1, seed=1), normal(5, 6, 1, seed=2))
    ax = plot.distances(matrix, ["a", "b", "c"], range(5))
    np.testing.assert_array_equal(ax.images[0].get_array(), matrix)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "b", "c"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == list("01234")
    assert ax.child_axes[0].get_ylabel() == "distance"
    square = plot.distances(matrix[:, :3].numpy(), ["a", "b", "c"])
    assert [tick.get_text() for tick in square.get_xticklabels()] == ["a", "b", "c"]
    other = plot.distances(matrix[:, :3], ["a", "b", "c"], ["d", "e", "f"])
    assert [tick.get_text() for tick in other.get_xticklabels()] == ["d", "e", "f"]
    plain = plot.distances(matrix)
    plain.figure.draw_without_rendering()
    assert all(float(tick.get_text().replace("\N{MINUS SIGN}", "-")).is_integer() for tick in plain.get_yticklabels())


def test_an_average_lies_over_its_series():
    series = normal(4, 8, 2, seed=1)
    average = series.mean(0)

    class Answer:
        pass

    answer = Answer()
    answer.series = average
    ragged = [series[0], series[1, :5], series[2].numpy(), series[3]]
    for given, line, channel in ((series, average, 0), (series.numpy(), answer, 1), (ragged, average.numpy(), 1)):
        ax = plot.average(given, line, channel=channel)
        *single, drawn = lines_of(ax)
        np.testing.assert_allclose(drawn[:, 1], average[:, channel])
        assert len(single) == 4
        for own, expected in zip(single, given, strict=True):
            np.testing.assert_allclose(own[:, 1], expected[:, channel])
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["series", "average"]
    assert len(lines_of(plot.average(series[..., 0], average[:, 0]))) == 5


def test_axes_that_are_given_are_drawn_on(data):
    figure, ((one, two), (three, four)) = plt.subplots(2, 2)
    assert plot.pair(*data, ax=one) is one and plot.alignment(*data, ax=two) is two
    assert plot.distances(torch.zeros(2, 3), ax=three) is three and plot.average([data[0]], data[1], ax=four) is four
    assert plt.get_fignums() == [figure.number]
    figure.canvas.draw()


X, Y = torch.zeros(4, 2), torch.zeros(5, 2)
WRONG = [
    (lambda: plot.pair([0.0], Y), TypeError, r"x: expected a tensor or a NumPy array, got list"),
    (lambda: plot.pair(X, Y[None]), ValueError, r"y: expected one series, .*, got \(1, 5, 2\)"),
    (lambda: plot.pair(X, Y[:0]), ValueError, r"y: expected one series, .*, got \(0, 2\)"),
    (lambda: plot.pair(X, Y, channel=2), ValueError, r"channel: expected a dimension of x, from 0 to 1, got 2"),
    (lambda: plot.pair(X, Y, torch.zeros(3, 2)), ValueError, r"path: expected shape \(K, 2\) of integers, got .* float32"),
    (
        lambda: plot.pair(X, Y, torch.zeros(3, 3).long()),
        ValueError,
        r"path: expected shape \(K, 2\) of integers, got \(3, 3\)",
    ),
    (lambda: plot.pair(X, Y, np.array([[0, 0], [4, 4]])), ValueError, r"path: expected cells of a \(4, 5\) table"),
    (lambda: plot.pair(X, Y, dtw_path(X[None], Y[None])), TypeError, r"path: expected the result for one pair"),
    (lambda: plot.alignment(X, Y, torch.zeros(5, 4)), ValueError, r"matched: expected an alignment of shape \(4, 5\)"),
    (lambda: plot.alignment(X, Y, cost="manhattan"), ValueError, r"cost: expected one of .*'cityblock'"),
    (lambda: plot.distances(torch.zeros(3)), ValueError, r"matrix: expected shape \(P, Q\), got \(3,\)"),
    (lambda: plot.distances(torch.zeros(3, 2), ["a"]), ValueError, "labels: expected 3 names, got 1"),
    (lambda: plot.distances(torch.zeros(3, 2), columns="abc"), ValueError, "columns: expected 2 names, got 3"),
    (lambda: plot.average([X, "b"], X), TypeError, r"series\[1\]: expected a tensor or a NumPy array, got str"),
    (lambda: plot.average([X], X, channel=-1), ValueError, r"channel: expected a dimension of series\[0\]"),
]


@pytest.mark.parametrize(("call", "error", "message"), WRONG)
def test_wrong_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_an_error_names_the_extra_where_matplotlib_is_missing(data, monkeypatch):
    load = builtins.__import__

    def without_matplotlib(name, *rest):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    for call in (lambda: plot.pair(*data), lambda: plot.distances(torch.zeros(2, 2))):
        with pytest.raises(ImportError, match=r"torchsoftdtw\.plot needs matplotlib: pip install 'torchsoftdtw\[plot\]'"):
            call()
