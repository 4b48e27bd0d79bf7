"""Averages of series under soft-DTW and DTW."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch

from ._averages import arguments as asked_for
from ._averages import dba, lbfgs, start, torch_optimizer
from ._averages.implicit import AtMinimum
from ._averages.objective import DivergenceObjective, Objective
from ._inputs import arguments, sets
from ._inputs import cost as costs
from ._inputs.kinds import describe
from ._kernels import ops, selection
from .signatures import Cost, Lengths, Method, Optimizer, SeriesSet, TensorOrArray

METHODS = ("soft", "dba", "divergence")
DISTANCES = {"soft": "soft_dtw", "dba": "dtw", "divergence": "divergence"}


class Barycenter(NamedTuple):
    """What `barycenter` returns: the averages, and their objective after every step."""

    series: TensorOrArray
    history: TensorOrArray


def barycenter(
    series: SeriesSet,
    *,
    method: Method = "soft",
    gamma: float = 0.1,
    cost: Cost = "sqeuclidean",
    weights: Sequence[float] | TensorOrArray = None,
    lengths: Lengths = None,
    labels: Sequence[int] | TensorOrArray = None,
    length: int | None = None,
    init: Literal["mean", "medoid"] | TensorOrArray = "mean",
    optimizer: Optimizer | None = None,
    max_iter: int = 50,
    tol: float | None = None,
    bandwidth: int | None = None,
    warp_penalty: float = 0.0,
    kernel: str = "auto",
) -> Barycenter:
    """The average z of series s_k, or the averages of several groups of series in one batch.

    - "soft": minimises sum_k w_k soft_dtw(z, s_k) / sum_k w_k. Cuturi & Blondel, "Soft-DTW: a differentiable loss
      function for time-series", ICML 2017, section 3.1. By L-BFGS, with a line search for every average, or by an
      optimizer of PyTorch.
    - "dba": the same with hard `dtw`, by DTW barycenter averaging: every vector of z becomes the mean of the vectors
      that the best paths match it with, until the objective stops decreasing. Petitjean, Ketterlin & Gancarski, "A
      global averaging method for dynamic time warping, with applications to clustering", Pattern Recognition, 2011.

    - "divergence": the same with `soft_dtw_divergence` of kind "soft". With a large gamma, averages of method "soft"
      are flat; these keep the height of their series.

    All find a local minimum, which depends on the start. Except for rounding, an average does not depend on other
    groups. On CUDA, no step waits for the GPU.

    Averages of "soft" and "divergence" have a gradient with respect to weights and series that require one, by the
    implicit function theorem. It is only as accurate as the minimum, so use tol=0, a large max_iter and float64. There
    is no gradient to `init`, none of higher order, and none with the costs "euclidean" and "cityblock", whose minima
    lie at kinks.

    Args:
        series: (K, L, D), series of length L and dimension D: a tensor or a NumPy array. Or a list of K series (length,
            D), or a nested tensor, with different lengths. Or (G, K, L, D): G groups of K series.
        method: "soft", "dba" or "divergence".
        gamma: smoothing of "soft" and "divergence", in the unit of the cost, one positive number. "dba" has none.
        cost: a name or a callable, as in `soft_dtw`. "dba" works with "sqeuclidean" only.
        weights: (K,) or (G, K) numbers of at least 0, one per series; only their ratios count. None: equal weights.
        lengths: (K,) or (G, K) integers from 1 to L: the lengths of the series. Padding may hold anything.
        labels: (K,) integers from 0 to G - 1: to which of G groups a series belongs.
        length: how many vectors an average has; None: as many as `init`, if that is a tensor, or else L.
        init: where the averages start. "mean": the weighted mean of the series, each interpolated linearly to `length`.
            "medoid": the series with the smallest weighted sum of distances, those of the method, to those of its group,
            interpolated likewise. Or a tensor (length, D), (G, length, D) for groups.
        optimizer: a callable that takes a list of parameters and returns a torch.optim.Optimizer, such as
            `torch.optim.Adam`, or `lambda parameters: torch.optim.SGD(parameters, lr=0.1)`. It minimises the sum of all
            objectives in max_iter steps; for each average the best step is returned. Not for "dba".
        max_iter: the largest number of steps.
        tol: an average is finished when a step lowers its objective by no more than tol times the objective's size.
            None: 1e-5, and 0 for "dba", whose steps end by themselves. Has no effect on an optimizer of PyTorch.
        bandwidth: Sakoe-Chiba radius, one integer, or None.
        warp_penalty: cost of a step that advances in one series only, one number.
        kernel: "auto", or a name that `select_kernel` can return. Not for "dba".

    Returns:
        Barycenter(series, history). series: (length, D), (G, length, D) for groups, on the device of the input; float64
        for float64 series and float32 otherwise. history: float64 (steps + 1,), or (steps + 1, G): the objective at the
        start and after every step; an average that is finished early keeps its last value. NumPy arrays if the series
        are.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        RuntimeError: CUDA tensors, and this build has no CUDA part.

    Example:
        >>> import torch
        >>> series = torch.tensor([[[0.0], [0.0], [1.0], [4.0]], [[0.0], [1.0], [4.0], [4.0]]])
        >>> average, history = barycenter(series, method="dba")
        >>> average.flatten().tolist(), history.tolist()
        ([0.0, 0.5, 2.5, 4.0], [2.5])
    """
    arguments.one_of("method", method, METHODS)
    costs.check(cost)
    is_hard = method == "dba"
    if is_hard and cost != "sqeuclidean":
        raise ValueError(f"cost: expected 'sqeuclidean' for the method 'dba', which works with no other, got {cost!r}")
    if optimizer is not None and is_hard:
        raise ValueError("optimizer: expected None for the method 'dba', which uses no optimizer")
    if not (optimizer is None or callable(optimizer)):
        raise TypeError(f"optimizer: expected a callable that returns a torch.optim.Optimizer, got {describe(optimizer)}")
    asked_for.check_steps(max_iter, tol)
    asked = asked_for.of_series(series, lengths, weights, labels)
    asked_for.check_gradient(asked, method, cost)
    first, length = asked_for.start(init, length, asked)
    groups = asked.groups
    example = groups.series[:1, :1].expand(1, length, -1)  # which has the shape of an average
    pair = sets.Pair(example, groups.series, None, groups.lengths, groups.series.dtype, asked.is_array)
    options = sets.options(pair, 1.0 if is_hard else gamma, warp_penalty, bandwidth)
    own_kernel = selection.plan(kernel, groups.series).kernel
    ops.require_build_for(groups.series)

    kept = {"gamma": gamma, "cost": cost, "bandwidth": bandwidth, "warp_penalty": warp_penalty, "kernel": kernel}

    with torch.no_grad():
        if isinstance(first, str):
            own = {"distance": DISTANCES[method], **kept}
            first = start.mean(groups, length) if first == "mean" else start.medoid(groups, length, **own)
        objective = Objective(groups, length, cost, options, own_kernel, is_hard)
        evaluate = DivergenceObjective(objective, **kept) if method == "divergence" else objective
        if is_hard:
            found = dba.minimise(dba.Update(objective), first.double(), max_iter, tol or 0.0)
        elif optimizer is None:
            noise = 8 * torch.finfo(groups.series.dtype).eps
            first_size = 0.3 if cost == "sqeuclidean" else None  # paths match most vectors of an average once or twice
            tol = 1e-5 if tol is None else tol
            found = lbfgs.minimise(evaluate, first.double(), max_iter, tol, noise, first_size)
        else:
            found = torch_optimizer.minimise(evaluate, first.to(groups.series.dtype), max_iter, optimizer)
    averages, history = found
    if arguments.wants_gradient(*asked.inputs):
        averages = AtMinimum.apply(*asked.inputs, averages.double(), groups, method == "divergence", kept)
    return Barycenter(*asked.answer(averages, history))
