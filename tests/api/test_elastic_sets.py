"""Elastic measures as the distance of cdist, nearest and the estimators."""

import pytest
import torch
from cases import normal

from torchsoftdtw import cdist, measures, msm, nearest
from torchsoftdtw._pairs import elastic as elastic_pairs
from torchsoftdtw.estimators import SoftDTWKMeans, SoftDTWKNeighborsClassifier, SoftDTWNearestCentroid

MEASURES = [
    measures.TWED(nu=0.1),
    measures.ERP(g=0.3),
    measures.MSM(c=0.4),
    measures.EDR(),
    measures.EDR(epsilon=0.5),
    measures.LCSS(epsilon=0.5),
    measures.WDTW(g=0.1),
    measures.WDDTW(),
    measures.DTW(cost="cityblock"),
    measures.ADTW(),
    measures.DDTW(),
    measures.ShapeDTW(reach=2),
]


def pair_by_pair(measure, x, y, **options):
    return torch.stack([torch.stack([measure(a, b, **options) for b in y]) for a in x])


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_cdist_has_the_values_of_all_pairs(measure, dim):
    x, y = normal(4, 7, dim), normal(3, 9, dim, seed=1)
    for options in ({}, {"gamma": 0.1}, {"bandwidth": 2}):
        torch.testing.assert_close(cdist(x, y, distance=measure, **options), pair_by_pair(measure, x, y, **options))
    table = cdist(x, distance=measure)
    torch.testing.assert_close(table, pair_by_pair(measure, x, x))
    assert torch.equal(table, table.T)


def test_a_call_has_more_pairs_where_they_are_indices(monkeypatch):
    monkeypatch.setattr(elastic_pairs, "MOST_BYTES", 1 << 20)
    x = normal(600, 60, 1)

    def most(measure, gamma=0.0, with_gradients=False):
        own = elastic_pairs.ElasticMeasure(measure, -1, gamma, "auto", None, None)
        height, width = own.tile_shape((600, 600), x, x, True, with_gradients)
        return height * width

    assert most(measures.TWED()) > 2 * most(measures.WDDTW()) > 2 * most(measures.TWED(), with_gradients=True)
    assert most(measures.TWED()) > most(measures.TWED(), gamma=0.1)
    expected = cdist(x[:50], distance=measures.TWED())
    monkeypatch.setattr(elastic_pairs, "MOST_BYTES", 1 << 14)
    assert torch.equal(cdist(x[:50], distance=measures.TWED()), expected)


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_cdist_knows_lengths(measure):
    x, y = [normal(n, 1, seed=n) for n in (5, 9, 4)], [normal(n, 1, seed=n + 20) for n in (3, 8)]
    torch.testing.assert_close(cdist(x, y, distance=measure), pair_by_pair(measure, x, y))


@pytest.mark.parametrize("measure", MEASURES[:3], ids=repr)
def test_cdist_has_gradients(measure):
    for gamma in (None, 0.2):
        x, y = normal(4, 7, 1).requires_grad_(), normal(3, 9, 1, seed=1).requires_grad_()
        weights = normal(4, 3, seed=2)
        found = torch.autograd.grad((cdist(x, y, distance=measure, gamma=gamma) * weights).sum(), (x, y))
        own = pair_by_pair(measure, x, y, gamma=gamma or 0.0)
        for actual, expected in zip(found, torch.autograd.grad((own * weights).sum(), (x, y)), strict=True):
            torch.testing.assert_close(actual, expected)


def test_cdist_writes_to_files_and_goes_on_with_the_same_measure_alone(tmp_path):
    x, y = normal(4, 7, 1), normal(3, 9, 1, seed=1)
    measure = measures.TWED(nu=0.1)
    written = cdist(x, y, distance=measure, out=str(tmp_path / "values.npy"), progress=False)
    torch.testing.assert_close(torch.tensor(written), cdist(x, y, distance=measure))


def test_options_that_a_measure_has_itself_are_errors():
    x = normal(2, 5, 1)
    for options, name in (({"cost": "cityblock"}, "cost"), ({"warp_penalty": 1.0}, "warp_penalty")):
        with pytest.raises(ValueError, match=name):
            cdist(x, x, distance=measures.TWED(), **options)
    with pytest.raises(ValueError, match="distance"):
        cdist(x, x, distance="twed")


@pytest.mark.parametrize("measure", [measures.TWED(), measures.EDR(), measures.DDTW()], ids=repr)
def test_nearest_finds_the_smallest_distances(measure):
    x, y = normal(5, 7, 1), normal(8, 7, 1, seed=1)
    table = cdist(x, y, distance=measure)
    indices, distances = nearest(x, y, 2, distance=measure)
    torch.testing.assert_close(distances, table.sort(dim=1).values[:, :2])
    torch.testing.assert_close(table.gather(1, indices), distances)


def test_estimators_take_measures():
    centers = torch.tensor([0.0, 4.0], dtype=torch.float64)
    classes = torch.tensor([0, 1] * 6)
    series = normal(12, 10, 1) * 0.3 + centers[classes].view(-1, 1, 1)
    measure = measures.MSM(c=0.4)
    for model in (
        SoftDTWKNeighborsClassifier(n_neighbors=1, distance=measure),
        SoftDTWNearestCentroid(distance=measure),
    ):
        assert model.fit(series, classes).score(series, classes) == 1.0
    labels = SoftDTWKMeans(n_clusters=2, distance=measure, random_state=0).fit(series).labels_
    assert len({(a, b) for a, b in zip(classes.tolist(), labels.tolist(), strict=True)}) == 2


def test_centroids_minimise_the_soft_measure():
    series = normal(6, 9, 1)
    model = SoftDTWNearestCentroid(distance=measures.MSM(c=0.4), gamma=0.5).fit(series, [0] * 6)
    average = torch.as_tensor(model.centroids_)[0]

    def mean(own):
        return msm(own.expand(6, -1, -1), series, c=0.4, gamma=0.5).mean()

    assert mean(average) < mean(series.mean(0))
    for seed in range(20):  # it has kinks, so no gradient is 0
        assert mean(average) < mean(average + 0.1 * normal(9, 1, seed=seed))
