"""Averages on a GPU, whose trials become a CUDA graph after a few: they are what they are without it, wherever they run."""

import threading

import pytest
import torch
from cases import normal
from test_barycenter import noisy

from torchsoftdtw import barycenter
from torchsoftdtw._averages import replay
from torchsoftdtw._pairs import measure

pytestmark = pytest.mark.cuda

LABELS = torch.arange(150) * 7 % 40 % 29  # groups of unequal size, none of them empty
LENGTHS = 5 + torch.arange(150) % 8
CASES = {
    "one": {},
    "tol": {"tol": None},
    "groups": {"labels": LABELS},
    "lengths": {"labels": LABELS, "lengths": LENGTHS, "length": 10},
    "weights": {"weights": normal(150, seed=3).abs(), "bandwidth": 4, "warp_penalty": 0.1},
    "divergence": {"method": "divergence", "labels": LABELS},
    "cosine": {"cost": "cosine", "lengths": LENGTHS},
    "cosine divergence": {"cost": "cosine", "method": "divergence"},
    "euclidean": {"cost": "euclidean", "gamma": 1.0},
}


@pytest.fixture
def recorded(monkeypatch):
    """A list that grows with every recording."""
    found, record = [], replay.Replay._recorded

    def recording(self):
        found.append(record(self))
        return found[-1]

    monkeypatch.setattr(replay.Replay, "_recorded", recording)
    return found


def without_recording(monkeypatch, *given, **options):
    with monkeypatch.context() as patch:
        patch.setattr(replay, "WORTH", 1 << 30)
        return barycenter(*given, **options)


def check_alike(found, expected, tolerance=1e-6):
    """A recorded product of matrices may be computed another way than one that is queued; both may take a step more."""
    torch.testing.assert_close(found.series, expected.series, rtol=tolerance, atol=tolerance)
    steps = min(len(found.history), len(expected.history))
    torch.testing.assert_close(found.history[:steps], expected.history[:steps], rtol=tolerance, atol=tolerance)
    assert abs(len(found.history) - len(expected.history)) <= 3


@pytest.mark.parametrize("most_pairs", [1 << 18, 37], ids=["one block", "blocks"])
@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_averages_are_those_without_a_recording(monkeypatch, recorded, options, most_pairs):
    monkeypatch.setattr(measure, "MOST_PAIRS", most_pairs)
    series, options = noisy(150, device="cuda") + 2, {"gamma": 0.1, "tol": 0.0, "max_iter": 30, **options}
    expected = without_recording(monkeypatch, series, **options)
    assert not recorded
    found = barycenter(series, **options)
    assert len(recorded) == 1 and recorded[0] is not None
    check_alike(found, expected)
    again = barycenter(series, **options)
    assert torch.equal(found.series, again.series) and torch.equal(found.history, again.history)


@pytest.mark.parametrize("tol", [None, 0.0])
def test_long_series_in_float32(monkeypatch, recorded, tol):
    series = normal(40, 300, 1, seed=1).cumsum(1).float().cuda()
    expected = without_recording(monkeypatch, series, gamma=10.0, tol=tol, max_iter=20)
    found = barycenter(series, gamma=10.0, tol=tol, max_iter=20)
    assert len(recorded) == 1
    check_alike(found, expected, tolerance=1e-3)


@pytest.mark.parametrize(
    "options",
    [{"max_iter": replay.QUEUED + replay.WORTH - 1}, {"cost": lambda x, y: torch.cdist(x, y).square()}, {"method": "dba"}],
    ids=["few steps", "a callable cost", "dba"],
)
def test_what_is_not_recorded(recorded, options):
    barycenter(noisy(device="cuda"), tol=0.0, **options)
    assert not recorded


def test_problems_after_one_another_keep_their_results(monkeypatch):
    problems = [noisy(count, length, seed=count, device="cuda") for count, length in ((6, 12), (9, 30), (4, 7))]
    expected = [without_recording(monkeypatch, series, tol=0.0) for series in problems]
    found = [barycenter(series, tol=0.0) for series in problems * 2]
    for own, again, wanted in zip(found, found[3:], expected, strict=False):
        check_alike(own, wanted)
        assert torch.equal(own.series, again.series) and torch.equal(own.history, again.history)


def test_the_current_stream_is_the_one_that_works():
    series = noisy(150, device="cuda")
    expected = barycenter(series, gamma=1.0)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        late = torch.zeros_like(series)
        late.copy_(series)
        found = barycenter(late, gamma=1.0)
        assert torch.cuda.current_stream() == stream
    stream.synchronize()
    assert torch.equal(found.series, expected.series)


def test_threads_do_not_disturb_each_other(recorded):
    problems = [noisy(5 + count, 20, seed=count, device="cuda") for count in range(4)]
    expected, found = [barycenter(series, gamma=1.0).series for series in problems], [None] * 4

    def work(number):
        with torch.cuda.stream(torch.cuda.Stream() if number % 2 else torch.cuda.current_stream()):
            for _ in range(3):
                found[number] = barycenter(problems[number], gamma=1.0).series

    torch.cuda.synchronize()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(recorded) == 16
    for own, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(own, wanted, rtol=1e-7, atol=1e-7)


def test_recordings_after_one_another_take_the_same_memory():
    series = noisy(2000, 100, dtype=torch.float32, device="cuda")
    reserved = []
    for length in (100, 100, 60, 100, 80, 100):
        barycenter(series[:, :length], tol=0.0, max_iter=15)
        reserved.append(torch.cuda.memory_reserved())
    assert reserved[5] <= reserved[1] + (32 << 20)


def test_the_device_of_the_series_while_another_is_current():
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    expected = barycenter(noisy(device="cuda:0"), gamma=1.0).series
    with torch.cuda.device(0):
        found = barycenter(noisy(device="cuda:1"), gamma=1.0).series
        assert torch.cuda.current_device() == 0
    assert found.device == torch.device("cuda:1")
    torch.testing.assert_close(found.to("cuda:0"), expected, rtol=1e-6, atol=1e-6)


def counting():
    """(total, work): work adds one to the total."""
    total = torch.zeros((), device="cuda")
    return total, lambda: total.add_(1)


def test_every_call_does_the_work_once(recorded):
    total, work = counting()
    with replay.Replay(work, total.device, 100) as repeated:
        for number in range(1, 20):
            repeated()
            assert total.item() == number
    assert len(recorded) == 1 and recorded[0] is not None


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, RuntimeError, KeyboardInterrupt])
def test_a_recording_that_is_cut_off(recorded, error):
    """Without memory for a recording the work is queued as before, and Ctrl-C leaves nothing behind."""
    total, add = counting()

    def work():
        add()
        if torch.cuda.is_current_stream_capturing():
            raise error

    with replay.Replay(work, total.device, 100) as repeated:
        for _ in range(replay.QUEUED):
            repeated()
        if error is KeyboardInterrupt:
            with pytest.raises(KeyboardInterrupt):
                repeated()
        else:
            repeated()
            repeated()
    assert total.item() == replay.QUEUED + 2 * (error is not KeyboardInterrupt)
    assert not torch.cuda.is_current_stream_capturing()
    series = noisy(device="cuda")
    assert barycenter(series).series.isfinite().all() and recorded[-1] is not None
