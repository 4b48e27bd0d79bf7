"""Which way to differentiate: the fast functions of first_order.py, the ops themselves for torch.compile, or, under
torch.func (grad, vjp, jvp, vmap, jacrev, hessian, ...) and forward-mode dual numbers, the functions here.

These keep nothing but their inputs, so that any nesting of transforms works; their backward pass begins with a forward
pass. A mapped dimension is folded into the batch.
"""

import torch

from .._internals import under_transform
from .._kernels import ops
from .._kernels.inputs import GradientCall
from . import first_order
from .batching import fold, folds_batches, in_graph, inner, per_pair, under_compiled_transform, unfold
from .second_order import (
    OPTIONS,
    PER_PAIR,
    Alignment,
    AlignmentTimes,
    HessianProduct,
    along_direction,
    gradient_backward,
    refuse_gammas,
)


def value_of_series(x, y, call):
    """The value (B,) for a SeriesCall, differentiable as in first_order.py."""
    if torch.compiler.is_compiling():
        return _series_in_graph(x, y, *call[:-1]) if under_compiled_transform() else ops.forward(x, y, *call)[0]
    return OfSeries.apply(x, y, *call[:-1]) if under_transform() else first_order.value_of_series(x, y, call)


def value_of_cost(cost_matrix, call):
    """The value (B,) for a CostCall, differentiable with respect to the cost matrix."""
    if torch.compiler.is_compiling():
        in_transform = under_compiled_transform()
        return _cost_in_graph(cost_matrix, *call[:-1]) if in_transform else ops.forward_from_cost(cost_matrix, *call)[0]
    return OfCost.apply(cost_matrix, *call[:-1]) if under_transform() else first_order.value_of_cost(cost_matrix, call)


def alignment_of_cost(*inputs):
    """(cost_matrix, *options, *plan) -> value (B,), E (B, N, M), both differentiable with respect to the cost matrix."""
    if not torch.compiler.is_compiling():
        return Alignment.apply(*inputs)
    if under_compiled_transform():
        return _alignment_in_graph(*inputs)
    value, saved = ops.forward_from_cost(*inputs, True)
    cost_matrix, *rest = inputs
    alignment = ops.backward_from_cost(torch.ones_like(value), cost_matrix, value, saved, *rest)
    return value, alignment - (alignment.detach() - 1).clamp(min=0)  # at most 1, without a say in the derivative


@folds_batches
class OfSeries(torch.autograd.Function):
    """(x, y, *options, cost, *plan) -> value (B,)."""

    @staticmethod
    def forward(*inputs):
        return ops.forward(*inputs, False)[0]

    @staticmethod
    def setup_context(ctx, inputs, output):
        _keep(ctx, inputs, tensors=2)

    @staticmethod
    def backward(ctx, grad_value):
        refuse_gammas(ctx.needs_input_grad[2:])
        x, y, *rest = _kept(ctx)
        needed = ctx.needs_input_grad[:2]
        gradients = GradientOfSeries.apply(grad_value, x, y, *rest, *needed)
        return *(g if need else None for g, need in zip(gradients, needed, strict=True)), *(None,) * len(rest)

    @staticmethod
    def jvp(ctx, *tangents):
        _refuse_tangents(tangents[2:])
        x, y, *rest = _kept(ctx)
        needed = [tangent is not None for tangent in tangents[:2]]
        gradients = GradientOfSeries.apply(x.new_ones(x.shape[0]), x, y, *rest, *needed)
        return sum(inner(gradients[k], tangents[k]) for k in range(2) if needed[k])


class GradientOfSeries(torch.autograd.Function):
    """(grad_value, x, y, *options, cost, *plan, need_x, need_y) -> grad_x, grad_y; (B, 0, 0) for one that is not needed."""

    @staticmethod
    def forward(grad_value, x, y, *rest):
        call = GradientCall(*rest)
        value, saved = ops.forward(x, y, *call.of_forward, True)
        gradients = ops.backward(grad_value.contiguous(), x, y, value, saved, *rest)
        # What the op returns is a view, and PyTorch wants the tangent of a view in the same strides.
        return tuple(
            gradient.clone(memory_format=torch.contiguous_format) if need else x.new_empty((x.shape[0], 0, 0))
            for gradient, need in zip(gradients, call.needs, strict=True)
        )

    @staticmethod
    def setup_context(ctx, inputs, output):
        _keep(ctx, inputs, tensors=3)

    @staticmethod
    def backward(ctx, u, w):
        refuse_gammas(ctx.needs_input_grad[3:])
        grad_value, x, y, *rest = _kept(ctx)
        call = GradientCall(*rest)
        directions = (u if call.need_x else None, w if call.need_y else None)
        gradients = gradient_backward(*directions, grad_value, x, y, call.options, call.cost)
        return *gradients, *(None,) * len(rest)

    @staticmethod
    def jvp(ctx, value_tangent, u, w, *of_options):
        _refuse_tangents(of_options)
        grad_value, x, y, *rest = _kept(ctx)
        call = GradientCall(*rest)
        tangents = [x.new_zeros((x.shape[0], 0, 0))] * 2
        if u is not None or w is not None:
            products = along_direction(u, w, x, y, call.options, call.cost)[1:]
            tangents = [
                per_pair(grad_value, p) if need else t for p, t, need in zip(products, tangents, call.needs, strict=True)
            ]
        if value_tangent is not None:
            of_value = GradientOfSeries.apply(value_tangent, x, y, *rest)
            tangents = [a + b if need else a for a, b, need in zip(tangents, of_value, call.needs, strict=True)]
        return tuple(tangents)

    @staticmethod
    def vmap(info, in_dims, *inputs):
        size = info.batch_size
        dim, *others = in_dims
        if all(d is None for d in others):
            # Many gradients of the same pairs, as jacrev asks for: one, scaled.
            grad_value, *rest = inputs
            factors = grad_value.movedim(dim, 0)
            gradients = GradientOfSeries.apply(torch.ones_like(factors[0]), *rest)
            return tuple(per_pair(factors, gradient) for gradient in gradients), (0, 0)
        gradients = GradientOfSeries.apply(*fold(size, in_dims, inputs))
        batch = gradients[0].shape[0] // size
        return tuple(unfold(gradient, size, batch) for gradient in gradients), (0, 0)


@folds_batches
class OfCost(torch.autograd.Function):
    """(cost_matrix, *options, *plan) -> value (B,)."""

    @staticmethod
    def forward(*inputs):
        return ops.forward_from_cost(*inputs, False)[0]

    @staticmethod
    def setup_context(ctx, inputs, output):
        _keep(ctx, inputs, tensors=1)

    @staticmethod
    def backward(ctx, grad_value):
        refuse_gammas(ctx.needs_input_grad[1:])
        cost_matrix, *rest = _kept(ctx)
        return AlignmentTimes.apply(grad_value, cost_matrix, *rest), *(None,) * len(rest)

    @staticmethod
    def jvp(ctx, tangent, *of_options):
        _refuse_tangents(of_options)
        cost_matrix, *rest = _kept(ctx)
        return HessianProduct.apply(cost_matrix, tangent, *rest[:OPTIONS], False)[0]


_series_in_graph, _cost_in_graph, _alignment_in_graph = map(in_graph, (OfSeries, OfCost, Alignment))


def _refuse_tangents(of_options):
    refuse_gammas([tangent is not None for tangent in of_options])


def _keep(ctx, inputs, tensors):
    """Everything, the tensors among it as PyTorch wants them saved."""
    ctx.numbers = inputs[tensors + PER_PAIR :]
    ctx.set_materialize_grads(False)
    saved = inputs[: tensors + PER_PAIR]
    ctx.save_for_backward(*saved)
    ctx.save_for_forward(*saved)


def _kept(ctx):
    return *ctx.saved_tensors, *ctx.numbers
