"""What people do with an elastic distance, by this package, tslearn and aeon behind one face.

Series come as float64 NumPy arrays (P, L, D); `prepared` gives them the form that a library wants, outside of what is
timed. Each library has the threads that it is made with. Answers are NumPy arrays. NotImplementedError: it has no such
thing.
"""

from typing import NamedTuple

import numpy as np
import torch

import torchsoftdtw
from torchsoftdtw import estimators

ROUNDS = 10  # of k-means, and steps of the averages in each
STEPS = {"dtw": 30, "soft_dtw": 50}  # of averages, at the most


class Measure(NamedTuple):
    """name: "dtw", whose values are sums of squares without a root here, or "soft_dtw", with its gamma."""

    name: str
    gamma: float | None = None
    bandwidth: int | None = None

    def __str__(self):
        parts = [self.name.replace("_", "-")]
        parts += [] if self.gamma is None else [f"gamma {self.gamma:g}"]
        parts += [] if self.bandwidth is None else [f"radius {self.bandwidth}"]
        return ", ".join(parts)


class Ours:
    name = "torchsoftdtw"

    def __init__(self, dtype, device):
        self.dtype, self.device = dtype, device

    def prepared(self, series):
        return torch.from_numpy(series).to(self.device, self.dtype)

    def all_pairs(self, x, y, measure):
        options = {} if measure.gamma is None else {"gamma": measure.gamma}
        return torchsoftdtw.cdist(x, y, distance=measure.name, bandwidth=measure.bandwidth, **options).cpu().numpy()

    def neighbors(self, train, classes, test, measure):
        model = estimators.SoftDTWKNeighborsClassifier(n_neighbors=1, **self._options(measure))
        return model.fit(train, classes).predict(test).cpu().numpy()

    def nearest_centroid(self, train, classes, test, measure):
        steps = {"barycenter_steps": STEPS[measure.name]}
        model = estimators.SoftDTWNearestCentroid(**steps, **self._options(measure))
        return model.fit(train, classes).predict(test).cpu().numpy()

    def clusters(self, series, count, seed, measure):
        rounds = {"max_iter": ROUNDS, "barycenter_steps": ROUNDS}
        model = estimators.SoftDTWKMeans(count, random_state=seed, **rounds, **self._options(measure))
        return model.fit(series).labels_.cpu().numpy()

    def average(self, series, measure):
        options = {"method": "dba"} if measure.name == "dtw" else {"method": "soft", "gamma": measure.gamma}
        steps = STEPS[measure.name]
        return torchsoftdtw.barycenter(series, max_iter=steps, **options).series.cpu().numpy()

    @staticmethod
    def _options(measure):
        gamma = {} if measure.gamma is None else {"gamma": measure.gamma}
        return {"distance": measure.name, "bandwidth": measure.bandwidth, **gamma}


class Tslearn:
    name = "tslearn"

    def __init__(self, threads):
        import tslearn.metrics  # noqa: F401

        self.jobs = {"n_jobs": threads}

    def prepared(self, series):
        return series

    def all_pairs(self, x, y, measure):
        from tslearn.metrics import cdist_dtw, cdist_soft_dtw

        if measure.name == "soft_dtw":
            return cdist_soft_dtw(x, y, gamma=measure.gamma, **self.jobs)
        return cdist_dtw(x, y, **self._band(measure), **self.jobs) ** 2

    def neighbors(self, train, classes, test, measure):
        from tslearn.neighbors import KNeighborsTimeSeriesClassifier

        model = KNeighborsTimeSeriesClassifier(1, metric="dtw", metric_params=self._band(measure), **self.jobs)
        return model.fit(train, classes).predict(test)

    def nearest_centroid(self, train, classes, test, measure):
        return nearest_of_averages(self, train, classes, test, measure)

    def clusters(self, series, count, seed, measure):
        from tslearn.clustering import TimeSeriesKMeans

        rounds = {"max_iter": ROUNDS, "max_iter_barycenter": ROUNDS, "n_init": 1, "random_state": seed}
        soft = {"metric": "softdtw", "metric_params": {"gamma": measure.gamma}}
        options = soft if measure.name == "soft_dtw" else {"metric": "dtw"}
        return TimeSeriesKMeans(count, **rounds, **options, **self.jobs).fit_predict(series)

    def average(self, series, measure):
        from tslearn.barycenters import dtw_barycenter_averaging, softdtw_barycenter

        steps = STEPS[measure.name]
        if measure.name == "soft_dtw":
            return softdtw_barycenter(series, gamma=measure.gamma, max_iter=steps, **self.jobs)
        return dtw_barycenter_averaging(series, max_iter=steps, **self.jobs)

    @staticmethod
    def _band(measure):
        if measure.bandwidth is None:
            return {}
        return {"global_constraint": "sakoe_chiba", "sakoe_chiba_radius": measure.bandwidth}


class Aeon:
    name = "aeon"

    def __init__(self, threads):
        import aeon.distances  # noqa: F401

        self.jobs = {"n_jobs": threads}

    def prepared(self, series):
        return np.ascontiguousarray(series.transpose(0, 2, 1))

    def all_pairs(self, x, y, measure):
        from aeon.distances import dtw_pairwise_distance, soft_dtw_pairwise_distance

        if measure.name == "soft_dtw":
            return soft_dtw_pairwise_distance(x, y, gamma=measure.gamma, **self.jobs)
        return dtw_pairwise_distance(x, y, **self._band(x, measure), **self.jobs)

    def neighbors(self, train, classes, test, measure):
        from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier

        model = KNeighborsTimeSeriesClassifier("dtw", self._band(train, measure), n_neighbors=1, **self.jobs)
        return model.fit(train, classes).predict(test)

    def nearest_centroid(self, train, classes, test, measure):
        return nearest_of_averages(self, train, classes, test, measure)

    def clusters(self, series, count, seed, measure):
        from aeon.clustering import TimeSeriesKMeans

        rounds = {"max_iter": ROUNDS, "average_params": {"max_iters": ROUNDS}, "n_init": 1, "random_state": seed}
        soft = {"distance_params": {"gamma": measure.gamma}} if measure.name == "soft_dtw" else {}
        model = TimeSeriesKMeans(count, "kmeans++", measure.name, averaging_method="ba", **rounds, **soft, **self.jobs)
        return model.fit_predict(series)

    def average(self, series, measure):
        from aeon.clustering.averaging import petitjean_barycenter_average

        if measure.name == "soft_dtw":
            raise NotImplementedError("aeon has no average by the gradients of soft-DTW")
        return petitjean_barycenter_average(series, max_iters=STEPS["dtw"], **self.jobs).T

    @staticmethod
    def _band(series, measure):
        """A window is a part of the length; of half a step more, so that rounding does not take one away."""
        return {} if measure.bandwidth is None else {"window": (measure.bandwidth + 0.5) / series.shape[2]}


def nearest_of_averages(library, train, classes, test, measure):
    """What a library without such a classifier makes of its averages and distances."""
    names = np.unique(classes)
    averages = np.stack([library.average(train[classes == name], measure) for name in names])
    return names[library.all_pairs(test, library.prepared(averages), measure).argmin(1)]


def installed(device, threads):
    """(libraries, why others take no part)."""
    found = [Ours(torch.float32, device), Ours(torch.float64, device)]
    missing = {}
    for library, jobs in ((Tslearn, {1, threads}), (Aeon, {threads})):
        try:
            found += [library(count) for count in sorted(jobs)]
        except ImportError:
            missing[library.name] = "not installed"
    return found, missing
