"""The strips' device code on the host, where no GPU is needed (tests/emulation): the cases and bounds of test_engines.py.

Engine by engine, a warp at a time: what each has to take and what to give up. Whole kernels: test_emulated_gpu.py.
"""

import ctypes
import decimal
import math
from math import ceil, inf, log, log2, nan, pi, sqrt

import numpy as np
import oracle
import pytest
import torch
from cases import normal, numpy64
from test_engines import CASES, Case, assert_value, bound_of, case_of, costs_of, expected, expected_pairs, two_corridors

import torchsoftdtw
from emulation.build import COMPILER, build_strips, once

# The functions of strips.cpp and their dtypes.
EXTENDED = {"extended_two_ahead": torch.float32, "extended_four": torch.float32}
LINEAR = {
    "linear_of_8_lanes": torch.float32,
    "linear_of_32_lanes": torch.float32,
    "linear_of_32_lanes_in_windows": torch.float32,
    "linear_of_32_lanes_of_float64": torch.float64,
}
LOG2 = {
    "log2_of_8_lanes": torch.float32,
    "log2_of_32_lanes": torch.float32,
    "log2_of_32_lanes_in_windows": torch.float32,
}
DTYPES = EXTENDED | LINEAR | LOG2
RING = "ring"  # of (rows, lanes)
HARD_RING = "hard_ring"  # of (rows, lanes, sides)
OF_MATRICES = ["extended_four"]

# The linear domain's range (linear_domain.cuh): n + m; and in exponents of 2, of costs that it surely takes, and what the
# last entry and the tilt of all steps may use up of it.
LONGEST_SHORT = 1500
LINEAR_DEEPEST, LINEAR_MOST_PENALTY, TILT, LINEAR_RANGE = 225, 880, 1.28125, 2000
# Integer log2's (integer_log2.cuh): of a value, for every step; of a cost; of the difference of entries of a pair that
# fits.
LOG2_LEAST, LOG2_DEEPEST, LOG2_RANGE = 1 / 32, 2**20, 2**19


class Pair(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("x", "y", "costs")),
        *((name, ctypes.c_int64) for name in ("n", "m")),
        *((name, ctypes.c_double) for name in ("gamma", "warp_penalty")),
        ("bandwidth", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("value", "dx", "dy", "alignment")),
    ]


@pytest.fixture(scope="session")
def strips(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("needs a C++ compiler")
    library = ctypes.CDLL(str(once(tmp_path_factory, "strips", build_strips)))
    for engine in DTYPES:
        getattr(library, engine).restype = ctypes.c_bool
    library.ring.argtypes = ctypes.c_void_p, ctypes.c_int, ctypes.c_int
    library.hard_ring.argtypes = ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int
    library.ring.restype = library.hard_ring.restype = ctypes.c_bool
    library.bidirectional_bytes.restype = ctypes.c_int64
    library.bidirectional_bytes.argtypes = library.sides_fit.argtypes = [*(ctypes.c_int64,) * 3]
    library.sides_fit.restype = ctypes.c_bool
    library.exp2_of_fraction.argtypes, library.exp2_of_fraction.restype = [ctypes.c_double], ctypes.c_double
    return library


@pytest.fixture
def patient_strips(strips):
    """With engines that give up only what they cannot compute."""
    strips.set_patient(True)
    yield strips
    strips.set_patient(False)


def run(strips, engine, gamma, x=None, y=None, costs=None, bandwidth=None, warp_penalty=0.0, keeps=True, ring=()):
    """The value, dx, dy and the alignment of two series or of a cost matrix; None where the engine gives the pair up.

    Without `keeps` the value alone is computed. What an engine leaves out is NaN.
    """
    dtype = DTYPES.get(engine, torch.float32)
    given = [None if z is None else z.to(dtype).contiguous() for z in (x, y, costs)]
    n, m = (len(x), len(y)) if costs is None else costs.shape
    shapes, beyond = ((1,), (n,), (m,), (n, m)), 64
    buffers = [torch.full((np.prod(shape) + beyond,), nan, dtype=dtype) for shape in shapes]
    results = [buffer[:-beyond].view(shape) for buffer, shape in zip(buffers, shapes, strict=True)]
    if bandwidth is not None:
        results[3].fill_(0)  # nothing is written outside a band, where a GPU's memory holds 0 beforehand
    of_series, of_matrices = keeps and costs is None, keeps and costs is not None
    wanted = zip(results, (True, of_series, of_series, of_matrices), strict=True)
    pair = Pair(
        *(None if z is None else z.data_ptr() for z in given),
        *(n, m, gamma, warp_penalty, -1 if bandwidth is None else bandwidth),
        *(z.data_ptr() if is_wanted else None for z, is_wanted in wanted),
    )
    taken = getattr(strips, engine)(ctypes.byref(pair), *ring)
    assert all(buffer[-beyond:].isnan().all() for buffer in buffers), "something was written beyond the results"
    if not taken:
        return None
    value, *gradients = map(numpy64, results)
    return value[0], *gradients


def is_univariate(case):
    return case.y is not None and case.x.shape[2] == 1


def applies(engine, case):
    """As are_short_pairs of select/blocks.h, which is integer log2's too, by a pair's lanes.

    Windows are for lanes of 16 rows.
    """
    rows, columns = case.x.shape[1], case.x.shape[2] if case.y is None else case.y.shape[1]
    if engine in EXTENDED:
        return True
    if case.options.get("bandwidth") is not None:
        return False
    if engine.endswith("in_windows") and rows <= 12 * 32:
        return False
    return rows <= 16 * int(engine.split("_")[2]) and rows + columns <= LONGEST_SHORT


def runs():
    """(case, engine, what it is given) for all that comes to an engine; case by case, as the oracle keeps its answers."""
    for name, make in CASES.items():
        case = make()
        for given, engines in {"costs": OF_MATRICES, "series": DTYPES if is_univariate(case) else ()}.items():
            for engine in engines:
                if applies(engine, case):
                    yield name, engine, given


def tilt_of(penalty):
    """log2 of what the linear domain divides a step by, from the penalty in exponents of 2."""
    q = 2.0**-penalty
    return ceil((penalty + log2(q + sqrt(q * q + 1))) * 32 + 0.125) / 32 - penalty


def has_to_take(engine, pair, gamma, warp_penalty):
    """Whether a patient level or integer log2 has to take a pair; None where it may give it up."""
    penalty = warp_penalty / gamma / log(2)
    highest = pair.costs.max() / gamma / log(2) + penalty
    used, steps = pair.value / gamma / log(2), pair.rows + pair.columns
    if engine in LOG2:
        if abs(used) < LOG2_LEAST * steps - 1 or highest > 1.001 * LOG2_DEEPEST:
            return False
        return True if abs(used) > LOG2_LEAST * steps + 1 and highest * steps < LOG2_RANGE else None
    if penalty > LINEAR_MOST_PENALTY or highest > 1001:
        return False
    used += tilt_of(penalty) * steps
    if used > LINEAR_RANGE - penalty + 1:
        return False
    return True if used < LINEAR_RANGE - penalty - 2 and highest < 0.999 * LINEAR_DEEPEST else None


def assert_alignment(alignment, pair, dtype, what):
    error, bound = np.abs(alignment - pair.alignment).max(), bound_of(pair, dtype)
    assert error <= bound, f"{what}: E is off by {error:.3g}, more than {bound:.3g}"


def assert_gradients(gradients, x, y, pair, dtype, what):
    _, *slopes = oracle.cost_and_slopes(numpy64(x), numpy64(y), "sqeuclidean")
    for gradient, slope, axis in zip(gradients, slopes, (1, 0), strict=True):
        error = np.abs(gradient - (pair.alignment[:, :, None] * slope).sum(axis)[:, 0]).max()
        allowed = 4 * bound_of(pair, dtype) * max(np.abs(slope).max(), 1e-6)
        assert error <= allowed, f"{what}: a gradient is off by {error:.3g}, more than {allowed:.3g}"


RINGS = [(rows, lanes) for lanes in (4, 8, 16, 32) for rows in (4, 6, 8)]  # of select/blocks.h


@pytest.mark.parametrize(("rows", "lanes"), RINGS)
def test_a_ring_takes_bands_up_to_its_width(strips, rows, lanes):
    widest = (lanes - 1) * (rows + 1)
    radius = (widest - 1) // 2
    shapes = [(radius + 21, radius + 21, radius), (45, 45 + radius // 2, radius // 2), (40 + radius // 3, 40, radius // 3)]
    shapes += [(1, 1, radius), (2, 3, 0), (rows, rows + 1, 1), (90, 90, 0), (90, 90, min(5, radius))]
    for n, m, own in shapes:
        x, y = (normal(size, 1, seed=seed).float().double() for seed, size in ((1, n), (2, m)))
        case = Case(x[None], y[None], (1.0,), {"bandwidth": own})
        pair = expected(case, 1.0)[0]
        value, dx, dy, _ = run(strips, RING, 1.0, x, y, bandwidth=own, ring=(rows, lanes))
        what = f"{n} x {m}, radius {own}"
        assert_value(value, pair, 1.0, torch.float32, what)
        assert_gradients((dx, dy), x, y, pair, torch.float32, what)
        assert run(strips, RING, 1.0, x, y, bandwidth=own, keeps=False, ring=(rows, lanes))[0] == value
    n = radius + 30
    x, y = normal(n, 1, seed=1), normal(n + widest % 2 + 1, 1, seed=2)
    assert run(strips, RING, 1.0, x, y, bandwidth=radius, ring=(rows, lanes)) is None, "wider than the ring"


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize(("rows", "lanes"), [*RINGS, (14, 32)])
def test_a_ring_of_hard_dtw_takes_bands_up_to_its_width(strips, rows, lanes, sides):
    ring = rows, lanes, sides
    widest = (lanes - 1) * (rows + 1)
    radius = (widest - 1) // 2
    shapes = [(radius + 21, radius + 21, radius), (45, 45 + radius // 2, radius // 2), (40 + radius // 3, 40, radius // 3)]
    shapes += [(1, 1, radius), (1, 5, radius - 4), (5, 1, 0), (2, 3, 0), (rows, rows + 1, 1), (90, 90, 0), (91, 90, 1)]
    for n, m, own in (shape for shape in shapes if shape[2] >= 0):
        x, y = (normal(size, 1, seed=seed).float().cumsum(0).double() for seed, size in ((1, n), (2, m)))
        for penalty in (0.0, 0.3):
            value = run(strips, HARD_RING, 1.0, x, y, bandwidth=own, warp_penalty=penalty, keeps=False, ring=ring)[0]
            best = oracle.hard_value_by_diagonals(numpy64((x - y.T) ** 2), own, penalty)
            assert abs(value - best) <= 1e-6 * best, f"{n} x {m}, radius {own}, penalty {penalty}: {value}, not {best}"
    n = radius + 30
    x, y = normal(n, 1, seed=1), normal(n + widest % 2 + 1, 1, seed=2)
    assert run(strips, HARD_RING, 1.0, x, y, bandwidth=radius, keeps=False, ring=ring) is None, "wider than the ring"


@pytest.mark.parametrize(("rows", "lanes"), RINGS)
def test_a_ring_of_hard_dtw_finds_the_path(strips, rows, lanes):
    """Of whole numbers nothing is rounded, and many predecessors are equally good."""
    widest = (lanes - 1) * (rows + 1)
    radius = (widest - 1) // 2
    shapes = [(radius // 4 + 21, radius // 4 + 21, radius), (45, 45 + radius // 2, radius // 2), (1, 1, radius), (2, 3, 0)]
    shapes += [
        (40 + radius // 3, 40, radius // 3),
        (1, 5, radius - 4),
        (5, 1, 0),
        (rows, rows + 1, 1),
        (90, 90, 0),
        (91, 90, 1),
    ]
    for n, m, own in (shape for shape in shapes if shape[2] >= 0):
        generator = np.random.default_rng(n + 1000 * m)
        x, y = (torch.from_numpy(generator.integers(-2, 3, (size, 1)).astype(np.float64)) for size in (n, m))
        for penalty in (0.0, 1.0):
            value, spans, *_ = run(strips, HARD_RING, 1.0, x, y, bandwidth=own, warp_penalty=penalty, ring=(rows, lanes, 1))
            best, path = oracle.hard_dtw_from_cost(numpy64((x - y.T) ** 2), own, penalty)
            found = [(i, j) for i, span in enumerate(spans) for j in range(int(span) // 4096, int(span) % 4096 + 1)]
            assert value == best
            assert found == path, f"{n} x {m}, radius {own}, penalty {penalty}"


@pytest.mark.parametrize(("rows", "lanes"), [*RINGS, (14, 32)])
@pytest.mark.parametrize("kind", ["noise", "left", "up", "diagonal"])
def test_a_walk_ends_whatever_the_steps_are(strips, rows, lanes, kind):
    """It comes once to every row of the pair, from the last cell on, and to columns that there are."""
    n, m, radius = 3 * lanes + 205, 3 * lanes + 209, lanes // 2
    generator = np.random.default_rng(rows)
    every = {"left": (~0, ~0), "up": (~0, 0), "diagonal": (0, 0)}
    steps = generator.integers(0, 2**32, (1 << 16, 2)) if kind == "noise" else np.tile(every[kind], (1 << 16, 1))
    steps = np.ascontiguousarray(steps & 0xFFFFFFFF, dtype=np.uint32)
    spans, visits = torch.full((n,), nan), torch.zeros(n)
    pair = Pair(n=n, m=m, gamma=1.0, bandwidth=radius, dx=spans.data_ptr(), dy=visits.data_ptr())
    strips.walk(ctypes.byref(pair), rows, lanes, ctypes.c_void_p(steps.ctypes.data))
    assert (visits == 1).all()
    first, last = spans // 4096, spans % 4096
    if kind == "noise":
        assert last[-1] == m - 1
        assert (first >= 0).all()
        assert (last >= first).all()
        up, diagonal = last[:-1] == first[1:], last[:-1] == first[1:] - 1
        assert (up | diagonal).all()
    elif kind == "left":
        assert (first[-1], last[-1]) == (0, m - 1)
        assert (first == 0).all()
        assert (last[:-1] == 0).all()
    else:
        columns = torch.full((n,), m - 1) if kind == "up" else torch.arange(m - n, m)
        assert torch.equal(first, columns.float())
        assert torch.equal(last, columns.float())


@pytest.mark.parametrize(("name", "engine", "given"), list(runs()))
def test_values_and_gradients(patient_strips, name, engine, given):
    case, dtype = case_of(name), DTYPES[engine]
    bands = case.options.get("bandwidth")
    for gamma in case.gammas:
        pairs = expected_pairs(name, gamma)
        for b, pair in enumerate(pairs):
            what, n, m = f"gamma {gamma:g}, pair {b}", pair.rows, pair.columns
            options = {
                "bandwidth": bands[b] if isinstance(bands, list) else bands,
                "warp_penalty": case.options.get("warp_penalty", 0.0),
            }
            if given == "costs":
                options["costs"] = costs_of(case, pairs)[b, :n, :m]
            else:
                options["x"], options["y"] = case.x[b, :n], case.y[b, :m]
            answer = run(patient_strips, engine, gamma, **options)
            alone = run(patient_strips, engine, gamma, **options, keeps=False)
            taken = answer is not None
            assert (alone is not None) == taken, f"{what}: taken is {taken}, but not where nothing is kept for backward"
            assert engine in EXTENDED or has_to_take(engine, pair, gamma, options["warp_penalty"]) in (taken, None), (
                f"{what}: taken is {taken}"
            )
            if not taken:
                continue
            value, dx, dy, alignment = answer
            assert alone[0] == value, f"{what}: another value where nothing is kept for backward"
            assert_value(value, pair, gamma, dtype, what)
            if given == "costs":
                assert_alignment(alignment, pair, dtype, what)
            else:
                assert_gradients((dx, dy), options["x"], options["y"], pair, dtype, what)


@pytest.mark.parametrize(("engine", "rows"), [("extended_two_ahead", 64), ("extended_four", 128)])
def test_backward_leaves_out_what_e_does_not_reach(strips, engine, rows):
    """Most of a strip between two corridors, nothing where a corridor goes all along it, nothing of a short one."""

    def share(n, m):
        x, y = two_corridors(n, m, 1)[:2]
        before = strips.left_out()
        run(strips, engine, 1.0, x=x[0], y=y[0])
        stages = (m + 32) // (32 if rows == 64 else 16) * -(-n // rows)
        return (strips.left_out() - before) / stages

    assert share(rows, 600) == 0
    assert 0.6 < share(20 * rows, 420) < 0.9
    assert share(20 * rows, 200) == 0


SIZES_FROM_BOTH_ENDS = [(n, m) for n in (129, 192, 193, 640, 989, 1030, 5000) for m in (*range(256, 322), 1000, 2048)]


def test_sides_of_a_table_meet_and_hand_on_all_columns(strips):
    """Also the last one of a strip that one side sweeps whole, as in tables that are much taller than wide."""
    for n, m in SIZES_FROM_BOTH_ENDS:
        for radius in (-1, 0, 1, 20, 33, 100, 700):
            assert strips.sides_fit(n, m, radius), (n, m, radius)


def test_no_more_is_saved_of_tables_swept_from_both_ends_than_promised(strips):
    for n, m in ((512, 512), (2048, 2048), (4096, 4096)):
        assert strips.bidirectional_bytes(n, m, -1) <= 0.7 * n * m, (n, m)
        radius = n // 20
        assert strips.bidirectional_bytes(n, m, radius) <= 0.7 * n * (2 * radius + 250), (n, m)


@pytest.mark.parametrize("engine", LINEAR)
def test_the_linear_domain_takes_unit_noise(strips, engine):
    for seed in range(20):
        x, y = normal(120, 1, seed=seed), normal(120, 1, seed=100 + seed)
        for gamma in (0.2, 1.0, 100.0):
            assert run(strips, engine, gamma, x=x, y=y, keeps=False) is not None, (seed, gamma)


@pytest.mark.parametrize("engine", ["linear_of_32_lanes", "linear_of_32_lanes_of_float64"])
def test_the_linear_domain_takes_smooth_series_that_fit(strips, engine):
    """Whose costs come early: it is not impatient with them."""
    taken = 0
    for seed in range(12):
        x, y = (normal(512, 1, seed=100 * seed + i).cumsum(0) for i in (0, 1))
        x, y = ((z - z.mean()) / z.std() for z in (x, y))
        value = torchsoftdtw.soft_dtw(x.double(), y.double(), 1.0).item()
        if value / log(2) + TILT * 1024 < LINEAR_RANGE - 1:
            taken += 1
            assert run(strips, engine, 1.0, x=x, y=y, keeps=False) is not None, seed
    assert taken > 6
    for highest in (3, 4):  # all costs are where x begins, which every path has behind it soon
        x, y = torch.zeros(2, 512, 1)
        x[:128, 0] = highest * torch.linspace(0, pi / 2, 128).cos()
        assert run(strips, engine, 1.0, x=x, y=y, keeps=False) is not None, highest


def test_the_linear_domain_gives_up_noise_that_will_not_fit(strips):
    """Long before it has left the range: the engine that takes over loses nothing by it."""
    assert run(strips, "linear_of_32_lanes", 0.3, x=normal(512, 1), y=normal(512, 1, seed=1), keeps=False) is None
    assert strips.linear_steps() < 512 / 3


def test_the_linear_domain_gives_up_smooth_series_beyond_its_range(strips):
    """At once, though it does not foresee their end."""
    steps = torch.linspace(0, 6, 512)[:, None]
    assert run(strips, "linear_of_32_lanes", 0.05, x=steps.sin(), y=steps.cos() + 2, keeps=False) is None
    assert strips.linear_steps() < 512


@pytest.mark.parametrize(
    ("engine", "gammas"), [("linear_of_32_lanes", (1.0, 10.0, 100.0)), ("log2_of_32_lanes", (0.01, 0.1, 0.3))]
)
def test_windows_follow_the_alignment(patient_strips, engine, gammas):
    """Of noise and of smooth series they see it all; a pair whose path leaps is done again without one."""

    def failures(x, y, gamma):
        before = patient_strips.failures_of_windows()
        found, expected = (run(patient_strips, name, gamma, x=x, y=y) for name in (engine + "_in_windows", engine))
        assert (found is None) == (expected is None)
        for actual, wanted in zip(found[1:3], expected[1:3], strict=True) if found else ():
            # What a window does not see of E is less than 2^-18.
            unseen = 2**-18 * 2 * (x - y.T).abs().max().item()
            np.testing.assert_allclose(actual, wanted, atol=unseen, rtol=1e-5)
        return patient_strips.failures_of_windows() - before

    for n, m in ((512, 512), (400, 500), (512, 300)):
        for gamma in gammas:
            assert failures(normal(n, 1, seed=n), normal(m, 1, seed=m + 1), gamma) == 0, (n, m, gamma)
    if engine in LINEAR:
        smooth = torch.linspace(0, 6, 512)[:, None].sin()
        assert failures(smooth, smooth[:500], 1.0) == 0
    leaps = 0
    for seed in range(20):  # paths that stay in a row or a column for long
        leaps += failures(*(normal(size, 1, seed=size + seed).cumsum(0) / 3 for size in (512, 490)), max(gammas))
    assert leaps > 0


@pytest.mark.parametrize("engine", LOG2)
def test_integer_log2_takes_noise(strips, engine):
    """Of small gammas, and far from the origin. At a table's edges rows of a lane lie far apart."""
    rows = 16 * int(engine.split("_")[2])
    for seed in range(10):
        x, y = normal(rows, 1, seed=seed), normal(rows, 1, seed=100 + seed)
        for gamma in (0.01, 0.1, 0.3):
            assert run(strips, engine, gamma, x=x, y=y, keeps=False) is not None, (seed, gamma)
    x, y = x.round(decimals=2), y.round(decimals=2)
    assert run(strips, engine, 0.1, x=x + 1000, y=y + 1000, keeps=False) is not None


@pytest.mark.parametrize("engine", LOG2)
def test_costly_first_columns_of_integer_log2(patient_strips, engine):
    """Where lanes enter the table, m may rise from row to row, far beyond the range in which it is whole, and fall."""
    n, gamma = 16 * int(engine.split("_")[2]), 0.01
    x = normal(n, 1) / 8
    for exponent in [2.0**k + 0.4 for k in range(6, 20)]:
        for columns in (1, 3):
            y = normal(n, 1, seed=1) / 8
            y[:columns] = (exponent * gamma * log(2)) ** 0.5
            found = run(patient_strips, engine, gamma, x=x, y=y, keeps=False)
            if exponent > 10_000 and found is None:
                continue
            value = torchsoftdtw.soft_dtw(x.float().double(), y.float().double(), gamma).item()
            assert found[0] == pytest.approx(value, rel=1e-6), (exponent, columns)


@pytest.mark.parametrize("engine", LOG2)
def test_no_share_of_integer_log2_leaves_the_table(strips, engine):
    """Where there is one path alone, E is 1 along all of it; shares lost at the table's edges would add up."""
    for n, m in ((16 * int(engine.split("_")[2]), 1), (1, 500)):
        x, y = normal(n, 1).float(), normal(m, 1, seed=1).float()
        _, dx, dy, _ = run(strips, engine, 0.1, x=x, y=y)
        slopes = numpy64(2 * (x.double() - y.double().T))
        np.testing.assert_allclose(dx if m == 1 else -dy, slopes.ravel(), rtol=5e-7)


@pytest.mark.parametrize("engine", EXTENDED | LOG2)
def test_no_share_leaks_along_a_rest(patient_strips, engine):
    """Where one series rests, E of one column is 1 for long; what is missing of a share would add up in the next one."""
    n, gamma = (16 * int(engine.split("_")[2]) if engine in LOG2 else 1300), 0.002
    taken = 0
    for seed in range(12):
        x, y = torch.zeros(n, 1), torch.cat([normal(4, 1, seed=seed).abs() + 1, torch.tensor([[0.2 + seed / 60], [0]])])
        for rests, goes in ((x, y), (y, x)):
            found = run(patient_strips, engine, gamma, x=rests, y=goes)
            if found is None:
                assert engine in LOG2
                continue
            taken += 1
            pair = [z.float().double().requires_grad_() for z in (rests, goes)]
            torchsoftdtw.soft_dtw(*pair, gamma).backward()
            for actual, z in zip(found[1:3], pair, strict=True):
                np.testing.assert_allclose(actual, numpy64(z.grad.ravel()), atol=2e-4, rtol=2e-5)
    assert taken > 6


@pytest.mark.parametrize("bad", [nan, inf, -inf])
@pytest.mark.parametrize("engine", LINEAR | LOG2)
def test_engines_give_up_a_pair_with_a_bad_number(strips, engine, bad):
    for at in (0, 77, 119):
        x, y = normal(120, 1), normal(120, 1, seed=1)
        spoiled = x.clone()
        spoiled[at] = bad
        assert run(strips, engine, 1.0, x=spoiled, y=y, keeps=False) is None, at
        assert run(strips, engine, 1.0, x=y, y=spoiled, keeps=False) is None, at


def test_a_fraction_s_power_of_two_is_right_to_the_last_place(strips):
    """In float64, against numbers of 60 digits."""
    generator = np.random.default_rng(11)
    fractions = [-0.5, 0.5, 0.0, 2.0**-60, *generator.uniform(-0.5, 0.5, 2000).tolist()]
    with decimal.localcontext(prec=60):
        for fraction in fractions:
            exact = (decimal.Decimal(fraction) * decimal.Decimal(2).ln()).exp()
            error = abs(decimal.Decimal(strips.exp2_of_fraction(fraction)) - exact)
            assert error <= decimal.Decimal(math.ulp(1.0 if exact >= 1 else 0.5)), fraction
