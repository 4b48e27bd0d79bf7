"""Plots of pairs, alignments, distances and averages, by matplotlib: `pip install torchsoftdtw[plot]`.

Series, matrices and paths are tensors or NumPy arrays. Every function draws on `ax`, or on new axes, and returns the axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from ._autograd.cost_matrix import matrix_of
from ._inputs import kinds
from ._inputs.problem import of_series
from .hard import dtw_path
from .signatures import Cost, DTWPath, SoftAlignment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

X_COLOUR, Y_COLOUR, MATCH_COLOUR = "#3c7dc4", "#d1495b", "#e58a1f"
FAINT = "0.6"
GAP = 0.3  # between two series, of the height of both


def pair(x: Any, y: Any, path: Any = None, *, channel: int = 0, ax: Axes | None = None) -> Axes:
    """Two series, x above y, and a line between every two steps that are matched.

    Args:
        x: (N,) or (N, D).
        y: (M,) or (M, D).
        path: (K, 2), or what `dtw_path` returns; None: the path of `dtw_path(x, y)`.
        channel: which of D dimensions to draw. The path is that of all of them.
        ax: where to draw.

    Returns:
        The axes. Their unit is that of y; x is shifted upwards.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        ImportError: matplotlib is missing.

    Example:
        >>> from torchsoftdtw import plot
        >>> axes = plot.pair(torch.randn(20, 1), torch.randn(30, 1))
    """
    ax = _axes(ax)
    x, y = _series("x", x), _series("y", y)
    cells = dtw_path(x, y).paths if path is None else path
    rows, columns = _path(cells, len(x), len(y)).T
    upper, lower = _channel("x", x, channel), _channel("y", y, channel)
    upper = upper - upper.min() + lower.max() + GAP * max(_height(upper) + _height(lower), 1e-9)

    from matplotlib.collections import LineCollection

    ends = [torch.stack([steps, line[steps]], 1) for steps, line in ((rows, upper), (columns, lower))]
    lines = torch.stack(ends, 1).numpy()  # (K, 2 ends, 2 coordinates)
    ax.add_collection(LineCollection(list(lines), colors=FAINT, linewidths=0.7, zorder=1))
    ax.plot(upper.numpy(), color=X_COLOUR, lw=1.8, label="x")
    ax.plot(lower.numpy(), color=Y_COLOUR, lw=1.8, label="y")
    ax.set_xlabel("step")
    ax.set_yticks([])
    _tidy(ax, "left", "top", "right")
    ax.legend(frameon=False, loc="upper right", ncols=2, bbox_to_anchor=(1, 1.12))
    return ax


def alignment(
    x: Any, y: Any, matched: Any = None, *, cost: Cost = "sqeuclidean", channel: int = 0, ax: Axes | None = None
) -> Axes:
    """The path, or the soft alignment, of two series over their cost matrix, with x on the left and y above.

    Args:
        x: (N,) or (N, D): the rows, the first one above.
        y: (M,) or (M, D): the columns.
        matched: a path (K, 2) of integers, or an alignment (N, M); or what `dtw_path` or `soft_dtw_alignment` returns.
            None: the path of `dtw_path(x, y, cost=cost)`.
        cost: whose matrix is drawn, as in `soft_dtw`.
        channel: which of D dimensions is drawn in the margins.
        ax: where to draw the matrix; the margins lie outside, where a constrained layout keeps room for them.

    Returns:
        The axes of the matrix. Those of x, of y and of the colours are its `child_axes`.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        ImportError: matplotlib is missing.

    Example:
        >>> from torchsoftdtw import plot, soft_dtw_alignment
        >>> x, y = torch.randn(20, 1), torch.randn(30, 1)
        >>> axes = plot.alignment(x, y, soft_dtw_alignment(x, y, gamma=0.1))
    """
    ax = _axes(ax, place=(0.28, 0.12, 0.58, 0.62))  # which leaves room for the margins
    x, y = _series("x", x), _series("y", y)
    costs = matrix_of(of_series(x, y, 1.0, cost, None, None, None, 0.0))[0]
    shown = ax.imshow(costs.numpy(), cmap="Greys", aspect="auto", interpolation="nearest")
    matched = dtw_path(x, y, cost=cost).paths if matched is None else _answer("matched", matched)
    if matched.dtype.is_floating_point:
        if matched.shape != costs.shape:
            raise ValueError(
                f"matched: expected an alignment of shape {tuple(costs.shape)} or a path (K, 2) of integers, got "
                f"{tuple(matched.shape)}"
            )
        from matplotlib.colors import to_rgb

        colours = torch.tensor([*to_rgb(MATCH_COLOUR), 0.0], dtype=torch.float64).repeat(*costs.shape, 1)
        colours[..., 3] = matched.clamp(0, 1)
        ax.imshow(colours.numpy(), aspect="auto", interpolation="nearest")
    else:
        rows, columns = _path(matched, len(x), len(y)).T
        ax.plot(columns.numpy(), rows.numpy(), color=MATCH_COLOUR, lw=2)
    ax.set(xlabel="step of y", xlim=(-0.5, len(y) - 0.5), ylim=(len(x) - 0.5, -0.5))

    left = ax.inset_axes((-0.27, 0, 0.25, 1), sharey=ax)
    above = ax.inset_axes((0, 1.02, 1, 0.25), sharex=ax)
    left.plot(_channel("x", x, channel).numpy(), range(len(x)), color=X_COLOUR, lw=1.6)
    left.invert_xaxis()
    left.set(ylabel="step of x", xticks=[])
    above.plot(range(len(y)), _channel("y", y, channel).numpy(), color=Y_COLOUR, lw=1.6)
    above.set(yticks=[])
    ax.tick_params(labelleft=False)
    above.tick_params(labelbottom=False)
    _tidy(left, "top", "right", "bottom")
    _tidy(above, "top", "right", "left")
    _colour_bar(ax, shown, "cost")
    return ax


def distances(
    matrix: Any, labels: Sequence[Any] | None = None, columns: Sequence[Any] | None = None, *, ax: Axes | None = None
) -> Axes:
    """A matrix of distances, as `cdist` returns it.

    Args:
        matrix: (P, Q).
        labels: P names of the rows, and of the columns if `columns` is None and there are as many.
        columns: Q names of the columns.
        ax: where to draw.

    Returns:
        The axes.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        ImportError: matplotlib is missing.

    Example:
        >>> from torchsoftdtw import cdist, plot
        >>> axes = plot.distances(cdist(torch.randn(3, 20, 1)), ["a", "b", "c"])
    """
    ax = _axes(ax)
    matrix = _numbers("matrix", matrix)
    if matrix.dim() != 2:
        raise ValueError(f"matrix: expected shape (P, Q), got {tuple(matrix.shape)}")
    p, q = matrix.shape
    for name, given, count in (("labels", labels, p), ("columns", columns, q)):
        if given is not None and len(given) != count:
            raise ValueError(f"{name}: expected {count} names, got {len(given)}")
    if columns is None and p == q:
        columns = labels
    shown = ax.imshow(matrix.numpy(), cmap="viridis", interpolation="nearest")

    from matplotlib.ticker import MaxNLocator

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    if labels is not None:
        ax.set_yticks(range(p), [str(label) for label in labels])
    if columns is not None:
        ax.set_xticks(range(q), [str(label) for label in columns], rotation=45, ha="right", rotation_mode="anchor")
    _colour_bar(ax, shown, "distance")
    return ax


def average(series: Any, average: Any, *, channel: int = 0, ax: Axes | None = None) -> Axes:
    """An average, drawn over its series.

    Args:
        series: (P, N) or (P, N, D), or a list of P series (length,) or (length, D).
        average: (L,) or (L, D), or the result of `barycenter`.
        channel: which of D dimensions is drawn.
        ax: where to draw.

    Returns:
        The axes.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        ImportError: matplotlib is missing.

    Example:
        >>> from torchsoftdtw import plot
        >>> series = torch.randn(5, 20, 1)
        >>> axes = plot.average(series, series.mean(0))
    """
    ax = _axes(ax)
    for i, own in enumerate(series):
        line = _channel(f"series[{i}]", _series(f"series[{i}]", own), channel)
        ax.plot(line.numpy(), color=FAINT, lw=0.7, alpha=0.6, label=None if i else "series")
    line = _channel("average", _series("average", getattr(average, "series", average)), channel)
    ax.plot(line.numpy(), color=Y_COLOUR, lw=2.4, label="average")
    ax.set_xlabel("step")
    _tidy(ax, "top", "right")
    ax.legend(frameon=False)
    return ax


def _axes(ax, place=None):
    """The axes to draw on, in a figure's layout or at a place of their own. Where matplotlib is missing, an error names the
    extra."""
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError("torchsoftdtw.plot needs matplotlib: pip install 'torchsoftdtw[plot]'") from error
    if ax is not None:
        return ax
    figure = matplotlib.pyplot.figure(layout="constrained" if place is None else None)
    return figure.add_subplot() if place is None else figure.add_axes(place)


def _numbers(name, given):
    """A float64 tensor on the CPU, of a tensor or an array."""
    if kinds.is_array(given):
        given = torch.from_numpy(given)
    if not isinstance(given, torch.Tensor):
        raise TypeError(f"{name}: expected a tensor or a NumPy array, got {kinds.describe(given)}")
    return given.detach().cpu().double()


def _series(name, given):
    """(N, D)."""
    series = _numbers(name, given)
    if series.dim() == 1:
        series = series.unsqueeze(1)
    if series.dim() != 2 or 0 in series.shape:
        raise ValueError(f"{name}: expected one series, (length,) or (length, dim), got {tuple(series.shape)}")
    return series


def _channel(name, series, channel):
    if not 0 <= channel < series.shape[1]:
        raise ValueError(f"channel: expected a dimension of {name}, from 0 to {series.shape[1] - 1}, got {channel}")
    return series[:, channel]


def _answer(name, given):
    """The path or the alignment of what a function of the package has answered."""
    given = {DTWPath: lambda: given.paths, SoftAlignment: lambda: given.alignment}.get(type(given), lambda: given)()
    if kinds.is_array(given):
        given = torch.from_numpy(given)
    if not isinstance(given, torch.Tensor):
        raise TypeError(f"{name}: expected the result for one pair, a tensor or a NumPy array, got {kinds.describe(given)}")
    return given.detach().cpu()


def _path(given, n, m):
    """(K, 2) int64, checked to lie in an (n, m) table."""
    path = _answer("path", given)
    if path.dim() != 2 or path.shape[1] != 2 or path.dtype not in kinds.INTEGERS:
        raise ValueError(f"path: expected shape (K, 2) of integers, got {tuple(path.shape)} of {kinds.name_of(path.dtype)}")
    path = path.long()
    if len(path) and (path.min() < 0 or bool((path.amax(0) >= torch.tensor([n, m])).any())):
        raise ValueError(f"path: expected cells of a ({n}, {m}) table, got one beyond it")
    return path


def _height(line):
    return (line.max() - line.min()).item()


def _colour_bar(ax, shown, label):
    """Of the height of the axes."""
    ax.figure.colorbar(shown, cax=ax.inset_axes((1.03, 0, 0.04, 1)), label=label)


def _tidy(ax, *sides):
    ax.spines[list(sides)].set_visible(False)
