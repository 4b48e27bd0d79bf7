"""The gradients of the ops of elastic measures, as autograd and torch.func know them: of the first order.

An op's tensors come first, each beginning with the batch of pairs, or None; `rest` are numbers and names. Gradients are
(13) of csrc/core/elastic.h.
"""

import torch

from .._inputs.arguments import wants_gradient
from .._internals import below_autograd, under_transform
from .._kernels import ops
from .batching import folds_batches, left_alone, under_compiled_transform

SECOND_ORDER = (
    "elastic measures have gradients of the first order, by backward() or torch.func.grad and vjp; second derivatives and "
    "forward mode exist for soft_dtw and dtw"
)


class Of:
    """One op, of `tensors` many, and which of its inputs have gradients: at `places`."""

    def __init__(self, name, forward, backward, tensors, places):
        self.name, self.tensors, self.places = name, tensors, places
        self.forward, self.backward = forward, backward
        self.fast, self.pure = _fast(self), _pure(self)
        self.under_func = left_alone(lambda *inputs: self.pure.apply(*inputs))
        torch.library.register_autograd(f"torchsoftdtw::{name}", self._registered, setup_context=self._keep)

    def value(self, *inputs):
        """The values (B,) of the pairs, differentiable."""
        if torch.compiler.is_compiling():
            return self.under_func(*inputs) if under_compiled_transform() else self.forward(*inputs, True)[0]
        if under_transform():
            return self.pure.apply(*inputs)
        if not wants_gradient(*(inputs[place] for place in self.places)):
            with below_autograd():
                return self.forward(*inputs, False)[0]
        return self.fast.apply(*inputs)[0]

    def value_and_spans(self, *inputs):
        """The values, and the paths of hard ones as the op saves them, of which nothing is differentiable."""
        if under_transform():
            raise RuntimeError("elastic_path: torch.func cannot map paths, which differ in length; call the measure itself")
        return self.fast.apply(*inputs)

    def gradients(self, tensors, rest, value, saved, grad_value, needs):
        """One for each of `places`, or None; `needs` says which are asked for."""
        found = self.backward(tensors, rest, value, saved, grad_value.contiguous(), needs)
        return [gradient if need else None for gradient, need in zip(found, needs, strict=True)]

    def answer(self, count, gradients):
        answer = [None] * count
        for place, gradient in zip(self.places, gradients, strict=True):
            answer[place] = gradient
        return tuple(answer)

    def _keep(self, ctx, inputs, output):
        value, saved = output
        ctx.rest = inputs[self.offset + self.tensors : -1]
        ctx.save_for_backward(*inputs[self.offset : self.offset + self.tensors], value.clone(), saved)
        ctx.set_materialize_grads(False)

    def _registered(self, ctx, grad_value, _grad_saved):
        *tensors, value, saved = ctx.saved_tensors
        count = self.offset + len(tensors) + len(ctx.rest) + 1
        if grad_value is None:
            return (None,) * count
        needs = [ctx.needs_input_grad[self.offset + place] for place in self.places]
        found = self.gradients(tensors, ctx.rest, value, saved, grad_value, needs)
        return (None,) * self.offset + self.answer(count - self.offset, found)

    @property
    def offset(self):
        """How many inputs the op has before those: which series a pair has."""
        return 2 if self.name == "elastic" else 0


def _fast(op):
    class Fast(torch.autograd.Function):
        """(*tensors, *rest) -> value, saved."""

        @staticmethod
        def forward(ctx, *inputs):
            with below_autograd():
                value, saved = op.forward(*inputs, True)
            ctx.rest = inputs[op.tensors :]
            ctx.save_for_backward(*inputs[: op.tensors], value.clone(), saved)
            ctx.mark_non_differentiable(saved)
            ctx.set_materialize_grads(False)
            return value, saved

        @staticmethod
        def backward(ctx, grad_value, _grad_saved):
            *tensors, value, saved = ctx.saved_tensors
            count = op.tensors + len(ctx.rest)
            if grad_value is None:
                return (None,) * count
            needs = [ctx.needs_input_grad[place] for place in op.places]
            if not torch.is_grad_enabled():
                found = op.gradients(tensors, ctx.rest, value, saved, grad_value, needs)
                return op.answer(count, found)
            found = iter(OfFirstOrder.apply(op, ctx.rest, needs, grad_value, value, saved, *tensors))
            return op.answer(count, [next(found) if need else None for need in needs])

    return Fast


class OfFirstOrder(torch.autograd.Function):
    """(op, rest, needs, grad_value, value, saved, *tensors) -> the gradients that are needed, which have none."""

    @staticmethod
    def forward(ctx, op, rest, needs, grad_value, value, saved, *tensors):
        found = op.gradients(tensors, rest, value, saved, grad_value, needs)
        return tuple(gradient for gradient in found if gradient is not None)

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError(SECOND_ORDER)


def _pure(op):
    @folds_batches
    class Gradients(torch.autograd.Function):
        """(grad_value, *inputs, *needs) -> the gradients that are needed. Keeps nothing, so that transforms may nest."""

        @staticmethod
        def forward(grad_value, *inputs):
            inputs, needs = inputs[: -len(op.places)], inputs[-len(op.places) :]
            tensors, rest = inputs[: op.tensors], inputs[op.tensors :]
            value, saved = op.forward(*inputs, True)
            found = op.gradients(tensors, rest, value, saved, grad_value, needs)
            return tuple(gradient.contiguous() for gradient in found if gradient is not None)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, *_):
            raise RuntimeError(SECOND_ORDER)

        @staticmethod
        def jvp(ctx, *_):
            raise RuntimeError(SECOND_ORDER)

    @folds_batches
    class Pure(torch.autograd.Function):
        """(*tensors, *rest) -> value."""

        @staticmethod
        def forward(*inputs):
            return op.forward(*inputs, False)[0]

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs[: op.tensors])
            ctx.rest = inputs[op.tensors :]

        @staticmethod
        def backward(ctx, grad_value):
            tensors = ctx.saved_tensors
            needs = [ctx.needs_input_grad[place] for place in op.places]
            found = iter(Gradients.apply(grad_value, *tensors, *ctx.rest, *needs)) if any(needs) else iter(())
            return op.answer(op.tensors + len(ctx.rest), [next(found) if need else None for need in needs])

        @staticmethod
        def jvp(ctx, *_):
            raise RuntimeError(SECOND_ORDER)

    return Pure


def _forward(*inputs):
    return ops.elastic(None, None, *inputs)


def _backward(tensors, rest, value, saved, grad_value, needs):
    series, options = tensors[:6], tensors[6:]
    need_x, need_y, need_x_times, need_y_times, need_x_gaps, need_y_gaps, need_gamma, need_parameter = needs
    flags = need_x, need_y, need_x_times or need_y_times, need_x_gaps or need_y_gaps, need_gamma or need_parameter
    *found, parameter, gamma = ops.elastic_backward(None, None, grad_value, *series, value, saved, *options, *rest, *flags)
    return *found, gamma.double(), parameter.double()


def _backward_from_costs(tensors, rest, value, saved, grad_value, needs):
    costs, options = tensors[:3], tensors[3:]
    *found, gamma = ops.elastic_from_costs_backward(grad_value, *costs, value, saved, *options, *rest, needs[3])
    return *found, gamma.double()


def _no_second_order(ctx, *grads):
    raise RuntimeError(SECOND_ORDER)


torch.library.register_autograd("torchsoftdtw::elastic_backward", _no_second_order)
torch.library.register_autograd("torchsoftdtw::elastic_from_costs_backward", _no_second_order)

# x, y, x_times, y_times, x_gaps, y_gaps; x_lengths, y_lengths, bandwidths; gammas, parameters.
OF_SERIES = Of("elastic", _forward, _backward, 11, (0, 1, 2, 3, 4, 5, 9, 10))
# diagonal, up, left; x_lengths, y_lengths, bandwidths; gammas.
OF_COSTS = Of("elastic_from_costs", ops.elastic_from_costs, _backward_from_costs, 7, (0, 1, 2, 6))
