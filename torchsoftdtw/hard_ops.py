"""The ops of hard DTW as PyTorch sees them: fakes and autograd. Loaded by ops.py, with the libraries."""

import torch

from . import ops
from .derivatives import steps_of_spans

forward = torch.ops.torchsoftdtw.dtw.default
backward = torch.ops.torchsoftdtw.dtw_backward.default
forward_from_cost = torch.ops.torchsoftdtw.dtw_from_cost.default
backward_from_cost = torch.ops.torchsoftdtw.dtw_from_cost_backward.default


def _fake_forward(like, n, save):
    rows = n if save else 0
    return like.new_empty((like.shape[0],)), like.new_empty((like.shape[0], rows, 2), dtype=torch.int32)


@torch.library.register_fake("torchsoftdtw::dtw")
def _(
    x, y, x_lengths, y_lengths, bandwidths, warp_penalties, bandwidth, warp_penalty, open_ends, cost, save
):  # fmt: skip
    return _fake_forward(x, x.shape[1], save)


@torch.library.register_fake("torchsoftdtw::dtw_from_cost")
def _(cost_matrix, x_lengths, y_lengths, bandwidths, warp_penalties, bandwidth, warp_penalty, open_ends, save):
    return _fake_forward(cost_matrix, cost_matrix.shape[1], save)


@torch.library.register_fake("torchsoftdtw::dtw_backward")
def _(grad_value, x, y, value, spans, x_lengths, y_lengths, cost, need_x, need_y):
    return ops.fake_series_gradient(x, need_x), ops.fake_series_gradient(y, need_y)


@torch.library.register_fake("torchsoftdtw::dtw_from_cost_backward")
def _(grad_value, cost_matrix, value, spans, x_lengths, y_lengths):
    return cost_matrix.new_empty(cost_matrix.shape)


def _setup(ctx, inputs, output):
    x, y, x_lengths, y_lengths, _, _, _, _, _, ctx.cost, _ = inputs
    ctx.save_for_backward(x, y, *output, x_lengths, y_lengths)
    ctx.set_materialize_grads(False)


def _backward(ctx, grad_value, _grad_spans):
    need_x, need_y, *_, need_penalty = ctx.needs_input_grad[:6]
    if grad_value is None:
        return (None,) * 11
    grad_x = grad_y = grad_penalty = None
    if need_x or need_y:
        grad_x, grad_y = backward(grad_value, *ctx.saved_tensors, ctx.cost, need_x, need_y)
    if need_penalty:
        grad_penalty = grad_value * _steps(ctx.saved_tensors[2], ctx.saved_tensors[3])
    return (grad_x if need_x else None, grad_y if need_y else None, None, None, None, grad_penalty, *(None,) * 5)


def _setup_from_cost(ctx, inputs, output):
    cost_matrix, x_lengths, y_lengths, *_ = inputs
    ctx.save_for_backward(cost_matrix, *output, x_lengths, y_lengths)
    ctx.set_materialize_grads(False)


def _backward_from_cost(ctx, grad_value, _grad_spans):
    need_cost, *_, need_penalty = ctx.needs_input_grad[:5]
    if grad_value is None:
        return (None,) * 9
    grad_cost = backward_from_cost(grad_value, *ctx.saved_tensors) if need_cost else None
    grad_penalty = grad_value * _steps(ctx.saved_tensors[1], ctx.saved_tensors[2]) if need_penalty else None
    return (grad_cost, None, None, None, grad_penalty, *(None,) * 4)


def _steps(value, spans):
    """The derivative of the value with respect to the penalty; none where the value is not a number, and no path exists."""
    return steps_of_spans(spans).double().masked_fill(~value.isfinite(), torch.nan)


def _no_second_order(ctx, *grads):
    raise RuntimeError("hard DTW has no second derivatives: its backward pass cannot itself be differentiated")


class _OfSeries(torch.autograd.Function):
    """The op `dtw` with its derivative, without what PyTorch's registration costs per call, as in ops.py."""

    @staticmethod
    def forward(ctx, *inputs):
        with torch._C._AutoDispatchBelowAutograd():
            value, spans = forward(*inputs)
        _setup(ctx, inputs, (value, spans))
        ctx.mark_non_differentiable(spans)
        return value, spans

    @staticmethod
    def backward(ctx, grad_value, grad_spans):
        with ops.below_autograd_if_first_order():
            return _backward(ctx, grad_value, grad_spans)


class _OfCost(torch.autograd.Function):
    """The op `dtw_from_cost`, likewise."""

    @staticmethod
    def forward(ctx, *inputs):
        with torch._C._AutoDispatchBelowAutograd():
            value, spans = forward_from_cost(*inputs)
        _setup_from_cost(ctx, inputs, (value, spans))
        ctx.mark_non_differentiable(spans)
        return value, spans

    @staticmethod
    def backward(ctx, grad_value, grad_spans):
        with ops.below_autograd_if_first_order():
            return _backward_from_cost(ctx, grad_value, grad_spans)


def value_and_spans_of_series(*inputs):
    """`forward(*inputs)`, differentiable with respect to x, y and warp_penalties."""
    return forward(*inputs) if torch.compiler.is_compiling() else _OfSeries.apply(*inputs)


def value_and_spans_of_cost(*inputs):
    """`forward_from_cost(*inputs)`, differentiable with respect to the cost matrix and warp_penalties."""
    return forward_from_cost(*inputs) if torch.compiler.is_compiling() else _OfCost.apply(*inputs)


torch.library.register_autograd("torchsoftdtw::dtw", _backward, setup_context=_setup)
torch.library.register_autograd("torchsoftdtw::dtw_from_cost", _backward_from_cost, setup_context=_setup_from_cost)
torch.library.register_autograd("torchsoftdtw::dtw_backward", _no_second_order)
torch.library.register_autograd("torchsoftdtw::dtw_from_cost_backward", _no_second_order)
