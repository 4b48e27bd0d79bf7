"""The kernels' own costs as (B, N, M) matrices, for what needs the matrix itself; differentiable as often as one likes.

No (B, N, M, D) tensor is made. With A an (N, M) matrix and (u, w) a direction of (x, y), three formulas serve all orders:

    pull_back       sum_j A dC/dx, sum_i A dC/dy                  the chain rule for a gradient
    push_forward    (x_i - y_j).(u_i - w_j) times what the cost   the derivative of C along (u, w)
                    has outside its square
    bend            the gradient of <A, push_forward> at fixed A  the costs' own second derivative
"""

import torch

from .._inputs import cost as costs_by_name
from .batching import folds_batches, in_graph, under_compiled_transform

FEW_DIMS = 8  # up to so many, squared differences are summed one dimension at a time


def matrix_of(problem):
    """The (B, N, M) costs of a Problem. Padding has costs of no meaning, which are numbers."""
    x, y, cost, options = problem[:4]
    x_lengths, y_lengths = options[:2]
    if callable(cost):
        return costs_by_name.matrix_from_callable(cost, x, y, x_lengths, y_lengths)
    reduced = costs_by_name.reduce_to_kernel_cost(cost, x, y, options)
    without_padding = costs_by_name.without_padding
    matrix = cost_matrix(without_padding(reduced.x, x_lengths), without_padding(reduced.y, y_lengths), reduced.name)
    return reduced.value(matrix)


def cost_matrix(x, y, cost):
    """(B, N, M) costs of x (B, N, D) and y (B, M, D), neither of which has padding. `cost` is one of KERNEL_COSTS."""
    if not torch.compiler.is_compiling():
        return CostMatrix.apply(x, y, cost)
    return _in_graph(x, y, cost) if under_compiled_transform() else _compute(x, y, cost)


@folds_batches
class CostMatrix(torch.autograd.Function):
    @staticmethod
    def forward(x, y, cost):
        return _compute(x, y, cost)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, ctx.cost = inputs
        ctx.save_for_backward(x, y, output)
        ctx.save_for_forward(x, y, output)

    @staticmethod
    def backward(ctx, grad):
        return *pull_back(grad, *ctx.saved_tensors, ctx.cost), None

    @staticmethod
    def jvp(ctx, x_tangent, y_tangent, _):
        return push_forward(x_tangent, y_tangent, *ctx.saved_tensors, ctx.cost)


_in_graph = in_graph(CostMatrix)


def pull_back(matrix, x, y, costs, cost):
    if cost == "cityblock":
        by_dim = [matrix * sign for sign in _signs(x, y)]
        return torch.stack([a.sum(2) for a in by_dim], 2), -torch.stack([a.sum(1) for a in by_dim], 2)
    return _weighted_differences(2 * matrix if cost == "sqeuclidean" else _divided(matrix, costs), x, y)


def push_forward(u, w, x, y, costs, cost):
    u = torch.zeros_like(x) if u is None else u
    w = torch.zeros_like(y) if w is None else w
    if cost == "cityblock":
        return sum(sign * a for sign, a in zip(_signs(x, y), _differences_by_dim(u, w), strict=True))
    with _full_precision(x):
        x, y = _centred(x, y)
        crossed = x @ w.transpose(1, 2) + (y @ u.transpose(1, 2)).transpose(1, 2)
        product = (x * u).sum(2).unsqueeze(2) + (y * w).sum(2).unsqueeze(1) - crossed
    return 2 * product if cost == "sqeuclidean" else _divided(product, costs)


def bend(matrix, tangent, u, w, x, y, costs, cost):
    """`tangent` is push_forward's result for u and w."""
    if cost == "cityblock":
        return torch.zeros_like(x), torch.zeros_like(y)
    if cost == "sqeuclidean":
        return _weighted_differences(2 * matrix, u, w)
    by_length = _divided(matrix, costs)
    turned, along = _weighted_differences(by_length, u, w), _divided(by_length * tangent, costs)
    return tuple(a - b for a, b in zip(turned, _weighted_differences(along, x, y), strict=True))


def _compute(x, y, cost):
    if cost == "sqeuclidean" and x.shape[2] <= FEW_DIMS:
        return sum(difference.square() for difference in _differences_by_dim(x, y))
    if cost == "sqeuclidean" and x.dtype == torch.float32:
        return _squared_distances_by_product(x.double(), y.double()).to(x.dtype)
    # Not by matrix products, in which short distances drown.
    distances = torch.cdist(x, y, p=1.0 if cost == "cityblock" else 2.0, compute_mode="donot_use_mm_for_euclid_dist")
    return distances.square() if cost == "sqeuclidean" else distances


def _squared_distances_by_product(x, y):
    """|x|^2 + |y|^2 - 2 x.y in float64, whose rounding, 1e-16 of |x|^2, is nothing beside that of float32 series."""
    x, y = _centred(x, y)
    squares = x.square().sum(2).unsqueeze(2) + y.square().sum(2).unsqueeze(1)
    return torch.baddbmm(squares, x, y.transpose(1, 2), alpha=-2).clamp(min=0)


def _differences_by_dim(x, y):
    return (x[:, :, None, d] - y[:, None, :, d] for d in range(x.shape[2]))


def _signs(x, y):
    return (difference.sign() for difference in _differences_by_dim(x, y))


def _weighted_differences(matrix, x, y):
    """sum_j matrix (x_i - y_j), and sum_i matrix (y_j - x_i)."""
    with _full_precision(x):
        x, y = _centred(x, y)
        return matrix.sum(2, keepdim=True) * x - matrix @ y, matrix.sum(1).unsqueeze(2) * y - matrix.transpose(1, 2) @ x


def _centred(x, y):
    """Differences do not change when both move; their matrix products lose the fewer digits, the closer to 0 both are."""
    with torch.no_grad():  # not detach, which torch.autograd.functional's own vmap lacks
        centre = x[:, :1]
    return x - centre, y - centre


def _divided(matrix, costs):
    """matrix / costs, 0 where the cost is 0, where the Euclidean distance has no derivative."""
    positive = costs > 0
    return torch.where(positive, matrix / torch.where(positive, costs, 1), 0)


def _full_precision(like):
    return torch.autocast(like.device.type, enabled=False)
