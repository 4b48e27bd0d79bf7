"""The ops of csrc/ops.cpp as PyTorch sees them: the libraries, fakes and autograd. Beside hard_ops.py the only user."""

import contextlib
from pathlib import Path

import torch

from .._autograd.derivatives import of_gamma_and_penalty, path_cost_by_euler, sums_over_alignment
from .saved_state import saved_bytes
from .selection import PRODUCT_ROWS, by_products

_FOLDER = Path(__file__).parent.parent


def _load(name):
    path = _FOLDER / f"{name}.abi3.so"
    if not path.exists():
        return False
    torch.ops.load_library(path)
    return True


if not _load("_cpu"):
    raise ImportError(
        f"torchsoftdtw: {_FOLDER / '_cpu.abi3.so'} is missing; build it with `pip install --no-build-isolation .`"
    )
HAS_CUDA = torch.version.cuda is not None and _load("_cuda")

forward = torch.ops.torchsoftdtw.forward.default
backward = torch.ops.torchsoftdtw.backward.default
forward_from_cost = torch.ops.torchsoftdtw.forward_from_cost.default
backward_from_cost = torch.ops.torchsoftdtw.backward_from_cost.default
hessian_product = torch.ops.torchsoftdtw.hessian_product.default
third_order_product = torch.ops.torchsoftdtw.third_order_product.default


def fake_series_gradient(series, needed, by_vectors=False):
    """What the kernels return for a (B, L, D) series, dimension-major in memory or vector by vector; an empty tensor where
    none is needed."""
    if not needed:
        return series.new_empty((0,))
    batch, length, dim = series.shape
    return series.new_empty((batch, length, dim)) if by_vectors else series.new_empty((batch, dim, length)).transpose(1, 2)


def _is_plain(bandwidths, warp_penalties, bandwidth, warp_penalty):
    """Neither a band nor a warp penalty."""
    return bandwidths is None and warp_penalties is None and bandwidth < 0 and warp_penalty == 0


@torch.library.register_fake("torchsoftdtw::forward")
def _(
    x, y, x_lengths, y_lengths, bandwidths, gammas, warp_penalties, bandwidth, gamma, warp_penalty, cost, kernel,
    rows_per_thread, save,
):  # fmt: skip
    per_pair = not (x_lengths is None and y_lengths is None and bandwidths is None)
    n, m, dim = x.shape[1], y.shape[1], x.shape[2]
    if by_products(kernel, cost, dim, x.dtype):
        rows_per_thread = PRODUCT_ROWS
    count = 0
    if save:
        plain = _is_plain(bandwidths, warp_penalties, bandwidth, warp_penalty)
        univariate = cost == "sqeuclidean" and dim == 1
        count = saved_bytes(kernel, rows_per_thread, x.shape[0], n, m, bandwidth, per_pair, x.dtype, plain, univariate)
    return x.new_empty((x.shape[0],)), x.new_empty((count,), dtype=torch.uint8)


@torch.library.register_fake("torchsoftdtw::backward")
def _(
    grad_value, x, y, value, saved, x_lengths, y_lengths, bandwidths, gammas, warp_penalties, bandwidth, gamma,
    warp_penalty, cost, kernel, rows_per_thread, need_x, need_y,
):  # fmt: skip
    by_vectors = by_products(kernel, cost, x.shape[2], x.dtype)
    return fake_series_gradient(x, need_x, by_vectors), fake_series_gradient(y, need_y, by_vectors)


@torch.library.register_fake("torchsoftdtw::forward_from_cost")
def _(
    cost_matrix, x_lengths, y_lengths, bandwidths, gammas, warp_penalties, bandwidth, gamma, warp_penalty, kernel,
    rows_per_thread, save,
):  # fmt: skip
    per_pair = not (x_lengths is None and y_lengths is None and bandwidths is None)
    batch, n, m = cost_matrix.shape
    dtype = cost_matrix.dtype
    plain = _is_plain(bandwidths, warp_penalties, bandwidth, warp_penalty)
    count = saved_bytes(kernel, rows_per_thread, batch, n, m, bandwidth, per_pair, dtype, plain) if save else 0
    return cost_matrix.new_empty((batch,)), cost_matrix.new_empty((count,), dtype=torch.uint8)


@torch.library.register_fake("torchsoftdtw::backward_from_cost")
def _(
    grad_value, cost_matrix, value, saved, x_lengths, y_lengths, bandwidths, gammas, warp_penalties, bandwidth, gamma,
    warp_penalty, kernel, rows_per_thread,
):  # fmt: skip
    return cost_matrix.new_empty(cost_matrix.shape)


@torch.library.register_fake("torchsoftdtw::hessian_product")
def _(
    cost_matrix, tangent, x_lengths, y_lengths, bandwidths, gammas, warp_penalties, bandwidth, gamma, warp_penalty,
    need_alignment,
):  # fmt: skip
    batch = cost_matrix.shape[0]
    alignment = cost_matrix.new_empty(cost_matrix.shape if need_alignment else (batch, 0, 0))
    return cost_matrix.new_empty((batch,)), alignment, cost_matrix.new_empty(cost_matrix.shape)


@torch.library.register_fake("torchsoftdtw::third_order_product")
def _(
    cost_matrix, first, second, x_lengths, y_lengths, bandwidths, gammas, warp_penalties, bandwidth, gamma, warp_penalty,
):  # fmt: skip
    return cost_matrix.new_empty(cost_matrix.shape), cost_matrix.new_empty(cost_matrix.shape)


PER_PAIR = 5  # x_lengths, y_lengths, bandwidths, gammas, warp_penalties: arguments.Options begins with them


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
    grad_x, grad_y = backward(grad_value, *saved, *options, need_x, need_y)
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
    unit_x, unit_y = backward(torch.ones_like(value), *saved, *options, True, True)
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
        return backward_from_cost(grad_value, *saved, *options), None, None
    cost_matrix, value, _, x_lengths, y_lengths, _, gammas, penalties = saved
    alignment = backward_from_cost(torch.ones_like(value), *saved, *options)
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
            value, saved = forward(*inputs)
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
            value, saved = forward_from_cost(*inputs)
        _setup_forward_from_cost(ctx, inputs, (value, saved))
        return value

    @staticmethod
    def backward(ctx, grad_value):
        saved = ctx.saved_tensors
        with below_autograd_if_first_order():
            return *_backward_from_cost(ctx.options, ctx.needs_input_grad[:-1], saved, grad_value), None


def below_autograd_if_first_order():
    return contextlib.nullcontext() if torch.is_grad_enabled() else torch._C._AutoDispatchBelowAutograd()


def wants_gradient(*tensors):
    """Whether a forward pass should keep what its backward pass needs. A tensor may be None."""
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor is not None and tensor.requires_grad:
                return True
    return False


def require_build_for(like):
    """Raise where a tensor is on a device for which nothing was built."""
    if like.is_cuda and not HAS_CUDA:
        raise RuntimeError(
            "torchsoftdtw was built without its CUDA part (nvcc was not found, or PyTorch has no CUDA), and x is on "
            f"{like.device}; reinstall it where nvcc is on the PATH, or move the tensors to the CPU"
        )


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
        return forward(*inputs)[0]


def value_of_cost(*inputs):
    """The value of `forward_from_cost(*inputs)`, differentiable with respect to cost matrix, gammas and penalties."""
    save = inputs[-1]
    if save:
        refuse_tracing()
        return _OfCost.apply(inputs[0], *inputs[1 + PER_PAIR - 2 : 1 + PER_PAIR], inputs)
    with torch._C._AutoDispatchBelowAutograd():
        return forward_from_cost(*inputs)[0]
