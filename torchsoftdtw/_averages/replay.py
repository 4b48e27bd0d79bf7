"""Work that a loop queues again and again, of which a GPU gets a recording after a few times: a CUDA graph, which starts in
one call what takes the host longer to queue than the GPU to do."""

import threading
from typing import NamedTuple

import torch

QUEUED = 3  # times that the work is queued before it is recorded: many loops end as soon, and libraries get ready
WORTH = 7  # times that are to come, at least: a recording takes about as long as queueing the work twice


class Recorder(NamedTuple):
    """What the recordings of one loop after another have in common: libraries keep memory for every stream that they have
    seen, and memory of recordings is apart from all other. As long as there is one, the next takes the same."""

    stream: torch.cuda.Stream
    last: torch.cuda.CUDAGraph | None


_idle: dict[int, list[Recorder]] = {}  # by device
_one_at_a_time = threading.Lock()  # as PyTorch asks for


class Replay:
    """A call does what `work()` does: it reads and writes the same tensors every time, and waits for nothing.

    No result may lie in memory that the work takes. Leave a `with` of this when the device has done all that was called.
    """

    def __init__(self, work, device, most, is_recordable=True):
        """most: how many calls there may be. is_recordable: whether the work may run while a stream is captured."""
        self._work, self._device, self._calls, self._recorder = work, device, 0, None
        self._records = (
            is_recordable
            and device.type == "cuda"
            and most >= QUEUED + WORTH
            and torch.cuda.get_allocator_backend() == "native"  # others have no memory apart
        )

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        if self._recorder is not None and error is None:  # else the device may still be at it
            _idle.setdefault(self._device.index, []).append(self._recorder)
        self._recorder = None

    def __call__(self):
        if self._records and self._calls == QUEUED:
            self._recorder = self._recorded()
        self._calls += 1
        if self._recorder is None:
            self._work()
        else:
            self._recorder.last.replay()

    def _recorded(self):
        """The Recorder that has the work, or None: there was no memory for it."""
        with torch.cuda.device(self._device), _one_at_a_time:
            idle = _idle.get(self._device.index)
            stream, before = idle.pop() if idle else Recorder(torch.cuda.Stream(), None)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.stream(stream):
                one = torch.ones((1, 1, 1), dtype=torch.float64, device=self._device)
                one @ one  # cuBLAS takes memory for the stream, which it keeps
                try:
                    # Other threads may do meanwhile what a recording forbids this one.
                    graph.capture_begin(pool=before and before.pool(), capture_error_mode="thread_local")
                    try:
                        self._work()
                    finally:
                        graph.capture_end()
                except RuntimeError:  # if it was something else, the work will say so again
                    return None
            return Recorder(stream, graph)
