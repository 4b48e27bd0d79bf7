"""Hard DTW of up to eight dimensions with a band in float32: rings of lanes go along it (csrc/cuda/kernels/hard/rings)."""

import numpy as np
import oracle
import pytest
import torch
from cases import GPU, normal, numpy64

from torchsoftdtw import cdist, dtw, dtw_path, nearest

ON_GPU = pytest.mark.cuda if GPU == "cuda" else pytest.mark.emulated(every_op=True)
pytestmark = ON_GPU

COSTS = ["sqeuclidean", "euclidean", "cityblock", "huber"]
# Numbers; vectors of up to four numbers, of up to eight, and of more, whose costs other warps compute: of 45 from products.
DIMS = [1, 3, 8, 21, 45]
MANY = 5000 if GPU == "cuda" else 1  # on a GPU so many pairs that each has one ring, of more rows


def walks(batch, length, seed, dim=1):
    return normal(batch, length, dim, seed=seed).cumsum(1).float()


def best_of(x, y, cost="sqeuclidean", bandwidth=None, penalty=0.0):
    """The value of a pair (n, d), (m, d)."""
    costs = oracle.cost_and_slopes(numpy64(x), numpy64(y), cost)[0]
    return oracle.hard_value_by_diagonals(costs, len(x) + len(y) if bandwidth is None else bandwidth, penalty)


def assert_best(values, x, y, lengths=None, bandwidth=None, penalty=0.0, cost="sqeuclidean"):
    for b, value in enumerate(numpy64(values)):
        n, m = (x.shape[1], y.shape[1]) if lengths is None else (lengths[0][b], lengths[1][b])
        radius = bandwidth[b] if isinstance(bandwidth, list) else bandwidth
        own = penalty[b] if isinstance(penalty, list) else penalty
        best = best_of(x[b, :n], y[b, :m], cost, radius, own)
        assert abs(value - best) <= 2e-6 * max(best, 1e-6), f"pair {b}, {n} x {m}, radius {radius}, penalty {own}"


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("penalty", [0.0, 0.4])
@pytest.mark.parametrize(
    ("n", "m", "radius"),
    [
        (1, 1, 0),
        (1, 9, 2),
        (9, 1, 3),
        (64, 64, 0),
        (65, 64, 1),
        (40, 70, 4),
        (130, 129, 20),
        (200, 230, 60),
        (300, 290, 110),
    ],
)
@pytest.mark.parametrize("dim", DIMS)
def test_values_are_those_of_the_oracle(n, m, radius, penalty, cost, dim):
    x, y = walks(3, n, 1, dim), walks(3, m, 2, dim)
    options = {"bandwidth": radius, "warp_penalty": penalty, "cost": cost}
    values = dtw(x.to(GPU), y.to(GPU), **options)
    assert_best(values, x, y, bandwidth=radius, penalty=penalty, cost=cost)
    many = dtw(*(z.repeat(MANY, 1, 1).to(GPU) for z in (x, y)), **options)
    assert torch.equal(many.view(-1, 3), many[:3].expand(MANY, 3)), "a pair's value depends on its place"
    assert_best(many[:3], x, y, bandwidth=radius, penalty=penalty, cost=cost)


@pytest.mark.parametrize("dim", DIMS)
def test_exact_sums_are_the_same_as_without_a_band(dim):
    """Of whole numbers nothing is rounded: whatever way entries are added up, the values are equal."""
    generator = torch.Generator().manual_seed(0)
    for n, m in ((50, 50), (150, 140), (90, 200)):
        x, y = (torch.randint(-9, 10, (5, size, dim), generator=generator).float().to(GPU) for size in (n, m))
        for penalty in (0.0, 2.0):
            for radius in (0, 3, 30):
                band, path = (f(x, y, bandwidth=radius, warp_penalty=penalty) for f in (dtw, dtw_path))
                assert torch.equal(band, path[0])


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("penalties", [False, True])
def test_lengths_radii_and_penalties_of_every_pair(penalties, dim):
    """Some bands are wider than the ring, and padding holds NaN."""
    batch, n, m = 40, 90, 200
    generator = np.random.default_rng(5)
    x, y = walks(batch, n, 5, dim), walks(batch, m, 6, dim)
    lengths = [generator.integers(1, size + 1, batch).tolist() for size in (n, m)]
    penalty = generator.choice([0.0, 0.2, 5.0], batch).tolist() if penalties else 0.3
    for z, of_pairs in zip((x, y), lengths, strict=True):
        for b, length in enumerate(of_pairs):
            z[b, length:] = np.nan
    for radius in (generator.integers(0, 300, batch).tolist(), 3):
        own = torch.tensor(penalty, dtype=torch.float64).to(GPU) if penalties else penalty
        values = dtw(x.to(GPU), y.to(GPU), x_lengths=lengths[0], y_lengths=lengths[1], bandwidth=radius, warp_penalty=own)
        assert_best(values, x, y, lengths, radius, penalty)


def test_a_length_out_of_range_spoils_its_pair_alone():
    x, y = walks(9, 80, 1), walks(9, 80, 2)
    lengths = torch.tensor([80, 81, 0, 5, 80, 80, 80, -3, 80]).to(GPU)
    values = torch.ops.torchsoftdtw.dtw(
        x.to(GPU), y.to(GPU), lengths, None, None, None, 4, 0.0, False, "sqeuclidean", False
    )[0]
    assert values.isnan().tolist() == [False, True, True, False, False, False, False, True, False]


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_number_spoils_its_pair_alone(bad, dim):
    x, y = walks(21, 150, 9, dim), walks(21, 150, 10, dim)
    clean = dtw(x.to(GPU), y.to(GPU), bandwidth=5)
    for row in (0, 30, 74, 75, 149):
        spoiled = x.clone()
        spoiled[13, row, dim - 1] = bad
        values = dtw(spoiled.to(GPU), y.to(GPU), bandwidth=5)
        others = torch.arange(len(x)) != 13
        assert torch.equal(values[others], clean[others])
        assert torch.equal(values[13].cpu(), torch.tensor(bad, dtype=torch.float32)) or values[13].isnan()
        assert not values[13].isfinite()


@pytest.mark.parametrize("dim", DIMS)
def test_paths_that_follow_the_edge_of_a_band(dim):
    """Costs are 0 on the band's edge and beyond it: one cell too many or too few changes the value."""
    n = 170
    for radius in (2, 7, 25, 60):
        wave = np.random.default_rng(radius).uniform(0.2, 0.8, n + radius).cumsum()
        wave = torch.from_numpy(np.float32(2 * np.sin(wave))).view(1, -1, 1).repeat(1, 1, dim)
        x, y = wave[:, radius:], wave[:, :n]
        for own in (radius, radius - 1, radius + 1):
            for pair in ((x, y), (y, x)):
                assert_best(dtw(*(z.to(GPU) for z in pair), bandwidth=own), *pair, bandwidth=own)


@pytest.mark.parametrize("cost", ["sqeuclidean", "euclidean"])
@pytest.mark.parametrize("dim", [40, 45, 64])
def test_products_that_cancel(dim, cost):
    """|x - y|^2 is far below |x|^2: all along the path; in some of its rows; everywhere, since the origin is far away."""
    x, noise = normal(3, 150, dim, seed=1).float(), normal(3, 150, dim, seed=2).float()
    near, apart = x + 1e-3 * noise, 100 + noise
    outlier = near.clone()
    outlier[:, 70] += 3000
    in_part = torch.where(torch.arange(150)[:, None] % 40 < 20, near, noise)
    for pair in ((x, near), (x, in_part), (x + 100, apart), (x + 100, near + 100), (x, outlier), (1e15 * x, 1e15 * near)):
        for radius in (3, 40):
            values = dtw(*(z.to(GPU) for z in pair), bandwidth=radius, cost=cost)
            assert_best(values, *pair, bandwidth=radius, cost=cost)


@pytest.mark.parametrize("number", [3.4028e38, 1e30, np.inf, -np.inf, np.nan])
def test_products_of_numbers_that_overflow(number):
    """Where it stands in both series the difference is 0, whatever the squares; beside others it is beyond all costs."""
    x = normal(2, 100, 64, seed=1).float()
    y = x.clone()
    for z in (x, y):
        z[0, 50, 3] = number
        z[1, :, 7] = number
    alike, apart = (dtw(x.to(GPU), z.to(GPU), bandwidth=5) for z in (y, y.roll(9, 2)))
    assert (alike == 0).all() if np.isfinite(number) else not alike.isfinite().any()
    assert not apart.isfinite().any()


def test_a_path_that_comes_late_from_bad_neighbours():
    """Up to the jump the rows behind it hold nothing but cells 100,000 times the value."""
    for rows in (30, 100):
        noise = [normal(3, length, 1, seed=length) * 1e-3 for length in (rows + 40, rows + 50)]
        x, y = ((z + 100 * (torch.arange(z.shape[1]) >= rows)[:, None]).float() for z in noise)
        values = dtw(x.to(GPU), y.to(GPU), bandwidth=15)
        assert_best(values, x, y, bandwidth=15)
        assert values.max() < 0.1


@pytest.mark.parametrize("dim", [*DIMS, 4])
def test_pairs_of_two_sets_and_any_strides(dim):
    x, y = walks(5, 90, 1, dim).to(GPU), walks(7, 80, 2, dim).to(GPU)
    table = cdist(x, y, bandwidth=9)
    for i in range(5):
        each = dtw(x[i : i + 1].expand(7, -1, -1), y, bandwidth=9)
        torch.testing.assert_close(table[i], each, rtol=1e-6, atol=1e-9)
    indices, distances = nearest(x, y, 2, bandwidth=9)
    assert torch.equal(indices, table.topk(2, largest=False).indices)
    torch.testing.assert_close(distances, table.topk(2, largest=False).values)
    channels_first = y.transpose(1, 2).contiguous().transpose(1, 2)
    for strided in (channels_first, y.repeat(1, 1, 2)[:, :, dim:], torch.cat([y[:, :, :1], y], 2)[:, :, 1:]):
        assert torch.equal(dtw(x, strided[:5], bandwidth=9), dtw(x, y[:5], bandwidth=9))


def whole(batch, length, seed, most=3, dim=1):
    """Whole numbers: nothing is rounded, and many cells have predecessors that are equally good."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-most, most + 1, (batch, length, dim), generator=generator).float()


def assert_same_paths(x, y, **options):
    """Values, paths and gradients are those of the oracle, exactly. Returns the gradients."""
    x, y = (z.to(GPU).detach().requires_grad_() for z in (x, y))
    own = {name: torch.tensor(each).to(GPU) if isinstance(each, list) else each for name, each in options.items()}
    value, paths = dtw_path(x, y, **own)
    expected = oracle.hard_dtw(numpy64(x), numpy64(y), **options)
    for b, path in enumerate(paths):
        assert [tuple(cell) for cell in path.tolist()] == expected[3][b], f"pair {b}"
    np.testing.assert_array_equal(numpy64(value), expected[0])
    gradients = torch.autograd.grad(dtw(x, y, **own).sum(), (x, y))
    for gradient, wanted in zip(gradients, expected[1:3], strict=True):
        np.testing.assert_array_equal(numpy64(gradient), wanted)
    return gradients


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("penalty", [0.0, 2.0])
@pytest.mark.parametrize(
    ("n", "m", "radius"),
    [
        (1, 1, 0),
        (1, 9, 2),
        (9, 1, 3),
        (5, 4, 0),
        (64, 64, 0),
        (65, 64, 1),
        (40, 70, 4),
        (97, 96, 9),
        (130, 129, 20),
        (80, 150, 3),
        (150, 80, 3),
        (160, 170, 60),
        (150, 150, 110),
    ],
)
@pytest.mark.parametrize("dim", DIMS)
def test_ties_are_broken_in_the_documented_order(n, m, radius, penalty, cost, dim):
    """In every cell of a band that a path may come to, and at both its edges."""
    if cost == "euclidean" and dim > 1:
        pytest.skip("roots of whole numbers are none")
    x, y = whole(3, n, n, dim=dim), whole(3, m, m + 1, dim=dim)
    options = {"bandwidth": radius, "warp_penalty": penalty, "cost": cost}
    gradients = assert_same_paths(x, y, **options)
    many = [z.repeat(MANY, 1, 1).to(GPU).requires_grad_() for z in (x, y)]
    of_many = torch.autograd.grad(dtw(*many, **options).sum(), many)
    for gradient, alone in zip(of_many, gradients, strict=True):
        assert torch.equal(gradient.view(MANY, *alone.shape), alone.expand(MANY, *alone.shape))


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize(("n", "m", "radius"), [(330, 320, 30), (300, 420, 9), (420, 400, 200)])  # last: a ring of 14 rows
def test_paths_of_many_words(n, m, radius, dim):
    """A walk back goes from word to word of noted steps (csrc/cuda/kernels/hard/paths)."""
    x, y = whole(2, n, n, dim=dim), whole(2, m, m + 1, dim=dim)
    options = {"bandwidth": radius, "warp_penalty": 1.0}
    assert_same_paths(x, y, **options)
    # With lengths no other warps compute costs: lanes hold vectors themselves.
    lengths = {"x_lengths": [n, n], "y_lengths": [m, m]}
    assert_same_paths(x, y, **lengths, **options)
    alone = dtw(x.to(GPU), y.to(GPU), **options)
    given = {name: torch.tensor(sizes).to(GPU) for name, sizes in lengths.items()}
    assert torch.equal(alone, dtw(x.to(GPU), y.to(GPU), **given, **options))
    assert_best(alone, x, y, bandwidth=radius, penalty=1.0)


def test_long_paths():
    assert_same_paths(whole(1, 2000, 1), whole(1, 1990, 2), bandwidth=205, warp_penalty=1.0)


@pytest.mark.parametrize("dim", [3, 21, 45])
@pytest.mark.parametrize("cost", ["sqeuclidean", "cityblock"])
@pytest.mark.parametrize(("n", "m", "radius"), [(45, 50, 6), *([(230, 220, 100)] if GPU == "cuda" else [])])
def test_pairs_of_which_two_share_a_multiprocessor(n, m, radius, cost, dim):
    x, y = whole(3, n, n, dim=dim), whole(3, m, m + 1, dim=dim)
    options = {"bandwidth": radius, "warp_penalty": 1.0, "cost": cost}
    gradients = assert_same_paths(x, y, **options)
    many = [z.repeat(47, 1, 1).to(GPU).requires_grad_() for z in (x, y)]
    values = dtw(*many, **options)
    of_many = torch.autograd.grad(values.sum(), many)
    alone = dtw(x.to(GPU), y.to(GPU), **options)
    for result, expected in ((values, alone), *zip(of_many, gradients, strict=True)):
        assert torch.equal(result.view(47, *expected.shape), expected.expand(47, *expected.shape))
    with torch.no_grad():
        assert torch.equal(dtw(*many, **options), values)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("penalties", [False, True])
def test_paths_of_lengths_radii_and_penalties_of_every_pair(penalties, dim):
    """Some bands are wider than the ring, and padding holds NaN."""
    batch, n, m = 40, 90, 120
    generator = np.random.default_rng(6)
    x, y = whole(batch, n, 7, dim=dim), whole(batch, m, 8, dim=dim)
    lengths = [generator.integers(1, size + 1, batch).tolist() for size in (n, m)]
    for z, of_pairs in zip((x, y), lengths, strict=True):
        for b, length in enumerate(of_pairs):
            z[b, length:] = np.nan
    penalty = generator.choice([0.0, 1.0, 5.0], batch).tolist() if penalties else 1.0
    for radius in (generator.integers(0, 150, batch).tolist(), 3):
        assert_same_paths(x, y, x_lengths=lengths[0], y_lengths=lengths[1], bandwidth=radius, warp_penalty=penalty)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("radius", [0, 6])
def test_paths_that_stay_in_a_row_or_a_column_for_long(radius, dim):
    """Longer than a word of a lane's steps, and than a lane has its block."""
    for few, many in ((90, 140), (150, 250)):
        levels = torch.arange(few).float().view(1, -1, 1).repeat(1, 1, dim)
        runs = np.random.default_rng(few).multinomial(many - few, np.full(few, 1 / few)) + 1
        for own in (runs, [many - few + 1, *[1] * (few - 1)], [*[1] * (few - 1), many - few + 1]):
            steps = levels.repeat_interleave(torch.tensor(own), 1)
            assert_same_paths(levels, steps, bandwidth=radius)
            assert_same_paths(steps, levels, bandwidth=radius)


def test_a_bad_pair_has_no_path_and_no_gradient():
    x, y = whole(7, 80, 1), whole(7, 80, 2)
    x[3, 40] = np.nan
    x, y = (z.to(GPU) for z in (x, y))
    lengths = torch.tensor([80, 81, 70, 80, 0, 5, 80]).to(GPU)
    options = (lengths, None, None, None, 4, 0.0, False, "sqeuclidean", True)
    value, spans = torch.ops.torchsoftdtw.dtw(x, y, *options)
    good = torch.tensor([True, False, True, False, False, True, True])
    assert torch.equal(value.isfinite().cpu(), good)
    for b, length in enumerate(lengths.tolist()):
        rows = length if good[b] else 0
        assert (spans[b, rows:].cpu() == torch.tensor([80, 79])).all()
        assert rows == 0 or (spans[b, 0, 0].item(), spans[b, rows - 1, 1].item()) == (0, 79)
    gradients = torch.ops.torchsoftdtw.dtw_backward(
        torch.ones(7).to(GPU), x, y, value, spans, lengths, None, "sqeuclidean", True, True
    )
    clean = oracle.hard_dtw(*(numpy64(z[good.to(GPU)]) for z in (x, y)), x_lengths=lengths.cpu()[good], bandwidth=4)
    for gradient, wanted in zip(gradients, clean[1:3], strict=True):
        np.testing.assert_array_equal(numpy64(gradient)[good], wanted)
        assert gradient[~good.to(GPU)].isnan().all()


@pytest.mark.parametrize("dim", DIMS)
def test_paths_along_the_edge_of_a_band(dim):
    """Costs are 0 on the band's edge and beyond it: one cell too many or too few changes the path."""
    n = 120
    for radius in (2, 7, 25):
        wave = np.random.default_rng(radius).uniform(0.2, 0.8, n + radius).cumsum()
        wave = torch.from_numpy(np.float32(np.rint(8 * np.sin(wave)))).view(1, -1, 1).repeat(1, 1, dim)
        x, y = wave[:, radius:], wave[:, :n]
        for own in (radius, radius - 1, radius + 1):
            for pair in ((x, y), (y, x)):
                assert_same_paths(*pair, bandwidth=own)


def test_steps_take_memory_of_the_band_alone():
    if GPU != "cuda":
        pytest.skip("measured on CUDA")
    batch, n, radius = 8, 2000, 50
    x, y = (walks(batch, n, seed).to(GPU) for seed in (1, 2))
    options = (None, None, None, None, radius, 0.0, False, "sqeuclidean", True)
    torch.ops.torchsoftdtw.dtw(x, y, *options)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    torch.ops.torchsoftdtw.dtw(x, y, *options)
    # Two bits a cell, of a ring that is up to half as wide again; the spans, and what is rounded up.
    assert torch.cuda.max_memory_allocated() - before < 2 * batch * n * (2 * radius + 1) / 4 + 16 * batch * n
