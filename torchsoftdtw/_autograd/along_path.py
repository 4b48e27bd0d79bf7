"""Hard DTW as the cost along its best path, in torch ops: for torch.func, and for derivatives beyond the first.

A small enough change of the series leaves the path as it is, so all derivatives are those of the cost along it, which is
differentiated like anything else. That takes O((N + M) D) memory a pair. The kernels say which path it is, and vmap folds
its dimension into their batch.

`tensors` are (x, y), or (cost_matrix,) alone; `cost` is one of KERNEL_COSTS, or None.
"""

from typing import NamedTuple

import torch

from .._costs import KERNEL_COSTS
from .._internals import has_tangents
from .batching import folds_batches, is_tensor
from .derivatives import steps_of_spans


class Path(NamedTuple):
    """What an op of hard DTW says of a batch: the values, the columns that each path meets in each row, and the lengths."""

    value: torch.Tensor
    spans: torch.Tensor
    x_lengths: torch.Tensor | None
    y_lengths: torch.Tensor | None


def value_and_spans(op, tensors, inputs):
    """`op(*inputs)`, which begin with so many `tensors` and end with whether to save, with all derivatives of the value."""
    *fixed, _ = (value.detach() if is_tensor(value) else value for value in inputs)
    if not (torch.is_grad_enabled() or has_tangents()):
        return BestPath.apply(op, *inputs)
    value, spans = BestPath.apply(op, *fixed, True)
    path = Path(value, spans, *inputs[tensors : tensors + 2])
    cost = inputs[-2] if tensors == 2 else None
    return _ValueAlong.apply(value, cost_along(path, inputs[:tensors], inputs[tensors + 3], cost)), spans


def gradients(grad_value, path, inputs, cost, needed):
    """The gradients to `inputs`, which are the tensors and penalties, with a graph; None for one that is not `needed`."""
    along = cost_along(path, inputs[:-1], inputs[-1], cost)
    wanted = [tensor for tensor, need in zip(inputs, needed, strict=True) if need]
    found = iter(torch.autograd.grad(along, wanted, grad_value, create_graph=True))
    return [next(found) if need else None for need in needed]


def cost_along(path, tensors, penalties, cost):
    """What the path of each pair costs (B,), all of it differentiable.

    NaN where no path exists, with NaN for gradients; 0 where nothing arrives from above.
    """
    exists = path.value.isfinite()
    # Elsewhere numbers may be of the kind that 0 times is not 0.
    tensors = [_Replaced.apply(tensor, exists, float(k)) for k, tensor in enumerate(tensors)]
    width = tensors[0].shape[2] if cost is None else tensors[1].shape[1]
    rows, columns, on_path = Cells.apply(path.spans, path.x_lengths, path.y_lengths, width)
    if cost is None:
        costs = tensors[0].flatten(1).gather(1, rows * width + columns)
    else:
        costs = KERNEL_COSTS[cost].of_differences(_rows_of(tensors[0], rows) - _rows_of(tensors[1], columns))
    along = torch.where(on_path | ~exists.unsqueeze(1), costs, 0).sum(1)
    if penalties is not None:
        along = along + (penalties * steps_of_spans(path.spans)).to(along.dtype)
    return _Spoiled.apply(along, exists)


def steps(value, spans):
    """The derivative of the value with respect to the penalty (B,); NaN where no path exists."""
    return steps_of_spans(spans).double().masked_fill(~value.isfinite(), torch.nan)


@folds_batches
class BestPath(torch.autograd.Function):
    """(op, *inputs) -> value, spans: what the op gives, without a derivative."""

    @staticmethod
    def forward(op, *inputs):
        return op(*inputs)

    @staticmethod
    def setup_context(ctx, inputs, outputs):
        ctx.mark_non_differentiable(*outputs)


@folds_batches
class Cells(torch.autograd.Function):
    """(spans, x_lengths, y_lengths, m) -> rows, columns, and whether they are on the path, (B, N + M - 1) each.

    What is not is some cell of the pair, none of its padding.
    """

    @staticmethod
    def forward(spans, x_lengths, y_lengths, m):
        batch, n, _ = spans.shape
        first, last = spans.long().unbind(2)
        counts = last - first + 1  # a row that no path meets has none
        ends = counts.cumsum(1)
        step = torch.arange(n + m - 1, device=spans.device).expand(batch, -1).contiguous()
        rows = torch.searchsorted(ends, step, right=True)
        on_path = rows < n
        rows = rows.clamp(max=n - 1)
        columns = step + (first + counts - ends).gather(1, rows)
        rows = torch.where(on_path, rows, _within(step, x_lengths, n))
        return rows, torch.where(on_path, columns, _within(step, y_lengths, m)), on_path

    @staticmethod
    def setup_context(ctx, inputs, outputs):
        ctx.mark_non_differentiable(*outputs)


def _within(step, lengths, longest):
    # A length on a CUDA device may be wrong.
    last = longest - 1 if lengths is None else (lengths.unsqueeze(1) - 1).clamp(0, longest - 1)
    return step.clamp(max=last)


class _Replaced(torch.autograd.Function):
    """(tensor (B, ...), exists (B,), number) -> the tensor, with the number in the place of pairs without a path. Gradients
    are not those of a replacement: they pass as they are."""

    generate_vmap_rule = True

    @staticmethod
    def forward(tensor, exists, number):
        return torch.where(exists.view(-1, *(1,) * (tensor.dim() - 1)), tensor, number)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None

    @staticmethod
    def jvp(ctx, tangent, *_):
        return tangent.clone()


class _Spoiled(torch.autograd.Function):
    """(along (B,), exists (B,)) -> along, NaN for pairs without a path, and for their gradients unless nothing arrives."""

    generate_vmap_rule = True

    @staticmethod
    def forward(along, exists):
        return torch.where(exists, along, torch.nan)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[1])
        ctx.save_for_forward(inputs[1])

    @staticmethod
    def backward(ctx, grad):
        (exists,) = ctx.saved_tensors
        return torch.where(exists | (grad == 0), grad, torch.nan), None

    @staticmethod
    def jvp(ctx, tangent, _):
        (exists,) = ctx.saved_tensors
        return torch.where(exists, tangent, torch.nan)


class _ValueAlong(torch.autograd.Function):
    """(value, along) -> value, to the bit what a kernel has summed up, with the derivatives of `along`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(value, along):
        return value.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return None, grad

    @staticmethod
    def jvp(ctx, _, tangent):
        return tangent


def _rows_of(series, rows):
    """(B, K, D): some rows of each pair. By embedding, whose gradient adds up in the same order every time."""
    if rows.shape[0] == 0:  # an embedding of nothing cannot be mapped
        return series[:, :1].expand(-1, rows.shape[1], -1)
    start = torch.arange(rows.shape[0], device=rows.device) * series.shape[1]
    return torch.nn.functional.embedding(rows + start.unsqueeze(1), series.flatten(0, 1))
