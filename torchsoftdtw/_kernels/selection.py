"""Which kernel runs: policy only, the kernels obey. By device, dtype, cost, dimension, length and batch."""

import math
import numbers
from typing import NamedTuple

import torch

from .._inputs.arguments import flag
from .._inputs.kinds import FLOATS

CUDA_KERNELS = ("diagonal", "stencil", "tiled")
KERNELS = ("cpu", *CUDA_KERNELS)
NAMES = ("auto", *KERNELS)

# From how many pairs on `stencil`, whose pairs have a block each, is faster than `tiled`, which spreads them over
# blocks: from the sweeps in benchmarks/results. Tables of what holds up to a length, or to a number of dimensions. Several
# numbers: from the first on it is, from the second on it is not, and so forth, as either starts another round of blocks.
ALWAYS, NEVER, ANY = 0, math.inf, math.inf
STENCIL_LONGEST = 512
STENCIL_LONGEST_ALONE = 256  # few pairs of one dimension would each be one warp's
AT_ONCE = 132  # blocks of tiled that an H200 runs at once: more pairs take turns
TWO_ROUNDS, THREE_ROUNDS = 2 * AT_ONCE + 1, 3 * AT_ONCE + 1  # more than so many rounds
# From so many dimensions on, squared Euclidean costs in float32 come from csrc/cuda/kernels/multivariate ...
PRODUCT_DIMS = {"stencil": 16, "tiled": 2}
PRODUCT_ROWS = 2  # ... which has its own number of rows per thread.
MANY_DIMS = PRODUCT_DIMS["stencil"]  # from so many on costs are most of the work
OF_MANY_DIMS = ((256, ALWAYS), (ANY, NEVER))
OF_FLOAT64 = {False: ((STENCIL_LONGEST, ALWAYS), (ANY, 128)), True: ((STENCIL_LONGEST, ALWAYS), (1536, NEVER), (ANY, 192))}
# In float32, by dimensions: of squared Euclidean costs, for which `tiled` has products where there are several, with
# gradients, of which a multiprocessor has fewer pairs at once ...
OF_GRADIENTS = (
    (1, ((144, ALWAYS), (STENCIL_LONGEST, AT_ONCE + 1), (768, TWO_ROUNDS), (1024, 200), (ANY, 192))),
    (2, ((256, TWO_ROUNDS), (1024, 224), (ANY, 296))),
    (
        3,
        (
            (64, TWO_ROUNDS),
            (128, THREE_ROUNDS),
            (256, (320, THREE_ROUNDS, 530)),
            (384, 300),
            (1024, (300, THREE_ROUNDS, 510)),
            (ANY, (330, THREE_ROUNDS, 460)),
        ),
    ),
    (4, ((64, TWO_ROUNDS), (128, THREE_ROUNDS), (ANY, 660))),
    (5, ((64, 400), (128, 640), (ANY, 1150))),
    (7, ((128, 800), (256, 1480), (STENCIL_LONGEST, 1400), (ANY, 1536))),
    (8, ((64, 800), (128, 1100), (256, 2300), (ANY, 1850))),
    (MANY_DIMS - 1, ((128, 800), (256, 1380), (STENCIL_LONGEST, 1024), (ANY, 1536))),
    (ANY, OF_MANY_DIMS),
)
# ... and without them,
OF_VALUES = (
    (
        1,
        (
            (STENCIL_LONGEST_ALONE, ALWAYS),
            (400, AT_ONCE // 2 + 1),
            (STENCIL_LONGEST, AT_ONCE + 1),
            (1024, TWO_ROUNDS),
            (ANY, 352),
        ),
    ),
    (4, ((256, AT_ONCE + 1), (STENCIL_LONGEST, 256), (ANY, 176))),
    (8, ((256, AT_ONCE + 1), (STENCIL_LONGEST, 144), (ANY, 216))),
    *(
        (dim, ((128, 256 + 32 * dim), (256, 60 * dim - 160), (STENCIL_LONGEST, 55 * dim - 290), (ANY, 13 * dim + 85)))
        for dim in range(9, MANY_DIMS)
    ),
    (ANY, OF_MANY_DIMS),
)
# and of other costs, ready-made ones among them.
MATRIX = "matrix"
OF_OTHERS = (
    (1, ((STENCIL_LONGEST_ALONE, ALWAYS), (STENCIL_LONGEST, 65), (ANY, 512))),
    (7, ((256, ALWAYS), (STENCIL_LONGEST, 256), (ANY, 512))),
    (MANY_DIMS - 1, ((256, ALWAYS), (ANY, 512))),
    (ANY, OF_MANY_DIMS),
)
WARP = 32
STENCIL_WARPS = 4  # of a block: so many strips of a pair are swept side by side
FEW_PAIRS = 512  # with fewer, a pair's strips had better be swept all at once
TWO_ROWS_LONGEST = 64  # short pairs leave lanes idle in strips of four rows a thread
# Strips of 128 rows in all pairs, from which tiled takes four rows a thread, two otherwise: without gradients ...
TILED_FOUR_ROWS = 8192
TILED_FOUR_ROWS_ALONE = 1024  # ... and of a pair alone, whether or not
FLOAT64_ROWS = 2


class Plan(NamedTuple):
    """What the ops are told: a kernel's name, and the rows that one thread of `stencil` or `tiled` holds (else 0)."""

    kernel: str
    rows_per_thread: int


def select_kernel(n, m=None, *, batch=1, dim=1, dtype=torch.float32, device="cuda", gradient=False):
    """Name the kernel that ``kernel="auto"`` runs, without running it.

    Args:
        n: length of the series in x.
        m: length of the series in y; None: the same as n.
        batch: number of pairs.
        dim: dimension of a series' vectors.
        dtype: dtype of x and y. float16 and bfloat16 count as float32, in which they are computed.
        device: device of x and y.
        gradient: whether x or y requires a gradient, which may make another kernel the faster one.

    Returns:
        "cpu" on the CPU, otherwise "stencil" or "tiled", for cost="sqeuclidean".

    Raises:
        TypeError, ValueError: an argument is wrong, such as a device that is neither the CPU nor CUDA.

    Example:
        >>> select_kernel(128, batch=512)
        'stencil'
    """
    for name, size in (("n", n), ("m", n if m is None else m), ("batch", batch), ("dim", dim)):
        _check_size(name, size)
    if dtype not in FLOATS:
        raise TypeError(f"dtype: expected float64, float32, float16 or bfloat16, got {dtype}")
    try:
        torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device: expected the CPU or CUDA, got {device!r}") from error
    flag("gradient", gradient)
    return plan("auto", n, n if m is None else m, batch, dim, dtype, torch.device(device), gradient).kernel


def _check_size(name, size):
    if isinstance(size, bool) or not isinstance(size, (int, numbers.Integral)):
        raise TypeError(f"{name}: expected an integer, got {type(size).__name__}")
    least = 0 if name == "batch" else 1
    if size < least:
        raise ValueError(f"{name}: expected an integer of at least {least}, got {size}")


def check_name(kernel):
    if not isinstance(kernel, str):
        raise TypeError(f"kernel: expected a string, got {type(kernel).__name__}")
    if kernel not in NAMES:
        names = ", ".join(map(repr, NAMES))
        raise ValueError(f"kernel: expected one of {names}, got {kernel!r}")


def plan(kernel, n, m, batch, dim, dtype, device, gradient=False, cost="sqeuclidean"):
    """The Plan for a problem: `kernel`, if the device can run it, or the best one where it is "auto".

    gradient: whether one is wanted. cost: of vectors, or MATRIX for ready-made costs.
    """
    check_name(kernel)
    kind = device.type
    if kind in ("cpu", "meta"):
        if kernel in CUDA_KERNELS:
            raise ValueError(f"kernel: {kernel!r} runs on CUDA tensors only, and x is on {device}; use 'auto' or 'cpu'")
        return Plan("cpu", 0)
    if kind != "cuda":
        raise ValueError(f"device: expected the CPU or CUDA, got {device}")
    if kernel == "cpu":
        raise ValueError(f"kernel: 'cpu' runs on CPU tensors only, and x is on {device}; use 'auto' or a CUDA kernel")
    if kernel == "auto":
        turns = _turns(n, dim, dtype, gradient, cost)
        turns = turns if isinstance(turns, tuple) else (turns,)
        kernel = "stencil" if sum(batch >= turn for turn in turns) % 2 else "tiled"
    return Plan(kernel, rows_per_thread(kernel, n, batch, dim, dtype, gradient, cost))


def _turns(n, dim, dtype, gradient, cost):
    if dtype == torch.float64:
        return _first(OF_FLOAT64[gradient], n)
    by_dim = OF_OTHERS if cost != "sqeuclidean" else OF_GRADIENTS if gradient else OF_VALUES
    return _first(_first(by_dim, dim), n)


def _first(table, size):  # tables end with ANY
    for most, entry in table:
        if size <= most:
            return entry


def rows_per_thread(kernel, n, batch, dim, dtype, gradient=False, cost="sqeuclidean"):
    """More rows a thread mean fewer instructions a cell, and fewer warps to hide latency with."""
    if kernel == "diagonal":
        return 0
    if dtype == torch.float64:
        return FLOAT64_ROWS
    if kernel == "stencil":
        if cost == "sqeuclidean" and dim > 1:
            return _rows_of_vectors(n, batch, dim, gradient)
        # A tile of costs takes registers.
        if cost == MATRIX or (not gradient and cost != "sqeuclidean"):
            return 2
        at_once = n <= 2 * WARP * STENCIL_WARPS and batch < FEW_PAIRS
        return 2 if at_once or n <= TWO_ROWS_LONGEST else 4
    if batch > 1 and gradient:
        return 2
    strips = batch * ((n + 4 * WARP - 1) // (4 * WARP))
    return 4 if strips >= (TILED_FOUR_ROWS_ALONE if batch == 1 else TILED_FOUR_ROWS) else 2


def _rows_of_vectors(n, batch, dim, gradient):
    if gradient:  # Where E does not count is left out, and strips of fewer rows leave out more.
        full = batch >= 2 * FEW_PAIRS if n <= 128 else n <= 256 and FEW_PAIRS <= batch < 2 * FEW_PAIRS
        return 4 if full and n > TWO_ROWS_LONGEST else 2
    # A lane can hold the vectors of four rows if they have four numbers, else a tile of costs.
    fills = batch >= 2 * FEW_PAIRS and n > TWO_ROWS_LONGEST
    return 4 if dim in (3, 4) and (n > 256 or fills) else 2


def by_products(kernel, cost, dim, dtype):
    """Whether costs and gradients come from matrix products, as csrc/cuda/kernels/multivariate/multivariate.h decides."""
    known = kernel in PRODUCT_DIMS and cost == "sqeuclidean" and dtype == torch.float32
    return known and dim >= PRODUCT_DIMS[kernel]
