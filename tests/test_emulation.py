"""The strips' device code on the host, where no GPU is needed (tests/emulation): the cases and bounds of test_engines.py.

What this cannot show: how warps hand edges to each other at the same time, and the hardware's own approximations.
"""

import ctypes
import shutil

import numpy as np
import oracle
import pytest
import torch
from cases import numpy64
from emulation.build import build
from test_engines import CASES, assert_value, bound_of, case_of, costs_of, expected_pairs

COMPILER = shutil.which("c++") or shutil.which("g++")
FLOATS = ctypes.POINTER(ctypes.c_float)
UNIVARIATE = [name for name, case in CASES.items() if case().y is not None and case().x.shape[2] == 1]
LARGEST_LINEAR_PENALTY = 500  # as an exponent of 2: larger ones never come to that engine


class Pair(ctypes.Structure):
    _fields_ = [
        *((name, FLOATS) for name in ("x", "y", "costs")),
        *((name, ctypes.c_int64) for name in ("n", "m")),
        *((name, ctypes.c_double) for name in ("gamma", "warp_penalty")),
        ("bandwidth", ctypes.c_int64),
        *((name, FLOATS) for name in ("value", "dx", "dy", "alignment")),
    ]


@pytest.fixture(scope="session")
def strips(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("needs a C++ compiler")
    library = ctypes.CDLL(str(build(tmp_path_factory.mktemp("emulation"), COMPILER)))
    library.linear_four.restype = ctypes.c_bool
    return library


def pointer(array):
    return None if array is None else array.ctypes.data_as(FLOATS)


def run(function, gamma, options, b, n, m, x=None, y=None, costs=None):
    """Calls a function of strips.cpp for pair b. Returns what it returns, the value, dx, dy and the alignment."""
    band = options.get("bandwidth")
    band = band[b] if isinstance(band, list) else band
    given = [None if z is None else np.ascontiguousarray(z, dtype=np.float32) for z in (x, y, costs)]
    out = [np.full(shape, np.nan, dtype=np.float32) for shape in (1, n, m, (n, m))]
    if band is not None:
        out[3].fill(0)  # nothing is written outside a band, where a GPU's memory holds 0 beforehand
    pair = Pair(*map(pointer, given), n, m, gamma, options.get("warp_penalty", 0.0), -1 if band is None else band)
    pair.value, pair.dx, pair.dy, pair.alignment = map(pointer, out)
    answer = function(ctypes.byref(pair))
    return answer, out[0][0], *out[1:]


@pytest.mark.parametrize("name", CASES)
def test_values_and_alignments_of_cost_matrices(strips, name):
    case, function = case_of(name), strips.robust_four
    for gamma in case.gammas:
        pairs = expected_pairs(name, gamma)
        for b, (pair, costs) in enumerate(zip(pairs, numpy64(costs_of(case, pairs)), strict=True)):
            what, n, m = f"gamma {gamma:g}, pair {b}", pair.rows, pair.columns
            _, value, _, _, alignment = run(function, gamma, case.options, b, n, m, costs=costs[:n, :m])
            assert_value(value, pair, gamma, torch.float32, what)
            error, bound = np.abs(alignment - pair.alignment).max(), bound_of(pair, torch.float32)
            assert error <= bound, f"{what}: E is off by {error:.3g}, more than {bound:.3g}"


@pytest.mark.parametrize("name", UNIVARIATE)
@pytest.mark.parametrize("engine", ["robust_two_ahead", "robust_four"])
def test_values_and_gradients_of_series(strips, engine, name):
    case, function = case_of(name), getattr(strips, engine)
    for gamma in case.gammas:
        for b, pair in enumerate(expected_pairs(name, gamma)):
            what, n, m = f"gamma {gamma:g}, pair {b}", pair.rows, pair.columns
            x, y = numpy64(case.x[b, :n]), numpy64(case.y[b, :m])
            _, value, *gradients, _ = run(function, gamma, case.options, b, n, m, x=x, y=y)
            assert_value(value, pair, gamma, torch.float32, what)
            _, *slopes = oracle.cost_and_slopes(x, y, "sqeuclidean")
            for gradient, slope, axis in zip(gradients, slopes, (1, 0), strict=True):
                expected = (pair.alignment[:, :, None] * slope).sum(axis)[:, 0]
                error = np.abs(gradient - expected).max()
                allowed = 4 * bound_of(pair, torch.float32) * max(np.abs(slope).max(), 1e-6)
                assert error <= allowed, f"{what}: a gradient is off by {error:.3g}, more than {allowed:.3g}"


@pytest.mark.parametrize("name", UNIVARIATE)
def test_the_linear_engine_is_right_or_gives_a_pair_up(strips, name):
    case = case_of(name)
    for gamma in case.gammas:
        if case.options.get("warp_penalty", 0) / gamma / np.log(2) >= LARGEST_LINEAR_PENALTY:
            continue
        for b, pair in enumerate(expected_pairs(name, gamma)):
            x, y = case.x[b, : pair.rows], case.y[b, : pair.columns]
            accepted, value, *_ = run(strips.linear_four, gamma, case.options, b, pair.rows, pair.columns, x=x, y=y)
            largest = pair.costs.max() / gamma / np.log(2)
            if accepted:
                assert_value(value, pair, gamma, torch.float32, f"gamma {gamma:g}, pair {b}")
            assert accepted or largest > 100, "a pair within the engine's range was given up"
            assert not accepted or largest < 1000, "a pair far beyond the engine's range was taken"
