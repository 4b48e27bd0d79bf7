"""Distances between all pairs of two sets of series."""

import functools
from typing import Literal

import torch

from ._inputs import arguments, sets
from ._pairs import queue as queues
from ._pairs import results
from ._pairs import task as tasks
from ._pairs.bar import Bar
from ._pairs.stream import fill
from .signatures import Cost, Distance, Lengths, Out, SeriesSet, TensorOrArray

# Cells of all tables together, a few seconds of work at most. So many are computed at once, without blocks, since there is
# nothing to resume.
AT_ONCE = 1 << 30


def cdist(
    x: SeriesSet,
    y: SeriesSet | None = None,
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
    out: Out = None,
    progress: Literal[False] | None = None,
    distributed: bool = True,
) -> TensorOrArray:
    """The distance of every series of x to every series of y, differentiable with respect to both.

    Only the series are stored for backward, which computes the values again, some pairs at a time. So the memory is
    that of the inputs and the result, and about 256 MiB. Without a gradient it is less: pairs are computed in blocks,
    and only the series and values of two blocks have to be on the device. The sets may be memory maps (`numpy.load(...,
    mmap_mode="r")`) or tensors on the CPU, and the values may go to a file.

    Args:
        x: (P, N, D), series of length N and dimension D: a tensor, or a NumPy array. Or a list of P series (length, D),
            or a nested tensor, with different lengths.
        y: (Q, M, D), in any of these forms. None: x itself, and half of the pairs are computed.
        distance: "dtw", "soft_dtw", or "divergence" (`soft_dtw_divergence` of kind "soft"), or one of `measures`, such as
            measures.TWED(nu=0.01). The values are those of these functions.
        gamma: smoothing of "soft_dtw" and "divergence", one positive number for all pairs; None: 0.1. "dtw" has none. Of a
            measure None means 0, the measure itself.
        cost: as in `soft_dtw`. A callable gets the series of some pairs at a time. A measure has its own, and takes no
            warp_penalty and no open_ends.
        x_lengths: (P,) integers from 1 to N, as in `soft_dtw`.
        y_lengths: (Q,) integers from 1 to M; if y is None, those of x.
        bandwidth: Sakoe-Chiba radius, one integer for all pairs, or None.
        warp_penalty: cost of a step that advances in one series only, one number for all pairs.
        length_norm: divide every value by the sum of the pair's lengths.
        open_ends: match every series of x with any contiguous part of those of y. Needs a y, and no bandwidth; not for
            "divergence".
        kernel: "auto", or a name that `select_kernel` can return; "dtw" has one alone.
        device: where to compute, such as "cuda"; None: the device of x. Blocks and values are copied while others are
            computed.
        out: (P, Q), where the values are written: a tensor, a NumPy array or memory map, or the path of a .npy file to
            create. On disk, an interrupted run leaves a file whose name ends in ".progress" and that says which blocks
            are finished. The same call continues from there; a call with other inputs or options is an error.
            The progress file is removed at the end.
        progress: None: a bar on stderr, by tqdm if that is installed, if the call takes longer than 5 seconds. False:
            no bar.
        distributed: whether all ranks compute the result together, if torch.distributed is initialised: all make the
            same call and get the whole result. With `out` on a shared disk, each rank takes blocks until none is left,
            and the others compute the blocks of a rank that dies; an `out` in memory belongs to its rank. False: this
            rank computes everything.

    Returns:
        (P, Q) values: a tensor on the device of x, float64 for float64 inputs and float32 otherwise, or a NumPy array
        if x is one. With `out`, that, or a memory map of the file. Gradients are of the first order; there are none
        with `out`, with another `device` than that of x, or with several ranks.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        RuntimeError: CUDA tensors, and this build has no CUDA part; a gradient is asked for where there is none; or
            torch.distributed's store has gone.
        OSError: the file does not fit on its disk.

    Example:
        >>> import torch
        >>> x = torch.tensor([[[0.0], [1.0], [2.0]], [[0.0], [0.0], [2.0]], [[5.0], [5.0], [5.0]]])
        >>> cdist(x).tolist()
        [[0.0, 1.0, 50.0], [1.0, 0.0, 59.0], [50.0, 59.0, 0.0]]
    """
    task, is_array = tasks.of_sets(
        x, y, distance, gamma, cost, x_lengths, y_lengths, bandwidth, warp_penalty, length_norm, open_ends, kernel
    )
    device = sets.device_to_compute_on(device, task.x)
    is_shared = arguments.flag("distributed", distributed) and queues.ranks_at_work() > 1
    arguments.check_progress(progress)
    if arguments.wants_gradient(task.x, task.y):
        _check_can_have_gradient(out is None, device == task.x.device, not is_shared)
        return task.values()
    return _without_gradient(task, is_array, device, out, progress is False, is_shared)


def _check_can_have_gradient(in_memory, on_device, is_alone):
    reasons = (
        (in_memory, "with out"),
        (on_device, "if device is not that of x"),
        (is_alone, "if ranks compute together (distributed=False: each rank alone)"),
    )
    for is_possible, reason in reasons:
        if not is_possible:
            raise RuntimeError(
                f"cdist: x or y requires a gradient, and there is none {reason}; call it under torch.no_grad(), or with "
                "x.detach() and y.detach()"
            )


def _require_memory_of_its_own(out):
    if out.is_cpu and out.is_shared():
        raise ValueError("out: expected a tensor in each rank's own memory, or a file, got a tensor in shared memory")


@torch.no_grad()
def _without_gradient(task, is_array, device, out, is_silent, is_shared):
    if task.cells <= AT_ONCE and out is None and not is_shared and device == task.x.device:
        values = task.values()
        return values.numpy() if is_array else values
    blocks = task.blocks(device)
    identity = functools.cache(lambda: task.identity(blocks, device))
    ranks = queues.Ranks.of_world(identity()) if is_shared else None
    if out is None:
        result = results.new(task.shape, task.dtype, task.x.device, is_array, len(blocks))
    else:
        is_over = ranks.is_over if is_shared else lambda: False
        result = results.given(out, task.shape, task.dtype, len(blocks), identity, is_over)
        if is_shared and not result.is_shared:
            _require_memory_of_its_own(result.tensor)
            result.tensor.zero_()
    queue = queues.SharedQueue(result.marks, ranks) if is_shared else queues.Queue(result.marks)
    bar = Bar("cdist", len(blocks), queue.count_finished(), is_silent or (is_shared and ranks.rank > 0))
    fill(result, task, blocks, queue, device, bar)
    if is_shared and not result.is_shared:
        queues.put_together(result.tensor, ranks)
    return result.answer
