"""cdist in blocks: sets and results larger than memory, on disk, on another device; interrupted and gone on with."""

import errno
import json
import os
import resource
import sys

import numpy as np
import pytest
import torch
from cases import normal
from processes import Tally, die, run

from torchsoftdtw import cdist, pairwise
from torchsoftdtw._pairs import bar, stream
from torchsoftdtw._pairs.journal import Journal
from torchsoftdtw._pairs.measure import Measure
from torchsoftdtw._pairs.task import Task

pytestmark = pytest.mark.usefixtures("one_thread")
P, Q, SIDE = 14, 9, 4
BLOCKS = 12  # of 4 x 4 pairs and less
HALF_BLOCKS = 10  # of x with itself


def sets():
    return normal(P, 12, 2, seed=1, dtype=torch.float32), normal(Q, 10, 2, seed=2, dtype=torch.float32)


def in_small_blocks():
    Measure.tile_shape = lambda *_, **__: (SIDE, SIDE)
    stream.INTERVAL = 0
    pairwise.AT_ONCE = 0


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(Measure, "tile_shape", Measure.tile_shape)
    monkeypatch.setattr(stream, "INTERVAL", 0)
    monkeypatch.setattr(pairwise, "AT_ONCE", 0)
    in_small_blocks()


@pytest.fixture
def computed(small_blocks, monkeypatch):
    """The blocks that are computed, counted."""
    blocks, values = [], Task.values
    monkeypatch.setattr(Task, "values", lambda task: blocks.append(task.shape) or values(task))
    return blocks


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.npy"


def left_beside(path):
    return sorted(each.name for each in path.parent.iterdir())


@pytest.mark.parametrize("distance", ["dtw", "soft_dtw", "divergence"])
@pytest.mark.parametrize("is_half", [False, True], ids=["two_sets", "one_set"])
def test_a_path_gets_what_memory_gets(small_blocks, path, distance, is_half):
    inputs = sets()[: 1 if is_half else 2]
    options = {"distance": distance, "cost": "cosine", "x_lengths": range(1, P - 1) and [*range(1, 13), 12, 3]}
    expected = cdist(*inputs, **options)
    found = cdist(*inputs, **options, out=path)
    assert isinstance(found, np.memmap) and left_beside(path) == ["out.npy"]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.load(path), expected)
    whole = cdist(*(series.clone().requires_grad_() for series in inputs), **options)
    assert torch.equal(whole.detach(), expected)


def test_every_kind_of_out(small_blocks, tmp_path):
    x, y = sets()
    expected = cdist(x, y)
    tensor = torch.full((P, Q), torch.nan)
    assert cdist(x, y, out=tensor) is tensor and torch.equal(tensor, expected)
    wide = torch.full((P, 2 * Q), torch.nan)
    cdist(x, y, out=wide[:, ::2])
    assert torch.equal(wide[:, ::2], expected) and wide[:, 1::2].isnan().all()
    array = np.full((P, Q), np.nan, np.float32)
    assert cdist(x, y, out=array) is array
    np.testing.assert_array_equal(array, expected)
    private = np.memmap(tmp_path / "private", np.float32, "w+", shape=(P, Q)).filename
    copied = np.memmap(private, np.float32, "c", shape=(P, Q))  # no value of it reaches the file
    assert cdist(x, y, out=copied) is copied and left_beside(tmp_path / "private") == ["private"]
    np.testing.assert_array_equal(copied, expected)


def test_a_part_of_a_memory_map(computed, tmp_path):
    x, y = sets()
    mapped = np.memmap(tmp_path / "both", np.float32, "w+", offset=12, shape=(2, P, Q))
    for half in mapped:
        assert cdist(x, y, out=half) is half
    np.testing.assert_array_equal(np.memmap(tmp_path / "both", np.float32, "r", offset=12)[P * Q :], cdist(x, y).flatten())
    with pytest.raises(OSError, match="full"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "set", full_after(2, Journal.set))
        cdist(x, y, out=mapped[0])
    with pytest.raises(ValueError, match="of another problem, which differs in place"):
        cdist(x, y, out=mapped[1])
    computed.clear()
    cdist(x, y, out=np.memmap(tmp_path / "both", np.float32, "r+", offset=12, shape=(P, Q)))
    assert len(computed) == BLOCKS - 2 and left_beside(tmp_path / "both") == ["both"]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_memory_mapped_sets(small_blocks, path, dtype):
    arrays = [series.numpy().astype(dtype) for series in sets()]
    expected = cdist(*arrays)
    for name, array in zip("xy", arrays, strict=True):
        np.save(path.with_name(name), array)
    x, y = (np.load(path.with_name(f"{name}.npy"), mmap_mode="r") for name in "xy")
    found = cdist(x, y)
    assert type(found) is np.ndarray and found.dtype == (np.float64 if dtype == np.float64 else np.float32)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(cdist(x, y, out=path), expected)
    np.testing.assert_array_equal(cdist(x[::-2], y), expected[::-2])
    np.testing.assert_array_equal(cdist(list(x), list(y)), expected)


def full_after(count, function):
    """`function`, of which only `count` calls go well: then the disk is full."""
    calls = []

    def limited(*inputs):
        calls.append(inputs)
        if len(calls) > count:
            raise OSError(errno.ENOSPC, "the disk is full")
        return function(*inputs)

    return limited


@pytest.mark.parametrize("where", [(np.memmap, "flush"), (Journal, "set")], ids=["values", "marks"])
def test_a_full_disk_loses_nothing_that_is_finished(computed, monkeypatch, path, where):
    x, y = sets()
    with pytest.raises(OSError, match="full"), monkeypatch.context() as patch:
        patch.setattr(*where, full_after(3, getattr(*where)))
        cdist(x, y, out=path)
    # The first to fail was the fourth, and what is not known to be on disk does not count.
    assert marks(path).count(1) == 3
    expected = cdist(x, y)
    computed.clear()
    np.testing.assert_array_equal(cdist(x, y, out=path), expected)
    assert len(computed) == BLOCKS - 3 and left_beside(path) == ["out.npy"]


def marks(path):
    return path.with_name("out.npy.progress").read_bytes().partition(b"\n")[2]


def without_room(path):
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
    x, y = sets()
    with pytest.raises(OSError, match=rf"out: .*, for \({P}, {Q}\) in float32: .*out.npy") as raised:
        cdist(x, y, out=path)
    assert raised.value.errno == errno.EFBIG
    np.testing.assert_array_equal(cdist(x, y), torch.from_numpy(cdist(x.numpy(), y.numpy())))


def test_a_result_that_does_not_fit_is_an_error_before_anything_is_computed(path):
    assert run(without_room, (path,)) == [0]
    assert left_beside(path) == []


def on_a_small_disk(path):
    from ctypes import CDLL

    libc = CDLL(None)
    new_user, new_mount, ids = 0x10000000, 0x00020000, (os.getuid(), os.getgid())
    if libc.unshare(new_user | new_mount) != 0:
        os._exit(77)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {ids[0]} 1"), ("gid_map", f"0 {ids[1]} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    if libc.mount(b"none", os.fsencode(path.parent), b"tmpfs", 0, b"size=64k") != 0:
        os._exit(77)
    x = normal(200, 3, 1, seed=1)
    with pytest.raises(OSError, match=r"out: No space left on device, for \(200, 200\) in float64"):
        cdist(x, out=path)
    assert left_beside(path) == []
    np.testing.assert_array_equal(cdist(x[:50], out=path), cdist(x[:50]))


def test_a_disk_that_is_full(path):
    ends = run(on_a_small_disk, (path,))
    if ends == [77]:
        pytest.skip("needs a user namespace, to mount a small disk")
    assert ends == [0]


def killed(path, count, blocks, where):
    """Compute `blocks` blocks, then die: when the next one's values are on disk, or when it is marked as well."""
    in_small_blocks()
    tally, values = Tally(count), Task.values
    Task.values = lambda task: tally.add() or values(task)
    owner, name = {"values": (np.memmap, "flush"), "marks": (Journal, "set")}[where]
    function, calls = getattr(owner, name), []

    def dying(*inputs):
        function(*inputs)
        calls.append(inputs)
        if len(calls) == blocks:
            die()

    setattr(owner, name, dying)
    cdist(*sets(), out=path)


@pytest.mark.parametrize(("where", "finished"), [("values", 4), ("marks", 5)])
def test_a_killed_run_goes_on_where_it_was(computed, tmp_path, path, where, finished):
    count = tmp_path / "count"
    assert run(killed, (path, count, 5, where)) == [-9]
    assert Tally(count).count() == 5 and sum(marks(path)) == finished
    count.unlink()
    assert run(killed, (path, count, 2, where)) == [-9]  # and once more
    finished += 2 - (where == "values")
    assert Tally(count).count() == 2 and sum(marks(path)) == finished
    count.unlink()
    found = cdist(*sets(), out=path)
    assert len(computed) == BLOCKS - finished and left_beside(path) == ["out.npy"]
    np.testing.assert_array_equal(found, cdist(*sets()))


def interrupt_after(blocks, monkeypatch):
    values, calls = Task.values, []

    def interrupted(task):
        calls.append(task)
        if len(calls) > blocks:
            raise KeyboardInterrupt
        return values(task)

    monkeypatch.setattr(Task, "values", interrupted)


def leave_unfinished(path, blocks, *inputs, **options):
    with pytest.raises(KeyboardInterrupt), pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "INTERVAL", 1000)  # what is written by then is marked nevertheless
        interrupt_after(blocks, patch)
        cdist(*inputs, **options, out=path)
    assert sum(marks(path)) == blocks


def test_an_interrupted_run_keeps_what_it_has(computed, path):
    x, _ = sets()
    leave_unfinished(path, 6, x)
    found = np.load(path)  # what is there so far is there to be looked at
    expected = cdist(x)
    np.testing.assert_array_equal(found[:4], expected[:4])
    computed.clear()
    np.testing.assert_array_equal(cdist(x, out=path), expected)
    assert len(computed) == HALF_BLOCKS - 6


CHANGES = {
    "inputs": ({"x": sets()[0] + 1e-6}, "inputs"),
    "inputs of y": ({"y": sets()[1].flip(0)}, "inputs"),
    "lengths": ({"x_lengths": [12] * P}, "inputs"),
    "shapes": ({"y": sets()[1][:, :9]}, "shapes, inputs"),
    "distance": ({"distance": "divergence"}, "distance"),
    "gamma": ({"gamma": 0.2}, "gamma"),
    "cost": ({"cost": "cityblock"}, "cost"),
    "band": ({"bandwidth": 3}, "bandwidth"),
    "penalty": ({"warp_penalty": 0.5}, "warp_penalty"),
    "length_norm": ({"length_norm": True}, "length_norm"),
    "kernel": ({"kernel": "cpu"}, "kernel"),
}


@pytest.mark.parametrize(("change", "named"), CHANGES.values(), ids=CHANGES)
def test_another_problem_is_refused(small_blocks, path, change, named):
    x, y = sets()
    call = {"x": x, "y": y, "distance": "soft_dtw"}
    leave_unfinished(path, 4, **call)
    before = path.read_bytes(), marks(path)
    with pytest.raises(ValueError, match=rf"unfinished result of another problem, which differs in {named}; choose"):
        cdist(**call | change, out=path)
    assert (path.read_bytes(), marks(path)) == before
    path.with_name("out.npy.progress").unlink()
    np.testing.assert_array_equal(cdist(**call | change, out=path), cdist(**call | change))


def test_another_version_and_other_blocks_are_refused(small_blocks, monkeypatch, path):
    leave_unfinished(path, 4, *sets())
    monkeypatch.setattr("torchsoftdtw.__version__", "0.0.1")
    monkeypatch.setattr(Measure, "tile_shape", lambda *_, **__: (3, 3))
    with pytest.raises(ValueError, match="differs in version, blocks"):
        cdist(*sets(), out=path)


class Scaled:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x, y):
        return self.scale * torch.cdist(x, y)


def test_a_callable_is_known_by_what_it_computes(computed, path):
    leave_unfinished(path, 4, *sets(), cost=Scaled(2.0))
    with pytest.raises(ValueError, match="differs in cost"):
        cdist(*sets(), cost=Scaled(3.0), out=path)
    computed.clear()
    cdist(*sets(), cost=Scaled(2.0), out=path)
    assert len(computed) == BLOCKS - 4


def test_what_lies_beside_a_result(computed, path):
    leave_unfinished(path, 4, *sets())
    journal = path.with_name("out.npy.progress")
    kept = journal.read_bytes()
    for broken in (b"", kept[:20], kept[:-1], kept + b"\1", b"\n", kept.replace(b'"format": 1', b'"format": 2'), b"[]\n"):
        if broken:
            journal.write_bytes(broken)
            with pytest.raises(ValueError, match=r"out: .*out.npy.progress is not the progress file .*; delete it"):
                cdist(*sets(), out=path)
    assert json.loads(kept.partition(b"\n")[0])["problem"]["shapes"] == [[P, 12, 2], [Q, 10, 2]]
    # A result that is gone has nothing to go on with.
    journal.write_bytes(kept)
    path.unlink()
    computed.clear()
    cdist(*sets(), out=path)
    assert len(computed) == BLOCKS
    # Nor has one whose file is empty: its run was killed before it began.
    journal.write_bytes(b"")
    cdist(*sets(), out=path)
    assert len(computed) == 2 * BLOCKS and left_beside(path) == ["out.npy"]
    # The file of another one is not taken for it.
    leave_unfinished(path, 4, *sets())
    np.save(path, np.zeros((3, 3), np.float32))
    with pytest.raises(ValueError, match=r"out: expected \(14, 9\) in float32, got \(3, 3\) in float32"):
        cdist(*sets(), out=path)


def test_room_is_reserved(small_blocks, path):
    leave_unfinished(path, 1, *sets())
    assert path.stat().st_blocks * 512 >= 4 * P * Q


@pytest.mark.parametrize("with_tqdm", [True, False])
def test_a_bar_for_long_work_alone(small_blocks, monkeypatch, capsys, path, with_tqdm):
    if with_tqdm:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    leave_unfinished(path, 4, *sets())
    cdist(*sets(), out=path)
    assert capsys.readouterr() == ("", "")
    leave_unfinished(path, 4, *sets())
    monkeypatch.setattr(bar, "QUIET", 0)
    monkeypatch.setattr(bar, "OFTEN", 0)
    cdist(*sets(), out=path)
    shown = capsys.readouterr()
    assert shown.out == "" and "cdist: " in shown.err and shown.err.endswith("\n")
    assert ("4/12" if with_tqdm else "cdist: 41 %, 5 of 12 blocks") in shown.err
    assert ("12/12" if with_tqdm else "cdist: 100 %, 12 of 12 blocks") in shown.err
    cdist(*sets(), progress=False)
    assert capsys.readouterr() == ("", "")


X, Y = sets()
WRONG = {
    "shape": ({"out": torch.empty(P, P)}, ValueError, r"out: expected \(14, 9\) in float32, got \(14, 14\) in float32"),
    "dtype": ({"out": np.empty((P, Q))}, ValueError, r"out: expected \(14, 9\) in float32, got \(14, 9\) in float64"),
    "byte order": (
        {"out": np.empty((P, Q), ">f4")},
        ValueError,
        r"out: expected \(14, 9\) in float32, got \(14, 9\) in >f4",
    ),
    "read-only": (
        {"out": np.broadcast_to(np.float32(0), (P, Q))},
        ValueError,
        "out: expected an array that can be written",
    ),
    "gradient": (
        {"out": torch.empty(P, Q, requires_grad=True)},
        ValueError,
        "out: expected a tensor that requires no grad",
    ),
    "suffix": ({"out": "out.dat"}, ValueError, "out: expected a path that ends in .npy, got 'out.dat'"),
    "type": ({"out": 3}, TypeError, "out: expected a tensor, a NumPy array or a path, got int"),
    "no device": ({"device": "gpu"}, ValueError, "device: expected the CPU or CUDA, got 'gpu'"),
    "other device": ({"device": "meta"}, ValueError, "device: expected the CPU or CUDA, got meta"),
    "progress": ({"progress": 3}, ValueError, "progress: expected None or False, got 3"),
    "distributed": ({"distributed": None}, TypeError, "distributed: expected True or False, got NoneType"),
}


@pytest.mark.parametrize(("options", "error", "message"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_named(options, error, message):
    with pytest.raises(error, match=message):
        cdist(X, Y, **options)


def test_there_is_no_gradient(path):
    x = X.clone().requires_grad_()
    with pytest.raises(
        RuntimeError, match=r"x or y requires a gradient, and there is none with out; call it under torch.no_grad"
    ):
        cdist(x, Y, out=path)
    assert left_beside(path) == []
    with torch.no_grad():
        np.testing.assert_array_equal(cdist(x, Y, out=path), cdist(X, Y))
    assert not cdist(x.detach(), Y, out=torch.empty(P, Q)).requires_grad


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there():
    with pytest.raises(RuntimeError, match=r"device: got cuda, but torch.cuda.is_available"):
        cdist(X, Y, device="cuda")


def test_empty_results(path):
    assert cdist(X[:0], Y, out=torch.empty(0, Q)).shape == (0, Q)
    assert cdist(X, Y[:0], out=torch.empty(P, 0)).shape == (P, 0)
    assert cdist(X[:0], Y, out=path).shape == (0, Q) and left_beside(path) == ["out.npy"]


@pytest.mark.cuda
@pytest.mark.parametrize("is_half", [False, True], ids=["two_sets", "one_set"])
@pytest.mark.parametrize("distance", ["dtw", "soft_dtw", "divergence"])
def test_series_on_the_host_and_computation_on_a_gpu(small_blocks, path, distance, is_half):
    inputs = sets()[: 1 if is_half else 2]
    options = {"distance": distance, "x_lengths": [*range(1, 13), 12, 3]}
    expected = cdist(*(series.cuda() for series in inputs), **options)
    assert expected.is_cuda
    found = cdist(*inputs, **options, device="cuda")
    assert found.device.type == "cpu" and torch.equal(found, expected.cpu())
    np.testing.assert_array_equal(cdist(*(series.numpy() for series in inputs), **options, device="cuda"), found)
    np.testing.assert_array_equal(cdist(*(series.cuda() for series in inputs), **options, out=path), found)
    on_gpu = torch.empty_like(expected)
    assert torch.equal(cdist(*inputs, **options, device="cuda", out=on_gpu), expected)
    torch.testing.assert_close(cdist(*inputs, **options), found, rtol=1e-4, atol=1e-4)


@pytest.mark.cuda
def test_copies_beside_computation_do_not_mix_blocks(monkeypatch, path):
    """Many blocks of much memory, which is used again and again, on both streams."""
    monkeypatch.setattr(Measure, "tile_shape", lambda *_, **__: (64, 64))
    x, y = normal(1000, 200, 3, seed=1, dtype=torch.float32), normal(900, 190, 3, seed=2, dtype=torch.float32)
    expected = cdist(x.cuda(), y.cuda()).cpu()
    for _ in range(3):
        assert torch.equal(cdist(x, y, device="cuda"), expected)
    np.testing.assert_array_equal(cdist(x, y, device="cuda", out=path), expected)


@pytest.mark.cuda
def test_no_gradient_across_devices():
    with pytest.raises(RuntimeError, match="there is none if device is not that of x"):
        cdist(X.clone().requires_grad_(), Y, device="cuda")
