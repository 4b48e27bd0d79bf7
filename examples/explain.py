"""What soft-DTW does
==================

Match the events of two series, and fit events that come at uncertain times.

On the left, two series with the same two events at different times, and the best path of DTW between them. In the middle,
the soft alignment: how much every pair of steps counts in soft-DTW. On the right, one prediction is fitted to eight such
series, by the mean squared error (MSE) and by soft-DTW, both from their mean. MSE compares equal times, so the prediction
stays there: low and wide. Soft-DTW compares what is matched, so its fit keeps the events.
"""

import matplotlib.pyplot as plt
import pictures
import real_series
import torch

from torchsoftdtw import SoftDTW, dtw_path, plot, soft_dtw_alignment

STEPS = 100
SEED = 4  # of when the events of the targets come
BY_MSE, BY_SOFT_DTW, TARGET = "#7b5ea7", "#2b8a5a", "0.8"

# %%
# Series with two events
# ----------------------


def events(first, second):
    """A series (STEPS, 1) of a sharp beat and a slower wave behind it, around these two steps."""
    step = torch.arange(float(STEPS))
    beat = 2 * torch.exp(-(((step - first) / 2.5) ** 2)) - 0.9 * torch.exp(-(((step - first - 6) / 3) ** 2))
    wave = 0.9 * torch.exp(-(((step - second) / 6) ** 2))
    return (beat + wave).unsqueeze(1)


# %%
# A fit
# -----


def fit(loss, targets, rounds):
    """The series that a loss prefers for all of these targets, by Adam from their mean."""
    prediction = targets.mean(0).requires_grad_()
    optimizer = torch.optim.Adam([prediction], lr=0.03)
    for _ in range(rounds):
        optimizer.zero_grad()
        loss(prediction.expand_as(targets), targets).backward()
        optimizer.step()
    return prediction.detach()


# %%
# The picture
# -----------
# `plot.pair` draws two series and what is matched, `plot.alignment` an alignment over the matrix of costs.


def draw(x, y, gamma, targets, fits, path):
    figure = plt.figure(figsize=(13.5, 4.3), layout="constrained")
    parts = figure.subfigures(1, 3, width_ratios=(1, 1.15, 1.25), wspace=0.03)
    titles = (
        "Two series, and the steps that DTW matches",
        "The soft alignment (orange) over the costs",
        f"One prediction, fitted to {len(targets)} targets",
    )
    for part, title in zip(parts, titles, strict=True):
        part.suptitle(title, fontsize=12)
    pair, table, fitted = (part.subplots() for part in parts)

    plot.pair(x, y, dtw_path(x, y).paths[::2], ax=pair)  # every second match, to see between them
    plot.alignment(x, y, soft_dtw_alignment(x, y, gamma=gamma), ax=table)
    for number, target in enumerate(targets):
        fitted.plot(target, color=TARGET, lw=1, label=None if number else "targets")
    for (label, series), colour in zip(fits.items(), (BY_MSE, BY_SOFT_DTW), strict=True):
        fitted.plot(series, color=colour, lw=2.6, label=label)
    pictures.frame(fitted, 0, STEPS - 1)
    fitted.legend(frameon=False, loc="upper right")
    figure.savefig(path, dpi=pictures.DPI)


# %%
# All of it
# ---------


def main():
    parser = real_series.parser_of(__doc__, "operation.png", device="cpu")
    parser.add_argument("--gamma", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=300, help="steps of the optimizer")
    options = parser.parse_args()

    places = torch.rand(8, 2, generator=torch.Generator().manual_seed(SEED))
    targets = torch.stack([events(18 + 26 * first, 60 + 22 * second) for first, second in places]).to(options.device)
    x, y = events(20, 60), events(40, 74)

    by_mse = fit(torch.nn.MSELoss(), targets, options.rounds)
    loss = SoftDTW(options.gamma)
    by_soft_dtw = fit(loss, targets, options.rounds)
    for name, series in (("MSE", by_mse), ("soft-DTW", by_soft_dtw)):
        print(f"fitted by {name:<9} peak {series.max():.2f}, of the targets {targets.amax(1).mean():.2f}")
    fits = {"fit by MSE": by_mse.cpu(), "fit by soft-DTW": by_soft_dtw.cpu()}
    draw(x, y, options.gamma, targets.cpu(), fits, options.output)
    print(f"drawn in {options.output}")


if __name__ == "__main__":
    main()
