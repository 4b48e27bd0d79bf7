"""Estimators in the conventions of scikit-learn, for series: `pip install torchsoftdtw[sklearn]`.

X is (n, t), n series of one channel, or (n, t, d), as a NumPy array or a tensor. Results are of the same kind, on the
same device. All series have the same length; for unequal lengths use `cdist`, `nearest` and `barycenter`.
"""

import warnings
from numbers import Integral, Real
from typing import Any, Literal

import torch

try:
    from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import check_random_state, check_scalar
    from sklearn.utils.validation import check_is_fitted

    from ._estimators.base import SeriesClassifier, SeriesEstimator, like, on_compute_device
except ImportError as error:
    raise ImportError(
        "torchsoftdtw.estimators needs scikit-learn, 1.6 or newer: pip install 'torchsoftdtw[sklearn]'"
    ) from error

from ._estimators import kmeans
from ._inputs import arguments
from .neighbors import nearest
from .signatures import Cost, Distance, TensorOrArray

__all__ = ["SoftDTWKMeans", "SoftDTWKNeighborsClassifier", "SoftDTWNearestCentroid"]


class SoftDTWKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, SeriesEstimator):
    """k-means of series: k centres with a small sum of distances from all series to their nearest centre.

    A round assigns every series to its nearest centre, and then computes the averages of all clusters in one batch,
    starting from the previous centres. An empty cluster gets the series that is farthest from its centre. Centres are
    computed by `barycenter` with the method "dba", "soft" or "divergence".

    Args:
        n_clusters: k.
        distance: "dtw", "soft_dtw", "divergence" or one of `measures`, as in `cdist`. Values of "soft_dtw" may be negative,
            and inertias too. Centres of a measure minimise the soft one.
        gamma: smoothing of "soft_dtw" and "divergence"; None: 0.1. Of a measure None is 0, with 0.1 for its centres.
        cost: as in `cdist`; for "dtw" only "sqeuclidean".
        bandwidth: Sakoe-Chiba radius, or None.
        warp_penalty: cost of a step that advances in one series only.
        init: "k-means++", or centres to start from, as `cluster_centers_`. For "soft_dtw", k-means++ uses the
            divergence.
        n_init: the number of starts from different seeds; the result with the lowest inertia is kept. 1 if centres are
            given.
        max_iter: the largest number of rounds.
        tol: the fit ends when a round lowers the inertia by no more than tol times the decrease of all rounds so far.
        barycenter_steps: the largest number of steps that averages make in a round.
        device: where to compute, such as "cuda"; None: the device of X.
        random_state: as in scikit-learn.

    Attributes:
        cluster_centers_: (k, t), or (k, t, d) where X has d.
        labels_: (n,) int64, the nearest centre of every series that it was fitted to.
        inertia_: the sum of their distances.
        n_iter_: the number of rounds.

    Example:
        >>> X = torch.tensor([[0.0, 0, 1, 2], [0, 1, 2, 2], [9, 9, 5, 5], [9, 5, 5, 5]])
        >>> model = SoftDTWKMeans(n_clusters=2, random_state=0).fit(X)
        >>> model.inertia_, bool(model.labels_[0] == model.labels_[1]), bool(model.labels_[1] == model.labels_[2])
        (0.0, True, False)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        distance: Distance = "dtw",
        gamma: float | None = None,
        cost: Cost = "sqeuclidean",
        bandwidth: int | None = None,
        warp_penalty: float = 0.0,
        init: Literal["k-means++"] | TensorOrArray = "k-means++",
        n_init: int = 1,
        max_iter: int = 50,
        tol: float = 1e-4,
        barycenter_steps: int = 10,
        device: torch.device | str | int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.distance = distance
        self.gamma = gamma
        self.cost = cost
        self.bandwidth = bandwidth
        self.warp_penalty = warp_penalty
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.barycenter_steps = barycenter_steps
        self.device = device
        self.random_state = random_state

    def fit(self, X: TensorOrArray, y: Any = None) -> "SoftDTWKMeans":
        """Find the centres of X, (n, t) or (n, t, d)."""
        series = self._series_to_fit(X)
        for name in ("n_clusters", "n_init", "max_iter", "barycenter_steps"):
            check_scalar(getattr(self, name), name, Integral, min_val=1)
        check_scalar(self.tol, "tol", Real, min_val=0)
        self._check_averages()
        if len(series) < self.n_clusters:
            raise ValueError(f"n_samples={len(series)} should be >= n_clusters={self.n_clusters}.")
        random = check_random_state(self.random_state)
        series = on_compute_device(series, self.device)
        starts = [self._given_centers(series)] if not isinstance(self.init, str) else self._seeds(series, random)
        runs = (kmeans.run(series, start, self._distances, self._averages, self.max_iter, self.tol) for start in starts)
        best = min(runs, key=lambda clusters: clusters.inertia)
        found = int((best.sizes > 0).sum())
        if found < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({found}) found smaller than n_clusters ({self.n_clusters}). Possibly due to "
                "equal series in X, or to few rounds (max_iter).",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.cluster_centers_ = self._to_keep(X, best.centers)
        self.labels_ = like(X, best.labels)
        self.inertia_ = best.inertia
        self.n_iter_ = best.rounds
        self._n_features_out = self.n_clusters
        return self

    def transform(self, X: TensorOrArray) -> TensorOrArray:
        """(n, k): the distance of every series of X to every centre."""
        return like(X, self._to_centers(X))

    def predict(self, X: TensorOrArray) -> TensorOrArray:
        """(n,) int64: the nearest centre of every series of X."""
        return like(X, self._to_centers(X).min(1).indices)

    def score(self, X: TensorOrArray, y: Any = None) -> float:
        """Minus the sum of the distances of the series of X to their nearest centres."""
        return -self._to_centers(X).min(1).values.sum(dtype=torch.float64).item()

    def _to_centers(self, X):
        series = self._series(X)
        return self._distances(series, self._of_kept(self.cluster_centers_))

    def _seeds(self, series, random):
        if self.init != "k-means++":
            raise ValueError(f"init: expected 'k-means++' or centres, got {self.init!r}")

        # Soft-DTW has values below 0, and its least one is not that of equal series: no weights to draw by.
        def distances(x, y):
            return self._distances(x, y, "divergence" if self.distance == "soft_dtw" else self.distance)

        return (kmeans.seeds(series, self.n_clusters, distances, random) for _ in range(self.n_init))

    def _given_centers(self, series):
        centers = torch.as_tensor(self.init).detach().to(series)
        centers = centers.unsqueeze(2) if centers.dim() == 2 else centers
        if centers.shape != (self.n_clusters, *series.shape[1:]):
            raise ValueError(
                f"init: expected {self.n_clusters} centres of the shape of a series, {tuple(series.shape[1:])}, got "
                f"{tuple(centers.shape)}"
            )
        return centers


class SoftDTWNearestCentroid(SeriesClassifier):
    """Nearest-centroid classifier: predicts the class whose average is nearest.

    `barycenter` computes the averages of all classes in one batch, with the method "dba", "soft" or "divergence".

    Args:
        distance: "dtw", "soft_dtw", "divergence" or one of `measures`, as in `cdist`. Averages of a measure minimise
            the soft one.
        gamma: smoothing of "soft_dtw" and "divergence"; None: 0.1. Of a measure None is 0, with 0.1 for its averages.
        cost: as in `cdist`; for "dtw" only "sqeuclidean".
        bandwidth: Sakoe-Chiba radius, or None.
        warp_penalty: cost of a step that advances in one series only.
        barycenter_steps: the largest number of steps of the averages.
        device: where to compute, such as "cuda"; None: the device of X.

    Attributes:
        classes_: the classes, an array, sorted.
        centroids_: (number of classes, t), or (.., t, d) where X has d.

    Example:
        >>> X = torch.tensor([[0.0, 0, 1, 2], [0, 1, 2, 2], [9, 9, 5, 5], [9, 5, 5, 5]])
        >>> model = SoftDTWNearestCentroid().fit(X, ["up", "up", "down", "down"])
        >>> model.predict(torch.tensor([[0.0, 0, 0, 2]])).tolist()
        ['up']
    """

    def __init__(
        self,
        *,
        distance: Distance = "dtw",
        gamma: float | None = None,
        cost: Cost = "sqeuclidean",
        bandwidth: int | None = None,
        warp_penalty: float = 0.0,
        barycenter_steps: int = 50,
        device: torch.device | str | int | None = None,
    ) -> None:
        self.distance = distance
        self.gamma = gamma
        self.cost = cost
        self.bandwidth = bandwidth
        self.warp_penalty = warp_penalty
        self.barycenter_steps = barycenter_steps
        self.device = device

    def fit(self, X: TensorOrArray, y: Any) -> "SoftDTWNearestCentroid":
        """Average the series of X, (n, t) or (n, t, d), of each class in y, (n,)."""
        series, classes = self._series_and_classes(X, y)
        check_scalar(self.barycenter_steps, "barycenter_steps", Integral, min_val=1)
        self._check_averages()
        series = on_compute_device(series, self.device)
        self.centroids_ = self._to_keep(X, self._averages(series, classes.to(series.device)))
        return self

    def predict(self, X: TensorOrArray) -> TensorOrArray:
        """(n,): the class of every series of X."""
        series = self._series(X)
        return self._predicted(X, self._distances(series, self._of_kept(self.centroids_)).min(1).indices)


class SoftDTWKNeighborsClassifier(SeriesClassifier):
    """k-NN classifier: predicts the class that most of the nearest neighbours have.

    Args:
        n_neighbors: how many neighbours have a vote.
        weights: "uniform", or "distance": votes are weighted by 1 / distance; if some distances are 0, only those
            count. Not for "soft_dtw", whose values may be negative.
        distance: "dtw", "soft_dtw", "divergence" or one of `measures`, as in `cdist`.
        gamma: smoothing of "soft_dtw" and "divergence"; None: 0.1, and 0 of a measure.
        cost: as in `cdist`.
        bandwidth: Sakoe-Chiba radius, or None.
        warp_penalty: cost of a step that advances in one series only.
        device: where to compute, such as "cuda"; None: the device of X.

    Attributes:
        classes_: the classes, an array, sorted.
        n_samples_fit_: the number of training series.

    Example:
        >>> X = torch.tensor([[0.0, 0, 1, 2], [0, 1, 2, 2], [9, 9, 5, 5], [9, 5, 5, 5]])
        >>> model = SoftDTWKNeighborsClassifier(n_neighbors=1).fit(X, torch.tensor([3, 3, 7, 7]))
        >>> model.predict(torch.tensor([[0.0, 0, 0, 2]]))
        tensor([3])
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Literal["uniform", "distance"] = "uniform",
        distance: Distance = "dtw",
        gamma: float | None = None,
        cost: Cost = "sqeuclidean",
        bandwidth: int | None = None,
        warp_penalty: float = 0.0,
        device: torch.device | str | int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.distance = distance
        self.gamma = gamma
        self.cost = cost
        self.bandwidth = bandwidth
        self.warp_penalty = warp_penalty
        self.device = device

    def fit(self, X: TensorOrArray, y: Any) -> "SoftDTWKNeighborsClassifier":
        """Keep the series of X, (n, t) or (n, t, d), and their classes y, (n,)."""
        series, classes = self._series_and_classes(X, y)
        check_scalar(self.n_neighbors, "n_neighbors", Integral, min_val=1)
        arguments.one_of("weights", self.weights, ("uniform", "distance"))
        if self.weights == "distance" and self.distance == "soft_dtw":
            raise ValueError(
                "weights: expected 'uniform' for the distance 'soft_dtw', whose values may be negative; take 'divergence'"
            )
        self._check_distance()
        self._neighbors, self._class_of = series, classes
        self._form = torch.empty(0, device=X.device) if isinstance(X, torch.Tensor) else None
        self.n_samples_fit_ = len(series)
        return self

    def kneighbors(
        self, X: TensorOrArray = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> TensorOrArray:
        """(distances, indices), both (n, k), of the nearest series of those fitted, or the indices alone.

        X None: of the fitted series themselves, none of which counts as its own neighbour. n_neighbors None: that of
        the estimator.
        """
        check_is_fitted(self)
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        check_scalar(k, "n_neighbors", Integral, min_val=1)
        form = self._form if X is None else X
        series = self._neighbors if X is None else self._series(X)
        distances, indices = (like(form, part) for part in self._nearest(series, X is None, k))
        return (distances, indices) if return_distance else indices

    def predict(self, X: TensorOrArray) -> TensorOrArray:
        """(n,): the class of every series of X; if votes are equal, the first in `classes_`."""
        return self._predicted(X, self._votes(X).argmax(1))

    def predict_proba(self, X: TensorOrArray) -> TensorOrArray:
        """(n, number of classes): each class's share of the votes."""
        return like(X, self._votes(X))

    def _votes(self, X):
        series = self._series(X)
        distances, indices = self._nearest(series, False, self.n_neighbors)
        weights = torch.ones_like(distances, dtype=torch.float64)
        if self.weights == "distance":
            distances = distances.double().clamp(min=0)  # a divergence may lie a little below
            is_equal = distances == 0
            weights = torch.where(is_equal.any(1, keepdim=True), is_equal.double(), 1 / distances)
        votes = weights.new_zeros((len(series), len(self.classes_)))
        votes.scatter_add_(1, self._class_of.to(indices.device)[indices], weights)
        return votes / votes.sum(1, keepdim=True)

    def _nearest(self, series, is_itself, k):
        """(distances, indices), on the device of the series."""
        if k > self.n_samples_fit_ - is_itself:
            raise ValueError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = "
                f"{self.n_samples_fit_ - is_itself}"
            )
        among = None if is_itself else self._neighbors.to(series.device)
        own = {"device": self.device, "progress": False}
        indices, distances = nearest(series, among, k, distance=self.distance, **self._measure(), **own)
        return distances, indices
