"""Compiles the strips' device code for the host, 32 lanes as coroutines, and runs linear.cpp: `python tests/emulation/build.py [pairs]`.

PTX has no meaning on the host: a copy of csrc is patched where it occurs.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def patch(folder):
    def edit(name, change):
        path = folder / name
        path.write_text(change(path.read_text()))

    def arithmetic(s):
        s = re.sub(r'float r;\n\s*asm\("ex2.*\n', "float r = std::exp2(a);\n    if (r < 1.17549435e-38f) r = 0;\n", s)
        s = re.sub(r'float r;\n\s*asm\("rcp.*\n', "float r = 1 / a;\n", s)
        return re.sub(r'float r;\n\s*asm\("sqrt.*\n', "float r = std::sqrt(a);\n", s)

    def handoff(s):
        first, last = s.index("template <bool kNear>"), s.index("// One neighbour of a strip")
        plain = (
            "template <bool> inline void publish(Progress* word, Progress progress) { *word = progress; }\n"
            "template <bool> inline Progress look_at(const Progress* word) { return *word; }\n\n"
        )
        return s[:first] + plain + s[last:]

    def gradient(s):
        first, last = s.index("// Backward: `sweep` goes over"), s.index("// E / C, the part of euclidean's")
        return (s[:first] + s[last:]).replace('#include "series_gradient.cuh"\n', "")

    memory = "inline char stage_memory[1 << 18] __attribute__((aligned(64)));"
    edit("inbox.cuh", lambda s: s.replace("#include <cuda_pipeline_primitives.h>", ""))
    edit("math.cuh", arithmetic)
    edit("handoff.cuh", handoff)
    edit("strip_gradient.cuh", gradient)
    edit("strip.cuh", lambda s: s.replace('asm volatile("" : "+r"(number));', ""))
    edit(
        "strip_job.cuh",
        lambda s: re.sub(r"extern __shared__ .*stage_memory\[\];", memory, re.sub(r"asm volatile.*", ";", s)),
    )


with tempfile.TemporaryDirectory() as work:
    work = Path(work)
    shutil.copytree(HERE.parents[1] / "csrc", work / "csrc")
    patch(work / "csrc" / "cuda")
    for name in ("warp.h", "linear.cpp"):
        shutil.copy(HERE / name, work)
    flags = ["-O2", "-std=c++17", "-fpermissive", "-w", "-ffp-contract=off", f"-I{work}"]
    subprocess.run(["c++", *flags, str(work / "linear.cpp"), "-o", str(work / "linear")], check=True)
    subprocess.run([str(work / "linear"), *sys.argv[1:]], check=True)
