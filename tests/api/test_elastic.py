"""What elastic measures promise: identities, errors, arguments, transforms."""

import math

import pytest
import torch
from cases import normal

import torchsoftdtw
from torchsoftdtw import (
    ElasticLoss,
    adtw,
    ddtw,
    dtw,
    edr,
    elastic_from_costs,
    elastic_path,
    erp,
    lcss,
    measures,
    msm,
    shape_dtw,
    soft_dtw,
    twed,
    wddtw,
    wdtw,
)

SYMMETRIC = {
    "twed": lambda x, y, **options: twed(x, y, nu=0.1, lmbda=0.4, **options),
    "erp": lambda x, y, **options: erp(x, y, g=0.3, **options),
    "msm": lambda x, y, **options: msm(x, y, c=0.4, **options),
    "edr": lambda x, y, **options: edr(x, y, epsilon=0.5, **options),
    "lcss": lambda x, y, **options: lcss(x, y, epsilon=0.5, **options),
    "wdtw": lambda x, y, **options: wdtw(x, y, g=0.1, **options),
}
EVERY = {
    **SYMMETRIC,
    "adtw": lambda x, y, **options: adtw(x, y, warp_penalty=0.3, **options),
    "ddtw": ddtw,
    "wddtw": lambda x, y, **options: wddtw(x, y, g=0.1, **options),
    "shape_dtw": lambda x, y, **options: shape_dtw(x, y, reach=2, **options),
}
OBJECTS = [
    measures.TWED(nu=0.1),
    measures.ERP(g=0.3),
    measures.MSM(c=0.4),
    measures.EDR(epsilon=0.5),
    measures.LCSS(epsilon=0.5),
    measures.WDTW(g=0.1),
    measures.WDDTW(g=0.1),
    measures.DTW(cost="cityblock", warp_penalty=0.1),
    measures.ADTW(warp_penalty=0.3),
    measures.DDTW(),
    measures.ShapeDTW(reach=2),
]


@pytest.mark.parametrize("name", EVERY)
def test_a_series_is_at_distance_0_from_itself_and_order_does_not_count(name):
    x, y = normal(3, 12, 1), normal(3, 15, 1, seed=1)
    assert EVERY[name](x, x).abs().max() < 1e-12
    torch.testing.assert_close(EVERY[name](x, y), EVERY[name](y, x), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["twed", "erp", "msm"])
def test_metrics_keep_the_triangle_inequality(name):
    x = normal(12, 9, 1).cumsum(1)
    first, second = torch.triu_indices(12, 12)
    table = torch.zeros(12, 12, dtype=torch.float64)
    table[first, second] = SYMMETRIC[name](x[first], x[second])
    table = torch.maximum(table, table.T)
    detour = (table.unsqueeze(2) + table.unsqueeze(0)).amin(1)
    assert (table <= detour + 1e-12).all()


def test_twed_is_blind_to_a_common_shift_of_times_and_of_values():
    x, y = normal(2, 11, 2), normal(2, 8, 2, seed=1)
    t, s = (torch.rand(2, n, dtype=torch.float64).cumsum(1) for n in (11, 8))
    value = twed(x, y, nu=0.5, x_times=t, y_times=s)
    torch.testing.assert_close(value, twed(x, y, nu=0.5, x_times=t + 3, y_times=s + 3))
    torch.testing.assert_close(value, twed(x - 7, y - 7, nu=0.5, x_times=t, y_times=s))


def test_default_times_are_the_places():
    x, y = normal(2, 11, 1), normal(2, 8, 1, seed=1)
    for first in (0, 1):
        times = {"x_times": torch.arange(first, first + 11), "y_times": torch.arange(first, first + 8.0)}
        torch.testing.assert_close(twed(x, y, nu=0.3, gamma=0.2), twed(x, y, nu=0.3, gamma=0.2, **times))


def test_seconds_since_1970_survive_float32():
    x, y = normal(1, 9, 1), normal(1, 7, 1, seed=1)
    t, s = 1_700_000_000 + torch.arange(9) * 3, 1_700_000_001 + torch.arange(7) * 2
    expected = twed(x, y, nu=0.5, x_times=t.double(), y_times=s.double())
    value = twed(x.float(), y.float(), nu=0.5, x_times=t, y_times=s)
    torch.testing.assert_close(value.double(), expected, rtol=1e-6, atol=0)


def test_twed_without_gaps_is_the_sum_of_matches():
    x, y = normal(1, 10, 1), normal(1, 10, 1, seed=1)
    apart = (x - y).abs().squeeze()
    torch.testing.assert_close(twed(x, y, nu=0.0, lmbda=1e6).item(), (apart.sum() + apart[:-1].sum()).item())


def test_degrees_are_norms_and_negative_ones_take_no_root():
    x, y = normal(1, 6, 3), normal(1, 6, 3, seed=1)
    for degree in (1, 2, -2):
        apart = (x - y).abs().pow(abs(degree)).sum(2).pow(1 / degree if degree > 0 else 1).squeeze()
        value = twed(x, y, nu=0.0, lmbda=1e6, degree=degree)
        torch.testing.assert_close(value.item(), (apart.sum() + apart[:-1].sum()).item())
    one = x[:, :, :1], y[:, :, :1]
    torch.testing.assert_close(twed(*one, degree=3), twed(*one))


def test_gauge_moves_costs_from_gaps_to_matches():
    """R - cumsum(u) - cumsum(l) has gaps that cost nothing and matches that cost d - u - l."""
    diagonal, up, left = normal(2, 9, 7).abs(), normal(2, 9, seed=1).abs(), normal(2, 7, seed=2).abs()
    for gamma in (0.0, 0.3):
        value = elastic_from_costs(diagonal, up, left, gamma, border="sum")
        moved = diagonal - up.unsqueeze(2) - left.unsqueeze(1)
        other = elastic_from_costs(moved, torch.zeros_like(up), torch.zeros_like(left), gamma, border="sum")
        torch.testing.assert_close(value, other + up.sum(1) + left.sum(1))


def test_lcss_is_the_longest_common_subsequence_of_symbols():
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        n, m = torch.randint(1, 12, (2,), generator=generator).tolist()
        a, b = (torch.randint(0, 3, (length, 1), generator=generator).double() for length in (n, m))
        table = [[0] * (m + 1) for _ in range(n + 1)]
        for i in range(n):
            for j in range(m):
                same = a[i] == b[j]
                table[i + 1][j + 1] = table[i][j] + 1 if same else max(table[i][j + 1], table[i + 1][j])
        value, subsequence = lcss(a, b, epsilon=0.0, return_subsequence=True)
        assert len(subsequence) == table[n][m]
        assert value.item() == pytest.approx(1 - table[n][m] / min(n, m))
        assert (a[subsequence[:, 0]] == b[subsequence[:, 1]]).all()
        assert (subsequence.diff(dim=0) > 0).all()


def test_erp_pays_for_leading_gaps_as_they_add_up():
    x, y = torch.tensor([[0.0], [0.0], [5.0], [5.0]]), torch.tensor([[5.0], [5.0]])
    assert erp(x, y).item() == 0
    assert erp(x, y, g=1.0).item() == 2


def test_edr_takes_its_epsilon_from_the_deviations_of_own_samples():
    x, y = normal(2, 12, 2), normal(2, 9, 2, seed=1)
    for b, (n, m) in enumerate(((12, 5), (7, 9))):
        own = x[b, :n], y[b, :m]
        epsilon = max(series.std(correction=0).item() for series in own) / 4
        padded = edr(x, y, x_lengths=[12, 7], y_lengths=[5, 9])[b]
        assert padded.item() == edr(*own, epsilon=epsilon).item()


@pytest.mark.parametrize("name", EVERY)
def test_soft_values_lie_below_and_tend_to_hard_ones(name):
    x, y = normal(3, 14, 1), normal(3, 11, 1, seed=1)
    hard = EVERY[name](x, y)
    assert (EVERY[name](x, y, gamma=0.1) <= hard).all()
    scale = 12.0  # of lcss and edr, whose values are divided by lengths
    torch.testing.assert_close(EVERY[name](x, y, gamma=1e-4), hard, rtol=1e-4, atol=1e-4 * 25 / scale)


@pytest.mark.parametrize("gamma", [0.0, 0.1])
@pytest.mark.parametrize("name", EVERY)
def test_a_nan_spoils_its_own_pair_alone(name, gamma):
    x, y = normal(3, 9, 1), normal(3, 8, 1, seed=1)
    for bad in (math.nan, math.inf):
        spoiled = x.clone()
        spoiled[1, 4] = bad
        spoiled.requires_grad_()
        value = EVERY[name](spoiled, y, gamma=gamma)
        assert not value[1].isfinite()
        torch.testing.assert_close(value[::2], EVERY[name](x[::2], y[::2], gamma=gamma))
        (gradient,) = torch.autograd.grad(value[::2].sum(), spoiled)  # as if the pair was masked out
        assert gradient.isfinite().all()


@pytest.mark.parametrize("gamma", [0.0, 0.1])
@pytest.mark.parametrize("name", EVERY)
def test_empty_batches_pairs_without_one_and_half_types(name, gamma):
    x, y = normal(2, 6, 1), normal(2, 5, 1, seed=1)
    assert EVERY[name](x[:0], y[:0], gamma=gamma).shape == (0,)
    torch.testing.assert_close(EVERY[name](x[0], y[0], gamma=gamma), EVERY[name](x, y, gamma=gamma)[0])
    halves = x.bfloat16(), y.bfloat16()
    value = EVERY[name](*halves, gamma=gamma)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, EVERY[name](*(half.float() for half in halves), gamma=gamma))


@pytest.mark.parametrize("name", SYMMETRIC)
def test_batches_do_not_mix(name):
    x, y = normal(70, 9, 1), normal(70, 8, 1, seed=1)
    x.requires_grad_()
    for gamma in (0.0, 0.2):
        value = SYMMETRIC[name](x, y, gamma=gamma)
        one = SYMMETRIC[name](x[13:14], y[13:14], gamma=gamma)
        assert value[13] == one[0]
        (all_of_them,) = torch.autograd.grad(value[13], x)
        (alone,) = torch.autograd.grad(one[0], x)
        assert torch.equal(all_of_them, alone)


def test_seventy_thousand_pairs():
    x, y = normal(70_000, 4, 1), normal(70_000, 3, 1, seed=1)
    value = twed(x, y)
    torch.testing.assert_close(value[-5:], twed(x[-5:], y[-5:]))


def test_a_long_series_in_float32_keeps_its_digits():
    x, y = normal(1, 20_000, 1).cumsum(1), normal(1, 20_000, 1, seed=1).cumsum(1)
    x, y = x.float(), y.float()
    for name in ("twed", "erp", "msm"):
        wide = SYMMETRIC[name](x.double(), y.double(), bandwidth=300)
        narrow = SYMMETRIC[name](x, y, bandwidth=300)
        assert narrow.item() == pytest.approx(wide.item(), rel=1e-6)


@pytest.mark.parametrize("gamma", [0.0, 0.2])
@pytest.mark.parametrize("name", ["twed", "erp", "msm", "wdtw"])
def test_parameters_have_gradients(name, gamma):
    x, y = normal(2, 7, 1, seed=3), normal(2, 6, 1, seed=4)
    numbers = {"twed": ("nu", "lmbda"), "erp": ("g",), "msm": ("c",), "wdtw": ("g",)}[name]
    function = getattr(torchsoftdtw, name)
    given = tuple(torch.tensor(0.3 + 0.2 * k, dtype=torch.float64, requires_grad=True) for k in range(len(numbers)))
    smoothing = torch.tensor([0.2, 0.5], dtype=torch.float64, requires_grad=True)

    def value(x, y, gamma_, *own):
        return function(x, y, gamma=gamma_ if gamma else 0.0, **dict(zip(numbers, own, strict=True)))

    torch.autograd.gradcheck(value, (x.requires_grad_(), y.requires_grad_(), smoothing, *given))


def test_one_number_per_pair_is_that_pair_with_its_number():
    x, y = normal(3, 7, 1), normal(3, 6, 1, seed=1)
    own = torch.tensor([0.1, 0.5, 2.0], dtype=torch.float64)
    gammas = torch.tensor([0.3, 0.1, 1.0], dtype=torch.float64)
    functions = {
        "nu": lambda x, y, v, g: twed(x, y, nu=v, gamma=g),
        "lmbda": lambda x, y, v, g: twed(x, y, lmbda=v, gamma=g),
        "c": lambda x, y, v, g: msm(x, y, c=v, gamma=g),
        "g": lambda x, y, v, g: wdtw(x, y, g=v, gamma=g),
        "epsilon": lambda x, y, v, g: edr(x, y, epsilon=v, gamma=g),
        "epsilon of lcss": lambda x, y, v, g: lcss(x, y, epsilon=v, gamma=g),
    }
    for function in functions.values():
        value = function(x, y, own, gammas)
        for b in range(3):
            assert value[b].item() == pytest.approx(function(x[b], y[b], own[b].item(), gammas[b].item()).item(), rel=1e-12)


@pytest.mark.parametrize("name", SYMMETRIC)
def test_one_band_per_pair_is_that_pair_with_its_band(name):
    x, y = normal(3, 9, 1), normal(3, 12, 1, seed=1)
    for gamma in (0.0, 0.2):
        value = SYMMETRIC[name](x, y, gamma=gamma, bandwidth=[0, 2, 30])
        for b, radius in enumerate((0, 2, 30)):
            torch.testing.assert_close(value[b], SYMMETRIC[name](x[b], y[b], gamma=gamma, bandwidth=radius))


@pytest.mark.parametrize("name", SYMMETRIC)
def test_layouts_and_threads_do_not_count(name, one_thread):
    x, y = normal(2, 40, 3).transpose(0, 1), normal(3, 40, 2, seed=1).permute(1, 2, 0)
    if name == "msm":
        x, y = x[..., :1], y[..., :1]
    for gamma in (0.0, 0.2):
        alone = SYMMETRIC[name](x, y, gamma=gamma)
        torch.set_num_threads(2)
        assert torch.equal(alone, SYMMETRIC[name](x.contiguous(), y.contiguous(), gamma=gamma))
        torch.set_num_threads(1)


def test_gradients_of_edr_and_lcss_are_0():
    x, y = normal(2, 7, 1).requires_grad_(), normal(2, 6, 1, seed=1)
    for function in (edr, lcss):
        for gamma in (0.0, 0.1):
            (gradient,) = torch.autograd.grad(function(x, y, gamma=gamma).sum(), x)
            assert (gradient == 0).all()


def test_warping_measures_are_dtw_of_what_they_are_made_of():
    x, y = normal(2, 9, 2), normal(2, 12, 2, seed=1)
    for gamma in (0.0, 0.1):
        torch.testing.assert_close(adtw(x, y, warp_penalty=0.3, gamma=gamma), soft_dtw(x, y, gamma, warp_penalty=0.3))
        torch.testing.assert_close(shape_dtw(x, y, reach=0, gamma=gamma), soft_dtw(x, y, gamma))
    slopes = [((s[:, 1:-1] - s[:, :-2]) + (s[:, 2:] - s[:, :-2]) / 2) / 2 for s in (x, y)]
    torch.testing.assert_close(ddtw(x, y), dtw(*slopes))
    torch.testing.assert_close(wddtw(x, y), wdtw(*slopes))


@pytest.mark.parametrize("function", [ddtw, wddtw])
def test_slopes_need_three_vectors(function):
    x, y = normal(2, 9, 1), normal(2, 9, 1, seed=1)
    with pytest.raises(ValueError, match=r"x: expected series of at least 3 vectors .* got \(2, 2, 1\)"):
        function(x[:, :2], y)
    with pytest.raises(ValueError, match="y_lengths: expected lengths of at least 3, for slopes, got 2"):
        function(x, y, y_lengths=torch.tensor([9, 2]))


def test_aeon_agrees_on_what_is_made_of_dtw():
    aeon = pytest.importorskip("aeon.distances")
    x, y = normal(20, 2), normal(17, 2, seed=1)
    a, b = x.numpy().T.copy(), y.numpy().T.copy()
    assert adtw(x, y, warp_penalty=0.3).item() == pytest.approx(aeon.adtw_distance(a, b, warp_penalty=0.3))
    assert ddtw(x, y).item() == pytest.approx(aeon.ddtw_distance(a, b))
    assert wddtw(x, y, g=0.1).item() == pytest.approx(aeon.wddtw_distance(a, b, g=0.1))
    found = elastic_path(x, y, measures.ShapeDTW(reach=3))
    i, j = found.paths.T
    along = (x[i] - y[j]).square().sum().item()  # aeon's value is that of the series themselves along the windows' path
    assert along == pytest.approx(aeon.shape_dtw_distance(a, b, reach=3))


@pytest.mark.parametrize("measure", OBJECTS, ids=repr)
def test_objects_are_frozen_hashable_and_give_their_functions_values(measure):
    assert hash(measure) == hash(type(measure)(**measure._parameters()))
    with pytest.raises(AttributeError):
        measure.other = 1
    x, y = normal(2, 9, 1), normal(2, 12, 1, seed=1)
    name = type(measure).__name__.lower()
    if isinstance(measure, measures.DTW):
        torch.testing.assert_close(measure(x, y), dtw(x, y, cost="cityblock", warp_penalty=0.1))
    else:
        function = getattr(torchsoftdtw, {"shapedtw": "shape_dtw"}.get(name, name))
        torch.testing.assert_close(measure(x, y, gamma=0.1), function(x, y, gamma=0.1, **measure._parameters()))
    found = elastic_path(x, y, measure)
    torch.testing.assert_close(found.value, measure(x, y))
    for path, steps in zip(found.paths, found.steps, strict=True):
        moves = path.diff(dim=0, prepend=path.new_full((1, 2), -1))
        assert torch.equal(moves, torch.tensor([[1, 1], [1, 0], [0, 1]])[steps.long()])


def test_paths_of_spoiled_pairs_are_empty():
    x, y = normal(2, 5, 1), normal(2, 4, 1, seed=1)
    x[0, 2] = math.nan
    found = elastic_path(x, y, measures.TWED())
    assert found.paths[0].shape == (0, 2)
    assert len(found.steps[0]) == 0
    assert len(found.paths[1]) > 0


def test_loss_is_reduced_debiased_and_learns_gamma():
    x, y = normal(3, 8, 1).requires_grad_(), normal(3, 7, 1, seed=1)
    measure = measures.MSM(c=0.4)
    each = ElasticLoss(measure, 0.2, reduction="none")(x, y)
    torch.testing.assert_close(each, msm(x, y, c=0.4, gamma=0.2))
    torch.testing.assert_close(ElasticLoss(measure, 0.2)(x, y), each.mean())
    torch.testing.assert_close(ElasticLoss(measure, 0.2, reduction="sum")(x, y), each.sum())
    debiased = ElasticLoss(measure, 0.2, divergence=True, reduction="none")
    assert debiased(x, x.detach()).abs().max() < 1e-12
    torch.testing.assert_close(debiased(x, y), each - msm(x, x, c=0.4, gamma=0.2) / 2 - msm(y, y, c=0.4, gamma=0.2) / 2)
    gamma = torch.nn.Parameter(torch.tensor(0.3, dtype=torch.float64))
    loss = ElasticLoss(measure, gamma)
    loss(x, y).backward()
    assert gamma.grad is not None
    assert [name for name, _ in loss.named_parameters()] == ["gamma"]


@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.parametrize("gamma", [0.0, 0.2])
def test_torch_func_maps_and_differentiates(name, gamma):
    x, y = normal(4, 3, 7, 1), normal(4, 3, 6, 1, seed=1)
    function = SYMMETRIC[name]
    mapped = torch.func.vmap(lambda a, b: function(a, b, gamma=gamma))(x, y)
    expected = torch.stack([function(a, b, gamma=gamma) for a, b in zip(x, y, strict=True)])
    torch.testing.assert_close(mapped, expected)
    per_sample = torch.func.vmap(torch.func.grad(lambda a, b: function(a, b, gamma=gamma).sum()))(x, y)
    leaf = x.clone().requires_grad_()
    total = sum(function(a, b, gamma=gamma).sum() for a, b in zip(leaf, y, strict=True))
    torch.testing.assert_close(per_sample, torch.autograd.grad(total, leaf)[0])


@pytest.mark.parametrize("gamma", [0.0, 0.2])
def test_second_derivatives_and_forward_mode_say_what_exists(gamma):
    x, y = normal(2, 5, 1).requires_grad_(), normal(2, 4, 1, seed=1)
    (gradient,) = torch.autograd.grad(twed(x, y, gamma=gamma).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="first order"):
        gradient.sum().backward()
    with pytest.raises(RuntimeError, match="first order"):
        torch.func.jvp(lambda a: twed(a, y, gamma=gamma), (x.detach(),), (x.detach(),))


@pytest.mark.parametrize("name", SYMMETRIC)
def test_torch_compile_gives_the_same(name):
    torch._dynamo.reset()  # each test counts for itself against the limit of recompilations
    function = SYMMETRIC[name]
    for gamma in (0.0, 0.2):
        x, y = normal(2, 6, 1).requires_grad_(), normal(2, 5, 1, seed=1).requires_grad_()
        compiled = torch.compile(lambda a, b, gamma=gamma: function(a, b, gamma=gamma), fullgraph=True, backend="aot_eager")
        expected = function(x, y, gamma=gamma)
        value = compiled(x, y)
        torch.testing.assert_close(value, expected)
        for actual, own in zip(
            torch.autograd.grad(value.sum(), (x, y)), torch.autograd.grad(expected.sum(), (x, y)), strict=True
        ):
            torch.testing.assert_close(actual, own)


@pytest.mark.usefixtures("filled_memory")
@pytest.mark.parametrize("gamma", [0.0, 0.2])
@pytest.mark.parametrize("measure", ["edit", "twed", "msm", "edr", "weighted"])
def test_opcheck(measure, gamma):
    x, y = normal(2, 5, 1).requires_grad_(), normal(2, 4, 1, seed=1).requires_grad_()
    has_gaps = measure in ("edit", "twed")
    gaps = (normal(2, 5).abs(), normal(2, 4).abs()) if has_gaps else (None, None)
    inputs = (None, None, x, y, None, None, *gaps, None, None, None, None, None, -1, gamma, 0.3, measure, "cityblock")
    torch.library.opcheck(torch.ops.torchsoftdtw.elastic.default, (*inputs, False, "auto", True))


@pytest.mark.usefixtures("filled_memory")
@pytest.mark.parametrize("gamma", [0.0, 0.2])
def test_opcheck_from_costs(gamma):
    costs = [normal(2, 5, 4, seed=seed).abs().requires_grad_() for seed in range(3)]
    inputs = (*costs, None, None, None, None, -1, gamma, False, "auto", True)
    torch.library.opcheck(torch.ops.torchsoftdtw.elastic_from_costs.default, inputs)


def test_codes_with_times_go_through_ready_made_costs():
    """TWED on categories: distances of a table, times of their own."""
    codes_x, codes_y = torch.tensor([0, 1, 2, 1]), torch.tensor([0, 2, 1])
    apart = (codes_x.unsqueeze(1) != codes_y.unsqueeze(0)).double()
    own = apart.clone()
    own[1:, 1:] += apart[:-1, :-1]
    up = torch.cat([torch.zeros(1), (codes_x.diff() != 0).double()]) + 1
    left = torch.cat([torch.zeros(1), (codes_y.diff() != 0).double()]) + 1
    value = elastic_from_costs(own, up.double(), left.double())
    one_hot = torch.nn.functional.one_hot(codes_x, 3).double() / 2, torch.nn.functional.one_hot(codes_y, 3).double() / 2
    torch.testing.assert_close(value, twed(*one_hot, nu=0.0, lmbda=1.0, degree=1))


def test_inf_forbids_a_step():
    diagonal = torch.zeros(2, 2, dtype=torch.float64)
    nothing = torch.full((2,), math.inf, dtype=torch.float64)
    for gamma in (0.0, 0.1):
        assert elastic_from_costs(diagonal, nothing, nothing, gamma).item() == pytest.approx(0.0, abs=1e-12)
        diagonal_only = torch.tensor([[0.0, 0.0], [0.0, math.inf]], dtype=torch.float64)
        assert elastic_from_costs(diagonal_only, nothing, nothing, gamma).item() == math.inf
        assert elastic_from_costs(-diagonal - 3, nothing, nothing, gamma).item() == pytest.approx(-6.0)


X, Y = torch.zeros(2, 5, 1), torch.zeros(2, 4, 1)
ERRORS = [
    (lambda: twed(X, Y, nu=-1.0), ValueError, "nu"),
    (lambda: twed(X, Y, nu=torch.tensor([-1.0, 1.0])), ValueError, "nu"),
    (lambda: twed(X, Y, lmbda=-1.0), ValueError, "lmbda"),
    (lambda: twed(X, Y, lmbda=math.nan), ValueError, "lmbda"),
    (lambda: twed(X, Y, degree=0), ValueError, "degree"),
    (lambda: twed(X, Y, degree="2"), TypeError, "degree"),
    (lambda: twed(torch.zeros(2, 5, 2), torch.zeros(2, 4, 2), degree=3), ValueError, "degree"),
    (lambda: twed(X, Y, gamma=-1.0), ValueError, "gamma"),
    (lambda: twed(X, Y, gamma=math.nan), ValueError, "gamma"),
    (lambda: twed(X, Y, x_times=torch.arange(5)), ValueError, "y_times"),
    (lambda: twed(X, Y, x_times=torch.arange(4), y_times=torch.arange(4)), ValueError, "x_times"),
    (lambda: twed(X, Y, x_times=[1, 2, 3, 4, 5], y_times=torch.arange(4)), TypeError, "x_times"),
    (lambda: twed(X, Y, x_times=torch.zeros(5, dtype=torch.bool), y_times=torch.arange(4)), TypeError, "x_times"),
    (lambda: twed(X, Y, x_times=-torch.arange(5), y_times=torch.arange(4)), ValueError, "x_times"),
    (lambda: msm(X, Y, c=-1.0), ValueError, "c:"),
    (lambda: erp(X, Y, g=torch.zeros(3)), ValueError, "g:"),
    (lambda: erp(X, Y, g="0"), TypeError, "g:"),
    (lambda: edr(X, Y, epsilon=-1.0), ValueError, "epsilon"),
    (lambda: lcss(X, Y, epsilon=-1.0), ValueError, "epsilon"),
    (lambda: edr(X, Y, normalize=1), TypeError, "normalize"),
    (lambda: wdtw(X, Y, g=-1.0), ValueError, "g:"),
    (lambda: twed(X, torch.zeros(2, 4, 2)), ValueError, "dimension"),
    (lambda: ddtw(X[:, :2], Y), ValueError, "at least 3"),
    (lambda: ddtw(X, Y, x_lengths=[5, 2]), ValueError, "at least 3"),
    (lambda: shape_dtw(X, Y, reach=-1), ValueError, "reach"),
    (lambda: shape_dtw(X, Y, reach=1.5), TypeError, "reach"),
    (lambda: elastic_path(X, Y, "twed"), TypeError, "measure"),
    (lambda: elastic_path(torch.zeros(2, 5, 2), torch.zeros(2, 4, 2), measures.MSM()), ValueError, "one dimension"),
    (lambda: ElasticLoss("twed"), TypeError, "measure"),
    (lambda: ElasticLoss(measures.TWED(), reduction="max"), ValueError, "reduction"),
    (lambda: lcss(X, Y, gamma=0.1, return_subsequence=True), ValueError, "gamma"),
    (lambda: twed(X, Y, kernel="stencil"), ValueError, "kernel"),
    (lambda: measures.TWED(nu=-1.0), ValueError, "nu"),
    (lambda: measures.TWED(degree=0), ValueError, "degree"),
    (lambda: measures.MSM(c="1"), TypeError, "c:"),
    (lambda: measures.ShapeDTW(reach=-1), ValueError, "reach"),
    (lambda: elastic_from_costs(torch.zeros(2, 3), torch.zeros(3), torch.zeros(3)), ValueError, "up"),
    (lambda: elastic_from_costs(torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(3), border="sum"), ValueError, "up"),
    (lambda: elastic_from_costs(torch.zeros(2, 3), torch.zeros(2), torch.zeros(3), border="zero"), ValueError, "border"),
]


@pytest.mark.parametrize("place", range(len(ERRORS)))
def test_errors_name_the_argument(place):
    call, error, name = ERRORS[place]
    with pytest.raises(error, match=name):
        call()
