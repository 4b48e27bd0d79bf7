"""An elastic measure of each pair of two sets, in the place of `Measure`."""

from typing import Any, NamedTuple

import torch

from .._inputs.arguments import Options
from .._internals import below_autograd
from .._kernels import ops
from .._measures.pairs import Pairs
from .measure import CPU_PAIRS, MOST_BYTES, MOST_PAIRS
from .tiles import tile_shape

SAVED_ROWS = 32  # of which a pair saves about one for its gradients


class ElasticMeasure(NamedTuple):
    """A measure object with its options, and the lengths of both sets' series. gamma: 0 of hard ones."""

    measure: Any
    bandwidth: int
    gamma: float
    kernel: str
    x_lengths: torch.Tensor | None
    y_lengths: torch.Tensor | None

    def tile_shape(self, shape, x, y, is_half, with_gradients=False):
        """(height, width) of tiles whose pairs fit a call, of (P, Q) pairs of series like x and y."""
        most = min(MOST_PAIRS if x.is_cuda else CPU_PAIRS, max(1, MOST_BYTES // self._bytes_of_pair(x, y, with_gradients)))
        return tile_shape(*shape, most, is_half)

    def _bytes_of_pair(self, x, y, with_gradients):
        n, m, dim = x.shape[1], y.shape[1], x.shape[2]
        if not with_gradients and self.measure.takes_index(Pairs(x, y, None, True, self.kernel)):
            # An edge of the table, or three of its anti-diagonals.
            has_strips = self.gamma == 0 and self.kernel != "diagonal"
            return 2 * m * x.element_size() + 16 if has_strips else 48 * (n + 1) + 16
        numbers = (n + m) * (dim + 2) * (4 if with_gradients else 1) * self.measure.width(dim)
        if with_gradients:
            numbers += n * m // SAVED_ROWS
        return numbers * x.element_size() + 16

    def values(self, x, y, tile):
        """(count,): the measure of a tile's pairs."""
        own = self._pairs(x, y, tile)
        if self.measure.takes_index(own):  # no series is copied
            call = self.measure._call(own)
            with below_autograd():
                return call.finish(ops.elastic(*own.chosen, *call.inputs, False)[0])
        return self._gathered(own)

    def gradients(self, x, y, tile, arriving):
        """As those of `Measure`."""
        with torch.enable_grad():
            x, y = x.detach(), y.detach()
            own = self._pairs(x, y, tile)
            x, y = (series[at.long()].requires_grad_() for series, at in zip((own.x, own.y), own.chosen, strict=True))
            value = self._gathered(own, x, y)
            found = torch.autograd.grad(value, (x, y), arriving())
        return tile.sums(*found)

    def _pairs(self, x, y, tile):
        own_x, own_y = slice(tile.top, tile.bottom), slice(tile.left, tile.right)
        x_lengths = None if self.x_lengths is None else self.x_lengths[own_x]
        y_lengths = None if self.y_lengths is None else self.y_lengths[own_y]
        options = Options(x_lengths, y_lengths, None, None, None, self.bandwidth, self.gamma, 0.0)
        return Pairs(x[own_x], y[own_y], options, True, self.kernel, tile.index(x.device))

    def _gathered(self, own, x=None, y=None):
        """With series of each pair's own."""
        x_index, y_index = (at.long() for at in own.chosen)
        x_lengths, y_lengths = own.options.x_lengths, own.options.y_lengths
        return self.measure(
            own.x[x_index] if x is None else x,
            own.y[y_index] if y is None else y,
            gamma=self.gamma,
            x_lengths=None if x_lengths is None else x_lengths[x_index],
            y_lengths=None if y_lengths is None else y_lengths[y_index],
            bandwidth=None if self.bandwidth < 0 else self.bandwidth,
            kernel=self.kernel,
        )
