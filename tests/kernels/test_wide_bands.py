"""Bands in the kernels of short pairs, which take those that are wider than a ring of lanes (kernels/banded)."""

import numpy as np
import pytest
import torch
from cases import GPU, OF_GPU, KernelCase, numpy64, run
from test_banded import DEEP, GIVEN_UP, TAKEN, assert_close, series
from test_engines import Case

from torchsoftdtw import soft_dtw
from torchsoftdtw._kernels import ops
from torchsoftdtw._kernels.number_formats import of_saved

pytestmark = OF_GPU
FIRST_IN_WINDOW = 3  # of PairStatus
LINEAR, LOG2 = (KernelCase(GPU, f"stencil/{name}") for name in ("linear_domain", "integer_log2"))


def statuses(kernel, x, y, gammas, bandwidth, warp_penalty=0.0, cost="sqeuclidean", lengths=(None, None)):
    """The number format that has taken each pair."""
    own, radius = (torch.tensor(bandwidth).to(GPU), -1) if isinstance(bandwidth, list) else (None, bandwidth)
    lengths = [None if z is None else torch.tensor(z).to(GPU) for z in lengths]
    gammas = torch.tensor(gammas, dtype=torch.float64).to(GPU)
    options = (*lengths, own, gammas, None, radius, 1.0, warp_penalty, cost, kernel.name, 0, True)
    return of_saved(ops.forward(x.float().to(GPU), y.float().to(GPU), *options)[1], len(x))


# Of a pair 8, 16 and 32 lanes of a warp, with 8, 12 and 16 rows a lane: with few pairs each has a warp.
@pytest.mark.parametrize("kind", ["noise", "walks"])
@pytest.mark.parametrize(("kernel", "gamma"), [(LINEAR, 1.0), (LINEAR, 0.02), (LOG2, 1.0), (LOG2, 0.02)], ids=str)
@pytest.mark.parametrize("sizes", [(4098, 20, 25), (2050, 70, 60), (3, 70, 90), (2, 300, 280), (2, 400, 410)], ids=str)
def test_bands_of_every_width(sizes, kernel, gamma, kind):
    batch, n, m = sizes
    some = min(batch, 3)
    x, y = series(kind, some, n, 1), series(kind, some, m, 2)
    many = [z.float()[torch.arange(batch) % some] for z in (x, y)]
    for radius in {7, n // 3, n - 9}:
        results = [result[:some] for result in run(kernel, *many, gamma, bandwidth=radius)]
        assert_close(results, Case(x, y, (), {"bandwidth": radius}), [gamma] * some, kernel.name)
        alone = numpy64(soft_dtw(*(z.to(GPU) for z in many), gamma, kernel=kernel.name, bandwidth=radius))
        np.testing.assert_array_equal(alone[:some], results[0])


@pytest.mark.parametrize("gamma", [1.0, 0.05])
@pytest.mark.parametrize(
    "options",
    [{"warp_penalty": 0.7}, {"cost": "cityblock"}, {"cost": "euclidean", "warp_penalty": 0.2}, {"cost": "huber"}],
    ids=str,
)
def test_other_costs_and_penalties(options, gamma):
    batch = 5
    for kind, n, m, radius in (("noise", 150, 150, 130), ("walks", 61, 400, 20), ("sines", 330, 300, 120)):
        x, y = series(kind, batch, n, 1), series(kind, batch, m, 2)
        assert DEEP in statuses(LOG2, x, y, [gamma] * batch, radius, **options)
        results = run(LOG2, x.float(), y.float(), gamma, bandwidth=radius, **options)
        assert_close(results, Case(x, y, (), {"bandwidth": radius, **options}), [gamma] * batch)


@pytest.mark.parametrize("kernel", [LINEAR, LOG2], ids=str)
@pytest.mark.parametrize("kind", ["noise", "walks"])
def test_gammas_lengths_and_radii_of_every_pair(kind, kernel):
    batch, n, m = 24, 190, 180
    generator = np.random.default_rng(5)
    x, y = series(kind, batch, n, 5), series(kind, batch, m, 6)
    lengths = [generator.integers(1, size + 1, batch).tolist() for size in (n, m)]
    gammas = generator.choice([1.0, 30.0, 0.1, 0.01, 1e-4], batch).tolist()
    for radius in (generator.integers(0, 200, batch).tolist(), 150):
        options = {"bandwidth": radius, "x_lengths": lengths[0], "y_lengths": lengths[1]}
        spoiled = x.float(), y.float()
        for z, of_pairs in zip(spoiled, lengths, strict=True):
            for b, length in enumerate(of_pairs):
                z[b, length:] = np.nan
        results = run(kernel, *spoiled, torch.tensor(gammas, dtype=torch.float64).to(GPU), **options)
        taken = statuses(kernel, *spoiled, gammas, radius, lengths=lengths)
        assert set(taken) == ({TAKEN, DEEP, GIVEN_UP} if kernel is LINEAR else {DEEP, GIVEN_UP})
        assert_close(results, Case(x, y, (), options), gammas)


@pytest.mark.parametrize("kernel", [LINEAR, LOG2], ids=str)
def test_gradients_in_windows(kernel):
    """Of so many cells that backward goes where E counts; all pairs but some have a single one."""
    batch, some, n, m, radius = 1024, 6, 512, 512, 160
    x, y = series("noise", some, n, 3), series("walks", some, m, 4)
    gammas = [1.0, 0.1, 0.01] * 2
    many = [torch.cat([z.float(), torch.ones(batch - some, z.shape[1], 1)]) for z in (x, y)]
    lengths = {f"{z}_lengths": torch.tensor([size] * some + [1] * (batch - some)) for z, size in (("x", n), ("y", m))}
    of_all = torch.tensor(gammas + [1.0] * (batch - some), dtype=torch.float64).to(GPU)
    options = (
        *(z.to(GPU) for z in lengths.values()),
        None,
        of_all,
        None,
        radius,
        1.0,
        0.0,
        "sqeuclidean",
        kernel.name,
        0,
        True,
    )
    saved = ops.forward(*(z.to(GPU) for z in many), *options)[1]
    assert (ops.pair_statuses(saved, batch).view(torch.int32)[:some] >= FIRST_IN_WINDOW).any()
    results = run(kernel, *many, of_all, bandwidth=radius, **lengths)
    assert_close([result[:some] for result in results], Case(x, y, (), {"bandwidth": radius}), gammas)


def test_a_bad_number_spoils_its_pair_alone():
    x, y = series("noise", 9, 150, 9).float(), series("noise", 9, 150, 10).float()
    clean = run(LINEAR, x, y, 1.0, bandwidth=140)
    x[4, 30] = np.nan
    spoiled = run(LINEAR, x, y, 1.0, bandwidth=140)
    others = np.arange(len(x)) != 4
    for before, after in zip(clean, spoiled, strict=True):
        np.testing.assert_array_equal(before[others], after[others])
        assert not np.isfinite(after[4]).all()
