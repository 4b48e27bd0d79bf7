"""Training on real series does what the package is for, on the CPU."""

import functools
import sys
from pathlib import Path

import pytest
import torch

from torchsoftdtw import SoftDTW, SoftDTWDivergence

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from forecasting import fit, held_out_dtw, network, series_of


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@functools.cache
def fit_by_mse(name, seed):
    return fit(seed, series_of(name)[0], torch.nn.functional.mse_loss)


# The smoothing that a divergence leaves in what it fits grows with gamma: at 1 it is no better than MSE here.
LOSSES = {
    "SoftDTW": (SoftDTW(), 0.9),
    "divergence": (SoftDTWDivergence(), 0.95),
    "divergence of a small gamma": (SoftDTWDivergence(gamma=0.01), 0.9),
}


@pytest.mark.parametrize(("loss", "share"), LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("name", ["ArrowHead", "GunPoint"])
def test_a_network_fits_shifted_series_better_in_held_out_dtw_than_one_trained_with_mse(name, loss, share):
    train, test = series_of(name)
    for seed in (0, 1, 2):
        untrained = held_out_dtw(network(seed), test)
        soft, losses = fit(seed, train, loss)
        mse, mse_losses = fit_by_mse(name, seed)
        # Both have converged: the last fifty steps bring less than a tenth of what the first fifty did.
        for values in (torch.tensor(losses), torch.tensor(mse_losses)):
            start, fifty, before, end = values[0], values[45:55].mean(), values[245:255].mean(), values[-10:].mean()
            assert start - fifty > 0 and before - end < 0.1 * (start - fifty)
        assert held_out_dtw(mse, test) < untrained
        assert held_out_dtw(soft, test) < share * held_out_dtw(mse, test)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast_training_tracks_float32(dtype):
    train, test = series_of("ArrowHead")
    loss, seen = SoftDTW(), set()

    def watched(forecast, future):
        seen.add(forecast.dtype)
        return loss(forecast, future)

    full, half = fit(0, train, loss, 200), fit(0, train, watched, 200, autocast=dtype)
    assert seen == {dtype}
    a, b = (torch.tensor(losses).view(-1, 10).mean(1) for _, losses in (full, half))
    assert a[-1] < a[0] and (a - b).abs().max() < 0.01 * (a[0] - a[-1])
    assert held_out_dtw(half[0], test) == pytest.approx(held_out_dtw(full[0], test), rel=0.01)
