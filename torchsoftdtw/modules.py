"""Soft-DTW as a training loss."""

import torch

from ._inputs import arguments, per_pair, remedies
from ._inputs import cost as costs
from .divergence import KINDS, soft_dtw_divergence
from .functional import soft_dtw

REDUCTIONS = ("mean", "sum", "none")


class SoftDTW(torch.nn.Module):
    """Soft-DTW between predicted and true series as a loss (Cuturi & Blondel, ICML 2017).

    Args:
        gamma: smoothing, in the unit of the cost: a positive number, 0 for hard DTW, or a tensor, (), (1,) or (B,), which a
            torch.nn.Parameter makes learnable.
        cost: a name or a callable, as in `soft_dtw`.
        bandwidth: Sakoe-Chiba radius, an integer of at least 0; None: no band.
        warp_penalty: cost of a step that advances in one series only; a number of at least 0, or a tensor as for gamma.
        reduction: "mean" or "sum" over the pairs, or "none".
        length_norm: divide the value of a pair by N + M, its own lengths.
        open_ends: match x with any contiguous part of y. Not together with a bandwidth.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.

    Example:
        >>> loss = SoftDTW(gamma=0.1, bandwidth=5)
        >>> loss(torch.zeros(4, 10, 1), torch.zeros(4, 12, 1)).shape
        torch.Size([])
    """

    def __init__(
        self,
        gamma=1.0,
        *,
        cost="sqeuclidean",
        bandwidth=None,
        warp_penalty=0.0,
        reduction="mean",
        length_norm=False,
        open_ends=False,
    ):
        super().__init__()
        costs.check(cost)
        self._set_number(
            "gamma", gamma, lambda number: 0.0 if per_pair.is_zero(number) else per_pair.positive_gamma(number)
        )
        self.cost = cost
        self.bandwidth = None if bandwidth is None else per_pair.band_radius(bandwidth)
        self._set_number("warp_penalty", warp_penalty, per_pair.non_negative_penalty)
        self.length_norm = arguments.flag("length_norm", length_norm)
        arguments.check_ends(open_ends, bandwidth)
        self.open_ends = open_ends
        self.reduction = arguments.one_of("reduction", reduction, REDUCTIONS)

    def _set_number(self, name, value, check):
        """A Parameter becomes the module's own, another tensor a buffer that is not saved with it."""
        if per_pair.is_number(value):
            setattr(self, name, check(value))
            return
        tensor = per_pair.numbers_as_tensor(name, value)
        # Where gamma is a tensor, 0 is not one of its numbers.
        per_pair.check_numbers(name, tensor, per_pair.positive_gamma if name == "gamma" else check)
        if isinstance(value, torch.nn.Parameter):
            self.register_parameter(name, value)
        else:
            self.register_buffer(name, tensor, persistent=False)

    def forward(self, x, y, x_lengths=None, y_lengths=None):
        """The loss of x (B, N, D) against y (B, M, D), lengths (B,) where they are padded: 0-d, or (B,) for "none".

        Either may be a nested tensor or a PackedSequence, which has its own lengths. A pair without a batch, (N, D) and
        (M, D), is taken with a FutureWarning, since a batch of series of one channel, (B, N), looks the same.
        """
        if isinstance(x, torch.Tensor) and x.dim() == 2 and not (x.is_nested or torch.compiler.is_compiling()):
            remedies.warn_of_pair_without_batch(type(self).__name__, x)
        value = self._compare(
            x,
            y,
            self.gamma,
            cost=self.cost,
            x_lengths=x_lengths,
            y_lengths=y_lengths,
            bandwidth=self.bandwidth,
            warp_penalty=self.warp_penalty,
        )
        if self.reduction == "mean":
            return value.mean()
        return value.sum() if self.reduction == "sum" else value

    def _compare(self, *series_and_gamma, **options):
        return soft_dtw(*series_and_gamma, length_norm=self.length_norm, open_ends=self.open_ends, **options)

    def extra_repr(self):
        cost = self.cost if isinstance(self.cost, str) else getattr(self.cost, "__name__", repr(self.cost))
        gamma, penalty = (
            f"tensor of shape {tuple(number.shape)}" if isinstance(number, torch.Tensor) else f"{number:g}"
            for number in (self.gamma, self.warp_penalty)
        )
        flags = "".join(f", {name}=True" for name in ("length_norm", "open_ends") if getattr(self, name))
        return (
            f"gamma={gamma}, cost={cost}, bandwidth={self.bandwidth}, warp_penalty={penalty}, "
            f"reduction={self.reduction}{flags}"
        )


class SoftDTWDivergence(SoftDTW):
    """The soft-DTW divergence between predicted and true series as a loss, 0 where they agree, as `soft_dtw_divergence`.

    Blondel, Mensch & Vert, "Differentiable divergences between time series", AISTATS 2021. Where y needs no gradient, the
    term y against y is computed without keeping anything for a backward pass.

    Args:
        gamma: smoothing, in the unit of the cost; a positive number or a tensor, as in `SoftDTW`.
        kind: "soft", "sharp" or "mean", as in `soft_dtw_divergence`.
        cost: a name or a callable, as in `soft_dtw`.
        bandwidth: Sakoe-Chiba radius, an integer of at least 0; None: no band.
        warp_penalty: cost of a step that advances in one series only; a number of at least 0, or a tensor.
        reduction: "mean" or "sum" over the pairs, or "none".

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it.

    Example:
        >>> x = torch.randn(4, 10, 1)
        >>> SoftDTWDivergence(gamma=0.1)(x, x).item()
        0.0
    """

    def __init__(self, gamma=1.0, *, kind="soft", cost="sqeuclidean", bandwidth=None, warp_penalty=0.0, reduction="mean"):
        if per_pair.is_number(gamma):
            per_pair.positive_gamma(gamma)
        super().__init__(gamma, cost=cost, bandwidth=bandwidth, warp_penalty=warp_penalty, reduction=reduction)
        self.kind = arguments.one_of("kind", kind, KINDS)

    def _compare(self, *series_and_gamma, **options):
        return soft_dtw_divergence(*series_and_gamma, kind=self.kind, **options)

    def extra_repr(self):
        return f"kind={self.kind}, {super().extra_repr()}"
