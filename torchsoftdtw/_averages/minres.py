"""Linear equations with symmetric matrices, of many problems in one batch: MINRES (Paige & Saunders, "Solution of sparse
indefinite systems of linear equations", SIAM J. Numer. Anal., 1975). Only products with the matrices are asked for.

A matrix may be indefinite. Where it is singular and nothing solves the equations, this stops at the least residual, as soon
as what is left is flat: the product of the matrix and the residual is nothing beside both.
"""

import torch

from .steps import Watch

TOLERANCE = 1e-9  # of a residual, beside the right-hand side; of its product, beside the matrix
MOST_STEPS = 1000


def solve(times, right):
    """(G, ...) float64: what `times`, which multiplies by G matrices, brings to `right` (G, ...)."""
    shape, right = right.shape, right.flatten(1)
    size = right.norm(dim=1, keepdim=True)
    found, done, watch = torch.zeros_like(right), size == 0, Watch()
    # Lanczos' vectors, of which a matrix makes a tridiagonal one: `beta` beside its diagonal, `alpha` on it.
    before, vector, beta = torch.zeros_like(right), torch.where(done, 0, right / size), torch.zeros_like(size)
    # The last two Givens rotations, which make that one triangular, and the last two columns of its inverse, as vectors.
    cos_before, sin_before = cos, sin = torch.ones_like(size), torch.zeros_like(size)
    column_before = column = torch.zeros_like(right)
    residual, largest = size, torch.zeros_like(size)
    for _ in range(MOST_STEPS):
        if watch.all_done(done):
            break
        product = times(vector.view(shape)).flatten(1)
        alpha = (vector * product).sum(1, keepdim=True)
        after = product - alpha * vector - beta * before
        next_beta = after.norm(dim=1, keepdim=True)
        largest = torch.maximum(largest, (alpha.square() + beta.square() + next_beta.square()).sqrt())
        diagonal = cos * alpha - cos_before * sin * beta
        above, far_above = sin * alpha + cos_before * cos * beta, sin_before * beta
        done = done | ~(torch.hypot(diagonal, cos * next_beta) > TOLERANCE * largest)
        pivot = torch.hypot(diagonal, next_beta)
        cos_before, sin_before, cos, sin = cos, sin, diagonal / pivot, next_beta / pivot
        column_before, column = column, (vector - far_above * column_before - above * column) / pivot
        found = torch.where(done, found, found + cos * residual * column)
        residual = -sin * residual
        done = done | ~(residual.abs() > TOLERANCE * size)
        before, vector, beta = vector, torch.where(done, 0, after / next_beta), next_beta
    return torch.where(largest.isfinite(), found, torch.nan).view(shape)
