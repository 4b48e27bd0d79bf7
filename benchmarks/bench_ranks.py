"""Time cdist over the GPUs of a machine, one rank each, beside one of them alone, and kill a rank half-way.

All results are compared, to the bit, with that of one rank alone, also what the others write to disk after a rank's death.
"""

import argparse
import os
import pathlib
import signal
import tempfile
import time

import common
import data_kinds
import numpy as np
import torch
from torch import distributed

from torchsoftdtw import cdist, pairwise
from torchsoftdtw._pairs import queue


def join(rank, size, folder, number):
    """A group of `size` ranks, of which this one has a GPU of its own."""
    torch.cuda.set_device(rank)
    place = f"file://{folder}/rendezvous{number}"
    distributed.init_process_group("nccl", init_method=place, rank=rank, world_size=size)
    distributed.barrier()


def timed_loop(seconds):
    """Have the loop over blocks, without what is before and behind it, say how long it took."""
    fill = pairwise.fill

    def timed(*inputs):
        torch.cuda.synchronize()
        start = time.perf_counter()
        fill(*inputs)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)

    pairwise.fill = timed


def series_of(options, rank):
    return data_kinds.pairs(options.kind, options.count, options.length, device=torch.device("cuda", rank))[0]


def share(rank, folder, options):
    """Several calls of all ranks together, and of the first one alone."""
    join(rank, options.ranks, folder, 0)
    series, seconds = series_of(options, rank), []
    timed_loop(seconds)
    settings = {"distance": "soft_dtw", "gamma": options.gamma, "progress": False}
    cdist(series[: options.count // 8], **settings)
    together, alone = [], []
    for _ in range(options.repeats):
        distributed.barrier()
        found = cdist(series, **settings)
        together.append(seconds[-1])
        distributed.barrier()
        if rank == 0:
            expected = cdist(series, distributed=False, **settings)
            alone.append(seconds[-1])
    if rank == 0:
        np.save(f"{folder}/expected.npy", expected.cpu().numpy())
    distributed.barrier()
    expected = torch.from_numpy(np.load(f"{folder}/expected.npy", mmap_mode="c")).cuda()
    torch.save({"together": together, "alone": alone, "is_equal": torch.equal(found, expected)}, f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


def die_half_way(rank, folder, options):
    """The last rank is killed when it has finished its share of half of the blocks; the others go on."""
    join(rank, options.ranks, folder, 1)
    queue.LEASE = 1.0
    finish, finished = queue.SharedQueue.finish, []

    def finish_or_die(own, blocks):
        finished.extend(blocks)
        if rank == options.ranks - 1 and len(finished) * 2 * options.ranks > len(own.marks):
            os.kill(os.getpid(), signal.SIGKILL)
        return finish(own, blocks)

    queue.SharedQueue.finish = finish_or_die
    settings = {"distance": "soft_dtw", "gamma": options.gamma, "progress": False}
    start = time.perf_counter()
    found = cdist(series_of(options, rank), out=f"{folder}/out.npy", **settings)
    seconds = time.perf_counter() - start
    if rank == 0:
        expected = np.load(f"{folder}/expected.npy", mmap_mode="r")
        is_equal = all(np.array_equal(own, one) for own, one in zip(found, expected, strict=True))
        torch.save({"seconds": seconds, "finished": len(finished), "is_equal": is_equal}, f"{folder}/killed.pt")
    os._exit(0)  # without the others' leave, of whom one is dead


def run(function, folder, options):
    """The ranks' exit codes."""
    context = torch.multiprocessing.get_context("spawn")
    ranks = [context.Process(target=function, args=(rank, folder, options)) for rank in range(options.ranks)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    return [process.exitcode for process in ranks]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60000, help="series")
    parser.add_argument("--length", type=int, default=100)
    parser.add_argument("--kind", default="noise", help="of data")
    parser.add_argument("--gamma", type=float, default=1.0)
    parser.add_argument("--ranks", type=int, default=torch.cuda.device_count(), help="GPUs; all by default")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--folder", help="for the results, of twice 4 bytes a pair; by default a temporary one")
    parser.add_argument("--commit", help="that the record names; git's by default")
    parser.add_argument("--output", help="the JSON record; by default a file in benchmarks/results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if any(run(share, folder, options)):
            raise SystemExit("a rank failed")
        own = [torch.load(pathlib.Path(folder) / f"{rank}.pt") for rank in range(options.ranks)]
        codes = run(die_half_way, folder, options)
        if any(codes[:-1]) or codes[-1] != -signal.SIGKILL:
            raise SystemExit(f"exit codes {codes}: expected that the last rank alone is killed")
        killed = torch.load(pathlib.Path(folder) / "killed.pt")
    if not all(each["is_equal"] for each in own) or not killed["is_equal"]:
        raise AssertionError("the ranks' results are not those of one rank alone")
    together = [max(times) for times in zip(*(each["together"] for each in own), strict=True)]
    row = {"alone": own[0]["alone"], "together": together, "killed": killed, "exit_codes": codes}
    row["speedup"] = min(row["alone"]) / min(together)
    print(f"loop: alone {row['alone']} s, {options.ranks} ranks {together} s, {row['speedup']:.3f} times as fast")
    print(f"one rank killed: {killed}, exit codes {codes}")
    settings = {name: getattr(options, name) for name in ("count", "length", "kind", "gamma", "ranks", "repeats")}
    device = torch.device("cuda", 0)
    print(f"record: {common.write_record('ranks', device, settings, [row], options.output, options.commit)}")


if __name__ == "__main__":
    main()
