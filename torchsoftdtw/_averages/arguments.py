"""What `barycenter` is asked for -> groups of series and where averages start, or an error that names the argument."""

from typing import NamedTuple

import torch

from .._inputs import arguments, kinds, per_pair, sets
from .groups import Groups

INITS = ("mean", "medoid")


class Asked(NamedTuple):
    groups: Groups
    inputs: tuple  # weights (K,) float64 and series (K, M, D), of which the averages are functions
    has_one: bool  # whether there is one average, which has no G in its shape
    is_array: bool  # whether the series came as NumPy arrays

    def answer(self, averages, history):
        """(averages (G, L, D), history (steps + 1, G)) as the caller gets them."""
        found = averages.to(self.groups.series.dtype), history
        if self.has_one:
            found = found[0].squeeze(0), found[1].squeeze(1)
        return tuple(tensor.numpy() for tensor in found) if self.is_array else found


def of_series(series, lengths, weights, labels):
    """Asked of series in any form."""
    is_array = sets.holds_arrays(series)
    if kinds.is_array(series):
        series = torch.from_numpy(series)
    if lengths is not None and (not isinstance(series, torch.Tensor) or series.is_nested):
        raise ValueError(
            "lengths: expected None unless series is a dense tensor, since other series have their own lengths"
        )
    groups, count = None, 1
    if isinstance(series, torch.Tensor) and not series.is_nested and series.dim() == 4:
        if labels is not None:
            raise ValueError("labels: expected None if series is (groups, series, length, dim)")
        groups, series = series.shape[:2], series.flatten(0, 1)
        count = groups[0]
        lengths = _flat("lengths", lengths, groups)
    series, lengths = sets.of_set("series", series, lengths)
    if len(series) == 0:
        raise ValueError("series: expected at least one of them in each group, got none")
    series = series.to(kinds.compute_dtype(series.dtype))
    lengths = per_pair.integers_per_pair("lengths", lengths, series, True, 1, series.shape[1])
    _check_finite(series, lengths, groups)
    has_one = groups is None and labels is None
    if labels is not None:
        labels, count = _labels(labels, series)
    weights = _weights(weights, series, groups)
    if is_array:
        _refuse_gradient("weights", weights, "averages are NumPy arrays, as the series are, and have none")
    groups = Groups(series.detach(), lengths, weights.detach(), labels, count)
    if not bool((groups.total > 0).all()):
        raise ValueError("weights: expected a positive sum in every group of series, got 0")
    return Asked(groups, (weights, series), has_one, is_array)


def start(init, length, asked):
    """(init, length): a name, or averages (G, length, D) to start from, and how long averages are."""
    groups = asked.groups
    if length is not None:
        if not per_pair.is_integer(length):
            raise TypeError(f"length: expected an integer or None, got {kinds.describe(length)}")
        if not 1 <= length <= arguments.LONGEST:
            raise ValueError(f"length: expected an integer from 1 to 2^28, got {length}")
    if isinstance(init, str):
        return arguments.one_of("init", init, INITS), groups.series.shape[1] if length is None else int(length)
    init = torch.from_numpy(init) if kinds.is_array(init) else init
    arguments.check_float_tensor("init", init)
    _refuse_gradient("init", init, "an average is the same wherever it starts near by")
    wanted = "length" if length is None else int(length), groups.series.shape[2]
    wanted = wanted if asked.has_one else (groups.count, *wanted)
    shape = init.shape
    if (
        len(shape) != len(wanted)
        or shape[-2] < 1
        or any(own != size for own, size in zip(shape, wanted, strict=True) if size != "length")
    ):
        raise ValueError(f"init: expected shape ({', '.join(map(str, wanted))}), got {tuple(shape)}")
    if init.device != groups.series.device:
        raise ValueError(f"init: expected a tensor on {groups.series.device}, got one on {init.device}")
    if not bool(init.isfinite().all()):
        raise ValueError("init: expected finite numbers, got NaN or infinity")
    return init.view(groups.count, *shape[-2:]).to(groups.series.dtype), shape[-2]


def check_steps(max_iter, tol):
    if not per_pair.is_integer(max_iter):
        raise TypeError(f"max_iter: expected an integer, got {kinds.describe(max_iter)}")
    if max_iter < 0:
        raise ValueError(f"max_iter: expected an integer of at least 0, got {max_iter}")
    if tol is None:
        return
    if isinstance(tol, bool) or not isinstance(tol, per_pair.REAL):
        raise TypeError(f"tol: expected a number or None, got {kinds.describe(tol)}")
    if not tol >= 0:
        raise ValueError(f"tol: expected a number of at least 0, got {tol}")


def _flat(name, given, groups):
    """One number per series of every group, (G, K) as (G K,)."""
    if given is None:
        return None
    tensor = given if isinstance(given, torch.Tensor) else torch.as_tensor(given, device="cpu")
    if tuple(tensor.shape) != tuple(groups):
        raise ValueError(f"{name}: expected shape {tuple(groups)}, one per series, got {tuple(tensor.shape)}")
    return tensor.flatten()


def check_gradient(asked, method, cost):
    """Raise where a gradient is asked for and there is none."""
    why = None
    if method == "dba":
        why = "averages of the method 'dba' have none, since best paths change in jumps"
    elif cost in ("euclidean", "cityblock"):
        why = f"with the cost {cost!r} the minimum lies at kinks"
    for name, tensor in zip(("weights", "series"), asked.inputs, strict=True):
        if why is not None:
            _refuse_gradient(name, tensor, why)


def _refuse_gradient(name, tensor, why):
    if arguments.wants_gradient(tensor):
        raise ValueError(f"{name}: expected a tensor that requires no gradient: {why}; call .detach()")


def _check_finite(series, lengths, groups):
    finite = series.isfinite().all(2)
    if lengths is not None:
        finite |= torch.arange(series.shape[1], device=series.device) >= lengths.unsqueeze(1)
    finite = finite.all(1)
    if bool(finite.all()):
        return
    first = int(finite.logical_not().nonzero()[0])
    place = first if groups is None else f"{first // groups[1]}, {first % groups[1]}"
    raise ValueError(f"series: expected finite numbers, got NaN or infinity in series[{place}]")


def _labels(labels, series):
    labels = per_pair.integers_per_pair("labels", labels, series, True, 0, len(series) - 1)
    counts = torch.bincount(labels)
    empty = (counts == 0).nonzero().flatten().tolist()
    if empty:
        raise ValueError(f"labels: expected every label from 0 to {len(counts) - 1}, got no series of {empty[0]}")
    return labels, len(counts)


def _weights(weights, series, groups):
    if weights is None:
        return torch.ones(len(series), dtype=torch.float64, device=series.device)
    tensor = per_pair.numbers_as_tensor("weights", weights)
    if groups is not None:
        tensor = _flat("weights", tensor, groups)
    if tensor.shape != (len(series),):
        raise ValueError(f"weights: expected shape ({len(series)},), one per series, got {tuple(tensor.shape)}")
    tensor = tensor.to(device=series.device, dtype=torch.float64)
    if not bool((tensor.isfinite() & (tensor >= 0)).all()):
        raise ValueError("weights: expected finite numbers of at least 0, got NaN, infinity or a negative number")
    return tensor
