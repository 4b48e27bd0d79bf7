"""Time the nearest series under hard DTW with a band on the CPU: by lower bounds, and by the values of all pairs.

Both answers are compared, to the bit, before anything is timed.
"""

import argparse
import contextlib
import math
import unittest.mock

import common
import data_kinds
import torch
from tqdm import tqdm

import torchsoftdtw
from torchsoftdtw._pairs import pruning

SETS = tuple(f"real:{name}" for name in data_kinds.real_sets())
BANDS = (0.05, 0.1)
NEIGHBOURS = (1, 10)


def sets_of(kind, count, length):
    """Two sets of series of a kind; of one of the real sets its own ones, in halves."""
    _, _, data_set = kind.partition(":")
    if not data_set:
        return data_kinds.pairs(kind, count, length)
    series = data_kinds.z_normalised(data_kinds.real_sets()[data_set].double()).float()[: 2 * count]
    return series[0::2], series[1::2]


def always(answer):
    """Where bounds are used, or not, whatever is expected of them."""
    return unittest.mock.patch.object(pruning, "is_worthwhile", lambda *_: answer)


def measure(kind, count, length, repeats):
    x, y = sets_of(kind, count, length)
    for band in BANDS:
        radius = round(band * x.shape[1])
        for k in NEIGHBOURS:
            for is_one_set in (False, True):
                sets = (torch.cat([x, y]), None) if is_one_set else (x, y)
                run = lambda sets=sets, k=k, radius=radius: torchsoftdtw.nearest(*sets, k, bandwidth=radius)  # noqa: E731
                ways = {"all": always(False), "bounds": always(True), "chosen": contextlib.nullcontext()}
                found, seconds = {}, {}
                for name, way in ways.items():
                    with way:
                        found[name] = run()
                        seconds[name] = common.time_calls(run, x.device, 0, repeats).median
                if not all(torch.equal(a, b) for a, b in zip(found["all"], found["bounds"], strict=True)):
                    raise AssertionError(f"{kind}: the bounds change the answer")
                row = {"kind": kind, "shape": list(sets[0].shape), "one_set": is_one_set, "band": band, "k": k}
                yield {**row, "seconds": seconds, "ratio": seconds["all"] / seconds["chosen"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=[*data_kinds.SYNTHETIC, *SETS], help="of data")
    parser.add_argument("--count", type=int, default=400, help="series of either set, at most")
    parser.add_argument("--length", type=int, default=150, help="of what is no real set")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", choices=["cpu"], default="cpu", help="bounds are for the CPU")
    parser.add_argument("--commit", help="that the record names; git's by default")
    parser.add_argument("--output", help="the JSON record; by default a file in benchmarks/results")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = []
    for kind in tqdm(options.kinds, disable=None):
        rows += measure(kind, options.count, options.length, options.repeats)
    header = ("data", "series", "of one set", "band", "k", "all values", "by bounds", "chosen", "ratio")
    table = [
        (
            row["kind"], "x".join(map(str, row["shape"])), row["one_set"], f"{row['band']:.0%}", row["k"],
            *(common.format_seconds(own) for own in row["seconds"].values()), f"{row['ratio']:.2f}",
        )
        for row in rows
    ]  # fmt: skip
    print(common.markdown_table(header, table))
    mean = math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows))
    print(f"geometric mean of the ratios: {mean:.2f}, the least: {min(row['ratio'] for row in rows):.2f}")
    settings = {"dtype": "float32", "cost": "sqeuclidean", "threads": options.threads, "repeats": options.repeats}
    device = torch.device(options.device)
    print(f"record: {common.write_record('nearest', device, settings, rows, options.output, options.commit)}")


if __name__ == "__main__":
    main()
