"""The kernels' own costs as (B, N, M) matrices, for what needs the matrix itself; differentiable as often as one likes."""

import torch

from .._costs import KERNEL_COSTS
from .._inputs import cost as costs_by_name
from .batching import folds_batches, in_graph, under_compiled_transform


def matrix_of(problem):
    """The (B, N, M) costs of a Problem. Padding has costs of no meaning, which are numbers."""
    x, y, cost, options = problem[:4]
    x_lengths, y_lengths = options[:2]
    if callable(cost):
        return costs_by_name.matrix_from_callable(cost, x, y, x_lengths, y_lengths)
    reduced = costs_by_name.reduce_to_kernel_cost(cost, x, y, options)
    without_padding = costs_by_name.without_padding
    matrix = cost_matrix(without_padding(reduced.x, x_lengths), without_padding(reduced.y, y_lengths), reduced.name)
    return reduced.value(matrix)


def cost_matrix(x, y, cost):
    """(B, N, M) costs of x (B, N, D) and y (B, M, D), neither of which has padding. `cost` is one of KERNEL_COSTS."""
    if not torch.compiler.is_compiling():
        return CostMatrix.apply(x, y, cost)
    return _in_graph(x, y, cost) if under_compiled_transform() else KERNEL_COSTS[cost].matrix(x, y)


@folds_batches
class CostMatrix(torch.autograd.Function):
    @staticmethod
    def forward(x, y, cost):
        return KERNEL_COSTS[cost].matrix(x, y)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, ctx.cost = inputs
        ctx.save_for_backward(x, y, output)
        ctx.save_for_forward(x, y, output)

    @staticmethod
    def backward(ctx, grad):
        return *KERNEL_COSTS[ctx.cost].pull_back(grad, *ctx.saved_tensors), None

    @staticmethod
    def jvp(ctx, u, w, _):
        x, y, costs = ctx.saved_tensors
        u = torch.zeros_like(x) if u is None else u
        w = torch.zeros_like(y) if w is None else w
        return KERNEL_COSTS[ctx.cost].push_forward(u, w, x, y, costs)


_in_graph = in_graph(CostMatrix)
