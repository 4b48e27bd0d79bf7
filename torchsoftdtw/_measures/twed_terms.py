"""What twed charges rows and columns: the times of its op, and the costs of gaps."""

import torch

from .._inputs.arguments import wants_gradient
from .._internals import below_autograd, under_transform
from .._kernels import ops
from . import pairs as of


def twed_terms(pairs, times, nu, lmbda, cost):
    """((x_times, y_times), (x_gaps, y_gaps)) of the op, differentiable; None for times that it does not need.

    times: those of pairs.times(); nu and lmbda: of pairs.numbers().
    """
    tensors = pairs.x, pairs.y, *times, nu[0], lmbda[0]
    if torch.compiler.is_compiling() or under_transform():
        found = _by_steps(pairs, cost, nu[1], lmbda[1], *tensors)
    elif wants_gradient(*tensors):
        found = TwedTerms.apply(pairs, cost, nu[1], lmbda[1], *tensors)
    else:
        with below_autograd():
            found = _by_op(pairs, cost, nu[1], lmbda[1], tensors, (False, False))
    return found[:2], found[2:]


def _by_op(pairs, cost, nu, lmbda, tensors, have_slopes):
    x, y, x_times, y_times, nus, lmbdas = tensors
    lengths = pairs.options.x_lengths, pairs.options.y_lengths
    *found, x_gaps, y_gaps = ops.twed_terms(x, y, x_times, y_times, *lengths, nus, lmbdas, nu, lmbda, cost, *have_slopes)
    if x_times is None and nus is None:
        return None, None, x_gaps, y_gaps
    batch = x.shape[0]
    return *(own if own.shape[0] == batch else own.expand(batch, -1) for own in found), x_gaps, y_gaps


def _by_steps(pairs, cost, nu, lmbda, x, y, x_times, y_times, nus, lmbdas):
    """That any transform can go through, and any order."""
    times = None, None
    if x_times is not None:
        times = of.times_from_first(x_times, y_times, pairs)
    elif nus is not None:
        places = (torch.arange(series.shape[1], device=series.device) for series in (x, y))
        times = [place.to(x.dtype).expand(len(x), -1) for place in places]
    nu, lmbda = of.column((nus, nu), x), of.column((lmbdas, lmbda), x)
    times = [None if own is None else own * nu for own in times]
    sides = (x, times[0], pairs.options.x_lengths), (y, times[1], pairs.options.y_lengths)
    return *times, *(_gaps(*side, nu, lmbda, cost) for side in sides)


def _gaps(series, times, lengths, nu, lmbda, cost):
    """(B, L): what it costs to leave out a row; the first, which no path leaves out, is 0."""
    gaps = of.gap_norm(of.without_padding(series, lengths).diff(dim=1), cost)
    between = nu if times is None else times.diff(dim=1).abs()
    return torch.nn.functional.pad(gaps + (between + lmbda), (1, 0))


class TwedTerms(torch.autograd.Function):
    """(pairs, cost, nu, lmbda, x, y, x_times, y_times, nus, lmbdas) -> those four, by one kernel instead of twenty, which
    for short series take as long as the measure."""

    @staticmethod
    def forward(ctx, pairs, cost, nu, lmbda, *tensors):
        need_x, need_y, *need_more = ctx.needs_input_grad[4:]
        with below_autograd():
            x_times, y_times, *gaps = _by_op(pairs, cost, nu, lmbda, tensors, (need_x, need_y))
        ctx.set_materialize_grads(False)
        ctx.others = pairs._replace(x=None, y=None), cost, nu, lmbda
        ctx.save_for_backward(*tensors)
        constant = []
        if not any(need_more):
            constant += [own for own, need in zip(gaps, (need_x, need_y), strict=True) if not need]
        if x_times is not None and not any(need_more[:3]):
            constant += [x_times, y_times]
        ctx.mark_non_differentiable(*constant)
        return x_times, y_times, *gaps

    @staticmethod
    def backward(ctx, *arriving):
        tensors, needs = ctx.saved_tensors, ctx.needs_input_grad[4:]
        pairs, cost, nu, lmbda = ctx.others
        nothing = (None,) * 4
        if all(own is None for own in arriving):
            return *nothing, *(None,) * 6
        if torch.is_grad_enabled():  # for derivatives of higher order
            return *nothing, *_gradients_by_steps(
                pairs._replace(x=tensors[0], y=tensors[1]), *ctx.others[1:], tensors, needs, arriving
            )
        lengths = pairs.options.x_lengths, pairs.options.y_lengths
        flags = needs[0], needs[1], needs[2] or needs[3], needs[4] or needs[5]
        found = ops.twed_terms_backward(*arriving, *tensors[:4], *lengths, *tensors[4:], nu, lmbda, cost, *flags)
        *of_series, of_x_times, of_y_times, of_nus, of_lmbdas = found
        of_times = [
            own.to(given.dtype) if need else None
            for own, given, need in zip((of_x_times, of_y_times), tensors[2:4], needs[2:4], strict=True)
        ]
        numbers = [
            own.view(2, -1).sum(0) if need else None for own, need in zip((of_nus, of_lmbdas), needs[4:], strict=True)
        ]
        return (
            *nothing,
            *(own if need else None for own, need in zip(of_series, needs[:2], strict=True)),
            *of_times,
            *numbers,
        )


def _gradients_by_steps(pairs, cost, nu, lmbda, tensors, needs, arriving):
    steps = _by_steps(pairs, cost, nu, lmbda, *tensors)
    reached = zip(steps, arriving, strict=True)
    reached = [(own, gradient) for own, gradient in reached if gradient is not None and own.requires_grad]
    outputs, gradients = zip(*reached, strict=True)
    inputs = [own for own, need in zip(tensors, needs, strict=True) if need]
    found = iter(torch.autograd.grad(outputs, inputs, gradients, create_graph=True, allow_unused=True))
    return [next(found) if need else None for need in needs]
