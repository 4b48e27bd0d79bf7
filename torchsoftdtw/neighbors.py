"""The nearest series of a set."""

import operator
from typing import Literal

import torch

from ._inputs import arguments, kinds, per_pair, sets
from ._pairs import pruning
from ._pairs import task as tasks
from ._pairs.bar import Bar
from ._pairs.journal import Marks
from ._pairs.queue import Queue
from ._pairs.stream import computed, copies_between
from .signatures import Cost, Distance, Lengths, SeriesSet, TensorOrArray


def nearest(
    x: SeriesSet,
    y: SeriesSet | None,
    k: int,
    *,
    distance: Distance = "dtw",
    gamma: float | None = None,
    cost: Cost = "sqeuclidean",
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: int | None = None,
    warp_penalty: float = 0.0,
    length_norm: bool = False,
    open_ends: bool = False,
    kernel: str = "auto",
    device: torch.device | str | int | None = None,
    progress: Literal[False] | None = None,
) -> tuple[TensorOrArray, TensorOrArray]:
    """The k series of y that are nearest to each series of x.

    Only the k smallest distances of each series are kept, so the matrix of all distances is never in memory. The sets
    may be memory maps, or on the CPU while a GPU computes.

    For hard DTW with a band on the CPU, pairs that a lower bound (LB_Kim, LB_Keogh) shows to be too far are skipped,
    and others are abandoned early, if a sample of the pairs shows that this saves time. The result is the same to the
    last bit.

    Args:
        x: (P, N, D), or any other form of a set that `cdist` takes.
        y: (Q, M, D) likewise. None: x itself. A series is not its own neighbour, but an equal one is.
        k: how many, from 1 to Q; to P - 1 where y is None.
        distance, gamma, cost, x_lengths, y_lengths, bandwidth, warp_penalty, length_norm, open_ends, kernel: as in `cdist`.
        device: where to compute, as in `cdist`.
        progress: None or False, as in `cdist`.

    Returns:
        (indices, distances): (P, k) int64 positions in y, and their distances, the nearest first, NaN last; if
        distances are equal, the lower position first. On the device of x, or NumPy arrays if x is one. There is no
        gradient: if you need one, compute these pairs again (`dtw(x, y[indices[:, 0]])`).

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        RuntimeError: CUDA tensors, and this build has no CUDA part; or a gradient is asked for.

    Example:
        >>> import torch
        >>> x = torch.tensor([[[0.0], [1.0], [2.0]], [[0.0], [0.0], [2.0]], [[5.0], [5.0], [5.0]]])
        >>> indices, distances = nearest(x, None, 1)
        >>> indices.tolist(), distances.tolist()
        ([[1], [0], [0]], [[1.0], [1.0], [50.0]])
    """
    task, is_array = tasks.of_sets(
        x, y, distance, gamma, cost, x_lengths, y_lengths, bandwidth, warp_penalty, length_norm, open_ends, kernel
    )
    k = _count(k, task.shape[1] - task.is_half)
    device = sets.device_to_compute_on(device, task.x)
    arguments.check_progress(progress)
    if arguments.wants_gradient(task.x, task.y):
        raise RuntimeError(
            "nearest: x or y requires a gradient, and there is none; call it under torch.no_grad(), or with x.detach() and "
            "y.detach()"
        )
    indices, distances = (each.to(task.x.device) for each in _nearest(task, k, device, progress is False))
    return (indices.numpy(), distances.numpy()) if is_array else (indices, distances)


def _count(k, most):
    if not per_pair.is_integer(k):
        raise TypeError(f"k: expected an integer, got {kinds.describe(k)}")
    if not 1 <= k <= most:
        raise ValueError(f"k: expected an integer from 1 to {most}, the number of series to choose from, got {k}")
    return operator.index(k)


@torch.no_grad()
def _nearest(task, k, device, is_silent):
    is_pruned = pruning.is_worthwhile(task, k, device)
    blocks = pruning.blocks(task) if is_pruned else task.blocks(device)
    kept = {}
    queue = Queue(Marks(len(blocks)))
    bar = Bar("nearest", len(blocks), 0, is_silent)
    search = pruning.search(task, k, blocks, kept) if is_pruned else _among_all(task, k, blocks, kept, queue, device)
    try:
        for number in search:
            queue.finish([number])
            bar.update(queue.count_finished)
    finally:
        bar.close()
    nothing = torch.empty((0, k), dtype=torch.int64, device=device), torch.empty((0, k), dtype=task.dtype, device=device)
    indices, distances = zip(nothing, *(kept[top] for top in sorted(kept)), strict=True)
    return torch.cat(indices), torch.cat(distances)


def _among_all(task, k, blocks, kept, queue, device):
    """Computes all values. kept[top]: (indices, distances) of the rows of the blocks that begin there. Yields the numbers
    of blocks that are done."""
    for number, values in computed(task, blocks, queue, device, copies_between(device, task.x.device)):
        block = blocks[number]
        candidates = _candidates(values, block.left, block.is_triangle)
        kept[block.top] = _smallest(k, *kept.get(block.top, ()), *candidates)
        if task.is_half and not block.is_triangle:  # which has the pairs of the other series as well
            candidates = _candidates(values.T, block.top)
            kept[block.left] = _smallest(k, *kept.get(block.left, ()), *candidates)
        yield number


def _candidates(values, first, without_self=False):
    """(indices, distances) of all series of a block, the first of which has the position `first`."""
    rows, columns = values.shape
    at = torch.arange(columns - without_self, device=values.device).expand(rows, -1)
    if without_self:
        at = at + (at >= torch.arange(rows, device=values.device).unsqueeze(1))
    return first + at, values.gather(1, at)


def _smallest(k, *parts):
    """(indices, distances) of the k smallest of parts (indices, distances, ...), whose indices grow from part to part."""
    indices, distances = torch.cat(parts[::2], 1), torch.cat(parts[1::2], 1)
    order = distances.sort(dim=1, stable=True)[1][:, :k]  # topk has no order among equals
    return indices.gather(1, order), distances.gather(1, order)
