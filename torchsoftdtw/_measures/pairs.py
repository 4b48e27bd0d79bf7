"""The series of a call of an elastic measure, its options and its numbers."""

import math
from typing import NamedTuple

import torch

from .._inputs import arguments, per_pair, ragged
from .._inputs.kinds import compute_dtype, describe, name_of
from .._kernels import ops, selection


class Pairs(NamedTuple):
    x: torch.Tensor  # (B, N, D), and y (B, M, D), in the dtype of the computation
    y: torch.Tensor
    options: arguments.Options  # without a penalty; gamma 0 of hard ones
    batched: bool
    kernel: str
    chosen: tuple | None = None  # which series of x and which of y the pairs have, where these are sets of them

    @property
    def is_hard(self):
        return self.options.gamma == 0

    def answer(self, value):
        return value if self.batched else value.squeeze(0)

    def lengths(self):
        """N and M of each pair, as numbers or (B,)."""
        lengths = [self.options.x_lengths, self.options.y_lengths]
        if self.chosen is not None:
            lengths = [None if own is None else own[at.long()] for own, at in zip(lengths, self.chosen, strict=True)]
        sides = zip((self.x, self.y), lengths, strict=True)
        return tuple(series.shape[1] if own is None else own for series, own in sides)

    def inputs(self, measure, cost, *, numbers=(None, 0.0), times=(None, None), gaps=(None, None), sum_border=False):
        """What the op takes. numbers: the parameter of each pair and of all."""
        options = self.options
        tensors = (*times, *gaps, options.x_lengths, options.y_lengths, options.bandwidths, options.gammas, numbers[0])
        rest = options.bandwidth, options.gamma, numbers[1], measure, cost, sum_border, self.kernel
        return self.x, self.y, *tensors, *rest


def of_series(x, y, gamma, x_lengths, y_lengths, bandwidth, kernel):
    """The Pairs of a call, or an error that names the argument."""
    x, y, x_lengths, y_lengths = ragged.padded(x, y, x_lengths, y_lengths)
    x, y, batched = arguments.series(x, y)
    own = options(x, x.shape[1], y.shape[1], batched, gamma, x_lengths, y_lengths, bandwidth)
    ops.require_build_for(x)
    return Pairs(x, y, own, batched, kernel_of(kernel, x))


def options(like, n, m, batched, gamma, x_lengths, y_lengths, bandwidth):
    """arguments.Options, with a gamma of 0 where that is the number."""
    is_hard = per_pair.is_zero(gamma)
    own = arguments.options(like, n, m, batched, 1.0 if is_hard else gamma, 0.0, bandwidth, x_lengths, y_lengths)
    return own._replace(gamma=0.0) if is_hard else own


def kernel_of(kernel, like):
    return selection.plan(kernel, like).kernel


def non_negative(name):
    """A check of numbers of at least 0."""

    def check(value, _dtype=None):
        value = per_pair._number(name, value)
        if not 0 <= value < math.inf:
            raise ValueError(f"{name}: expected a finite number of at least 0, got {value}")
        return value

    return check


def finite(name):
    def check(value, _dtype=None):
        value = per_pair._number(name, value)
        if not math.isfinite(value):
            raise ValueError(f"{name}: expected a finite number, got {value}")
        return value

    return check


def numbers(name, given, pairs, check=None):
    """(None, number) for all pairs, or ((B,) float64, 0.0)."""
    check = check or non_negative(name)
    if per_pair.is_number(given):
        return None, check(given)
    return per_pair.number_per_pair(name, given, pairs.x, pairs.batched, check), 0.0


def column(number, like):
    """A pair of numbers() as (B, 1) of the dtype of `like`, or the plain number."""
    tensor, plain = number
    return plain if tensor is None else tensor.to(like.dtype).unsqueeze(1)


def inside(series, lengths):
    """(B, L) whether a row is in its own series; None where all are."""
    if lengths is None:
        return None
    return torch.arange(series.shape[1], device=series.device) < lengths.unsqueeze(1)


def without_padding(series, lengths):
    """The series with zeros for padding, which may hold NaN; no gradient reaches it."""
    own = inside(series, lengths)
    return series if own is None else torch.where(own.view(*own.shape, *(1,) * (series.dim() - 2)), series, 0)


def times(x_times, y_times, pairs):
    """Both, (B, N) and (B, M), of one dtype: float32, float64 or int64; None, None."""
    if x_times is None and y_times is None:
        return None, None
    if x_times is None or y_times is None:
        raise ValueError("x_times and y_times: expected both or neither")
    x_times = _checked_times("x_times", x_times, pairs.x, pairs.batched, pairs.options.x_lengths)
    y_times = _checked_times("y_times", y_times, pairs.y, pairs.batched, pairs.options.y_lengths)
    if x_times.dtype != y_times.dtype:
        x_times, y_times = x_times.double(), y_times.double()
    return x_times, y_times


def _checked_times(name, given, series, batched, lengths):
    if not isinstance(given, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {describe(given)}")
    if given.dtype not in (*arguments.FLOATS, *per_pair.INTEGERS):
        raise TypeError(f"{name}: expected real numbers, got dtype {name_of(given.dtype)}")
    if given.device != series.device:
        raise ValueError(f"{name}: expected a tensor on {series.device}, where the series are, got one on {given.device}")
    batch, length, _ = series.shape
    shapes = ((length,), (batch, length)) if batched else ((length,),)
    if tuple(given.shape) not in shapes:
        expected = " or ".join(map(str, shapes))
        raise ValueError(f"{name}: expected shape {expected}, as the series have, got {tuple(given.shape)}")
    if given.dtype not in (torch.float32, torch.float64):
        given = given.to(torch.int64 if given.dtype in per_pair.INTEGERS else torch.float32)
    own = given.expand(batch, length)
    if given.device.type == "cpu" and not per_pair.is_hidden(given) and bool((_steps(own, lengths) < 0).any()):
        raise ValueError(f"{name}: expected times that do not decrease")
    return own


def _steps(times, lengths):
    """(B, L - 1) from each to the next, 0 beyond a series' own length."""
    steps = times.detach().diff(dim=1)
    return steps if lengths is None else torch.where(inside(times, lengths)[:, 1:], steps, 0)


def times_from_first(x_times, y_times, pairs):
    """What times() gives, in the dtype of the series and from the earlier of a pair's first two on, taken in their own
    precision. NaN where they are not finite, and of a series in which they decrease."""
    sides = (x_times, pairs.options.x_lengths), (y_times, pairs.options.y_lengths)
    origin = torch.minimum(x_times[:, :1], y_times[:, :1]).detach()
    answer = []
    for own, lengths in sides:
        own = without_padding(own, lengths)
        is_wrong = (_steps(own, lengths) < 0).any(dim=1, keepdim=True) | ~own.isfinite()
        answer.append(torch.where(is_wrong, torch.nan, (own - origin).to(pairs.x.dtype)))
    return answer


def gap_norm(difference, cost):
    """The cost of (..., D) differences of gaps, with a slope of 0 where one is 0; what is not finite has none."""
    if difference.requires_grad:
        difference = torch.where(difference.isfinite(), difference, torch.nan)
    if cost == "sqeuclidean":
        return difference.square().sum(-1)
    if difference.shape[-1] == 1:
        return difference.squeeze(-1).abs()
    if cost == "cityblock":
        return difference.abs().sum(-1)
    square = difference.square().sum(-1)
    if not difference.requires_grad:
        return square.sqrt()
    is_zero = square == 0
    return torch.where(is_zero, 0, torch.where(is_zero, 1, square).sqrt())


def step_costs(diagonal, up, left, border):
    """(diagonal, up, left), (B, N, M) each in one dtype, no copies of gaps' costs; and whether they had a B."""
    for name, costs in (("diagonal", diagonal), ("up", up), ("left", left)):
        arguments.check_float_tensor(name, costs)
        if costs.device != diagonal.device:
            raise ValueError(
                f"{name}: expected a tensor on {diagonal.device}, where diagonal is, got one on {costs.device}"
            )
    if diagonal.dim() not in (2, 3) or 0 in diagonal.shape[-2:]:
        raise ValueError(f"diagonal: expected shape (batch, N, M) or (N, M), got {tuple(diagonal.shape)}")
    batched = diagonal.dim() == 3
    shape, sizes = tuple(diagonal.shape), diagonal.shape[:-2]
    tables = [diagonal]
    for name, costs, axis in (("up", up, -1), ("left", left, -2)):
        of_gaps = (*sizes, shape[-2 if axis == -1 else -1])
        if tuple(costs.shape) == of_gaps:
            costs = costs.unsqueeze(axis).expand(shape)
        elif tuple(costs.shape) != shape or border == "sum":
            other = "" if border == "sum" else f" or {shape}"
            raise ValueError(f"{name}: expected shape {of_gaps}{other}, got {tuple(costs.shape)}")
        tables.append(costs)
    dtype = torch.promote_types(torch.promote_types(diagonal.dtype, up.dtype), left.dtype)
    tables = [costs.to(compute_dtype(dtype)) for costs in tables]
    return [costs if batched else costs.unsqueeze(0) for costs in tables], batched
