"""Hard elastic measures of one dimension with a band in float32: by rings of lanes (csrc/cuda/kernels/elastic/rings)."""

import math

import numpy as np
import pytest
import torch
from cases import GPU, VALUE_TOLERANCE, normal
from test_elastic_kernels import EDIT, MEASURES, MSM, TWED, assert_as_expected, cost_of_path, expected_of, made, run

from torchsoftdtw import edr, lcss

pytestmark = pytest.mark.cuda if GPU == "cuda" else pytest.mark.emulated(every_op=True)

F32 = torch.float32
UNIVARIATE = [own for own in MEASURES if own.name == "weighted" or own.cost == "cityblock"] + [
    own._replace(cost="cityblock") for own in MEASURES if own.name in ("edr", "lcss")
]
MANY = 1500 if GPU == "cuda" else 1  # on a GPU so many pairs that rings have more rows


def check(problem, values, spans, radii):
    """Each pair, with the radius of its own."""
    for b, radius in zip(problem.pairs(), radii, strict=True):
        own = problem._replace(bandwidth=radius)
        expected, tables, *_ = expected_of(own, b, 0.0, 1.0)
        where = (b, radius, str(problem.measure))
        if math.isinf(expected):
            assert values[b] == math.inf, where
            continue
        assert values[b].item() == pytest.approx(expected, rel=VALUE_TOLERANCE[F32]), where
        cost = cost_of_path(spans[b].cpu(), tables, problem.measure.sum_border)
        assert cost == pytest.approx(expected, rel=VALUE_TOLERANCE[F32]), where


@pytest.mark.parametrize("measure", UNIVARIATE, ids=str)
@pytest.mark.parametrize(
    ("n", "m", "radius"),
    [(1, 1, 0), (1, 9, 2), (9, 1, 3), (40, 40, 0), (65, 64, 1), (40, 70, 4), (90, 89, 17), (130, 150, 40), (280, 270, 100)],
)
def test_values_and_paths_are_those_of_the_oracle(measure, n, m, radius):
    assert_as_expected(made(measure, n, m, batch=2, dtype=F32, bandwidth=radius), "auto", dtype=F32)


def test_both_ends_of_the_range_of_measures_between_0_and_1_are_exact():
    for length in (5, 41, 47, 49, 55, 61, 107):
        x = normal(2, length, 1, dtype=F32).to(GPU)
        for options in ({}, {"bandwidth": 4}):
            assert (lcss(x, x, **options) == 0).all()
            assert (lcss(x, x + 100, **options) == 1).all()
            assert (edr(x, x + 100, epsilon=0.1, **options) == 1).all()


@pytest.mark.parametrize("measure", UNIVARIATE, ids=str)
def test_many_pairs(measure):
    """Their values and paths are to the bit those of the pairs that they repeat, and of values without a path."""
    for n, m, radius in ((50, 61, 3), (100, 90, 22), (150, 170, 55)):
        few = made(measure, n, m, dtype=F32, bandwidth=radius)
        times = [part if part is None else part.repeat(MANY, *[1] * (part.dim() - 1)) for part in few[1:7]]
        values, spans = run(few._replace(**dict(zip(few._fields[1:7], times, strict=True))), "auto", 0.0, F32)[2]
        check(few, values, spans, [radius] * 3)
        for part in (values, spans):
            assert torch.equal(part.unflatten(0, (-1, 3)), part[:3].expand(MANY, *part[:3].shape))


@pytest.mark.parametrize("measure", UNIVARIATE, ids=str)
def test_lengths_and_radii_of_every_pair(measure):
    """Some bands are wider than the ring, and padding holds NaN."""
    batch, n, m = 24, 70, 150
    generator = np.random.default_rng(5)
    lengths = tuple(generator.integers(1, size + 1, batch).tolist() for size in (n, m))
    problem = made(measure, n, m, batch=batch, dtype=F32, lengths=lengths)
    radii = generator.integers(0, 250, batch).tolist()
    values, spans = run(problem, "auto", 0.0, F32, bandwidths=torch.tensor(radii, device=GPU))[2]
    check(problem, values, spans, radii)
    index = tuple(generator.integers(0, batch, batch).tolist() for _ in range(2))
    assert_as_expected(problem._replace(index=index, bandwidth=3), "auto", dtype=F32)


@pytest.mark.parametrize("measure", [EDIT._replace(cost="cityblock"), TWED, MSM], ids=str)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("radius", [-1, 5])
def test_a_bad_number_spoils_its_pair_alone(measure, bad, radius):
    problem = made(measure, 90, 90, batch=9, dtype=F32, bandwidth=radius)
    clean = run(problem, "auto", 0.0, F32, False)[2][0]
    for row in (0, 40, 89):
        x = problem.x.clone()
        x[4, row] = bad
        spoiled = problem._replace(x=x)
        values = run(spoiled, "auto", 0.0, F32, False)[2][0]
        others = torch.arange(9, device=GPU) != 4
        assert torch.equal(values[others], clean[others])
        # Gaps are the problem's own here, so what is infinite may be stepped over.
        expected = run(spoiled, "cpu", 0.0, F32, False, at="cpu")[2][0][4]
        torch.testing.assert_close(values[4].cpu(), expected, rtol=VALUE_TOLERANCE[F32], atol=0, equal_nan=True)
        assert math.isinf(bad) or values[4].isnan()
