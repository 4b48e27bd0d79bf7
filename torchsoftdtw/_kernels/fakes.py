"""What the ops return, without a computation: shapes, dtypes, strides and sizes, for torch.compile and meta tensors."""

import torch

from . import ops, selection
from .selection import MATRIX


def fake_series_gradient(series, needed, by_vectors=False):
    """What the kernels return for a (B, L, D) series, dimension-major in memory or vector by vector; an empty tensor where
    none is needed."""
    if not needed:
        return series.new_empty((0,))
    batch, length, dim = series.shape
    return series.new_empty((batch, length, dim)) if by_vectors else series.new_empty((batch, dim, length)).transpose(1, 2)


def _reads_vectors(series, kernel, cost):
    """Whether gradients are written vector by vector: by all CUDA kernels for such a call but `diagonal`."""
    on_cuda = series.is_cuda or selection.is_for_cuda(kernel)
    known = on_cuda and not kernel.startswith("diagonal") and cost != MATRIX
    return known and series.dtype == torch.float32 and series.shape[2] > 1


def _new_saved(like, sizes, cost, per_pair, numbers, kernel, rows_per_thread):
    """What forward saves. The op tells how much, of sizes that are known."""
    x_lengths, y_lengths, bandwidths, _, warp_penalties = per_pair
    bandwidth, _, warp_penalty = numbers
    if any(isinstance(size, torch.SymInt) for size in sizes):
        return like.new_empty((torch.library.get_ctx().new_dynamic_size(),), dtype=torch.uint8)
    saved_size = ops.cuda_saved_size if like.is_cuda or selection.is_for_cuda(kernel) else ops.cpu_saved_size
    has_lengths = not (x_lengths is None and y_lengths is None)
    has_penalty = warp_penalties is not None or warp_penalty != 0
    count = saved_size(
        *sizes, like.dtype == torch.float64, cost, has_lengths, bandwidths is not None, bandwidth, has_penalty, kernel,
        rows_per_thread, like.device.index or 0,
    )  # fmt: skip
    return like.new_empty((count,), dtype=torch.uint8)


@torch.library.register_fake("torchsoftdtw::forward")
def _(
    x, y, x_lengths, y_lengths, bandwidths, gammas, warp_penalties, bandwidth, gamma, warp_penalty, cost, kernel,
    rows_per_thread, save,
):  # fmt: skip
    value = x.new_empty((x.shape[0],))
    if not save:
        return value, x.new_empty((0,), dtype=torch.uint8)
    per_pair, numbers = (x_lengths, y_lengths, bandwidths, gammas, warp_penalties), (bandwidth, gamma, warp_penalty)
    sizes = x.shape[0], x.shape[1], y.shape[1], x.shape[2]
    return value, _new_saved(x, sizes, cost, per_pair, numbers, kernel, rows_per_thread)


@torch.library.register_fake("torchsoftdtw::backward")
def _(
    grad_value, x, y, value, saved, x_lengths, y_lengths, bandwidths, gammas, warp_penalties, bandwidth, gamma,
    warp_penalty, cost, kernel, rows_per_thread, need_x, need_y,
):  # fmt: skip
    by_vectors = _reads_vectors(x, kernel, cost)
    return fake_series_gradient(x, need_x, by_vectors), fake_series_gradient(y, need_y, by_vectors)


@torch.library.register_fake("torchsoftdtw::forward_from_cost")
def _(
    cost_matrix, x_lengths, y_lengths, bandwidths, gammas, warp_penalties, bandwidth, gamma, warp_penalty, kernel,
    rows_per_thread, save,
):  # fmt: skip
    value = cost_matrix.new_empty((cost_matrix.shape[0],))
    if not save:
        return value, cost_matrix.new_empty((0,), dtype=torch.uint8)
    per_pair, numbers = (x_lengths, y_lengths, bandwidths, gammas, warp_penalties), (bandwidth, gamma, warp_penalty)
    return value, _new_saved(cost_matrix, (*cost_matrix.shape, 1), MATRIX, per_pair, numbers, kernel, rows_per_thread)


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


@torch.library.register_fake("torchsoftdtw::unit_vectors")
def _(x, y, width):
    made = []
    for series in (x, y):
        shape = series.shape[:2]
        made += [series.new_empty((*shape, width)), series.new_empty(shape, dtype=torch.float64)]
    return tuple(made)


@torch.library.register_fake("torchsoftdtw::unit_vectors_backward")
def _(grad_unit_x, grad_unit_y, unit_x, inverse_x, unit_y, inverse_y, dim):
    arriving = ((grad_unit_x, unit_x), (grad_unit_y, unit_y))
    return tuple(unit.new_empty((0,) if grad is None else (*unit.shape[:2], dim)) for grad, unit in arriving)


@torch.library.register_fake("torchsoftdtw::best_ranges")
def _(x, y, warp_penalty, cost):
    shape = x.shape[0], y.shape[1]
    return x.new_empty(shape, dtype=torch.float64), x.new_empty(shape, dtype=torch.int32)


def _fake_elastic(like, batch, sizes, measure, band, gammas, gamma, kernel, save):
    """Value and what is saved: spans where it is hard, else bytes, of which the op tells how many."""
    n, m, dim = sizes
    value = like.new_empty((batch,))
    if gammas is None and gamma == 0:
        return value, like.new_empty((batch, n + 1 if save else 0, 2), dtype=torch.int32)
    if not save:
        return value, like.new_empty((0,), dtype=torch.uint8)
    if any(isinstance(size, torch.SymInt) for size in (batch, *sizes)):
        return value, like.new_empty((torch.library.get_ctx().new_dynamic_size(),), dtype=torch.uint8)
    on_cuda = like.is_cuda or selection.is_for_cuda(kernel)
    saved_size = ops.cuda_elastic_saved_size if on_cuda else ops.cpu_elastic_saved_size
    count = saved_size(batch, n, m, dim, like.dtype == torch.float64, *measure, *band, kernel)
    return value, like.new_empty((count,), dtype=torch.uint8)


def _band(x_lengths, y_lengths, bandwidths, bandwidth):
    return x_lengths is not None or y_lengths is not None, bandwidths is not None, bandwidth


@torch.library.register_fake("torchsoftdtw::elastic")
def _(
    x_index, y_index, x, y, x_times, y_times, x_gaps, y_gaps, x_lengths, y_lengths, bandwidths, gammas, parameters,
    bandwidth, gamma, parameter, measure, cost, sum_border, kernel, save,
):  # fmt: skip
    batch = x.shape[0] if x_index is None else x_index.shape[0]
    sizes, own = (x.shape[1], y.shape[1], x.shape[2]), (measure, cost, sum_border)
    band = _band(x_lengths, y_lengths, bandwidths, bandwidth)
    return _fake_elastic(x, batch, sizes, own, band, gammas, gamma, kernel, save)


@torch.library.register_fake("torchsoftdtw::elastic_backward")
def _(
    x_index, y_index, grad_value, x, y, x_times, y_times, x_gaps, y_gaps, value, saved, x_lengths, y_lengths, bandwidths,
    gammas, parameters, bandwidth, gamma, parameter, measure, cost, sum_border, kernel, need_x, need_y, need_times,
    need_gaps, need_numbers,
):  # fmt: skip
    batch = grad_value.shape[0]

    def series(like, needed):
        _, length, dim = like.shape
        return like.new_empty((batch, dim, length)).transpose(1, 2) if needed else like.new_empty((0,))

    def numbers(needed, *shape):
        return x.new_empty((batch, *shape) if needed else (0,))

    n, m = x.shape[1], y.shape[1]
    times, gaps = (numbers(need_times, n), numbers(need_times, m)), (numbers(need_gaps, n), numbers(need_gaps, m))
    return series(x, need_x), series(y, need_y), *times, *gaps, numbers(need_numbers), numbers(need_numbers)


@torch.library.register_fake("torchsoftdtw::elastic_from_costs")
def _(
    diagonal, up, left, x_lengths, y_lengths, bandwidths, gammas, bandwidth, gamma, sum_border, kernel, save,
):  # fmt: skip
    batch, n, m = diagonal.shape
    band = _band(x_lengths, y_lengths, bandwidths, bandwidth)
    return _fake_elastic(diagonal, batch, (n, m, 1), (MATRIX, "", sum_border), band, gammas, gamma, kernel, save)


@torch.library.register_fake("torchsoftdtw::elastic_from_costs_backward")
def _(
    grad_value, diagonal, up, left, value, saved, x_lengths, y_lengths, bandwidths, gammas, bandwidth, gamma, sum_border,
    kernel, need_numbers,
):  # fmt: skip
    tables = (diagonal.new_empty(diagonal.shape) for _ in range(3))
    return *tables, diagonal.new_empty((diagonal.shape[0] if need_numbers else 0,))


@torch.library.register_fake("torchsoftdtw::twed_terms")
def _(
    x, y, x_times, y_times, x_lengths, y_lengths, nus, lmbdas, nu, lmbda, cost, x_has_slopes, y_has_slopes,
):  # fmt: skip
    are_shared = x_times is not None and x_times.stride(0) == 0 and y_times.stride(0) == 0
    are_shared = are_shared and nus is None and x_lengths is None and y_lengths is None

    def times(series):
        if x_times is None and nus is None:
            return series.new_empty((0,))
        return series.new_empty((min(1, series.shape[0]) if are_shared else series.shape[0], series.shape[1]))

    return times(x), times(y), *(series.new_empty(series.shape[:2]) for series in (x, y))


@torch.library.register_fake("torchsoftdtw::twed_terms_backward")
def _(
    grad_x_times, grad_y_times, grad_x_gaps, grad_y_gaps, x, y, x_times, y_times, x_lengths, y_lengths, nus, lmbdas, nu,
    lmbda, cost, need_x, need_y, need_times, need_numbers,
):  # fmt: skip
    has_times = need_times and x_times is not None
    series = [own.new_empty(own.shape if needed else (0,)) for own, needed in ((x, need_x), (y, need_y))]
    times = [own.new_empty(own.shape[:2] if has_times else (0,)) for own in (x, y)]
    count = x.shape[0] + y.shape[0]
    numbers = [
        x.new_empty((0 if own is None or not need_numbers else count,), dtype=torch.float64) for own in (nus, lmbdas)
    ]
    return *series, *times, *numbers
