"""The gradients of soft-DTW's ops, as autograd knows them. Those of the other ops are in second_order.py."""

import contextlib

import torch

from .._inputs.cost import is_homogeneous
from .._internals import below_autograd
from .._kernels import ops
from .._kernels.inputs import NOTHING_PER_PAIR, CostCall, CostKept, CostNumbers, SeriesCall, SeriesKept, SeriesNumbers
from .batching import per_pair
from .derivatives import of_gamma_and_penalty, path_cost_by_euler, sums_over_alignment
from .kept_value import keep, kept

NOTHING_CHANGED = contextlib.nullcontext()


def _gradients_of_series(tensors, numbers, needs, grad_value):
    """The gradients of x, y, gammas and warp_penalties, of which `needs` says which are asked for.

    tensors, numbers: what is in SeriesKept and in SeriesNumbers.
    """
    need_x, need_y, need_gamma, need_penalty = needs
    if grad_value is None:
        return None, None, None, None
    if need_gamma or need_penalty:
        return _gradients_with_gamma(SeriesKept(*tensors), SeriesNumbers(*numbers), needs, grad_value)
    grad_x, grad_y = ops.backward(grad_value, *tensors, *numbers, need_x, need_y)
    return grad_x if need_x else None, grad_y if need_y else None, None, None


def _gradients_with_gamma(kept, numbers, needs, grad_value):
    """With (6), whose <E, C> follows from the gradients of one unit of value."""
    need_x, need_y, _, need_penalty = needs
    has_penalty = need_penalty or kept.warp_penalties is not None or numbers.warp_penalty != 0
    if has_penalty or not is_homogeneous(numbers.cost):
        raise RuntimeError(
            "torchsoftdtw::forward has no gradient to gammas beside a warp penalty or with a cost that is not homogeneous, "
            "nor one to warp_penalties; torchsoftdtw::forward_from_cost has both"
        )
    unit_x, unit_y = ops.backward(torch.ones_like(kept.value), *kept, *numbers, True, True)
    path_cost = path_cost_by_euler(numbers.cost, kept.x, kept.y, unit_x, unit_y, kept.x_lengths, kept.y_lengths)
    grad_gamma, _ = of_gamma_and_penalty(kept.value, path_cost, None, None, kept.gammas)
    return (
        per_pair(grad_value, unit_x) if need_x else None,
        per_pair(grad_value, unit_y) if need_y else None,
        per_pair(grad_value, grad_gamma),
        None,
    )


def _gradients_of_cost(tensors, numbers, needs, grad_value):
    """The gradients of the cost matrix, gammas and warp_penalties."""
    need_cost, need_gamma, need_penalty = needs
    if grad_value is None:
        return None, None, None
    if not (need_gamma or need_penalty):
        return ops.backward_from_cost(grad_value, *tensors, *numbers), None, None
    kept, numbers = CostKept(*tensors), CostNumbers(*numbers)
    alignment = ops.backward_from_cost(torch.ones_like(kept.value), *kept, *numbers)
    gamma = numbers.gamma if kept.gammas is None else kept.gammas
    warp_penalty = numbers.warp_penalty if kept.warp_penalties is None else kept.warp_penalties
    path_cost, steps = sums_over_alignment(kept.cost_matrix, alignment, gamma, kept.x_lengths, kept.y_lengths)
    grad_gamma, grad_penalty = of_gamma_and_penalty(kept.value, path_cost, steps, warp_penalty, gamma)
    return (
        per_pair(grad_value, alignment) if need_cost else None,
        per_pair(grad_value, grad_gamma) if need_gamma else None,
        per_pair(grad_value, grad_penalty) if need_penalty else None,
    )


def _register(name, tensors, call_type, gradients):
    """The same for the op itself, which takes so many `tensors` first: one gradient, or None, for each of its inputs."""
    fields = call_type._fields
    wanted = [*range(tensors), *(tensors + fields.index(field) for field in ("gammas", "warp_penalties"))]

    def keep(ctx, inputs, output):
        value, saved = output
        call = call_type(*inputs[tensors:])
        ctx.numbers = call.numbers
        # A copy, since the user may write into the value. Compiled code mostly finds that it needs none.
        ctx.save_for_backward(*inputs[:tensors], value.clone(), saved, *(call.per_pair or NOTHING_PER_PAIR))
        ctx.set_materialize_grads(False)

    def differentiate(ctx, grad_value, _):
        needs = [ctx.needs_input_grad[place] for place in wanted]
        found = gradients(ctx.saved_tensors, ctx.numbers, needs, grad_value)
        answer = [None] * (tensors + len(fields))
        for place, gradient in zip(wanted, found, strict=True):
            answer[place] = gradient
        return tuple(answer)

    torch.library.register_autograd(f"torchsoftdtw::{name}", differentiate, setup_context=keep)


_register("forward", 2, SeriesCall, _gradients_of_series)
_register("forward_from_cost", 1, CostCall, _gradients_of_cost)


class _OfSeries(torch.autograd.Function):
    """The op `forward` with its derivative, of (x, y, gammas, warp_penalties, SeriesCall). What is registered above does
    the same, for torch.compile and for those who call the op, but PyTorch runs it argument by argument in Python, which
    takes longer than a small problem."""

    @staticmethod
    def forward(ctx, x, y, gammas, penalties, call):
        with below_autograd():
            value, saved = ops.forward(x, y, *call)
        ctx.numbers, ctx.value = call.numbers, keep(value)
        ctx.save_for_backward(x, y, saved, *call.per_pair)
        ctx.set_materialize_grads(False)
        return value

    @staticmethod
    def backward(ctx, grad_value):
        # Outside: activation checkpointing computes them anew here, under autograd.
        x, y, saved, *per_pair = ctx.saved_tensors
        per_pair = per_pair or NOTHING_PER_PAIR
        with below_autograd_if_first_order():
            value = kept(*ctx.value)
            if value is None:
                value, _ = ops.forward(x, y, *per_pair, *ctx.numbers, False)
            tensors = x, y, value, saved, *per_pair
            return *_gradients_of_series(tensors, ctx.numbers, ctx.needs_input_grad[:-1], grad_value), None


class _OfCost(torch.autograd.Function):
    """The op `forward_from_cost`, of (cost_matrix, gammas, warp_penalties, CostCall), likewise."""

    @staticmethod
    def forward(ctx, cost_matrix, gammas, penalties, call):
        with below_autograd():
            value, saved = ops.forward_from_cost(cost_matrix, *call)
        ctx.numbers, ctx.value = call.numbers, keep(value)
        ctx.save_for_backward(cost_matrix, saved, *call.per_pair)
        ctx.set_materialize_grads(False)
        return value

    @staticmethod
    def backward(ctx, grad_value):
        cost_matrix, saved, *per_pair = ctx.saved_tensors
        per_pair = per_pair or NOTHING_PER_PAIR
        with below_autograd_if_first_order():
            value = kept(*ctx.value)
            if value is None:
                value, _ = ops.forward_from_cost(cost_matrix, *per_pair, *ctx.numbers, False)
            tensors = cost_matrix, value, saved, *per_pair
            return *_gradients_of_cost(tensors, ctx.numbers, ctx.needs_input_grad[:-1], grad_value), None


def below_autograd_if_first_order():
    return NOTHING_CHANGED if torch.is_grad_enabled() else below_autograd()


def refuse_tracing():
    """Raise under torch.jit.trace, which would write down the example's tensors as constants of an autograd.Function."""
    if torch.jit.is_tracing():
        raise RuntimeError(
            "torchsoftdtw has no gradients under torch.jit.trace, which PyTorch has deprecated: use torch.compile or "
            "torch.export, or trace under torch.no_grad()"
        )


def value_of_series(x, y, call):
    """The value of `forward`, differentiable with respect to x and y, and to gammas where there is no penalty."""
    if call.save:
        refuse_tracing()
        return _OfSeries.apply(x, y, call.gammas, call.warp_penalties, call)
    with below_autograd():
        return ops.forward(x, y, *call)[0]


def value_of_cost(cost_matrix, call):
    """The value of `forward_from_cost`, differentiable with respect to cost matrix, gammas and penalties."""
    if call.save:
        refuse_tracing()
        return _OfCost.apply(cost_matrix, call.gammas, call.warp_penalties, call)
    with below_autograd():
        return ops.forward_from_cost(cost_matrix, *call)[0]
