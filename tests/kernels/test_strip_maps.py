"""Strips of few pairs' paths are walked at once (csrc/cuda/kernels/hard/paths): to the step as those of many pairs."""

import pytest
import torch
from cases import GPU, normal
from test_elastic_kernels import EDIT, TWED, WEIGHTED, made, run

from torchsoftdtw import dtw
from torchsoftdtw._kernels import ops

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(GPU != "cuda", reason="so many pairs take too long")]

# So many columns that 200 pairs have no maps, and two have. A strip has 128 rows in float32, 64 in float64.
SHAPES = [(700, 600), (1030, 520), (600, 1100)]
TIMES = 100  # so few that strips of elastic measures are not taller, with other roundings


def spans_of(x, y, **options):
    given = {"lengths": (None, None), "bandwidth": -1, "bandwidths": None, "penalty": 0.0, "cost": "sqeuclidean", **options}
    return ops.dtw(
        x, y, *given["lengths"], given["bandwidths"], None, given["bandwidth"], given["penalty"], False, given["cost"], True
    )


def walks(batch, length, seed, dim, dtype):
    return normal(batch, length, dim, seed=seed).cumsum(1).to(GPU, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("dim", [1, 3, 12])
@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_dtw(n, m, dim, dtype):
    x, y = walks(2, n, 1, dim, dtype), walks(2, m, 2, dim, dtype)
    many = [z.repeat(TIMES, 1, 1) for z in (x, y)]
    lengths = [torch.tensor([size, size // 2], device=GPU) for size in (n, m)]
    wide = 300  # of many dimensions too wide for a ring of few pairs, whose costs are rounded otherwise
    band = {"bandwidth": 40 if dim < 9 else wide}
    for options in ({}, band, {"penalty": 0.5}, {"cost": "cityblock"}, {"lengths": lengths}):
        few = spans_of(x, y, **options)
        if "lengths" in options:
            options = {"lengths": [own.repeat(TIMES) for own in lengths]}
        for found, expected in zip(spans_of(*many, **options), few, strict=True):
            assert torch.equal(found.unflatten(0, (TIMES, 2)), expected.expand(TIMES, *expected.shape))


def test_ties():
    """Whole numbers, of which many alignments cost the same."""
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randint(0, 3, (2, size, 1), generator=generator).float().to(GPU) for size in (900, 800))
    few, many = spans_of(x, y), spans_of(x.repeat(TIMES, 1, 1), y.repeat(TIMES, 1, 1))
    assert torch.equal(many[1].unflatten(0, (TIMES, 2)), few[1].expand(TIMES, *few[1].shape))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("measure", [EDIT, EDIT._replace(cost="cityblock"), TWED, WEIGHTED], ids=str)
def test_elastic_measures(measure, dtype):
    for n, m in SHAPES:
        few = made(measure, n, m, batch=2, dtype=dtype)
        times = {
            name: part.repeat(TIMES, *[1] * (part.dim() - 1))
            for name, part in zip(few._fields[1:7], few[1:7], strict=True)
            if part is not None
        }
        spans = run(few, "auto", 0.0, dtype)[2][1]
        assert torch.equal(
            run(few._replace(**times), "auto", 0.0, dtype)[2][1].unflatten(0, (TIMES, 2)), spans.expand(TIMES, *spans.shape)
        )


def test_a_long_pair_and_one_that_is_no_number():
    x, y = walks(3, 5000, 1, 1, torch.float32), walks(3, 4000, 2, 1, torch.float32)
    x[1, 2500] = torch.nan
    value, spans = spans_of(x, y)
    assert value.isnan().tolist() == [False, True, False]
    assert (spans[1] == torch.tensor([4000, 3999], device=GPU)).all()
    for b in (0, 2):
        first, last = spans[b].long().unbind(1)
        assert first[0] == 0 and last[-1] == 3999
        assert ((first[1:] == last[:-1]) | (first[1:] == last[:-1] + 1)).all()
        along = torch.cat([torch.arange(i, j + 1) for i, j in spans[b].tolist()])
        rows = torch.repeat_interleave(torch.arange(5000), (last - first + 1).cpu())
        cost = ((x[b, rows.to(GPU), 0].double() - y[b, along.to(GPU), 0].double()) ** 2).sum().item()
        assert cost == pytest.approx(dtw(x[b : b + 1].double(), y[b : b + 1].double()).item(), rel=1e-6)
