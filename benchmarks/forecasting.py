"""A forecasting task on real series: the future of a series begins a little early or late, and a network has to say what
comes, not when. A loss that forgives shifts does better there than the mean squared error, in DTW to held-out series."""

import data_kinds
import torch

from torchsoftdtw import dtw

HISTORY, FUTURE, SHIFT = 22, 28, 10  # steps
EVERY = {"ArrowHead": 3, "GunPoint": 2}  # of how many recorded steps one is taken
STEPS = 300


def series_of(name):
    """The training and the held-out series of a data set."""
    split = data_kinds.real_splits()[name]
    return tuple(series[:, :: EVERY[name]] for series in (split.train, split.test))


def shifted(series, generator):
    """(history, future) of every series; the future begins up to SHIFT steps early or late, each its own number."""
    shifts = torch.randint(-SHIFT, SHIFT + 1, (len(series), 1), generator=generator)
    index = HISTORY + SHIFT + shifts + torch.arange(FUTURE)
    return series[:, :HISTORY, 0], series[..., 0].gather(1, index).unsqueeze(2)


def network(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(HISTORY, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, FUTURE)
    )


def fit(seed, series, loss, steps=STEPS, autocast=None):
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
    """The mean over the series of the DTW distance, a root, of the forecast to what comes."""
    history, future = shifted(series, torch.Generator().manual_seed(99))
    with torch.no_grad():
        return dtw(model(history).unsqueeze(2), future).sqrt().mean().item()
