"""Elastic measures: nearest neighbours
====================================

Classify real series by their nearest neighbour under several elastic measures, and draw how each aligns the same pair.

The measures differ in what it costs to leave a vector out. Accuracies are of the data set's own test series.
"""

import time

import matplotlib.pyplot as plt
import pictures
import real_series
import torch

from torchsoftdtw import elastic_path, measures, msm
from torchsoftdtw.estimators import SoftDTWKNeighborsClassifier

MEASURES = {
    "DTW": measures.DTW(),
    "TWED": measures.TWED(nu=0.001, lmbda=0.1),
    "ERP": measures.ERP(g=0.0),
    "MSM": measures.MSM(c=0.1),
}
DIAGONAL, UP, LEFT = 0, 1, 2
COLOURS = {DIAGONAL: "0.6", UP: "#d1495b", LEFT: "#3c7dc4"}
APART = 4.0  # between the two series of a panel

# %%
# Neighbours
# ----------


def accuracy(measure, train, train_labels, test, test_labels):
    """(accuracy on the test series, seconds)."""
    model = SoftDTWKNeighborsClassifier(1, distance=measure).fit(train, train_labels)
    start = time.perf_counter()
    return model.score(test, test_labels), time.perf_counter() - start


# %%
# An average
# ----------
# The soft measure has gradients, so an average under it is a matter of descent.


def average(series, gamma, steps):
    """(N, 1): what has the least mean soft MSM to the series (K, N, 1)."""
    mean = series.mean(0)
    found = mean.clone().requires_grad_()
    optimizer = torch.optim.Adam([found], lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = msm(found.expand_as(series), series, c=0.1, gamma=gamma).mean()
        loss.backward()
        optimizer.step()
    return found.detach()


# %%
# The picture
# -----------
# Grey lines are matches. Red ones leave out a step of the upper series, blue ones one of the lower series.


def draw(x, y, paths, series, center, title, path):
    figure, axes = plt.subplots(1, len(paths) + 1, figsize=(3.2 * (len(paths) + 1), 3.4), layout="constrained")
    for axis, (name, (_, cells, steps)) in zip(axes, paths.items(), strict=False):
        for (i, j), step in zip(cells.tolist(), steps.tolist(), strict=True):
            i, j = max(i, 0), max(j, 0)  # -1: before the first step
            axis.plot([i, j], [x[i, 0] + APART, y[j, 0]], color=COLOURS[step], lw=0.6)
        axis.plot(x[:, 0] + APART, color="0.15", lw=1.8)
        axis.plot(y[:, 0], color="0.15", lw=1.8)
        axis.set_title(name, fontsize=10)
        axis.set_yticks([])
        pictures.frame(axis, 0, max(len(x), len(y)) - 1)
    axes[-1].plot(series[..., 0].T, color="0.35", lw=0.6, alpha=0.35)
    axes[-1].plot(center[:, 0], color="#d1495b", lw=2)
    axes[-1].set_title("average under soft MSM", fontsize=10)
    pictures.frame(axes[-1], 0, len(center) - 1)
    pictures.save(figure, title, path)


# %%
# All of it
# ---------


def parse_arguments():
    parser = real_series.parser_of(__doc__, "elastic.png", dataset="arrow_head", device="cpu")
    parser.add_argument("--gamma", type=float, default=0.1, help="smoothing of the average")
    parser.add_argument("--steps", type=int, default=100, help="of the average")
    return parser.parse_args()


def main():
    options = parse_arguments()
    train, train_labels, test, test_labels = real_series.load(options.dataset)
    print(real_series.DATASETS[options.dataset])
    train, test = train.to(options.device), test.to(options.device)
    print(f"\n{'nearest neighbour':<20}{'accuracy':>10}{'seconds':>10}")
    for name, measure in MEASURES.items():
        score, seconds = accuracy(measure, train, train_labels, test, test_labels)
        print(f"{name:<20}{score:>10.3f}{seconds:>10.2f}")
    own = train[torch.from_numpy(train_labels == train_labels[0])]
    center = average(own, options.gamma, options.steps)
    x, y = (series[::4] for series in own[:2])  # fewer lines to look at
    paths = {name: elastic_path(x, y, measure) for name, measure in MEASURES.items()}
    title = f"{options.dataset}: two series of a class, and how four measures align them"
    draw(x.cpu(), y.cpu(), paths, own.cpu(), center.cpu(), title, options.output)
    print(f"\ndrawn in {options.output}")


if __name__ == "__main__":
    main()
