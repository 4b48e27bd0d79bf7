"""Whether all averages are done, asked at every step of a loop that does not wait for the device."""

from collections import deque

import torch

AHEAD = 2  # steps that are queued before the first of them has ended


class Watch:
    """Says of a device's flags what they were a few steps ago, so that the device always has work; of the CPU's what they
    are. The number of steps is the same from run to run."""

    def __init__(self):
        self._pending = deque()

    def all_done(self, done):
        if not done.is_cuda:
            return bool(done.all())
        copy = torch.empty((), dtype=torch.bool, pin_memory=True)
        copy.copy_(done.all(), non_blocking=True)
        arrived = torch.cuda.Event()
        arrived.record(torch.cuda.current_stream(done.device))
        self._pending.append((copy, arrived))
        if len(self._pending) <= AHEAD:
            return False
        copy, arrived = self._pending.popleft()
        arrived.synchronize()
        return bool(copy)


class History:
    """The objective (G,) after every step of each average."""

    def __init__(self, first, max_iter):
        self._values = first.expand(max_iter + 1, -1).clone()
        self._number = torch.arange(max_iter + 1, device=first.device).unsqueeze(1)

    def put(self, count, value):
        """`value` (G,) after so many steps (G,), and in the place of all later ones, until they come."""
        torch.where(self._number >= count, value, self._values, out=self._values)

    def until(self, count):
        """(steps + 1, G): of the average that took the most steps."""
        return self._values[: int(count.max()) + 1]


def where(condition, new, old):
    """torch.where for a condition (G,) of tensors (G, ...)."""
    return torch.where(condition.view(-1, *(1,) * (new.dim() - 1)), new, old)
