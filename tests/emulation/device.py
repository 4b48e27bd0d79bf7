"""The emulated GPU in the place of a CUDA device: a CUDA kernel that is asked for by name takes tensors of the CPU."""

import ctypes

import torch

from torchsoftdtw import selection

CUDA = torch.device("cuda", 0)
OPS = {
    # Those that name a kernel, and those that do not.
    True: ("forward", "backward", "forward_from_cost", "backward_from_cost"),
    False: (
        *("hessian_product", "third_order_product"),
        *("dtw", "dtw_backward", "dtw_from_cost", "dtw_from_cost_backward"),
    ),
}
CAN_EMULATE = hasattr(torch.library, "get_kernel")


class EmulatedGPU:
    """The ops of a library that build_kernels() has built, behind those of the package until close() is called."""

    def __init__(self, library):
        torch.ops.load_library(library)
        functions = ctypes.CDLL(str(library))
        self.set_order, self.failure_of = functions.set_order, functions.failure_of
        self.takes_every_op = False  # also those that name no kernel, or "auto"
        self._plan = selection.plan
        self._library = torch.library.Library("torchsoftdtw", "IMPL")
        for names_kernel, names in OPS.items():
            for name in names:
                self._library.impl(name, self._router(name, names_kernel), "CPU", with_keyset=True)
        selection.plan = self._choose

    def close(self):
        selection.plan = self._plan
        self._library._destroy()

    def _router(self, name, names_kernel):
        plain = torch.library.get_kernel(f"torchsoftdtw::{name}", "CPU")
        emulated = getattr(torch.ops.torchsoftdtw_emulated, name)

        def op(keys, *inputs):
            of_cuda = any(each in selection.CUDA_KERNELS for each in inputs[-6:] if isinstance(each, str))
            takes = of_cuda if names_kernel else self.takes_every_op
            return emulated(*inputs) if takes else plain.call_boxed(keys, *inputs)

        return op

    def _choose(self, kernel, n, m, batch, dim, dtype, device, *rest):
        on_cuda = kernel in selection.CUDA_KERNELS or (self.takes_every_op and kernel == "auto")
        on_cuda = on_cuda and device.type == "cpu"
        return self._plan(kernel, n, m, batch, dim, dtype, CUDA if on_cuda else device, *rest)
