"""What the user passed -> what the ops take, with an error that names the argument, what came and what was expected."""

import math
import numbers
import operator
from typing import NamedTuple

import torch

COMPUTED = (torch.float64, torch.float32)
FLOATS = (*COMPUTED, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
REAL = (float, int, numbers.Real)  # the third alone would do, but takes long to ask
NUMBER_LIKE = (*REAL, str, bool, torch.SymFloat, torch.SymInt)
WIDEST_BAND = 1 << 30  # wider than any table
LONGEST = 1 << 28


class Options(NamedTuple):
    """The arguments that every op shares, in the ops' order."""

    x_lengths: torch.Tensor | None
    y_lengths: torch.Tensor | None
    bandwidths: torch.Tensor | None
    gammas: torch.Tensor | None  # None: the number `gamma` holds for every pair; likewise the others
    warp_penalties: torch.Tensor | None
    bandwidth: int
    gamma: float
    warp_penalty: float

    def in_unit_of(self, factor):
        """The same beside costs that are `factor` times as large."""
        gammas, penalties = (None if tensor is None else factor * tensor for tensor in (self.gammas, self.warp_penalties))
        numbers = {"gamma": factor * self.gamma, "warp_penalty": factor * self.warp_penalty}
        return self._replace(gammas=gammas, warp_penalties=penalties, **numbers)


def series(x, y):
    """Check x and y. Returns them as (B, N, D) and (B, M, D) in the dtype of the computation, and whether they had a B."""
    _check_float_tensor("x", x)
    _check_float_tensor("y", y)
    dims = x.dim()
    for name, tensor in (("x", x), ("y", y)):
        if tensor.dim() not in (2, 3):
            raise ValueError(f"{name}: expected shape (batch, length, dim) or (length, dim), got {tuple(tensor.shape)}")
    if dims != y.dim():
        raise ValueError(f"x and y: expected both with a batch or both without, got {_shapes(x, y)}")
    if x.device != y.device:
        raise ValueError(f"x and y: expected one device, got {x.device} and {y.device}")
    if dims == 2:
        x, y = x.unsqueeze(0), y.unsqueeze(0)
    (batch, n, dim), (y_batch, m, y_dim) = x.shape, y.shape
    if batch != y_batch:
        raise ValueError(f"x and y: expected the same batch size (there is no broadcasting), got {_shapes(x, y)}")
    if dim != y_dim:
        raise ValueError(f"x and y: expected vectors of the same dimension, got {_shapes(x, y)}")
    _check_length("x", x, n)
    _check_length("y", y, m)
    if dim < 1:
        raise ValueError(f"x: expected a dimension of at least 1, got shape {tuple(x.shape)}")
    if x.dtype != y.dtype or x.dtype not in COMPUTED:
        dtype = compute_dtype(torch.promote_types(x.dtype, y.dtype))
        x, y = x.to(dtype), y.to(dtype)
    return x, y, dims == 3


def cost_matrix(matrix):
    """Check a ready-made cost matrix. Returns it as (B, N, M) in the dtype of the computation, and whether it had a B."""
    _check_float_tensor("cost_matrix", matrix)
    if matrix.dim() not in (2, 3):
        raise ValueError(f"cost_matrix: expected shape (batch, N, M) or (N, M), got {tuple(matrix.shape)}")
    batched = matrix.dim() == 3
    if not batched:
        matrix = matrix.unsqueeze(0)
    for length in matrix.shape[1:]:
        _check_length("cost_matrix", matrix, length)
    return matrix.to(compute_dtype(matrix.dtype)), batched


def options(like, n, m, batched, gamma, warp_penalty, bandwidth, x_lengths, y_lengths):
    """Check what the ops share, for `like` (B, ...) in the dtype of the computation."""
    gammas, penalties = None, None
    if is_number(gamma):
        gamma = positive_gamma(gamma, like.dtype)
    else:
        gammas, gamma = _number_per_pair("gamma", gamma, like, batched, positive_gamma), 1.0
    if is_number(warp_penalty):
        penalty = non_negative_penalty(warp_penalty)
    else:
        penalties, penalty = _number_per_pair("warp_penalty", warp_penalty, like, batched, _any_penalty), 0.0
    # With gammas on a CUDA device the kernels answer NaN for such a pair.
    if gammas is None and penalties is None and penalty and penalty / (gamma * math.log(2)) > torch.finfo(like.dtype).max:
        raise ValueError(f"warp_penalty: {warp_penalty} / gamma = {gamma} overflows {name_of(like.dtype)}")
    radius, radii = -1, None
    if bandwidth is not None:
        if _is_integer(bandwidth):
            radius = band_radius(bandwidth)
        else:
            radii = _per_pair("bandwidth", bandwidth, like, batched, 0, None)
    return Options(
        _per_pair("x_lengths", x_lengths, like, batched, 1, n),
        _per_pair("y_lengths", y_lengths, like, batched, 1, m),
        radii,
        gammas,
        penalties,
        radius,
        gamma,
        penalty,
    )


def is_number(value):
    """Whether `value` counts as one number for all pairs, or as nothing that a tensor of them could be made of."""
    return value is None or isinstance(value, NUMBER_LIKE)


def is_zero(gamma):
    """Whether `gamma` is the number 0, which stands for hard DTW."""
    return isinstance(gamma, REAL) and not isinstance(gamma, bool) and gamma == 0


def one_of(name, value, choices):
    """`value`, checked to be one of the strings `choices`."""
    if not isinstance(value, str) or value not in choices:
        *others, last = (repr(choice) for choice in choices)
        raise ValueError(f"{name}: expected {', '.join(others)} or {last}, got {value!r}")
    return value


def flag(name, value):
    if not isinstance(value, bool):
        raise TypeError(f"{name}: expected True or False, got {_describe(value)}")
    return value


def check_ends(open_ends, bandwidth):
    """Raise for open ends beside a band: a band is laid around the corners, which open ends leave open."""
    if flag("open_ends", open_ends) and bandwidth is not None:
        raise ValueError("open_ends: a bandwidth and open ends exclude each other, expected bandwidth=None")


def per_length(value, options, n, m):
    """`value` divided by the summed lengths of each pair."""
    lengths = (n if options.x_lengths is None else options.x_lengths) + (
        m if options.y_lengths is None else options.y_lengths
    )
    return value / lengths


def positive_gamma(gamma, dtype=torch.float64):
    """gamma as a float, checked: the kernels need 1 / (gamma ln 2) as an ordinary number of their dtype."""
    gamma = _number("gamma", gamma)
    if not 0 < gamma < math.inf:
        raise ValueError(f"gamma: expected a positive finite number, got {gamma}")
    limits = torch.finfo(dtype)
    scale = 1 / (gamma * math.log(2)) if gamma > 1e-300 else math.inf
    if not limits.tiny <= scale <= limits.max or gamma > limits.max:
        raise ValueError(f"gamma: {gamma} is outside the range of {name_of(dtype)}, in which this is computed")
    return gamma


def non_negative_penalty(warp_penalty):
    warp_penalty = _number("warp_penalty", warp_penalty)
    if not 0 <= warp_penalty < math.inf:
        raise ValueError(f"warp_penalty: expected a finite number of at least 0, got {warp_penalty}")
    return warp_penalty


def band_radius(bandwidth):
    if not _is_integer(bandwidth):
        raise TypeError(f"bandwidth: expected an integer or None, got {_describe(bandwidth)}")
    radius = operator.index(bandwidth)
    if radius < 0:
        raise ValueError(f"bandwidth: expected None or an integer of at least 0, got {radius}")
    return min(radius, WIDEST_BAND)


def _check_float_tensor(name, tensor):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {_describe(tensor)}")
    if tensor.layout != torch.strided or tensor.is_nested:
        raise TypeError(f"{name}: expected a dense tensor, got {layout_of(tensor)}; call .to_dense() or pad it first")
    if tensor.dtype not in FLOATS:
        raise TypeError(f"{name}: expected dtype float64, float32, float16 or bfloat16, got {name_of(tensor.dtype)}")
    if not (tensor.is_cuda or tensor.is_cpu or tensor.is_meta):
        raise ValueError(f"{name}: expected a tensor on the CPU or CUDA, got {tensor.device}")


def _check_length(name, tensor, length):
    # A bound on a symbolic length would become one of the exported program; the ops look at the length themselves.
    if length < 1 or (not torch.compiler.is_compiling() and length > LONGEST):
        raise ValueError(f"{name}: expected lengths from 1 to 2^28, got shape {tuple(tensor.shape)}")


def _per_pair(name, given, like, batched, low, high):
    """One integer per pair as the ops want it: (B,) int64, contiguous, on the device of `like`. None stays None."""
    if given is None:
        return None
    batch, tensor = like.shape[0], given
    expected = "a tensor or sequence of integers, one per pair"
    if name == "bandwidth":
        expected = f"an integer, or {expected}"
    if not isinstance(given, torch.Tensor):
        try:
            tensor = torch.as_tensor(given)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"{name}: expected {expected}, got {_describe(given)}") from error
        if tensor.numel() == 0:
            tensor = tensor.to(torch.int64)
    _check_dense(name, tensor, expected)
    if tensor.dtype not in INTEGERS:
        raise TypeError(f"{name}: expected {expected}, got dtype {name_of(tensor.dtype)}")
    if not batched and tensor.dim() == 0:
        tensor = tensor.reshape(1)
    if tensor.dim() != 1 or tensor.shape[0] != batch:
        raise ValueError(f"{name}: expected shape ({batch},), one per pair, got {tuple(tensor.shape)}")
    # Values on a CUDA device are not looked at, which would mean waiting for it: the kernels answer NaN for a wrong one.
    _check_has_values(name, tensor, like)
    on_host = tensor.device.type == "cpu" or like.device.type == "cpu"
    if on_host and batch > 0 and not _is_hidden(tensor):
        smallest, largest = tensor.min().item(), tensor.max().item()
        if smallest < low or (high is not None and largest > high):
            limits = f"from {low} to {high}" if high is not None else f"of at least {low}"
            raise ValueError(f"{name}: expected integers {limits}, got values from {smallest} to {largest}")
    return tensor.to(device=like.device, dtype=torch.int64, non_blocking=tensor.device.type == "cpu").contiguous()


def _is_hidden(tensor):
    """Whether the values are not to be looked at: while compiling, or where torch.func maps over them."""
    return torch.compiler.is_compiling() or torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def numbers_as_tensor(name, given):
    """A tensor or sequence of real numbers as a tensor."""
    expected = "a number, or a tensor or sequence of numbers, one per pair"
    tensor = given
    if not isinstance(given, torch.Tensor):
        try:
            tensor = torch.as_tensor(given, dtype=torch.float64)
        except OverflowError as error:
            raise ValueError(f"{name}: expected finite numbers, got one beyond the range of float64") from error
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"{name}: expected {expected}, got {_describe(given)}") from error
    _check_dense(name, tensor, expected)
    if tensor.dtype not in (*FLOATS, *INTEGERS):
        raise TypeError(f"{name}: expected {expected}, got dtype {name_of(tensor.dtype)}")
    return tensor


def check_numbers(name, tensor, check):
    """Raise for numbers that are wrong for every dtype and batch of series."""
    if tensor.dim() > 1:
        raise ValueError(f"{name}: expected shape () or (batch,), one per pair, got {tuple(tensor.shape)}")
    if tensor.device.type == "cpu":
        _check_values(tensor, check)


def _check_values(tensor, check):
    if tensor.numel() > 0 and not _is_hidden(tensor):
        values = tensor.detach().double()
        for value in (values.min().item(), values.max().item()):  # NaN is both
            check(value)


def _check_dense(name, tensor, expected):
    if tensor.layout != torch.strided or tensor.is_nested:
        raise TypeError(f"{name}: expected {expected}, got {layout_of(tensor)}")


def _check_has_values(name, tensor, like):
    if tensor.device.type == "meta" and like.device.type != "meta":
        places = "the CPU" if like.device.type == "cpu" else f"the CPU or {like.device}"
        raise ValueError(f"{name}: expected a tensor on {places}, got one on meta")


def _number_per_pair(name, given, like, batched, check):
    """One number per pair as the ops want it: (B,) float64, contiguous, on the device of `like`, differentiable."""
    batch, tensor = like.shape[0], numbers_as_tensor(name, given)
    if tensor.dim() > 1 or (tensor.dim() == 1 and tensor.shape[0] != batch):
        pair = "() or (1,)" if not batched else f"() or ({batch},), one per pair"
        raise ValueError(f"{name}: expected shape {pair}, got {tuple(tensor.shape)}")
    # As in _per_pair.
    _check_has_values(name, tensor, like)
    if tensor.device.type == "cpu" or like.device.type == "cpu":
        _check_values(tensor, lambda value: check(value, like.dtype))
    tensor = tensor.to(device=like.device, dtype=torch.float64, non_blocking=tensor.device.type == "cpu")
    return tensor.expand(batch).contiguous()


def _any_penalty(warp_penalty, _dtype):
    return non_negative_penalty(warp_penalty)


def _is_integer(value):
    if isinstance(value, (bool, torch.Tensor)):
        return False
    return isinstance(value, (int, torch.SymInt, numbers.Integral))


def _number(name, value):
    if isinstance(value, bool):
        raise TypeError(f"{name}: expected a number, got a bool")
    if isinstance(value, (int, float)) or (not isinstance(value, torch.Tensor) and isinstance(value, numbers.Real)):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    raise TypeError(f"{name}: expected a number, got {_describe(value)}")


def compute_dtype(dtype):
    """The dtype that something in `dtype` is computed in."""
    return dtype if dtype == torch.float64 else torch.float32


def _describe(value):
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def layout_of(tensor):
    strided_nested = tensor.is_nested and tensor.layout == torch.strided
    return "a nested tensor" if strided_nested else f"layout {tensor.layout}"


def _shapes(x, y):
    return f"{tuple(x.shape)} and {tuple(y.shape)}"
