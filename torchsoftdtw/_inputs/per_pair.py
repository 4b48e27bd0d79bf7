"""Numbers that hold for every pair, or one per pair: gamma, the warp penalty, lengths, a band's radius."""

import math
import numbers
import operator

import torch

from .._internals import is_mapped
from . import remedies
from .kinds import FLOATS, INTEGERS, describe, layout_of, name_of

REAL = (float, int, numbers.Real)  # the third alone would do, but takes long to ask
NUMBER_LIKE = (*REAL, str, bool, torch.SymFloat, torch.SymInt)
WIDEST_BAND = 1 << 30  # wider than any table


def is_number(value):
    """Whether `value` counts as one number for all pairs, or as nothing that a tensor of them could be made of."""
    return value is None or isinstance(value, NUMBER_LIKE)


def is_zero(gamma):
    """Whether `gamma` is the number 0, which stands for hard DTW."""
    return isinstance(gamma, REAL) and not isinstance(gamma, bool) and gamma == 0


def positive_gamma(gamma, dtype=torch.float64):
    """gamma as a float, checked: the kernels need 1 / (gamma ln 2) as an ordinary number of their dtype."""
    gamma = _number("gamma", gamma)
    if not 0 < gamma < math.inf:
        raise ValueError(f"gamma: expected a positive finite number, got {gamma}{remedies.of_gamma(gamma)}")
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
    """A radius for all pairs, of a module."""
    if isinstance(bandwidth, torch.Tensor) and bandwidth.dim() == 0 and bandwidth.dtype in INTEGERS:
        bandwidth = bandwidth.item()
    if not is_integer(bandwidth):
        raise TypeError(f"bandwidth: expected an integer or None, got {describe(bandwidth)}{remedies.of_radius(bandwidth)}")
    radius = operator.index(bandwidth)
    if radius < 0:
        raise ValueError(f"bandwidth: expected None or an integer of at least 0, got {radius}")
    return min(radius, WIDEST_BAND)


def integers_per_pair(name, given, like, batched, low, high):
    """One integer per pair as the ops want it: (B,) int64, contiguous, on the device of `like`. None stays None."""
    if given is None:
        return None
    batch, tensor = like.shape[0], given
    expected = "a tensor or sequence of integers, one per pair"
    if name == "bandwidth":
        expected = f"an integer, or {expected}"
    if not isinstance(given, torch.Tensor):
        try:
            tensor = torch.as_tensor(given, device="cpu")  # where it is checked, whatever the default device
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"{name}: expected {expected}, got {describe(given)}") from error
        if tensor.numel() == 0:
            tensor = tensor.to(torch.int64)
    _check_dense(name, tensor, expected)
    if tensor.dtype not in INTEGERS:
        remedy = remedies.of_radius(given) if name == "bandwidth" else ""
        raise TypeError(f"{name}: expected {expected}, got dtype {name_of(tensor.dtype)}{remedy}")
    may_be_one = name == "bandwidth"  # for all pairs
    if tensor.dim() == 0 and (may_be_one or not batched):
        tensor = tensor.expand(batch)
    if tensor.dim() != 1 or tensor.shape[0] != batch:
        shape = f"() or ({batch},)" if may_be_one else f"({batch},)"
        raise ValueError(f"{name}: expected shape {shape}, one per pair, got {tuple(tensor.shape)}")
    # Values on a CUDA device are not looked at, which would mean waiting for it: the kernels answer NaN for a wrong one.
    _check_has_values(name, tensor, like)
    on_host = tensor.device.type == "cpu" or like.device.type == "cpu"
    if on_host and batch > 0 and not is_hidden(tensor):
        smallest, largest = tensor.min().item(), tensor.max().item()
        if smallest < low or (high is not None and largest > high):
            limits = f"from {low} to {high}" if high is not None else f"of at least {low}"
            raise ValueError(f"{name}: expected integers {limits}, got values from {smallest} to {largest}")
    return tensor.to(device=like.device, dtype=torch.int64, non_blocking=tensor.device.type == "cpu").contiguous()


def is_hidden(tensor):
    """Whether the values are not to be looked at: while compiling, or where torch.func maps over them."""
    return torch.compiler.is_compiling() or is_mapped(tensor)


def numbers_as_tensor(name, given):
    """A tensor or sequence of real numbers as a tensor."""
    expected = "a number, or a tensor or sequence of numbers, one per pair"
    tensor = given
    if not isinstance(given, torch.Tensor):
        try:
            tensor = torch.as_tensor(given, dtype=torch.float64, device="cpu")
        except OverflowError as error:
            raise ValueError(f"{name}: expected finite numbers, got one beyond the range of float64") from error
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"{name}: expected {expected}, got {describe(given)}") from error
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
    if tensor.numel() > 0 and not is_hidden(tensor):
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


def number_per_pair(name, given, like, batched, check):
    """One number per pair as the ops want it: (B,) float64, contiguous, on the device of `like`, differentiable."""
    batch, tensor = like.shape[0], numbers_as_tensor(name, given)
    if tensor.dim() > 1 or (tensor.dim() == 1 and tensor.shape[0] not in (1, batch)):
        pair = "() or (1,)" if not batched else f"() or ({batch},), one per pair"
        raise ValueError(f"{name}: expected shape {pair}, got {tuple(tensor.shape)}")
    # As in integers_per_pair.
    _check_has_values(name, tensor, like)
    if tensor.device.type == "cpu" or like.device.type == "cpu":
        _check_values(tensor, lambda value: check(value, like.dtype))
    tensor = tensor.to(device=like.device, dtype=torch.float64, non_blocking=tensor.device.type == "cpu")
    return tensor.expand(batch).contiguous()


def any_penalty(warp_penalty, _dtype):
    return non_negative_penalty(warp_penalty)


def is_integer(value):
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
    raise TypeError(f"{name}: expected a number, got {describe(value)}")
