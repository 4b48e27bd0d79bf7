"""What PyTorch does not document and this package uses: every name, and what stands in where a version lacks it.

    name                                                       checked on   without it
    torch._C._AutoDispatchBelowAutograd                        2.10, 2.13   ops go through autograd, which takes longer
    torch._C._are_functorch_transforms_active                  2.10, 2.13   torch._C._functorch.peek_interpreter_stack
    torch._C._functorch.get_dynamic_layer_stack_depth          2.10, 2.13   the same
    torch._C._functorch.is_functorch_wrapped_tensor            2.10, 2.13   ImportError
    torch._C._functorch.get_unwrapped                          2.13         gradients are taken to be wanted
    torch._C._functorch.get_interpreter_stack, TransformType   2.13         a transform is taken to have dual numbers
    torch.autograd.forward_ad._current_level                   2.10, 2.13   ImportError
    torch.fx.experimental.symbolic_shapes.statically_known_true  2.10, 2.13  what it would save is done
    torch.distributed.distributed_c10d._get_default_store        2.10, 2.13   ImportError, where ranks share a problem
    what torch.compiler.assume_constant_result sets            2.10, 2.13   torch.compile may stop at what is not its own
    torch.nested: _ragged_idx of a jagged tensor               2.10, 2.13   taken to be 1, where PyTorch puts it

No other file uses such names: a test asks for it, and for what stands in.
"""

import contextlib
import functools

import torch
from torch.autograd import forward_ad

CHECKED = "2.13"


def _find(path):
    return functools.reduce(lambda found, name: getattr(found, name, None), path.split("."), torch)


def _require(path):
    found = _find(path)
    if found is None:
        raise ImportError(
            f"torchsoftdtw: PyTorch {torch.__version__} has no torch.{path}, which PyTorch {CHECKED} has; install that, or "
            "a later torchsoftdtw"
        )
    return found


below_autograd = _find("_C._AutoDispatchBelowAutograd") or contextlib.nullcontext
is_mapped = _require("_C._functorch.is_functorch_wrapped_tensor")
_are_transforms_active = _find("_C._are_functorch_transforms_active")
_depth = _find("_C._functorch.get_dynamic_layer_stack_depth")
_stack = _find("_C._functorch.get_interpreter_stack")
_forward_mode = _find("_C._functorch.TransformType.Jvp")
_unwrapped = _find("_C._functorch.get_unwrapped")
_require("autograd.forward_ad._current_level")
if _are_transforms_active is None or _depth is None:
    _innermost = _require("_C._functorch.peek_interpreter_stack")
    _are_transforms_active = _are_transforms_active or (lambda: _innermost() is not None)
    _depth = _depth or (lambda: int(_innermost() is not None))


def under_transform():
    """Whether torch.func or forward-mode dual numbers are at work, outside torch.compile."""
    return _are_transforms_active() or forward_ad._current_level >= 0


def has_tangents():
    """Whether forward-mode dual numbers are at work, also while torch.compile traces."""
    if forward_ad._current_level >= 0 or not _are_transforms_active():
        return forward_ad._current_level >= 0
    return None in (_stack, _forward_mode) or any(layer.key() == _forward_mode for layer in _stack())


def depth_of_transforms():
    """How many transforms of torch.func are at work, also while torch.compile traces."""
    return _depth()


def constant_while_compiling(function):
    """torch.compiler.assume_constant_result, without loading torch.compile, which takes about as long as PyTorch."""
    function._dynamo_marked_constant = True
    return function


def requires_gradient(tensor):
    """Whether a tensor requires a gradient, or what transforms of torch.func have wrapped it around does: a mapped one does
    not say so itself."""
    while not tensor.requires_grad and is_mapped(tensor):
        if _unwrapped is None:
            return True
        tensor = _unwrapped(tensor)
    return tensor.requires_grad


def known_to_be(condition):
    """Whether a graph with symbolic sizes can tell, without a guard, that a condition of them holds."""
    try:  # not above: the import takes long
        from torch.fx.experimental.symbolic_shapes import statically_known_true
    except ImportError:
        return False
    return statically_known_true(condition)


def ragged_dimension(jagged):
    return getattr(jagged, "_ragged_idx", 1)


def default_store():
    """The store by which the ranks of torch.distributed have found each other."""
    return _require("distributed.distributed_c10d._get_default_store")()
