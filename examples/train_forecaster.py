"""Forecast heartbeats
===================

Train the same network with soft-DTW and with the mean squared error (MSE) to forecast an electrocardiogram.

A network reads 0.9 seconds of a recording and writes the next second. A beat will come, but when exactly is uncertain: this
heart beats irregularly. MSE compares equal times, so its best answer is an average over all the times at which the beat may
come. That average is low and wide. Soft-DTW compares what is matched, and its forecasts keep the beat. A band limits how
far apart matched steps may be, so a forecast also has to be right about the time, within 0.13 seconds.
"""

import time

import matplotlib.pyplot as plt
import pictures
import real_series
import torch
from torch import nn
from tqdm import tqdm

import torchsoftdtw

SOFT_DTW, MSE = "soft-DTW", "MSE"
COLOURS = {SOFT_DTW: "#d1495b", MSE: "#3c7dc4"}

# %%
# The recording
# -------------
# Four samples make one step, so there are 90 steps a second. A forecast begins an eighth of a second after a beat. The
# first 70 % of the recording are for training, the rest is held out.

EVERY, RATE = 4, 90  # samples a step, steps a second
HISTORY, FUTURE = 80, 88  # steps
AFTER, JITTER = 45, 16  # samples from a beat to where its forecast begins, and by how much that changes in training


def windows():
    """Windows (B, samples) around the beginning of every forecast, of unit variance: to train on, and held out."""
    past, future = EVERY * HISTORY + JITTER, EVERY * FUTURE + JITTER
    found = []
    for part, beats in real_series.electrocardiogram():
        begin = [beat + AFTER for beat in beats if past <= beat + AFTER <= len(part) - future]
        found += [part[now - past : now + future] for now in begin]
    count = int(0.7 * len(found))
    training, held_out = torch.stack(found[:count]), torch.stack(found[count + 4 :])  # four beats on, they do not overlap
    return training / training.std(), held_out / training.std()


def split(series, shift=0):
    """(history (B, HISTORY, 1), future (B, FUTURE, 1)), so many samples later than in the middle of the windows."""
    samples = series[:, JITTER + shift :][:, : EVERY * (HISTORY + FUTURE)]
    steps = samples.unflatten(1, (-1, EVERY)).mean(2).unsqueeze(2)
    history, future = steps.split([HISTORY, FUTURE], 1)
    level = history.median(1, keepdim=True).values  # it drifts as the patient breathes
    return history - level, future - level


# %%
# The network
# -----------
# Two layers read the history, and convolutions write the forecast at growing resolution.


class Forecaster(nn.Sequential):
    """(B, HISTORY, 1) -> (B, FUTURE, 1)."""

    def __init__(self, hidden, channels=16):
        def convolution(outputs, width):
            return nn.Conv1d(channels, outputs, width, padding="same")

        def twice_as_long():
            return nn.Upsample(scale_factor=2, mode="linear")

        super().__init__(
            nn.Flatten(),
            *(nn.Linear(HISTORY, hidden), nn.ReLU(), nn.Dropout(0.1)),
            *(nn.Linear(hidden, hidden), nn.ReLU()),
            *(nn.Linear(hidden, channels * FUTURE // 4), nn.Unflatten(1, (channels, FUTURE // 4)), nn.ReLU()),
            *(twice_as_long(), convolution(channels, 5), nn.ReLU()),
            *(twice_as_long(), convolution(channels, 5), nn.ReLU()),
            *(convolution(1, 3), nn.Flatten(), nn.Unflatten(1, (FUTURE, 1))),
        )


# %%
# Training
# --------
# Only the loss differs: the seed fixes the first weights and the batches.


def train(name, loss, series, options):
    """A Forecaster of these windows, trained with `loss`."""
    torch.manual_seed(options.seed)
    model = Forecaster(options.hidden).to(series.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    for _ in tqdm(range(options.epochs), desc=f"training with {name:8}", unit="epoch", disable=None):
        history, future = split(series, torch.randint(-JITTER, JITTER + 1, ()).item())
        for index in torch.randperm(len(series)).to(series.device).split(options.batch):
            value = loss(model(history[index]), future[index])
            optimizer.zero_grad()
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        schedule.step()
    return model.eval()


# %%
# Figures
# -------
# DTW says how close the shape is, MSE how close the values are at equal times, and the height is that of the forecast's
# highest value, as a share of the true one.


def heights(forecast, truth):
    """(B,)"""
    return (forecast.amax(1) / truth.amax(1)).squeeze(1)


def measure(forecast, truth):
    """Means over the series."""
    return {
        "DTW": torchsoftdtw.dtw(forecast, truth).sqrt().mean().item(),
        "MSE": nn.functional.mse_loss(forecast, truth).item(),
        "height": heights(forecast, truth).mean().item(),
    }


def table(measures):
    columns = list(next(iter(measures.values())))
    lines = [f"{'trained with':<14}" + "".join(f"{column:>12}" for column in columns)]
    lines += [f"{name:<14}" + "".join(f"{row[column]:>12.2f}" for column in columns) for name, row in measures.items()]
    return "\n".join(lines)


# %%
# The picture
# -----------


def draw(history, future, forecasts, title, path):
    """Held-out series, evenly spread over the recording, each with the forecasts of all models."""
    figure, axes = plt.subplots(2, 2, figsize=(11, 5.6), sharex=True, sharey=True, layout="constrained")
    chosen = torch.linspace(0, len(history) - 1, axes.size + 2).round().long().tolist()[1:-1]
    time_of = (torch.arange(HISTORY + FUTURE) - HISTORY) / RATE
    for axis, index in zip(axes.flat, chosen, strict=True):
        axis.axvspan(0, time_of[-1], color="0.955", lw=0)
        axis.plot(time_of, torch.cat([history[index], future[index]]).cpu(), color="0.25", lw=1.3, label="recording")
        for name, forecast in forecasts.items():
            axis.plot(time_of[HISTORY:], forecast[index].cpu(), color=COLOURS[name], lw=2.2, label=f"trained with {name}")
        shares = {name: heights(forecast[index, None], future[index, None]).item() for name, forecast in forecasts.items()}
        text = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
        axis.set_title(f"height of the forecast: {text}", fontsize=10, color="0.3")
        pictures.frame(axis, time_of[0], time_of[-1], "seconds")
        axis.label_outer()
    pictures.legend_below(figure, axes.flat[0])
    pictures.save(figure, title, path)


# %%
# All of it
# ---------


def parser_of(documentation, output, epochs=150):
    """The options of an example that trains."""
    parser = real_series.parser_of(documentation, output)
    parser.add_argument("--gamma", type=float, default=0.1, help="smoothing of soft-DTW")
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="CPU threads; more do not help so small a network")
    return parser


def compare(losses, options):
    """Train a network with each loss. Returns what it was to forecast, and {name: forecasts}, on the held-out series."""
    torch.set_num_threads(options.threads)
    training, held_out = (series.to(options.device) for series in windows())
    print(f"an electrocardiogram: {len(training)} forecasts to train on, {len(held_out)} held out, on {options.device}")
    start = time.perf_counter()
    models = {name: train(name, loss, training, options) for name, loss in losses.items()}
    print(f"trained for {time.perf_counter() - start:.0f} s")
    history, future = split(held_out)
    with torch.no_grad():
        return history, future, {name: model(history) for name, model in models.items()}


def main():
    parser = parser_of(__doc__, "forecast.png")
    parser.add_argument("--bandwidth", type=int, default=12, help="how many steps apart soft-DTW may match two steps")
    options = parser.parse_args()
    soft_dtw = torchsoftdtw.SoftDTW(gamma=options.gamma, bandwidth=options.bandwidth)
    losses = {MSE: nn.functional.mse_loss, SOFT_DTW: lambda x, y: soft_dtw(x, y) / y.shape[1]}
    history, future, forecasts = compare(losses, options)
    print("\nmeans over the held-out series")
    print(table({name: measure(forecast, future) for name, forecast in forecasts.items()}))
    draw(history, future, forecasts, "The next heartbeat, forecast from the last two", options.output)
    print(f"\nforecasts drawn in {options.output}")


if __name__ == "__main__":
    main()
