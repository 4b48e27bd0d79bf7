"""What lies beyond the gradient: the alignment E as a tensor, and its derivatives along a direction of the costs (7).

Mensch & Blondel, "Differentiable dynamic programming for structured prediction and attention", ICML 2018. Every derivative
here is one of four functions of a cost matrix C, all of them kernels:

    V          the value                                  ops.forward_from_cost
    g E        its gradient                               ops.backward_from_cost, AlignmentTimes
    H Z        E's derivative along Z                     ops.hessian_product, HessianProduct
    T[Z, W]    that of H Z along W                        ops.third_order_product, ThirdOrderProduct

Each one's derivative is made of the next ones, so all orders up to the third work, in reverse and in forward mode, under
vmap and compiled. Series reach them through their cost matrix. As everywhere, `options` are arguments.Options.
"""

import torch

from .._costs import KERNEL_COSTS
from .._inputs import cost as costs
from .._inputs.arguments import PER_PAIR, Options
from .._kernels import ops
from .._kernels.inputs import GradientCall
from .batching import folds_batches, inner, per_pair
from .cost_matrix import CostMatrix

OPTIONS = len(Options._fields)


def refuse_gammas(asked):
    """Raise where a derivative with respect to gammas or penalties is asked for; `asked` is by option per pair."""
    if any(asked[PER_PAIR - 2 : PER_PAIR]):
        raise RuntimeError(
            "gamma and warp_penalty have derivatives of the value only, of the first order, in reverse mode and outside "
            "torch.func; detach them"
        )


class _OfCost(torch.autograd.Function):
    """Inputs: some tensors, then the options, then whatever `rest` there is. Saves the tensors, the options and outputs."""

    tensors = 1  # how many come before the options

    @classmethod
    def keep(cls, ctx, inputs, outputs):
        tensors, options = inputs[: cls.tensors], inputs[cls.tensors : cls.tensors + OPTIONS]
        ctx.rest = inputs[cls.tensors + OPTIONS :]
        ctx.numbers = options[PER_PAIR:]
        ctx.set_materialize_grads(False)
        saved = (*tensors, *options[:PER_PAIR], *outputs)
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)

    @classmethod
    def kept(cls, ctx):
        """(tensors, options, outputs), in reverse mode."""
        refuse_gammas(ctx.needs_input_grad[cls.tensors : cls.tensors + PER_PAIR])
        return cls.kept_for_tangents(ctx)

    @classmethod
    def kept_for_tangents(cls, ctx, *of_options):
        """The same in forward mode, with the tangents of what follows the tensors."""
        refuse_gammas([tangent is not None for tangent in of_options[:PER_PAIR]])
        saved = ctx.saved_tensors
        split = cls.tensors + PER_PAIR
        return saved[: cls.tensors], (*saved[cls.tensors : split], *ctx.numbers), saved[split:]

    @classmethod
    def gradients(cls, ctx, *of_tensors):
        return *of_tensors, *(None,) * (OPTIONS + len(ctx.rest))


@folds_batches
class Alignment(_OfCost):
    """(cost_matrix, *options, *plan) -> value (B,), E (B, N, M)."""

    @staticmethod
    def forward(*inputs):
        value, saved = ops.forward_from_cost(*inputs, True)
        cost_matrix, *rest = inputs
        alignment = ops.backward_from_cost(torch.ones_like(value), cost_matrix, value, saved, *rest)
        return value, alignment.clamp_(max=1)  # rounding may leave an entry a little above

    @staticmethod
    def setup_context(ctx, inputs, outputs):
        Alignment.keep(ctx, inputs, outputs[1:])

    @staticmethod
    def backward(ctx, grad_value, grad_alignment):
        (cost_matrix,), options, (alignment,) = Alignment.kept(ctx)
        grad = None if grad_value is None else per_pair(grad_value, alignment)
        if grad_alignment is not None:
            grad = _plus(grad, HessianProduct.apply(cost_matrix, grad_alignment, *options, False)[2])
        return Alignment.gradients(ctx, grad)

    @staticmethod
    def jvp(ctx, tangent, *of_options):
        (cost_matrix,), options, _ = Alignment.kept_for_tangents(ctx, *of_options)
        value_tangent, _, alignment_tangent = HessianProduct.apply(cost_matrix, tangent, *options, False)
        return value_tangent, alignment_tangent


@folds_batches
class AlignmentTimes(_OfCost):
    """(factor (B,), cost_matrix, *options, *plan) -> factor E: the op backward_from_cost, which brings its forward pass."""

    tensors = 2

    @staticmethod
    def forward(factor, cost_matrix, *rest):
        value, saved = ops.forward_from_cost(cost_matrix, *rest, True)
        return ops.backward_from_cost(factor.contiguous(), cost_matrix, value, saved, *rest)

    @staticmethod
    def setup_context(ctx, inputs, output):
        AlignmentTimes.keep(ctx, inputs, ())

    @staticmethod
    def backward(ctx, grad):
        (factor, cost_matrix), options, _ = AlignmentTimes.kept(ctx)
        return AlignmentTimes.gradients(ctx, *_alignment_times_backward(grad, factor, cost_matrix, options))

    @staticmethod
    def jvp(ctx, factor_tangent, tangent, *of_options):
        (factor, cost_matrix), options, _ = AlignmentTimes.kept_for_tangents(ctx, *of_options)
        total = None
        if factor_tangent is not None:
            total = AlignmentTimes.apply(factor_tangent, cost_matrix, *options, *ctx.rest)
        if tangent is not None:
            total = _plus(total, per_pair(factor, HessianProduct.apply(cost_matrix, tangent, *options, False)[2]))
        return total


def _alignment_times_backward(grad, factor, cost_matrix, options):
    along, _, product = HessianProduct.apply(cost_matrix, grad, *options, False)
    return along, per_pair(factor, product)


@folds_batches
class HessianProduct(_OfCost):
    """(cost_matrix, tangent, *options, need_alignment) -> <E, tangent> (B,), E if needed, H tangent (B, N, M)."""

    tensors = 2

    @staticmethod
    def forward(*inputs):
        return ops.hessian_product(*inputs)

    @staticmethod
    def setup_context(ctx, inputs, output):
        HessianProduct.keep(ctx, inputs, output[2:])

    @staticmethod
    def backward(ctx, grad_along, grad_alignment, grad_product):
        (cost_matrix, tangent), options, (product,) = HessianProduct.kept(ctx)
        grad_cost = grad_tangent = None
        if grad_along is not None:
            alignment = HessianProduct.apply(cost_matrix, tangent, *options, True)[1]
            grad_cost, grad_tangent = per_pair(grad_along, product), per_pair(grad_along, alignment)
        if grad_alignment is not None and ctx.rest[0]:
            grad_cost = _plus(grad_cost, HessianProduct.apply(cost_matrix, grad_alignment, *options, False)[2])
        if grad_product is not None:
            along_grad, third = third_order_product(cost_matrix, grad_product, tangent, *options)
            grad_cost, grad_tangent = _plus(grad_cost, third), _plus(grad_tangent, along_grad)
        return HessianProduct.gradients(ctx, grad_cost, grad_tangent)

    @staticmethod
    def jvp(ctx, cost_tangent, tangent_tangent, *of_options):
        (cost_matrix, tangent), options, (product,) = HessianProduct.kept_for_tangents(ctx, *of_options)
        need_alignment = ctx.rest[0]
        along = alignment_tangent = product_tangent = None
        if tangent_tangent is not None:
            along, _, product_tangent = HessianProduct.apply(cost_matrix, tangent_tangent, *options, False)
        if cost_tangent is not None:
            alignment_tangent, third = third_order_product(cost_matrix, cost_tangent, tangent, *options)
            along, product_tangent = _plus(along, inner(product, cost_tangent)), _plus(product_tangent, third)
        if not need_alignment:
            alignment_tangent = product.new_zeros((product.shape[0], 0, 0))
        elif alignment_tangent is None:
            alignment_tangent = torch.zeros_like(product)
        return along, alignment_tangent, product_tangent


@folds_batches
class ThirdOrderProduct(_OfCost):
    """(cost_matrix, first, second, *options) -> H first, and the derivative of that along second, T[first, second].

    Both are linear in the directions, and T is symmetric, so that derivatives along these are products of the same kinds.
    The cost matrix has to come through `_Last`, which refuses one along it.
    """

    tensors = 3

    @staticmethod
    def forward(*inputs):
        return ops.third_order_product(*inputs)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ThirdOrderProduct.keep(ctx, inputs, output[:1])

    @staticmethod
    def backward(ctx, grad_along, grad_third):
        (cost_matrix, first, second), options, _ = ThirdOrderProduct.kept(ctx)
        grad_first = grad_second = None
        if grad_along is not None:
            grad_first = HessianProduct.apply(cost_matrix, grad_along, *options, False)[2]
        if grad_third is not None:
            grad_first = _plus(grad_first, third_order_product(cost_matrix, grad_third, second, *options)[1])
            grad_second = third_order_product(cost_matrix, grad_third, first, *options)[1]
        return ThirdOrderProduct.gradients(ctx, None, grad_first, grad_second)

    @staticmethod
    def jvp(ctx, _, first_tangent, second_tangent, *of_options):
        (cost_matrix, first, second), options, (along,) = ThirdOrderProduct.kept_for_tangents(ctx, *of_options)
        along_tangent, third_tangent = torch.zeros_like(along), None
        if first_tangent is not None:
            along_tangent, third_tangent = third_order_product(cost_matrix, first_tangent, second, *options)
        if second_tangent is not None:
            third_tangent = _plus(third_tangent, third_order_product(cost_matrix, first, second_tangent, *options)[1])
        return along_tangent, third_tangent


@folds_batches
class _Last(torch.autograd.Function):
    """The same tensor, without a derivative: an error for who asks for it, and only for them.

    The function that the tensor goes into does not know: ctx.needs_input_grad says what requires a gradient, not whether
    one is being computed. This one's backward pass runs where it is.
    """

    @staticmethod
    def forward(cost_matrix):
        return cost_matrix.view_as(cost_matrix)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError(FOURTH_ORDER)

    @staticmethod
    def jvp(ctx, tangent):
        raise RuntimeError(FOURTH_ORDER)


def third_order_product(cost_matrix, *rest):
    return ThirdOrderProduct.apply(_Last.apply(cost_matrix), *rest)


FOURTH_ORDER = (
    "soft-DTW has derivatives up to the third order (an alignment up to the second), and this asks for one more: "
    "differentiate fewer times, or detach a factor"
)


def gradient_backward(u, w, grad_value, x, y, options, cost):
    """The derivative of <u, grad_x> + <w, grad_y> with respect to grad_value, x and y, all of soft-DTW's backward pass.

    That inner product is grad_value <E, Z>, Z the derivative of the costs along (u, w), so its own derivative is made of
    H Z, and of E on the second derivative of the costs. u or w may be None.
    """
    along, of_x, of_y = along_direction(u, w, x, y, options, cost)
    return along, per_pair(grad_value, of_x), per_pair(grad_value, of_y)


def along_direction(u, w, x, y, options, cost):
    """<E, Z> (B,), and the derivatives along (u, w) of soft-DTW's gradients with respect to x and y."""
    u = torch.zeros_like(x) if u is None else u
    w = torch.zeros_like(y) if w is None else w
    x, u = (costs.without_padding(series, options[0]) for series in (x, u))
    y, w = (costs.without_padding(series, options[1]) for series in (y, w))
    matrix = CostMatrix.apply(x, y, cost)
    formulas = KERNEL_COSTS[cost]
    tangent = formulas.push_forward(u, w, x, y, matrix)
    along, alignment, product = HessianProduct.apply(matrix, tangent, *options, True)
    straight = formulas.pull_back(product, x, y, matrix)
    bent = formulas.bend(alignment, tangent, u, w, x, y, matrix)
    return along, straight[0] + bent[0], straight[1] + bent[1]


def _plus(a, b):
    return b if a is None else a + b


def _keep_backward(ctx, inputs, output):
    grad_value, x, y, _value, _saved, *rest = inputs
    call = GradientCall(*rest)
    ctx.numbers, ctx.cost, ctx.needed = call.options[PER_PAIR:], call.cost, call.needs
    ctx.save_for_backward(grad_value, x, y, *call.options[:PER_PAIR])
    ctx.set_materialize_grads(False)


def _differentiate_backward(ctx, u, w):
    refuse_gammas(ctx.needs_input_grad[5 : 5 + PER_PAIR])
    grad_value, x, y, *per_pair_options = ctx.saved_tensors
    u, w = (grad if needed else None for grad, needed in zip((u, w), ctx.needed, strict=True))
    return *gradient_backward(u, w, grad_value, x, y, (*per_pair_options, *ctx.numbers), ctx.cost), *(None,) * (OPTIONS + 7)


def _keep_backward_from_cost(ctx, inputs, output):
    grad_value, cost_matrix, _value, _saved, *rest = inputs
    ctx.numbers = rest[PER_PAIR:OPTIONS]
    ctx.save_for_backward(grad_value, cost_matrix, *rest[:PER_PAIR])


def _differentiate_backward_from_cost(ctx, grad):
    refuse_gammas(ctx.needs_input_grad[4 : 4 + PER_PAIR])
    grad_value, cost_matrix, *per_pair_options = ctx.saved_tensors
    return *_alignment_times_backward(grad, grad_value, cost_matrix, (*per_pair_options, *ctx.numbers)), *(None,) * (
        OPTIONS + 4
    )


def _differentiate_third_order_product(ctx, *grads):
    if ctx.needs_input_grad[0]:
        raise RuntimeError(FOURTH_ORDER)
    return ThirdOrderProduct.backward(ctx, *grads)


torch.library.register_autograd("torchsoftdtw::backward", _differentiate_backward, setup_context=_keep_backward)
torch.library.register_autograd(
    "torchsoftdtw::backward_from_cost", _differentiate_backward_from_cost, setup_context=_keep_backward_from_cost
)
torch.library.register_autograd(
    "torchsoftdtw::hessian_product", HessianProduct.backward, setup_context=HessianProduct.setup_context
)
torch.library.register_autograd(
    "torchsoftdtw::third_order_product",
    _differentiate_third_order_product,
    setup_context=ThirdOrderProduct.setup_context,
)
