"""Builds the two libraries of the package: torchsoftdtw/_cpu and, wherever nvcc is found, torchsoftdtw/_cuda.

Both use LibTorch's stable ABI, so one binary serves every later PyTorch and Python. They are loaded by
torch.ops.load_library and are no Python modules. Environment:

    TORCHSOFTDTW_BUILD_CUDA  0: leave the CUDA library out; 1: fail where nvcc is missing
    TORCH_CUDA_ARCH_LIST     the architectures to compile for, as everywhere in PyTorch ("9.0", "8.0;9.0+PTX")
    CUDA_HOME, CXX, MAX_JOBS as usual
"""

import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
OBJECTS = ROOT / "build" / "objects"  # one place for every way to build, so that none starts anew
DEFAULT_CUDA_ARCHITECTURES = "8.0;8.6;8.9;9.0+PTX"
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
NVCC_FLAGS = ["-O3", "-std=c++17", "--expt-relaxed-constexpr", "-lineinfo", "-DUSE_CUDA"]
NVCC_HOST_FLAGS = ["-fPIC", "-fvisibility=hidden"]
FROM_LIBTORCH_CUDA = ["aoti_torch_get_current_cuda_stream"]


def find_nvcc():
    """The path of nvcc, or None. nvcc itself knows its toolkit's headers and libraries."""
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")):
        if home and (Path(home) / "bin" / "nvcc").exists():
            return str(Path(home) / "bin" / "nvcc")
    return shutil.which("nvcc")


def cuda_architectures():
    """nvcc's -gencode flags."""
    import torch

    listed = os.environ.get("TORCH_CUDA_ARCH_LIST", "").strip()
    if not listed and torch.cuda.is_available():
        present = {torch.cuda.get_device_capability(i) for i in range(torch.cuda.device_count())}
        listed = ";".join(f"{major}.{minor}" for major, minor in sorted(present))
    flags = []
    for name in (listed or DEFAULT_CUDA_ARCHITECTURES).replace(";", " ").split():
        number = name.removesuffix("+PTX").replace(".", "")
        flags += ["-gencode", f"arch=compute_{number},code=sm_{number}"]
        if name.endswith("+PTX"):
            flags += ["-gencode", f"arch=compute_{number},code=compute_{number}"]
    return flags


def modified(path):
    """When a file was last written; never, where there is none."""
    return Path(path).stat().st_mtime if Path(path).exists() else float("-inf")


def note(target):
    """The file beside an object file that holds the command it came from."""
    return Path(f"{target}.command")


def written(target):
    return json.loads(note(target).read_text()) if note(target).exists() else None


def extensions():
    # Paths relative to setup.py, as setuptools wants them. Headers are listed so that a change of one rebuilds.
    def extension(name, sources, folder):
        files = sorted(str(path.relative_to(ROOT)) for pattern in sources for path in ROOT.glob(pattern))
        headers = [p for p in [*ROOT.glob("csrc/*.h"), *ROOT.glob(f"{folder}/*")] if p.suffix in (".h", ".cuh")]
        depends = [*sorted(str(path.relative_to(ROOT)) for path in headers), "setup.py"]
        return Extension(name, files, depends=depends, language="c++", py_limited_api=True)

    cpu = extension("torchsoftdtw._cpu", ["csrc/ops.cpp", "csrc/cpu/*.cpp"], "csrc/cpu")
    wanted = os.environ.get("TORCHSOFTDTW_BUILD_CUDA", "")
    if wanted == "0":
        return [cpu]
    if find_nvcc() is None:
        if wanted == "1":
            raise SystemExit("nvcc not found, and TORCHSOFTDTW_BUILD_CUDA=1 asks for the CUDA part")
        return [cpu]
    return [cpu, extension("torchsoftdtw._cuda", ["csrc/cuda/*.cpp", "csrc/cuda/*.cu"], "csrc/cuda")]


class BuildLibraries(build_ext):
    """Compiles file by file, as many at once as MAX_JOBS says, and only what has changed."""

    def run(self):
        if find_nvcc() is None:
            print("nvcc not found: building the CPU part only", flush=True)
        super().run()

    def build_extension(self, ext):
        import torch

        torch_root = Path(torch.__file__).parent
        self.torch_flags = [*DEFINES, "-isystem", str(torch_root / "include")]
        self.torch_library_folder = str(torch_root / "lib")
        output = self.get_ext_fullpath(ext.name)
        Path(output).parent.mkdir(parents=True, exist_ok=True)
        OBJECTS.mkdir(parents=True, exist_ok=True)
        if ext.name.endswith("._cuda"):
            flags = [*NVCC_FLAGS, "-Xcompiler", ",".join(NVCC_HOST_FLAGS), *cuda_architectures()]
            compiler, link = [*self.nvcc(), *flags], self.link_cuda
        else:
            compiler, link = [*self.host_compiler(), *HOST_FLAGS], self.link_cpu
        headers = max(modified(path) for path in ext.depends)
        objects, commands = [], []
        for source in ext.sources:
            target = OBJECTS / (ext.name + "." + Path(source).name + ".o")
            objects.append(str(target))
            command = [*compiler, *self.torch_flags, "-c", source, "-o", str(target)]
            unchanged = modified(target) >= max(headers, modified(source)) and written(target) == command
            if self.force or not unchanged:
                commands.append((command, target))
        jobs = int(os.environ.get("MAX_JOBS") or os.cpu_count() or 1)
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            list(pool.map(lambda item: self.compile(*item), commands))
        if modified(output) < max(modified(path) for path in objects):
            link(objects, output)

    def compile(self, command, target):
        self.call(command)
        note(target).write_text(json.dumps(command))

    def link_cpu(self, objects, output):
        libraries = [f"-L{self.torch_library_folder}", "-Wl,--no-as-needed", "-ltorch_cpu", "-ldl", "-Wl,-z,defs"]
        self.call([*self.host_compiler(), "-shared", *objects, "-o", output, *libraries])

    def link_cuda(self, objects, output):
        # libtorch_cuda supplies the current stream. PyTorch for the CPU lacks it, so the link goes against a stub of that
        # name; at run time the loader finds the real one, which PyTorch for CUDA has loaded by then.
        stub = OBJECTS / "stub" / "libtorch_cuda.so"
        stub.parent.mkdir(parents=True, exist_ok=True)
        source = stub.with_suffix(".cpp")
        source.write_text("".join(f'extern "C" void {name}() {{}}\n' for name in FROM_LIBTORCH_CUDA))
        self.call([*self.host_compiler(), "-shared", "-fPIC", str(source), "-o", str(stub), f"-Wl,-soname,{stub.name}"])
        libraries = [f"-L{stub.parent}", f"-L{self.torch_library_folder}", "-ltorch_cuda", "-ltorch_cpu"]
        linker_flags = ["-Xlinker", "--no-as-needed", "-Xlinker", "-z", "-Xlinker", "defs"]
        libraries += ["-lrt", "-ldl", "-lpthread"]
        self.call([*self.nvcc(), "-shared", "-cudart", "static", *linker_flags, *objects, "-o", output, *libraries])

    def nvcc(self):
        return [find_nvcc(), "-ccbin", self.host_compiler()[0]]

    def host_compiler(self):
        return os.environ.get("CXX", "c++").split()

    def call(self, command):
        print(" ".join(command), flush=True)
        subprocess.run(command, check=True, cwd=ROOT)


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": BuildLibraries},
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
