"""The costs that the kernels know by name, as (B, N, M) matrices in torch ops: a class each, and one list of them.

No (B, N, M, D) tensor is made. With A an (N, M) matrix and (u, w) a direction of (x, y), three formulas serve all orders of
derivatives:

    pull_back       sum_j A dC/dx, sum_i A dC/dy                  the chain rule for a gradient
    push_forward    sum_d dC/dx_d (u_d - w_d)                     the derivative of C along (u, w)
    bend            the gradient of <A, push_forward> at fixed A  the costs' own second derivative

`costs` are what matrix() gives for x and y, `tangent` what push_forward() gives for u and w. A new cost is a subclass of
Separable, or of whatever gives these six, and an entry of KERNEL_COSTS, and a type of csrc/core/cost_types.h.
"""

import torch

FEW_DIMS = 8  # up to so many, squared differences are summed one dimension at a time


class Separable:
    """A sum over coordinates: share(difference), whose derivatives are slope(difference) and curvature(difference)."""

    degree = None  # of homogeneity: x dC/dx + y dC/dy = degree C
    curvature = None  # 0

    def matrix(self, x, y):
        """The costs (B, N, M) of x (B, N, D) and y (B, M, D)."""
        return sum(self.share(difference) for difference in _differences_by_dim(x, y))

    def of_differences(self, differences):
        """The costs (B, K) of vectors (B, K, D) that are one another's partners."""
        return self.share(differences).sum(2)

    def pull_back(self, matrix, x, y, costs):
        return _sums(matrix * self.slope(difference) for difference in _differences_by_dim(x, y))

    def push_forward(self, u, w, x, y, costs):
        pairs = zip(_differences_by_dim(x, y), _differences_by_dim(u, w), strict=True)
        return sum(self.slope(difference) * along for difference, along in pairs)

    def bend(self, matrix, tangent, u, w, x, y, costs):
        if self.curvature is None:
            return torch.zeros_like(x), torch.zeros_like(y)
        pairs = zip(_differences_by_dim(x, y), _differences_by_dim(u, w), strict=True)
        return _sums(matrix * self.curvature(difference) * along for difference, along in pairs)


class SqEuclidean(Separable):
    degree = 2
    share = staticmethod(torch.square)

    def matrix(self, x, y):
        if x.shape[2] <= FEW_DIMS:
            return super().matrix(x, y)
        if x.dtype == torch.float32:
            return _squared_distances_by_product(x.double(), y.double()).to(x.dtype)
        return _distances(x, y, 2.0).square()

    def pull_back(self, matrix, x, y, costs):
        return _weighted_differences(2 * matrix, x, y)

    def push_forward(self, u, w, x, y, costs):
        return 2 * _inner_products(u, w, x, y)

    def bend(self, matrix, tangent, u, w, x, y, costs):
        return _weighted_differences(2 * matrix, u, w)


class Euclidean(Separable):
    degree = 1

    def matrix(self, x, y):
        return _distances(x, y, 2.0)

    def of_differences(self, differences):
        squares = differences.square().sum(2)
        positive = squares > 0  # elsewhere the distance has no derivative, and gets 0
        return torch.where(positive, torch.where(positive, squares, 1).sqrt(), 0)

    def pull_back(self, matrix, x, y, costs):
        return _weighted_differences(_divided(matrix, costs), x, y)

    def push_forward(self, u, w, x, y, costs):
        return _divided(_inner_products(u, w, x, y), costs)

    def bend(self, matrix, tangent, u, w, x, y, costs):
        by_length = _divided(matrix, costs)
        turned, along = _weighted_differences(by_length, u, w), _divided(by_length * tangent, costs)
        return tuple(a - b for a, b in zip(turned, _weighted_differences(along, x, y), strict=True))


class Cityblock(Separable):
    degree = 1
    share = staticmethod(torch.abs)
    slope = staticmethod(torch.sign)

    def matrix(self, x, y):
        return _distances(x, y, 1.0)


class Huber(Separable):
    """u^2 / 2 up to a difference of 1, |u| - 1/2 beyond."""

    def share(self, difference):
        slope = self.slope(difference)
        return slope * (difference - slope / 2)

    def slope(self, difference):
        return difference.clamp(-1, 1)

    def curvature(self, difference):
        return (difference.abs() <= 1).to(difference.dtype)


KERNEL_COSTS = {"sqeuclidean": SqEuclidean(), "euclidean": Euclidean(), "cityblock": Cityblock(), "huber": Huber()}


def _distances(x, y, p):
    # Not by matrix products, in which short distances drown.
    return torch.cdist(x, y, p=p, compute_mode="donot_use_mm_for_euclid_dist")


def _squared_distances_by_product(x, y):
    """|x|^2 + |y|^2 - 2 x.y in float64, whose rounding, 1e-16 of |x|^2, is nothing beside that of float32 series."""
    x, y = _centred(x, y)
    squares = x.square().sum(2).unsqueeze(2) + y.square().sum(2).unsqueeze(1)
    return torch.baddbmm(squares, x, y.transpose(1, 2), alpha=-2).clamp(min=0)


def _differences_by_dim(x, y):
    return (x[:, :, None, d] - y[:, None, :, d] for d in range(x.shape[2]))


def _sums(by_dim):
    """The sums of (B, N, M) matrices over columns, (B, N, D), and over rows with the opposite sign, (B, M, D)."""
    rows, columns = zip(*((matrix.sum(2), matrix.sum(1)) for matrix in by_dim), strict=True)
    return torch.stack(rows, 2), -torch.stack(columns, 2)


def _weighted_differences(matrix, x, y):
    """sum_j matrix (x_i - y_j), and sum_i matrix (y_j - x_i)."""
    with _full_precision(x):
        x, y = _centred(x, y)
        return matrix.sum(2, keepdim=True) * x - matrix @ y, matrix.sum(1).unsqueeze(2) * y - matrix.transpose(1, 2) @ x


def _inner_products(u, w, x, y):
    """(x_i - y_j).(u_i - w_j)"""
    with _full_precision(x):
        x, y = _centred(x, y)
        crossed = x @ w.transpose(1, 2) + (y @ u.transpose(1, 2)).transpose(1, 2)
        return (x * u).sum(2).unsqueeze(2) + (y * w).sum(2).unsqueeze(1) - crossed


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
