"""Processes that a test may kill: forked from a server that has imported PyTorch, so that they start at once."""

import multiprocessing
import os
import signal
import traceback
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["numpy", "torch", "torch.distributed", "torchsoftdtw"])
SOON = 120  # seconds, on a machine that has other things to do


def run(function, *inputs):
    """Start a process for each of `inputs`, a tuple of arguments, and wait. Returns how they ended; -9 is killed."""
    processes = [CONTEXT.Process(target=_guarded, args=(function, *own)) for own in inputs]
    for process in processes:
        process.start()
    for process in processes:
        process.join(SOON)
    for process in processes:
        process.kill()
        process.join()
    return [process.exitcode for process in processes]


def _guarded(function, *inputs):
    import torch

    torch.set_num_threads(1)
    try:
        function(*inputs)
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # whatever else a broken group of processes would wait for
    os._exit(0)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


class Tally:
    """Counts in a file, which outlives the processes that count."""

    def __init__(self, path):
        self.path = Path(path)

    def add(self):
        with self.path.open("ab") as file:
            file.write(b"1")

    def count(self):
        return self.path.stat().st_size if self.path.exists() else 0
