"""What all estimators share: series of X in any form, distances and averages of them, and answers in the form of X."""

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._inputs import arguments, kinds, sets
from .._measures.average import averages
from .._pairs.task import DEFAULT_GAMMA, DISTANCES
from ..barycenter import barycenter
from ..measures import Measure
from ..pairwise import cdist

METHODS = {"dtw": "dba", "soft_dtw": "soft", "divergence": "divergence"}  # of averages
CHECKS = {"dtype": [np.float64, np.float32], "allow_nd": True}


class SeriesEstimator(BaseEstimator):
    """An estimator with the parameters distance, gamma, cost, bandwidth, warp_penalty and device."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _series(self, X):
        """(n, t, d) of a fitted estimator's X, on the device of X."""
        check_is_fitted(self)
        series = self._of_checked(X, validate_data(self, _to_check(X), reset=False, **CHECKS))
        if series.shape[2] != self._dim:
            name = type(self).__name__
            raise ValueError(
                f"X has series of {series.shape[2]} dimensions, but {name} is expecting {self._dim} dimensions"
            )
        return series

    def _series_to_fit(self, X):
        """(n, t, d), on the device of X."""
        return self._first(X, validate_data(self, _to_check(X), **CHECKS))

    def _first(self, X, checked):
        series = self._of_checked(X, checked)
        self._dim, self._is_flat = series.shape[2], checked.ndim == 2
        return series

    def _of_checked(self, X, checked):
        """(n, t, d) of X, which `checked` stands for."""
        if checked.ndim > 3 or 0 in checked.shape:
            raise ValueError(
                f"X: expected shape (n, t) or (n, t, d) without a 0 for {type(self).__name__}, got {tuple(checked.shape)}"
            )
        own_dtype = kinds.compute_dtype(X.dtype) if isinstance(X, torch.Tensor) else None
        series = sets.from_numpy(checked) if own_dtype is None else X.detach().to(own_dtype)
        return series.unsqueeze(2) if series.dim() == 2 else series

    def _distances(self, x, y, distance=None):
        """(P, Q) of series x to series y, on the device of x."""
        y = y.to(x.device)
        # Every process fits data of its own: none may wait for another.
        own = {"device": self.device, "progress": False, "distributed": False}
        return cdist(x, y, distance=distance or self.distance, **self._measure(), **own)

    def _averages(self, series, labels, start="mean"):
        """(G, t, d): those of each label, from `start`."""
        if isinstance(self.distance, Measure):
            numbers = self.gamma, self.bandwidth, self.barycenter_steps
            return averages(self.distance, series, labels, start, *numbers)
        return barycenter(
            series,
            method=METHODS[self.distance],
            labels=labels,
            init=start,
            max_iter=self.barycenter_steps,
            **{**self._measure(), "gamma": DEFAULT_GAMMA if self.gamma is None else self.gamma},
        ).series

    def _to_keep(self, X, series):
        """Series (k, t, d) in the form of the X of `fit`: (k, t) where it has no d."""
        return like(X, series.squeeze(2) if self._is_flat else series)

    def _of_kept(self, kept):
        """(k, t, d) of these."""
        series = kept if isinstance(kept, torch.Tensor) else sets.from_numpy(kept)
        return series.reshape(len(series), -1, self._dim)

    def _check_distance(self):
        if not isinstance(self.distance, Measure):
            arguments.one_of("distance", self.distance, DISTANCES)

    def _check_averages(self):
        self._check_distance()
        if self.distance == "dtw" and self.cost != "sqeuclidean":
            raise ValueError(
                "cost: expected 'sqeuclidean' for the distance 'dtw', whose averages work with no other, got "
                f"{self.cost!r}; distance='soft_dtw' with a small gamma works with every cost"
            )

    def _measure(self):
        names = ("gamma", "cost", "bandwidth", "warp_penalty")
        return {name: getattr(self, name) for name in names}


class SeriesClassifier(ClassifierMixin, SeriesEstimator):
    def _series_and_classes(self, X, y):
        """((n, t, d) on the device of X, the class of each of the n as an index of `classes_`)."""
        checked, y = validate_data(self, _to_check(X), _as_array(y), **CHECKS)
        check_classification_targets(y)
        series = self._first(X, checked)
        self.classes_, index = np.unique(y, return_inverse=True)
        return series, torch.from_numpy(index).to(series.device)

    def score(self, X, y, sample_weight=None):
        """The share of X that `predict` gives the classes y, as a float."""
        return accuracy_score(_as_array(y), _as_array(self.predict(X)), sample_weight=_as_array(sample_weight))

    def _predicted(self, X, index):
        """The classes of the indices, in the form of X where there are tensors of them."""
        if isinstance(X, torch.Tensor) and self.classes_.dtype.kind in "biuf":
            return torch.from_numpy(self.classes_).to(X.device)[index.to(X.device)]
        return self.classes_[index.cpu().numpy()]


def on_compute_device(series, device):
    return series.to(sets.device_to_compute_on(device, series))


def like(X, answer):
    """The answer as X is: a tensor on its device, or an array."""
    return answer.to(X.device) if isinstance(X, torch.Tensor) else answer.cpu().numpy()


def _to_check(X):
    """What scikit-learn has to look at: X, or for a tensor zeros of its shape, which take no memory. A series with NaN or
    infinity is an error that says which."""
    if not isinstance(X, torch.Tensor):
        if isinstance(X, np.ndarray) and X.dtype.kind == "f" and X.ndim > 1:
            _check_finite(np.isfinite(X).all(tuple(range(1, X.ndim))))
        return X
    if X.is_nested:
        raise ValueError("X: expected series of one length, got a nested tensor; cdist and barycenter take those")
    if X.is_floating_point() and X.dim() > 1:
        _check_finite(X.isfinite().flatten(1).all(1))
    return np.broadcast_to(np.complex64(0) if X.is_complex() else np.float32(0), X.shape)


def _check_finite(is_finite):
    """is_finite: of every series."""
    if not is_finite.all():
        raise ValueError(f"X: expected finite numbers, got NaN or infinity in X[{is_finite.tolist().index(False)}]")


def _as_array(y):
    return y.detach().cpu().numpy() if isinstance(y, torch.Tensor) else y
