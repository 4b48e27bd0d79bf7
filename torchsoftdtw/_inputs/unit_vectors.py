"""Vectors of length 1, between which the cosine cost is half of the squared Euclidean one."""

import torch

from .._internals import under_transform
from .._kernels import ops


def unit_vectors(series, zero_flag):
    """Vectors of length 1, with two coordinates more: in one of them a zero vector becomes a unit vector.

    x and y use different ones, so that the cosine cost of a zero vector is 1 against every vector, even another zero one.
    In float64, and rounded once: a length that is off is off in all of the vector's costs in one direction.
    """
    if series.dtype != torch.float32 or torch.compiler.is_compiling() or under_transform():
        return _by_steps(series, zero_flag)
    return UnitVectors.apply(series, zero_flag)


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
    def forward(ctx, series, zero_flag):
        dim = series.shape[2]
        more = 2 + (-(dim + 2) % 4 if series.is_cuda else 0)
        unit, inverse = ops.unit_vectors(series, zero_flag, dim + more)
        ctx.zero_flag = zero_flag
        ctx.save_for_backward(series, inverse, unit)
        return unit

    @staticmethod
    def backward(ctx, gradient):
        series, inverse, unit = ctx.saved_tensors
        dim = series.shape[2]
        if torch.is_grad_enabled():  # for derivatives of higher order
            steps = _by_steps(series, ctx.zero_flag)
            return *torch.autograd.grad(steps, series, gradient[..., : dim + 2], create_graph=True), None
        return ops.unit_vectors_backward(gradient, unit, inverse, dim), None
