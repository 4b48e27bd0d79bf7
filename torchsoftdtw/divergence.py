"""Divergences: soft-DTW without its bias, 0 at x = y (Blondel, Mensch & Vert, AISTATS 2021)."""

import functools

import torch

from ._autograd import transforms
from ._autograd.cost_matrix import matrix_of
from ._inputs import arguments, repeats
from ._inputs.problem import of_series
from ._internals import known_to_be
from .alignment import alignments_of, refuse_gradients
from .functional import plan_for_matrix, values_of
from .signatures import Bandwidth, Cost, Kind, Lengths, Numbers, Series

KINDS = ("soft", "sharp", "mean")
ALL_PATHS_ALIKE = {"gammas": None, "warp_penalties": None, "gamma": 1.0, "warp_penalty": 0.0}  # where all costs are 0


def soft_dtw_divergence(
    x: Series,
    y: Series,
    gamma: Numbers = 0.1,
    *,
    kind: Kind = "soft",
    cost: Cost = "sqeuclidean",
    x_lengths: Lengths = None,
    y_lengths: Lengths = None,
    bandwidth: Bandwidth = None,
    warp_penalty: Numbers = 0.0,
    length_norm: bool = False,
    open_ends: bool = False,
    kernel: str = "auto",
) -> torch.Tensor:
    """The soft-DTW divergence between the series of x and y, pair by pair, differentiable with respect to both.

    S(x, y) = V(x, y) - V(x, x) / 2 - V(y, y) / 2, which is 0 for x = y and the same for (x, y) and (y, x). Blondel, Mensch
    & Vert, "Differentiable divergences between time series", AISTATS 2021. V is, by `kind`,

    - "soft": soft-DTW itself;
    - "sharp": <E, C>, the expected cost of a path under soft-DTW's alignment E: no entropy in it;
    - "mean": the mean cost of all paths, soft-DTW's limit for large gamma up to a constant. gamma has no influence.

    With the squared Euclidean cost, "soft" has been at least 0 in all tests. "mean" is at least 0 for series of equal
    lengths. For unequal lengths "mean" and "sharp", which is close to it for large gamma, may be negative.

    In "sharp" and "mean" a path's cost includes `warp_penalty` for each of its steps in one series only.

    Args:
        x: (B, N, D), or (N, D) for one pair, as in `soft_dtw`.
        y: (B, M, D), or (M, D) for one pair. M may differ from N.
        gamma: smoothing, in the unit of the cost; a positive number, or a tensor or sequence of them, as in `soft_dtw`. A
            tensor has a gradient with "soft" only.
        kind: "soft", "sharp" or "mean".
        cost: a name or a callable, as in `soft_dtw`. A callable is also called for the costs within x and within y, in
            batches that hold several of the three terms.
        x_lengths: (B,) integers from 1 to N, as in `soft_dtw`.
        y_lengths: (B,) integers from 1 to M, as in `soft_dtw`.
        bandwidth: Sakoe-Chiba radius, an integer or one per pair, in all three terms, each with its own two lengths.
        warp_penalty: cost of a step that advances in one series only, as in `soft_dtw`.
        length_norm: divide the divergence by N + M, the pair's own lengths.
        open_ends: False; True is an error. With open ends, V(x, y) is the value of a part of y but V(y, y) that of the
            whole, so the divergence would not be 0 for x = y. `soft_dtw` and `dtw` have open ends.
        kernel: "auto", or a name that `select_kernel` can return.

    Returns:
        (B,) values, 0-d for a pair without a batch; float64 for float64 inputs and float32 otherwise. The gradient of
        "sharp" takes second derivatives of soft-DTW. "sharp" and "mean" take N x M tensors.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.
        RuntimeError: CUDA tensors, and this build has no CUDA part.

    Example:
        >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[0.0], [2.0]])
        >>> round(soft_dtw_divergence(x, x).item(), 3), round(soft_dtw_divergence(x, y).item(), 3)
        (0.0, 0.931)
    """
    arguments.one_of("kind", kind, KINDS)
    others = x_lengths, y_lengths, length_norm, open_ends
    call = repeats.signature("divergence", x, y, gamma, warp_penalty, bandwidth, cost, kernel, *others)
    problem = repeats.recall(call)
    if problem is not None:
        problem = problem._replace(x=x, y=y)
    else:
        problem = of_series(x, y, gamma, cost, x_lengths, y_lengths, bandwidth, warp_penalty, length_norm, open_ends)
        refuse_open_ends(open_ends)
        if problem.x is x and problem.y is y:
            repeats.remember(call, problem._replace(x=None, y=None))
    function = {"soft": values_of, "sharp": _expected_cost, "mean": _mean_cost}[kind]
    return problem.answer(_divergences(problem, kernel, function))


def _divergences(problem, kernel, function):
    """(B,), of the values that function(problem, kernel) gives for each of the three terms."""
    options, batch = problem.options, problem.x.shape[0]
    first, second = (problem.x, options.x_lengths), (problem.y, options.y_lengths)
    terms = [(first, second), (first, first), (second, second)]
    # The terms of a launch keep what their gradients need, or none of them keeps anything. That of x and y is in the first.
    trains = [arguments.wants_gradient(a[0], b[0], options.gammas, options.warp_penalties) for a, b in terms]
    total = None
    for wanted in (True, False):
        group = [term for term, needed in zip(terms, trains, strict=True) if needed == wanted]
        if not group:
            continue
        left, left_lengths = _stack([a for a, _ in group])
        right, right_lengths = _stack([b for _, b in group])
        tensors = {name: getattr(options, name) for name in ("bandwidths", "gammas", "warp_penalties")}
        tensors = {name: tensor.repeat(len(group)) for name, tensor in tensors.items() if tensor is not None}
        own = options._replace(x_lengths=left_lengths, y_lengths=right_lengths, **tensors)
        values = function(problem._replace(x=left, y=right, options=own), kernel)
        for value in values.view(len(group), batch).unbind(0):
            total = value if total is None else total.add(value, alpha=-0.5)
    return total


def refuse_open_ends(open_ends):
    if open_ends:
        raise ValueError(
            "open_ends: expected False for a divergence, since V(x, y) would be the value of a part of y and V(y, y) that "
            "of the whole; soft_dtw and dtw have open ends"
        )


def _stack(parts):
    """Series of several lengths, and their own lengths or None, as one batch (padded, lengths)."""
    length = parts[0][0].shape[1]
    if all(lengths is None and _agree(series.shape[1], length) for series, lengths in parts):
        return torch.cat([series for series, _ in parts]), None
    longest = _largest(series.shape[1] for series, _ in parts)
    lengths = [
        torch.full(series.shape[:1], series.shape[1], device=series.device) if lengths is None else lengths
        for series, lengths in parts
    ]
    return torch.cat([_pad(series, longest) for series, _ in parts]), torch.cat(lengths)


def _pad(series, longest):
    batch, length, dim = series.shape
    if _agree(length, longest):
        return series
    # Not by torch.nn.functional.pad: its gradient's strides are others than torch.compile takes them to be (PyTorch 2.13).
    # And two rows too many: a graph with symbolic lengths then need not ask whether there are none or one, which differ.
    return torch.cat([series, series.new_zeros((batch, longest - length + 2, dim))], 1)[:, :longest]


def _largest(lengths):
    # torch.compile takes max for symbolic sizes too, and, before PyTorch 2.13, sym_max for nothing else. torch.jit.trace
    # makes tensors of sizes, which sym_max refuses.
    plain = torch.compiler.is_dynamo_compiling() or torch.jit.is_tracing()
    return functools.reduce(max if plain else torch.sym_max, lengths)


def _agree(length, other):
    """Whether two sizes are equal. A compiled or exported graph with symbolic sizes stays free of the question."""
    return known_to_be(length == other) if torch.compiler.is_compiling() else length == other


def _expected_cost(problem, kernel):
    matrix, _, alignment = alignments_of(problem, kernel)
    return _mean_over_paths(alignment, matrix, problem.options)


def _mean_cost(problem, kernel):
    """All paths weigh the same where all costs are 0: E then holds each cell's share of the paths.

    The kernels count paths as they sum exponentials, in a range without an end. Pairs that agree in lengths and in band
    share one E.
    """
    options = problem.options
    refuse_gradients(options)
    matrix = matrix_of(problem)
    shared = options.x_lengths is None and options.y_lengths is None and options.bandwidths is None
    n, m = matrix.shape[1:]
    nothing = matrix.new_zeros((1 if shared else matrix.shape[0], n, m))
    plan = plan_for_matrix(kernel, nothing, options, gradient=True)
    _, alignment = transforms.alignment_of_cost(nothing, *options._replace(**ALL_PATHS_ALIKE), *plan)
    return _mean_over_paths(alignment.expand_as(matrix), matrix, options)


def _mean_over_paths(alignment, matrix, options):
    """The mean of a path's costs and penalties (B,).

    A path of K cells takes K - 1 steps, and those advance N + M - 2 times: 2 K - N - M of them in one series only. N + M
    cancels in a divergence, but not beside others.
    """
    # E is 0 outside the band and on padding, where a cost may be inf.
    value = (alignment * torch.where(alignment.detach() == 0, 0, matrix)).sum((1, 2))
    if options.warp_penalties is None and options.warp_penalty == 0:
        return value
    penalty = options.warp_penalty if options.warp_penalties is None else options.warp_penalties.to(value.dtype)
    n = matrix.shape[1] if options.x_lengths is None else options.x_lengths
    m = matrix.shape[2] if options.y_lengths is None else options.y_lengths
    return value + penalty * (2 * alignment.sum((1, 2)) - n - m)
