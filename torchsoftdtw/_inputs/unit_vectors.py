"""Vectors of length 1, between which the cosine cost is half of the squared Euclidean one."""

import torch

from .._internals import under_transform
from .._kernels import ops


def unit_vectors(x, y):
    """x and y as vectors of length 1, with two coordinates more: in one of them a zero vector becomes a unit vector.

    x and y use different ones, so that the cosine cost of a zero vector is 1 against every vector, even another zero one.
    In float64, and rounded once: a length that is off is off in all of the vector's costs in one direction.
    """
    is_float32 = x.dtype == y.dtype == torch.float32
    if not is_float32 or torch.compiler.is_compiling() or under_transform():
        return _by_steps(x, 0), _by_steps(y, 1)
    return UnitVectors.apply(x, y)


def _by_steps(series, zero_flag):
    """That any transform can go through, and of float64.

    Dividing by the largest entry first keeps the squares of huge and of tiny vectors in range; it cancels in the result, so
    no gradient needs to flow through it.
    """
    dtype, series = series.dtype, series.double()
    largest = series.detach().abs().amax(2, keepdim=True)
    zero = largest == 0
    scaled = series / torch.where(zero, 1, largest)
    norm = torch.where(zero, 1, scaled.square().sum(2, keepdim=True)).sqrt()
    unit = torch.where(zero, 0, scaled / norm)
    flag = zero.to(series.dtype)
    flags = [flag, torch.zeros_like(flag)]
    return torch.cat([unit, flags[zero_flag], flags[1 - zero_flag]], 2).to(dtype)


class UnitVectors(torch.autograd.Function):
    """The same of float32 in one kernel: with PyTorch's, a short problem takes longer for this than for soft-DTW.

    On CUDA zeros follow, so that vectors can be read four numbers at a time.
    """

    @staticmethod
    def forward(ctx, x, y):
        dim = x.shape[2]
        more = 2 + (-(dim + 2) % 4 if x.is_cuda else 0)
        unit_x, inverse_x, unit_y, inverse_y = ops.unit_vectors(x, y, dim + more)
        ctx.save_for_backward(x, y, unit_x, inverse_x, unit_y, inverse_y)
        ctx.set_materialize_grads(False)
        # One alone that needs a gradient must not make the other ask for one: kernels compute what is asked for.
        made = zip((unit_x, unit_y), ctx.needs_input_grad, strict=True)
        ctx.mark_non_differentiable(*(unit for unit, needed in made if not needed))
        return unit_x, unit_y

    @staticmethod
    def backward(ctx, *gradients):
        x, y, *made = ctx.saved_tensors
        dim = x.shape[2]
        wanted = [g if needed else None for g, needed in zip(gradients, ctx.needs_input_grad, strict=True)]
        if torch.is_grad_enabled():  # for derivatives of higher order
            return tuple(
                None if g is None else _gradient_by_steps(series, flag, g[..., : dim + 2])
                for flag, (series, g) in enumerate(zip((x, y), wanted, strict=True))
            )
        grads = ops.unit_vectors_backward(*wanted, *made, dim)
        return tuple(None if g is None else grad for g, grad in zip(wanted, grads, strict=True))


def _gradient_by_steps(series, zero_flag, gradient):
    return torch.autograd.grad(_by_steps(series, zero_flag), series, gradient, create_graph=True)[0]
