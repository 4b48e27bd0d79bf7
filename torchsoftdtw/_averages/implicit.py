"""The derivatives of averages with respect to weights and series.

At an average z the gradient of its objective is zero: sum_k p_k g_k = 0, where p_k = w_k / sum_j w_j, and g_k is the
gradient of the k-th series' distance. It stays zero as weights and series move, so with H the Hessian of the objective, and
c the gradient that arrives at z, the implicit function theorem gives

    (10)  H u = c
    (11)  dw_k = -<u, g_k - sum_j p_j g_j> / sum_j w_j
    (12)  ds_k = -p_k d<u, g_k> / ds_k

All that it takes are derivatives of <u, g_k>. Terms of the divergence that no series is part of cancel in (11) and (12).
"""

import torch
from torch.autograd.function import once_differentiable

from ..functional import soft_dtw
from . import minres

MOST_BYTES = 256 << 20  # of the tables of some pairs
TABLES = 8  # of a pair in float64, about, which second derivatives take


class Curvature:
    """Products with the Hessian of the objective at averages (G, L, D), in float64."""

    def __init__(self, groups, averages, is_divergence, options):
        """options: as `soft_dtw` has them."""
        self.groups, self._averages, self._is_divergence, self._options = groups, averages, is_divergence, options
        series = groups.series
        bytes_of_pair = 8 * TABLES * averages.shape[1] * series.shape[1]
        self._blocks = [*groups.blocks(max(1, MOST_BYTES // bytes_of_pair))]
        self._kept = [*self._differentiated()] if len(self._blocks) == 1 else None

    def times(self, direction):
        """H times a direction (G, L, D)."""
        total = 0
        for block, average, _, gradient in self._kept or self._differentiated():
            own = direction[block.pairs.x_index.long()]
            (product,) = torch.autograd.grad(gradient, average, own, retain_graph=True)
            total = total + block.sums(block.weight.view(-1, 1, 1) * product)
        if self._is_divergence:
            with torch.enable_grad():
                average = self._averages.clone().requires_grad_()
                (gradient,) = torch.autograd.grad(self._distance(average, average).sum(), average, create_graph=True)
            total = total - 0.5 * torch.autograd.grad(gradient, average, direction)[0]
        return total

    def along(self, direction, need_series):
        """Of each block: itself, <direction, g_k> (count,), and the derivatives of that with respect to the series, if they
        are needed."""
        for block, _, series, gradient in self._kept or self._differentiated():
            own = direction[block.pairs.x_index.long()]
            of_series = torch.autograd.grad(gradient, series, own, retain_graph=True)[0] if need_series else None
            yield block, (gradient.detach() * own).sum((1, 2)), of_series

    def _differentiated(self):
        """Of each block: itself, the average and the series of each pair, and g_k as a function of both."""
        groups = self.groups
        for block in self._blocks:
            index = block.pairs.y_index.long()
            average = self._averages[block.pairs.x_index.long()].requires_grad_()
            series = groups.series[index].double().requires_grad_()
            lengths = None if groups.lengths is None else groups.lengths[index]
            with torch.enable_grad():
                value = self._distance(average, series, lengths)
                (gradient,) = torch.autograd.grad(value.sum(), average, create_graph=True)
            yield block, average, series, gradient

    def _distance(self, average, series, lengths=None):
        return soft_dtw(average, series, y_lengths=lengths, **self._options)


class AtMinimum(torch.autograd.Function):
    """(weights (K,) float64, series (K, M, D), averages (G, L, D) float64, groups, is_divergence, options) -> the averages
    as functions of weights and series."""

    @staticmethod
    def forward(ctx, weights, series, averages, *problem):
        ctx.save_for_backward(weights, series, averages)
        ctx.problem = problem
        return averages.view_as(averages)

    @staticmethod
    @once_differentiable
    def backward(ctx, arriving):
        weights, series, averages = ctx.saved_tensors
        groups, is_divergence, options = ctx.problem
        curvature = Curvature(groups, averages, is_divergence, options)
        direction = minres.solve(curvature.times, arriving)  # (10)
        need_series = ctx.needs_input_grad[1]
        along, of_series = torch.zeros_like(weights), torch.zeros_like(series) if need_series else None
        mean = 0
        for block, of_block, of_own in curvature.along(direction, need_series):
            index = block.pairs.y_index.long()
            along[index] = of_block
            mean = mean + block.sums(block.weight * of_block)
            if need_series:
                of_series[index] = (-block.weight.view(-1, 1, 1) * of_own).to(series.dtype)  # (12)
        labels = groups.labels
        of_weights = (mean[labels] - along) / groups.total[labels]  # (11)
        return of_weights, of_series, None, None, None, None
