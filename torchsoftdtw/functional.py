"""Soft-DTW as functions of tensors."""

import torch

from . import arguments, ops, selection, transforms
from . import cost as costs


def soft_dtw(
    x,
    y,
    gamma=1.0,
    *,
    cost="sqeuclidean",
    x_lengths=None,
    y_lengths=None,
    bandwidth=None,
    warp_penalty=0.0,
    kernel="auto",
):
    """Soft-DTW between the series of x and y, pair by pair, differentiable with respect to both.

    The smoothed minimum, over all monotone alignments of two series, of the summed cost of the vectors they match:
    Cuturi & Blondel, "Soft-DTW: a differentiable loss function for time-series", ICML 2017.

    Args:
        x: (B, N, D), or (N, D) for one pair. float64, float32, float16 or bfloat16, any strides, on the CPU or CUDA.
        y: (B, M, D), or (M, D) for one pair.
        gamma: smoothing, in the unit of the cost; a positive number. The smaller, the closer to DTW.
        cost: "sqeuclidean", "euclidean", "cityblock", "cosine" (as SciPy defines them, except that the cosine cost of a
            zero vector is 1), or a callable (x, y) -> (B, N, M) built of torch ops, which always gets a batch.
        x_lengths: (B,) integers from 1 to N: pair b ends after x_lengths[b] rows. What lies beyond has no influence, may be
            NaN, and gets a gradient of exactly 0. Values that already lie on a CUDA device are not checked, since that
            would mean waiting for it: a pair with one out of range gets NaN.
        y_lengths: (B,) integers from 1 to M, likewise.
        bandwidth: Sakoe-Chiba radius, an integer of at least 0 or one per pair: the cells with
            min(0, M-N) - bandwidth <= j - i <= max(0, M-N) + bandwidth (a pair's own N and M) take part. None: all cells.
        warp_penalty: what every step that advances in one series only costs in addition; a number of at least 0.
        kernel: "auto", or a name that `select_kernel` can return.

    Returns:
        (B,) values, 0-d for a pair without a batch; float64 for float64 inputs and float32 otherwise. Gradients come back
        in the dtype of x and y, and can be differentiated again, up to the third order.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        RuntimeError: CUDA tensors, and this build has no CUDA part.

    Example:
        >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[0.0], [2.0]])
        >>> round(soft_dtw(x, y, gamma=0.1).item(), 3)
        0.931
    """
    costs.check(cost)
    x, y, batched = arguments.series(x, y)
    n, m = x.shape[1], y.shape[1]
    options = arguments.options(x, n, m, batched, gamma, warp_penalty, bandwidth, x_lengths, y_lengths)
    plan = plan_for(kernel, x, n, m, x.shape[2])
    if callable(cost):
        matrix = costs.matrix_from_callable(cost, x, y, options.x_lengths, options.y_lengths)
        value = _run_from_cost(arguments.cost_matrix(matrix)[0], options, plan)
    else:
        name, x, y = costs.reduce_to_kernel_cost(cost, x, y, options.x_lengths, options.y_lengths)
        value = transforms.value_of_series(x, y, *options, name, *plan, _wants_gradient(x, y))
    return value if batched else value.squeeze(0)


def soft_dtw_from_cost(
    cost_matrix,
    gamma=1.0,
    *,
    x_lengths=None,
    y_lengths=None,
    bandwidth=None,
    warp_penalty=0.0,
    kernel="auto",
):
    """Soft-DTW of ready-made cost matrices, differentiable with respect to them; the gradient is the soft alignment.

    Cuturi & Blondel, "Soft-DTW: a differentiable loss function for time-series", ICML 2017.

    Args:
        cost_matrix: (B, N, M), or (N, M) for one pair: the cost of matching row i with column j.
        gamma: smoothing, in the unit of the cost; a positive number.
        x_lengths: (B,) integers from 1 to N, as in `soft_dtw`.
        y_lengths: (B,) integers from 1 to M, as in `soft_dtw`.
        bandwidth: Sakoe-Chiba radius, as in `soft_dtw`.
        warp_penalty: cost of a step that advances in one series only, as in `soft_dtw`.
        kernel: "auto", or a name that `select_kernel` can return.

    Returns:
        (B,) values, 0-d for a pair without a batch; float64 for a float64 matrix and float32 otherwise.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        RuntimeError: CUDA tensors, and this build has no CUDA part.

    Example:
        >>> costs = torch.tensor([[0.0, 4.0], [1.0, 1.0], [4.0, 0.0]])
        >>> round(soft_dtw_from_cost(costs, gamma=0.1).item(), 3)
        0.931
    """
    matrix, batched = arguments.cost_matrix(cost_matrix)
    n, m = matrix.shape[1:]
    options = arguments.options(matrix, n, m, batched, gamma, warp_penalty, bandwidth, x_lengths, y_lengths)
    value = _run_from_cost(matrix, options, plan_for(kernel, matrix, n, m, 1))
    return value if batched else value.squeeze(0)


def plan_for(kernel, like, n, m, dim):
    """The Plan for the tensor `like`, whose first dimension is the batch."""
    if kernel == "auto" and like.device.type == "cuda" and torch.compiler.is_exporting():
        # A choice by size would bind the exported program to sizes like those of its example.
        plan = selection.Plan("tiled", selection.FLOAT64_ROWS)
    else:
        plan = selection.plan(kernel, n, m, like.shape[0], dim, like.dtype, like.device)
    if like.device.type == "cuda" and not ops.HAS_CUDA:
        raise RuntimeError(
            "torchsoftdtw was built without its CUDA part (nvcc was not found, or PyTorch has no CUDA), and x is on "
            f"{like.device}; reinstall it where nvcc is on the PATH, or move the tensors to the CPU"
        )
    return plan


def _run_from_cost(matrix, options, plan):
    return transforms.value_of_cost(matrix, *options, *plan, _wants_gradient(matrix))


def _wants_gradient(*tensors):
    """Whether a forward pass should keep what its backward pass needs."""
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
