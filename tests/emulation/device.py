"""The emulated GPU in the place of a CUDA device: a CUDA kernel that is asked for by name takes tensors of the CPU."""

import contextlib
import ctypes
import warnings

import torch

from torchsoftdtw._inputs import repeats
from torchsoftdtw._kernels import ops, selection

OPS = {
    # Those that name a kernel, and those that do not.
    True: (
        *("forward", "backward", "forward_of_pairs", "backward_of_pairs", "forward_from_cost", "backward_from_cost"),
        *("elastic", "elastic_backward", "elastic_from_costs", "elastic_from_costs_backward"),
    ),
    False: (
        *("hessian_product", "third_order_product"),
        *("dtw", "dtw_backward", "dtw_of_pairs", "dtw_backward_of_pairs"),
        *("dtw_from_cost", "dtw_from_cost_backward", "best_ranges"),
        *("twed_terms", "twed_terms_backward"),
        *("unit_vectors", "unit_vectors_backward"),
    ),
}
FUNCTIONS = (  # of kernels.cpp
    *("set_order", "failure_of", "launch_of"),
    *("before_next_launch", "fail_next_query", "leave_error", "has_error"),
)
CAN_EMULATE = hasattr(torch.library, "get_kernel")


class EmulatedGPU:
    """The ops of a library that build_kernels() has built."""

    def __init__(self, library):
        torch.ops.load_library(library)
        functions = ctypes.CDLL(str(library))
        for name in FUNCTIONS:
            setattr(self, name, getattr(functions, name))
        functions.has_error.restype = ctypes.c_bool
        functions.failure_of.restype = functions.launch_of.restype = ctypes.c_char_p

    @contextlib.contextmanager
    def behind_the_package(self, every_op):
        """Its ops in the place of the CPU's; `every_op`: also of those that name no kernel, and for "auto"."""
        plan, is_for_cuda, known = selection.plan, selection.is_for_cuda, repeats.known
        sizes, statuses = (ops.cuda_saved_size, ops.cuda_elastic_saved_size), ops.pair_statuses

        def runs_here(kernel):
            return is_for_cuda(kernel) or (every_op and kernel == "auto")

        def choose(kernel, like):
            return selection.Plan(kernel, 0) if runs_here(kernel) and like.device.type == "cpu" else plan(kernel, like)

        with torch.library._scoped_library("torchsoftdtw", "IMPL") as library, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="(?s).*only once for all operators")
            for names_kernel, names in OPS.items():
                for name in names:
                    if names_kernel or every_op:
                        library.impl(name, _router(name, runs_here if names_kernel else None), "CPU", with_keyset=True)
            selection.plan, selection.is_for_cuda, repeats.known = choose, runs_here, {}
            ops.cuda_saved_size = torch.ops.torchsoftdtw_emulated.cuda_saved_size.default
            ops.cuda_elastic_saved_size = torch.ops.torchsoftdtw_emulated.cuda_elastic_saved_size.default
            ops.pair_statuses = torch.ops.torchsoftdtw_emulated.pair_statuses.default
            try:
                yield
            finally:
                selection.plan, selection.is_for_cuda, repeats.known = plan, is_for_cuda, known
                (ops.cuda_saved_size, ops.cuda_elastic_saved_size), ops.pair_statuses = sizes, statuses


def _router(name, runs_here):
    plain = torch.library.get_kernel(f"torchsoftdtw::{name}", "CPU")
    emulated = getattr(torch.ops.torchsoftdtw_emulated, name)

    def op(keys, *inputs):
        is_plain = runs_here is not None and not any(runs_here(each) for each in inputs if isinstance(each, str))
        return plain.call_boxed(keys, *inputs) if is_plain else emulated(*inputs)

    return op
