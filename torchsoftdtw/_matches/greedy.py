"""Ranges without overlap, the best one first.

The least value of every end is known at first. When a range has been taken, the ends behind it whose own best range starts
before its last column lose that range, and what they had is a lower bound of what is left to them. It stays until such an
end is the least of all; then a sweep from the range's end on finds what is left to it, and to others behind it. Each of
these sweeps goes twice as far as the end that asked for it, so that many of them together are not much longer than one.

Starts grow with ends, so the earliest of equal ranges is that with the first end.
"""

import bisect

import torch

from .smallest import Smallest


def take(by_end, k, value, start):
    """Up to k times (value, start, end), in order. value and start: of all ends, from by_end; both are overwritten."""
    least, least_columns = Smallest(value), by_end.x.shape[1]
    starts, ends, found = [], [], []  # of what is taken, in the order of y, and in that of value
    while len(found) < k:
        last, number = least.first()
        if last is None:
            break
        before = bisect.bisect_right(ends, last)
        first = ends[before - 1] if before else 0
        begin = start[last].item()
        if begin >= first:
            found.append((number, begin, last + 1))
            starts.insert(before, begin)
            ends.insert(before, last + 1)
            least.put(begin, last + 1, torch.inf)
            continue
        stop = min(last + 1 + max(last - first, least_columns), starts[before] if before < len(starts) else len(start))
        stop = last + 1 + int(torch.searchsorted(start[last + 1 : stop], first))  # later ends have lost nothing
        fresh, start[first:stop] = by_end.between(first, stop)
        least.put(first, stop, fresh)
    return found


def windows(least, k, length):
    """Up to k times (value, start, end), in order, of ranges of one length: least has their values, by their starts."""
    found = []
    while len(found) < k:
        begin, number = least.first()
        if begin is None:
            break
        found.append((number, begin, begin + length))
        least.put(max(0, begin - length + 1), begin + length, torch.inf)
    return found
