"""torch.func.vmap over functions that have a batch of their own: one call on a larger batch, never a loop."""

import torch

from .. import _internals


def folds_batches(function):
    """Class decorator for an autograd.Function whose tensors, in and out, all begin with the batch of pairs.

    Its rule for vmap folds the mapped dimension into that batch.
    """

    def vmap(info, in_dims, *inputs):
        outputs = function.apply(*fold(info.batch_size, in_dims, inputs))
        batch = next(t.shape[int(d == 0)] for t, d in zip(inputs, in_dims, strict=True) if is_tensor(t))
        if is_tensor(outputs):
            return unfold(outputs, info.batch_size, batch), 0
        return tuple(unfold(t, info.batch_size, batch) for t in outputs), (0,) * len(outputs)

    function.vmap = staticmethod(vmap)
    return function


def fold(size, in_dims, inputs):
    """The inputs with the mapped dimension, of `size`, merged into the batch; those that are not mapped are repeated."""

    def folded(tensor, dim):
        if not is_tensor(tensor):
            return tensor
        tensor = tensor.unsqueeze(0).expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
        return tensor.flatten(0, 1)

    return [folded(tensor, dim) for tensor, dim in zip(inputs, in_dims, strict=True)]


def unfold(tensor, size, batch):
    return tensor.unflatten(0, (size, batch))


def is_tensor(value):
    return isinstance(value, torch.Tensor)


def inner(alignment, matrix):
    """<E, A> of each pair, (B,). Where E is 0, A has no say: it may hold inf there, or, on padding, NaN."""
    dims = tuple(range(1, alignment.dim()))
    return (alignment * torch.where(alignment == 0, 0, matrix)).sum(dims)


def per_pair(factor, tensor):
    """factor (..., B) times tensor (B, ...); 0 where the factor is, even of a pair without a value, whose tensor is NaN."""
    factor = factor.reshape(*factor.shape, *(1,) * (tensor.dim() - 1))
    return factor * torch.where((factor == 0) & ~tensor.isfinite(), 0, tensor)


# torch.compile is told of them when it first meets this package: telling it loads it, which takes about as long as PyTorch.
_untold: list = []


# It runs while torch.compile traces, which otherwise stops at it before PyTorch 2.13.
@_internals.constant_while_compiling
def under_compiled_transform():
    """Whether torch.compile is looking at code under torch.func.

    It cannot look into an autograd.Function with rules of its own for vmap and jvp. A call that it is told to leave alone
    (left_alone) goes into its graph as it is, and runs where the graph is traced.
    """
    while _untold:
        torch.compiler.allow_in_graph(_untold.pop())
    return _internals.depth_of_transforms() > 0


def left_alone(function):
    """The function, as a call that torch.compile leaves alone, for where `under_compiled_transform` has answered yes."""
    _untold.append(function)
    return function


def in_graph(function):
    """`function.apply` as a call that torch.compile leaves alone."""
    return left_alone(lambda *inputs: function.apply(*inputs))
