"""Estimators keep scikit-learn's conventions, and find what plain loops over `cdist` and `barycenter` find."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from cases import DEVICES, normal

from torchsoftdtw import barycenter, cdist

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from torchsoftdtw.estimators import SoftDTWKMeans, SoftDTWKNeighborsClassifier, SoftDTWNearestCentroid

pytestmark = pytest.mark.usefixtures("one_thread")
ALL = (SoftDTWKMeans, SoftDTWNearestCentroid, SoftDTWKNeighborsClassifier)
METHODS = {"dtw": "dba", "soft_dtw": "soft", "divergence": "divergence"}
DISTANCES = tuple(METHODS)
CENTERS_OF = {SoftDTWKMeans: "cluster_centers_", SoftDTWNearestCentroid: "centroids_"}


def shapes(count=8, length=15, dim=1, seed=0, classes=3):
    """(X (n, t, d) float64, y (n,)): some series of each of a few shapes, shifted and noisy, in a random order."""
    random = np.random.default_rng(seed)
    step = np.linspace(0, 2 * np.pi, length)
    y = random.permutation(np.repeat(np.arange(classes), count))
    phase = random.uniform(-0.2, 0.2, (len(y), 1, 1))
    channel = np.arange(dim)
    X = 2 * np.sin((1 + y[:, None, None]) * (step[None, :, None] + phase) + channel)
    return X + 0.1 * random.standard_normal(X.shape), y


def small(estimator, **options):
    """It has as many clusters as `shapes` has, where it has any."""
    own = {"n_clusters": 3, "random_state": 0} if estimator is SoftDTWKMeans else {}
    return estimator(**own, **options)


def is_same_grouping(labels, y):
    return len({*zip(labels.tolist(), y.tolist(), strict=True)}) == len({*y.tolist()}) == len({*labels.tolist()})


# Not one check is expected to fail.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        SoftDTWKMeans(),
        SoftDTWKMeans(distance="divergence", barycenter_steps=2),
        SoftDTWNearestCentroid(),
        SoftDTWKNeighborsClassifier(),
    ]
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_package_does_without_scikit_learn_and_the_module_names_the_extra():
    code = """
import sys
import torchsoftdtw
assert "sklearn" not in sys.modules and not hasattr(torchsoftdtw, "estimators")
sys.modules["sklearn"] = None
try:
    import torchsoftdtw.estimators
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'torchsoftdtw[sklearn]'" in done.stdout, done.stderr


@pytest.mark.parametrize("distance", DISTANCES)
def test_kmeans_finds_shapes_and_says_what_cdist_says(distance):
    X, y = shapes()
    model = SoftDTWKMeans(3, distance=distance, gamma=0.1, n_init=3, random_state=0).fit(X)
    assert is_same_grouping(model.labels_, y)
    to_centers = cdist(X, model.cluster_centers_, distance=distance, gamma=0.1)
    np.testing.assert_array_equal(model.transform(X), to_centers)
    np.testing.assert_array_equal(model.labels_, to_centers.argmin(1))
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.inertia_, to_centers.min(1).sum(), rtol=1e-12)
    np.testing.assert_allclose(model.score(X), -model.inertia_, rtol=1e-12)
    assert model.cluster_centers_.shape == (3, 15, 1) and 1 <= model.n_iter_ <= 50


@pytest.mark.parametrize("distance", DISTANCES)
def test_kmeans_is_a_plain_loop_of_assignments_and_averages(distance):
    X, _ = shapes(dim=2, seed=1)
    options = {"gamma": 0.5, "bandwidth": 4, "warp_penalty": 0.1}
    centers = X[[0, 1, 2]]
    inertias = []
    for _ in range(3):
        labels = cdist(X, centers, distance=distance, **options).argmin(1)
        assert len({*labels.tolist()}) == 3
        averages = [
            barycenter(X[labels == k], init=centers[k], method=METHODS[distance], max_iter=4, **options).series
            for k in range(3)
        ]
        centers = np.stack(averages)
        inertias.append(cdist(X, centers, distance=distance, **options).min(1).sum())
    for rounds in (1, 2, 3):
        model = SoftDTWKMeans(
            3, distance=distance, init=X[[0, 1, 2]], max_iter=rounds, tol=0, barycenter_steps=4, **options
        ).fit(X)
        # Rounds that lower it no more are not taken. L-BFGS sums in another order in a batch, which its steps make larger.
        np.testing.assert_allclose(model.inertia_, min(inertias[:rounds]), rtol=1e-9 if distance == "dtw" else 1e-4)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")  # after one round
@pytest.mark.parametrize("distance", DISTANCES)
def test_more_rounds_never_have_a_larger_inertia(distance):
    X, _ = shapes(seed=3)
    start = X[:3]
    inertias = [
        SoftDTWKMeans(3, distance=distance, init=start, max_iter=rounds, tol=0, barycenter_steps=3).fit(X).inertia_
        for rounds in (1, 2, 4)
    ]
    assert (np.diff(inertias) <= 0).all(), inertias


@pytest.mark.parametrize("distance", DISTANCES)
def test_tol_ends_the_rounds_where_they_gain_little(distance):
    X, _ = shapes(count=12, seed=3)
    X = X + normal(*X.shape, seed=1).numpy()
    options = {"distance": distance, "init": X[:3], "barycenter_steps": 2}
    inertias = [SoftDTWKMeans(3, max_iter=rounds, tol=0, **options).fit(X).inertia_ for rounds in range(1, 7)]
    start = cdist(X, X[:3], distance=distance).min(1).sum()
    gains = -np.diff([start, *inertias])
    little = gains <= 0.3 * gains.cumsum()
    assert little.any()
    model = SoftDTWKMeans(3, tol=0.3, **options).fit(X)
    assert model.n_iter_ == 1 + little.argmax() and model.inertia_ == inertias[little.argmax()]


def test_seeds_repeat_and_more_starts_are_no_worse():
    X, _ = shapes(classes=5, seed=4)
    alone = [SoftDTWKMeans(5, random_state=seed).fit(X) for seed in (0, 0, 1, 2, 3)]
    np.testing.assert_array_equal(alone[0].cluster_centers_, alone[1].cluster_centers_)
    assert len({model.inertia_ for model in alone}) > 1  # or there would be nothing to choose from
    random = np.random.RandomState(0)
    each = [SoftDTWKMeans(5, random_state=random).fit(X).inertia_ for _ in range(4)]
    assert SoftDTWKMeans(5, random_state=0, n_init=4).fit(X).inertia_ == min(each)


def test_seeds_are_series_far_from_each_other():
    near = np.zeros((30, 5)) + np.linspace(0, 0.01, 30)[:, None]
    X = np.concatenate([near, near[:1] + 50, near[:1] - 50])
    for seed in range(5):
        for distance in DISTANCES:
            model = SoftDTWKMeans(3, distance=distance, max_iter=1, random_state=seed).fit(X)
            assert len({*model.labels_[[0, 30, 31]].tolist()}) == 3


@pytest.mark.parametrize("distance", DISTANCES)
def test_an_empty_cluster_gets_the_farthest_series(distance):
    X = np.zeros((9, 6)) + np.r_[0.0, 0.1, 0.2, 5.0, 5.1, 5.2, 40.0, 40.1, 90.0][:, None]
    start = np.zeros((4, 6)) + np.r_[0.0, 5.0, 40.0, 1e4][:, None]  # the last one has no series
    model = SoftDTWKMeans(4, distance=distance, gamma=0.01, init=start).fit(X)
    assert is_same_grouping(model.labels_, np.r_[0, 0, 0, 1, 1, 1, 2, 2, 3])
    assert model.labels_[-1] == 3


def test_fewer_different_series_than_clusters_are_warned_of():
    X = np.repeat(np.eye(2, 6), 5, 0)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\) found smaller than n_clusters \(3\)"):
        model = SoftDTWKMeans(3, random_state=0).fit(X)
    assert model.inertia_ == 0


@pytest.mark.parametrize("distance", DISTANCES)
def test_centroids_are_the_averages_of_classes(distance):
    X, y = shapes(dim=2)
    names = np.array(["c", "a", "b"])[y]
    model = SoftDTWNearestCentroid(distance=distance, gamma=0.1).fit(X, names)
    assert model.classes_.tolist() == ["a", "b", "c"]
    for name, centroid in zip(model.classes_, model.centroids_, strict=True):
        alone = barycenter(X[names == name], gamma=0.1, method=METHODS[distance]).series
        np.testing.assert_allclose(centroid, alone, atol=1e-10 if distance == "dtw" else 1e-2)
    others, true = shapes(dim=2, seed=7)
    nearest = cdist(others, model.centroids_, distance=distance, gamma=0.1).argmin(1)
    np.testing.assert_array_equal(model.predict(others), model.classes_[nearest])
    assert model.score(others, np.array(["c", "a", "b"])[true]) > 0.9


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_neighbours_are_those_of_scikit_learn_with_the_matrix(distance, weights):
    if (distance, weights) == ("soft_dtw", "distance"):
        pytest.skip("values may be negative")
    X, y = shapes(dim=2, seed=2)
    X = X + 1.5 * normal(*X.shape, seed=5).numpy()  # so that classes mix
    others, true = shapes(dim=2, seed=9)
    ours = SoftDTWKNeighborsClassifier(4, weights=weights, distance=distance, gamma=0.2).fit(X, y)
    theirs = KNeighborsClassifier(4, weights=weights, metric="precomputed")
    matrix = cdist(X, distance=distance, gamma=0.2)
    across = cdist(others, X, distance=distance, gamma=0.2)
    if distance == "soft_dtw":  # theirs have to be distances; which are near is the same
        lowest = min(matrix.min(), across.min())
        matrix, across = matrix - lowest, across - lowest
    theirs.fit(matrix, y)
    np.testing.assert_allclose(ours.predict_proba(others), theirs.predict_proba(across), rtol=1e-9)
    np.testing.assert_array_equal(ours.predict(others), theirs.predict(across))
    np.testing.assert_array_equal(ours.kneighbors(others)[1], theirs.kneighbors(across)[1])
    np.testing.assert_array_equal(ours.kneighbors(None, 2, False), theirs.kneighbors(None, 2, False))
    assert ours.score(others, true) == theirs.score(across, true)


def test_equal_series_alone_have_a_vote_by_distance():
    X = np.array([[0.0, 0, 0], [0, 0, 1], [0, 0, 1.1]])
    model = SoftDTWKNeighborsClassifier(3, weights="distance").fit(X, [0, 1, 1])
    assert model.predict_proba(X[:1]).tolist() == [[1.0, 0.0]] and model.predict(X[:1] + 0.9).tolist() == [1]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("estimator", ALL)
def test_tensors_make_tensors_of_what_arrays_make(estimator, dtype, device):
    X, y = shapes(dim=2)
    as_tensor = torch.from_numpy(X).to(device, dtype).requires_grad_()
    array, tensor = small(estimator).fit(X, y), small(estimator).fit(as_tensor, torch.from_numpy(y).to(device))
    found = tensor.predict(as_tensor)
    assert found.device == as_tensor.device and found.dtype == torch.int64
    np.testing.assert_array_equal(found.cpu(), array.predict(X))
    if estimator is SoftDTWKMeans:
        assert tensor.labels_.device == tensor.transform(as_tensor).device == as_tensor.device
        assert tensor.score(as_tensor) == pytest.approx(array.score(X), rel=1e-4)
        torch.testing.assert_close(tensor.fit_predict(as_tensor), found)
    else:
        assert tensor.score(as_tensor, torch.from_numpy(y).to(device)) == array.score(X, y)
    if estimator in CENTERS_OF:
        centers = getattr(tensor, CENTERS_OF[estimator])
        assert centers.device == as_tensor.device and centers.dtype == dtype and not centers.requires_grad
        np.testing.assert_allclose(centers.cpu(), getattr(array, CENTERS_OF[estimator]), atol=1e-3)
    # Fitted to the one kind, asked with the other.
    assert isinstance(tensor.predict(X), np.ndarray) and isinstance(array.predict(as_tensor), torch.Tensor)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("estimator", ALL)
def test_device_says_where_to_compute_and_not_where_answers_are(estimator, device):
    X, y = shapes()
    here, there = small(estimator).fit(X, y), small(estimator, device=device).fit(X, y)
    np.testing.assert_array_equal(here.predict(X), there.predict(X))
    assert there.predict(torch.from_numpy(X)).device.type == "cpu"


def test_neighbours_of_tensors_are_tensors():
    X, y = shapes()
    X = torch.from_numpy(X)
    model = SoftDTWKNeighborsClassifier(2).fit(X, torch.from_numpy(y) > 0)
    distances, indices = model.kneighbors()
    assert distances.shape == indices.shape == (len(X), 2) and indices.dtype == torch.int64
    assert (indices != torch.arange(len(X)).unsqueeze(1)).all()
    assert model.predict(X).dtype == torch.bool and isinstance(model.predict_proba(X), torch.Tensor)
    names = model.fit(X, ["a" if label else "b" for label in y]).predict(X)
    assert isinstance(names, np.ndarray) and {*names} == {"a", "b"}  # of which there are no tensors


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("estimator", ALL)
def test_two_dimensions_are_series_of_one_channel(estimator, kind):
    X, y = shapes()
    flat, full = small(estimator).fit(kind(X[:, :, 0]), y), small(estimator).fit(kind(X), y)
    np.testing.assert_array_equal(flat.predict(kind(X[:, :, 0])), full.predict(kind(X)))
    np.testing.assert_array_equal(flat.predict(kind(X)), full.predict(kind(X[:, :, 0])))
    if estimator in CENTERS_OF:
        flat, full = (getattr(model, CENTERS_OF[estimator]) for model in (flat, full))
        assert tuple(flat.shape) == (3, 15) and tuple(full.shape) == (3, 15, 1)
        np.testing.assert_array_equal(flat, full[:, :, 0])


def absolute(x, y):
    return (x.unsqueeze(2) - y.unsqueeze(1)).abs().sum(3)


@pytest.mark.parametrize("estimator", ALL)
def test_clones_and_pickles_do_the_same(estimator):
    X, y = shapes()
    model = small(estimator, distance="soft_dtw", gamma=0.3, cost=absolute, bandwidth=5, warp_penalty=0.1).fit(X, y)
    other = clone(model)
    assert other.get_params() == model.get_params() and not hasattr(other, "n_features_in_")
    expected = model.predict(X)
    for again in (other.fit(X, y), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(X), expected)


def test_pipelines_and_searches_take_them():
    X, y = shapes(count=9)
    flat = X[:, :, 0]
    pipeline = make_pipeline(StandardScaler(), SoftDTWKMeans(3, random_state=0), SoftDTWKNeighborsClassifier(1))
    assert pipeline.fit(flat, y).score(flat, y) > 0.9
    assert pipeline[:-1].get_feature_names_out().tolist() == [f"softdtwkmeans{k}" for k in range(3)]
    assert cross_val_score(SoftDTWNearestCentroid(), X, y, cv=3).mean() > 0.8
    search = GridSearchCV(SoftDTWKNeighborsClassifier(), {"bandwidth": [None, 3], "n_neighbors": [1, 3]}, cv=3)
    assert search.fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("estimator", ALL)
def test_errors_are_those_of_scikit_learn(estimator, kind):
    X, y = shapes()
    model = small(estimator)
    with pytest.raises(NotFittedError):
        model.predict(kind(X))
    for bad in (np.nan, np.inf):
        wrong = X.copy()
        wrong[3, 2] = bad
        with pytest.raises(ValueError, match=r"NaN or infinity in X\[3\]"):
            model.fit(kind(wrong), y)
        with pytest.raises(ValueError, match=r"NaN or infinity in X\[3\]"):
            clone(model).fit(kind(X), y).predict(kind(wrong))
    for wrong, message in (
        (X[0, :, 0], "Expected 2D array, got 1D array"),
        (X[None], r"expected shape \(n, t\) or \(n, t, d\)"),
        (X[:, :, :0], "without a 0"),
        (X[:0], "0 sample"),
        (X + 1j, "Complex data not supported"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(kind(wrong), y[: len(wrong)])
    model.fit(kind(X), y)
    with pytest.raises(ValueError, match="15 features"):
        model.predict(kind(X[:, 1:]))
    with pytest.raises(ValueError, match="expecting 1 dimensions"):
        model.predict(kind(np.concatenate([X, X], 2)))
    if estimator is not SoftDTWKMeans:
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.fit(kind(X), y[1:])
        with pytest.raises(ValueError, match="Unknown label type"):
            model.fit(kind(X), y + 0.5)


@pytest.mark.parametrize(
    "estimator, options, message",
    [
        *((estimator, {"distance": "euclidean"}, "distance: expected 'dtw', 'soft_dtw' or") for estimator in ALL),
        *((estimator, {"cost": "euclidean"}, "cost: expected 'sqeuclidean' for") for estimator in CENTERS_OF),
        (SoftDTWKMeans, {"n_clusters": 0}, "n_clusters == 0, must be >= 1"),
        (SoftDTWKMeans, {"n_clusters": 25}, "n_samples=24 should be >= n_clusters=25"),
        (SoftDTWKMeans, {"tol": -1.0}, "tol == -1.0, must be >= 0"),
        (SoftDTWKMeans, {"init": "random"}, r"init: expected 'k-means\+\+' or centres, got 'random'"),
        (SoftDTWKMeans, {"init": np.zeros((2, 15, 1)), "n_clusters": 3}, "init: expected 3 centres"),
        (SoftDTWKMeans, {"gamma": -1.0, "distance": "soft_dtw"}, "gamma"),
        (SoftDTWKNeighborsClassifier, {"weights": "triangle"}, "weights: expected 'uniform' or 'distance'"),
        (SoftDTWKNeighborsClassifier, {"weights": "distance", "distance": "soft_dtw"}, "weights: expected 'uniform' for"),
    ],
)
def test_wrong_parameters_are_errors_that_name_them(estimator, options, message):
    X, y = shapes()
    with pytest.raises(ValueError, match=message):
        estimator(**options).fit(X, y)


def test_more_neighbours_than_series_are_an_error():
    X, y = shapes()
    model = SoftDTWKNeighborsClassifier(25).fit(X, y)
    with pytest.raises(ValueError, match="n_neighbors = 25, n_samples_fit = 24"):
        model.predict(X)
    with pytest.raises(ValueError, match="n_neighbors = 24, n_samples_fit = 23"):
        model.kneighbors(n_neighbors=24)
