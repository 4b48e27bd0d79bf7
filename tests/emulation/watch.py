"""Runs kernels of WATCHED_ROOMS (build.py) on an emulated GPU that watches for races (races.h), in a process of its own:
`watch.py LIBRARY`.
"""

import sys

from cases import KernelCase, normal, run, run_from_cost

from emulation.device import EmulatedGPU
from emulation.test_emulated_gpu import OPTIONS, WRONG
from torchsoftdtw import dtw, dtw_path, soft_dtw
from torchsoftdtw._kernels import ops

# Kernel, gamma, batch, n, m, dim: small, as watching takes long. Pairs of gamma 0.1 and 0.2 are given up half-way by the
# first of the two engines of short pairs. Below also the cost.
SHAPES = [
    *(("stencil", gamma, 5, 60, 50, 1) for gamma in (1.0, 0.01)),
    *(("tiled", gamma, 3, 60, 50, 1) for gamma in (1.0, 0.01)),
    *(("stencil", gamma, 2, 250, 240, 1) for gamma in (0.1, 0.2)),
    ("stencil", 1.0, 1, 300, 30, 1),
    ("stencil", 3.0, 1, 100, 40, 3),
    ("tiled", 2.0, 1, 700, 16, 2),
    ("tiled", 12.0, 1, 100, 40, 12),
    ("tiled", 20.0, 1, 420, 24, 20),
]
WITH_COSTS = [
    *((*shape, "sqeuclidean") for shape in SHAPES),
    ("tiled", 1.0, 1, 700, 16, 2, "euclidean"),
    ("tiled", 1.0, 1, 200, 24, 12, "cityblock"),
    ("tiled", 1.0, 1, 420, 24, 20, "euclidean"),
    ("tiled", 1.0, 1, 200, 24, 20, "huber"),
]


# Of the kernels of kernels.cpp that do wrong, those behind the ones of test_emulated_gpu.py, and whether they have a race.
RACES = {
    "read_what_another_warp_writes": True,
    "order_memory_by_a_shuffle": True,
    "wait_for_a_copy_of_another_lane": True,
    "read_what_another_warp_has_written": False,
}


def check_watching(gpu):
    """That what is known to be a race is told of, in any order of events, and nothing else."""
    for number, (name, has_race) in enumerate(RACES.items(), len(WRONG)):
        for seed in range(10):
            gpu.set_order(seed, 4, True)
            failure = gpu.failure_of(number).decode()
            assert failure.startswith("nothing orders a") if has_race else failure == "", (name, seed, failure)


def main():
    gpu = EmulatedGPU(sys.argv[1])
    check_watching(gpu)
    with gpu.behind_the_package(False):
        for name, gamma, batch, n, m, dim, cost in WITH_COSTS:
            x, y = normal(batch, n, dim, seed=n).float(), normal(batch, m, dim, seed=m + 1).float()
            for seed in range(3):
                gpu.set_order(seed, 4, True)
                run(KernelCase("cpu", name), x, y, gamma, cost=cost)
        for batch, n, m in ((2, 100, 50), (1, 140, 260)):
            x, y = normal(batch, n, 1, seed=n).float(), normal(batch, m, 1, seed=m + 1).float()
            for seed in range(2):
                gpu.set_order(seed, 4, True)
                run(KernelCase("cpu", "tiled"), x, y, 1.0, **OPTIONS)
        x, y = normal(1, 140, 12, seed=1).float(), normal(1, 260, 12, seed=2).float()
        for seed in range(2):  # many dimensions from both ends, and hard DTW whose costs other warps compute
            gpu.set_order(seed, 4, True)
            soft_dtw(x, y, 1.0, kernel="tiled/bidirectional", bandwidth=30)
            dtw(x, y[:, :130], bandwidth=9)
            dtw_path(x.repeat(1, 1, 3), y[:, :130].repeat(1, 1, 3), bandwidth=9)  # from products
        for batch, n, m in ((2, 60, 50), (1, 300, 37)):  # ready-made costs
            for seed in range(2):
                gpu.set_order(seed, 4, True)
                run_from_cost(KernelCase("cpu", "tiled/ready_made"), normal(batch, n, m, seed=n).float().abs(), 1.0)
    with gpu.behind_the_package(True):
        for n, m, dim in ((300, 40, 1), (1100, 24, 2)):  # several strips at a time, and more than a block has warps
            x, y = normal(2, n, dim, seed=n).float(), normal(2, m, dim, seed=m + 1).float()
            for seed in range(3):
                gpu.set_order(seed, 4, True)
                ops.best_ranges(x, y, 0.0, "sqeuclidean")


if __name__ == "__main__":
    main()
