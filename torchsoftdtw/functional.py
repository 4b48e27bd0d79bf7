"""Soft-DTW as functions of tensors."""

import torch

from . import hard
from ._autograd import transforms
from ._autograd.cost_matrix import matrix_of
from ._inputs import arguments, per_pair, repeats, subsequence
from ._inputs import cost as costs
from ._inputs.problem import of_series
from ._kernels import ops, selection
from ._kernels.inputs import CostCall, SeriesCall
from .signatures import Bandwidth, Cost, Lengths, Numbers, Series


def soft_dtw(
    x: Series,
    y: Series,
    gamma: Numbers = 0.1,
    *,
    cost: Cost = "sqeuclidean",
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    warp_penalty: Numbers = 0.0,
    length_norm: bool = False,
    open_ends: bool = False,
    kernel: str = "auto",
) -> torch.Tensor:
    """Soft-DTW between the series of x and y, pair by pair, differentiable with respect to both.

    The smoothed minimum, over all monotone alignments of two series, of the summed cost of the vectors they match:
    Cuturi & Blondel, "Soft-DTW: a differentiable loss function for time-series", ICML 2017.

    Args:
        x: (B, N, D), or (N, D) for one pair. float64, float32, float16 or bfloat16, any strides, on the CPU or CUDA. Or
            a batch of series of different lengths: a nested tensor or a PackedSequence, which needs no x_lengths.
        y: (B, M, D), or (M, D) for one pair; likewise.
        gamma: smoothing, in the unit of the cost: a positive number, or a tensor or sequence of them, one for all (()
            or (1,)) or one per pair (B,). 0.1 suits series of unit variance and one dimension. A smaller gamma is
            closer to DTW; the number 0 means hard DTW, `dtw`.
        cost: "sqeuclidean", "euclidean", "cityblock", "cosine" (as SciPy defines them, except that the cosine cost of a
            zero vector is 1), "huber" (the sum over coordinates of u^2 / 2 up to a difference u of 1, abs(u) - 1/2 beyond),
            or a callable (x, y) -> (B, N, M) built of torch ops, which always gets a batch.
        x_lengths: (B,) integers from 1 to N: pair b ends after x_lengths[b] rows. Padding has no influence, may be NaN,
            and gets a gradient of exactly 0. Lengths on a CUDA device are not checked, since the host would have to
            wait: a pair with a length out of range gets NaN.
        y_lengths: (B,) integers from 1 to M, likewise.
        bandwidth: Sakoe-Chiba radius, an integer of at least 0, also as a 0-d tensor, or one per pair: the cells with
            min(0, M-N) - bandwidth <= j - i <= max(0, M-N) + bandwidth (a pair's own N and M) take part. None: all cells.
        warp_penalty: an extra cost of every step that advances in one series only; a number of at least 0, or a tensor
            or sequence of them, as for gamma.
        length_norm: divide the value by N + M, the pair's own lengths.
        open_ends: match x with any contiguous part of y: the softmin, over all parts, of the value for x and that part.
            Computed from a cost matrix of (N + 2) (M + 2) numbers per pair, in float64 with a warp_penalty. Not
            together with a bandwidth.
        kernel: "auto", or a name that `select_kernel` can return.

    Returns:
        (B,) values, 0-d for a pair without a batch; float64 for float64 inputs and float32 otherwise. Gradients have
        the dtype of x and y, and can be differentiated again, up to the third order. gamma and warp_penalty have
        gradients of the first order if they are tensors that require them. (The gradient of warp_penalty, and that of
        gamma with a penalty or "huber", take a cost matrix. If a number on a CUDA device is out of range, its pair gets
        NaN.)

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        RuntimeError: CUDA tensors, and this build has no CUDA part.

    Example:
        >>> import torch
        >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[0.0], [2.0]])
        >>> round(soft_dtw(x, y, gamma=0.1).item(), 3)
        0.931
    """
    others = x_lengths, y_lengths, length_norm, open_ends
    call = repeats.signature("soft_dtw", x, y, gamma, warp_penalty, bandwidth, cost, kernel, *others)
    known = repeats.recall(call)
    if known is not None:
        return transforms.value_of_series(x, y, known)
    if per_pair.is_zero(gamma):
        selection.check_name(kernel)
        return hard.dtw(
            x,
            y,
            cost=cost,
            x_lengths=x_lengths,
            y_lengths=y_lengths,
            bandwidth=bandwidth,
            warp_penalty=warp_penalty,
            length_norm=length_norm,
            open_ends=open_ends,
        )
    problem = of_series(x, y, gamma, cost, x_lengths, y_lengths, bandwidth, warp_penalty, length_norm, open_ends)
    if call is None:
        return problem.answer(values_of(problem, kernel))
    reduced, inputs = _reduced_and_inputs(problem, kernel)
    if reduced.x is x and reduced.y is y:
        repeats.remember(call, inputs)
    return problem.answer(reduced.value(transforms.value_of_series(reduced.x, reduced.y, inputs)))


def soft_dtw_from_cost(
    cost_matrix: torch.Tensor,
    gamma: Numbers = 0.1,
    *,
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    warp_penalty: Numbers = 0.0,
    length_norm: bool = False,
    open_ends: bool = False,
    kernel: str = "auto",
) -> torch.Tensor:
    """Soft-DTW of cost matrices, differentiable with respect to them; the gradient is the soft alignment.

    Cuturi & Blondel, "Soft-DTW: a differentiable loss function for time-series", ICML 2017.

    Args:
        cost_matrix: (B, N, M), or (N, M) for one pair: the cost of matching row i with column j.
        gamma: smoothing, in the unit of the cost, as in `soft_dtw`; 0 for hard DTW, `dtw_from_cost`.
        x_lengths: (B,) integers from 1 to N, as in `soft_dtw`.
        y_lengths: (B,) integers from 1 to M, as in `soft_dtw`.
        bandwidth: Sakoe-Chiba radius, as in `soft_dtw`.
        warp_penalty: cost of a step that advances in one series only, as in `soft_dtw`.
        length_norm: divide the value by N + M, as in `soft_dtw`.
        open_ends: match all rows with any contiguous part of the columns, as in `soft_dtw`.
        kernel: "auto", or a name that `select_kernel` can return.

    Returns:
        (B,) values, 0-d for a pair without a batch; float64 for a float64 matrix and float32 otherwise.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        RuntimeError: CUDA tensors, and this build has no CUDA part.

    Example:
        >>> import torch
        >>> costs = torch.tensor([[0.0, 4.0], [1.0, 1.0], [4.0, 0.0]])
        >>> round(soft_dtw_from_cost(costs, gamma=0.1).item(), 3)
        0.931
    """
    if per_pair.is_zero(gamma):
        selection.check_name(kernel)
        return hard.dtw_from_cost(
            cost_matrix,
            x_lengths=x_lengths,
            y_lengths=y_lengths,
            bandwidth=bandwidth,
            warp_penalty=warp_penalty,
            length_norm=length_norm,
            open_ends=open_ends,
        )
    matrix, batched = arguments.cost_matrix(cost_matrix)
    arguments.check_ends(open_ends, bandwidth)
    arguments.flag("length_norm", length_norm)
    n, m = matrix.shape[1:]
    options = arguments.options(matrix, n, m, batched, gamma, warp_penalty, bandwidth, x_lengths, y_lengths)
    value = _run_from_cost(matrix, options, kernel, open_ends)
    value = arguments.per_length(value, options, n, m) if length_norm else value
    return value if batched else value.squeeze(0)


def values_of(problem, kernel):
    """Soft-DTW (B,) of each pair of a Problem."""
    if callable(problem.cost) or problem.open_ends or _needs_matrix(problem):
        return _run_from_cost(matrix_of(problem), problem.options, kernel, problem.open_ends)
    reduced, inputs = _reduced_and_inputs(problem, kernel)
    return reduced.value(transforms.value_of_series(reduced.x, reduced.y, inputs))


def _reduced_and_inputs(problem, kernel):
    """The problem in a kernel's own cost, and what the op takes after its series."""
    save = arguments.wants_gradient(problem.x, problem.y, problem.options.gammas)
    reduced = costs.reduce_to_kernel_cost(problem.cost, problem.x, problem.y, problem.options)
    sizes = reduced.x.shape[0], reduced.x.shape[1], reduced.y.shape[1], reduced.x.shape[2]
    plan = plan_for(kernel, reduced.x, sizes, reduced.name, reduced.options, save)
    return reduced, SeriesCall(*reduced.options, reduced.name, *plan, save)


def plan_for_matrix(kernel, matrix, options, gradient):
    return plan_for(kernel, matrix, (*matrix.shape, 1), selection.MATRIX, options, gradient)


def plan_for(kernel, like, sizes, cost, options, gradient):
    """The Plan for the tensor `like` and its companions; sizes: batch, n, m and dim."""
    plan = selection.plan(kernel, like)
    ops.require_build_for(like)
    if "/" in plan.kernel:  # a specialisation, which may not take it
        selection.require(plan.kernel, sizes, like, gradient, cost, options)
    return plan


def _run_from_cost(matrix, options, kernel, open_ends):
    dtype = matrix.dtype
    if open_ends:
        matrix, options = subsequence.extend(matrix, options)
    save = arguments.wants_gradient(matrix, options.gammas, options.warp_penalties)
    plan = plan_for_matrix(kernel, matrix, options, save)
    return transforms.value_of_cost(matrix, CostCall(*options, *plan, save)).to(dtype)


def _needs_matrix(problem):
    """Whether a gradient is asked for that only the kernels of ready-made costs give."""
    options = problem.options
    has_penalty = options.warp_penalties is not None or options.warp_penalty != 0
    if not has_penalty and costs.is_homogeneous(problem.cost):
        return False
    return arguments.wants_gradient(options.warp_penalties, options.gammas)
