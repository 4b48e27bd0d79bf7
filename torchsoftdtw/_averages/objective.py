"""The objective of averages, sum_k w_k soft_dtw(z, s_k) / sum_k w_k over the series of each group, and its gradient."""

import torch

from .._pairs.measure import Measure, reduced
from ..functional import soft_dtw


class Objective:
    def __init__(self, groups, length, cost, options, kernel, is_hard=False):
        """options: arguments.Options, with the lengths of the series as those of y."""
        self.groups, self._cost, self._options = groups, cost, options
        _, self.series, name, own, self._factor = reduced(groups.series[:1, :1], groups.series, cost, options)
        numbers = own.bandwidth, own.gamma, own.warp_penalty
        self.measure = Measure(is_hard, name, *numbers, False, kernel, None, groups.lengths)
        average = self.series[:1, :1].expand(1, length, -1)  # which has the shape of an average
        self.blocks = groups.blocks(self.measure.pairs_of_call(average, self.series, with_gradients=True))

    def __call__(self, average):
        """(value (G,) float64, gradient (G, L, D)) of averages (G, L, D)."""
        average = average.to(self.groups.series.dtype)
        own = self._in_kernels_cost(average)
        value, gradient = 0, 0
        for block in self.blocks:
            weight = block.weight / self._factor
            of_pairs, of_average, _ = self.measure.values_and_gradients(
                own, self.series, block.pairs, lambda weight=weight: weight.to(own.dtype), True, False
            )
            value = value + block.sums(weight * of_pairs)
            gradient = gradient + block.sums(of_average)
        if self._cost == "cosine":
            with torch.enable_grad():
                average = average.clone().requires_grad_()
                (gradient,) = torch.autograd.grad(self._in_kernels_cost(average), average, gradient)
        return value, gradient

    def _in_kernels_cost(self, average):
        without_lengths = self._options._replace(y_lengths=None)
        return reduced(average, self.groups.series[:1, :1], self._cost, without_lengths)[0]


class DivergenceObjective:
    """The same of the divergence, soft_dtw(z, s) - soft_dtw(z, z) / 2 - soft_dtw(s, s) / 2, from that of soft-DTW."""

    def __init__(self, objective, **options):
        """options: as `soft_dtw` has them."""
        self._objective, self._options = objective, options
        groups = objective.groups
        self._of_series = 0
        for block in objective.blocks:
            index = block.pairs.y_index.long()
            series, lengths = groups.series[index], None if groups.lengths is None else groups.lengths[index]
            own = soft_dtw(series, series, x_lengths=lengths, y_lengths=lengths, **options)
            self._of_series = self._of_series + block.sums(block.weight * own)

    def __call__(self, average):
        value, gradient = self._objective(average)
        with torch.enable_grad():
            average = average.to(gradient.dtype).clone().requires_grad_()
            own = soft_dtw(average, average, **self._options)
            (of_average,) = torch.autograd.grad(own.sum(), average)
        return value - 0.5 * (own.detach() + self._of_series), gradient - 0.5 * of_average
