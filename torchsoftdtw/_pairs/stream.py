"""Blocks of pairs one after the other, on a device that need hold neither the sets nor the values.

On a GPU with sets or values elsewhere, a stream of its own copies the series of the next block there, and the values of the
last one back, while a block is computed.
"""

import contextlib
import time

import torch

INTERVAL = 0.25  # seconds, about, after which finished blocks are put on disk and marked


class Copies:
    """Copies between the host and a GPU, by memory that the GPU can reach by itself, on a stream beside the current one."""

    def __init__(self, device):
        self.device = device
        self.stream = torch.cuda.Stream(device)

    def to_device(self, tensor):
        staged = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor)
        with torch.cuda.stream(self.stream):
            arrived = staged.to(self.device, non_blocking=True)
        arrived.record_stream(torch.cuda.current_stream(self.device))
        return arrived

    def to_host(self, tensor):
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream):
            arrived = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor, non_blocking=True)
        tensor.record_stream(self.stream)
        return arrived

    def mark(self):
        """What is_there() and have_arrived() take: all copies so far."""
        return self.stream.record_event()

    def let_compute_wait(self, mark):
        torch.cuda.current_stream(self.device).wait_event(mark)

    @staticmethod
    def wait(mark):
        while not mark.query():  # and Ctrl-C is noticed, which it would not be in synchronize()
            time.sleep(0.0002)


def copies_between(device, *others):
    """Copies, where one is needed between the host and a GPU; None otherwise."""
    return Copies(device) if device.type == "cuda" and any(other.type == "cpu" for other in others) else None


class Feed:
    """The parts of a task on a device."""

    def __init__(self, task, device, copies):
        self.task, self.device = task, device
        self.copies = copies if task.x.device.type == "cpu" else None
        self.recent = {}  # the series of the last part: the next one often has some of them

    def part(self, block):
        """(the task of a block, what ready() takes)."""
        task, options = self.task, self.task.options
        before, self.recent = self.recent, {}

        def series_of(which, series, lengths, start, stop):
            key = which, start, stop
            self.recent[key] = before.get(key) or tuple(
                None if tensor is None else self._send(tensor[start:stop]) for tensor in (series, lengths)
            )
            return self.recent[key]

        x = series_of("x", task.x, options.x_lengths, block.top, block.bottom)
        if block.is_triangle:
            y = x
        else:
            name = "x" if task.is_half else "y"
            y = series_of(name, task.y, options.y_lengths, block.left, block.right)
        return task.part(x, y, block.is_triangle), self.copies and self.copies.mark()

    def ready(self, mark):
        if self.copies is not None:
            self.copies.let_compute_wait(mark)

    def _send(self, tensor):
        return tensor.to(self.device) if self.copies is None else self.copies.to_device(tensor)


def computed(task, blocks, queue, device, copies=None, settle=lambda: None):
    """Yields (block's number, its values on the device). settle(): finish what is under way; then others are waited for."""
    feed = Feed(task, device, copies)

    def part_of(number):
        return None if number is None else feed.part(blocks[number])

    number = queue.take()
    part = part_of(number)
    while True:
        if number is None:
            settle()
            number = queue.wait()
            if number is None:
                return
            part = part_of(number)
        own, mark = part
        feed.ready(mark)
        values = own.values()
        following = queue.take()
        part = part_of(following)  # copied beside the computation
        yield number, values
        number = following


class Writer:
    """Puts the values of blocks where they belong, and says so to the queue."""

    def __init__(self, result, blocks, is_half, queue, copies):
        self.result, self.blocks, self.is_half, self.queue = result, blocks, is_half, queue
        self.copies = copies if result.tensor.device.type == "cpu" else None
        self.arriving = None  # from the device: (number, values, mark)
        self.written = []  # and not yet known to be on disk
        self.last = time.monotonic()

    def put(self, number, values):
        if self.copies is None:
            self._write(number, values)
        else:
            arriving = number, self.copies.to_host(values), self.copies.mark()
            self._write_arrived()
            self.arriving = arriving
        if self.result.flush is None or time.monotonic() > self.last + INTERVAL:
            self.commit()

    def settle(self):
        self._write_arrived()
        self.commit()

    def commit(self):
        """Blocks count as finished from here on."""
        if self.written and self.result.flush is not None:
            self.result.flush()
        written, self.written = self.written, []
        of_others = self.queue.finish(written)
        if not self.result.is_shared:  # but put together from what each rank has
            for number in of_others:
                self._fill(self.blocks[number], None)
        self.last = time.monotonic()

    def _write_arrived(self):
        if self.arriving is not None:
            number, values, mark = self.arriving
            self.arriving = None
            self.copies.wait(mark)
            self._write(number, values)

    def _write(self, number, values):
        if self.queue.is_wanted(number):
            self._fill(self.blocks[number], values)
        self.written.append(number)

    def _fill(self, block, values):
        """values None: zeros."""
        out = self.result.tensor
        own = out[block.top : block.bottom, block.left : block.right]
        mirrored = out[block.left : block.right, block.top : block.bottom].T
        for part in (own, mirrored) if self.is_half and not block.is_triangle else (own,):
            part.zero_() if values is None else part.copy_(values)


def fill(result, task, blocks, queue, device, bar):
    """Write all values to the Result; on an error, what is finished until then stays so."""
    copies = copies_between(device, task.x.device, result.tensor.device)
    writer = Writer(result, blocks, task.is_half, queue, copies)
    try:
        for number, values in computed(task, blocks, queue, device, copies, writer.settle):
            writer.put(number, values)
            bar.update(queue.count_finished)
    except BaseException:
        with contextlib.suppress(Exception):
            writer.commit()
        raise
    finally:
        bar.close()
    queue.close()
