"""What the functions of two batches of series are asked, checked and padded."""

from typing import Any, NamedTuple

import torch

from . import arguments, ragged
from . import cost as costs


class Problem(NamedTuple):
    x: torch.Tensor  # (B, N, D), and y (B, M, D), in the dtype of the computation
    y: torch.Tensor
    cost: Any  # a name or a callable
    options: arguments.Options
    batched: bool  # whether the caller's series have a batch
    length_norm: bool = False
    open_ends: bool = False

    def answer(self, value):
        """The values (B,) of the pairs as the caller gets them."""
        if self.length_norm:
            value = arguments.per_length(value, self.options, self.x.shape[1], self.y.shape[1])
        return value if self.batched else value.squeeze(0)


def of_series(x, y, gamma, cost, x_lengths, y_lengths, bandwidth, warp_penalty, length_norm=False, open_ends=False):
    """The Problem of a call, or an error that names the argument."""
    costs.check(cost)
    x, y, x_lengths, y_lengths = ragged.padded(x, y, x_lengths, y_lengths)
    x, y, batched = arguments.series(x, y)
    arguments.check_ends(open_ends, bandwidth)
    arguments.flag("length_norm", length_norm)
    sizes = x.shape[1], y.shape[1], batched
    options = arguments.options(x, *sizes, gamma, warp_penalty, bandwidth, x_lengths, y_lengths)
    return Problem(x, y, cost, options, batched, length_norm, open_ends)
