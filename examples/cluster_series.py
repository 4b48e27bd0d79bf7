"""Cluster series: k-means
=======================

Cluster real series by k-means under DTW, soft-DTW or its divergence, and by Euclidean k-means.

The clusters are found without the classes. The adjusted Rand index says how well they agree with them: 1 where they are the
same, 0 where they agree by chance. Series of one class that run early or late stay together under DTW, and the average of a
cluster keeps their shape.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import pictures
import real_series
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from torchsoftdtw.estimators import SoftDTWKMeans

CLASSES = plt.get_cmap("tab10").colors

# %%
# The clusters
# ------------
# An estimator in the conventions of scikit-learn, once for each distance.


def fit_all(series, count, options):
    """For each distance the labels (n,) and the centres (count, t), the best of `--starts` by its own inertia."""
    shared = {"n_init": options.starts, "random_state": options.seed}
    euclidean = KMeans(count, **shared).fit(series[..., 0].cpu().numpy())
    found = {"Euclidean": (euclidean.labels_, euclidean.cluster_centers_)}
    for name in options.distances:
        start = time.perf_counter()
        rounds = {"max_iter": options.rounds, "barycenter_steps": options.steps}
        model = SoftDTWKMeans(count, distance=name, gamma=options.gamma, **rounds, **shared).fit(series)
        found[name] = model.labels_.cpu().numpy(), model.cluster_centers_[..., 0].cpu().numpy()
        print(f"{name}: {model.n_iter_} rounds in the best of {options.starts} starts, {time.perf_counter() - start:.0f} s")
    return found


# %%
# The picture
# -----------


def in_order_of_classes(labels, centers, truth):
    """The same, clusters ordered by the class that most of their series have."""
    order = sorted(range(len(centers)), key=lambda cluster: np.bincount(truth[labels == cluster], minlength=99).argmax())
    return np.argsort(order)[labels], centers[order]


def draw(series, truth, found, scores, title, path):
    """A row of panels for each distance, one a cluster: its series in the colours of their classes, and its centre."""
    rows, columns = len(found), len(np.unique(truth))
    size = (2.9 * columns, 2.1 * rows + 0.4)
    figure, axes = plt.subplots(rows, columns, figsize=size, sharex=True, sharey=True, squeeze=False, layout="constrained")
    for line, (name, (labels, centers)) in zip(axes, found.items(), strict=True):
        labels, centers = in_order_of_classes(labels, centers, truth)
        for cluster, axis in enumerate(line):
            for index in np.flatnonzero(labels == cluster):
                axis.plot(series[index, :, 0], color=CLASSES[truth[index] % 10], lw=0.6, alpha=0.4)
            axis.plot(centers[cluster], color="black", lw=1.9)
            axis.set_title(f"{(labels == cluster).sum()} series", fontsize=8.5, color="0.3")
            pictures.frame(axis, 0, series.shape[1] - 1)
            axis.label_outer()
        line[0].set_ylabel(f"{name}\nadj. Rand index {scores[name]:.2f}", fontsize=9.5)
    pictures.save(figure, title, path)


# %%
# All of it
# ---------


def parse_arguments():
    parser = real_series.parser_of(__doc__, "clusters.png", dataset="trace")
    parser.add_argument("--distances", choices=("dtw", "soft_dtw", "divergence"), nargs="+", default=["dtw", "soft_dtw"])
    parser.add_argument("--gamma", type=float, default=0.1, help="smoothing of soft_dtw and divergence")
    parser.add_argument("--starts", type=int, default=3, help="starts from other seeds; the best is kept")
    parser.add_argument("--rounds", type=int, default=10, help="of k-means, at the most")
    parser.add_argument("--steps", type=int, default=10, help="of the averages in each round")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    options = parse_arguments()
    train, train_labels, _, _ = real_series.load(options.dataset)
    series, truth = train.to(options.device), np.unique(train_labels, return_inverse=True)[1]
    count = len(np.unique(truth))
    print(real_series.DATASETS[options.dataset])
    print(f"{len(series)} series of length {series.shape[1]} in {count} classes; {options.device}")

    found = fit_all(series, count, options)
    scores = {name: adjusted_rand_score(truth, labels) for name, (labels, _) in found.items()}
    print(f"\n{'k-means by':<12}{'adjusted Rand index':>21}")
    for name, score in scores.items():
        print(f"{name:<12}{score:>21.3f}")
    title = f"{options.dataset}: {count} clusters, series in the colours of their classes"
    draw(series.cpu(), truth, found, scores, title, options.output)
    print(f"\nclusters drawn in {options.output}")


if __name__ == "__main__":
    main()
