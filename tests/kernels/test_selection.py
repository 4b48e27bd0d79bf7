"""Which kernel takes a call: csrc/cuda/select, which asks no GPU."""

import pytest
import torch
from cases import KERNELS, OF_GPU, KernelCase, normal

from torchsoftdtw import select_kernel, soft_dtw, soft_dtw_alignment, soft_dtw_from_cost
from torchsoftdtw._inputs import repeats
from torchsoftdtw._kernels import ops, selection

# Capability, multiprocessors, shared memory of a block, how much faster float32 is than float64.
DEVICES = {
    "sm_75": (75, 40, 65536, 32),
    "sm_80": (80, 108, 166912, 2),
    "sm_86": (86, 84, 101376, 32),
    "sm_89": (89, 142, 101376, 64),
    "sm_90": (90, 132, 232448, 2),
    "sm_100": (100, 148, 232448, 2),
    "sm_120": (120, 170, 101376, 64),
}
PLAIN = (False, False, False)  # no band, no penalty, no lengths


def chosen(
    device,
    batch,
    n,
    dim=1,
    dtype=torch.float32,
    gradient=False,
    kernel="auto",
    cost="sqeuclidean",
    options=PLAIN,
    radius=-1,
):
    is_float64 = dtype == torch.float64
    return ops.select_kernel(kernel, batch, n, n, dim, is_float64, cost, *options, gradient, *DEVICES[device], radius)[0]


# What every device takes: (batch, length, dim, dtype, kernel) -> by device, the last one for those that are not named.
TABLE = [
    # Float64 is slow on most: float32 pairs begin in integer log2 there, and float64 ones have no fast format.
    ((4096, 512, 1, torch.float32, "stencil"), {"sm_75 sm_86 sm_89 sm_120": "integer_log2", "": "linear_domain"}),
    ((4096, 512, 1, torch.float64, "stencil"), {"sm_75 sm_86 sm_89 sm_120": "extended_range", "": "linear_domain"}),
    ((4096, 800, 1, torch.float32, "stencil"), {"": "vector_log2"}),
    ((4096, 2049, 1, torch.float32, "stencil"), {"": "extended_range"}),
    # A block needs 216 KiB of shared memory, and barriers in it.
    (
        (2, 2048, 1, torch.float32, "tiled"),
        {"sm_75": "extended_range", "sm_90 sm_100": "bidirectional", "": "warp_specialised"},
    ),
    ((2, 2048, 1, torch.float64, "tiled"), {"": "extended_range"}),
    ((2, 250, 3, torch.float32, "tiled"), {"sm_75": "extended_range", "": "few_dims"}),
    ((2, 250, 40, torch.float32, "tiled"), {"sm_75": "extended_range", "": "multivariate"}),
    ((400, 500, 40, torch.float32, "stencil"), {"sm_75": "extended_range", "": "multivariate"}),
    ((2, 500, 3, torch.float32, "diagonal"), {"": "plain"}),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("call", "expected"), TABLE)
def test_what_a_device_lacks_is_met_by_the_plan(device, call, expected):
    batch, n, dim, dtype, kernel = call
    wanted = next(name for devices, name in expected.items() if device in devices.split() or not devices)
    for gradient in (False, True):
        assert chosen(device, batch, n, dim, dtype, gradient, kernel) == f"{kernel}/{wanted}"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("cost", ["euclidean", "cityblock", "huber"])
def test_costs_of_several_dimensions_are_met_as_squared_ones_are(cost, device):
    def name_of(batch, n, dim, kernel, gradient):
        return chosen(device, batch, n, dim, gradient=gradient, kernel=kernel, cost=cost)

    for gradient in (False, True):
        for batch, n, dim, kernel in (
            (2, 500, 3, "tiled"),
            (2, 500, 8, "tiled"),
            (400, 500, 8, "tiled"),
            (400, 500, 8, "stencil"),
        ):
            assert name_of(batch, n, dim, kernel, gradient) == chosen(
                device, batch, n, dim, gradient=gradient, kernel=kernel
            )
        for kernel in ("tiled", "stencil"):
            # Gradients of many dimensions that are divided by costs need more shared memory than some devices have.
            lacks = device == "sm_75" or (cost == "euclidean" and device in ("sm_86", "sm_89", "sm_120"))
            expected = "extended_range" if lacks else "multivariate"
            assert name_of(2, 250, 40, kernel, gradient) == f"{kernel}/{expected}"
        for batch in (1, 100, 5000):
            for n in (100, 1000):
                assert name_of(batch, n, 4, "auto", gradient) == chosen(device, batch, n, 4, gradient=gradient)
        assert chosen(device, 2, 500, 40, torch.float64, gradient, "tiled", cost) == "tiled/extended_range"


@pytest.mark.parametrize("device", DEVICES)
def test_every_call_has_a_kernel_on_every_device(device):
    for kernel in ("auto", *selection.CUDA_KERNELS):
        for options in (PLAIN, (True, True, True)):
            for dtype in (torch.float32, torch.float64):
                for dim, cost in ((1, "sqeuclidean"), (5, "sqeuclidean"), (100, "euclidean"), (1, "matrix")):
                    for batch, n in ((1, 1), (1, 10**6), (10**6, 100)):
                        assert chosen(device, batch, n, dim, dtype, True, kernel, cost, options)


def test_what_pays_goes_by_the_number_of_multiprocessors():
    """As many pairs for each of them, the same kernel."""
    for n in (200, 400, 700, 2000):
        for dim in (1, 2, 4, 8, 12):
            for gradient in (False, True):
                for of_processor in (0.4, 0.6, 1.5, 2.4, 6, 20):
                    names = {
                        chosen(device, round(of_processor * DEVICES[device][1]), n, dim, gradient=gradient).split("/")[0]
                        for device in ("sm_80", "sm_90", "sm_100")
                    }
                    assert len(names) == 1, (n, dim, gradient, of_processor, names)


@pytest.mark.parametrize("n", [1, 100, 1024, 5000])
def test_the_cpu_has_one_kernel(n):
    assert select_kernel(n, batch=3, device="cpu") == "cpu"


@pytest.mark.parametrize("device", ["sm_80", "sm_86", "sm_90"])
@pytest.mark.parametrize("cost", ["sqeuclidean", "euclidean", "cityblock", "huber"])
def test_many_pairs_of_few_dimensions_are_integer_log2(cost, device):
    def is_log2(batch, n, dim, gradient, options=PLAIN):
        found = chosen(device, batch, n, dim, gradient=gradient, cost=cost, options=options)
        return found in (("stencil/banded", "stencil/vector_log2") if options[0] else ("stencil/vector_log2",))

    for dim in (2, 3, 4, 5, 8):
        for n in (10, 96, 256, 512, 1024, 2048):
            for gradient in (False, True):
                assert is_log2(4096, n, dim, gradient) and is_log2(4096, n, dim, gradient, (False, True, True))
                assert not is_log2(64, n, dim, gradient) and is_log2(4096, n, dim, gradient, (True, False, False))
    for dim, n in ((1, 96), (9, 96), (4, 2049)):
        assert not is_log2(4096, n, dim, True)
    # A loss has fewer pairs than values alone need.
    fewest = 400 * DEVICES[device][1] // 132
    assert is_log2(fewest, 100, 4, True) and not is_log2(fewest, 100, 4, False)


def test_length_decides_before_batch():
    assert chosen("sm_90", 133, 512).startswith("stencil")
    assert chosen("sm_90", 133, 513).startswith("tiled")
    assert chosen("sm_90", 10_000, 513).startswith("stencil")
    assert chosen("sm_90", 1, 20_000, 8, torch.float64).startswith("tiled")


def test_hardly_any_pairs_are_spread_over_more_blocks():
    assert chosen("sm_90", 1, 144).startswith("stencil")
    assert chosen("sm_90", 132, 145).startswith("tiled")
    assert chosen("sm_90", 132, 256, gradient=True).startswith("tiled")
    for dim in (1, 2, 20):
        assert chosen("sm_90", 132, 512, dim, torch.float64).startswith("stencil")


@pytest.mark.parametrize(("dtype", "gradient"), [(torch.float32, False), (torch.float32, True), (torch.float64, False)])
@pytest.mark.parametrize("dim", [1, 2, 4])
def test_pairs_are_spread_until_there_are_many(dim, dtype, gradient):
    fewest = next(b for b in range(2000) if chosen("sm_90", b, 1000, dim, dtype, gradient).startswith("stencil"))
    assert 64 < fewest < 768


def test_kernels_take_turns_as_either_starts_another_round_of_blocks():
    names = [chosen("sm_90", batch, 3000, 3, gradient=True).split("/")[0] for batch in (329, 330, 396, 397, 459, 460)]
    assert names == ["tiled", "stencil", "stencil", "tiled", "tiled", "stencil"]


def test_gradients_of_several_dimensions_are_products_for_longer():
    for dim in (6, 8, 15):
        assert chosen("sm_90", 1000, 3000, dim, gradient=True).startswith("tiled")
        assert chosen("sm_90", 1000, 3000, dim).startswith("stencil")
        assert chosen("sm_90", 2000, 3000, dim, gradient=True).startswith("stencil")


BAND, PENALTY = {"options": (True, False, False), "radius": 20}, {"options": (False, True, False)}
# (options, gradients, length, dim) -> from how many pairs on stencil has them, on an H200; None: never.
OPTIONS_OF_VECTORS = [
    ((BAND, False, 128, 3), 133),
    ((BAND, False, 512, 8), 265),
    ((BAND, True, 512, 4), 232),
    ((BAND, True, 512, 8), 331),
    ((BAND, False, 3000, 4), 950),
    ((BAND, True, 3000, 4), 1400),
    ((BAND, False, 3000, 8), 700),
    ((BAND, True, 3000, 8), None),
    ((BAND, False, 512, 12), None),
    ((BAND, True, 512, 12), 1500),
    ((PENALTY, False, 200, 3), 133),
    ((PENALTY, False, 512, 4), 265),
    ((PENALTY, True, 128, 4), 265),
    ((PENALTY, True, 512, 4), 205),
    ((PENALTY, True, 512, 8), 265),
    ((PENALTY, False, 512, 8), 265),
    ((PENALTY, False, 3000, 4), 1600),
    ((PENALTY, True, 3000, 8), None),
    ((PENALTY, True, 512, 12), None),
]


@pytest.mark.parametrize(("call", "fewest"), OPTIONS_OF_VECTORS, ids=str)
def test_bands_and_penalties_of_vectors_are_spread_for_longer(call, fewest):
    options, gradient, n, dim = call

    def kernel_of(batch, cost):
        return chosen("sm_90", batch, n, dim, gradient=gradient, cost=cost, **options)

    for cost in ("sqeuclidean", "euclidean", "huber"):
        few = "bidirectional" if not gradient and n >= 256 else "multivariate" if dim > 8 else "few_dims"
        assert kernel_of(1, cost) == f"tiled/{few}"
        if fewest is None:
            assert kernel_of(10**6, cost) == "tiled/multivariate"
        else:
            assert kernel_of(fewest - 1, cost).startswith("tiled/")
            is_log2 = dim <= 8 and n <= 2048
            assert kernel_of(fewest, cost) == f"stencil/{'vector_log2' if is_log2 else 'extended_range'}"


def test_values_of_vectors_leave_tiled_where_its_blocks_would_take_a_third_turn():
    def names(n, **options):
        return [chosen("sm_90", batch, n, 6, **options) for batch in (264, 265)]

    assert names(512) == ["tiled/few_dims", "stencil/extended_range"]
    assert names(512, **BAND) == ["tiled/few_dims", "stencil/vector_log2"]
    assert chosen("sm_90", 250, 1000, 6, **BAND) == "stencil/extended_range"


@pytest.mark.parametrize("device", ["sm_80", "sm_86", "sm_90"])
def test_many_pairs_of_ready_made_costs_are_integer_log2(device):
    def is_log2(batch, n, gradient, options=PLAIN, dtype=torch.float32):
        found = chosen(device, batch, n, 1, dtype, gradient, cost="matrix", options=options)
        return found == "stencil/vector_log2"

    for n in (10, 96, 256, 512, 1024, 2048):
        for gradient in (False, True):
            assert is_log2(5000, n, gradient) and is_log2(5000, n, gradient, (False, True, True))
            assert not is_log2(64, n, gradient) and not is_log2(5000, n, gradient, dtype=torch.float64)
    assert not is_log2(5000, 2049, True)
    fewest = 800 * DEVICES[device][1] // 132
    assert is_log2(fewest, 200, True) and not is_log2(fewest, 200, False)


@pytest.mark.parametrize("options", [PLAIN, (True, True, True)])
def test_few_pairs_of_ready_made_costs_have_warps_of_their_own(options):
    def kernel_of(batch, n, gradient, device="sm_90"):
        return chosen(device, batch, n, gradient=gradient, cost="matrix", options=options)

    for n in (100, 300, 1000, 5000):
        for gradient in (False, True):
            assert kernel_of(16, n, gradient) == "tiled/ready_made"
            assert kernel_of(16, n, gradient, "sm_75") in ("tiled/extended_range", "stencil/extended_range")
    assert kernel_of(400, 200, True) == "tiled/ready_made" and kernel_of(400, 200, False) == "stencil/extended_range"
    assert kernel_of(500, 200, True) == "stencil/extended_range" and kernel_of(3000, 3000, True) == "tiled/ready_made"
    assert kernel_of(500, 3000, False) == "stencil/extended_range"


def test_many_dimensions_spread_a_pair_over_more_blocks():
    for batch in (1, 5000):
        assert chosen("sm_90", batch, 512, 16).startswith("tiled")
    assert chosen("sm_90", 1, 200, 16).startswith("stencil")


def test_the_fast_formats_take_penalties_and_costs_of_one_dimension():
    short = {"batch": 5000, "specialization": True}
    for cost in ("sqeuclidean", "euclidean", "cityblock", "huber"):
        for penalty in (0.0, 0.1):
            for dtype in (torch.float32, torch.float64):
                options = {"cost": cost, "warp_penalty": penalty, "dtype": dtype, **short}
                assert select_kernel(200, **options) == "stencil/linear_domain"
        assert select_kernel(200, dim=2, cost=cost, **short) == "stencil/vector_log2"
    assert select_kernel(200, warp_penalty=0.1, bandwidth=3, **short) == "stencil/banded"
    assert chosen("sm_86", 5000, 200, cost="cityblock", kernel="stencil") == "stencil/integer_log2"
    # Of few pairs tiled has fast kernels, too, and of long ones alone.
    for option in ({}, {"cost": "huber"}, {"options": (False, True, False)}):
        for gradient in (False, True):
            assert chosen("sm_90", 1, 512, gradient=gradient, **option) == "tiled/bidirectional"
            assert chosen("sm_90", 400, 512, gradient=gradient, **option) == "stencil/linear_domain"
    # Many long ones are integer log2's, whatever the cost; with lengths likewise.
    for option in ({}, {"cost": "huber"}, {"options": (False, True, True)}):
        assert chosen("sm_90", 10**5, 513, gradient=True, **option) == "stencil/vector_log2"
        assert chosen("sm_90", 10**5, 2049, gradient=True, **option) != "stencil/vector_log2"
    assert chosen("sm_90", 10**5, 2049, gradient=True, options=(False, True, False)) == "tiled/warp_specialised"


@pytest.mark.parametrize("gradient", [False, True])
def test_few_long_pairs_have_their_kernels_whatever_the_options(gradient):
    call = {"gradient": gradient, "specialization": True}
    for options in ({}, {"bandwidth": 0}, {"bandwidth": 200}, {"warp_penalty": 0.1}, {"cost": "cityblock"}):
        for others in ({}, {"warp_penalty": 2.0}, {"cost": "huber"}):
            assert select_kernel(2000, batch=2, **options | others, **call) == "tiled/bidirectional"
            assert select_kernel(2000, 255, batch=2, **options | others, **call) == "tiled/warp_specialised"
    # Lengths, and bands of each pair's own, which a side could not share out between blocks.
    for options in ((False, False, True), (True, False, True), (True, True, True)):
        assert chosen("sm_90", 2, 2000, gradient=gradient, options=options) == "tiled/warp_specialised"
    assert chosen("sm_90", 2, 2000, gradient=gradient, cost="matrix") == "tiled/ready_made"


def test_bands_from_both_ends_while_their_blocks_take_few_turns():
    def names(batch, n):
        return [
            chosen("sm_90", batch, n, gradient=gradient, options=(True, False, False), radius=n // 10).split("/")[1]
            for gradient in (False, True)
        ]

    assert names(64, 1024) == names(64, 700) == names(32, 2048) == ["bidirectional"] * 2
    assert names(128, 1024) == names(64, 2048) == ["bidirectional", "warp_specialised"]
    assert names(200, 1024) == ["warp_specialised"] * 2


def test_values_of_vectors_from_both_ends_while_costs_keep_up():
    def fewest(n, **options):
        found = (b for b in range(1, 999) if chosen("sm_90", b, n, 5, kernel="tiled", **options) != "tiled/bidirectional")
        return next(found)

    assert [fewest(n) for n in (255, 256, 512, 1024, 2048, 9000)] == [1, 67, 34, 17, 9, 2]
    assert [fewest(n, **BAND) for n in (255, 256, 512, 1024, 2048, 9000)] == [1, 67, 67, 67, 34, 8]
    assert fewest(512, gradient=True) == fewest(512, options=(False, False, True)) == 1
    assert chosen("sm_80", 1, 512, 5) == "tiled/few_dims"  # for want of shared memory


@pytest.mark.parametrize(
    ("dim", "cost", "without_band", "with_band"),
    [
        (9, "sqeuclidean", [1, 67, 34, 17, 5], 89),
        (63, "euclidean", [1, 67, 34, 17, 5], 89),
        (64, "sqeuclidean", [1, 50, 25, 13, 4], 45),
        (64, "huber", [1, 265, 133, 67, 17], 67),
    ],
)
def test_values_of_many_dimensions_from_both_ends_while_their_strips_have_a_place(dim, cost, without_band, with_band):
    def fewest(n, device="sm_90", cost=cost, **options):
        names = (chosen(device, b, n, dim, kernel="tiled", cost=cost, **options) for b in range(1, 999))
        return 1 + next(i for i, name in enumerate(names) if name != "tiled/bidirectional")

    for options in ({}, {"options": (False, True, False)}):
        assert [fewest(n, **options) for n in (255, 256, 512, 1024, 4096)] == without_band
        assert fewest(512, gradient=True, **options) == fewest(512, "sm_75", **options) == 1
    assert [fewest(n, **BAND) for n in (255, 256, 512, 4096)] == [1, with_band, with_band, with_band]
    assert fewest(512, options=(False, False, True)) == fewest(512, options=(True, False, True)) == 1
    assert chosen("sm_80", 1, 512, dim) == chosen("sm_86", 1, 512, dim) == "tiled/bidirectional"


def test_what_is_kept_with_a_penalty_or_another_cost_has_two_rows_a_lane():
    def rows(gradient, cost="sqeuclidean", options=PLAIN):
        sizes = ("tiled", 1, 132_000, 132_000, 1, False)
        return ops.select_kernel(*sizes, cost, *options, gradient, *DEVICES["sm_90"])[1]

    for options in ({}, {"options": (True, False, False)}):
        assert rows(True, **options) == rows(False, **options) == 4
    for options in ({"options": (False, True, False)}, {"cost": "cityblock"}):
        assert rows(True, **options) == 2
        assert rows(False, **options) == 4


# (radius, penalty, lengths of each pair's own, length) -> what takes the band. A radius of -1: each pair has its own.
BANDS = [
    ((5, False, False, 200), "banded"),
    ((0, False, False, 750), "banded"),
    ((139, False, False, 500), "banded"),  # 279 columns
    ((140, False, False, 500), "linear_domain"),
    ((499, False, False, 500), "linear_domain"),
    ((140, True, False, 500), "integer_log2"),
    ((140, False, True, 500), "linear_domain"),
    ((140, False, False, 600), "extended_range"),
    ((40, False, False, 90), "banded"),
    ((70, False, False, 90), "linear_domain"),  # most of the table
    ((5, False, False, 751), "banded"),
    ((100, False, False, 2048), "banded"),
    ((5, False, False, 2049), "extended_range"),
    ((5, True, False, 200), "banded"),
    ((5, False, True, 700), "banded"),
    ((-1, False, True, 700), "banded"),
]


@pytest.mark.parametrize(("band", "expected"), BANDS)
def test_a_band_goes_to_the_ring_that_is_wide_enough(band, expected):
    radius, penalty, ragged, n = band
    options = (True, penalty, ragged)
    for gradient in (False, True):
        named = chosen("sm_90", 5000, n, kernel="stencil", gradient=gradient, options=options, radius=radius)
        assert named == f"stencil/{expected}"

    def taken(device, **other):
        return chosen(device, 5000, n, kernel="stencil", options=options, radius=radius, **other)

    assert taken("sm_90", dtype=torch.float64) == "stencil/extended_range"
    for device in "sm_90", "sm_89":
        for other in {}, {"cost": "euclidean"}, {"cost": "huber"}:
            in_linear_domain = device == "sm_90" and not other
            own = "integer_log2" if expected == "linear_domain" and not in_linear_domain else expected
            assert taken(device, **other) == f"stencil/{own}"


def test_a_band_as_wide_as_the_series_is_none():
    for batch, n, dim in ((5000, 200, 1), (2, 2000, 1), (5000, 200, 3), (4, 500, 20)):
        plain = chosen("sm_90", batch, n, dim)
        assert all(chosen("sm_90", batch, n, dim, options=(True, False, False), radius=z) == plain for z in (n, 2**40))


def test_gradients_of_a_few_hundred_pairs_take_as_long_whatever_the_data():
    """Since stencil, where a pair may have to try several number formats, is no faster in the mean."""
    for batch, n in ((133, 300), (200, 400), (396, 512)):
        assert chosen("sm_90", batch, n, gradient=True).startswith("tiled")
        assert chosen("sm_90", batch, n) == "stencil/linear_domain"
    for batch, n in ((133, 256), (200, 300), (397, 512)):
        assert chosen("sm_90", batch, n, gradient=True) == "stencil/linear_domain"


def test_few_pairs_with_a_wide_band_have_strips():
    call = {"options": (True, False, False), "radius": 140}
    assert chosen("sm_90", 511, 500, **call) == "stencil/extended_range"
    assert chosen("sm_90", 512, 500, **call) == "stencil/linear_domain"
    assert chosen("sm_90", 5, 500, kernel="stencil/linear_domain", **call) == "stencil/linear_domain"
    assert chosen("sm_90", 150, 250, **call) == "stencil/linear_domain"


def test_more_strips_mean_more_rows_a_thread():
    def rows(batch, n, dim=1, dtype=torch.float32, kernel="tiled", gradient=False, cost="sqeuclidean"):
        is_float64 = dtype == torch.float64
        answer = ops.select_kernel(kernel, batch, n, n, dim, is_float64, cost, *PLAIN, gradient, *DEVICES["sm_90"])
        return answer[1]

    assert [rows(1, 100), rows(64, 1000), rows(4096, 1000)] == [2, 2, 4]
    assert rows(4096, 1000, gradient=True) == 2
    assert [rows(1, 100, kernel="stencil"), rows(1, 500, kernel="stencil")] == [2, 4]
    assert rows(4096, 1000, dtype=torch.float64) == 2
    assert rows(1, 9, kernel="diagonal") == 0
    for dim, gradient, expected in ((3, False, 4), (4, False, 4), (8, False, 2), (3, True, 2), (8, True, 2)):
        assert rows(2000, 3000, dim, kernel="stencil", gradient=gradient) == expected
    assert rows(2000, 300, 3, kernel="stencil") == 2  # of what integer log2 of vectors gives up
    for kernel in ("stencil", "tiled"):
        assert [rows(4096, 1000, kernel=kernel, gradient=keeps, cost="matrix") for keeps in (False, True)] == [2, 2]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_precision_counts_as_float32(dtype):
    for batch, n in ((1, 64), (600, 64), (2000, 64), (64, 2048)):
        assert select_kernel(n, batch=batch, dtype=dtype) == select_kernel(n, batch=batch)


def record_plans(monkeypatch):
    """Collects the kernel and rows per thread that every forward op is given."""
    plans, forward = [], ops.forward
    monkeypatch.setattr(ops, "forward", lambda *inputs: plans.append(inputs[-3:-1]) or forward(*inputs))
    return plans


def test_what_is_chosen_is_what_runs(monkeypatch):
    plans = record_plans(monkeypatch)
    monkeypatch.setattr(repeats, "known", {})
    soft_dtw(torch.zeros(2, 5, 1), torch.zeros(2, 6, 1))
    assert plans == [("cpu", 0)]
    assert select_kernel(5, 6, batch=2, device="cpu") == "cpu"


def code_of(name, rows=2):
    """Plan::code in csrc/cuda/select/plan.cpp."""
    kernel, specialization = name.split("/")
    order = (
        *("plain", "linear_domain", "integer_log2", "extended_range", "warp_specialised", "bidirectional", "few_dims"),
        *("multivariate", "banded", "vector_log2", "ready_made"),
    )
    return 1 + selection.CUDA_KERNELS.index(kernel) + 3 * (order.index(specialization) + 16 * (rows == 4))


OF_KERNELS = [pytest.param(case, id=str(case), marks=OF_GPU) for case in KERNELS if case.is_cuda]


@pytest.mark.parametrize("case", OF_KERNELS)
@pytest.mark.parametrize(
    "sizes", [(3, 40, 30, 1), (600, 20, 20, 1), (1, 300, 300, 1), (2, 70, 40, 3), (2, 70, 40, 20)], ids=str
)
def test_what_is_saved_says_what_ran(case, sizes):
    batch, n, m, dim = sizes
    x, y = (normal(batch, length, dim, seed=length).float().to(case.device) for length in (n, m))
    saved = ops.forward(x, y, *(None,) * 5, -1, 1.0, 0.0, "sqeuclidean", case.name, 0, True)[1]
    expected = select_kernel(n, m, batch=batch, dim=dim, gradient=True, kernel=case.name, specialization=True)
    assert saved.numel() % 256 in (code_of(expected), code_of(expected, rows=4))
    assert saved.numel() == (ops.cuda_saved_size(*sizes, False, "sqeuclidean", False, False, -1, False, case.name, 0, 0))


@pytest.mark.parametrize("name", [pytest.param(name, marks=OF_GPU) for name in ("stencil", "tiled")])
def test_backward_does_what_forward_saved_whatever_it_would_choose(name):
    """A plan is made once: both kernels' passes, where the name that backward is given says another one."""
    case = next(kernel for kernel in KERNELS if kernel.name == name)
    x, y = (normal(2, 60, 1, seed=seed).float().to(case.device) for seed in (1, 2))
    shared = (*(None,) * 5, -1, 1.0, 0.0, "sqeuclidean")
    value, saved = ops.forward(x, y, *shared, name, 0, True)
    ones = torch.ones_like(value)
    gradients = [ops.backward(ones, x, y, value, saved, *shared, other, 0, True, True) for other in ("stencil", "tiled")]
    for a, b in zip(*gradients, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(f"{kernel}/{specialization}", marks=OF_GPU)
        for kernel, names in selection.SPECIALIZATIONS.items()
        for specialization in names
        if specialization not in ("plain", "ready_made")
    ],
)
def test_a_specialisation_can_be_asked_for(name):
    kernel, _, specialization = name.partition("/")
    n, dim = (300, {"few_dims": 3, "multivariate": 20, "vector_log2": 3}.get(specialization, 1))
    device = next(case.device for case in KERNELS if case.name == kernel)
    x, y = (normal(2, n, dim, seed=seed).float().to(device) for seed in (1, 2))
    options = {"bandwidth": 30} if specialization == "banded" else {}
    expected = soft_dtw(x.cpu().double(), y.cpu().double(), 1.0, kernel="cpu", **options)
    actual = soft_dtw(x.requires_grad_(), y, 1.0, kernel=name, **options)
    actual.sum().backward()
    torch.testing.assert_close(actual.detach().cpu().double(), expected, rtol=1e-4, atol=1e-4)
    assert x.grad.isfinite().all()
    if specialization != "extended_range":
        with pytest.raises(ValueError, match=f"kernel: '{name}' does not take these series and options"):
            if dim > 1 or kernel == "tiled" or options:  # any cost, but float32 alone
                soft_dtw(x.double(), y.double(), kernel=name)
            else:
                soft_dtw(x.double(), y.double(), kernel=name, bandwidth=20)
        if specialization != "vector_log2":
            with pytest.raises(ValueError, match=f"kernel: '{name}' does not take"):
                soft_dtw_from_cost(torch.zeros(1, 5, 5, device=device), kernel=name)
    soft_dtw_alignment(x, y, kernel=kernel)


@pytest.mark.parametrize("name", selection.CUDA_KERNELS)
def test_a_cuda_kernel_for_cpu_tensors_is_an_error_that_says_why(name):
    with pytest.raises(ValueError, match=f"kernel: '{name}' runs on CUDA tensors only, and x is on cpu"):
        soft_dtw(torch.zeros(1, 5, 1), torch.zeros(1, 5, 1), kernel=name)


def test_the_cpu_kernel_for_cuda_tensors_is_an_error_that_says_why():
    with pytest.raises(ValueError, match="kernel: 'cpu' runs on CPU tensors only, and x is on cuda"):
        select_kernel(5, kernel="cpu")


@pytest.mark.parametrize("name", ["stencil/bidirectional", "tiled/", "cpu/plain", "level"])
def test_an_unknown_name_is_an_error_that_says_what_is_known(name):
    with pytest.raises(ValueError, match=f"kernel: expected one of 'auto', 'cpu', .* got '{name}'"):
        soft_dtw(torch.zeros(1, 5, 1), torch.zeros(1, 5, 1), kernel=name)


def test_a_device_without_a_kernel_is_an_error():
    with pytest.raises(ValueError, match="device: expected the CPU or CUDA, got mps"):
        select_kernel(5, device="mps")


@pytest.mark.cuda
def test_what_is_chosen_is_what_runs_on_cuda():
    for batch, n, gradient in ((1, 10, False), (1, 3000, False), (600, 1100, False), (600, 1100, True)):
        case = KernelCase("cuda", "auto")
        x, y = torch.zeros(batch, n, 1, device=case.device), torch.zeros(batch, 7, 1, device=case.device)
        saved = ops.forward(x, y, *(None,) * 5, -1, 1.0, 0.0, "sqeuclidean", "auto", 0, True)[1]
        name = select_kernel(n, 7, batch=batch, gradient=True, specialization=True)
        assert saved.numel() % 256 in (code_of(name), code_of(name, rows=4)), gradient
