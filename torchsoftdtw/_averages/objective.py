"""The objective of averages, sum_k w_k soft_dtw(z, s_k) / sum_k w_k over the series of each group, and its gradient."""

import torch

from .._pairs.measure import Measure, reduced
from ..functional import soft_dtw


class Objective:
    def __init__(self, groups, length, cost, options, kernel, is_hard=False):
        """options: arguments.Options, with the lengths of the series as those of y."""
        self.groups, self._cost, self._options = groups, cost, options
        _, self.series, name, own, factor = reduced(groups.series[:1, :1], groups.series, cost, options)
        numbers = own.bandwidth, own.gamma, own.warp_penalty
        self.measure = Measure(is_hard, name, *numbers, False, kernel, None, groups.lengths)
        average = self.series[:1, :1].expand(1, length, -1)  # which has the shape of an average
        self.blocks = groups.blocks(self.measure.pairs_of_call(average, self.series, with_gradients=True))
        self._weights = [block.weight / factor for block in self.blocks]
        self._arriving = [weight.to(self.series.dtype) for weight in self._weights]

    @property
    def is_recordable(self):
        """Whether a call may run while a stream is captured; what a callable does is its own."""
        return not callable(self._cost)

    def __call__(self, average):
        """(value (G,) float64, gradient (G, L, D)) of averages (G, L, D)."""
        average = average.to(self.groups.series.dtype)
        own = self._in_kernels_cost(average)
        value, gradient = None, None
        for block, weight, arriving in zip(self.blocks, self._weights, self._arriving, strict=True):
            of_pairs, of_average, _ = self.measure.values_and_gradients(
                own, self.series, block.pairs, lambda arriving=arriving: arriving, True, False
            )
            of_block = block.sums(weight * of_pairs), block.sums(of_average)
            value, gradient = of_block if value is None else (value + of_block[0], gradient + of_block[1])
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

    @property
    def is_recordable(self):
        return self._objective.is_recordable

    def __call__(self, average):
        value, gradient = self._objective(average)
        with torch.enable_grad():
            average = average.to(gradient.dtype).clone().requires_grad_()
            own = soft_dtw(average, average, **self._options)
            (of_average,) = torch.autograd.grad(own.sum(), average)
        return value - 0.5 * (own.detach() + self._of_series), gradient - 0.5 * of_average
