"""What the ops return, without a computation: shapes, dtypes, strides and sizes, for torch.compile and meta tensors."""

import torch

from . import ops  # noqa: F401  defines what is registered here
from .saved_state import saved_bytes
from .selection import PRODUCT_ROWS, by_products


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
    return fake_series_gradient(x, need_x), fake_series_gradient(y, need_y)


@torch.library.register_fake("torchsoftdtw::dtw_from_cost_backward")
def _(grad_value, cost_matrix, value, spans, x_lengths, y_lengths):
    return cost_matrix.new_empty(cost_matrix.shape)
