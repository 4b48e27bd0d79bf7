import pytest
import torch

from torchsoftdtw import select_kernel, soft_dtw, soft_dtw_alignment
from torchsoftdtw._inputs import repeats
from torchsoftdtw._kernels import ops, selection


@pytest.mark.parametrize("n", [1, 100, 1024, 5000])
def test_the_cpu_has_one_kernel(n):
    assert select_kernel(n, batch=3, device="cpu") == "cpu"


def test_length_decides_before_batch():
    several = selection.AT_ONCE + 1
    assert select_kernel(selection.STENCIL_LONGEST, batch=several) == "stencil"
    assert select_kernel(selection.STENCIL_LONGEST + 1, batch=several) == "tiled"
    assert select_kernel(selection.STENCIL_LONGEST + 1, batch=10_000) == "stencil"
    assert select_kernel(20_000, 30_000, batch=1, dim=8, dtype=torch.float64) == "tiled"


def test_hardly_any_pairs_are_spread_over_more_blocks():
    alone = selection.AT_ONCE
    assert select_kernel(selection.STENCIL_LONGEST_ALONE, batch=alone) == "stencil"
    assert select_kernel(selection.STENCIL_LONGEST_ALONE + 1, batch=alone // 2) == "tiled"
    assert select_kernel(selection.STENCIL_LONGEST_ALONE, batch=alone, gradient=True) == "tiled"
    for dim in (1, 2, 20):
        assert select_kernel(selection.STENCIL_LONGEST, batch=alone, dim=dim, dtype=torch.float64) == "stencil"


@pytest.mark.parametrize(("dtype", "gradient"), [(torch.float32, False), (torch.float32, True), (torch.float64, False)])
@pytest.mark.parametrize("dim", [1, 2, 4])
def test_pairs_are_spread_until_there_are_many(dim, dtype, gradient):
    shape = {"n": 1000, "dim": dim, "dtype": dtype, "gradient": gradient}
    fewest = next(batch for batch in range(2000) if select_kernel(**shape, batch=batch) == "stencil")
    assert 64 < fewest < 768


def test_kernels_take_turns_as_either_starts_another_round_of_blocks(monkeypatch):
    monkeypatch.setattr(selection, "OF_GRADIENTS", ((selection.ANY, ((selection.ANY, (3, 5, 8)),)),))
    kernels = [select_kernel(100, batch=batch, gradient=True) for batch in range(1, 10)]
    assert kernels == ["tiled"] * 2 + ["stencil"] * 2 + ["tiled"] * 3 + ["stencil"] * 2


def test_pairs_of_float64_with_gradients_are_spread_in_between():
    shape = {"dim": 4, "dtype": torch.float64, "gradient": True}
    assert select_kernel(selection.STENCIL_LONGEST, **shape, batch=1000) == "stencil"
    assert select_kernel(selection.STENCIL_LONGEST + 1, **shape, batch=1000) == "tiled"
    assert select_kernel(2048, **shape, batch=1000) == "stencil"


def test_gradients_of_several_dimensions_are_products_for_longer():
    for dim in (6, 8, 15):
        assert select_kernel(1000, batch=1000, dim=dim, gradient=True) == "tiled"
        assert select_kernel(1000, batch=1000, dim=dim) == "stencil"
        assert select_kernel(1000, batch=2000, dim=dim, gradient=True) == "stencil"


def test_many_dimensions_spread_a_pair_over_more_blocks():
    assert select_kernel(selection.STENCIL_LONGEST, dim=selection.MANY_DIMS) == "tiled"
    assert select_kernel(selection.STENCIL_LONGEST, dim=selection.MANY_DIMS, batch=5000) == "tiled"
    assert select_kernel(200, dim=selection.MANY_DIMS) == "stencil"


def test_it_is_told_the_cost_and_whether_a_gradient_is_wanted(monkeypatch):
    asked = []
    monkeypatch.setattr(selection, "plan", lambda *arguments: asked.append(arguments[-2:]) or selection.Plan("cpu", 0))
    monkeypatch.setattr(repeats, "known", {})
    x, y = torch.zeros(2, 5, 2), torch.zeros(2, 6, 2)
    for cost in ("sqeuclidean", "cosine", "euclidean", "cityblock", torch.cdist):
        soft_dtw(x, y, cost=cost)
        soft_dtw(x.requires_grad_(), y, cost=cost)
        x = x.detach()
    kernel_costs = ("sqeuclidean", "sqeuclidean", "euclidean", "cityblock", selection.MATRIX)
    assert asked == [(gradient, cost) for cost in kernel_costs for gradient in (False, True)]
    asked.clear()
    soft_dtw_alignment(x, y)
    assert asked == [(True, selection.MATRIX)]


def record_plans(monkeypatch):
    """Collects the kernel and rows per thread of every forward op that runs."""
    plans, forward = [], ops.forward
    monkeypatch.setattr(ops, "forward", lambda *inputs: plans.append(inputs[-3:-1]) or forward(*inputs))
    return plans


def test_what_is_chosen_is_what_runs(monkeypatch):
    plans = record_plans(monkeypatch)
    soft_dtw(torch.zeros(2, 5, 1), torch.zeros(2, 6, 1))
    assert plans == [("cpu", 0)]
    assert select_kernel(5, 6, batch=2, device="cpu") == "cpu"


@pytest.mark.cuda
def test_what_is_chosen_is_what_runs_on_cuda(monkeypatch):
    plans = record_plans(monkeypatch)
    for batch, n, gradient in ((1, 10, False), (1, 3000, False), (600, 1100, False), (600, 1100, True)):
        x = torch.zeros(batch, n, 1, device="cuda", requires_grad=gradient)
        soft_dtw(x, torch.zeros(batch, 7, 1, device="cuda"))
        assert plans.pop()[0] == select_kernel(n, 7, batch=batch, gradient=gradient)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_precision_counts_as_float32(dtype):
    for batch, n in ((1, 64), (600, 64), (2000, 64), (64, 2048)):
        cuda = torch.device("cuda")
        assert selection.plan("auto", n, n, batch, 1, dtype, cuda) == selection.plan(
            "auto", n, n, batch, 1, torch.float32, cuda
        )


def test_more_strips_mean_more_rows_a_thread():
    def rows(batch, n, dtype=torch.float32, kernel="tiled"):
        return selection.plan(kernel, n, n, batch, 1, dtype, torch.device("cuda")).rows_per_thread

    assert [rows(1, 1000), rows(64, 1000), rows(4096, 1000)] == [2, 2, 4]
    assert selection.plan("tiled", 1000, 1000, 4096, 1, torch.float32, torch.device("cuda"), True).rows_per_thread == 2
    assert [rows(1, 100, kernel="stencil"), rows(1, 500, kernel="stencil")] == [2, 4]
    assert rows(4096, 1000, torch.float64) == 2
    assert selection.plan("diagonal", 9, 9, 1, 1, torch.float32, torch.device("cuda")).rows_per_thread == 0
    for dim, gradient, expected in ((3, False, 4), (4, False, 4), (8, False, 2), (3, True, 2), (8, True, 2)):
        several = (300, 300, 2000, dim, torch.float32, torch.device("cuda"), gradient)
        assert selection.plan("stencil", *several).rows_per_thread == expected
        assert selection.plan("stencil", *several, selection.MATRIX).rows_per_thread == 2


def test_an_override_is_obeyed():
    for name in selection.CUDA_KERNELS:
        assert selection.plan(name, 50, 50, 2, 1, torch.float32, torch.device("cuda")).kernel == name


@pytest.mark.parametrize("name", selection.CUDA_KERNELS)
def test_a_cuda_kernel_for_cpu_tensors_is_an_error_that_says_why(name):
    with pytest.raises(ValueError, match=f"kernel: '{name}' runs on CUDA tensors only, and x is on cpu"):
        soft_dtw(torch.zeros(1, 5, 1), torch.zeros(1, 5, 1), kernel=name)


def test_the_cpu_kernel_for_cuda_tensors_is_an_error_that_says_why():
    with pytest.raises(ValueError, match="kernel: 'cpu' runs on CPU tensors only, and x is on cuda"):
        selection.plan("cpu", 5, 5, 1, 1, torch.float32, torch.device("cuda"))


def test_a_device_without_a_kernel_is_an_error():
    with pytest.raises(ValueError, match="device: expected the CPU or CUDA, got mps"):
        select_kernel(5, device="mps")
