"""The ops of csrc/ops.cpp as PyTorch sees them: the libraries, fakes and autograd. The only user of torch.ops."""

import contextlib
from pathlib import Path

import torch

from .saved_state import saved_bytes

_FOLDER = Path(__file__).parent


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


@torch.library.register_fake("torchsoftdtw::forward")
def _(x, y, x_lengths, y_lengths, bandwidths, bandwidth, gamma, warp_penalty, cost, kernel, rows_per_thread, save):
    per_pair = not (x_lengths is None and y_lengths is None and bandwidths is None)
    n, m = x.shape[1], y.shape[1]
    count = saved_bytes(kernel, rows_per_thread, x.shape[0], n, m, bandwidth, per_pair, x.dtype) if save else 0
    return x.new_empty((x.shape[0],)), x.new_empty((count,), dtype=torch.uint8)


@torch.library.register_fake("torchsoftdtw::backward")
def _(
    grad_value, x, y, value, saved, x_lengths, y_lengths, bandwidths, bandwidth, gamma, warp_penalty, cost, kernel,
    rows_per_thread, need_x, need_y,
):  # fmt: skip
    def gradient(series, needed):
        batch, length, dim = series.shape
        return series.new_empty((batch, dim, length)).transpose(1, 2) if needed else series.new_empty((0,))

    return gradient(x, need_x), gradient(y, need_y)


@torch.library.register_fake("torchsoftdtw::forward_from_cost")
def _(cost_matrix, x_lengths, y_lengths, bandwidths, bandwidth, gamma, warp_penalty, kernel, rows_per_thread, save):
    per_pair = not (x_lengths is None and y_lengths is None and bandwidths is None)
    batch, n, m = cost_matrix.shape
    count = saved_bytes(kernel, rows_per_thread, batch, n, m, bandwidth, per_pair, cost_matrix.dtype) if save else 0
    return cost_matrix.new_empty((batch,)), cost_matrix.new_empty((count,), dtype=torch.uint8)


@torch.library.register_fake("torchsoftdtw::backward_from_cost")
def _(
    grad_value, cost_matrix, value, saved, x_lengths, y_lengths, bandwidths, bandwidth, gamma, warp_penalty, kernel,
    rows_per_thread,
):  # fmt: skip
    return cost_matrix.new_empty(cost_matrix.shape)


@torch.library.register_fake("torchsoftdtw::hessian_product")
def _(
    cost_matrix, tangent, x_lengths, y_lengths, bandwidths, bandwidth, gamma, warp_penalty, need_alignment,
):  # fmt: skip
    batch = cost_matrix.shape[0]
    alignment = cost_matrix.new_empty(cost_matrix.shape if need_alignment else (batch, 0, 0))
    return cost_matrix.new_empty((batch,)), alignment, cost_matrix.new_empty(cost_matrix.shape)


@torch.library.register_fake("torchsoftdtw::third_order_product")
def _(cost_matrix, first, second, x_lengths, y_lengths, bandwidths, bandwidth, gamma, warp_penalty):
    return cost_matrix.new_empty(cost_matrix.shape), cost_matrix.new_empty(cost_matrix.shape)


def _setup_forward(ctx, inputs, output):
    x, y, x_lengths, y_lengths, bandwidths, *ctx.options, _save = inputs
    ctx.save_for_backward(x, y, *output, x_lengths, y_lengths, bandwidths)
    ctx.set_materialize_grads(False)


def _backward(ctx, grad_value, _grad_saved):
    need_x, need_y = ctx.needs_input_grad[:2]
    if grad_value is None:
        return (None,) * 12
    grad_x, grad_y = backward(grad_value, *ctx.saved_tensors, *ctx.options, need_x, need_y)
    return (grad_x if need_x else None, grad_y if need_y else None, *(None,) * 10)


def _setup_forward_from_cost(ctx, inputs, output):
    cost_matrix, x_lengths, y_lengths, bandwidths, *ctx.options, _save = inputs
    ctx.save_for_backward(cost_matrix, *output, x_lengths, y_lengths, bandwidths)
    ctx.set_materialize_grads(False)


def _backward_from_cost(ctx, grad_value, _grad_saved):
    if grad_value is None:
        return (None,) * 10
    return (backward_from_cost(grad_value, *ctx.saved_tensors, *ctx.options), *(None,) * 9)


torch.library.register_autograd("torchsoftdtw::forward", _backward, setup_context=_setup_forward)
torch.library.register_autograd(
    "torchsoftdtw::forward_from_cost", _backward_from_cost, setup_context=_setup_forward_from_cost
)
# The derivatives of the other ops are in second_order.py.


class _OfSeries(torch.autograd.Function):
    """The op `forward` with its derivative. What is registered above does the same, for torch.compile and for those who
    call the op, but PyTorch runs it argument by argument in Python, which takes longer than a small problem."""

    @staticmethod
    def forward(ctx, *inputs):
        x, y, x_lengths, y_lengths, bandwidths, *ctx.options, _save = inputs
        with torch._C._AutoDispatchBelowAutograd():
            value, saved = forward(*inputs)
        ctx.save_for_backward(x, y, value, saved, x_lengths, y_lengths, bandwidths)
        ctx.set_materialize_grads(False)
        return value

    @staticmethod
    def backward(ctx, grad_value):
        with _below_autograd_if_first_order():
            return _backward(ctx, grad_value, None)


class _OfCost(torch.autograd.Function):
    """The op `forward_from_cost`, likewise."""

    @staticmethod
    def forward(ctx, *inputs):
        cost_matrix, x_lengths, y_lengths, bandwidths, *ctx.options, _save = inputs
        with torch._C._AutoDispatchBelowAutograd():
            value, saved = forward_from_cost(*inputs)
        ctx.save_for_backward(cost_matrix, value, saved, x_lengths, y_lengths, bandwidths)
        ctx.set_materialize_grads(False)
        return value

    @staticmethod
    def backward(ctx, grad_value):
        with _below_autograd_if_first_order():
            return _backward_from_cost(ctx, grad_value, None)


def _below_autograd_if_first_order():
    return contextlib.nullcontext() if torch.is_grad_enabled() else torch._C._AutoDispatchBelowAutograd()


def value_of_series(*inputs):
    """The value of `forward(*inputs)`, differentiable with respect to x and y."""
    return _OfSeries.apply(*inputs)


def value_of_cost(*inputs):
    """The value of `forward_from_cost(*inputs)`, differentiable with respect to the cost matrix."""
    return _OfCost.apply(*inputs)
