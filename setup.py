"""Builds the two libraries of the package: torchsoftdtw/_cpu and, wherever nvcc is found, torchsoftdtw/_cuda.

Both use LibTorch's stable ABI, so one binary serves every later PyTorch and Python. They are loaded by
torch.ops.load_library and are no Python modules. Environment:

    TORCHSOFTDTW_BUILD_CUDA  0: leave the CUDA library out; 1: fail where nvcc is missing
    TORCHSOFTDTW_LINEINFO    1: kernels know their lines, for profilers and compute-sanitizer; they compile longer
    TORCHSOFTDTW_COMPRESS    1: the CUDA library has a third of the size, as wheels do; it compiles a sixth longer
    TORCH_CUDA_ARCH_LIST     the architectures to compile for, as everywhere in PyTorch ("9.0", "8.0;9.0+PTX");
                             those of the GPUs that are present by default, 9.0+PTX where there is none
    CUDA_HOME, CXX, MAX_JOBS as usual

`setup.py archs` compiles the kernels for every architecture that they are meant for, as a check.
"""

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import ClassVar

from setuptools import Command, Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from build_support import architectures  # noqa: E402
from build_support.compilation import compile_all, link, run, tasks  # noqa: E402
from build_support.headers import check_headers  # noqa: E402

OBJECTS = Path("build") / "objects"  # one place for every way to build, so that none starts anew, but for wheels' kernels
SOURCES = {
    "torchsoftdtw._cpu": ["csrc/*.cpp", "csrc/binding/**/*.cpp", "csrc/cpu/**/*.cpp", "csrc/cuda/select/**/*.cpp"],
    "torchsoftdtw._cuda": ["csrc/cuda/**/*.cpp", "csrc/cuda/**/*.cu"],
}
DEFINES = ["-DTORCH_TARGET_VERSION=0x020A000000000000", "-DPy_LIMITED_API=0x030A0000"]
HOST_FLAGS = [
    "-O3",
    "-g0",
    "-std=c++17",
    "-fPIC",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Wno-psabi",
    "-Wno-uninitialized",  # GCC 12 warns of its own AVX-512 header
    "-Wno-maybe-uninitialized",
]
NVCC_FLAGS = ["-O3", "-std=c++17", "--expt-relaxed-constexpr", "-DUSE_CUDA"]
NVCC_HOST_FLAGS = ["-fPIC", "-fvisibility=hidden"]
FROM_LIBTORCH_CUDA = ["aoti_torch_get_current_cuda_stream"]


def find_nvcc():
    """The path of nvcc, or None. nvcc itself knows its toolkit's headers and libraries."""
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")):
        if home and (Path(home) / "bin" / "nvcc").exists():
            return str(Path(home) / "bin" / "nvcc")
    return shutil.which("nvcc")


def host_compiler():
    return os.environ.get("CXX", "c++").split()


def nvcc():
    return [find_nvcc(), "-ccbin", host_compiler()[0]]


def torch_folder():
    """PyTorch's folder, found without the seconds that its import takes."""
    return Path(importlib.util.find_spec("torch").origin).parent


def include_flags():
    check_headers(torch_folder() / "include")
    return [*DEFINES, "-Icsrc", "-isystem", str(torch_folder() / "include")]


def compresses():
    return os.environ.get("TORCHSOFTDTW_COMPRESS", "") == "1"


def cuda_compiler(stage, names):
    """nvcc up to a stage, for the architectures of these names."""
    wishes = ["-lineinfo"] if os.environ.get("TORCHSOFTDTW_LINEINFO", "") == "1" else []
    if compresses():
        wishes.append("--compress-mode=size")  # of nvcc 12.8 and later
    options = ["-Xcompiler", ",".join(NVCC_HOST_FLAGS), *architectures.gencode(names)]
    return [*nvcc(), stage, *NVCC_FLAGS, *wishes, *options, *include_flags()]


def sources(library):
    found = {path for pattern in SOURCES[library] for path in ROOT.glob(pattern)}
    return sorted(str(path.relative_to(ROOT)) for path in found)


def jobs():
    return int(os.environ.get("MAX_JOBS") or len(os.sched_getaffinity(0)))


def extensions():
    # Paths relative to setup.py, as setuptools wants them.
    names = ["torchsoftdtw._cpu"]
    wanted = os.environ.get("TORCHSOFTDTW_BUILD_CUDA", "")
    if wanted != "0" and find_nvcc() is not None:
        names.append("torchsoftdtw._cuda")
    elif wanted == "1":
        raise SystemExit("nvcc not found, and TORCHSOFTDTW_BUILD_CUDA=1 asks for the CUDA part")
    return [Extension(name, sources(name), language="c++", py_limited_api=True) for name in names]


def link_cpu(objects, output):
    libraries = [f"-L{torch_folder() / 'lib'}", "-Wl,--no-as-needed", "-ltorch_cpu", "-ldl", "-Wl,-z,defs"]
    return [*host_compiler(), "-shared", *objects, "-o", output, *libraries]


def link_cuda(objects, output):
    libraries = [f"-L{stub_of_libtorch_cuda().parent}", f"-L{torch_folder() / 'lib'}", "-ltorch_cuda", "-ltorch_cpu"]
    linker_flags = ["-Xlinker", "--no-as-needed", "-Xlinker", "-z", "-Xlinker", "defs"]
    libraries += ["-lrt", "-ldl", "-lpthread"]
    return [*nvcc(), "-shared", "-cudart", "static", *linker_flags, *objects, "-o", output, *libraries]


def stub_of_libtorch_cuda():
    """What the link goes against: libtorch_cuda supplies the current stream, and PyTorch for the CPU lacks it.

    At run time the loader finds the real one, which PyTorch for CUDA has loaded by then.
    """
    stub = ROOT / OBJECTS / "stub" / "libtorch_cuda.so"
    source = stub.with_suffix(".cpp")
    text = "".join(f'extern "C" void {name}() {{}}\n' for name in FROM_LIBTORCH_CUDA)
    if not stub.exists() or source.read_text() != text:
        stub.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
        run([*host_compiler(), "-shared", "-fPIC", str(source), "-o", str(stub), f"-Wl,-soname,{stub.name}"], ROOT)
    return stub


class BuildLibraries(build_ext):
    """Compiles what has changed, of both libraries at once, as many files at a time as MAX_JOBS says."""

    def run(self):
        if find_nvcc() is None:
            print("nvcc not found: building the CPU part only", flush=True)
        super().run()

    def build_extensions(self):
        made = {ext.name: self.tasks(ext) for ext in self.extensions}
        compile_all([task for library in made.values() for task in library], jobs(), self.force)
        for name, library in made.items():
            objects, output = [task.target for task in library], self.get_ext_fullpath(name)
            Path(output).parent.mkdir(parents=True, exist_ok=True)
            command = (link_cuda if name.endswith("._cuda") else link_cpu)(objects, output)
            link(command, objects, output, ROOT, OBJECTS / "linked")

    def tasks(self, ext):
        if ext.name.endswith("._cuda"):
            # Those of wheels lie apart, or they and those of this machine's GPUs would replace each other in turn.
            folder = OBJECTS / "compressed" if compresses() else OBJECTS
            compiler = cuda_compiler("-c", architectures.chosen(find_nvcc()))
        else:
            folder, compiler = OBJECTS, [*host_compiler(), "-c", *HOST_FLAGS, *include_flags()]
        return tasks(ROOT, folder / ext.name, ext.sources, compiler)


class CompileArchitectures(Command):
    """Compiles every kernel for each architecture that it is meant for, as far as nvcc knows it. Nothing is linked."""

    user_options: ClassVar[list] = []

    def initialize_options(self):
        pass

    def finalize_options(self):
        pass

    def run(self):
        if find_nvcc() is None:
            raise SystemExit("nvcc not found")
        names = architectures.listed() or architectures.every(architectures.known_to(find_nvcc()))
        kernels = [path for path in sources("torchsoftdtw._cuda") if path.endswith(".cu")]
        compile_all(tasks(ROOT, OBJECTS / "archs", kernels, cuda_compiler("-fatbin", names)), jobs())
        print(f"{len(kernels)} files compile for {', '.join(names)}", flush=True)


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": BuildLibraries, "archs": CompileArchitectures},
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
