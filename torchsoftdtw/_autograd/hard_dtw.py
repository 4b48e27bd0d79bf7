"""The gradients of hard DTW's ops, as autograd and torch.func know them."""

import torch

from .._inputs.arguments import wants_gradient
from .._internals import below_autograd, under_transform
from .._kernels import ops
from . import along_path
from .batching import left_alone, per_pair, under_compiled_transform
from .first_order import below_autograd_if_first_order, refuse_tracing
from .kept_value import keep, kept


def _series_gradients(saved, grad_value, cost, needed):
    return ops.dtw_backward(grad_value, *saved, cost, *needed)


def _cost_gradients(saved, grad_value, _cost, _needed):
    return (ops.dtw_from_cost_backward(grad_value, *saved),)


def _differentiable(name, op, tensors, gradients):
    """The op, whose first inputs are so many `tensors` (x and y, or a cost matrix), differentiable with respect to them and
    to warp_penalties in every way that there is.

    As in first_order.py, what is registered is for torch.compile and for those who call the op, and the autograd.Function
    does the same faster.
    """
    penalties = tensors + 3

    def setup(ctx, inputs, outputs):
        ctx.save_for_backward(*inputs[:tensors], *outputs, *inputs[tensors : tensors + 2], inputs[penalties])
        ctx.cost = inputs[-2] if tensors == 2 else None
        ctx.after_penalties = len(inputs) - penalties - 1
        ctx.set_materialize_grads(False)

    def differentiate(ctx, saved, grad_value):
        needed, need_penalty = ctx.needs_input_grad[:tensors], ctx.needs_input_grad[penalties]
        *saved, warp_penalties = saved
        value, spans, *lengths = saved[tensors:]
        found, grad_penalty = (None,) * tensors, None
        if grad_value is None:
            pass
        elif torch.is_grad_enabled():
            path = along_path.Path(value, spans, *lengths)
            inputs = (*saved[:tensors], warp_penalties)
            *found, grad_penalty = along_path.gradients(grad_value, path, inputs, ctx.cost, (*needed, need_penalty))
        else:
            if any(needed):
                found = gradients(saved, grad_value, ctx.cost, needed)
            if need_penalty:
                grad_penalty = per_pair(grad_value, along_path.steps(value, spans))
        found = (gradient if need else None for gradient, need in zip(found, needed, strict=True))
        return *found, None, None, None, grad_penalty, *(None,) * ctx.after_penalties

    class Differentiable(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            with below_autograd():
                value, spans = op(*inputs)
            setup(ctx, inputs, (spans,))
            ctx.mark_non_differentiable(spans)
            ctx.value = keep(value)
            return value, spans

        @staticmethod
        def backward(ctx, grad_value, _grad_spans):
            saved = ctx.saved_tensors  # outside, as in first_order.py
            with below_autograd_if_first_order():
                value = kept(*ctx.value)
                if value is None:
                    value = finite_where_a_path_is(saved[tensors], grad_value)
                return differentiate(ctx, (*saved[:tensors], value, *saved[tensors:]), grad_value)

    @left_alone
    def under_func(*inputs):
        return along_path.value_and_spans(op, tensors, inputs)

    def value_and_spans(*inputs):
        if torch.compiler.is_compiling():
            return under_func(*inputs) if under_compiled_transform() else op(*inputs)
        if under_transform():
            return under_func(*inputs)
        if not wants_gradient(*inputs[:tensors], inputs[penalties]):
            with below_autograd():
                return op(*inputs)
        refuse_tracing()
        return Differentiable.apply(*inputs)

    def setup_registered(ctx, inputs, output):
        value, spans = output
        setup(ctx, inputs, (value.clone(), spans))  # as in first_order.py

    def registered(ctx, grad_value, _grad_spans):
        return differentiate(ctx, ctx.saved_tensors, grad_value)

    torch.library.register_autograd(f"torchsoftdtw::{name}", registered, setup_context=setup_registered)
    return value_and_spans


def finite_where_a_path_is(spans, like):
    """(B,): 0 for a pair that has a path, NaN for one that has none. Derivatives ask no more of a value."""
    first, last = spans[:, 0].unbind(1)
    return torch.where(first <= last, 0.0, torch.nan).to(like)


def _no_second_order(ctx, *grads):
    raise RuntimeError(
        "the ops dtw_backward and dtw_from_cost_backward have no derivatives; use torchsoftdtw.dtw, which has them"
    )


torch.library.register_autograd("torchsoftdtw::dtw_backward", _no_second_order)
torch.library.register_autograd("torchsoftdtw::dtw_from_cost_backward", _no_second_order)

value_and_spans_of_series = _differentiable("dtw", ops.dtw, 2, _series_gradients)
value_and_spans_of_cost = _differentiable("dtw_from_cost", ops.dtw_from_cost, 1, _cost_gradients)
