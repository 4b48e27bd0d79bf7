import pytest
import torch

from torchsoftdtw import ops, select_kernel, selection, soft_dtw


@pytest.mark.parametrize("n", [1, 100, 1024, 5000])
def test_the_cpu_has_one_kernel(n):
    assert select_kernel(n, batch=3, device="cpu") == "cpu"


def test_length_decides_before_batch():
    several = selection.ALONE_BATCH + 1
    assert select_kernel(selection.STENCIL_LONGEST, batch=several) == "stencil"
    assert select_kernel(selection.STENCIL_LONGEST + 1, batch=several) == "tiled"
    assert select_kernel(selection.STENCIL_LONGEST + 1, batch=selection.STENCIL_BATCH, dtype=torch.float64) == "stencil"
    assert select_kernel(20_000, 30_000, batch=1, dim=8, dtype=torch.float64) == "tiled"


def test_hardly_any_pairs_are_spread_over_more_blocks():
    alone = selection.ALONE_BATCH
    assert select_kernel(selection.STENCIL_LONGEST_ALONE, batch=alone) == "stencil"
    assert select_kernel(selection.STENCIL_LONGEST_ALONE + 1, batch=alone) == "tiled"
    assert select_kernel(selection.STENCIL_LONGEST, batch=alone, dtype=torch.float64) == "stencil"


@pytest.mark.parametrize("gradient", [False, True])
def test_it_takes_more_pairs_to_fill_the_device_with_gradients(gradient):
    enough = selection.STENCIL_BATCH_OF_GRADIENTS if gradient else selection.STENCIL_BATCH_OF_VALUES
    assert select_kernel(selection.STENCIL_LONGEST + 1, batch=enough, gradient=gradient) == "stencil"
    assert select_kernel(selection.STENCIL_LONGEST + 1, batch=enough - 1, gradient=gradient) == "tiled"
    several = {"batch": selection.STENCIL_BATCH, "dim": selection.SEVERAL_DIMS, "gradient": gradient}
    assert select_kernel(selection.STENCIL_LONGEST + 1, **several) == "stencil"


def test_many_dimensions_spread_a_pair_over_more_blocks():
    assert select_kernel(selection.STENCIL_LONGEST, dim=selection.MANY_DIMS) == "tiled"
    assert select_kernel(selection.STENCIL_LONGEST, dim=selection.MANY_DIMS, batch=5000) == "tiled"
    assert select_kernel(selection.STENCIL_LONGEST_MANY_DIMS, dim=selection.MANY_DIMS) == "stencil"
    several = selection.PRODUCT_DIMS["tiled"]
    assert select_kernel(selection.STENCIL_LONGEST, dim=several) == "tiled"
    assert select_kernel(selection.STENCIL_LONGEST, dim=several, batch=selection.STENCIL_BATCH) == "stencil"


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
    assert [rows(1, 100, kernel="stencil"), rows(1, 500, kernel="stencil")] == [2, 4]
    assert rows(4096, 1000, torch.float64) == 2
    assert selection.plan("diagonal", 9, 9, 1, 1, torch.float32, torch.device("cuda")).rows_per_thread == 0


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
