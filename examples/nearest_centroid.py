"""Classify series: averages and k-NN
==================================

Classify real series by the average of each class under soft-DTW, by Euclidean averages, and by k-NN, the
nearest neighbours.

Where there is one average a class, a new series is compared with these few. Nearest neighbours compare it with all series
of the training set: more work, and more memory. Every accuracy is on the test series of the data set's own split.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import pictures
import real_series
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

from torchsoftdtw.estimators import SoftDTWKNeighborsClassifier, SoftDTWNearestCentroid

EUCLIDEAN, SOFT_DTW = "Euclidean", "soft-DTW"
COLOURS = {EUCLIDEAN: "#3c7dc4", SOFT_DTW: "#d1495b"}

# %%
# The classifiers
# ---------------
# Estimators in the conventions of scikit-learn: ``fit``, ``predict``, ``score``.


def accuracy(model, train, train_labels, test, test_labels):
    """(accuracy on the test series, seconds to fit, seconds to predict)."""
    start = time.perf_counter()
    model.fit(train, train_labels)
    fitted = time.perf_counter()
    score = model.score(test, test_labels)
    return score, fitted - start, time.perf_counter() - fitted


def centroids_of(model, count):
    """(classes, t) of a fitted model."""
    return np.asarray(model.centroids_ if model.centroids_.ndim == 2 else model.centroids_[..., 0].cpu()).reshape(count, -1)


# %%
# The picture
# -----------


def draw(train, labels, centroids, scores, title, path):
    """One panel a class: its training series, and its averages."""
    classes = np.unique(labels)
    figure, axes = plt.subplots(1, len(classes), figsize=(3.4 * len(classes), 3.5), sharey=True, layout="constrained")
    for number, (axis, name) in enumerate(zip(axes, classes, strict=True)):
        axis.plot(train[labels == name, :, 0].T, color="0.35", lw=0.6, alpha=0.35)
        for kind, own in centroids.items():
            axis.plot(own[number], color=COLOURS[kind], lw=2, label=f"{kind} average, accuracy {scores[kind]:.3f}")
        axis.set_title(f"class {name}: {(labels == name).sum()} series", fontsize=10)
        pictures.frame(axis, 0, train.shape[1] - 1)
    pictures.legend_below(figure, axes[0])
    pictures.save(figure, title, path)


# %%
# All of it
# ---------


def parse_arguments():
    parser = real_series.parser_of(__doc__, "nearest_centroid.png", dataset="gun_point")
    parser.add_argument("--gamma", type=float, default=0.1, help="smoothing of soft-DTW")
    parser.add_argument("--steps", type=int, default=50, help="L-BFGS iterations of the averages")
    return parser.parse_args()


def main():
    options = parse_arguments()
    train, train_labels, test, test_labels = real_series.load(options.dataset)
    print(real_series.DATASETS[options.dataset])
    print(f"{len(train)} series to average, {len(test)} to classify, in {len(set(train_labels))} classes; {options.device}")
    flat_train, flat_test = train[..., 0].numpy(), test[..., 0].numpy()
    train, test = train.to(options.device), test.to(options.device)

    euclidean = NearestCentroid()
    soft = SoftDTWNearestCentroid(distance="soft_dtw", gamma=options.gamma, barycenter_steps=options.steps)
    flat, series = (flat_train, train_labels, flat_test, test_labels), (train, train_labels, test, test_labels)
    rows = {
        f"nearest {EUCLIDEAN} average": accuracy(euclidean, *flat),
        f"nearest {SOFT_DTW} average": accuracy(soft, *series),
        "nearest neighbour, Euclidean": accuracy(KNeighborsClassifier(1), *flat),
        "nearest neighbour, DTW": accuracy(SoftDTWKNeighborsClassifier(1), *series),
    }
    print(f"\n{'':<32}{'accuracy':>10}{'to fit':>10}{'to predict':>13}")
    for name, (score, fit, predict) in rows.items():
        print(f"{name:<32}{score:>10.3f}{fit:>8.2f} s{predict:>11.2f} s")
    scores = {kind: rows[f"nearest {kind} average"][0] for kind in (EUCLIDEAN, SOFT_DTW)}
    centroids = {
        kind: centroids_of(model, len(soft.classes_)) for kind, model in ((EUCLIDEAN, euclidean), (SOFT_DTW, soft))
    }
    title = f"{options.dataset}: averages of the training series of each class"
    draw(train.cpu(), train_labels, centroids, scores, title, options.output)
    print(f"\naverages drawn in {options.output}")


if __name__ == "__main__":
    main()
