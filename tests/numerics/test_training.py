"""Training on real series does what the package is for: the series of aeon that the examples use, on the CPU."""

import functools
import sys
from pathlib import Path

import pytest
import torch

from torchsoftdtw import SoftDTW, SoftDTWDivergence, dtw

sys.path.append(str(Path(__file__).parents[2] / "examples"))
pytest.importorskip("aeon")

import real_series

HISTORY, FUTURE, SHIFT = 22, 28, 10  # steps


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def shifted(series, generator):
    """(history, future) of every series; the future begins up to SHIFT steps early or late, each its own number."""
    shifts = torch.randint(-SHIFT, SHIFT + 1, (len(series), 1), generator=generator)
    index = HISTORY + SHIFT + shifts + torch.arange(FUTURE)
    return series[:, :HISTORY, 0], series[..., 0].gather(1, index).unsqueeze(2)


def data(name):
    """Every third step (second, for the shorter GunPoint) of the training and the held-out series."""
    train, _, test, _ = real_series.load(name)
    step = {"arrow_head": 3, "gun_point": 2}[name]
    return (series[:, ::step] for series in (train, test))


def network(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(HISTORY, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, FUTURE)
    )


def fit(seed, series, loss, steps, autocast=None):
    """A network trained to forecast `series`, whose future is shifted anew in every step, and the losses on the way."""
    model, generator = network(seed), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(steps):
        history, future = shifted(series, generator)
        with torch.autocast("cpu", dtype=autocast, enabled=autocast is not None):
            value = loss(model(history).unsqueeze(2), future)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return model, losses


def held_out_dtw(model, series):
    history, future = shifted(series, torch.Generator().manual_seed(99))
    with torch.no_grad():
        return dtw(model(history).unsqueeze(2), future).sqrt().mean().item()


@functools.cache
def fit_by_mse(name, seed):
    return fit(seed, next(data(name)), torch.nn.functional.mse_loss, 300)


# The smoothing that a divergence leaves in what it fits grows with gamma: at 1 it is no better than MSE here.
@pytest.mark.parametrize("loss", [SoftDTW(gamma=0.1), SoftDTWDivergence(gamma=0.01)], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("name", ["arrow_head", "gun_point"])
def test_a_network_fits_shifted_series_better_in_held_out_dtw_than_one_trained_with_mse(name, loss):
    train, test = data(name)
    for seed in (0, 1, 2):
        untrained = held_out_dtw(network(seed), test)
        soft, losses = fit(seed, train, loss, 300)
        mse, mse_losses = fit_by_mse(name, seed)
        # Both have converged: the last fifty steps bring less than a tenth of what the first fifty did.
        for values in (torch.tensor(losses), torch.tensor(mse_losses)):
            start, fifty, before, end = values[0], values[45:55].mean(), values[245:255].mean(), values[-10:].mean()
            assert start - fifty > 0 and before - end < 0.1 * (start - fifty)
        assert held_out_dtw(mse, test) < untrained
        assert held_out_dtw(soft, test) < 0.9 * held_out_dtw(mse, test)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast_training_tracks_float32(dtype):
    train, test = data("arrow_head")
    loss, seen = SoftDTW(gamma=0.1), set()

    def watched(forecast, future):
        seen.add(forecast.dtype)
        return loss(forecast, future)

    full, half = fit(0, train, loss, 200), fit(0, train, watched, 200, autocast=dtype)
    assert seen == {dtype}
    a, b = (torch.tensor(losses).view(-1, 10).mean(1) for _, losses in (full, half))
    assert a[-1] < a[0] and (a - b).abs().max() < 0.01 * (a[0] - a[-1])
    assert held_out_dtw(half[0], test) == pytest.approx(held_out_dtw(full[0], test), rel=0.01)
