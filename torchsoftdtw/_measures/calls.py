"""Each measure with costs of its own as a Call: what the op takes, and what becomes of its value."""

import numbers as kinds
from collections.abc import Callable
from typing import NamedTuple

import torch

from .._autograd.elastic import OF_SERIES
from .._inputs import per_pair
from .._inputs.kinds import describe
from . import pairs as of
from .twed_terms import twed_terms


class Call(NamedTuple):
    inputs: tuple
    finish: Callable  # of the values that the op gives

    def value(self):
        return self.finish(OF_SERIES.value(*self.inputs))


def _as_it_is(value):
    return value


def norm_of(degree, dim):
    """The cost of the kernels that is the norm of that degree."""
    if dim == 1 and degree > 0:
        return "cityblock"
    return {1: "cityblock", 2: "euclidean", -1: "cityblock", -2: "sqeuclidean"}[degree]


def check_degree(degree, dim=None):
    if isinstance(degree, bool) or not isinstance(degree, (int, float, kinds.Real)):
        raise TypeError(f"degree: expected a number, got {describe(degree)}")
    if degree == 0 or degree != degree:
        raise ValueError(f"degree: expected a number other than 0, got {degree}")
    if degree not in (1, 2, -1, -2) and not (degree > 0 and dim in (None, 1)):
        raise ValueError(
            f"degree: expected 1, 2, -1 or -2, or of series of one dimension any positive number, got {degree}; "
            "elastic_from_costs takes other norms"
        )
    return degree


def twed(pairs, nu, lmbda, degree, x_times, y_times):
    dim = pairs.x.shape[2]
    cost = norm_of(check_degree(degree, dim), dim)
    nu, lmbda = of.numbers("nu", nu, pairs), of.numbers("lmbda", lmbda, pairs)
    times, gaps = twed_terms(pairs, of.times(x_times, y_times, pairs), nu, lmbda, cost)
    return Call(pairs.inputs("twed", cost, numbers=(None, nu[1]), times=times, gaps=gaps), _as_it_is)


def erp(pairs, g):
    dim = pairs.x.shape[2]
    gap = _gap_vector(g, pairs)
    sides = (pairs.x, pairs.options.x_lengths), (pairs.y, pairs.options.y_lengths)
    gaps = [of.gap_norm(of.without_padding(series, lengths) - gap, "euclidean") for series, lengths in sides]
    return Call(pairs.inputs("edit", norm_of(2, dim), gaps=gaps, sum_border=True), _as_it_is)


def _gap_vector(g, pairs):
    """g so that it broadcasts to (B, L, D)."""
    batch, _, dim = pairs.x.shape
    if per_pair.is_number(g):
        return of.finite("g")(g)
    tensor = per_pair.numbers_as_tensor("g", g)
    shapes = [(), (dim,), (batch, dim)] if pairs.batched else [(), (dim,)]
    if tuple(tensor.shape) not in shapes:
        raise ValueError(f"g: expected a number or shape {' or '.join(map(str, shapes))}, got {tuple(tensor.shape)}")
    if tensor.device.type == "cpu" and not per_pair.is_hidden(tensor) and not bool(tensor.isfinite().all()):
        raise ValueError("g: expected finite numbers")
    tensor = tensor.to(device=pairs.x.device, dtype=pairs.x.dtype)
    return tensor.unsqueeze(1) if tensor.dim() == 2 else tensor


def edr(pairs, epsilon, normalize):
    numbers = _largest_deviation(pairs) if epsilon is None else of.numbers("epsilon", epsilon, pairs)
    inputs = pairs.inputs("edr", norm_of(2, pairs.x.shape[2]), numbers=_fixed(numbers), sum_border=True)
    n, m = pairs.lengths()
    longest = _each(torch.maximum, max, n, m)
    return Call(inputs, (lambda value: _divided(value, longest)) if normalize else _as_it_is)


def _largest_deviation(pairs):
    """(B,): a quarter of the larger population deviation of all of a pair's own numbers."""
    deviations = []
    for series, lengths in ((pairs.x, pairs.options.x_lengths), (pairs.y, pairs.options.y_lengths)):
        own = of.without_padding(series.detach(), lengths).double()
        count = series.shape[2] * (series.shape[1] if lengths is None else lengths)
        mean = own.sum((1, 2)) / count
        apart = own - mean.view(-1, 1, 1)
        apart = of.without_padding(apart, lengths)
        deviations.append((apart.square().sum((1, 2)) / count).sqrt())
    return torch.maximum(*deviations) / 4, 0.0


def lcss(pairs, epsilon):
    numbers = of.numbers("epsilon", epsilon, pairs)
    inputs = pairs.inputs("lcss", norm_of(2, pairs.x.shape[2]), numbers=_fixed(numbers), sum_border=True)
    n, m = pairs.lengths()
    shortest = _each(torch.minimum, min, n, m)
    return Call(inputs, lambda value: 1 - _divided(((n + m) - value) / 2, shortest))


def _divided(value, count):
    """value / count, rounded once: by a Python number PyTorch divides on CUDA as by its rounded reciprocal."""
    return value / (count if isinstance(count, torch.Tensor) else value.new_full((), count))


def _fixed(numbers):
    """Numbers without a gradient."""
    return numbers if numbers[0] is None else (numbers[0].detach().contiguous(), numbers[1])


def _each(of_tensors, of_numbers, n, m):
    """A function of the lengths of each pair, which are numbers or (B,)."""
    if not (isinstance(n, torch.Tensor) or isinstance(m, torch.Tensor)):
        return of_numbers(n, m)
    device = (n if isinstance(n, torch.Tensor) else m).device
    return of_tensors(*(torch.as_tensor(length, device=device) for length in (n, m)))


def msm(pairs, c):
    batch, _, dim = pairs.x.shape
    number = of.numbers("c", c, pairs)
    if dim == 1:
        return Call(pairs.inputs("msm", "cityblock", numbers=number), _as_it_is)

    def of_channels(numbers):
        return None if numbers is None else numbers.repeat_interleave(dim)

    x, y = (series.transpose(1, 2).reshape(batch * dim, -1, 1) for series in (pairs.x, pairs.y))
    names = ("x_lengths", "y_lengths", "bandwidths", "gammas")
    options = pairs.options._replace(**{name: of_channels(getattr(pairs.options, name)) for name in names})
    folded = pairs._replace(x=x, y=y, options=options)
    inputs = folded.inputs("msm", "cityblock", numbers=(of_channels(number[0]), number[1]))
    return Call(inputs, lambda value: value.view(batch, dim).sum(1))


def wdtw(pairs, g):
    return Call(pairs.inputs("weighted", "sqeuclidean", numbers=of.numbers("g", g, pairs)), _as_it_is)
