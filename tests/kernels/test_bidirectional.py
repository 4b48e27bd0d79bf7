"""Few pairs of one dimension, whose tables tiled sweeps from both ends at once (csrc/cuda/kernels/bidirectional).

Where the sides could meet wrongly, and what could flow through the cut wrongly. The oracle and the bounds are those of
test_engines.
"""

import numpy as np
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, numpy64, run
from test_engines import (
    Case,
    assert_gradients_of_series,
    assert_values_alone,
    expected,
    flat,
    in_runs,
    noise,
    two_corridors,
    with_spike,
)

from torchsoftdtw import soft_dtw

pytestmark = OF_GPU
TILED = KernelCase(GPU, "tiled")
LEAST = 129, 256  # rows and columns


def check(x, y, *gammas):
    case = Case(x.float(), y.float(), gammas)
    for gamma in gammas:
        pairs = expected(case, gamma)
        assert_values_alone(TILED, torch.float32, gamma, pairs, [case.x, case.y], {})
        assert_gradients_of_series(TILED, torch.float32, case, gamma, pairs)


def kernels_of(call):
    call()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    return " ".join(event.key for event in profile.key_averages())


@pytest.mark.cuda
def test_it_is_what_these_tests_are_about():
    x, y = (noise(2, size, 1, seed=size).float().cuda().requires_grad_() for size in LEAST)
    names = kernels_of(lambda: soft_dtw(x, y, gamma=1.0, kernel="tiled").sum().backward())
    assert all(f"bidirectional_{part}" in names for part in ("forward", "value", "cut", "backward")), names
    for other in (x[:, 1:], y[:, 1:]):
        pair = (other, y) if other.shape[1] < LEAST[0] else (x, other)
        assert "bidirectional" not in kernels_of(lambda pair=pair: soft_dtw(*pair, gamma=1.0, kernel="tiled"))


# Rows and columns that a side's first lanes and first chunk lack: none, one, an odd number, as many as there can be.
@pytest.mark.parametrize("n", [129, 130, 191, 192, 193, 450])
@pytest.mark.parametrize("m", [256, 257, 287, 288, 289, 450])
def test_every_way_that_sides_fit_together(n, m):
    check(noise(2, n, 1, seed=n), noise(2, m, 1, seed=n + m), 0.01, 1.0, 100.0)


@pytest.mark.parametrize(("n", "m"), [(1500, 260), (140, 1900), (1030, 1027)])
def test_the_cut_leaves_the_table_above_or_at_its_sides(n, m):
    check(noise(2, n, 1, seed=3), noise(2, m, 1, seed=4), 0.1, 10.0)


DATA = {
    "constants": lambda: (flat((400, 0)), flat((500, 0))),
    "constants apart": lambda: (flat((400, 0)), flat((500, 3))),
    "a spike": lambda: (with_spike(flat((600, 0)), 300, 300.0), flat((560, 0))),
    "outliers at the ends": lambda: (
        with_spike(noise(1, 500, 1), 499, 60.0),
        with_spike(with_spike(noise(1, 520, 1, seed=2), 0, -70.0), 519, 50.0),
    ),
    "along the left and the bottom edge": lambda: (flat((450, 5), (50, 0)), flat((30, 5), (470, 0))),
    "along the top and the right edge": lambda: (flat((30, 5), (470, 0)), flat((450, 5), (50, 0))),
    "along the first column alone": lambda: (flat((989, 0.1)), flat((1, 0), (265, 4))),
    "along the last column alone": lambda: (flat((989, 0.1)), flat((265, 4), (1, 0))),
    "along the first row alone": lambda: (flat((1, 0), (265, 4)), flat((989, 0.1))),
    "along the last row alone": lambda: (flat((265, 4), (1, 0)), flat((989, 0.1))),
    "runs": lambda: (in_runs(520, 40, 1), in_runs(470, 31, 2)),
    "a step": lambda: (flat((300, 0), (300, 3)), flat((310, 3), (280, 0))),
    "waves": lambda: (torch.linspace(0, 20, 500).sin().view(1, -1, 1), torch.linspace(0, 25, 640).sin().view(1, -1, 1)),
}


@pytest.mark.parametrize("name", DATA)
def test_data_that_lead_paths_along_edges_or_anywhere(name):
    check(*DATA[name](), 1e-3, 0.1, 1.0, 1e3)


@pytest.mark.parametrize("gamma", [1e-4, 1e-3, 0.01])
def test_costs_far_beyond_what_the_plain_sweep_holds(gamma):
    # States at the cut that fall far below their reference in the last chunk were saved wrongly once.
    for seed in range(4):
        check(1000 * noise(1, 460, 1, seed=seed), 1000 * noise(1, 430, 1, seed=seed + 9), gamma)


# Strips that one side sweeps whole have their last column to hand on, which only paths along the table's edges show.
@pytest.mark.parametrize("n", [640, 1030])
@pytest.mark.parametrize("m", [256, 257, 286, 287, 288])
@pytest.mark.parametrize("ends", ["first", "last"])
def test_paths_along_an_edge_of_tall_tables(n, m, ends):
    x, y = 0.1 * noise(1, n, 1, seed=n), torch.cat([flat((1, 0)), 4 + noise(1, m - 1, 1, seed=m)], 1)
    check(x, y if ends == "first" else y.flip(1), 0.1, 3.0)


def test_two_corridors_far_apart():
    case = two_corridors(512, 512, 1)
    check(case.x, case.y, *case.gammas)


def test_runs_are_equal_to_the_bit_and_saving_changes_nothing():
    x, y = (noise(20, size, 1, seed=size).float() for size in (1000, 900))
    first, second = run(TILED, x, y, 0.1), run(TILED, x, y, 0.1)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert np.array_equal(first[0], numpy64(soft_dtw(x.to(GPU), y.to(GPU), 0.1, kernel="tiled")))


def test_blocks_take_turns():
    x, y = (noise(3, size, 1, seed=size).float() for size in (1030, 300))
    alone = run(TILED, x, y)
    for times in (12, 29):
        for together, own in zip(run(TILED, x.repeat(times, 1, 1), y.repeat(times, 1, 1)), alone, strict=True):
            assert np.array_equal(together, np.concatenate([own] * times))
    check(x, y, 1.0)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_bad_number_spoils_its_pair_alone(bad):
    x, y = (noise(3, size, 1, seed=size).float() for size in (300, 330))
    good = run(TILED, x, y)
    for series, at in ((x, 0), (x, 299), (y, 0), (y, 329)):
        series = series.clone()
        kept = x if series.shape[1] == 330 else y
        series[1, at] = bad
        pair = (series, kept) if kept is y else (kept, series)
        value, *gradients = run(TILED, *pair)
        assert not np.isfinite(value[1])
        assert all(np.isnan(gradient[1]).all() for gradient in gradients)
        for got, own in zip((value, *gradients), good, strict=True):
            assert np.array_equal(got[[0, 2]], own[[0, 2]])


@pytest.mark.cuda  # on the CPU such a gamma is an error
def test_gammas_of_their_own():
    x, y = (noise(4, size, 1, seed=size).float() for size in (300, 330))
    gammas = torch.tensor([0.1, float("nan"), 1.0, 30.0], dtype=torch.float64)
    value, *gradients = run(TILED, x, y, gammas.to(GPU))
    assert np.isnan(value[1]) and all(np.isnan(gradient[1]).all() for gradient in gradients)
    for b in (0, 2, 3):
        for got, own in zip((value, *gradients), run(TILED, x[b : b + 1], y[b : b + 1], gammas[b].item()), strict=True):
            assert np.array_equal(got[b : b + 1], own)


def test_one_gradient_and_a_factor():
    x, y = (noise(2, size, 1, seed=size).float().to(GPU) for size in (300, 330))
    _, both_x, both_y = run(TILED, x, y)
    for wanted, other, both in ((x, y, both_x), (y, x, both_y)):
        wanted = wanted.detach().requires_grad_()
        pair = (wanted, other) if wanted.shape[1] == 300 else (other, wanted)
        value = soft_dtw(*pair, gamma=1.0, kernel="tiled")
        (gradient,) = torch.autograd.grad(value, wanted, torch.tensor([2.0, -4.0], device=GPU))
        assert np.array_equal(numpy64(gradient), both * np.array([2.0, -4.0])[:, None, None])


def test_series_that_are_views():
    x, y = (noise(2, size, 1, seed=size).float().to(GPU) for size in (600, 660))
    for view in (lambda z: z[:, ::2], lambda z: z.repeat(1, 1, 3)[:, ::2, 1:2], lambda z: z.flip(1)[:, 1::2]):
        strided, whole = (view(x), view(y)), (view(x).contiguous(), view(y).contiguous())
        for got, own in zip(run(TILED, *strided), run(TILED, *whole), strict=True):
            assert np.array_equal(got, own)
