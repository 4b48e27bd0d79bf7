"""The data that benchmarks are run on: the same in every run, and what their names say."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import data_kinds  # noqa: E402

SETS = tuple(data_kinds.real_sets())
EVERY_KIND = (*data_kinds.KINDS, *(f"real:{name}" for name in SETS))


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize(("length", "dim"), [(1, 1), (20, 1), (97, 3), (700, 1), (1500, 13)])
def test_a_seed_gives_the_same_pairs_and_another_seed_others(kind, length, dim):
    x, y = data_kinds.pairs(kind, 3, length, dim)
    assert x.shape == y.shape == (3, length, dim)
    assert x.dtype == y.dtype == torch.float32
    assert x.isfinite().all() and y.isfinite().all()
    again = data_kinds.pairs(kind, 3, length, dim)
    assert torch.equal(x, again[0]) and torch.equal(y, again[1])
    if length > 1:
        assert not torch.equal(x, y)
        assert not torch.equal(x, data_kinds.pairs(kind, 3, length, dim, seed=1)[0])


# What records were taken with. Rounding aside, no version of PyTorch may change it.
FIRST = {
    "noise": (-1.125840, -0.880804, 0.420080),
    "walks": (1.602704, 2.721799, 0.496250),
    "sines": (-1.417657, -1.196370, -1.085549),
    "steps": (1.238285, 1.743483, 0.889460),
    "smoothed": (-1.422472, -0.717051, -0.547121),
    "real": (-0.577818, 0.679789, 1.762465),
}


@pytest.mark.parametrize("kind", data_kinds.KINDS)
def test_the_data_are_those_of_the_records(kind):
    x, y = data_kinds.pairs(kind, 5, 40)
    torch.testing.assert_close(
        torch.stack([x[0, 0, 0], x[4, 39, 0], y[2, 20, 0]]), torch.tensor(FIRST[kind]), rtol=0, atol=1e-5
    )


def test_noise_is_the_unit_noise_of_older_records():
    generator = torch.Generator().manual_seed(3)
    x, y = (torch.randn(4, 30, 2, generator=generator) for _ in range(2))
    pair = data_kinds.pairs("noise", 4, 30, 2, torch.float64, seed=3)
    assert torch.equal(pair[0], x.double()) and torch.equal(pair[1], y.double())


@pytest.mark.parametrize("kind", [kind for kind in EVERY_KIND if kind != "noise"])
def test_other_kinds_are_z_normalised(kind):
    for series in data_kinds.pairs(kind, 200, 300, 2, torch.float64):
        varies = series.abs().amax(1) > 0
        assert varies.double().mean() > 0.9
        torch.testing.assert_close(series.mean(1), torch.zeros(200, 2, dtype=torch.float64), rtol=0, atol=1e-9)
        torch.testing.assert_close(series.square().mean(1), varies.double(), rtol=1e-9, atol=1e-9)


def test_a_constant_series_stays_finite():
    series = torch.full((2, 50, 1), 0.1, dtype=torch.float64)
    assert torch.equal(data_kinds.z_normalised(series), torch.zeros(2, 50, 1, dtype=torch.float64))


def correlation(series, lag):
    return (series[:, lag:] * series[:, :-lag]).mean().item()


def test_kinds_are_what_their_names_say():
    data = {kind: data_kinds.pairs(kind, 400, 512, 1, torch.float64)[0] for kind in data_kinds.SYNTHETIC}
    assert abs(correlation(data["noise"], 1)) < 0.01
    assert correlation(data["walks"], 1) > 0.95
    window = data_kinds.WINDOW
    for lag in (1, window // 2):  # means of windows share what does not leave them
        assert correlation(data["smoothed"], lag) == pytest.approx(1 - lag / window, abs=0.05)
    assert correlation(data["smoothed"], window + 5) == pytest.approx(-window / 512, abs=0.03)  # the mean is taken out

    noise = data_kinds.NOISE
    spectrum = torch.fft.rfft(data["sines"][..., 0]).abs().square()
    first, last = data_kinds.WAVES
    slow = spectrum[:, first - 1 : last + 2].sum(1) / spectrum.sum(1)
    assert slow.min() > 0.9
    curvature = data["sines"].diff(n=2, dim=1).square().mean().item()
    assert curvature == pytest.approx(6 * 2 * noise**2, rel=0.1)  # sines alone have variance 1/2

    changes = data["steps"].diff(dim=1).abs()
    jumps = (changes > 8 * changes.median(1, keepdim=True).values).sum(1).double()
    assert jumps.max() <= data_kinds.JUMPS
    assert jumps.mean() > data_kinds.JUMPS / 2


def test_both_series_of_a_pair_are_of_one_real_set_and_every_set_takes_part():
    length = 252
    x, y = data_kinds.pairs("real", 400, length, 1, torch.float64)
    recorded = {name: s for name, s in data_kinds.real_sets().items() if s.shape[2] == 1}
    hits = data_kinds.z_normalised(recorded["Heartbeats"].double())[..., 0]  # recorded at this length

    def is_heartbeat(series):
        return torch.cdist(series[..., 0], hits).amin(1) < 1e-5

    found = is_heartbeat(x)
    assert torch.equal(found, is_heartbeat(y))
    assert found.double().mean() == pytest.approx(1 / len(recorded), abs=0.06)


def test_a_real_series_is_stretched_and_then_others_follow():
    series = data_kinds.real_sets()["ItalyPowerDemand"].double()
    own = series.shape[1]
    x, _ = data_kinds.pairs("real:ItalyPowerDemand", 20, 1 + 3 * (own - 1), 1, torch.float64)
    at_samples = data_kinds.z_normalised(x[:, ::3])[..., 0]  # two of three lie between samples
    distances = torch.cdist(at_samples, data_kinds.z_normalised(series)[..., 0])
    assert distances.amin(1).max() < 1e-5
    middle = (x[:, 1:-1:3] - (2 * x[:, :-1:3] + x[:, 3::3]) / 3).abs().max()
    assert middle < 1e-6

    longest = data_kinds.MOST_STRETCHED * own
    x, _ = data_kinds.pairs("real:ItalyPowerDemand", 20, 2 * longest, 1, torch.float64)
    halves = [data_kinds.z_normalised(half)[..., 0] for half in (x[:, :longest], x[:, longest:])]
    stretched = torch.nn.functional.interpolate(
        series.transpose(1, 2), size=longest, mode="linear", align_corners=True
    ).transpose(1, 2)
    for half in halves:
        assert torch.cdist(half, data_kinds.z_normalised(stretched)[..., 0]).amin(1).max() < 1e-5
    assert not torch.equal(*halves)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"kind: expected one of .*, got 'waves'"):
        data_kinds.pairs("waves", 1, 10)
    with pytest.raises(ValueError, match=r"kind: expected real or real: and one of .*, got 'Nothing'"):
        data_kinds.pairs("real:Nothing", 1, 10)


def test_real_series_are_one_small_file_that_needs_no_package_of_data_sets():
    assert data_kinds.REAL_SERIES.stat().st_size <= 4 << 20
    assert {"Heartbeats", "ArrowHead", "GunPoint", "Trace"} <= set(SETS)
    assert all(data_kinds.real_sources().values())
    code = (
        "import sys; sys.modules.update(aeon=None, tslearn=None, scipy=None, torchsoftdtw=None); "
        "import data_kinds; print(data_kinds.pairs('real', 2, 30)[0].shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS, capture_output=True, text=True)
    assert done.stdout.strip() == "torch.Size([2, 30, 1])", done.stderr
