"""What setup.py builds with: the architectures it chooses, what it compiles anew, and in which order."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

sys.path.append(str(next(folder for folder in Path(__file__).resolve().parents if (folder / "setup.py").exists())))
from build_support import architectures, compilation, headers, wheels

NVCC_13 = {(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)}
NVCC_11 = {(7, 0), (7, 5), (8, 0), (8, 6)}
COMPILER = [os.environ.get("CXX", "c++"), "-c"]
NVCC = shutil.which("nvcc")


@pytest.mark.parametrize(
    ("present", "known", "names"),
    [
        ({(9, 0)}, NVCC_13, ["9.0"]),
        ({(12, 0), (7, 5), (8, 9)}, NVCC_13, ["7.5", "8.9", "12.0"]),
        ({(8, 6)}, set(), ["8.6"]),  # an nvcc that does not say what it knows
        ({(12, 1)}, NVCC_13, ["12.0+PTX"]),  # newer than this nvcc
        ({(8, 7), (8, 0)}, NVCC_13, ["8.0", "8.6+PTX"]),
        ({(9, 0)}, NVCC_11, ["8.6+PTX"]),
        (set(), NVCC_13, ["9.0+PTX"]),
        (set(), set(), ["9.0+PTX"]),
        (set(), NVCC_11, ["8.6+PTX"]),
        ({(7, 0)}, NVCC_11, ["8.6+PTX"]),  # too old for the kernels, and as if it were not there
        ({(7, 0), (8, 0)}, NVCC_11, ["8.0"]),
        (set(), {(10, 0)}, ["9.0+PTX"]),  # nothing older than what it should be: nvcc says so itself
    ],
)
def test_architectures_are_those_of_the_gpus_as_far_as_nvcc_knows_them(present, known, names):
    assert architectures.choose(present, known) == names


def test_a_users_list_of_architectures_wins(monkeypatch):
    monkeypatch.setattr(architectures, "capabilities_of_gpus", lambda: {(9, 0)})
    monkeypatch.setattr(architectures, "known_to", lambda nvcc: NVCC_13)
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0;9.0a 12.0+PTX")
    assert architectures.chosen("nvcc") == ["8.0", "9.0a", "12.0+PTX"]
    for empty in ("", " "):
        monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", empty)
        assert architectures.chosen("nvcc") == ["9.0"]


def test_flags_hold_machine_code_for_every_name_and_ptx_where_it_is_asked_for():
    flags = architectures.gencode(["7.5", "9.0a", "12.0+PTX"])
    assert flags[::2] == ["-gencode"] * 4
    assert flags[1::2] == [
        "arch=compute_75,code=sm_75",
        "arch=compute_90a,code=sm_90a",
        "arch=compute_120,code=sm_120",
        "arch=compute_120,code=compute_120",
    ]


def test_every_architecture_is_compiled_for_that_nvcc_knows():
    assert architectures.every(NVCC_13) == architectures.every(set()) == list(architectures.EVERY)
    assert architectures.every(NVCC_11) == ["7.5", "8.0", "8.6"]


class Driver:
    """A driver library of GPUs with these capabilities; cuInit returns status."""

    def __init__(self, capabilities, status=0):
        self.capabilities = capabilities
        self.status = status

    def cuInit(self, flags):
        return self.status

    def cuDeviceGetCount(self, count):
        count._obj.value = len(self.capabilities)
        return 0

    def cuDeviceGet(self, device, ordinal):
        device._obj.value = ordinal + 100
        return 0

    def cuDeviceGetAttribute(self, value, attribute, device):
        capability = self.capabilities[device.value - 100]
        value._obj.value = capability[{75: 0, 76: 1}[attribute]]
        return 0 if capability[0] > 0 else 1


def test_gpus_are_asked_for_without_pytorch(monkeypatch):
    monkeypatch.setattr(architectures.ctypes, "CDLL", lambda name: Driver([(9, 0), (8, 6), (9, 0), (-1, 0)]))
    monkeypatch.setenv("PATH", "")
    assert architectures.capabilities_of_gpus() == {(9, 0), (8, 6)}


def no_driver(name):
    raise OSError(f"{name}: cannot open shared object file")


@pytest.mark.parametrize("driver", [no_driver, lambda name: Driver([(9, 0)], status=100), lambda name: object()])
def test_nvidia_smi_is_asked_where_the_driver_cannot_be(monkeypatch, tmp_path, driver):
    monkeypatch.setattr(architectures.ctypes, "CDLL", driver)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert architectures.capabilities_of_gpus() == set()
    command = tmp_path / "nvidia-smi"
    command.write_text("#!/bin/sh\necho 12.0\necho '[N/A]'\necho 8.9\necho\necho Failed to initialize NVML\nexit 3\n")
    command.chmod(0o755)
    assert architectures.capabilities_of_gpus() == {(12, 0), (8, 9)}


def test_names_in_a_dependency_file_may_have_spaces_and_lines_of_their_own():
    text = "build/a.o : src/a.cpp \\\n  /a\\ b/c.h /has\\#hash.h \\\n    /has$$dollar.h\n"
    assert compilation.dependencies(text) == ["src/a.cpp", "/a b/c.h", "/has#hash.h", "/has$dollar.h"]
    assert compilation.dependencies("") == []


class Project:
    """a/same.cpp includes upper.h, which includes lower.h; b/same.cpp includes other.h."""

    def __init__(self, root, compiler):
        self.root = root
        self.compiler = compiler
        self.write("csrc/a/same.cpp", '#include "upper.h"\nint a() { return lower(); }\n')
        self.write("csrc/b/same.cpp", '#include "../other.h"\nint b() { return other(); }\n')
        self.write("csrc/a/upper.h", '#include "deep/lower.h"\n')
        self.write("csrc/deep/lower.h", "inline int lower() { return 1; }\n")
        self.write("csrc/other.h", "inline int other() { return 2; }\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def edit(self, name):
        self.write(name, (self.root / name).read_text() + "// edited\n")

    def tasks(self):
        sources = sorted(str(path.relative_to(self.root)) for path in self.root.glob("csrc/*/*.cpp"))
        return compilation.tasks(self.root, "objects", sources, [*self.compiler, "-Icsrc"])

    def build(self, jobs=1, force=False):
        compilation.compile_all(self.tasks(), jobs, force)

    @property
    def outdated(self):
        return [task.source for task in self.tasks() if task.is_outdated(compilation.last_write)]


@pytest.fixture(params=["host", "nvcc"])
def compiler(request):
    if request.param == "nvcc" and NVCC is None:
        pytest.skip("nvcc not found")
    return COMPILER if request.param == "host" else [NVCC, "-x", "cu", "-c"]


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "a folder", COMPILER)


def test_an_edit_compiles_what_includes_it_and_nothing_else(tmp_path, compiler):
    project = Project(tmp_path / "a folder", compiler)
    assert project.outdated == ["csrc/a/same.cpp", "csrc/b/same.cpp"]
    project.build(jobs=2)
    assert project.outdated == []
    assert (project.root / "objects/csrc/a/same.cpp.o").exists()
    assert (project.root / "objects/csrc/b/same.cpp.o").exists()
    project.edit("csrc/deep/lower.h")
    assert project.outdated == ["csrc/a/same.cpp"]
    project.build()
    project.edit("csrc/other.h")
    assert project.outdated == ["csrc/b/same.cpp"]
    project.build()
    project.edit("csrc/a/same.cpp")
    assert project.outdated == ["csrc/a/same.cpp"]


def test_a_header_may_move(project):
    project.build()
    (project.root / "csrc/deep/lower.h").rename(project.root / "csrc/a/lower.h")
    project.write("csrc/a/upper.h", '#include "lower.h"\n')
    assert project.outdated == ["csrc/a/same.cpp"]
    project.build()
    assert project.outdated == []


def test_a_header_that_is_gone_is_the_compilers_affair(project):
    project.build()
    (project.root / "csrc/deep/lower.h").unlink()
    assert project.outdated == ["csrc/a/same.cpp"]
    with pytest.raises(subprocess.CalledProcessError):
        project.build()
    assert project.outdated == ["csrc/a/same.cpp"]
    project.write("csrc/a/upper.h", "inline int lower() { return 3; }\n")
    project.build()
    assert project.outdated == []


@pytest.mark.parametrize("suffix", ["", ".d", ".json"])
def test_an_object_that_lacks_a_part_is_compiled_anew(project, suffix):
    project.build()
    (project.root / f"objects/csrc/a/same.cpp.o{suffix}").unlink()
    assert project.outdated == ["csrc/a/same.cpp"]


def test_other_flags_compile_everything_anew(project):
    project.build()
    project.compiler = [*COMPILER, "-O1"]
    assert project.outdated == ["csrc/a/same.cpp", "csrc/b/same.cpp"]


def test_an_edit_while_the_compiler_runs_is_not_lost(project, monkeypatch):
    run = compilation.run

    def run_and_edit(command, folder):
        run(command, folder)
        project.edit("csrc/deep/lower.h")

    monkeypatch.setattr(compilation, "run", run_and_edit)
    project.build()
    assert project.outdated == ["csrc/a/same.cpp"]


def order(project, monkeypatch):
    """The sources in the order in which one job compiles them all."""
    found = []
    with monkeypatch.context() as patch:
        patch.setattr(compilation.Task, "compile", lambda task: found.append(task.source))
        project.build(force=True)
    return found


def test_the_source_that_took_longest_comes_first(project, monkeypatch):
    project.build()
    for first, second in (("a", "b"), ("b", "a")):
        for folder, seconds in ((first, 9.0), (second, 8.0)):
            note = project.root / f"objects/csrc/{folder}/same.cpp.o.json"
            note.write_text(f'{{"command": [], "started": 0.0, "seconds": {seconds}}}')
        assert order(project, monkeypatch) == [f"csrc/{first}/same.cpp", f"csrc/{second}/same.cpp"]


def test_in_a_fresh_tree_the_largest_source_with_its_headers_comes_first(project, monkeypatch):
    project.write("csrc/other.h", "inline int other() { return 2; }\n" + "// long\n" * 1000)
    assert order(project, monkeypatch) == ["csrc/b/same.cpp", "csrc/a/same.cpp"]
    project.write("csrc/deep/lower.h", "inline int lower() { return 1; }\n" + "// longer\n" * 2000)
    assert order(project, monkeypatch) == ["csrc/a/same.cpp", "csrc/b/same.cpp"]


def test_an_error_stops_what_has_not_begun(project, monkeypatch):
    begun = []

    def fail(task):
        if begun:
            time.sleep(0.1)  # enough to hear of the first error
        begun.append(task.source)
        raise RuntimeError("no compiler")

    monkeypatch.setattr(compilation.Task, "compile", fail)
    for number in range(50):
        project.write(f"csrc/a/{number}.cpp", "")
    with pytest.raises(RuntimeError, match="no compiler"):
        project.build()
    assert len(begun) < 10


def test_a_library_is_linked_anew_when_an_object_is_newer_or_gone(tmp_path, monkeypatch):
    linked = []

    def run(command, folder):
        linked.append(command)
        (tmp_path / "library.so").write_text("")

    def link(objects):
        linked.clear()
        compilation.link(["link", *objects], objects, "library.so", tmp_path, "notes")
        return bool(linked)

    monkeypatch.setattr(compilation, "run", run)
    for name in ("a.o", "b.o"):
        (tmp_path / name).write_text("")
    assert link(["a.o", "b.o"])
    assert not link(["a.o", "b.o"])
    assert link(["a.o"])
    os.utime(tmp_path / "a.o", (2e9, 2e9))
    assert link(["a.o"])
    (tmp_path / "library.so").unlink()
    os.utime(tmp_path / "a.o", (1e9, 1e9))
    assert link(["a.o"])
    assert not link(["a.o"])


def test_older_headers_of_pytorch_are_an_error_that_says_so(tmp_path):
    headers.check_headers(Path(torch.__file__).parent / "include")
    with pytest.raises(SystemExit, match=r"expected the headers of PyTorch 2\.13 or later"):
        headers.check_headers(tmp_path)
    macros = tmp_path / "torch" / "csrc" / "stable" / "macros.h"
    macros.parent.mkdir(parents=True)
    macros.write_text("#define TORCH_ERROR_CODE_CHECK(call)")
    with pytest.raises(SystemExit, match=r"Those in .* are older"):
        headers.check_headers(tmp_path)


# Stands for both compilers: writes what it is to write, and puts down what it compiles.
NOT_A_COMPILER = """#!{python}
import sys
from pathlib import Path

words = sys.argv[1:]
if "-o" not in words:
    sys.exit()
target = words[words.index("-o") + 1]
Path(target).write_text("")
if "-MF" in words:
    Path(words[words.index("-MF") + 1]).write_text(target + " :")
    with Path(__file__).with_name("compiled").open("a") as compiled:
        compiled.write(target + "\\n")
"""


def test_neither_a_build_nor_a_wheel_compiles_anew_what_the_other_has_compiled(tmp_path, monkeypatch):
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(wheels.ROOT / name, tmp_path / name)
    shutil.copytree(wheels.ROOT / "build_support", tmp_path / "build_support")
    for name in ("torchsoftdtw/__init__.py", "csrc/ops.cpp", "csrc/cuda/kernel.cu"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    compiler = tmp_path / "toolkit" / "bin" / "nvcc"
    compiler.parent.mkdir(parents=True)
    compiler.write_text(NOT_A_COMPILER.format(python=sys.executable))
    compiler.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    monkeypatch.setattr(wheels, "ROOT", tmp_path)

    def compiled_by(build):
        put_down = compiler.with_name("compiled")
        put_down.unlink(missing_ok=True)
        build()
        return put_down.read_text().split() if put_down.exists() else []

    def build():
        subprocess.run([sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"], check=True, cwd=tmp_path)

    def wheel(part):
        folder = tmp_path / part
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        wheels.build(part, folder)

    assert len(compiled_by(build)) == 2
    assert compiled_by(lambda: wheel("cpu")) == []
    assert [Path(target).name for target in compiled_by(lambda: wheel("cuda"))] == ["kernel.cu.o"]
    assert compiled_by(build) == compiled_by(lambda: wheel("cuda")) == []
