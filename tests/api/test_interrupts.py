"""Ctrl-C ends a long call on the CPU by KeyboardInterrupt; any other handler of a signal runs while the call goes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PREPARE = """
import os, signal, sys, tempfile, threading, time
import torch
from torchsoftdtw import cdist, dtw, nearest, soft_dtw, soft_dtw_alignment, subsequence_matches

torch.set_num_threads(int(sys.argv[1]))
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
sent = []
SOON = 30  # seconds, on a machine that has other things to do; the calls take minutes

def send_soon(seconds=0.4):
    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Timer(seconds, send).start()

def interrupted(call):
    send_soon()
    try:
        call()
    except KeyboardInterrupt:
        seconds = time.monotonic() - sent[-1]
        print(f"{seconds:.2f} s", file=sys.stderr)
        return seconds
    raise AssertionError("the call came to its end")

def noise(*shape, **options):
    return torch.randn(*shape, 1, generator=torch.Generator().manual_seed(0), **options)
"""
CALLS = """
long, pairs = noise(1, 300_000), noise(4000, 4000)
assert interrupted(lambda: soft_dtw(pairs, pairs)) < SOON
assert interrupted(lambda: soft_dtw(pairs.double(), pairs.double(), bandwidth=3000)) < SOON
assert interrupted(lambda: soft_dtw(long, long)) < SOON
assert interrupted(lambda: dtw(long, long)) < SOON
compiled = torch.compile(soft_dtw, backend="eager", dynamic=True)
# So that it is the op that is interrupted, not a compilation, which may keep the interrupt to itself: the same tensor
# twice, as there.
few = noise(2, 9)
compiled(few, few)
with torch._dynamo.config.patch(error_on_recompile=True):
    assert interrupted(lambda: compiled(pairs, pairs)) < SOON
# A thread that has nothing left to do waits for another.
two = long.expand(2, -1, -1)
assert interrupted(lambda: dtw(two, two, x_lengths=[1, 300_000])) < SOON

x = noise(250, 3000, requires_grad=True)
loss = soft_dtw(x, noise(250, 3000)).sum()
assert interrupted(loss.backward) < SOON
assert x.grad is None
# Derivatives of alignments, in a single pair.
x = noise(1, 6000, requires_grad=True)
total = soft_dtw_alignment(x, noise(1, 6000))[1][:, ::7].sum()
assert interrupted(total.backward) < SOON
# And the next call is none the worse.
assert soft_dtw(x[:, :50], x[:, :50]).isfinite()
"""
ALL_PAIRS = """
# Many tiles, tiles of one pair, and tiles of cost matrices.
many, long = noise(5000, 500), noise(9, 60_000)
assert interrupted(lambda: cdist(many)) < SOON
assert interrupted(lambda: cdist(many, distance="divergence", cost=torch.cdist)) < SOON
assert interrupted(lambda: cdist(long, distance="soft_dtw")) < SOON
assert interrupted(lambda: nearest(many, None, 3)) < SOON
x = noise(2, 20_000, requires_grad=True)
total = cdist(x, noise(1, 20_000), distance="soft_dtw").sum()
assert interrupted(total.backward) < SOON
assert x.grad is None

with tempfile.TemporaryDirectory() as folder:
    finished = [0]
    for _ in range(2):  # the second goes on where the first has stopped
        assert interrupted(lambda: cdist(many[:, :80], out=f"{folder}/out.npy")) < SOON
        with open(f"{folder}/out.npy.progress", "rb") as file:
            finished.append(sum(file.read().partition(b"\\n")[2]))
    print(finished, file=sys.stderr)
    assert 0 < finished[2] and finished[1] <= finished[2]
# And the next call is none the worse.
assert torch.equal(cdist(many[:50, :50]), cdist(many[:50, :50], many[:50, :50]))
"""
MATCHES = """
assert interrupted(lambda: subsequence_matches(noise(1, 20_000)[0], noise(1, 3_000_000)[0], 3)) < SOON
assert interrupted(lambda: subsequence_matches(noise(1, 2000)[0], noise(1, 300_000)[0], 3, normalize=True)) < SOON
# And the next call is none the worse.
assert subsequence_matches(noise(1, 20)[0], noise(1, 100)[0], 1).value.isfinite()
"""
ELASTIC = """
from torchsoftdtw import elastic_path, measures, msm, twed

assert interrupted(lambda: twed(noise(1, 300_000), noise(1, 300_000))) < SOON
assert interrupted(lambda: msm(noise(4, 30_000), noise(4, 30_000), gamma=0.1)) < SOON
x = noise(2, 16_000, requires_grad=True)
total = msm(x, noise(2, 240_000), gamma=0.1).sum()
assert interrupted(total.backward) < SOON
assert x.grad is None
assert interrupted(lambda: elastic_path(noise(1, 30_000), noise(1, 60_000), measures.TWED())) < SOON
# And the next call is none the worse.
assert twed(noise(1, 20), noise(1, 100)).isfinite()
"""
HANDLERS = """
x, y = noise(60, 4000), noise(60, 4100)
start = time.monotonic()
expected = soft_dtw(x, y)
print(f"{time.monotonic() - start:.2f} s", file=sys.stderr)
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(time.monotonic()))
send_soon(0.05)
value = soft_dtw(x, y)
end = time.monotonic()
assert torch.equal(value, expected)
assert len(seen) == 1 and seen[0] < end

def stop(*_):
    raise SystemExit(7)

# Another thread's call goes on, whatever the main thread is told.
signal.signal(signal.SIGINT, signal.default_int_handler)
values, is_done = [], threading.Event()
threading.Thread(target=lambda: (values.append(soft_dtw(x, y)), is_done.set())).start()
send_soon(0.05)
try:
    is_done.wait()
    raise AssertionError("no signal")
except KeyboardInterrupt:
    assert not values
is_done.wait()
assert torch.equal(values[0], expected)

signal.signal(signal.SIGINT, stop)
send_soon(0.05)
soft_dtw(noise(4000, 4000), noise(4000, 4000))
"""


def run(code, threads):
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", PREPARE + code, str(threads)]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=900)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("calls", [CALLS, ALL_PAIRS, MATCHES, ELASTIC], ids=["pairs", "all_pairs", "matches", "elastic"])
def test_ctrl_c_ends_a_long_call(calls, threads):
    done = run(calls, threads)
    assert done.returncode == 0, done.stderr


def test_other_handlers_and_threads_see_to_their_own():
    done = run(HANDLERS, 2)
    assert done.returncode == 7, done.stderr
