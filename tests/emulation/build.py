"""Builds the strips' device code for the host.

What only a GPU can do, PTX, is replaced in a copy of csrc; everything else is compiled as it stands, with warp.h in the
place of CUDA.
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
    flags = ["-O2", "-std=c++17", "-fpermissive", "-w", "-ffp-contract=off", "-shared", "-fPIC", f"-I{folder}"]
    subprocess.run([compiler, *flags, str(folder / "strips.cpp"), "-o", str(library)], check=True)
    return library


def _arithmetic(text):
    flushed = "float r = std::exp2(a);\n    if (r < 1.17549435e-38f) r = 0;\n"
    text = re.sub(r'float r;\n *asm\("ex2.*\n', flushed, text)
    text = re.sub(r'float r;\n *asm\("rcp.*\n', "float r = 1 / a;\n", text)
    return re.sub(r'float r;\n *asm\("sqrt.*\n', "float r = std::sqrt(a);\n", text)


def _progress(text):
    """A warp alone waits for nobody."""
    first, last = text.index("template <bool kNear>"), text.index("// One neighbour of a strip")
    plain = (
        "template <bool> inline void publish(Progress* word, Progress progress) { *word = progress; }\n"
        "template <bool> inline Progress look_at(const Progress* word) { return *word; }\n\n"
    )
    return text[:first] + plain + text[last:]


def _without_launches(text):
    first, last = text.index("// Backward: `sweep` goes over"), text.index("// E / C, the part of euclidean's")
    return (text[:first] + text[last:]).replace('#include "series_gradient.cuh"\n', "")


def _job(text):
    text = re.sub(r"asm volatile\(.*", ";", text)
    return re.sub(r"extern __shared__ .*\n", "inline char stage_memory[1 << 18] __attribute__((aligned(64)));\n", text)


CHANGES = {
    "inbox.cuh": lambda text: text.replace("#include <cuda_pipeline_primitives.h>", ""),
    "math.cuh": _arithmetic,
    "handoff.cuh": _progress,
    "strip_gradient.cuh": _without_launches,
    "strip.cuh": lambda text: text.replace('asm volatile("" : "+r"(number));', ""),
    "strip_job.cuh": _job,
}
