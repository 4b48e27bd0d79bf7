"""Forecast the second half of real series with a recurrent network, trained with soft-DTW and, beside it, with MSE.

The same network starts from the same weights and sees the same batches twice; only the loss differs. A table shows what
either reaches on held-out series, and a picture shows forecasts.
"""

import time

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import real_series
import torch
from torch import nn
from tqdm import tqdm

import torchsoftdtw

SOFT_DTW, MSE = "soft-DTW", "MSE"
COLOURS = {SOFT_DTW: "#d1495b", MSE: "#3c7dc4"}


class Forecaster(nn.Module):
    """A GRU reads the first half; a GRU cell then writes the second half, a step at a time, from its own output."""

    def __init__(self, dim, hidden, horizon):
        super().__init__()
        self.horizon = horizon
        self.encoder = nn.GRU(dim, hidden, batch_first=True)
        self.decoder = nn.GRUCell(dim, hidden)
        self.step = nn.Linear(hidden, dim)

    def forward(self, history):
        """(B, T, D) -> (B, horizon, D)."""
        state = self.encoder(history)[1][0]
        value = history[:, -1]
        forecast = []
        for _ in range(self.horizon):
            state = self.decoder(value, state)
            value = value + self.step(state)
            forecast.append(value)
        return torch.stack(forecast, 1)


def train(name, loss, history, future, options):
    """A Forecaster fitted to (history, future) under `loss`; the seed fixes its weights and its batches."""
    torch.manual_seed(options.seed)
    model = Forecaster(history.shape[2], options.hidden, future.shape[1]).to(history.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    progress = tqdm(range(options.epochs), desc=f"training with {name:8}", unit="epoch", mininterval=0.5)
    for _ in progress:
        for index in torch.randperm(len(history)).to(history.device).split(options.batch):
            value = loss(model(history[index]), future[index])
            optimizer.zero_grad()
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        schedule.step()
        progress.set_postfix(loss=f"{value.item():.4f}", refresh=False)
    return model


def dtw(forecast, truth):
    """DTW distances (B,), the root of the smallest summed squared difference, of arrays (B, N, D) and (B, M, D)."""
    cost = ((forecast[:, :, None] - truth[:, None]) ** 2).sum(-1)
    batch, n, m = cost.shape
    table = np.full((batch, n + 1, m + 1), np.inf)
    table[:, 0, 0] = 0
    for i in range(n):
        for j in range(m):
            best = np.minimum(np.minimum(table[:, i, j], table[:, i, j + 1]), table[:, i + 1, j])
            table[:, i + 1, j + 1] = cost[:, i, j] + best
    return np.sqrt(table[:, n, m])


def as_arrays(*tensors):
    return [tensor.double().cpu().numpy() for tensor in tensors]


def measure(forecast, truth, gamma):
    """Means over the series of soft-DTW, DTW and MSE."""
    return (
        torchsoftdtw.soft_dtw(forecast, truth, gamma).mean().item(),
        dtw(*as_arrays(forecast, truth)).mean(),
        nn.functional.mse_loss(forecast, truth).item(),
    )


def table(measures, gamma):
    """The held-out measures as text, the better one of each column starred."""
    best = {column: min(row[column] for row in measures.values()) for column in range(3)}
    lines = [f"{'trained with':<14}{f'soft-DTW ({gamma:g})':>17}{'DTW':>11}{'MSE':>11}"]
    for name, row in measures.items():
        cells = [f"{value:.3f}{'*' if value == best[column] else ' '}" for column, value in enumerate(row)]
        lines.append(f"{name:<14}{cells[0]:>17}{cells[1]:>11}{cells[2]:>11}")
    return "\n".join(lines)


def draw(history, future, forecasts, title, path):
    """A grid of held-out series, each with the forecasts of all models."""
    past, horizon = history.shape[1], future.shape[1]
    figure, axes = plt.subplots(2, 3, figsize=(11, 5.2), sharex=True, sharey=True, layout="constrained")
    chosen = np.linspace(0, len(history) - 1, axes.size).round().astype(int)
    items = forecasts.items()
    for axis, index in zip(axes.flat, chosen, strict=True):
        axis.axvspan(past - 1, past + horizon - 1, color="0.955", lw=0)
        truth = torch.cat([history[index], future[index]])[:, 0].cpu()
        axis.plot(truth, color="0.25", lw=1.3, label="held-out series")
        for name, forecast in items:
            joined = torch.cat([history[index, -1:, 0], forecast[index, :, 0]]).cpu()
            steps = range(past - 1, past + horizon)
            axis.plot(steps, joined, color=COLOURS[name], lw=1.9, label=f"trained with {name}")
        distances = {name: dtw(*as_arrays(forecast[index, None], future[index, None]))[0] for name, forecast in items}
        text = ", ".join(f"{name} {distance:.2f}" for name, distance in distances.items())
        axis.set_title(f"DTW to the truth: {text}", fontsize=9 if len(items) < 3 else 7.5, color="0.3")
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_xlim(0, past + horizon - 1)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    for axis in axes[-1]:
        axis.set_xlabel("step")
    figure.suptitle(title, fontsize=12)
    figure.savefig(path, dpi=110)


def parser_of(documentation, dataset, output, gamma, epochs, batch):
    """The options of an example that trains, with its defaults."""
    parser = real_series.parser_of(documentation, dataset, output)
    parser.add_argument("--gamma", type=float, default=gamma, help="smoothing of soft-DTW")
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="CPU threads; more do not help so small a network")
    return parser


def load_halves(options):
    """The first and the second halves of the series to train on, then those of the held-out ones."""
    train_series, _, test_series, _ = real_series.load(options.dataset)
    length = train_series.shape[1]
    halves = [
        half.contiguous()
        for series in (train_series, test_series)
        for half in series.to(options.device).split([length // 2, length - length // 2], 1)
    ]
    print(real_series.DATASETS[options.dataset])
    print(f"{len(train_series)} series to train on, {len(test_series)} held out, on {options.device}")
    print(f"forecasting {length - length // 2} steps from {length // 2}")
    return halves


def main():
    parser = parser_of(__doc__, "arrow_head", "forecast.png", gamma=0.1, epochs=200, batch=24)
    parser.add_argument("--bandwidth", type=int, help="Sakoe-Chiba radius of the loss; none by default")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    history, future, test_history, test_future = load_halves(options)

    soft_dtw = torchsoftdtw.SoftDTW(gamma=options.gamma, bandwidth=options.bandwidth)
    losses = {SOFT_DTW: lambda x, y: soft_dtw(x, y) / y.shape[1], MSE: nn.functional.mse_loss}
    start = time.perf_counter()
    models = {name: train(name, loss, history, future, options) for name, loss in losses.items()}
    with torch.no_grad():
        forecasts = {name: model(test_history) for name, model in models.items()}
    print(f"\nheld-out series, mean (* best), after {time.perf_counter() - start:.0f} s of training")
    measures = {name: measure(forecast, test_future, options.gamma) for name, forecast in forecasts.items()}
    print(table(measures, options.gamma))
    title = f"{options.dataset}: the second half of held-out series, forecast from the first"
    draw(test_history, test_future, forecasts, title, options.output)
    print(f"\nforecasts drawn in {options.output}")


if __name__ == "__main__":
    main()
