"""Time elastic measures: beside aeon and tsdistances on the CPU, the published tasks of cuTWED, and batches.

Values are compared before anything is timed: with the other packages where they are installed, and between both dtypes.
"""

import argparse
import importlib.util
import itertools

import common
import numpy as np
import torch
from tqdm import tqdm

from torchsoftdtw import cdist, erp, measures, msm, twed

# Milliseconds of cuTWED for one pair in float64 on a P100 (Wright, cuTWED, arXiv 2020), beside which twed is listed.
PUBLISHED = {
    1024: 5.9, 2048: 12, 4096: 24, 8192: 50, 16384: 115, 32768: 285, 65536: 855, 131072: 3617, 262144: 13863,
    524288: 54317, 1048576: 211510,
}  # fmt: skip
FUNCTIONS = {"twed": twed, "erp": erp, "msm": msm}
BANDS = (100, 10)  # radii in percent of the length; 100: no band
PARTS = ("rivals", "pair", "batch", "sets", "query", "long-pairs")


def walks(*shape, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).cumsum(-2).to(dtype)


def times_of(length, like):
    return torch.arange(length, device=like.device, dtype=like.dtype)


def row_of(part, function, cells, device, options, peak=True, **names):
    timing = common.time_calls(function, device, options.warmup, options.repeats, options.budget)
    memory = common.peak_bytes(function, device) if peak and device.type == "cuda" else None
    own = {"part": part, "seconds": timing._asdict(), "cells": cells, "cells_per_second": cells / timing.median}
    return {**names, **own, "peak_bytes": memory}


def rivals(device, options):
    """Values of one pair in float64, each package on one thread."""
    if device.type != "cpu":
        return
    n = options.length
    x, y = walks(1, n, 1), walks(1, n, 1, seed=1)
    a, b = (np.ascontiguousarray(series[0, :, 0].numpy()) for series in (x, y))
    names = {"twed": "twe", "erp": "erp", "msm": "msm"}
    for name, function in FUNCTIONS.items():
        calls = {"torchsoftdtw": lambda function=function: function(x, y)}
        if importlib.util.find_spec("aeon"):
            import aeon.distances

            of_aeon = getattr(aeon.distances, f"{names[name]}_distance")
            calls["aeon"] = lambda of_aeon=of_aeon: of_aeon(a, b)
        if importlib.util.find_spec("tsdistances"):
            import tsdistances

            own = {"twed": {"stifness": 0.001, "penalty": 1.0}, "erp": {"gap_penalty": 0.0}, "msm": {}}[name]
            of_ts = getattr(tsdistances, f"{names[name]}_distance")
            calls["tsdistances"] = lambda of_ts=of_ts, own=own: of_ts(a, b, par=False, **own)
        if name != "erp":  # of which they have another border
            for package, call in calls.items():
                if abs(float(call()) - function(x, y).item()) > 1e-9 * function(x, y).item():
                    raise AssertionError(f"{package}: another value of {name}")
        for package, call in calls.items():
            yield row_of("rivals", call, n * n, device, options, False, measure=name, package=package, shape=[1, n, 1])


def pair(device, options):
    """One long pair with times, value alone."""
    for n in options.lengths:
        for dtype in (torch.float64, torch.float32):
            x, y = (walks(1, n, 1, dtype=dtype, seed=seed).to(device) for seed in (0, 1))
            times = times_of(n, x)
            call = lambda x=x, y=y, times=times: twed(x, y, x_times=times, y_times=times)  # noqa: E731
            names = {"measure": "twed", "dtype": str(dtype).removeprefix("torch."), "shape": [1, n, 1]}
            row = row_of("pair", call, n * n, device, options, **names)
            yield {**row, "published_milliseconds": PUBLISHED.get(n)}


def batch(device, options):
    """Values and gradients of many pairs in float32, hard and soft, without a band and with one."""
    pairs, n, dim = options.batch
    x, y = (walks(pairs, n, dim, dtype=torch.float32, seed=seed).to(device).requires_grad_() for seed in (0, 1))
    times = times_of(n, x)
    for (name, function), band, gamma in itertools.product(FUNCTIONS.items(), BANDS, (0.0, 0.1)):
        given = {"gamma": gamma, "bandwidth": None if band == 100 else n * band // 100}
        given |= {"x_times": times, "y_times": times} if name == "twed" else {}
        call = lambda function=function, given=given: function(x, y, **given)  # noqa: E731

        def value(call=call):
            with torch.no_grad():
                return call()

        def both(call=call):
            return torch.autograd.grad(call().sum(), (x, y))

        for what, run in (("value", value), ("gradients", both)):
            names = {
                "measure": name,
                "gamma": gamma,
                "band": band,
                "what": what,
                "dtype": "float32",
                "shape": [pairs, n, dim],
            }
            yield row_of("batch", run, pairs * n * n, device, options, **names)


def sets(device, options):
    """All pairs of a set of the size of Synthetic Control: half of them, and all of them."""
    count, n, dim = options.set
    x = walks(count, n, dim).to(device)
    measure = measures.TWED()
    torch.testing.assert_close(cdist(x, distance=measure), cdist(x, x.clone(), distance=measure))
    for what, other in (("half", None), ("all", x.clone())):
        call = lambda other=other: cdist(x, other, distance=measure, progress=False)  # noqa: E731
        cells = count * (count + 1) // 2 * n * n if other is None else count * count * n * n
        yield row_of(
            "sets", call, cells, device, options, measure="twed", what=what, dtype="float64", shape=[count, n, dim]
        )


def query(device, options):
    """One series of 28 steps of 28 dimensions against many, as images row by row."""
    x, y = (walks(count, 28, 28, dtype=torch.float32, seed=count).to(device) for count in (1, options.images))
    call = lambda: cdist(x, y, distance=measures.TWED(), progress=False)  # noqa: E731
    names = {"measure": "twed", "dtype": "float32", "shape": [options.images, 28, 28]}
    yield row_of("query", call, options.images * 28 * 28, device, options, **names)


def long_pairs(device, options):
    """All pairs of ten long series, as those of Pseudo Periodic."""
    x = walks(10, options.long, 1).to(device)
    call = lambda: cdist(x, distance=measures.TWED(), progress=False)  # noqa: E731
    names = {"measure": "twed", "dtype": "float64", "shape": [10, options.long, 1]}
    yield row_of("long-pairs", call, 55 * options.long**2, device, options, **names)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["rivals", "pair", "batch", "sets", "query"])
    parser.add_argument("--length", type=int, default=2048, help="beside other packages")
    parser.add_argument("--lengths", type=int, nargs="+", default=[1024, 2048, 4096, 8192], help="of one pair")
    parser.add_argument("--batch", type=common.parse_shape, default=(64, 512, 1), help="BATCHxLENGTHxDIM")
    parser.add_argument("--set", type=common.parse_shape, default=(600, 60, 1), help="SERIESxLENGTHxDIM")
    parser.add_argument("--images", type=int, default=60_000)
    parser.add_argument("--long", type=int, default=100_000)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument(
        "--budget", type=float, default=10, help="seconds of a row, which long ones keep to by fewer repeats"
    )
    parser.add_argument("--commit", help="that the record names; git's by default")
    parser.add_argument("--output", help="the JSON record; by default a file in benchmarks/results")
    options = parser.parse_args()
    device = common.resolve_device(options.device)
    common.set_threads(options.threads)
    functions = {"rivals": rivals, "pair": pair, "batch": batch, "sets": sets, "query": query, "long-pairs": long_pairs}
    rows = []
    for part in tqdm(options.parts, disable=None):
        rows += functions[part](device, options)
    table = []
    for row in rows:
        names = [row.get(name) for name in ("part", "measure", "package", "gamma", "what", "dtype")]
        published = row.get("published_milliseconds")
        table.append(
            (
                *("" if name is None else name for name in names), "x".join(map(str, row["shape"])),
                common.format_seconds(row["seconds"]["median"]), f"{row['cells_per_second']:.3g}",
                "" if published is None else f"{published:g} ms",
            )
        )  # fmt: skip
    header = ("part", "measure", "package", "gamma", "what", "dtype", "shape", "median", "cells/s", "cuTWED, P100")
    print(common.markdown_table(header, table))
    settings = {"threads": options.threads, "repeats": options.repeats, "data": "walks"}
    print(f"record: {common.write_record('elastic', device, settings, rows, options.output, options.commit)}")


if __name__ == "__main__":
    main()
