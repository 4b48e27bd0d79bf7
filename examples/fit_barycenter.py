"""Average series: barycenters
===========================

Average a class of real series under soft-DTW, and by the Euclidean mean.

The barycenter minimises the mean soft-DTW to all series of the class (Cuturi & Blondel, ICML 2017, section 3.1). A large
gamma gives a smooth average. With a small gamma it is close to an average under DTW, as sharp as the series, but there are
more local minima. So the largest gamma comes first, from the Euclidean mean, and each smaller one starts from the average
before it.
"""

import time

import matplotlib.pyplot as plt
import pictures
import real_series
import torch

import torchsoftdtw

# %%
# The picture
# -----------


def draw(series, averages, title, path):
    """One panel an average, over the series that it averages."""
    figure, axes = plt.subplots(1, len(averages), figsize=(3.6 * len(averages), 3.4), sharey=True, layout="constrained")
    for axis, (name, average) in zip(axes, averages.items(), strict=True):
        axis.plot(series[:, :, 0].T.cpu(), color="0.35", lw=0.6, alpha=0.35)
        axis.plot(average[:, 0].cpu(), color="#3c7dc4" if name == "Euclidean mean" else "#d1495b", lw=2.2)
        axis.set_title(name, fontsize=11)
        pictures.frame(axis, 0, series.shape[1] - 1)
    pictures.save(figure, title, path)


# %%
# All of it
# ---------
# `barycenter` finds the average, one for each gamma.


def parse_arguments():
    parser = real_series.parser_of(__doc__, "barycenter.png", dataset="trace")
    parser.add_argument("--label", type=int, help="the class to average; by default the first one")
    parser.add_argument("--gammas", type=float, nargs="+", default=[10.0, 1.0, 0.1], help="from large to small")
    parser.add_argument("--steps", type=int, default=100, help="L-BFGS iterations for each gamma")
    return parser.parse_args()


def main():
    options = parse_arguments()
    torch.manual_seed(0)
    train_series, labels, _, _ = real_series.load(options.dataset)
    label = labels.min() if options.label is None else options.label
    series = train_series[torch.from_numpy(labels == label)].to(options.device)
    if not len(series):
        raise SystemExit(f"--label: {options.dataset} has the classes {sorted(set(labels.tolist()))}, not {label}")
    print(real_series.DATASETS[options.dataset])
    print(f"class {label}: {len(series)} series of length {series.shape[1]}; {options.device}")

    start = time.perf_counter()
    averages, lines = {"Euclidean mean": series.mean(0)}, []
    for gamma in options.gammas:
        start_from = list(averages.values())[-1]
        found = torchsoftdtw.barycenter(series, gamma=gamma, init=start_from, max_iter=options.steps)
        averages[f"soft-DTW, gamma {gamma:g}"] = found.series
        lines.append(f"{gamma:<8g}{found.history[0].item():>18.3f}{found.history[-1].item():>18.3f}")
    print(f"\nmean soft-DTW to the {len(series)} series, after {time.perf_counter() - start:.0f} s of fitting")
    print(f"{'gamma':<8}{'at its start':>18}{'barycenter':>18}")
    print("\n".join(lines))
    draw(series, averages, f"{options.dataset}, class {label}: averages of {len(series)} series", options.output)
    print(f"\naverages drawn in {options.output}")


if __name__ == "__main__":
    main()
