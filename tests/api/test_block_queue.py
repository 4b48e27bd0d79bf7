"""Ranks of torch.distributed that share the blocks of one problem: processes, some of which die."""

import socket
import time

import numpy as np
import pytest
import torch
from cases import normal
from processes import Tally, die, run
from torch import distributed

from torchsoftdtw import cdist, pairwise
from torchsoftdtw._pairs import queue, stream
from torchsoftdtw._pairs.journal import Journal, Marks
from torchsoftdtw._pairs.measure import Measure
from torchsoftdtw._pairs.queue import Queue, Ranks, SharedQueue
from torchsoftdtw._pairs.task import Task

pytestmark = pytest.mark.usefixtures("one_thread")
P, Q = 22, 18
BLOCKS = 30  # of 4 x 4 pairs and less
OPTIONS = {"two_sets": {"distance": "soft_dtw"}, "one_set": {"distance": "divergence", "length_norm": True}}


def sets(name):
    x, y = normal(P, 12, 2, seed=1, dtype=torch.float32), normal(Q, 10, 2, seed=2, dtype=torch.float32)
    return (x, y) if name == "two_sets" else (x,)


def in_small_blocks():
    Measure.tile_shape = lambda *_, **__: (4, 4)
    stream.INTERVAL = 0
    pairwise.AT_ONCE = 0


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(Measure, "tile_shape", Measure.tile_shape)
    monkeypatch.setattr(stream, "INTERVAL", 0)
    monkeypatch.setattr(pairwise, "AT_ONCE", 0)
    in_small_blocks()


def begin(rank, folder, size=2, lease=60.0, rendezvous=None):
    """Join the group. Blocks are small, take a while, and are counted, each rank's in a file of its own."""
    in_small_blocks()
    queue.LEASE = lease
    tally, values = Tally(folder / f"computed{rank}"), Task.values

    def counted(task):
        tally.add()
        time.sleep(0.02)  # so that no rank takes all
        return values(task)

    Task.values = counted
    method = rendezvous or f"file://{folder}/rendezvous"
    distributed.init_process_group("gloo", init_method=method, rank=rank, world_size=size)


def computed(folder, rank):
    return Tally(folder / f"computed{rank}").count()


def together(rank, folder):
    begin(rank, folder)
    for name, options in OPTIONS.items():
        distributed.barrier()
        in_memory = cdist(*sets(name), **options)
        assert isinstance(in_memory, torch.Tensor)
        np.save(folder / f"{name}{rank}", in_memory)
        array = np.full(in_memory.shape, np.nan, np.float32)
        assert cdist(*(series.numpy() for series in sets(name)), **options, out=array) is array
        np.testing.assert_array_equal(array, in_memory)
        mapped = cdist(*sets(name), **options, out=folder / f"{name}.npy")
        assert isinstance(mapped, np.memmap)
        np.testing.assert_array_equal(mapped, in_memory)
    # Once more, and one rank for itself.
    assert torch.equal(cdist(*sets(name), **options), in_memory)
    before = computed(folder, rank)
    if rank == 1:
        assert torch.equal(cdist(*sets(name), **options, distributed=False), in_memory)
        assert computed(folder, rank) == before + 21
        x = sets(name)[0].requires_grad_()
        cdist(x, **options, distributed=False).sum().backward()
        with pytest.raises(RuntimeError, match="x or y requires a gradient, and there is none if ranks compute together"):
            cdist(x, **options)


def test_two_ranks_give_what_one_gives(small_blocks, tmp_path):
    assert run(together, (0, tmp_path), (1, tmp_path)) == [0, 0]
    for name, options in OPTIONS.items():
        expected = cdist(*sets(name), **options).numpy()
        for found in (f"{name}0.npy", f"{name}1.npy", f"{name}.npy"):
            np.testing.assert_array_equal(np.load(tmp_path / found), expected)
    # Each block once, but for the values of one set for itself, and with a gradient: 22.
    counts = [computed(tmp_path, rank) for rank in range(2)]
    assert sum(counts) == 3 * BLOCKS + 4 * 21 + 22 and min(counts) >= 20
    assert not list(tmp_path.glob("*.progress"))


def one_dies(rank, folder, dying, rendezvous):
    begin(rank, folder, lease=0.5, rendezvous=rendezvous)
    distributed.barrier()
    values, is_dying = Task.values, folder / "is_dying"

    def waiting(task):
        while computed(folder, rank) >= 12 and not is_dying.exists():
            time.sleep(0.01)
        return values(task)

    if rank != dying:
        Task.values = waiting
    else:
        finish, blocks = SharedQueue.finish, []

        def dying_finish(*inputs):
            if len(blocks) == 8:
                is_dying.touch()
                die()  # with values on disk, or not, and no mark
            blocks.append(inputs)
            return finish(*inputs)

        SharedQueue.finish = dying_finish
    inputs = sets("two_sets")
    if dying == 0 and rank == 1:
        with pytest.raises(RuntimeError, match=r"torch.distributed does not answer, so the rank that hosts it"):
            cdist(*inputs, out=folder / "out.npy")
    else:
        np.testing.assert_array_equal(cdist(*inputs, out=folder / "out.npy"), cdist(*inputs, distributed=False))


def host():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{free.getsockname()[1]}"


def test_the_others_finish_what_a_dead_rank_has_begun(small_blocks, tmp_path):
    rendezvous = host()
    assert run(one_dies, (0, tmp_path, 1, rendezvous), (1, tmp_path, 1, rendezvous)) == [0, -9]
    assert not list(tmp_path.glob("*.progress"))
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), cdist(*sets("two_sets")))
    # The dead rank computed 9 blocks, of which one counted for nothing.
    assert computed(tmp_path, 1) == 9 and computed(tmp_path, 0) == BLOCKS - 8 + BLOCKS


def test_without_the_host_of_the_store_a_restart_goes_on(small_blocks, monkeypatch, tmp_path):
    rendezvous = host()
    assert run(one_dies, (0, tmp_path, 0, rendezvous), (1, tmp_path, 0, rendezvous)) == [-9, 0]
    finished = sum((tmp_path / "out.npy.progress").read_bytes().partition(b"\n")[2])
    assert 8 <= finished < BLOCKS
    assert computed(tmp_path, 0) == 9 and computed(tmp_path, 1) in (finished - 8, finished - 7)
    # Two ranks or one: it is the same problem.
    blocks, values = [], Task.values
    monkeypatch.setattr(Task, "values", lambda task: blocks.append(task) or values(task))
    np.testing.assert_array_equal(cdist(*sets("two_sets"), out=tmp_path / "out.npy"), cdist(*sets("two_sets")))
    assert len(blocks) == BLOCKS - finished + BLOCKS


def one_dies_in_memory(rank, folder):
    begin(rank, folder, lease=0.5)
    distributed.barrier()
    finish = SharedQueue.finish
    SharedQueue.finish = lambda *inputs: die() if rank == 1 else finish(*inputs)
    with pytest.raises(RuntimeError):  # of the collective
        cdist(*sets("two_sets"))


def test_in_memory_no_rank_may_be_missing(tmp_path):
    assert run(one_dies_in_memory, (0, tmp_path), (1, tmp_path)) == [0, -9]


def restarted(rank, folder):
    begin(rank, folder)
    distributed.barrier()
    found = cdist(*sets("two_sets"), out=folder / "out.npy")
    np.testing.assert_array_equal(found, cdist(*sets("two_sets"), distributed=False))


def test_ranks_go_on_with_what_one_has_begun(small_blocks, tmp_path):
    calls, values = [], Task.values

    def interrupted(task):
        calls.append(task)
        if len(calls) > 12:
            raise KeyboardInterrupt
        return values(task)

    with pytest.raises(KeyboardInterrupt), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Task, "values", interrupted)
        cdist(*sets("two_sets"), out=tmp_path / "out.npy")
    assert run(restarted, (0, tmp_path), (1, tmp_path)) == [0, 0]
    assert sum(computed(tmp_path, rank) for rank in range(2)) == BLOCKS - 12 + 2 * BLOCKS
    assert not list(tmp_path.glob("*.progress"))


def at_odds(rank, folder):
    begin(rank, folder)
    x, y = sets("two_sets")
    with pytest.raises(RuntimeError, match=r"ranks of torch.distributed made different calls"):
        cdist(x + rank, y)
    with pytest.raises(
        ValueError, match="out: expected a tensor in each rank's own memory, or a file, got a tensor in shared memory"
    ):
        cdist(x, y, out=torch.empty(P, Q).share_memory_())
    # On disk each has its own.
    found = cdist(x + rank, y, out=folder / f"out{rank}.npy")
    np.testing.assert_array_equal(found, cdist(x + rank, y, distributed=False))
    # But not in one file.
    distributed.barrier()
    if rank == 0:
        Journal.remove = lambda journal: None
        cdist(x, y, out=folder / "both.npy")
    distributed.barrier()
    if rank == 1:
        with pytest.raises(ValueError, match="unfinished result of another problem, which differs in inputs"):
            cdist(x + 1, y, out=folder / "both.npy")


def test_ranks_with_different_problems(tmp_path):
    assert run(at_odds, (0, tmp_path), (1, tmp_path)) == [0, 0]


def late(rank, folder):
    begin(rank, folder)
    if rank == 1:
        distributed.barrier()
    found = cdist(*sets("two_sets"), out=folder / "out.npy")
    if rank == 0:
        distributed.barrier()
    np.testing.assert_array_equal(found, cdist(*sets("two_sets"), distributed=False))


def test_a_rank_that_comes_late_finds_all_done(tmp_path):
    assert run(late, (0, tmp_path), (1, tmp_path)) == [0, 0]
    assert [computed(tmp_path, rank) for rank in range(2)] == [2 * BLOCKS, BLOCKS]
    assert not list(tmp_path.glob("*.progress"))


def slow(rank, folder):
    begin(rank, folder, lease=0.3)
    distributed.barrier()
    if rank == 1:
        values, calls = Task.values, []

        def sleeping(task):
            calls.append(task)
            if len(calls) == 3:
                time.sleep(1.5)
            return values(task)

        Task.values = sleeping
    found = cdist(*sets("two_sets"))
    np.save(folder / f"found{rank}", found)


def test_a_block_that_two_ranks_compute_counts_once(small_blocks, tmp_path):
    assert run(slow, (0, tmp_path), (1, tmp_path)) == [0, 0]
    assert sum(computed(tmp_path, rank) for rank in range(2)) > BLOCKS
    for rank in range(2):
        np.testing.assert_array_equal(np.load(tmp_path / f"found{rank}.npy"), cdist(*sets("two_sets")))


@pytest.fixture
def store():
    return distributed.HashStore()


def shared(store, rank, count=4):
    return SharedQueue(Marks(count), Ranks({"a": "problem"}, store, rank))


def test_queue_of_one_process():
    marks = Marks(5)
    marks.set([0, 3])
    own = Queue(marks)
    assert [own.take() for _ in range(4)] == [1, 2, 4, None] and own.wait() is None
    assert own.finish([1, 2]) == [] and own.count_finished() == 4


def test_ranks_take_turns(store):
    first, second = shared(store, 0), shared(store, 1)
    assert [first.take(), second.take(), second.take(), first.take(), second.take()] == [0, 1, 2, 3, None]
    assert first.finish([0, 3]) == [] and second.finish([1, 2]) == []
    assert first.wait() is None and second.wait() is None and first.take() is None
    assert first.count_finished() == second.count_finished() == 4
    # The same problem again is another call.
    assert shared(store, 0).take() == 0


def test_a_lease_ends(store, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(queue.time, "monotonic", lambda: now[0])
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        now[0] += 1

    monkeypatch.setattr(queue.time, "sleep", sleep)
    first, second = shared(store, 0, 2), shared(store, 1, 2)
    assert first.take() == 0 and second.take() == 1
    second.finish([1])
    # The first says nothing more, and the second has waited for as long as a lease.
    assert second.wait() == 0 and queue.LEASE <= len(slept) < queue.LEASE + 3
    # It is alive, after all: its values are not wanted any more, nor do they count.
    assert first.is_wanted(0)
    second.finish([0])
    now[0] += queue.LEASE
    assert not first.is_wanted(0) and first.finish([0]) == [0]
    assert second.wait() is None and first.wait() is None


def test_slow_blocks_have_long_leases(store, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(queue.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(queue.time, "sleep", lambda _: now.__setitem__(0, now[0] + 10))
    first, second = shared(store, 0, 2), shared(store, 1, 2)
    first.take()
    second.take()
    now[0] += 1000
    second.finish([1])
    start = now[0]
    assert second.wait() == 0 and now[0] - start >= 4000


def test_a_rank_that_dies_before_its_lease_is_known(store, monkeypatch):
    monkeypatch.setattr(queue, "LEASE", 0.05)
    first, second = shared(store, 0, 1), shared(store, 1, 1)
    first.ranks.add("next", 1)
    assert second.take() is None and second.wait() == 0


def test_a_store_that_is_gone(store):
    class Gone:
        def add(self, *_):
            raise distributed.DistNetworkError("no route")

    with pytest.raises(
        RuntimeError, match="the rank that hosts it has probably ended; finished blocks of an `out` on disk"
    ):
        Ranks.ask(Gone().add, "next", 1)
