"""The soft alignment of series, as a tensor."""

from ._autograd import transforms
from ._autograd.cost_matrix import matrix_of
from ._inputs.arguments import wants_gradient
from ._inputs.problem import of_series
from .functional import plan_for_matrix


def soft_dtw_alignment(
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
    """Soft-DTW and its soft alignment between the series of x and y, pair by pair, both differentiable.

    The alignment is E = d value / d costs: how likely it is that a path drawn with probability proportional to
    exp(-cost / gamma) matches row i with column j. Cuturi & Blondel, "Soft-DTW: a differentiable loss function for
    time-series", ICML 2017; its derivative: Mensch & Blondel, "Differentiable dynamic programming for structured prediction
    and attention", ICML 2018. For a ready-made cost matrix, E is the gradient of `soft_dtw_from_cost`.

    Args:
        x: (B, N, D), or (N, D) for one pair, as in `soft_dtw`.
        y: (B, M, D), or (M, D) for one pair.
        gamma: smoothing, in the unit of the cost; a positive number, or a tensor or sequence of them, as in `soft_dtw`, but
            without a gradient. The smaller, the fewer cells share a row.
        cost: a name or a callable, as in `soft_dtw`.
        x_lengths: (B,) integers from 1 to N, as in `soft_dtw`. What lies beyond is 0 in the alignment.
        y_lengths: (B,) integers from 1 to M, likewise.
        bandwidth: Sakoe-Chiba radius, an integer or one per pair, as in `soft_dtw`. Cells outside are 0 in the alignment.
        warp_penalty: cost of a step that advances in one series only, as in `soft_dtw`.
        kernel: "auto", or a name that `select_kernel` can return.

    Returns:
        value, alignment: (B,) and (B, N, M), or 0-d and (N, M) for one pair; float64 for float64 inputs and float32
        otherwise. Entries lie in [0, 1], the first and the last cell of a pair hold 1, and every row and every column sums
        to 1 at least. Both can be differentiated twice (the value three times).

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        RuntimeError: CUDA tensors, and this build has no CUDA part.

    Example:
        >>> import torch
        >>> value, alignment = soft_dtw_alignment(torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [1.0]]), gamma=0.1)
        >>> [[round(entry, 3) for entry in row] for row in alignment.tolist()]
        [[1.0, 0.0], [0.0, 1.0]]
    """
    problem = of_series(x, y, gamma, cost, x_lengths, y_lengths, bandwidth, warp_penalty)
    _, value, alignment = alignments_of(problem, kernel)
    return problem.answer(value), problem.answer(alignment)


def alignments_of(problem, kernel):
    """(cost matrix (B, N, M), value (B,), alignment (B, N, M)) of a Problem."""
    refuse_gradients(problem.options)
    matrix = matrix_of(problem)
    plan = plan_for_matrix(kernel, matrix, problem.options, gradient=True)
    return matrix, *transforms.alignment_of_cost(matrix, *problem.options, *plan)


def refuse_gradients(options):
    """Raise where gamma or the warp penalty is to get a gradient, which alignments do not have for them."""
    for name, tensor in (("gamma", options.gammas), ("warp_penalty", options.warp_penalties)):
        if wants_gradient(tensor):
            raise ValueError(
                f"{name}: expected a tensor that requires no gradient, got one that does; the alignment, and with it the "
                "divergences 'sharp' and 'mean', are differentiated with respect to the series alone"
            )
