"""The gradients of soft-DTW's ops, as autograd knows them."""

import contextlib

import torch

from .._inputs.arguments import PER_PAIR
from .._kernels import ops
from .derivatives import of_gamma_and_penalty, path_cost_by_euler, sums_over_alignment


def _keep(ctx, inputs, tensors, output):
    """For backward: an op's tensors, what it answered and the tensors per pair; and the rest, but `save`, the last one."""
    rest = tensors + PER_PAIR
    ctx.options = inputs[rest:-1]
    ctx.save_for_backward(*inputs[:tensors], *output, *inputs[tensors:rest])
    ctx.set_materialize_grads(False)


def _setup_forward(ctx, inputs, output):
    _keep(ctx, inputs, 2, output)


def _backward(options, needs, saved, grad_value):
    """The gradients of x, y, gammas and warp_penalties, of which `needs` says which are asked for."""
    need_x, need_y, need_gamma, need_penalty = needs
    if grad_value is None:
        return None, None, None, None
    if need_gamma or need_penalty:
        return _backward_with_gamma(options, needs, saved, grad_value)
    grad_x, grad_y = ops.backward(grad_value, *saved, *options, need_x, need_y)
    return grad_x if need_x else None, grad_y if need_y else None, None, None


def _backward_with_gamma(options, needs, saved, grad_value):
    """With (6), whose <E, C> follows from the gradients of one unit of value."""
    x, y, value, _, x_lengths, y_lengths, _, gammas, penalties = saved
    need_x, need_y, _, need_penalty = needs
    _, _, warp_penalty, cost, *_ = options
    if need_penalty or penalties is not None or warp_penalty != 0:
        raise RuntimeError(
            "torchsoftdtw::forward has no gradient to gammas beside a warp penalty, nor one to warp_penalties; "
            "torchsoftdtw::forward_from_cost has both"
        )
    unit_x, unit_y = ops.backward(torch.ones_like(value), *saved, *options, True, True)
    path_cost = path_cost_by_euler(cost, x, y, unit_x, unit_y, x_lengths, y_lengths)
    grad_gamma, _ = of_gamma_and_penalty(value, path_cost, None, None, gammas)
    each = grad_value[:, None, None]
    return unit_x * each if need_x else None, unit_y * each if need_y else None, grad_gamma * grad_value, None


def _setup_forward_from_cost(ctx, inputs, output):
    _keep(ctx, inputs, 1, output)


def _backward_from_cost(options, needs, saved, grad_value):
    """The gradients of the cost matrix, gammas and warp_penalties."""
    need_cost, need_gamma, need_penalty = needs
    if grad_value is None:
        return None, None, None
    if not (need_gamma or need_penalty):
        return ops.backward_from_cost(grad_value, *saved, *options), None, None
    cost_matrix, value, _, x_lengths, y_lengths, _, gammas, penalties = saved
    alignment = ops.backward_from_cost(torch.ones_like(value), *saved, *options)
    _, gamma, warp_penalty, *_ = options
    gamma, warp_penalty = gamma if gammas is None else gammas, warp_penalty if penalties is None else penalties
    path_cost, steps = sums_over_alignment(cost_matrix, alignment, gamma, x_lengths, y_lengths)
    grad_gamma, grad_penalty = of_gamma_and_penalty(value, path_cost, steps, warp_penalty, gamma)
    return (
        alignment * grad_value[:, None, None] if need_cost else None,
        grad_gamma * grad_value if need_gamma else None,
        grad_penalty * grad_value if need_penalty else None,
    )


def _registered(backward, tensors):
    """The derivative of an op as PyTorch registers it: one gradient, or None, for each of its inputs."""

    def of_op(ctx, grad_value, _):
        needs = ctx.needs_input_grad
        wanted = *needs[:tensors], *needs[tensors + PER_PAIR - 2 : tensors + PER_PAIR]
        *gradients, grad_gamma, grad_penalty = backward(ctx.options, wanted, ctx.saved_tensors, grad_value)
        rest = len(needs) - tensors - PER_PAIR
        return (*gradients, *(None,) * (PER_PAIR - 2), grad_gamma, grad_penalty, *(None,) * rest)

    return of_op


torch.library.register_autograd("torchsoftdtw::forward", _registered(_backward, tensors=2), setup_context=_setup_forward)
torch.library.register_autograd(
    "torchsoftdtw::forward_from_cost", _registered(_backward_from_cost, tensors=1), setup_context=_setup_forward_from_cost
)
# The derivatives of the other ops are in second_order.py.


class _OfSeries(torch.autograd.Function):
    """The op `forward` with its derivative, of (x, y, gammas, warp_penalties, inputs of the op). What is registered above
    does the same, for torch.compile and for those who call the op, but PyTorch runs it argument by argument in Python,
    which takes longer than a small problem."""

    @staticmethod
    def forward(ctx, x, y, gammas, penalties, inputs):
        with torch._C._AutoDispatchBelowAutograd():
            value, saved = ops.forward(*inputs)
        _setup_forward(ctx, inputs, (value, saved))
        return value

    @staticmethod
    def backward(ctx, grad_value):
        saved = ctx.saved_tensors  # outside: activation checkpointing computes them anew here, under autograd
        with below_autograd_if_first_order():
            return *_backward(ctx.options, ctx.needs_input_grad[:-1], saved, grad_value), None


class _OfCost(torch.autograd.Function):
    """The op `forward_from_cost`, of (cost_matrix, gammas, warp_penalties, inputs of the op), likewise."""

    @staticmethod
    def forward(ctx, cost_matrix, gammas, penalties, inputs):
        with torch._C._AutoDispatchBelowAutograd():
            value, saved = ops.forward_from_cost(*inputs)
        _setup_forward_from_cost(ctx, inputs, (value, saved))
        return value

    @staticmethod
    def backward(ctx, grad_value):
        saved = ctx.saved_tensors
        with below_autograd_if_first_order():
            return *_backward_from_cost(ctx.options, ctx.needs_input_grad[:-1], saved, grad_value), None


def below_autograd_if_first_order():
    return contextlib.nullcontext() if torch.is_grad_enabled() else torch._C._AutoDispatchBelowAutograd()


def refuse_tracing():
    """Raise under torch.jit.trace, which would write down the example's tensors as constants of an autograd.Function."""
    if torch.jit.is_tracing():
        raise RuntimeError(
            "torchsoftdtw has no gradients under torch.jit.trace, which PyTorch has deprecated: take torch.compile or "
            "torch.export, or trace under torch.no_grad()"
        )


def value_of_series(*inputs):
    """The value of `forward(*inputs)`, differentiable with respect to x and y, and to gammas where there is no penalty."""
    save = inputs[-1]
    if save:
        refuse_tracing()
        return _OfSeries.apply(*inputs[:2], *inputs[2 + PER_PAIR - 2 : 2 + PER_PAIR], inputs)
    with torch._C._AutoDispatchBelowAutograd():
        return ops.forward(*inputs)[0]


def value_of_cost(*inputs):
    """The value of `forward_from_cost(*inputs)`, differentiable with respect to cost matrix, gammas and penalties."""
    save = inputs[-1]
    if save:
        refuse_tracing()
        return _OfCost.apply(inputs[0], *inputs[1 + PER_PAIR - 2 : 1 + PER_PAIR], inputs)
    with torch._C._AutoDispatchBelowAutograd():
        return ops.forward_from_cost(*inputs)[0]
