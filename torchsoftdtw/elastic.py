"""Elastic measures whose steps have costs of their own: edit distances of series. Hard, or soft with a gamma."""

import torch

from ._autograd.elastic import OF_COSTS
from ._inputs import arguments
from ._kernels import ops
from ._measures import calls, pairs, paths
from .signatures import Bandwidth, Lengths, Numbers, Series


def twed(
    x: Series,
    y: Series,
    *,
    nu: Numbers = 0.001,
    lmbda: Numbers = 1.0,
    degree: float = 2,
    x_times: torch.Tensor | None = None,
    y_times: torch.Tensor | None = None,
    gamma: Numbers = 0.0,
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    kernel: str = "auto",
) -> torch.Tensor:
    """Time warp edit distance between the series of x and y, pair by pair, differentiable.

    What it costs to edit one series into the other: a match costs the distances of two vectors and of the two before them,
    and of their times; leaving out a vector costs its distance in value and time from the one before, and a penalty.
    Marteau, "Time warp edit distance with stiffness adjustment for time series matching", IEEE TPAMI, 2009. A metric for
    nu > 0, lmbda >= 0 and a positive degree.

    Args:
        x: (B, N, D), or (N, D) for one pair, in any form that `soft_dtw` takes.
        y: (B, M, D), or (M, D) for one pair.
        nu: stiffness, the cost of a unit of time, at least 0: a number, or a tensor or sequence of one for all or one per
            pair.
        lmbda: penalty for leaving out a vector, at least 0; likewise.
        degree: of the norm of vectors: 1, 2, or of series of one dimension any positive number. -1 and -2 take no root
            (Marteau's original), which is no metric.
        x_times: (N,) or (B, N) times that do not decrease, integers or floats; None: 1 to N. Only differences count, and
            they are taken before the cast to the dtype of x. On CUDA a pair whose times decrease gets NaN.
        y_times: (M,) or (B, M), likewise; both or neither.
        gamma: 0 for the distance itself; smoothing in its unit as in `soft_dtw`, for the soft minimum over all edits.
        x_lengths, y_lengths, bandwidth, kernel: as in `soft_dtw`.

    Returns:
        (B,) values, 0-d for a pair without a batch; float64 for float64 inputs and float32 otherwise. Gradients of the
        first order to x, y, and to times, nu, lmbda and gamma that are tensors. A NaN spoils its own pair.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        RuntimeError: CUDA tensors, and this build has no CUDA part; or a second derivative is asked for.

    Example:
        >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[0.0], [2.0]])
        >>> round(twed(x, y, nu=0.5, lmbda=1.0).item(), 3)
        3.5
    """
    own = pairs.of_series(x, y, gamma, x_lengths, y_lengths, bandwidth, kernel)
    return own.answer(calls.twed(own, nu, lmbda, degree, x_times, y_times).value())


def erp(
    x: Series,
    y: Series,
    *,
    g: Numbers = 0.0,
    gamma: Numbers = 0.0,
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    kernel: str = "auto",
) -> torch.Tensor:
    """Edit distance with real penalty: what is left out costs its distance from a constant.

    Chen & Ng, "On the marriage of Lp-norms and edit distance", VLDB 2004; Euclidean distances. A metric.

    Args:
        x, y: as in `twed`.
        g: the constant: a number, or a tensor of shape (), (D,) or (B, D).
        gamma, x_lengths, y_lengths, bandwidth, kernel: as in `twed`.

    Returns:
        (B,) values as those of `twed`. Gradients to x, y, and to g and gamma that are tensors.

    Raises:
        As `twed`.

    Example:
        >>> x, y = torch.tensor([[0.0], [0.0], [5.0], [5.0]]), torch.tensor([[5.0], [5.0]])
        >>> erp(x, y).item()
        0.0
    """
    own = pairs.of_series(x, y, gamma, x_lengths, y_lengths, bandwidth, kernel)
    return own.answer(calls.erp(own, g).value())


def msm(
    x: Series,
    y: Series,
    *,
    c: Numbers = 1.0,
    gamma: Numbers = 0.0,
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    kernel: str = "auto",
) -> torch.Tensor:
    """Move-split-merge: values are moved, or split and merged at a price.

    Stefan, Athitsos & Das, "The move-split-merge metric for time series", IEEE TKDE, 2013. Of several dimensions the sum
    over them, each on its own. A metric. With a gamma it is the soft minimum over the edits of these costs.

    Args:
        x, y: as in `twed`.
        c: the price of a split or merge, at least 0: a number, or a tensor or sequence of one for all or one per pair.
        gamma, x_lengths, y_lengths, bandwidth, kernel: as in `twed`.

    Returns:
        (B,) values as those of `twed`. Gradients to x, y, and to c and gamma that are tensors.

    Raises:
        As `twed`.

    Example:
        >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[0.0], [2.0]])
        >>> msm(x, y, c=0.5).item()
        1.5
    """
    own = pairs.of_series(x, y, gamma, x_lengths, y_lengths, bandwidth, kernel)
    return own.answer(calls.msm(own, c).value())


def edr(
    x: Series,
    y: Series,
    *,
    epsilon: Numbers | None = None,
    normalize: bool = True,
    gamma: Numbers = 0.0,
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    kernel: str = "auto",
) -> torch.Tensor:
    """Edit distance on real sequences: how many edits, where vectors nearer than epsilon are equal.

    Chen, Ozsu & Oria, "Robust and fast similarity search for moving object trajectories", SIGMOD 2005.

    Args:
        x, y: as in `twed`.
        epsilon: Euclidean distance, at least 0, below which vectors are equal: a number, or a tensor or sequence of one for
            all or one per pair. None: a quarter of the larger of a pair's two standard deviations.
        normalize: divide by max(N, M), the pair's own lengths.
        gamma, x_lengths, y_lengths, bandwidth, kernel: as in `twed`.

    Returns:
        (B,) values as those of `twed`. It is constant but for jumps, so its gradient to x and y is 0, also with a gamma;
        a gamma that is a tensor has one.

    Raises:
        As `twed`.

    Example:
        >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[0.0], [2.0]])
        >>> edr(x, y, epsilon=0.5, normalize=False).item()
        1.0
    """
    arguments.flag("normalize", normalize)
    own = pairs.of_series(x, y, gamma, x_lengths, y_lengths, bandwidth, kernel)
    return own.answer(calls.edr(own, epsilon, normalize).value())


def lcss(
    x: Series,
    y: Series,
    *,
    epsilon: Numbers = 1.0,
    gamma: Numbers = 0.0,
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    return_subsequence: bool = False,
    kernel: str = "auto",
) -> torch.Tensor | tuple[torch.Tensor, list[torch.Tensor] | torch.Tensor]:
    """Distance by the longest common subsequence: 1 - L / min(N, M), where vectors within epsilon are equal.

    Vlachos, Kollios & Gunopulos, "Discovering similar multidimensional trajectories", ICDE 2002. With epsilon = 0 and
    numbers for symbols, L is the length of the classic longest common subsequence.

    Args:
        x, y: as in `twed`.
        epsilon: Euclidean distance, at least 0, up to which vectors are equal: a number, or a tensor or sequence of one for
            all or one per pair.
        gamma, x_lengths, y_lengths, bandwidth, kernel: as in `twed`.
        return_subsequence: also return the (i, j) of the subsequence, for gamma = 0.

    Returns:
        (B,) values as those of `twed`, whose gradient to x and y is 0, as that of `edr`. With return_subsequence (value,
        subsequences): a list of B int64 tensors (L, 2) of indices from 0, one tensor for a pair without a batch.

    Raises:
        As `twed`.

    Example:
        >>> x, y = torch.tensor([[1.0], [2.0], [3.0], [4.0]]), torch.tensor([[2.0], [9.0], [4.0]])
        >>> value, subsequence = lcss(x, y, epsilon=0.0, return_subsequence=True)
        >>> round(value.item(), 3), subsequence.tolist()
        (0.333, [[1, 0], [3, 2]])
    """
    arguments.flag("return_subsequence", return_subsequence)
    own = pairs.of_series(x, y, gamma, x_lengths, y_lengths, bandwidth, kernel)
    call = calls.lcss(own, epsilon)
    if not return_subsequence:
        return own.answer(call.value())
    value, cells, steps = paths.of_call(own, call)
    found = [paths.matches(call, b, *path) for b, path in enumerate(zip(cells, steps, strict=True))]
    return own.answer(value), found if own.batched else found[0]


def elastic_from_costs(
    diagonal: torch.Tensor,
    up: torch.Tensor,
    left: torch.Tensor,
    gamma: Numbers = 0.0,
    *,
    border: str = "inf",
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    kernel: str = "auto",
) -> torch.Tensor:
    """Any elastic measure, from what its steps cost: the least or softly least sum of a path's steps.

        R[i,j] = min(R[i-1,j-1] + diagonal[i,j], R[i-1,j] + up[i,j], R[i,j-1] + left[i,j])

    Args:
        diagonal: (B, N, M), or (N, M) for one pair: the cost of matching row i with column j.
        up: (B, N), what it costs to leave out row i, or (B, N, M); without B for one pair.
        left: (B, M), what it costs to leave out column j, or (B, N, M).
        gamma: 0 for the minimum, or smoothing in the unit of the costs, as in `soft_dtw`.
        border: "inf": paths begin with a diagonal step into the first cell. "sum": they may begin by leaving out rows or
            columns, whose costs are then (B, N) and (B, M).
        x_lengths, y_lengths, bandwidth, kernel: as in `soft_dtw`. With "sum" the band holds for the border, too.

    Returns:
        (B,) values, 0-d for one pair; in float64 for float64 costs and float32 otherwise. Costs may be negative; inf
        forbids a step. The gradients to the costs, of the first order, are how often a path takes each step.

    Raises:
        As `twed`.

    Example:
        >>> letters = torch.tensor([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])  # "ab" and "cab": 0 where they are equal
        >>> elastic_from_costs(letters, torch.ones(2), torch.ones(3), border="sum").item()
        1.0
    """
    arguments.one_of("border", border, ("inf", "sum"))
    tables, batched = pairs.step_costs(diagonal, up, left, border)
    own = tables[0]
    options = pairs.options(own, own.shape[1], own.shape[2], batched, gamma, x_lengths, y_lengths, bandwidth)
    ops.require_build_for(own)
    tensors = options.x_lengths, options.y_lengths, options.bandwidths, options.gammas
    rest = options.bandwidth, options.gamma, border == "sum", pairs.kernel_of(kernel, own)
    value = OF_COSTS.value(*tables, *tensors, *rest)
    return value if batched else value.squeeze(0)
