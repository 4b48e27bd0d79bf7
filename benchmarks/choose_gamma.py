"""What gamma to recommend: what networks, averages and classifiers do with each, on real series of unit variance.

    forecasts   held-out DTW of a network trained with the loss, as a part of that of one trained with MSE (forecasting.py)
    averages    mean DTW of held-out series to the average of the training series of their class, as a multiple of
                the smallest of all gammas and both losses
    classes     accuracy of the nearest centroid on held-out series

Soft-DTW and the divergence each. Every figure is on series that nothing was fitted to.
"""

import argparse
import statistics

import common
import data_kinds
import forecasting
import torch

import torchsoftdtw

GAMMAS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
LOSSES = {"soft_dtw": torchsoftdtw.SoftDTW, "divergence": torchsoftdtw.SoftDTWDivergence}
METHODS = {"soft_dtw": "soft", "divergence": "divergence"}


def forecasts(gammas, seeds, steps):
    """Rows: held-out DTW of networks trained with either loss, relative to MSE; one a seed."""
    for name in forecasting.EVERY:
        train, test = forecasting.series_of(name)
        for seed in range(seeds):

            def held_out(loss, train=train, test=test, seed=seed):
                return forecasting.held_out_dtw(forecasting.fit(seed, train, loss, steps)[0], test)

            by_mse = held_out(torch.nn.functional.mse_loss)
            for kind, loss in LOSSES.items():
                for gamma in gammas:
                    ratio = held_out(loss(gamma)) / by_mse
                    yield {"task": "forecasts", "data": name, "seed": seed, "loss": kind, "gamma": gamma, "figure": ratio}


def centroids(gammas, sets):
    """Rows: of averages of classes, how far held-out series of a class are from its own, and whose is the nearest."""
    from torchsoftdtw import estimators  # which need scikit-learn

    for name in sets:
        split = data_kinds.real_splits()[name]
        for kind in LOSSES:
            for gamma in gammas:
                model = estimators.SoftDTWNearestCentroid(distance=kind, gamma=gamma).fit(split.train, split.train_classes)
                own = model.centroids_[split.test_classes]
                row = {"data": name, "loss": kind, "gamma": gamma}
                distance = torchsoftdtw.dtw(own, split.test).mean().item()
                yield row | {"task": "averages", "figure": distance}
                yield row | {"task": "classes", "figure": model.score(split.test, split.test_classes)}


def relative_to_best(rows):
    """The rows, with distances of averages as parts of the smallest of the data set."""
    best = {}
    for row in rows:
        if row["task"] == "averages":
            best[row["data"]] = min(row["figure"], best.get(row["data"], row["figure"]))
    return [row | {"figure": row["figure"] / best[row["data"]]} if row["task"] == "averages" else row for row in rows]


def show(rows, gammas):
    """Means over data sets and seeds, and the worst; a column for each gamma."""
    lines = []
    for task, worst in (("forecasts", max), ("averages", max), ("classes", min)):
        for kind in LOSSES:
            for label, statistic in (("mean", statistics.fmean), ("worst", worst)):
                cells = [
                    statistic([r["figure"] for r in rows if (r["task"], r["loss"], r["gamma"]) == (task, kind, gamma)])
                    for gamma in gammas
                ]
                lines.append([task, kind, label, *(f"{cell:.3f}" for cell in cells)])
    return common.markdown_table(("task", "loss", "", *(f"{gamma:g}" for gamma in gammas)), lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gammas", type=float, nargs="+", default=GAMMAS)
    parser.add_argument("--sets", nargs="+", choices=tuple(data_kinds.real_splits()), help="of classes; all by default")
    parser.add_argument("--seeds", type=int, default=3, help="networks for each forecast")
    parser.add_argument("--steps", type=int, default=forecasting.STEPS, help="of training")
    parser.add_argument("--device", choices=("cpu",), default="cpu")
    parser.add_argument("--commit", help="that the record names; git's by default")
    parser.add_argument("--output", help="the JSON record; by default a file in benchmarks/results")
    options = parser.parse_args()
    torch.set_num_threads(1)  # more do not help so small networks
    sets = options.sets or tuple(data_kinds.real_splits())
    rows = []
    for row in (*centroids(options.gammas, sets), *forecasts(options.gammas, options.seeds, options.steps)):
        rows.append(row)
    rows = relative_to_best(rows)
    print(show(rows, options.gammas))
    settings = {"gammas": list(options.gammas), "sets": sets, "seeds": options.seeds, "steps": options.steps}
    device = common.resolve_device(options.device)
    output = options.output or common.RESULTS / "cpu_gamma.json"
    print(f"\nrecord: {common.write_record('gamma', device, settings, rows, output, options.commit)}")


if __name__ == "__main__":
    main()
