"""Soft-DTW as the design writes it down: plain float64 recursions that share nothing with the package or its kernels."""

import itertools
import math

import numpy as np
import torch
from scipy.spatial.distance import cdist


def in_band(i, j, n, m, bandwidth):
    return bandwidth is None or min(0, m - n) - bandwidth <= j - i <= max(0, m - n) + bandwidth


def by_diagonals(table):
    """(n, m) numbers of cells (i, j), counted from 1, at [i + j, i], and inf elsewhere."""
    n, m = np.shape(table)
    i, j = np.ogrid[1 : n + 1, 1 : m + 1]
    found = np.full((n + m + 1, n + 1), math.inf)
    found[i + j, i] = table
    return found


def inner_cells(n, m, bandwidth):
    """Diagonal by diagonal: i + j, the rows of its cells that are no border's as a slice, the rows before, and which cells
    are outside the band (None without one).
    """
    for d in range(2, n + m + 1):
        first, end = max(1, d - m), min(n, d - 1) + 1
        outside = None
        if bandwidth is not None:
            apart = d - 2 * np.arange(first, end)
            outside = (apart < min(0, m - n) - bandwidth) | (apart > max(0, m - n) + bandwidth)
        yield d, slice(first, end), slice(first - 1, end - 1), outside


def flows_of(here, shares, are_numbers):
    """What of `here` goes each way. Of 0 nothing, even where a share is no number."""
    flows = here * shares
    if not are_numbers:
        flows[:, here == 0] = 0.0
    return flows


def value_and_alignment(costs, gamma, bandwidth=None, warp_penalty=0.0):
    """(1) and (4) for one (n, m) cost matrix: the value, and E = d value / d costs from weights that sum to 1."""
    n, m = costs.shape
    costs = by_diagonals(costs)
    table, alignment = np.full(costs.shape, math.inf), np.zeros(costs.shape)
    shares = np.zeros((n + m + 1, 3, n + 1))  # diagonal, up, left
    table[0, 0] = 0.0
    cells = list(inner_cells(n, m, bandwidth))
    with np.errstate(invalid="ignore"):
        for d, rows, before, outside in cells:
            steps = shares[d, :, rows]
            steps[0] = table[d - 2, before]
            steps[1] = table[d - 1, before] + warp_penalty
            steps[2] = table[d - 1, rows] + warp_penalty
            least = steps.min(0)
            weights = np.exp((least - steps) / gamma)
            total = weights.sum(0)
            value = costs[d, rows] + least - gamma * np.log(total)
            if outside is not None:
                value[outside] = math.inf
            table[d, rows], shares[d, :, rows] = value, weights / total
        are_numbers = not np.isnan(shares).any()
        alignment[n + m, n] = 1.0
        for d, rows, before, _ in reversed(cells):
            flows = flows_of(alignment[d, rows], shares[d, :, rows], are_numbers)
            alignment[d - 2, before] += flows[0]
            alignment[d - 1, before] += flows[1]
            alignment[d - 1, rows] += flows[2]
    i, j = np.ogrid[1 : n + 1, 1 : m + 1]
    return float(table[n + m, n]), alignment[i + j, i]


def cost_and_slopes(x, y, cost):
    """The (n, m) costs, and their (n, m, d) derivatives with respect to x and y."""
    difference = x[:, None, :] - y[None, :, :]
    if cost == "cosine":
        x_norm, y_norm = np.linalg.norm(x, axis=1)[:, None, None], np.linalg.norm(y, axis=1)[None, :, None]
        u, v = x[:, None, :] / x_norm, y[None, :, :] / y_norm
        similarity = (u * v).sum(2, keepdims=True)
        return cdist(x, y, cost), (similarity * u - v) / x_norm, (similarity * v - u) / y_norm
    if cost == "huber":
        size, slope = np.abs(difference), np.clip(difference, -1, 1)
        return np.where(size <= 1, difference**2 / 2, size - 0.5).sum(2), slope, -slope
    costs = cdist(x, y, cost)
    if cost == "sqeuclidean":
        slope = 2 * difference
    elif cost == "cityblock":
        slope = np.sign(difference)
    else:
        slope = np.divide(difference, costs[:, :, None], out=np.zeros_like(difference), where=costs[:, :, None] > 0)
    return costs, slope, -slope


def soft_dtw(x, y, gamma, cost="sqeuclidean", x_lengths=None, y_lengths=None, bandwidth=None, warp_penalty=0.0):
    """Values (B,) and their gradients (B, N, D) and (B, M, D), pair by pair."""
    batch = len(x)
    values, grad_x, grad_y = np.empty(batch), np.zeros_like(x), np.zeros_like(y)
    for b in range(batch):
        n = x.shape[1] if x_lengths is None else int(x_lengths[b])
        m = y.shape[1] if y_lengths is None else int(y_lengths[b])
        radius = bandwidth if bandwidth is None or np.ndim(bandwidth) == 0 else int(bandwidth[b])
        costs, x_slope, y_slope = cost_and_slopes(x[b, :n], y[b, :m], cost)
        values[b], alignment = value_and_alignment(costs, gamma, radius, warp_penalty)
        grad_x[b, :n] = (alignment[:, :, None] * x_slope).sum(1)
        grad_y[b, :m] = (alignment[:, :, None] * y_slope).sum(0)
    return values, grad_x, grad_y


def soft_dtw_from_cost(costs, gamma, x_lengths=None, y_lengths=None, bandwidth=None, warp_penalty=0.0):
    """Values (B,) and their gradients (B, N, M), pair by pair."""
    values, alignments = np.empty(len(costs)), np.zeros_like(costs)
    for b in range(len(costs)):
        n = costs.shape[1] if x_lengths is None else int(x_lengths[b])
        m = costs.shape[2] if y_lengths is None else int(y_lengths[b])
        radius = bandwidth if bandwidth is None or np.ndim(bandwidth) == 0 else int(bandwidth[b])
        values[b], alignments[b, :n, :m] = value_and_alignment(costs[b, :n, :m], gamma, radius, warp_penalty)
    return values, alignments


def value_by_diagonals(x, y, gamma, bandwidth):
    """The value of one pair of long univariate series under a band: numpy, an anti-diagonal at a time."""
    n, m = len(x), len(y)
    low, high = min(0, m - n) - bandwidth, max(0, m - n) + bandwidth
    # A diagonal's cells by i - j, shifted so that none is negative; in_band(i, j) is low <= j - i <= high.
    width = high - low + 3
    before, last = np.full(width, math.inf), np.full(width, math.inf)
    for diagonal in range(n + m - 1):
        i = np.arange(max(0, diagonal - m + 1), min(n, diagonal + 1))
        i = i[(diagonal - 2 * i >= low) & (diagonal - 2 * i <= high)]
        now = np.full(width, math.inf)
        if len(i):
            j = diagonal - i
            k = i - j + high + 1
            steps = np.stack([before[k], last[k - 1], last[k + 1]])
            least = np.zeros(1) if diagonal == 0 else steps.min(0)
            soft = least if diagonal == 0 else least - gamma * np.log(np.exp((least - steps) / gamma).sum(0))
            now[k] = (x[i] - y[j]) ** 2 + soft
        before, last = last, now
    return last[n - m + high + 1]


def hard_dtw_from_cost(costs, bandwidth=None, warp_penalty=0.0, open_ends=False):
    """(9) for one (n, m) cost matrix: the value and the best path, a list of cells from 0, first to last.

    Ties: the diagonal predecessor, then the upper one, then the left one; of equal ends the first.
    """
    n, m = costs.shape
    table = [[math.inf] * (m + 1) for _ in range(n + 1)]
    table[0] = [0.0] * (m + 1) if open_ends else [0.0] + [math.inf] * m
    origin = {}
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if not in_band(i, j, n, m, bandwidth):
                continue
            ways = [(i - 1, j - 1, 0.0), (i - 1, j, warp_penalty), (i, j - 1, warp_penalty)]
            if open_ends and i == 1:
                ways.pop(1)  # no step down from outside
            best = min(table[a][b] + penalty for a, b, penalty in ways)
            origin[i, j] = next((a, b) for a, b, penalty in ways if table[a][b] + penalty == best)
            table[i][j] = costs[i - 1, j - 1] + best
    end = min(range(1, m + 1), key=lambda j: table[n][j]) if open_ends else m
    path, cell = [], (n, end)
    while cell[0] > 0 and cell in origin:
        path.append((cell[0] - 1, cell[1] - 1))
        cell = origin[cell]
    return table[n][end], path[::-1]


def hard_dtw(x, y, cost="sqeuclidean", x_lengths=None, y_lengths=None, bandwidth=None, warp_penalty=0.0, open_ends=False):
    """Values (B,), gradients (B, N, D) and (B, M, D), and paths, pair by pair."""
    values, grad_x, grad_y, paths = np.empty(len(x)), np.zeros_like(x), np.zeros_like(y), []
    for b in range(len(x)):
        n = x.shape[1] if x_lengths is None else int(x_lengths[b])
        m = y.shape[1] if y_lengths is None else int(y_lengths[b])
        radius = bandwidth if bandwidth is None or np.ndim(bandwidth) == 0 else int(bandwidth[b])
        penalty = warp_penalty if np.ndim(warp_penalty) == 0 else float(warp_penalty[b])
        costs, x_slope, y_slope = cost_and_slopes(x[b, :n], y[b, :m], cost)
        values[b], path = hard_dtw_from_cost(costs, radius, penalty, open_ends)
        paths.append(path)
        for i, j in path:
            grad_x[b, i] += x_slope[i, j]
            grad_y[b, j] += y_slope[i, j]
    return values, grad_x, grad_y, paths


def hard_value_by_diagonals(costs, bandwidth, warp_penalty=0.0):
    """(9) for one (n, m) cost matrix under a band: numpy, an anti-diagonal at a time."""
    n, m = costs.shape
    low, high = min(0, m - n) - bandwidth, max(0, m - n) + bandwidth
    before, last = np.full(n + 1, math.inf), np.full(n + 1, math.inf)  # by row, counted from 1
    for diagonal in range(n + m - 1):
        i = np.arange(max(0, diagonal - m + 1), min(n, diagonal + 1))
        i = i[(diagonal - 2 * i >= low) & (diagonal - 2 * i <= high)]
        now = np.full(n + 1, math.inf)
        best = np.minimum(before[i], np.minimum(last[i], last[i + 1]) + warp_penalty)
        now[i + 1] = costs[i, diagonal - i] + (np.zeros(1) if diagonal == 0 else best)
        before, last = last, now
    return last[n]


def paths(n, m, bandwidth=None):
    """Every path through an (n, m) table with the band, as a list of cells: for tables small enough to count them all."""

    def onward(i, j):
        if (i, j) == (n - 1, m - 1):
            return [[(i, j)]]
        steps = ((i + 1, j + 1), (i + 1, j), (i, j + 1))
        inside = [(a, b) for a, b in steps if a < n and b < m and in_band(a + 1, b + 1, n, m, bandwidth)]
        return [[(i, j), *rest] for a, b in inside for rest in onward(a, b)]

    return onward(0, 0)


def path_costs(costs, n, m, bandwidth, warp_penalty):
    """What each path costs, penalties included, as a tensor, and the (K, n, m) tables of the cells that each visits."""
    found = paths(n, m, bandwidth)
    visits = torch.zeros(len(found), n, m, dtype=torch.float64)
    penalties = torch.zeros(len(found), dtype=torch.float64)
    for k, path in enumerate(found):
        for i, j in path:
            visits[k, i, j] = 1
        penalties[k] = warp_penalty * sum((a, b) != (i + 1, j + 1) for (i, j), (a, b) in itertools.pairwise(path))
    return (visits * costs[:n, :m]).sum((1, 2)) + penalties, visits


def value_by_paths(costs, n, m, gamma, bandwidth=None, warp_penalty=0.0):
    """(1) from its definition, a torch scalar that autograd differentiates as often as one likes."""
    totals, _ = path_costs(costs, n, m, bandwidth, warp_penalty)
    return -gamma * torch.logsumexp(-totals / gamma, 0)


def expected_cost_by_paths(costs, n, m, gamma, bandwidth=None, warp_penalty=0.0):
    """The mean of the paths' costs, each weighted by exp(-cost / gamma); gamma = inf: all alike."""
    totals, _ = path_costs(costs, n, m, bandwidth, warp_penalty)
    weights = torch.softmax(-totals / gamma, 0) if gamma < math.inf else torch.full_like(totals, 1 / len(totals))
    return (weights * totals).sum()


def value_by_rows(costs, gamma, bandwidth=None, warp_penalty=0.0):
    """(1) as a torch recursion over the cells: slower than the paths to grow, and autograd differentiates it as well."""
    n, m = costs.shape
    above = {}
    for i in range(1, n + 1):
        row = {}
        for j in range(1, m + 1):
            if not in_band(i, j, n, m, bandwidth):
                continue
            steps = [(above.get(j - 1), 0.0), (above.get(j), warp_penalty), (row.get(j - 1), warp_penalty)]
            reached = torch.stack([value + penalty for value, penalty in steps if value is not None]) if i + j > 2 else None
            soft = 0.0 if reached is None else -gamma * torch.logsumexp(-reached / gamma, 0)
            row[j] = costs[i - 1, j - 1] + soft
        above = row
    return above[m]


def products(costs, first, second, n, m, gamma, bandwidth=None, warp_penalty=0.0):
    """<E, first>, E, H first and the derivative of H first along second, of one pair: `value_by_rows` under autograd."""
    costs = costs.clone().requires_grad_()
    value = value_by_rows(costs[:n, :m], gamma, bandwidth, warp_penalty)
    (alignment,) = torch.autograd.grad(value, costs, create_graph=True)
    along = (alignment * first).sum()
    (product,) = torch.autograd.grad(along, costs, create_graph=True)
    (third,) = torch.autograd.grad((product * second).sum(), costs)
    return [tensor.detach() for tensor in (along, alignment, product, third)]


def torch_costs(x, y, cost):
    """The (n, m) costs of two torch series, as autograd can differentiate them twice."""
    difference = x.unsqueeze(1) - y.unsqueeze(0)
    if cost == "sqeuclidean":
        return difference.square().sum(2)
    if cost == "cityblock":
        return difference.abs().sum(2)
    if cost == "euclidean":
        return difference.square().sum(2).sqrt()
    if cost == "huber":
        size = difference.abs()
        return torch.where(size <= 1, difference.square() / 2, size - 0.5).sum(2)
    unit_x, unit_y = (series / series.square().sum(1, keepdim=True).sqrt() for series in (x, y))
    return 1 - unit_x @ unit_y.T


def in_bands(costs, gamma, radii):
    """Values (B,) and alignments (B, N, N) of square tables under bands of their own, an anti-diagonal of all at a time."""
    batch, n, _ = costs.shape
    table, alignment = np.full((batch, n + 1, n + 1), math.inf), np.zeros((batch, n + 1, n + 1))
    table[:, 0, 0] = 0
    shares = []
    for diagonal in range(2 * n - 1):
        i = np.arange(max(0, diagonal - n + 1), min(n, diagonal + 1))
        j = diagonal - i
        inside = np.abs(j - i) <= np.asarray(radii)[:, None]
        steps = np.stack([table[:, i, j], table[:, i, j + 1], table[:, i + 1, j]])
        least = np.where(inside, steps.min(0), 0)
        weights = np.exp((least - steps) / gamma) * inside
        total = np.where(inside, weights.sum(0), 1)
        table[:, i + 1, j + 1] = np.where(inside, costs[:, i, j] + least - gamma * np.log(total), math.inf)
        shares.append((i, j, weights / total))
    alignment[:, n, n] = 1
    for i, j, (diag, up, left) in reversed(shares):
        here = alignment[:, i + 1, j + 1]
        alignment[:, i, j] += here * diag
        alignment[:, i, j + 1] += here * up
        alignment[:, i + 1, j] += here * left
    return table[:, n, n], alignment[:, 1:, 1:]


def range_values(costs, warp_penalty=0.0):
    """(M, M + 1): hard DTW of x with y[start:end], of the (N, M) costs of x with y; inf where there is no such range."""
    n, m = costs.shape
    values = np.full((m, m + 1), math.inf)
    for start in range(m):
        column = [math.inf] * (n + 1)
        for j in range(start, m):
            now = [math.inf] * (n + 1)
            for i in range(1, n + 1):
                diagonal = 0.0 if (i, j) == (1, start) else column[i - 1]
                best = min(diagonal, now[i - 1] + warp_penalty, column[i] + warp_penalty)
                cost = costs[i - 1, j]
                now[i] = (math.inf if math.isnan(cost) else cost) + best
            column = now
            values[start, j + 1] = now[n]
    return values


def greedy_ranges(values, k):
    """(value, start, end) of up to k ranges without overlap, of what range_values() answers: every range in order."""
    found = []
    for start, end in zip(*np.isfinite(values).nonzero(), strict=True):
        found.append((values[start, end], int(start), int(end)))
    taken = []
    for value, start, end in sorted(found):
        if len(taken) < k and all(end <= a or b <= start for _, a, b in taken):
            taken.append((value, start, end))
    return taken


def z_normalised(series):
    """(L, D), each coordinate of mean 0 and deviation 1; a constant one is 0."""
    result = np.zeros_like(series)
    for d in range(series.shape[1]):
        own = series[:, d]
        if not (own == own[0]).all():
            result[:, d] = (own - own.mean()) / own.std()
    return result


def elastic_borders(up, left, border, bandwidth=None):
    """The (n + 1, m + 1) table of (11) with nothing but row and column 0 in it: "inf", or "sum" of up and left."""
    n, m = up.shape
    table = [[math.inf] * (m + 1) for _ in range(n + 1)]
    table[0][0] = 0.0
    if border == "sum":
        for i in range(1, n + 1):
            if in_band(i, 0, n, m, bandwidth):
                table[i][0] = table[i - 1][0] + up[i - 1, 0]
        for j in range(1, m + 1):
            if in_band(0, j, n, m, bandwidth):
                table[0][j] = table[0][j - 1] + left[0, j - 1]
    return table


def elastic(diagonal, up, left, gamma=0.0, border="inf", bandwidth=None):
    """(11) and (12) of one pair from (n, m) step costs: the value, and the masses D, U, L, as (n + 1, m + 1) tables.

    gamma = 0 takes the minimum: of equal steps the diagonal one before up before left.
    """
    n, m = diagonal.shape
    borders = np.array(elastic_borders(up, left, border, bandwidth))
    costs = np.stack([by_diagonals(own) for own in (diagonal, up, left)], 1)
    table, mass = np.full((n + m + 1, n + 1), math.inf), np.zeros((n + m + 1, n + 1))
    shares, masses = np.zeros(costs.shape), np.zeros(costs.shape)
    of_rows, of_columns = np.arange(n + 1), np.arange(m + 1)
    table[of_rows, of_rows], table[of_columns, 0] = borders[:, 0], borders[0]
    shares[of_rows[1:], 1, of_rows[1:]] = shares[of_columns[1:], 2, 0] = 1.0
    cells = list(inner_cells(n, m, bandwidth))
    with np.errstate(invalid="ignore"):
        for d, rows, before, outside in cells:
            steps = costs[d, :, rows]
            steps[0] += table[d - 2, before]
            steps[1] += table[d - 1, before]
            steps[2] += table[d - 1, rows]
            value = least = steps.min(0)
            is_blocked = np.isposinf(least)
            if gamma == 0 or is_blocked.any():
                own = (np.arange(3)[:, None] == (steps == least).argmax(0)).astype(float)
            if gamma != 0:
                weights = np.exp((least - steps) / gamma)
                total = weights.sum(0)
                value = np.where(is_blocked, least, least - gamma * np.log(total))
                own = np.where(is_blocked, own, weights / total) if is_blocked.any() else weights / total
            if outside is not None:
                value[outside] = math.inf
            table[d, rows], shares[d, :, rows] = value, own
        are_numbers = not np.isnan(shares).any()
        mass[n + m, n] = 1.0
        for d in range(n + m, 0, -1):
            rows = slice(max(0, d - m), min(n, d) + 1)
            flows = masses[d, :, rows] = flows_of(mass[d, rows], shares[d, :, rows], are_numbers)
            skip = int(rows.start == 0)  # row 0 has none above it
            before = slice(rows.start - 1 + skip, rows.stop - 1)
            if d > 1:
                mass[d - 2, before] += flows[0, skip:]
            mass[d - 1, before] += flows[1, skip:]
            mass[d - 1, rows] += flows[2]
    i, j = np.ogrid[: n + 1, : m + 1]
    return float(table[n + m, n]), *np.moveaxis(masses[i + j, :, i], -1, 0)


def elastic_path(diagonal, up, left, border="inf", bandwidth=None):
    """The best path as (cells, steps): cells from 0, -1 for the border; steps 0 diagonal, 1 up, 2 left, first to last."""
    n, m = diagonal.shape
    _, *masses = elastic(diagonal, up, left, 0.0, border, bandwidth)
    i, j, cells, steps = n, m, [], []
    while i + j > 0:
        step = next(k for k in range(3) if masses[k][i, j] > 0)
        cells.append([i - 1, j - 1])
        steps.append(step)
        i, j = i - (step != 2), j - (step != 1)
    return cells[::-1], steps[::-1]


def elastic_path_costs(diagonal, up, left, border="inf"):
    """What each path of a table costs that is small enough to count them all."""
    n, m = diagonal.shape

    def onward(i, j, cost):
        if (i, j) == (n, m):
            return [cost]
        found = []
        if i < n and j < m:
            found += onward(i + 1, j + 1, cost + diagonal[i, j])
        if i < n and (j > 0 or border == "sum"):
            found += onward(i + 1, j, cost + up[i, max(j - 1, 0)])
        if j < m and (i > 0 or border == "sum"):
            found += onward(i, j + 1, cost + left[max(i - 1, 0), j])
        return found

    return np.array(onward(0, 0, 0.0))


def norm(vectors, degree):
    """Over the last axis: the Lp norm, or for a negative degree the sum of powers without the root."""
    total = (np.abs(vectors) ** abs(degree)).sum(-1)
    return total if degree < 0 else total ** (1 / degree)


def measure_costs(name, x, y, **parameters):
    """The (n, m) costs (diagonal, up, left) of a measure, and its border; x (n, d) and y (m, d) without padding."""
    n, m = len(x), len(y)
    ones = np.ones((n, m))
    distance = norm(x[:, None] - y[None], 2)
    if name == "twed":
        nu, lmbda, degree = (parameters.get(k, v) for k, v in (("nu", 0.001), ("lmbda", 1.0), ("degree", 2)))
        t, s = parameters.get("x_times"), parameters.get("y_times")
        t, s = np.arange(1.0, n + 1) if t is None else t, np.arange(1.0, m + 1) if s is None else s
        own = norm(x[:, None] - y[None], degree) + nu * np.abs(t[:, None] - s[None])
        diagonal = own.copy()
        diagonal[1:, 1:] += own[:-1, :-1]
        up = np.r_[math.inf, norm(np.diff(x, axis=0), degree) + nu * np.abs(np.diff(t)) + lmbda]
        left = np.r_[math.inf, norm(np.diff(y, axis=0), degree) + nu * np.abs(np.diff(s)) + lmbda]
        return diagonal, up[:, None] * ones, left[None] * ones, "inf"
    if name == "erp":
        gap = np.broadcast_to(parameters.get("g", 0.0), x.shape[1:])
        return distance, norm(x - gap, 2)[:, None] * ones, norm(y - gap, 2)[None] * ones, "sum"
    if name == "edr":
        epsilon = parameters.get("epsilon")
        epsilon = max(x.std(), y.std()) / 4 if epsilon is None else epsilon
        return np.where(distance < epsilon, 0.0, 1.0), ones, ones, "sum"
    if name == "lcss":
        return np.where(distance <= parameters.get("epsilon", 1.0), 0.0, 2.0), ones, ones, "sum"
    if name == "msm":
        c = parameters.get("c", 1.0)
        x, y = x[:, 0], y[:, 0]
        up, left = np.full((n, m), math.inf), np.full((n, m), math.inf)
        for i, j in itertools.product(range(n), range(m)):
            if i > 0:
                up[i, j] = c + split_or_merge(x[i], x[i - 1], y[j])
            if j > 0:
                left[i, j] = c + split_or_merge(y[j], y[j - 1], x[i])
        return np.abs(x[:, None] - y[None]), up, left, "inf"
    k = np.abs(np.arange(n)[:, None] - np.arange(m)[None])
    weighted = distance**2 / (1 + np.exp(-parameters.get("g", 0.05) * (k - max(n, m) / 2)))
    return weighted, weighted, weighted, "inf"


def split_or_merge(value, before, other):
    """Stefan, Athitsos & Das 2013: nothing more where the value lies between the two, else the way to the nearer one."""
    if min(before, other) <= value <= max(before, other):
        return 0.0
    return min(abs(value - before), abs(value - other))
