"""Which blocks are finished: in memory, or in a file beside a result on disk, from which an interrupted run goes on."""

import contextlib
import fcntl
import json
import mmap
import os

FORMAT = 1


class Marks:
    """Which blocks are finished."""

    def __init__(self, count):
        self.finished = bytearray(count)

    def __len__(self):
        return len(self.finished)

    def __getitem__(self, block):
        return self.finished[block] == 1

    def count(self):
        return self.finished.count(1)

    def set(self, blocks):
        for block in blocks:
            self.finished[block] = 1

    def remove(self):
        """When all is done."""


class Journal(Marks):
    """The same in a file: a line of JSON, which says of which problem, and a byte for each block, 1 where it is finished.

    A block is marked after its values are on disk, so a run that is killed at any time leaves no mark without values. All
    ranks of one machine see the marks of the others at once.
    """

    def __init__(self, path, mapping, start):
        self.path, self.mapping = path, mapping
        self.finished = memoryview(mapping)[start:]

    def count(self):
        return bytes(self.finished).count(1)

    def set(self, blocks):
        super().set(blocks)
        self.mapping.flush()

    def remove(self):
        with contextlib.suppress(FileNotFoundError):  # another rank was faster
            os.unlink(self.path)


def open_journal(path, result, problem, count, prepare, is_over):
    """The Journal at `path` of the file `result`, which prepare() makes where there is nothing to go on with, or an error
    if it belongs to another `problem` (a dict). is_over(): whether other ranks have done all by now and removed it."""
    descriptor = _open_locked(path)
    try:
        if os.fstat(descriptor).st_size == 0 or not os.path.exists(result):
            if is_over():
                os.unlink(path)
                return _all_finished(count)
            try:
                os.ftruncate(descriptor, 0)
                prepare()
                header = json.dumps({"format": FORMAT, "problem": problem}).encode() + b"\n"
                os.write(descriptor, header + bytes(count))
                os.fsync(descriptor)
            except BaseException:
                os.unlink(path)
                raise
        mapping = mmap.mmap(descriptor, 0)
        start = _check(mapping, path, result, problem, count)
        return Journal(path, mapping, start)
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # which a mapping would keep
        os.close(descriptor)


def _open_locked(path):
    """A descriptor of the file at `path`, new or not, that no other process prepares at the same time."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.stat(path).st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        os.close(descriptor)  # removed while this waited


def _all_finished(count):
    marks = Marks(count)
    marks.set(range(count))
    return marks


def _check(mapping, path, result, problem, count):
    """Where the marks begin, or an error."""
    header = mapping.readline()
    try:
        found = json.loads(header)
        other = found["problem"] if found["format"] == FORMAT else None
        differing = [key for key in problem if other.get(key) != problem[key]]
    except (ValueError, KeyError, TypeError, AttributeError):
        differing = None
    if differing is None or (not differing and len(mapping) != len(header) + count):
        raise ValueError(
            f"out: {path} is not the progress file of an unfinished result of this version of torchsoftdtw; delete it"
        )
    if differing:
        raise ValueError(
            f"out: {result} is the unfinished result of another problem, which differs in {', '.join(differing)}; choose "
            f"another path, or delete {path} to start again"
        )
    return len(header)
