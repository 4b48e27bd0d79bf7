"""Average a class of real series under soft-DTW with a torch optimizer, beside their Euclidean mean.

The barycenter minimises the mean soft-DTW to all the series of the class (Cuturi & Blondel, ICML 2017, section 3.1). It
starts from the Euclidean mean, and L-BFGS moves it along the gradients of one batched call. The smaller gamma, the
closer to an average under DTW, which follows single series into their details and has more local minima; the larger,
the smoother.
"""

import time

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import real_series
import torch
from tqdm import tqdm

import torchsoftdtw


def mean_soft_dtw(candidate, series, gamma):
    """The mean soft-DTW of one series (N, D) to all of (P, M, D)."""
    return torchsoftdtw.soft_dtw(candidate.expand(len(series), -1, -1), series, gamma).mean()


def fit(series, gamma, steps):
    """The barycenter of (P, M, D), with the mean soft-DTW before and after."""
    barycenter = series.mean(0).requires_grad_()
    before = mean_soft_dtw(barycenter, series, gamma).item()
    optimizer = torch.optim.LBFGS([barycenter], max_iter=steps, history_size=20, line_search_fn="strong_wolfe")
    progress = tqdm(desc=f"gamma {gamma:<5g}", unit="evaluation", mininterval=0.2)

    def closure():
        optimizer.zero_grad()
        loss = mean_soft_dtw(barycenter, series, gamma)
        loss.backward()
        progress.set_postfix(loss=f"{loss.item():.4f}", refresh=False)
        progress.update()
        return loss

    optimizer.step(closure)
    progress.close()
    barycenter = barycenter.detach()
    return barycenter, before, mean_soft_dtw(barycenter, series, gamma).item()


def draw(series, averages, title, path):
    """One panel an average, over the series that it averages."""
    figure, axes = plt.subplots(1, len(averages), figsize=(3.6 * len(averages), 3.4), sharey=True, layout="constrained")
    for axis, (name, average) in zip(axes, averages.items(), strict=True):
        axis.plot(series[:, :, 0].T.cpu(), color="0.35", lw=0.6, alpha=0.35)
        axis.plot(average[:, 0].cpu(), color="#3c7dc4" if name == "Euclidean mean" else "#d1495b", lw=2.2)
        axis.set_title(name, fontsize=11)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_xlim(0, series.shape[1] - 1)
        axis.set_xlabel("step")
    figure.suptitle(title, fontsize=12)
    figure.savefig(path, dpi=110)


def parse_arguments():
    parser = real_series.parser_of(__doc__, dataset="gun_point", output="barycenter.png")
    parser.add_argument("--label", type=int, help="the class to average; by default the first one")
    parser.add_argument("--gammas", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--steps", type=int, default=100, help="L-BFGS iterations for each gamma")
    return parser.parse_args()


def main():
    options = parse_arguments()
    torch.manual_seed(0)
    train_series, labels, _, _ = real_series.load(options.dataset)
    label = labels.min() if options.label is None else options.label
    # The line search compares values that differ in their last float32 digits.
    series = train_series[torch.from_numpy(labels == label)].double().to(options.device)
    if not len(series):
        raise SystemExit(f"--label: {options.dataset} has the classes {sorted(set(labels.tolist()))}, not {label}")
    print(real_series.DATASETS[options.dataset])
    print(f"class {label}: {len(series)} series of length {series.shape[1]}; {options.device}")

    start = time.perf_counter()
    averages, lines = {"Euclidean mean": series.mean(0)}, []
    for gamma in options.gammas:
        barycenter, before, after = fit(series, gamma, options.steps)
        averages[f"soft-DTW, gamma {gamma:g}"] = barycenter
        lines.append(f"{gamma:<8g}{before:>18.3f}{after:>18.3f}")
    print(f"\nmean soft-DTW to the {len(series)} series, after {time.perf_counter() - start:.0f} s of fitting")
    print(f"{'gamma':<8}{'Euclidean mean':>18}{'barycenter':>18}")
    print("\n".join(lines))
    draw(series, averages, f"{options.dataset}, class {label}: averages of {len(series)} series", options.output)
    print(f"\naverages drawn in {options.output}")


if __name__ == "__main__":
    main()
