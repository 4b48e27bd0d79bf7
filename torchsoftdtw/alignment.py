"""The soft alignment of series, as a tensor."""

from ._autograd import transforms
from ._autograd.cost_matrix import matrix_of
from ._inputs import subsequence
from ._inputs.arguments import wants_gradient
from ._inputs.problem import of_series
from .functional import plan_for_matrix
from .signatures import Bandwidth, Cost, Lengths, Numbers, Series, SoftAlignment


def soft_dtw_alignment(
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
) -> SoftAlignment:
    """Soft-DTW and its soft alignment between the series of x and y, pair by pair, both differentiable.

    The alignment is E = d value / d costs: how likely it is that a path drawn with probability proportional to
    exp(-cost / gamma) matches row i with column j. Cuturi & Blondel, "Soft-DTW: a differentiable loss function for
    time-series", ICML 2017; its derivative: Mensch & Blondel, "Differentiable dynamic programming for structured prediction
    and attention", ICML 2018. For a ready-made cost matrix, E is the gradient of `soft_dtw_from_cost`.

    Args:
        x: (B, N, D), or (N, D) for one pair, as in `soft_dtw`.
        y: (B, M, D), or (M, D) for one pair.
        gamma: smoothing, in the unit of the cost; a positive number, or a tensor or sequence of them, as in `soft_dtw`,
            but without a gradient. The smaller it is, the fewer cells share a row.
        cost: a name or a callable, as in `soft_dtw`.
        x_lengths: (B,) integers from 1 to N, as in `soft_dtw`. The alignment is 0 beyond them.
        y_lengths: (B,) integers from 1 to M, likewise.
        bandwidth: Sakoe-Chiba radius, an integer or one per pair, as in `soft_dtw`. Cells outside are 0 in the alignment.
        warp_penalty: cost of a step that advances in one series only, as in `soft_dtw`.
        length_norm: divide the value by N + M, the pair's own lengths. The alignment, which holds probabilities, is not
            divided.
        open_ends: match x with any contiguous part of y, as in `soft_dtw`. Not together with a bandwidth.
        kernel: "auto", or a name that `select_kernel` can return.

    Returns:
        (value, alignment), a `SoftAlignment`: (B,) and (B, N, M), or 0-d and (N, M) for one pair; float64 for float64
        inputs and float32 otherwise. Entries are in [0, 1], every row and every column sums to at least 1, and the
        first and the last cell of a pair are 1; with open ends this holds for the rows only. Alignments can be
        differentiated twice, values three times.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        RuntimeError: CUDA tensors, and this build has no CUDA part.

    Example:
        >>> import torch
        >>> value, alignment = soft_dtw_alignment(torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [1.0]]), gamma=0.1)
        >>> [[round(entry, 3) for entry in row] for row in alignment.tolist()]
        [[1.0, 0.0], [0.0, 1.0]]
    """
    problem = of_series(x, y, gamma, cost, x_lengths, y_lengths, bandwidth, warp_penalty, length_norm, open_ends)
    _, value, alignment = alignments_of(problem, kernel)
    return SoftAlignment(problem.answer(value), problem._replace(length_norm=False).answer(alignment))


def alignments_of(problem, kernel):
    """(cost matrix (B, N, M), value (B,), alignment (B, N, M)) of a Problem."""
    options = problem.options
    refuse_gradients(options)
    matrix = matrix_of(problem)
    costs, options = subsequence.extend(matrix, options) if problem.open_ends else (matrix, options)
    plan = plan_for_matrix(kernel, costs, options, gradient=True)
    value, alignment = transforms.alignment_of_cost(costs, *options, *plan)
    if problem.open_ends:
        value, alignment = value.to(matrix.dtype), subsequence.inside(alignment, options).to(matrix.dtype)
    return matrix, value, alignment


def refuse_gradients(options):
    """Raise where gamma or the warp penalty is to get a gradient, which alignments do not have for them."""
    for name, tensor in (("gamma", options.gammas), ("warp_penalty", options.warp_penalties)):
        if wants_gradient(tensor):
            raise ValueError(
                f"{name}: expected a tensor that requires no gradient, got one that does; the alignment, and so the "
                "divergences 'sharp' and 'mean', have derivatives with respect to the series only"
            )
