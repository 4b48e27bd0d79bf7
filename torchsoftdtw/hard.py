"""Hard DTW, the limit of soft-DTW for gamma = 0: its value, its gradient along the best path, and the path itself."""

import torch

from ._autograd import hard_dtw
from ._autograd.cost_matrix import matrix_of
from ._inputs import arguments, repeats
from ._inputs import cost as costs
from ._inputs.arguments import wants_gradient
from ._inputs.problem import of_series
from ._internals import under_transform
from ._kernels import ops
from .signatures import Bandwidth, Cost, DTWPath, Lengths, Numbers, Series


def dtw(
    x: Series,
    y: Series,
    *,
    cost: Cost = "sqeuclidean",
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    warp_penalty: Numbers = 0.0,
    length_norm: bool = False,
    open_ends: bool = False,
) -> torch.Tensor:
    """Dynamic time warping between the series of x and y, pair by pair, differentiable along the best path.

    The smallest summed cost of the vectors that a monotone alignment of two series matches: Sakoe & Chiba, "Dynamic
    programming algorithm optimization for spoken word recognition", IEEE Trans. ASSP, 1978. No root is taken: for
    "sqeuclidean", the value is the square of what some packages call the DTW distance.

    Args:
        x: (B, N, D), or (N, D) for one pair, in any form that `soft_dtw` takes.
        y: (B, M, D), or (M, D) for one pair.
        cost: a name or a callable, as in `soft_dtw`.
        x_lengths: (B,) integers from 1 to N, as in `soft_dtw`.
        y_lengths: (B,) integers from 1 to M, as in `soft_dtw`.
        bandwidth: Sakoe-Chiba radius, as in `soft_dtw`.
        warp_penalty: cost of a step that advances in one series only, as in `soft_dtw`.
        length_norm: divide the value by N + M, the pair's own lengths.
        open_ends: match x with the contiguous part of y that gives the smallest value. Not together with a bandwidth.

    Returns:
        (B,) values, 0-d for a pair without a batch; float64 for float64 inputs and float32 otherwise. If several paths
        are best, the gradient is along the one that `dtw_path` returns. Derivatives of any order are those of the cost
        along that path, as if it were fixed.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        RuntimeError: CUDA tensors, and this build has no CUDA part.

    Example:
        >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[0.0], [2.0]])
        >>> dtw(x, y).item()
        1.0
    """
    others = x_lengths, y_lengths, length_norm, open_ends
    call = repeats.signature("dtw", x, y, 1.0, warp_penalty, bandwidth, cost, "auto", *others)
    known = repeats.recall(call)
    if known is not None:
        return hard_dtw.value_and_spans_of_series(x, y, *known)[0]
    problem = of_series(x, y, 1.0, cost, x_lengths, y_lengths, bandwidth, warp_penalty, length_norm, open_ends)
    if call is None:
        return problem.answer(values_of(problem))
    reduced, inputs = _reduced_and_inputs(problem)
    if reduced.x is x and reduced.y is y:
        repeats.remember(call, inputs)
    return problem.answer(reduced.value(hard_dtw.value_and_spans_of_series(reduced.x, reduced.y, *inputs)[0]))


def dtw_from_cost(
    cost_matrix: torch.Tensor,
    *,
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    warp_penalty: Numbers = 0.0,
    length_norm: bool = False,
    open_ends: bool = False,
) -> torch.Tensor:
    """Dynamic time warping of cost matrices, differentiable with respect to them; the gradient is 1 on the best path
    and 0 elsewhere.

    Sakoe & Chiba, "Dynamic programming algorithm optimization for spoken word recognition", IEEE Trans. ASSP, 1978.

    Args:
        cost_matrix: (B, N, M), or (N, M) for one pair: the cost of matching row i with column j.
        x_lengths, y_lengths, bandwidth, warp_penalty, length_norm, open_ends: as in `dtw`.

    Returns:
        (B,) values, 0-d for a pair without a batch; float64 for a float64 matrix and float32 otherwise.

    Raises:
        As `dtw`.

    Example:
        >>> costs = torch.tensor([[0.0, 4.0], [1.0, 1.0], [4.0, 0.0]])
        >>> dtw_from_cost(costs).item()
        1.0
    """
    inputs = cost_matrix, x_lengths, y_lengths, bandwidth, warp_penalty, length_norm, open_ends
    return _of_matrix(*inputs, with_path=False).value


def dtw_path(
    x: Series,
    y: Series,
    *,
    cost: Cost = "sqeuclidean",
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    warp_penalty: Numbers = 0.0,
    length_norm: bool = False,
    open_ends: bool = False,
) -> DTWPath:
    """`dtw`, and the best path of every pair: which row of x is matched with which row of y.

    Sakoe & Chiba, "Dynamic programming algorithm optimization for spoken word recognition", IEEE Trans. ASSP, 1978. If
    several steps into a cell are equally good after rounding, the path takes the diagonal one, else the one that
    advances in x, else the one that advances in y. If several ends are equally good (with open_ends), it takes the
    first.

    Args:
        x, y, cost, x_lengths, y_lengths, bandwidth, warp_penalty, length_norm, open_ends: as in `dtw`.

    Returns:
        (value, paths), a `DTWPath`: the values (B,) of `dtw`, differentiable, and a list of B int64 tensors (K, 2) on
        the device of x: pairs (i, j) counted from 0, first to last. It is empty, (0, 2), if the value is not finite.
        For a pair without a batch a 0-d value and one tensor.

    Raises:
        As `dtw`.

    Example:
        >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[0.0], [2.0]])
        >>> dtw_path(x, y)[1].tolist()
        [[0, 0], [1, 0], [2, 1]]
    """
    problem = of_series(x, y, 1.0, cost, x_lengths, y_lengths, bandwidth, warp_penalty, length_norm, open_ends)
    value, spans = _values_and_spans(problem, with_path=True)
    paths = paths_from_spans(spans, "dtw_path")
    return DTWPath(problem.answer(value), paths if problem.batched else paths[0])


def dtw_path_from_cost(
    cost_matrix: torch.Tensor,
    *,
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    warp_penalty: Numbers = 0.0,
    length_norm: bool = False,
    open_ends: bool = False,
) -> DTWPath:
    """`dtw_from_cost`, and the best path of every pair: which row is matched with which column.

    Sakoe & Chiba, "Dynamic programming algorithm optimization for spoken word recognition", IEEE Trans. ASSP, 1978. If
    several paths are equally good, it takes the same one as `dtw_path`.

    Args:
        cost_matrix, x_lengths, y_lengths, bandwidth, warp_penalty, length_norm, open_ends: as in `dtw_from_cost`.

    Returns:
        (value, paths), a `DTWPath`, as `dtw_path`.

    Raises:
        As `dtw`.

    Example:
        >>> costs = torch.tensor([[0.0, 4.0], [1.0, 1.0], [4.0, 0.0]])
        >>> dtw_path_from_cost(costs).paths.tolist()
        [[0, 0], [1, 0], [2, 1]]
    """
    inputs = cost_matrix, x_lengths, y_lengths, bandwidth, warp_penalty, length_norm, open_ends
    return _of_matrix(*inputs, with_path=True)


def _of_matrix(matrix, x_lengths, y_lengths, bandwidth, warp_penalty, length_norm, open_ends, with_path):
    """The DTWPath of cost matrices as a user gives them; without paths where they are not wanted."""
    matrix, batched = arguments.cost_matrix(matrix)
    arguments.check_ends(open_ends, bandwidth)
    arguments.flag("length_norm", length_norm)
    ops.require_build_for(matrix)
    sizes = matrix.shape[1:]
    options = arguments.options(matrix, *sizes, batched, 1.0, warp_penalty, bandwidth, x_lengths, y_lengths)
    value, spans = of_cost(matrix, options, open_ends, with_path)
    value = arguments.per_length(value, options, *sizes) if length_norm else value
    paths = paths_from_spans(spans, "dtw_path_from_cost") if with_path else []
    return DTWPath(value, paths) if batched else DTWPath(value.squeeze(0), paths[0] if paths else [])


def values_of(problem):
    """Hard DTW (B,) of each pair of a Problem."""
    return _values_and_spans(problem)[0]


def _values_and_spans(problem, with_path=False):
    """The values (B,) of a Problem, and the spans of the paths, if they are wanted or a gradient is."""
    if callable(problem.cost):
        ops.require_build_for(problem.x)
        return of_cost(matrix_of(problem), problem.options, problem.open_ends, with_path)
    reduced, inputs = _reduced_and_inputs(problem, with_path)
    value, spans = hard_dtw.value_and_spans_of_series(reduced.x, reduced.y, *inputs)
    return reduced.value(value), spans


def _reduced_and_inputs(problem, with_path=False):
    """The problem in a kernel's own cost, and what the op takes after its series."""
    x, y, cost, options = problem[:4]
    ops.require_build_for(x)
    reduced = costs.reduce_to_kernel_cost(cost, x, y, options)
    save = with_path or wants_gradient(x, y, options.warp_penalties)
    return reduced, (*_inputs(reduced.options), problem.open_ends, reduced.name, save)


def of_cost(matrix, options, open_ends, with_path=False):
    """The same of cost matrices in the dtype of the computation."""
    save = with_path or wants_gradient(matrix, options.warp_penalties)
    return hard_dtw.value_and_spans_of_cost(matrix, *_inputs(options), open_ends, save)


def _inputs(options):
    """What the ops of hard DTW take of the Options: all but gamma."""
    return (
        options.x_lengths,
        options.y_lengths,
        options.bandwidths,
        options.warp_penalties,
        options.bandwidth,
        options.warp_penalty,
    )


def paths_from_spans(spans, caller):
    """List of (K, 2) tensors of cells from the (B, N, 2) first and last columns that each row of a path meets."""
    batch, n, _ = spans.shape
    first = spans[..., 0].flatten().long()
    counts = (spans[..., 1] - spans[..., 0] + 1).flatten().long()
    try:
        total = int(counts.sum())
    except RuntimeError as error:
        if not (under_transform() or spans.is_meta):
            raise
        what = "vmap cannot map paths, which differ in length" if under_transform() else "meta tensors have no paths"
        raise RuntimeError(f"{caller}: {what}; `{caller.replace('_path', '')}` gives the values alone") from error
    cells = torch.arange(total, device=spans.device)
    row = torch.arange(n, device=spans.device).repeat(batch).repeat_interleave(counts)
    column = cells + (first - (counts.cumsum(0) - counts)).repeat_interleave(counts)
    return list(torch.stack([row, column], 1).split(counts.view(batch, n).sum(1).tolist()))
