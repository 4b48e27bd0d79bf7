"""Steps that take the host no time: on a GPU one is recorded as a CUDA graph, and then replayed."""

import collections
import functools
import threading

import torch


class Replay:
    """Calls step(state), which returns the next state: tensors of its own, in tuples of tuples, of the same shapes. A step
    must not wait for the device, nor depend on anything but its state.

    The first call runs as it is, so that what is set up once is not part of the record. After `close`, there is none.
    """

    def __init__(self, step, is_recordable):
        """is_recordable: False, where a step may run code of the user's own."""
        self._step, self._is_recordable = step, is_recordable
        self._calls = 0
        self._graph = self._pool = self._state = None

    def __call__(self, state):
        self._calls += 1
        if self._calls == 1 or not self._may_record(state):
            return self._step(state)
        if self._graph is None:
            self._record(state)
        self._graph.replay()
        return self._state

    def close(self):
        """To be called at the end, also after an error."""
        if self._graph is not None:
            device = next(_tensors(self._state)).device
            torch.cuda.current_stream(device).synchronize()  # another graph may get the memory
            self._graph.reset()
            _pools[device].append(self._pool)
            self._graph = self._pool = None

    def _may_record(self, state):
        device = next(_tensors(state)).device
        if not self._is_recordable or device.type != "cuda":  # a PyTorch without CUDA has nothing to ask below
            return False
        return torch.cuda.get_allocator_backend() == "native" and not torch.cuda.is_current_stream_capturing()

    def _record(self, state):
        """A graph of one step, that reads the state where it is and writes the next one there."""
        self._state = state
        device = next(_tensors(state)).device
        stream = _stream(device, threading.get_ident())
        self._pool = _pool(device)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(device), torch.cuda.stream(stream):
            self._graph.capture_begin(pool=self._pool.id, capture_error_mode="thread_local")
            try:
                for kept, new in zip(_tensors(state), _tensors(self._step(state)), strict=True):
                    kept.copy_(new)
            finally:
                self._graph.capture_end()


def _tensors(state):
    for part in state:
        if isinstance(part, tuple):
            yield from _tensors(part)
        else:
            yield part


_pools = collections.defaultdict(list)  # that no graph uses, by device


def _pool(device):
    """Memory for what a graph computes on the way. It is kept for the next one: to free it while another thread records
    would end the process."""
    try:
        return _pools[device].pop()
    except IndexError:
        with torch.cuda.device(device):
            return torch.cuda.MemPool()


@functools.cache
def _stream(device, _thread):
    """A stream to record on. What cuBLAS keeps for a stream and a thread is allocated here: no record may own it."""
    stream = torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        one = torch.ones((1, 2, 2), dtype=torch.float64, device=device)
        torch.linalg.solve_triangular(one @ one, one, upper=True)
    stream.synchronize()
    return stream
