"""So many pairs that stencil fills a GPU with them, in the linear domain, integer log2 and the extended range: values,
gradients, and pairs that are taken beside others that are given up. What a single pair can do is in test_emulation.py.
"""

import numpy as np
import oracle
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, numpy64, run
from test_engines import Case, assert_value, bound_of, expected, flat, noise, with_spike

from torchsoftdtw import select_kernel, soft_dtw
from torchsoftdtw._kernels import ops
from torchsoftdtw._kernels.number_formats import of_saved

pytestmark = [OF_GPU, pytest.mark.long]
KERNEL = KernelCase(GPU, "stencil")
DTYPES = [torch.float32, torch.float64]
PAIRS = 3000  # at least

LENGTHS = {"x_lengths": [512, 300, 1, 512, 257], "y_lengths": [500, 500, 500, 1, 33]}
CASES = {
    "noise": lambda: Case(noise(3, 512, 1), noise(3, 512, 1, seed=2), (0.8, 1.0, 10.0, 1e3)),
    "wide_noise": lambda: Case(noise(2, 250, 1), noise(2, 1000, 1, seed=2), (1.0,)),
    "tall_noise": lambda: Case(noise(2, 1000, 1), noise(2, 260, 1, seed=2), (1.0,)),
    "lengths": lambda: Case(noise(5, 512, 1), noise(5, 500, 1, seed=2), (1.0, 30.0), LENGTHS),
    "small_gamma": lambda: Case(noise(2, 512, 1), noise(2, 500, 1, seed=2), (1e-4, 1e-3, 3e-3, 0.01, 0.1, 0.3)),
    "small_gamma_of_lengths": lambda: Case(noise(5, 512, 1), noise(5, 500, 1, seed=2), (0.01, 0.1), LENGTHS),
    "far_from_the_origin": lambda: Case(noise(2, 300, 1) + 1e3, noise(2, 256, 1, seed=2) + 1e3, (0.01, 0.1)),
    "some_beyond": lambda: Case(
        noise(3, 512, 1) * torch.tensor([0.7, 1.0, 6.0]).view(-1, 1, 1), noise(3, 300, 1, seed=2), (1.0,)
    ),
    # Of values below 0, of which a spike of both series keeps the linear domain.
    "below_zero": lambda: Case(
        with_spike(noise(2, 300, 1) / 100, 0, 9), with_spike(noise(2, 290, 1, seed=2) / 100, 0, 9), (0.1,)
    ),
    "spike_in_x": lambda: Case(with_spike(noise(1, 400, 1), 130, 9), noise(1, 300, 1, seed=2), (1.0, 4.0)),
    "spike_in_y": lambda: Case(noise(1, 400, 1), with_spike(noise(1, 300, 1, seed=2), 150, 9), (4.0, 1.0)),
    "spike_at_the_corner": lambda: Case(with_spike(noise(1, 256, 1), 0, 6), with_spike(noise(1, 256, 1), 0, -4), (1.0,)),
    "levels_in_opposite_order": lambda: Case(flat((120, 0), (136, 5)), flat((150, 5), (150, 0)), (1.0, 3.0)),
    "constant_against_spike": lambda: Case(flat((256, 0)), with_spike(flat((300, 0)), 150, 12), (1.0, 10.0)),
    "rows_rise": lambda: Case(flat((400, 0)), flat((3, 4), (297, 0)), (1.0,)),
    "columns_rise": lambda: Case(flat((3, 4), (397, 0)), flat((300, 0)), (1.0,)),
    "offset": lambda: Case(noise(1, 256, 1) + 1000, noise(1, 256, 1, seed=2) + 1000, (1.0,)),
    "long_rows_rise": lambda: Case(flat((700, 0)), flat((3, 4), (297, 0)), (1.0,)),
    "long_lengths": lambda: Case(
        noise(4, 700, 1),
        noise(4, 500, 1, seed=2),
        (1.0,),
        {"x_lengths": [700, 513, 1, 700], "y_lengths": [500, 33, 500, 1]},
    ),
}


def many(case, dtype):
    """The case's pairs over and over, so that they fill the machine, and the repetitions."""
    times = -(-PAIRS // len(case.x))
    options = {key: option * times for key, option in case.options.items()}
    return case.x.to(dtype).repeat(times, 1, 1), case.y.to(dtype).repeat(times, 1, 1), options, times


def case_of(name):
    """All its numbers are float32."""
    case = CASES[name]()
    return case._replace(x=case.x.float().double(), y=case.y.float().double())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name, dtype):
    case = case_of(name)
    x, y, options, times = many(case, dtype)
    for gamma in case.gammas:
        pairs = expected(case, gamma)
        results = run(KERNEL, x, y, gamma, **options)
        alone = numpy64(soft_dtw(x.to(GPU), y.to(GPU), gamma, kernel="stencil", **options))
        first = [result.reshape(times, len(pairs), *result.shape[1:])[0] for result in (*results, alone)]
        for result, own in zip((*results, alone), first, strict=True):
            again = result.reshape(times, *own.shape)
            assert np.array_equal(again, np.broadcast_to(own, again.shape)), "a pair's numbers depend on its place"
        for b, pair in enumerate(pairs):
            what, n, m = f"gamma {gamma:g}, pair {b}", pair.rows, pair.columns
            assert_value(first[0][b], pair, gamma, dtype, what)
            assert_value(first[3][b], pair, gamma, dtype, f"{what}, nothing kept")
            slopes = oracle.cost_and_slopes(numpy64(case.x[b, :n]), numpy64(case.y[b, :m]), "sqeuclidean")[1:]
            for gradient, slope, axis, length in zip(first[1:3], slopes, (1, 0), (n, m), strict=True):
                error = np.abs(gradient[b, :length] - (pair.alignment[:, :, None] * slope).sum(axis)).max()
                allowed = 4 * bound_of(pair, dtype) * max(np.abs(slope).max(), 1e-6)
                assert error <= allowed, f"{what}: a gradient is off by {error:.3g}, more than {allowed:.3g}"
                assert np.all(gradient[b, length:] == 0), what


def statuses(case, dtype, gamma):
    """(repetitions, pairs): the number format that has taken a pair."""
    x, y, _, times = many(case, dtype)
    options = (*(None,) * 5, -1, gamma, 0.0, "sqeuclidean", "stencil", 0, True)
    saved = ops.forward(x.to(GPU), y.to(GPU), *options)[1]
    return np.array(of_saved(saved, len(x))).reshape(times, -1)


LINEAR, GIVEN_UP, LOG2 = "linear_domain", "extended_range", "integer_log2"


def test_engines_take_pairs_within_their_ranges():
    assert (statuses(case_of("noise"), torch.float32, 1.0) == LINEAR).all()
    assert (statuses(case_of("noise"), torch.float32, 0.1) == LOG2).all()
    assert (statuses(case_of("noise"), torch.float32, 1e-5) == GIVEN_UP).all()
    assert (statuses(case_of("some_beyond"), torch.float32, 1.0) == [LINEAR, LINEAR, LOG2]).all()
    assert (statuses(case_of("noise"), torch.float64, 1.0) == LINEAR).all()
    assert (statuses(case_of("noise"), torch.float64, 0.1) == GIVEN_UP).all()
    assert (statuses(case_of("below_zero"), torch.float32, 0.1) == LOG2).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_number_spoils_its_pair_alone(dtype, bad):
    x, y, _, _ = many(case_of("noise"), dtype)
    clean = run(KERNEL, x, y, 1.0)
    x[500, 100] = bad
    spoiled = run(KERNEL, x, y, 1.0)
    others = np.arange(len(x)) != 500
    for before, after in zip(clean, spoiled, strict=True):
        np.testing.assert_array_equal(before[others], after[others])
        assert not np.isfinite(after[500]).all()


def test_two_runs_are_bitwise_equal():
    x, y, _, _ = many(case_of("some_beyond"), torch.float32)
    for before, after in zip(run(KERNEL, x, y, 1.0), run(KERNEL, x, y, 1.0), strict=True):
        np.testing.assert_array_equal(before, after)


# (pairs, rows, columns), so that in the linear domain a pair gets 8, 16 and 32 lanes of a warp, and a lane 4 to 16 rows.
# The last pairs do not fill a warp.
LAYOUTS = [
    (4097, 20, 30),
    (4099, 100, 90),
    (4098, 128, 140),
    (2049, 90, 100),
    (2051, 250, 100),
    (3, 17, 60),
    (600, 128, 128),
    (70, 300, 200),
    (9, 512, 400),
    (130, 512, 7),
    (5, 1, 40),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", LAYOUTS, ids=str)
def test_the_linear_domain_with_lengths_and_gammas_of_every_pair(sizes, dtype):
    batch, n, m = sizes
    shape = {"batch": batch, "dtype": dtype, "kernel": "stencil", "specialization": True}
    assert select_kernel(n, m, **shape) == "stencil/linear_domain"
    generator = torch.Generator().manual_seed(batch)
    x = torch.randn(batch, n, 1, generator=generator, dtype=torch.float64).to(dtype)
    y = torch.randn(batch, m, 1, generator=generator, dtype=torch.float64).to(dtype)
    x_lengths = torch.randint(1, n + 1, (batch,), generator=generator)
    y_lengths = torch.randint(1, m + 1, (batch,), generator=generator)
    # Some pairs of a warp are given up by the linear domain, and some by integer log2.
    gammas = torch.tensor([1.0, 30.0, 0.3, 0.01, 1e-5])[torch.randint(0, 5, (batch,), generator=generator)]
    for b in range(batch):
        x[b, x_lengths[b] :] = np.nan
        y[b, y_lengths[b] :] = np.inf
    value, dx, dy = run(KERNEL, x, y, gammas.to(GPU), x_lengths=x_lengths, y_lengths=y_lengths)
    for b in [*range(min(batch, 40)), batch - 1]:
        rows, columns = int(x_lengths[b]), int(y_lengths[b])
        gamma = gammas[b].item()
        own = Case(x[None, b, :rows].double(), y[None, b, :columns].double(), (gamma,))
        pair = expected(own, gamma)[0]
        what = f"pair {b}, gamma {gamma:g}, {rows} x {columns}"
        assert_value(value[b], pair, gamma, dtype, what)
        slopes = oracle.cost_and_slopes(numpy64(own.x[0]), numpy64(own.y[0]), "sqeuclidean")[1:]
        for gradient, slope, axis, length in zip((dx, dy), slopes, (1, 0), (rows, columns), strict=True):
            error = np.abs(gradient[b, :length] - (pair.alignment[:, :, None] * slope).sum(axis)).max()
            allowed = 4 * bound_of(pair, dtype) * max(np.abs(slope).max(), 1e-6)
            assert error <= allowed, f"{what}: a gradient is off by {error:.3g}, more than {allowed:.3g}"
            assert np.all(gradient[b, length:] == 0), what


@pytest.mark.cuda  # on the CPU such a length is an error
def test_lengths_out_of_range_spoil_their_pairs_alone():
    x, y = noise(600, 60, 1).float(), noise(600, 50, 1, seed=2).float()
    lengths = torch.full((600,), 60)
    clean = run(KERNEL, x, y, 1.0, x_lengths=lengths)
    on_the_device = lengths.to(GPU)
    on_the_device[[7, 599]] = torch.tensor([0, 61]).to(GPU)
    spoiled = run(KERNEL, x, y, 1.0, x_lengths=on_the_device)
    others = ~np.isin(np.arange(600), [7, 599])
    for before, after in zip(clean, spoiled, strict=True):
        np.testing.assert_array_equal(before[others], after[others])
        assert np.isnan(after[[7, 599]]).all()


def test_the_linear_domain_leaves_out_gradients_that_nobody_asked_for():
    x, y = noise(5000, 40, 1).float().to(GPU), noise(5000, 40, 1, seed=2).float().to(GPU)
    whole = run(KERNEL, x, y, 1.0)
    for i, wanted in enumerate((x, y)):
        wanted.requires_grad_()
        (gradient,) = torch.autograd.grad(soft_dtw(x, y, 1.0, kernel="stencil").sum(), wanted)
        np.testing.assert_array_equal(numpy64(gradient), whole[1 + i])
        wanted.requires_grad_(False)


def test_the_linear_domain_reads_any_strides():
    x, y = noise(700, 80, 1).float().to(GPU), noise(700, 80, 1, seed=2).float().to(GPU)
    straight = numpy64(soft_dtw(x, y, 1.0, kernel="stencil"))
    columns = x.transpose(0, 1).contiguous().transpose(0, 1)
    for strided in (columns, x.repeat(1, 1, 2)[:, :, 1:]):
        assert strided.stride(1) != 1
        np.testing.assert_array_equal(numpy64(soft_dtw(strided, y, 1.0, kernel="stencil")), straight)
    both = torch.randn(700, 160, 1, device=GPU)
    half = numpy64(soft_dtw(both[:, ::2], both[:, 1::2], 1.0, kernel="stencil"))
    apart = numpy64(soft_dtw(both[:, ::2].contiguous(), both[:, 1::2].contiguous(), 1.0, kernel="stencil"))
    np.testing.assert_array_equal(half, apart)
