"""Builds the package's CUDA code for the host: what only a GPU can do is translated, all else is as it was."""

import fcntl
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from .translate import translate

HERE = Path(__file__).parent
CSRC = HERE.parents[1] / "csrc"
TORCH = Path(torch.__file__).parent
COMPILER = shutil.which(os.environ.get("CXX", "c++"))
LANGUAGE = ["-std=c++17", "-fPIC", "-fpermissive", "-w", "-ffp-contract=off"]
LANGUAGE += ["-U_FORTIFY_SOURCE"]  # whose longjmp does not go from one lane's stack to another's
WATCHED = ["-fsanitize=thread", "-g1"]  # calls what races.cpp has in the place of a library
WATCHED_ROOMS = ("bidirectional", "linear_domain", "multivariate", "multivariate/costs", "ranges", "stencil", "tiled")
WATCHED_ROOMS += ("bidirectional/many_dims", "hard/rings/costs", "warp_specialised", "../gradients")  # of csrc/cuda/kernels
MACHINE = [HERE / "machine.cpp", HERE / "races.cpp"]
LIBTORCH = ["-DTORCH_TARGET_VERSION=0x020A000000000000", "-isystem", str(TORCH / "include")]


def once(tmp_path_factory, name, build):
    """What build(folder) returns, of a folder that all processes of a test run share: only the first one builds."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / name
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "built"
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            done.write_text(str(build(folder)))
        return Path(done.read_text())


def build_strips(folder):
    """A shared library with the functions of strips.cpp."""
    _copy(folder, STRIPS)
    library, source = folder / "strips.so", folder / "strips.cpp"
    shutil.copy(HERE / "strips.cpp", source)
    sources = map(str, (source, *MACHINE))
    _run([*_compiler("-O2"), "-shared", f"-I{folder / 'csrc'}", *sources, "-o", str(library)])
    return library


def build_kernels(folder):
    """A shared library with all that csrc/cuda has, as the ops torchsoftdtw_emulated::* of CPU tensors."""
    _copy(folder, KERNELS)
    return _linked(folder, _compiled(folder, _sources(folder)))


def build_watched(folder, plain):
    """The same, but that it can watch for races in the kernels that watch.py runs, and is slower even where it does not.

    plain: where build_kernels() has put its objects, which are taken for all others.
    """
    _copy(folder, KERNELS)
    rooms = [(folder / "csrc" / "cuda" / "kernels" / room).resolve() for room in WATCHED_ROOMS]
    own = [source for source in _sources(folder) if source.name == "kernels.cpp" or source.parent.resolve() in rooms]
    others = [plain / f"{source.name}.o" for source in _sources(folder) if source not in own]
    # First the own ones: of an inline function that several objects have, the linker takes the first.
    return _linked(folder, [*_compiled(folder, own, WATCHED), *others])


def _sources(folder):
    cuda = folder / "csrc" / "cuda"
    sources = [HERE / "kernels.cpp", *MACHINE, folder / "csrc" / "ops.cpp", *cuda.rglob("*.cpp"), *cuda.rglob("*.cu")]
    return sorted(sources, key=lambda source: -source.stat().st_size)


def _compiled(folder, sources, hooks=()):
    """Their objects, in `folder`."""
    options = [*_compiler("-O1"), *hooks, f"-I{folder / 'csrc'}", *LIBTORCH, "-x", "c++"]

    def compiled(source):
        target = folder / f"{source.name}.o"
        _run([*options, "-c", str(source), "-o", str(target)])
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compiled, sources))


def _linked(folder, objects):
    library = folder / "kernels.so"
    _run([COMPILER, "-shared", *map(str, objects), "-o", str(library), f"-L{TORCH / 'lib'}", "-ltorch_cpu", "-Wl,-z,defs"])
    return library


def _compiler(optimization):
    return [COMPILER, optimization, *LANGUAGE, f"-I{HERE / 'include'}", "-include", "cuda_runtime_api.h"]


def _run(command):
    subprocess.run(command, check=True)


def _copy(folder, changes):
    """csrc, translated and changed."""
    left = dict(changes)
    for path in CSRC.rglob("*"):
        if path.is_dir():
            continue
        text = INSTEAD.get(path.name) or path.read_text()
        if path.relative_to(CSRC).parts[0] in ("core", "cuda"):
            text = translate(text, path.name)
        for old, new in left.pop(path.name, ()):
            changed = re.sub(old, new, text)
            assert changed != text, f"{path.name} does not have what the emulation changes any more: {old}"
            text = changed
        target = folder / "csrc" / path.relative_to(CSRC)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    assert not left, f"not there any more: {list(left)}"


# Files of which the emulation has its own.
INSTEAD = {"assembly.cuh": f'#pragma once\n#include "{HERE / "ptx.h"}"\n'}
# Patterns and what takes their place, of the files that have one. Kernels: lists and windows of small batches too.
# Strips: all pairs in windows, where those are asked for; the choice whether an engine gives up what another one computes
# faster, and counts.
STRIPS = {
    "linear_domain_forward.cuh": [
        (r"\(used - kSlack<T>\)\*", r"!is_patient * \g<0>"),
        (r"kAllLanes, goes_on\)\) break;", r"\g<0>\n      linear_steps_done = chunk * ShortPairLayout::kSteps;"),
    ],
    "warp_pair.cuh": [(r"is_noise = ", r"is_noise = layout.has_windows || ")],
    "extended_range_strip.cuh": [(r"left_out = true;", "left_out = true;\n      if (lane == 0) ++stages_left_out;")],
}
# CPU tensors, and memory that holds NaN until it is written.
OF_CPU = [(r"(SOFTDTW_REGISTER\w*)\(CUDA", r"\1(CPU")]
NO_GUARD = [(r" *const torch::stable::accelerator::DeviceGuard guard\(.*\n", "")]
OTHER_OPS = [(r"LIBRARY(_IMPL)?\(torchsoftdtw,", r"LIBRARY\1(torchsoftdtw_emulated,")]
KERNELS = {
    "blocks.h": [
        (r"kFewestCellsOfLists = .*;", "kFewestCellsOfLists = int64_t{1} << 16;"),
        (r"kFewestForWindows = .*;", "kFewestForWindows = 2;"),
        (r"2 \* device.processors;", "12;"),
        (r"kVectorWarps = .*;", "kVectorWarps = 6, kVectorWarpsBack = 2;"),
    ],
    "choice.cpp": [(r"int64_t fewest = .*;", "int64_t fewest = 5;")],
    "soft_dtw.cpp": [*OF_CPU, *NO_GUARD, *OTHER_OPS],
    "hard_dtw.cpp": [*OF_CPU, *NO_GUARD],
    "elastic_measures.cpp": [*OF_CPU, *NO_GUARD],
    "higher_order.cpp": [*OF_CPU, *NO_GUARD],
    "ranges.cpp": [*OF_CPU, *NO_GUARD],
    "unit_vectors.cpp": [*OF_CPU, *NO_GUARD],
    "ops.cpp": OTHER_OPS,
    "entry.h": OTHER_OPS,
    "hard_entry.h": OTHER_OPS,
    "elastic_entry.h": OTHER_OPS,
    "tangent_entry.h": OTHER_OPS,
    "ranges_entry.h": OTHER_OPS,
    "unit_vectors_entry.h": OTHER_OPS,
    "launch.h": [(r"aoti_torch_get_current_cuda_stream\(.*?\) == 0", "true")],
    "tensors.h": [
        (
            r"return Tensor\(handle\);",
            "const Tensor tensor(handle);\n"
            "  std::memset(tensor.mutable_data_ptr(), emulation::kGarbage, tensor.numel() * tensor.element_size());\n"
            "  return tensor;",
        )
    ],
}
