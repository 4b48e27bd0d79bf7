"""CUDA kernels in many orders of events, which only an emulated GPU can choose (tests/emulation), and what it tells of
kernels that do wrong. Other tests of CUDA kernels run on it too, where there is no GPU, in one order each.
"""

import ctypes

import numpy as np
import pytest
import torch
from cases import EMULATED, GPU, KernelCase, assert_values_close, normal, numpy64, run

from torchsoftdtw import soft_dtw
from torchsoftdtw._kernels import ops

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.always,
    pytest.mark.skipif(EMULATED == "none", reason="needs an emulated GPU: a C++ compiler, no GPU, PyTorch 2.9 or later"),
]
WRONG = {
    "waits for nobody": "threads wait for ever: block 0",
    "waits at a barrier that others pass": "all threads wait for each other",
    "parts": "lanes of a warp meet in different functions",
    "uses a mbarrier that was not started": "an mbarrier was not started",
    "takes all memory": "a block has no more shared memory",
}
# Kernel, rows per thread, batch, n, m, dim. Several strips and blocks, and of every kind of block that tiled has.
SHAPES = [
    ("stencil", 2, 600, 1, 1),
    ("stencil", 1, 500, 300, 3),
    ("tiled", 3, 180, 150, 1),
    ("tiled", 1, 700, 420, 1),  # from both ends
    ("tiled", 1, 500, 300, 3),
    ("tiled", 1, 1200, 400, 8),
    ("tiled", 1, 700, 200, 12),
    ("tiled", 1, 420, 150, 20),
    ("tiled", 1, 700, 16, 2),  # so few columns that dy alone makes one strip wait for another
    ("tiled", 1, 700, 24, 12),
]
WITH_COSTS = [
    *((*shape, "sqeuclidean") for shape in SHAPES),
    ("tiled", 1, 700, 200, 8, "euclidean"),
    ("tiled", 1, 700, 16, 2, "huber"),
    ("tiled", 1, 700, 24, 12, "cityblock"),
    ("tiled", 1, 420, 150, 20, "euclidean"),
    ("tiled", 1, 420, 60, 20, "cityblock"),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_kernel_that_does_wrong_is_told_of(gpu, wrong):
    assert gpu.failure_of(list(WRONG).index(wrong)).decode().startswith(WRONG[wrong])


@pytest.mark.parametrize("resident", [1, 2, 4])
@pytest.mark.parametrize(("name", "batch", "n", "m", "dim", "cost"), WITH_COSTS)
def test_no_order_of_events_changes_a_bit(gpu, name, batch, n, m, dim, cost, resident):
    """Nor lets warps wait for ever: once one that rebuilds waited for costs that had been overwritten before it looked."""
    kernel = KernelCase(GPU, name)
    x, y = normal(batch, n, dim, seed=n).float(), normal(batch, m, dim, seed=m + 1).float()
    expected = run(KernelCase("cpu", "cpu"), x.double(), y.double(), float(dim), cost=cost)
    first = None
    try:
        for seed in range(8 if m < 30 else 3):
            gpu.set_order(seed, resident, False)
            actual = run(kernel, x, y, float(dim), cost=cost)
            alone = numpy64(soft_dtw(x, y, float(dim), cost=cost, kernel=name))
            assert_values_close(alone, actual[0], torch.float32, float(dim))
            first = first or actual
            assert all(np.array_equal(a, b) for a, b in zip(actual, first, strict=True)), seed
    finally:
        gpu.set_order(0, 2, False)
    assert_values_close(first[0], expected[0], torch.float32, float(dim))
    for got, wanted in zip(first[1:], expected[1:], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())


OPTIONS = {"bandwidth": 40, "warp_penalty": 0.3, "cost": "huber"}


@pytest.mark.parametrize("resident", [1, 2, 4])
@pytest.mark.parametrize(("batch", "n", "m"), [(2, 620, 200), (1, 700, 420)])  # from one end, and from both
def test_no_order_of_events_changes_a_bit_where_few_pairs_have_options(gpu, batch, n, m, resident):
    x, y = normal(batch, n, 1, seed=n).float(), normal(batch, m, 1, seed=m + 1).float()
    expected = run(KernelCase("cpu", "cpu"), x.double(), y.double(), **OPTIONS)
    first = None
    try:
        for seed in range(3):
            gpu.set_order(seed, resident, False)
            actual = run(KernelCase(GPU, "tiled"), x, y, **OPTIONS)
            first = first or actual
            assert all(np.array_equal(a, b) for a, b in zip(actual, first, strict=True)), seed
            alone = numpy64(soft_dtw(x, y, 1.0, kernel="tiled", **OPTIONS))
            assert_values_close(alone, actual[0], torch.float32, 1.0)
    finally:
        gpu.set_order(0, 2, False)
    assert_values_close(first[0], expected[0], torch.float32, 1.0)
    for got, wanted in zip(first[1:], expected[1:], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize(("n", "m", "dim"), [(150, 60, 1), (300, 40, 3), (1100, 24, 1)])
def test_no_order_of_events_changes_best_ranges(gpu, n, m, dim):
    x, y = normal(2, n, dim, seed=n).float(), normal(2, m, dim, seed=m + 1).float()
    value, start = ops.best_ranges(x, y, 0.1, "cityblock")
    try:
        with gpu.behind_the_package(True):
            for seed in range(4):
                gpu.set_order(seed, 1 + seed % 2, False)
                found = ops.best_ranges(x, y, 0.1, "cityblock")
                torch.testing.assert_close(found[0], value, rtol=1e-6, atol=0)
                assert torch.equal(found[1], start), seed
    finally:
        gpu.set_order(0, 2, False)


def test_another_thread_with_less_memory_does_not_make_a_launch_fail(gpu):
    """The most that a kernel may have is of the kernel, not of a call: somebody else's call must not lower it."""
    large, small = ((normal(1, n, 20, seed=n).float(), normal(1, 100, 20).float()) for n in (120, 40))
    answers = []

    @ctypes.CFUNCTYPE(None)
    def call():
        answers.append(soft_dtw(*small, 20.0, kernel="tiled"))

    gpu.before_next_launch(call)
    answers.append(soft_dtw(*large, 20.0, kernel="tiled"))
    for answer, series in zip(answers, (small, large), strict=True):
        expected = numpy64(soft_dtw(*(z.double() for z in series), 20.0, kernel="cpu"))
        assert_values_close(numpy64(answer), expected, torch.float32, 20.0)


@pytest.mark.parametrize("blocks", [(2**31, 1), (2**32 + 1, 1), (2**32, 1), (1, 2**16), (1, 2**32 + 1)])
def test_a_grid_with_too_many_blocks_is_an_error(gpu, blocks):
    ran = ctypes.c_int(0)
    message = gpu.launch_of(*map(ctypes.c_int64, blocks), ctypes.byref(ran)).decode()
    assert ran.value == 0
    assert "more blocks than a grid can have" in message
    assert gpu.launch_of(ctypes.c_int64(3), ctypes.c_int64(2), ctypes.byref(ran)) == b""
    assert ran.value == 6


@pytest.mark.parametrize(
    ("name", "n", "dim"), [("stencil", 40, 1), ("tiled", 200, 1), ("tiled", 200, 3), ("tiled", 40, 20)]
)
def test_a_device_that_does_not_answer_is_an_error_of_that_call(gpu, name, n, dim):
    x, y = normal(1, n, dim).float(), normal(1, 300, dim, seed=1).float()
    gpu.fail_next_query()
    with pytest.raises(RuntimeError, match="could not ask CUDA for the current device"):
        soft_dtw(x, y, gamma=1.0, kernel=name)
    assert not gpu.has_error()
    soft_dtw(x, y, gamma=1.0, kernel=name)


def test_an_error_from_before_a_call_is_not_the_calls(gpu):
    x, y = normal(1, 20, 1).float(), normal(1, 30, 1, seed=1).float()
    for name in ("diagonal", "stencil", "tiled"):
        gpu.leave_error()
        soft_dtw(x, y, gamma=1.0, kernel=name)
        assert gpu.has_error()  # and stays for whose it is


@pytest.mark.parametrize("name", ["diagonal", "stencil", "tiled"])
@pytest.mark.parametrize("wrong", [0, 8])
def test_a_wrong_length_gives_nan_everywhere_in_the_gradients_of_its_pair_alone(gpu, name, wrong):
    """Though their memory holds zeros: none of its numbers is to be trusted. Only on a GPU do kernels meet such lengths."""
    ops = torch.ops.torchsoftdtw_emulated
    x, y, costs = normal(3, 7, 2).float(), normal(3, 6, 2, seed=1).float(), normal(3, 7, 6, seed=2).float()
    options = (torch.tensor([7, wrong, 5]), None, None, None, None, -1, 1.0, 0.0)
    series, plan, arriving = (*options, "sqeuclidean"), (name, 0), torch.ones(3)
    value, saved = ops.forward_of_pairs(None, None, x, y, *series, *plan, True)
    gradients = ops.backward_of_pairs(None, None, arriving, x, y, value, saved, *series, *plan, True, True)
    value, saved = ops.forward_from_cost(costs, *options, *plan, True)
    for gradient in (*gradients, ops.backward_from_cost(arriving, costs, value, saved, *options, *plan)):
        assert gradient[1].isnan().all() and gradient[::2].isfinite().all()
