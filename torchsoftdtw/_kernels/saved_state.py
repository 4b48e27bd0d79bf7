"""How many bytes a kernel saves for its backward pass, for the fakes of ops.py.

Each formula mirrors `saved_bytes` of one kernel file, where the layout itself is defined. The arithmetic is plain enough
for symbolic sizes; tests compare it with what the kernels return.
"""

import torch

WARP = 32
STEPS = 8
CPU_ROWS = 64
CPU_SEGMENT = 256
SHORTEST_MEETING = 128  # n, from above which on tables are swept from both ends
NARROWEST_MEETING = 256  # m, below which they are not
LONGEST_LEVEL = 1500  # n + m, up to which the level engine is used
MOST_LEVEL_ROWS = 512  # n, as well
FEWEST_LEVEL_WARPS = 1024  # of all pairs: with fewer, pairs get more lanes


def saved_bytes(kernel, rows_per_thread, batch, n, m, bandwidth, per_pair, dtype, plain=False, univariate=False):
    """Bytes that a forward pass with save=True returns in `saved`.

    per_pair tells whether any of x_lengths, y_lengths and bandwidths is given; bandwidth is -1 where there is no band.
    plain: the problem has neither band nor warp penalty. univariate: series of one dimension with squared Euclidean costs.
    """
    # A band narrows the saved table only where it is the same for every pair.
    radius = None if per_pair or bandwidth < 0 else bandwidth
    if kernel == "cpu":
        return _cpu(batch, n, m, dtype)
    if kernel == "diagonal":
        return _diagonal(batch, n, m, radius, dtype)
    pair = _strips(rows_per_thread, n, m, radius, dtype)
    if kernel == "tiled" and plain and univariate and not per_pair and dtype == torch.float32 and rows_per_thread == 2:
        return batch * torch.sym_max(pair, _meeting_applies(n, m) * _meeting(n, m))
    if kernel == "tiled" or not plain:
        return batch * pair
    level = _level_applies(n, m) if univariate else 0
    verdicts = _ceil_div(4 * batch, 256) * 256
    return level * verdicts + batch * torch.sym_max(pair, level * _level(batch, n, m, dtype))


def _ceil_div(a, b):
    return (a + b - 1) // b


def _is_positive(a):
    """0 or 1."""
    return torch.sym_min(1, torch.sym_max(0, a))


def _distance(n, m):
    return torch.sym_max(n - m, m - n)


def _cpu(batch, n, m, dtype):
    strips = _ceil_div(n, CPU_ROWS)
    segments = strips * _ceil_div(m + CPU_ROWS - 1, CPU_SEGMENT)
    edges = (strips - 1) * m * (8 + dtype.itemsize)
    payload = edges + segments * (8 + 4 * CPU_ROWS * dtype.itemsize)
    return batch * _ceil_div(payload, 64) * 64


def _diagonal(batch, n, m, radius, dtype):
    cells = n * m
    if radius is not None:
        cells = torch.sym_min(cells, (n + m - 1) * ((_distance(n, m) + 2 * radius) // 2 + 1))
    return 3 * dtype.itemsize * batch * cells


def _strips(rows_per_thread, n, m, radius, dtype):
    single = dtype.itemsize == 4
    stage = 4 if rows_per_thread == 2 and single else 2  # chunks between two snapshots
    rows = WARP * rows_per_thread
    width = m if radius is None else torch.sym_min(m, rows + _distance(n, m) + 2 * radius + STEPS)
    entries = rows_per_thread + 1
    snapshot = WARP * (2 * entries * dtype.itemsize + (0 if single and entries >= 5 else 8))
    return _snapshots_and_edges(_ceil_div(n, rows), width, stage, snapshot, dtype)


def _meeting_applies(n, m):
    return _is_positive(n - SHORTEST_MEETING) * _is_positive(m + 1 - NARROWEST_MEETING)


def _meeting(n, m):
    strips, stages = _ceil_div(n, 2 * WARP), _ceil_div(m + WARP + 1, WARP)
    snapshots = strips * stages * WARP * (3 * 8 + 8)
    edges = (strips - 1) * (stages - 1) * (WARP // STEPS) * (2 * STEPS * 4 + 8)
    return snapshots + _ceil_div(edges, 16) * 16 + 16


def _level_applies(n, m):
    return _is_positive(LONGEST_LEVEL + 1 - n - m) * _is_positive(MOST_LEVEL_ROWS + 1 - n)


def _level(batch, n, m, dtype):
    lanes = 8 + 8 * _is_positive(n - 128) + 16 * _is_positive(n - 256)
    fills = [_is_positive(batch * some_lanes + 1 - WARP * FEWEST_LEVEL_WARPS) for some_lanes in (16, 8)]
    lanes = torch.sym_max(lanes, WARP - 16 * fills[0] - 8 * fills[1])
    rows = 4 * _ceil_div(n, 4 * lanes)
    words = rows + (2 if dtype.itemsize == 4 else 1)
    chunks = _ceil_div(m + lanes - 1, STEPS)
    # What windows read: of 16 rows a lane in all of a warp's lanes.
    edges = 4 * 2 * STEPS * chunks * _is_positive(n - 12 * WARP) if dtype.itemsize == 4 else 0
    return ((chunks - 1) * words * lanes + edges) * dtype.itemsize


def _snapshots_and_edges(strips, width, stage, snapshot, dtype):
    chunks = _ceil_div(width + WARP, STEPS)
    edges = (strips - 1) * (chunks - WARP // STEPS) * (2 * STEPS * dtype.itemsize + 8)
    return strips * (_ceil_div(chunks, stage) - 1) * snapshot + _ceil_div(edges, 16) * 16
