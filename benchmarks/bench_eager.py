"""Time what the host does in an eager call, beside a bare torch.autograd.Function of as many tensors in the same run.

Nothing waits for a GPU while time is taken, so of a GPU's work the launches count and the kernels do not, as long as they
take less than the host. On the CPU the problems are so small that nearly all of the time is the host's.
"""

import argparse
import gc
import time

import common
import torch

import torchsoftdtw
from torchsoftdtw._inputs import repeats
from torchsoftdtw._internals import below_autograd
from torchsoftdtw._kernels import ops, selection

PASSES = ("forward", "forward that keeps", "forward + backward")
BETWEEN_WAITS = 50  # calls: a stream takes some hundred launches before the host has to wait


class Bare(torch.autograd.Function):
    """What an op of two tensors takes at least: a value and something to keep, and as many gradients."""

    @staticmethod
    def forward(ctx, x, y):
        value, saved = x.new_empty((x.shape[0],)), x.new_empty((8,))
        ctx.save_for_backward(x, y, value, saved)
        return value

    @staticmethod
    def backward(ctx, grad_value):
        x, y, _, _ = ctx.saved_tensors
        return torch.empty_like(x), torch.empty_like(y)


FUNCTIONS = {
    "soft_dtw": torchsoftdtw.soft_dtw,
    "SoftDTW": torchsoftdtw.SoftDTW(),
    "dtw": torchsoftdtw.dtw,
    "soft_dtw_divergence": torchsoftdtw.soft_dtw_divergence,
}
BARE = {name: Bare.apply for name in FUNCTIONS} | {"SoftDTW": lambda x, y: Bare.apply(x, y).mean()}


def seconds_of_call(run, calls, device):
    seconds = 0.0
    for start in range(0, calls, BETWEEN_WAITS):
        count = min(BETWEEN_WAITS, calls - start)
        common.synchronize(device)
        begin = time.perf_counter()
        for _ in range(count):
            run()
        seconds += time.perf_counter() - begin
    return seconds / calls


def interleaved(runs, rounds, calls, device):
    """A Timing of each of the named `runs`, in turn, so that a slow moment of the machine does not hit one of them alone.
    A call of it is the mean of `calls` calls."""
    for run in runs.values():
        seconds_of_call(run, min(calls, BETWEEN_WAITS), device)
    taken = {name: [] for name in runs}
    gc.disable()
    for _ in range(rounds):
        for name, run in runs.items():
            taken[name].append(seconds_of_call(run, calls, device))
        gc.collect()
    gc.enable()
    return {name: common.Timing(sorted(own)[rounds // 2], min(own), max(own), rounds) for name, own in taken.items()}


def passes(function, *series):
    """The PASSES of function(*series), whose values may be of any shape."""
    leaves = [one.clone().requires_grad_() for one in series]
    arriving = torch.ones_like(function(*series))
    return dict(
        zip(
            PASSES,
            (
                lambda: function(*series),
                lambda: function(*leaves),
                lambda: torch.autograd.grad(function(*leaves), leaves, arriving),
            ),
            strict=True,
        )
    )


def series_of(shape, device):
    batch, length, dim = shape
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(batch, length, dim, generator=generator).to(device) for _ in range(2)]


def functions_beside_bare(shape, options, device):
    """A row for each pass of each function of pairs."""
    x, y = series_of(shape, device)
    runs = {}
    for name, function in FUNCTIONS.items():
        for which, one in (("own", function), ("bare", BARE[name])):
            runs |= {(name, each, which): run for each, run in passes(one, x, y).items()}
    found = interleaved(runs, options.rounds, options.calls, device)
    for name in FUNCTIONS:
        for each in PASSES:
            own, bare = found[name, each, "own"], found[name, each, "bare"]
            ratio = own.fastest / bare.fastest  # what else a machine does only adds to either
            yield {"function": name, "shape": list(shape), "pass": each, **both(own, bare), "ratio": ratio}


def both(own, bare):
    return {"host": own._asdict(), "bare": bare._asdict()}


def all_pairs(shape, options, device):
    """A row for each pass of cdist of one set, with the work of the device."""
    series = series_of(shape, device)[0]
    for distance in ("soft_dtw", "dtw"):
        runs = passes(lambda x, distance=distance: torchsoftdtw.cdist(x, distance=distance, gamma=1.0), series)
        for each, run in runs.items():

            def waited(run=run):
                run()
                common.synchronize(device)

            waited()
            timing = common.pooled([common.Timing(*(3 * [seconds(waited)]), 1) for _ in range(options.rounds)])
            yield {"function": f"cdist, {distance}", "shape": list(shape), "pass": each, "waited": timing._asdict()}


def seconds(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def layers_of_soft_dtw(shape, options, device):
    """A row for each part of a call of soft_dtw, alone."""
    x, y = series_of(shape, device)
    arriving = torch.ones(len(x), device=device)
    numbers = *(None,) * 5, -1, 0.1, 0.0, "sqeuclidean", "auto", 0

    def below(op, *inputs):
        with below_autograd():
            return op(*inputs)

    value, saved = below(ops.forward, x, y, *numbers, True)
    names = "sqeuclidean", "auto"
    call = repeats.signature("soft_dtw", x, y, 0.1, 0.0, None, *names, None, None, False, False)
    of_call = len(x), x.shape[1], y.shape[1], x.shape[2], False, "sqeuclidean", False, False, False, True
    runs = {
        "what tells a call from others": lambda: repeats.signature(
            "soft_dtw", x, y, 0.1, 0.0, None, *names, None, None, False, False
        ),
        "its checks, which it skips": lambda: repeats.recall(call),
        "an op of two tensors of PyTorch": lambda: torch.maximum(arriving, arriving),
        "an empty tensor": lambda: torch.empty((1,), device=device),
        "a tensor without its graph": lambda: value.detach(),
        "the op without autograd": lambda: below(ops.forward, x, y, *numbers, False),
        "the op, which keeps": lambda: below(ops.forward, x, y, *numbers, True),
        "the op of gradients": lambda: below(ops.backward, arriving, x, y, value, saved, *numbers, True, True),
        "the op that names a kernel": lambda: ops.select_kernel("auto", *of_call, *selection.H200.values()),
    }
    if device.type == "cuda":
        runs["a guard and what is known of a device"] = lambda: ops.device_properties(0)
        runs["a kernel of PyTorch"] = lambda: arriving.zero_()
    for name, timing in interleaved(runs, options.rounds, options.calls, device).items():
        yield {"layer": name, "shape": list(shape), "host": timing._asdict()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="+", type=common.parse_shape, default=[(1, 2, 1), (512, 128, 1)], help="of pairs")
    parser.add_argument("--sets", nargs="*", type=common.parse_shape, default=[(200, 96, 1)], help="for cdist")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=200, help="of a round")
    parser.add_argument("--threads", type=int, default=1, help="on the CPU")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--commit", help="that the record names; git's by default")
    parser.add_argument("--output", help="the JSON record; by default a file in benchmarks/results")
    options = parser.parse_args()
    common.set_threads(options.threads)
    device = common.resolve_device(options.device)
    rows = []
    for shape in options.shapes:
        rows += functions_beside_bare(shape, options, device)
        rows += layers_of_soft_dtw(shape, options, device)
    for shape in options.sets:
        rows += all_pairs(shape, options, device)
    table = [
        (
            row.get("function") or row["layer"],
            "x".join(map(str, row["shape"])),
            row.get("pass", ""),
            *(common.format_seconds(row[key]["median"] if key in row else None) for key in ("host", "bare", "waited")),
            f"{row['ratio']:.2f}" if "ratio" in row else "",
        )
        for row in rows
    ]
    print(common.markdown_table(("call", "shape", "pass", "host", "bare", "waited for", "ratio"), table))
    settings = {"dtype": "float32", "rounds": options.rounds, "calls": options.calls, "threads": options.threads}
    print(f"record: {common.write_record('eager', device, settings, rows, options.output, options.commit)}")


if __name__ == "__main__":
    main()
