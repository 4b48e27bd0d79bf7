"""Two sets of series and what is asked of all their pairs, or of a block of them."""

import ctypes
import hashlib
import json
import math
from typing import Any, NamedTuple

import torch

from .._autograd import all_pairs
from .._inputs import arguments, per_pair, repeats, sets
from .._inputs import cost as costs
from .._inputs.kinds import name_of
from .._kernels import ops, selection
from ..functional import soft_dtw
from ..measures import Measure as MeasureObject
from .elastic import ElasticMeasure
from .measure import Measure, reduced
from .tiles import tiles

DEFAULT_GAMMA = 0.1  # of names; measure objects are hard unless a gamma is given
DISTANCES = ("dtw", "soft_dtw", "divergence")
# A block is computed at a time, in tiles, and counts as finished as a whole.
BLOCKS_ACROSS = 64  # at the most, where memory allows: each has to be looked after
WIDEST_BLOCK = 2048
MOST_BYTES = 256 << 20  # of a block's series
READ_AT_ONCE = 16 << 20


class Task(NamedTuple):
    x: torch.Tensor  # (P, N, D), and y (Q, M, D), as they came
    y: torch.Tensor
    options: arguments.Options
    distance: Any  # a name or a measure object
    cost: Any
    length_norm: bool
    open_ends: bool
    kernel: str
    dtype: torch.dtype  # of the computation
    is_half: bool  # whether y is x, so that half of the pairs are computed

    @property
    def shape(self):
        return self.x.shape[0], self.y.shape[0]

    @property
    def cells(self):
        """How many the tables of all pairs have."""
        return math.prod(self.shape) * self.x.shape[1] * self.y.shape[1]

    def values(self):
        """(P, Q), differentiable with respect to both sets, which are on the device of the computation."""
        x = self.x.to(self.dtype)
        y = x if self.is_half else self.y.to(self.dtype)
        measure, own_x, own_y, factor = self.measure(x, y)
        value = all_pairs.values(measure, own_x, own_y, self.is_half)
        value = value if factor == 1 else value / factor
        x_lengths, y_lengths = self.options.x_lengths, self.options.y_lengths
        if self.distance == "divergence":
            of_x = self._with_itself(x, x_lengths)
            of_y = of_x if self.is_half else self._with_itself(y, y_lengths)
            value = value - 0.5 * (of_x.unsqueeze(1) + of_y)
            if self.is_half:  # where other kernels may have left a rounding
                value = value.masked_fill(torch.eye(len(of_x), dtype=torch.bool, device=value.device), 0.0)
        return value / self.lengths() if self.length_norm else value

    def lengths(self):
        """The sums of the lengths of all pairs' series, that broadcast to (P, Q); one number where all are alike."""
        n, m = self.options.x_lengths, self.options.y_lengths
        n = self.x.shape[1] if n is None else n.unsqueeze(1)
        return n + (self.y.shape[1] if m is None else m)

    def part(self, x, y, is_half):
        """The task of other series, x and y, each with its lengths."""
        options = self.options._replace(x_lengths=x[1], y_lengths=y[1])
        return self._replace(x=x[0], y=y[0], options=options, is_half=is_half)

    def blocks(self, device):
        """The blocks, as Tiles, in which this is computed on a device."""
        x, y = (torch.empty((0, *series.shape[1:]), dtype=self.dtype, device=device) for series in (self.x, self.y))
        nothing = self.part((x, None), (y, None), False)
        measure, own_x, own_y, _ = nothing.measure(x, y)
        shape = measure.tile_shape(self.shape, own_x, own_y, self.is_half)
        least = 2 if device.type == "cuda" else 1  # a tile may take it less time than a block takes the host
        bytes_of_series = max(x.shape[1], y.shape[1]) * x.shape[2] * x.element_size()
        most = max(1, MOST_BYTES // bytes_of_series)

        def times(count, side):
            """`side`, as often as a set of so many series asks for."""
            wanted = max(least, -(-count // (BLOCKS_ACROSS * side)))
            return min(most, side * max(1, min(wanted, WIDEST_BLOCK // side)))

        height, width = (times(*each) for each in zip(self.shape, shape, strict=True))
        return list(tiles(*self.shape, height, width, self.is_half))

    def identity(self, blocks, device):
        """What tells this problem, and the blocks that it is computed in, from every other, as JSON has it."""
        from .. import __version__

        asked = ("length_norm", "open_ends", "kernel", "is_half")
        series = (self.x,) if self.is_half else (self.x, self.y)
        identity = {
            "version": __version__,
            "shapes": [list(each.shape) for each in series],
            "dtypes": [name_of(each.dtype) for each in series],
            **{name: getattr(self, name) for name in asked},
            "distance": self.distance if isinstance(self.distance, str) else repr(self.distance),
            **{name: getattr(self.options, name) for name in ("bandwidth", "gamma", "warp_penalty")},
            "cost": self._name_of_cost(device),
            "device": device.type,
            "blocks": [len(blocks), *(blocks[0].shape if blocks else ())],
            "inputs": _digest([*series, self.options.x_lengths, self.options.y_lengths]),
        }
        return json.loads(json.dumps(identity))

    def _name_of_cost(self, device):
        """A callable's own, and what it makes of the first series: its code alone does not tell what it computes."""
        if not callable(self.cost):
            return self.cost
        named = self.cost if hasattr(self.cost, "__qualname__") else type(self.cost)
        name = f"{named.__module__}.{named.__qualname__}"
        if 0 in self.shape:
            return name
        ends = (None if lengths is None else int(lengths[0]) for lengths in self.options[:2])
        first = (series[:1, :end].to(device, self.dtype) for series, end in zip((self.x, self.y), ends, strict=True))
        return f"{name} {self.cost(*first).double().mean().item():.4g}"

    def measure(self, x, y):
        """(Measure, x, y, factor): series in a cost of the kernels' own, of whose values a `factor`-th part is wanted."""
        kernel = selection.plan(self.kernel, x).kernel
        ops.require_build_for(x)
        if isinstance(self.distance, MeasureObject):
            lengths = self.options.x_lengths, self.options.y_lengths
            return ElasticMeasure(self.distance, self.options.bandwidth, self.options.gamma, kernel, *lengths), x, y, 1
        own_x, own_y, cost, options, factor = reduced(x, y, self.cost, self.options)
        numbers = options.bandwidth, options.gamma, options.warp_penalty
        lengths = options.x_lengths, options.y_lengths
        return Measure(self.distance == "dtw", cost, *numbers, self.open_ends, kernel, *lengths), own_x, own_y, factor

    def _with_itself(self, series, lengths):
        """(P,): soft-DTW of each series with itself."""
        bandwidth = None if self.options.bandwidth < 0 else self.options.bandwidth
        options = {"cost": self.cost, "bandwidth": bandwidth, "warp_penalty": self.options.warp_penalty}
        return soft_dtw(
            series, series, self.options.gamma, x_lengths=lengths, y_lengths=lengths, kernel=self.kernel, **options
        )


def of_sets(x, y, distance, gamma, cost, x_lengths, y_lengths, bandwidth, warp_penalty, length_norm, open_ends, kernel):
    """(Task, whether the answer is to be a NumPy array), or an error that names the argument. y None: x itself."""
    is_elastic, other = isinstance(distance, MeasureObject), x if y is None else y
    call = None
    if type(distance) is str:
        gamma = DEFAULT_GAMMA if gamma is None else gamma
        others = x_lengths, y_lengths, length_norm, open_ends
        name = f"cdist {distance}", y is None
        call = repeats.signature(name, x, other, gamma, warp_penalty, bandwidth, cost, kernel, *others)
    known = repeats.recall(call)
    if known is not None:
        return known._replace(x=x, y=other), False
    if is_elastic:
        _check_options_of_elastic(cost, warp_penalty, open_ends)
    else:
        arguments.one_of("distance", distance, DISTANCES)
    costs.check(cost)
    arguments.check_ends(open_ends, bandwidth)
    arguments.flag("length_norm", length_norm)
    is_half = y is None
    if open_ends and (is_half or distance == "divergence"):
        raise ValueError("open_ends: expected False without y and for the divergence, which would not be symmetric")
    if is_half and y_lengths is not None:
        raise ValueError("y_lengths: expected None if y is None; x_lengths is used for both")
    pair = sets.pair(x, y, x_lengths, y_lengths)
    is_hard = distance == "dtw" or (is_elastic and (gamma is None or per_pair.is_zero(gamma)))
    gamma = DEFAULT_GAMMA if gamma is None else gamma
    options = sets.options(pair, 1.0 if is_hard else gamma, warp_penalty, bandwidth)
    if is_hard and is_elastic:
        options = options._replace(gamma=0.0)
    task = Task(pair.x, pair.y, options, distance, cost, length_norm, open_ends, kernel, pair.dtype, is_half)
    if pair.x is x and pair.y is other:
        repeats.remember(call, task._replace(x=None, y=None))
    return task, pair.is_array


def _check_options_of_elastic(cost, warp_penalty, open_ends):
    """Raise for options that a measure object has itself, or cannot have."""
    given = {"cost": cost != "sqeuclidean", "warp_penalty": warp_penalty != 0, "open_ends": open_ends is not False}
    for name, is_given in given.items():
        if is_given:
            raise ValueError(f"{name}: expected its default beside a measure object, which has its own costs")


def _digest(tensors):
    """A hash of what tensors hold, read some rows at a time."""
    found = hashlib.blake2b(digest_size=16)
    for tensor in tensors:
        if tensor is None or tensor.numel() == 0:
            found.update(b"nothing")
            continue
        for rows in tensor.split(max(1, READ_AT_ONCE // tensor[:1].nbytes)):
            rows = rows.detach().cpu().contiguous()
            found.update((ctypes.c_char * rows.nbytes).from_address(rows.data_ptr()))
    return found.hexdigest()
