import zlib

import pytest
import torch
from cases import EMULATED, ENGINES, EVERY_TEMPLATE, KERNELS, NAMES_OF_PARTS, PARTS, marks_of, parameters
from emulation.build import build_kernels, once
from emulation.device import EmulatedGPU
from hypothesis import settings

from torchsoftdtw._inputs import repeats
from torchsoftdtw._kernels import ops, selection

# The same examples in every run, and the counter-example in the report.
settings.register_profile("package", derandomize=True, deadline=None, print_blob=True, max_examples=60)
settings.load_profile("package")


def pytest_report_header():
    if EMULATED in NAMES_OF_PARTS:
        return f"emulated GPU: the commit's part of its tests; again by EMULATED_GPU={EMULATED}, others by its first number"


def pytest_collection_modifyitems(config, items):
    if EMULATED in NAMES_OF_PARTS:
        left_out = [item for item in items if is_left_out(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_left_out(item)]
    if not torch.cuda.is_available():
        reason = "needs a GPU, and torch.cuda.is_available() is False"
    elif not ops.HAS_CUDA:
        reason = "needs the CUDA library, which was not built"
    else:
        return
    for item in items:
        if item.get_closest_marker("cuda"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def emulated_gpu(tmp_path_factory):
    return EmulatedGPU(once(tmp_path_factory, "kernels", build_kernels))


@pytest.fixture(autouse=True)
def seed():
    """Networks of a test begin alike, whatever has run before it."""
    torch.manual_seed(0)


@pytest.fixture
def filled_memory():
    """opcheck compares all of what two calls return, also bytes of `saved` that a kernel has no use for."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    assert torch.utils.deterministic.fill_uninitialized_memory
    yield
    torch.use_deterministic_algorithms(before)


@pytest.fixture
def one_thread():
    """For problems so small that threads would wait for each other most of the time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def gpu(request):
    """The emulated GPU, of a test that runs on it."""
    marker = request.node.get_closest_marker("emulated")
    if marker is None:
        yield None
        return
    emulated = request.getfixturevalue("emulated_gpu")
    with emulated.behind_the_package(marker.kwargs.get("every_op", False)):
        yield emulated


def is_left_out(item):
    """All tests on the emulated GPU take long: of those that need not run always, one part of twelve runs, by its name."""
    if not item.get_closest_marker("emulated") or item.get_closest_marker("always"):
        return False
    part = zlib.crc32(item.nodeid.encode()) % PARTS
    return bool(item.get_closest_marker("long")) or NAMES_OF_PARTS[part] != EMULATED


def force_rows(monkeypatch, case):
    """Make the package use the case's rows per thread, which it would choose by size otherwise (float64 has only one)."""
    chosen = selection.plan

    def forced(kernel, like):
        plan = chosen(kernel, like)
        wanted = case.rows and plan.kernel == case.name and like.dtype != torch.float64
        return plan._replace(rows_per_thread=case.rows) if wanted else plan

    monkeypatch.setattr(selection, "plan", forced)
    monkeypatch.setattr(repeats, "known", {})
    return case


@pytest.fixture(params=parameters(KERNELS))
def kernel(request, monkeypatch):
    """Each kernel once, with the rows per thread that the package chooses."""
    return force_rows(monkeypatch, request.param)


@pytest.fixture(params=parameters(EVERY_TEMPLATE))
def template(request, monkeypatch):
    """Each kernel with every number of rows per thread that it is compiled for in float32."""
    return force_rows(monkeypatch, request.param)


@pytest.fixture(params=[pytest.param(e, id=f"{e[0]}-{e[1]}", marks=marks_of(e[0])) for e in ENGINES])
def engine(request, monkeypatch):
    """Each kernel that has engines to choose from, and the CPU's, with every dtype and number of rows, as (case, dtype)."""
    case, dtype = request.param
    return force_rows(monkeypatch, case), dtype
