"""Which kernel runs. The op chooses, once a call (csrc/cuda/select); here are the names, the checks of what a user asks
for, and select_kernel, which tells without running anything."""

import numbers
from typing import NamedTuple

import torch

from .._inputs import cost as costs
from .._inputs.arguments import FLOATS, flag
from . import ops

CUDA_KERNELS = ("diagonal", "stencil", "tiled")
KERNELS = ("cpu", *CUDA_KERNELS)
NAMES = ("auto", *KERNELS)
SPECIALIZATIONS = {
    "diagonal": ("plain",),
    "stencil": ("multivariate", "banded", "linear_domain", "integer_log2", "vector_log2", "extended_range"),
    "tiled": ("bidirectional", "few_dims", "ready_made", "multivariate", "warp_specialised", "extended_range"),
}
MATRIX = "matrix"  # the cost of ready-made cost matrices
COSTS = (*costs.NAMES, MATRIX)
# What the choice knows of a GPU where there is none to ask: an H200.
H200 = {"capability": 90, "processors": 132, "shared_memory": 232448, "float64_ratio": 2}


class Plan(NamedTuple):
    """A kernel's name, and the rows that one thread holds in strips: what the ops are told, 0 for those that suit the call,
    or what they choose, with the specialisation."""

    kernel: str
    rows_per_thread: int


def select_kernel(
    n: int,
    m: int | None = None,
    *,
    batch: int = 1,
    dim: int = 1,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | int = "cuda",
    gradient: bool = False,
    cost: str = "sqeuclidean",
    bandwidth: int | None = None,
    warp_penalty: float = 0.0,
    kernel: str = "auto",
    specialization: bool = False,
) -> str:
    """Name the kernel that a call runs, without running it.

    Args:
        n: length of the series in x.
        m: length of the series in y; None: the same as n.
        batch: number of pairs.
        dim: dimension of a series' vectors.
        dtype: dtype of x and y. float16 and bfloat16 count as float32, in which they are computed.
        device: device of x and y. Where PyTorch sees no GPU, "cuda" stands for an H200.
        gradient: whether x or y requires a gradient, which may make another kernel the faster one.
        cost: a name, as in `soft_dtw`, or "matrix" for a ready-made cost matrix, which a callable makes, too.
        bandwidth: Sakoe-Chiba radius, or None.
        warp_penalty: cost of a step that advances in one series only.
        kernel: "auto", or the name that the call would be given.
        specialization: whether to name the specialisation of the kernel as well, as in "tiled/bidirectional".

    Returns:
        "cpu" on the CPU, otherwise "diagonal", "stencil" or "tiled", or with its specialisation. Each of these can be given
        as `kernel=`.

    Raises:
        TypeError, ValueError: an argument is wrong, such as a device that is neither the CPU nor CUDA, or a kernel that
            does not take such a call.

    Example:
        >>> select_kernel(128, batch=512)
        'stencil'
        >>> select_kernel(2048, batch=16, gradient=True, specialization=True)
        'tiled/bidirectional'
    """
    m = n if m is None else m
    for name, size in (("n", n), ("m", m), ("batch", batch), ("dim", dim)):
        _check_size(name, size)
    if dtype not in FLOATS:
        raise TypeError(f"dtype: expected float64, float32, float16 or bfloat16, got {dtype}")
    if cost not in COSTS:
        raise ValueError(f"cost: expected one of {', '.join(map(repr, COSTS))}, got {cost!r}")
    if bandwidth is not None:
        _check_size("bandwidth", bandwidth)
    try:
        device = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device: expected the CPU or CUDA, got {device!r}") from error
    flag("gradient", gradient)
    flag("specialization", specialization)
    check(kernel, device)
    if device.type in ("cpu", "meta"):
        return "cpu"
    options = bandwidth is not None, warp_penalty != 0, False
    radius = -1 if bandwidth is None else int(bandwidth)
    found = _found(kernel, choose(kernel, (batch, n, m, dim), dtype, device, gradient, cost, options, radius))
    return found.kernel if specialization else found.kernel.partition("/")[0]


def require(kernel, sizes, like, gradient, cost, options):
    """Raise unless the kernel takes a call; `options` are arguments.Options."""
    has_band = options.bandwidths is not None or options.bandwidth >= 0
    has_penalty = options.warp_penalties is not None or options.warp_penalty != 0
    is_ragged = not (options.x_lengths is None and options.y_lengths is None and options.bandwidths is None)
    radius = options.bandwidth if options.bandwidths is None else -1
    flags = has_band, has_penalty, is_ragged
    _found(kernel, choose(kernel, sizes, like.dtype, like.device, gradient, cost, flags, radius))


def _found(kernel, plan):
    if plan is None:
        raise ValueError(f"kernel: {kernel!r} does not take these series and options; expected 'auto' or another kernel")
    return plan


def choose(kernel, sizes, dtype, device, gradient, cost="sqeuclidean", options=(False, False, False), bandwidth=-1):
    """The Plan that the op makes on CUDA; None where `kernel` does not take such a call.

    sizes: batch, n, m and dim. options: whether there is a band, a penalty, and lengths or bands of each pair's own.
    bandwidth: the radius of all pairs, -1 where there is none, or each has its own.
    """
    cost = "sqeuclidean" if cost == "cosine" else cost
    is_float64, properties = dtype == torch.float64, _properties(device)
    name, rows = ops.select_kernel(
        kernel, *sizes, is_float64, cost, *options, gradient, *properties, min(bandwidth, 2**31 - 1)
    )
    return Plan(name, rows) if name else None


def _check_size(name, size):
    if isinstance(size, bool) or not isinstance(size, (int, numbers.Integral)):
        raise TypeError(f"{name}: expected an integer, got {type(size).__name__}")
    least = 0 if name in ("batch", "bandwidth") else 1
    if size < least:
        raise ValueError(f"{name}: expected an integer of at least {least}, got {size}")


def _properties(device):
    if torch.cuda.is_available() and ops.HAS_CUDA:
        return ops.device_properties(torch.cuda.current_device() if device.index is None else device.index)
    return H200.values()


def check_name(kernel):
    if not isinstance(kernel, str):
        raise TypeError(f"kernel: expected a string, got {type(kernel).__name__}")
    if kernel in NAMES:
        return
    name, _, specialization = kernel.partition("/")
    if specialization not in SPECIALIZATIONS.get(name, ()):
        names = ", ".join(map(repr, NAMES))
        raise ValueError(
            f"kernel: expected one of {names}, or with a specialisation as in 'tiled/bidirectional', got {kernel!r}"
        )


def is_for_cuda(kernel):
    return kernel.partition("/")[0] in CUDA_KERNELS


def check(kernel, device):
    """Raise unless `kernel` is a name of a kernel for the device."""
    check_name(kernel)
    if device.type in ("cpu", "meta"):
        if is_for_cuda(kernel):
            raise ValueError(f"kernel: {kernel!r} runs on CUDA tensors only, and x is on {device}; use 'auto' or 'cpu'")
    elif device.type != "cuda":
        raise ValueError(f"device: expected the CPU or CUDA, got {device}")
    elif kernel == "cpu":
        raise ValueError(f"kernel: 'cpu' runs on CPU tensors only, and x is on {device}; use 'auto' or a CUDA kernel")


def plan(kernel, like):
    """The Plan for a tensor: `kernel`, if its device has it; "auto" on CUDA is left to the op, which knows the call."""
    check(kernel, like.device)
    return Plan(kernel, 0) if like.device.type == "cuda" else Plan("cpu", 0)
