"""The compiled libraries, and the ops of csrc/ops.cpp under short names."""

from pathlib import Path

import torch

_FOLDER = Path(__file__).parent.parent


def _load(name):
    path = _FOLDER / f"{name}.abi3.so"
    if not path.exists():
        return False
    torch.ops.load_library(path)
    return True


if not _load("_cpu"):
    raise ImportError(
        f"torchsoftdtw: {_FOLDER / '_cpu.abi3.so'} is missing; build it with `pip install --no-build-isolation .`"
    )
HAS_CUDA = torch.version.cuda is not None and _load("_cuda")

forward = torch.ops.torchsoftdtw.forward.default
backward = torch.ops.torchsoftdtw.backward.default
forward_from_cost = torch.ops.torchsoftdtw.forward_from_cost.default
backward_from_cost = torch.ops.torchsoftdtw.backward_from_cost.default
hessian_product = torch.ops.torchsoftdtw.hessian_product.default
third_order_product = torch.ops.torchsoftdtw.third_order_product.default
dtw = torch.ops.torchsoftdtw.dtw.default
cpu_saved_size = torch.ops.torchsoftdtw.cpu_saved_size.default
cuda_saved_size = torch.ops.torchsoftdtw.cuda_saved_size.default
select_kernel = torch.ops.torchsoftdtw.select_kernel.default
pair_statuses = torch.ops.torchsoftdtw.pair_statuses.default
device_properties = torch.ops.torchsoftdtw.device_properties.default
dtw_backward = torch.ops.torchsoftdtw.dtw_backward.default
forward_of_pairs = torch.ops.torchsoftdtw.forward_of_pairs.default
backward_of_pairs = torch.ops.torchsoftdtw.backward_of_pairs.default
dtw_of_pairs = torch.ops.torchsoftdtw.dtw_of_pairs.default
dtw_backward_of_pairs = torch.ops.torchsoftdtw.dtw_backward_of_pairs.default
dtw_bounds = torch.ops.torchsoftdtw.dtw_bounds.default
dtw_within_of_pairs = torch.ops.torchsoftdtw.dtw_within_of_pairs.default
dtw_from_cost = torch.ops.torchsoftdtw.dtw_from_cost.default
dtw_from_cost_backward = torch.ops.torchsoftdtw.dtw_from_cost_backward.default
best_ranges = torch.ops.torchsoftdtw.best_ranges.default
unit_vectors = torch.ops.torchsoftdtw.unit_vectors.default
unit_vectors_backward = torch.ops.torchsoftdtw.unit_vectors_backward.default
elastic = torch.ops.torchsoftdtw.elastic.default
elastic_backward = torch.ops.torchsoftdtw.elastic_backward.default
elastic_from_costs = torch.ops.torchsoftdtw.elastic_from_costs.default
elastic_from_costs_backward = torch.ops.torchsoftdtw.elastic_from_costs_backward.default
twed_terms = torch.ops.torchsoftdtw.twed_terms.default
twed_terms_backward = torch.ops.torchsoftdtw.twed_terms_backward.default
cpu_elastic_saved_size = torch.ops.torchsoftdtw.cpu_elastic_saved_size.default
cuda_elastic_saved_size = torch.ops.torchsoftdtw.cuda_elastic_saved_size.default


def require_build_for(like):
    """Raise where a tensor is on a device for which nothing was built."""
    if like.is_cuda and not HAS_CUDA:
        raise RuntimeError(
            "torchsoftdtw was built without its CUDA part (nvcc was not found, or PyTorch has no CUDA), and x is on "
            f"{like.device}; reinstall it where nvcc is on the PATH, or move the tensors to the CPU"
        )
