"""Builds the strips' device code for the host.

What only a GPU can do, PTX and launches, is replaced or left out in a copy of csrc; everything else is compiled as it
stands, with warp.h in the place of CUDA.
"""

import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
CSRC = HERE.parents[1] / "csrc"


def build(folder, compiler):
    """The path of a shared library with the functions of strips.cpp."""
    shutil.copytree(CSRC, folder / "csrc")
    for name, change in CHANGES.items():
        path = folder / "csrc" / "cuda" / name
        before = path.read_text()
        after = change(before)
        assert after != before, f"nothing to replace in {name}"
        path.write_text(after)
    for name in ("warp.h", "strips.cpp"):
        shutil.copy(HERE / name, folder)
    library = folder / "strips.so"
    language = ["-O2", "-std=c++17", "-fpermissive", "-w", "-ffp-contract=off"]
    jumps = ["-U_FORTIFY_SOURCE"]  # whose longjmp does not go from one lane's stack to another's
    files = ["-shared", "-fPIC", f"-I{folder}", str(folder / "strips.cpp"), "-o", str(library)]
    subprocess.run([compiler, *language, *jumps, *files], check=True)
    return library


def _arithmetic(text):
    # An H200's unit is about as much too low as one that truncates, but for results near 1.
    exact = "const double exact = std::exp2(static_cast<double>(a));\n"
    flushed = exact + "float r = exact < 0.7 ? __double2float_rz(exact) : exact;\n    if (r < 1.17549435e-38f) r = 0;\n"
    text = re.sub(r'float r;\n *asm\("ex2.*\n', flushed, text)
    text = re.sub(r'float r;\n *asm\("rcp.*\n', "float r = 1 / a;\n", text)
    text = re.sub(r'float r;\n *asm\("lg2.*\n', "float r = std::log2(a);\n", text)
    return re.sub(r'float r;\n *asm\("sqrt.*\n', "float r = std::sqrt(a);\n", text)


def _without(text, first, last):
    """Without what begins with one string and ends before another one."""
    return text[: text.index(first)] + text[text.index(last) :]


def _progress(text):
    """A warp alone waits for nobody."""
    plain = (
        "template <bool> inline void publish(Progress* word, Progress progress) { *word = progress; }\n"
        "template <bool> inline Progress look_at(const Progress* word) { return *word; }\n\n"
    )
    last = "// One neighbour of a strip"
    return _without(text, "template <bool kNear>", last).replace(last, plain + last)


def _without_launches(text):
    text = _without(text, "// Backward: `sweep` goes over", "// E / C, the part of euclidean's")
    return text.replace('#include "series_gradient.cuh"\n', "")


def _engines(text):
    text = _without(text, "// Whether float64 is fast enough", "// Whether there are verdicts")
    text = _without(text, "// Calls launch(tile)", "// The answer for lengths out of range")
    return text.replace("#include <cuda_runtime_api.h>\n", "")


def _job(text):
    text = re.sub(r"asm volatile\(.*", ";", text)
    return re.sub(r"extern __shared__ .*\n", "inline char stage_memory[1 << 18] __attribute__((aligned(64)));\n", text)


def _replaced(text, *changes):
    """With at least one of the changes, pairs of old and new, made."""
    changed = text
    for old, new in changes:
        changed = changed.replace(old, new)
    assert changed != text, f"what the emulation changes is not there any more: {[old for old, _ in changes]}"
    return changed


def _patient(text):
    """With strips.cpp's choice of whether an engine gives up what another one computes faster: in one of three places."""
    return _replaced(
        text,
        ("int left = kAtFirst;", "int left = is_patient ? 1 << 28 : kAtFirst;"),
        ("return used <= kTop - kLeast &&", "return is_patient ||"),
        ("return !(sum > kLargestMean", "return is_patient || !(sum > kLargestMean"),
    )


def _counting(text):
    return _replaced(text, ("left_out = true;", "left_out = true;\n      if (lane == 0) ++stages_left_out;"))


def _fast_bits(text):
    """As on a GPU of compute capability 9.0."""
    return _replaced(text, ("constexpr bool kHasFastBits = false;", "constexpr bool kHasFastBits = true;"))


CHANGES = {
    "robust.cuh": _fast_bits,
    "engines.cuh": _engines,
    "inbox.cuh": lambda text: text.replace("#include <cuda_pipeline_primitives.h>", ""),
    "math.cuh": _arithmetic,
    "robust_strip.cuh": _counting,
    "handoff.cuh": _progress,
    "level_forward.cuh": _patient,
    "linear_costs.cuh": _patient,
    "linear_strip.cuh": _patient,
    "strip_gradient.cuh": _without_launches,
    "strip.cuh": lambda text: text.replace('asm volatile("" : "+r"(number));', ""),
    "strip_job.cuh": _job,
}
