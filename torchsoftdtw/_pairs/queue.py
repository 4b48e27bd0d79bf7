"""Which block is computed next: a queue for one process, and one that the ranks of torch.distributed share."""

import hashlib
import json
import time

import torch
from torch import distributed

from .._internals import default_store

LEASE = 30.0  # seconds after which a block that its rank has not finished is free again, at the least
PATIENCE = 4  # times what the slowest block took, which is what a lease is otherwise
POLL = 0.02
MOST_BYTES = 256 << 20  # of a collective, where it has to be on another device


class Queue:
    """The blocks of one process, those that have no mark."""

    def __init__(self, marks):
        self.marks = marks
        self.following = 0

    def take(self):
        """A block to compute, or None where none is free."""
        while self.following < len(self.marks):
            self.following += 1
            if not self.marks[self.following - 1]:
                return self.following - 1
        return None

    def wait(self):
        """The same, where the caller has nothing under way: None only when all blocks are finished."""
        return None

    def is_wanted(self, block):
        """Whether the values of a block that was taken are still to be written."""
        return True

    def finish(self, blocks):
        """Say that the values of blocks are where they belong. Returns those of them that count as another rank's."""
        self.marks.set(blocks)
        return []

    def count_finished(self):
        return self.marks.count()

    def close(self):
        """When all blocks are finished."""
        self.marks.remove()


class Ranks:
    """The ranks that work on one problem, whose `identity` tells it from others, and what they tell each other by the store
    of torch.distributed: no collective, in which they would have to wait for each other."""

    def __init__(self, identity, store, rank):
        self.rank = rank
        self.key = hashlib.blake2b(json.dumps(identity).encode(), digest_size=7).hexdigest()
        # A problem may be computed several times: a rank counts its calls, and those of the same number belong together.
        store = distributed.PrefixStore(f"torchsoftdtw/{self.key}", store)
        self.call = self.ask(store.add, f"call/{rank}", 1)
        self.store = distributed.PrefixStore(str(self.call), store)

    @classmethod
    def of_world(cls, identity):
        return cls(identity, default_store(), distributed.get_rank())

    @staticmethod
    def ask(question, *inputs):
        try:
            return question(*inputs)
        except RuntimeError as error:
            raise RuntimeError(
                "cdist: the store of torch.distributed does not answer, so the rank that hosts it has probably ended; "
                "finished blocks of an `out` on disk are kept, and the same call continues from there"
            ) from error

    def has(self, name):
        return self.ask(self.store.check, [name])

    def add(self, name, number):
        return self.ask(self.store.add, name, number)

    def replace(self, name, old, new):
        """Whether this rank was the one that put `new` in the place of `old`; "" is nothing."""
        return self.ask(self.store.compare_set, name, old, new) == new.encode()

    def get(self, name):
        return self.ask(self.store.get, name).decode() if self.has(name) else ""

    def set(self, name):
        self.ask(self.store.set, name, "1")

    def is_over(self):
        return self.has("over")


class SharedQueue(Queue):
    """The blocks of all ranks. Each takes the next one from a counter; when it has run out, those that were taken and not
    finished in time are taken again: their ranks may be dead. A block that is computed twice does no harm."""

    def __init__(self, marks, ranks):
        super().__init__(marks)
        self.ranks = ranks
        self.before = marks.count()
        self.known = bytearray(marks[block] for block in range(len(marks)))
        self.taken = {}  # when
        self.slowest = 0.0
        self.seen = {}  # block -> whose lease it was, and since when

    def take(self):
        while True:
            block = self.ranks.add("next", 1) - 1
            if block >= len(self.marks):
                return None
            if not self._is_finished(block):
                self.ranks.replace(f"lease/{block}", "", self._own_name(block))
                return block

    def wait(self):
        while True:
            open_blocks = [block for block in range(len(self.known)) if not self._is_finished(block)]
            if not open_blocks:
                return None
            for block in open_blocks:
                if self._take_again(block):
                    return block
            time.sleep(POLL)

    def is_wanted(self, block):
        is_late = time.monotonic() - self.taken[block] > LEASE
        return not (is_late and self._is_finished(block))

    def finish(self, blocks):
        now = time.monotonic()
        self.marks.set(blocks)
        others = []
        for block in blocks:
            self.slowest = max(self.slowest, now - self.taken[block])
            self.known[block] = 1
            if self.ranks.replace(f"finished/{block}", "", str(self.ranks.rank)):
                self.ranks.add("finished", 1)
            else:
                others.append(block)
        return others

    def count_finished(self):
        return self.before + self.ranks.add("finished", 0)

    def close(self):
        self.ranks.set("over")  # for ranks that are late, which would find no journal
        super().close()

    def _is_finished(self, block):
        if not self.known[block]:
            self.known[block] = self.marks[block] or self.ranks.has(f"finished/{block}")
        return self.known[block]

    def _take_again(self, block):
        lease, now = self.ranks.get(f"lease/{block}"), time.monotonic()
        name, since = self.seen.get(block, (None, now))
        if name != lease:
            self.seen[block] = lease, now
            return False
        if now - since < max(LEASE, PATIENCE * self.slowest):
            return False
        return self.ranks.replace(f"lease/{block}", lease, self._own_name(block))

    def _own_name(self, block):
        """What a lease of this rank is called: another one each time."""
        self.taken[block] = time.monotonic()
        return f"{self.ranks.rank} {self.taken[block]}"


def ranks_at_work():
    """How many ranks there are, 1 without torch.distributed."""
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def put_together(tensor, ranks):
    """Have every rank's `tensor` hold what any of them has written to its own, where the others have zeros."""
    is_on_device = tensor.device.type in distributed.get_backend_config()
    device = tensor.device if is_on_device else torch.device("cuda", torch.cuda.current_device())
    digits = int(ranks.key, 16), ranks.call
    own = torch.tensor([*digits, -digits[0], -digits[1]], device=device)
    distributed.all_reduce(own, distributed.ReduceOp.MAX)
    if own[:2].tolist() != (-own[2:]).tolist():
        raise RuntimeError(
            "cdist: the ranks of torch.distributed made different calls, and without an `out` on disk they compute one "
            "result together; distributed=False lets each rank compute its own"
        )
    # As whole numbers, of which a sum with zeros has every bit.
    bits = tensor.view(torch.int64 if tensor.dtype == torch.float64 else torch.int32)
    if is_on_device and bits.is_contiguous():
        distributed.all_reduce(bits)
        return
    for rows in bits.split(max(1, MOST_BYTES // max(1, bits[:1].nbytes))):
        part = rows.to(device).contiguous()
        distributed.all_reduce(part)
        rows.copy_(part)
