"""What the documents show runs and prints what they say; the reference names every public name."""

import doctest
import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import torchsoftdtw
from torchsoftdtw._kernels import selection
from torchsoftdtw._pairs.task import DEFAULT_GAMMA

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PUBLIC_MODULES = ("estimators", "measures", "plot")
OTHERS = ("pysdtw", "tslearn")
MIGRATING = [page for page in PAGES if page.stem.startswith("migrating")]
FOR_DEVELOPERS = ("performance", "kernel-study")
MOST_WORDS = dict.fromkeys((page.stem for page in PAGES if page.stem not in FOR_DEVELOPERS), 1200)  # code and tables count
MOST_WORDS.update(README=900, quickstart=900, negative=900)
OF_KERNELS = sorted((ROOT / "csrc").rglob("*.md"))
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(text):
    """Run the code of a page, in one namespace. Returns what differs from the page, as text."""
    torch.manual_seed(0)
    names, report = {}, []
    runner = doctest.DocTestRunner(verbose=False)
    for block in CODE.finditer(text):
        code, line = block[1], text[: block.start(1)].count("\n")
        if code.startswith(">>> "):
            test = doctest.DocTestParser().get_doctest(code, names, "the page", None, line)
            runner.run(test, out=report.append, clear_globs=False)
            names = test.globs
        else:
            exec(code.replace("range(100)", "range(2)"), names)  # a loop of training, cut short
    return "".join(report)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("page", [page for page in PAGES if page not in MIGRATING], ids=lambda page: page.stem)
def test_examples_run_and_print_what_they_say(page):
    if page.stem == "clustering":
        pytest.importorskip("sklearn", minversion="1.6")
    report = run(page.read_text())
    assert not report, report


@pytest.mark.parametrize("module", ["", *PUBLIC_MODULES])
def test_snippets_of_docstrings_import_what_they_use(module):
    """Beside torch and the package's own names. Those of a module are known where pytest runs its docstrings."""
    if module == "estimators":
        pytest.importorskip("sklearn", minversion="1.6")
    if module == "plot":
        pytest.importorskip("matplotlib")
    names = {"torch": torch, **{name: getattr(torchsoftdtw, name) for name in torchsoftdtw.__all__}}
    where = importlib.import_module(f"torchsoftdtw.{module}".rstrip("."))
    if module == "estimators":  # as the reference does
        names.update((name, getattr(where, name)) for name in where.__all__)
    own = [
        name for name, item in vars(where).items() if name[0] != "_" and getattr(item, "__module__", "") == where.__name__
    ]
    items = [getattr(where, name) for name in getattr(where, "__all__", own)]
    tests = [test for item in items for test in doctest.DocTestFinder().find(item, globs=names) if test.examples]
    report = []
    torch.manual_seed(0)
    for test in tests:
        doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert tests and not report, "".join(report)


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem in MOST_WORDS], ids=lambda page: page.stem)
def test_a_page_for_users_is_short(page):
    assert len(page.read_text().split()) <= MOST_WORDS[page.stem]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_and_headings_that_pages_link_to_are_there(page):
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text()):
        file, _, heading = target.partition("#")
        other = page.parent / file if file else page
        if file.startswith("tutorials/"):  # `make docs` makes these from the examples
            other = ROOT / "examples" / other.name.replace("index.rst", "").replace(".rst", ".py")
        assert other.exists(), target
        if heading:
            lines = re.findall(r"^#+ (.+)$", other.read_text(), re.MULTILINE)
            anchors = [re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines]
            assert heading in anchors, target


@pytest.mark.parametrize("word", ["clustering", "cdist", "barycenter", "plot", "k-NN"])
def test_a_search_for_a_word_of_the_field_finds_a_page_for_users(word):
    assert any(word in page.read_text() for page in PAGES if page.stem not in (*FOR_DEVELOPERS, "README"))


def test_the_gallery_has_every_example_and_says_its_place():
    examples = {file.stem for file in (ROOT / "examples").glob("*.py")} - {"pictures", "real_series"}
    order = re.search(r"ORDER = \((.*?)\)", (ROOT / "docs" / "gallery.py").read_text(), re.DOTALL)[1]
    assert set(re.findall(r'"(\w+)"', order)) == examples


def test_each_task_of_the_quickstart_is_a_snippet_that_the_index_links_to():
    index = (ROOT / "docs" / "index.md").read_text()
    tasks = re.split(r"^## ", (ROOT / "docs" / "quickstart.md").read_text(), flags=re.MULTILINE)[1:]
    assert len(tasks) == 6
    for task in tasks:
        heading = task.splitlines()[0].lower().replace(" ", "-")
        assert CODE.search(task) and f"](quickstart.md#{heading})" in index, heading


def test_other_packages_give_the_same_numbers():
    missing = [package for package in OTHERS if importlib.util.find_spec(package) is None]
    if len(missing) == len(OTHERS):
        pytest.skip(f"needs {' or '.join(OTHERS)}")
    parts = [part for page in MIGRATING for part in re.split(r"^(?=## )", page.read_text(), flags=re.MULTILINE)]
    imports = [rf"^>>> (import|from) {package}\b" for package in missing]
    text = "".join(part for part in parts if not any(re.search(line, part, re.MULTILINE) for line in imports))
    # numba would compile for longer than Python takes to compute.
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(p or os.curdir for p in sys.path)}
    done = subprocess.run([sys.executable, __file__], input=text, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_reference_names_every_public_name():
    reference = (ROOT / "docs" / "api.md").read_text()
    pictures = [f"torchsoftdtw.plot.{name}" for name in ("pair", "alignment", "distances", "average")]
    estimators = [
        f"torchsoftdtw.estimators.SoftDTW{name}" for name in ("KMeans", "NearestCentroid", "KNeighborsClassifier")
    ]
    names = ("TWED", "ERP", "MSM", "EDR", "LCSS", "DTW", "ADTW", "WDTW", "DDTW", "WDDTW", "ShapeDTW")
    measures = [f"torchsoftdtw.measures.{name}" for name in names]
    for name in (*torchsoftdtw.__all__, *pictures, *estimators, *measures):
        assert re.search(rf"^\.\. auto(class|function):: {name}$", reference, re.MULTILINE), name


SPECIALIZATIONS = [f"{kernel}/{name}" for kernel, names in selection.SPECIALIZATIONS.items() for name in names]


def test_the_table_of_kernels_has_every_specialisation_in_its_order():
    text = (ROOT / "csrc" / "README.md").read_text()
    listed = [name for name in re.findall(r"^\| `(\w+/\w+)` \|", text, re.MULTILINE)]
    assert listed == [name for name in SPECIALIZATIONS if name != "diagonal/plain"]


ELASTIC = ("twed", "erp", "msm", "edr", "lcss", "adtw", "wdtw", "ddtw", "wddtw", "shape_dtw", "elastic_from_costs")


def test_one_gamma_is_the_default_everywhere():
    estimators = pytest.importorskip("torchsoftdtw.estimators")
    public = [getattr(module, name) for module in (torchsoftdtw, estimators) for name in module.__all__]
    defaults = {
        call.__name__: inspect.signature(call).parameters["gamma"].default
        for call in public
        if not (isinstance(call, type) and issubclass(call, tuple)) and "gamma" in inspect.signature(call).parameters
    }
    hard = {name: defaults.pop(name) for name in ELASTIC}
    assert set(hard.values()) == {0.0}  # they are distances, which a gamma makes smooth
    # Where a measure may be the distance, None stands for 0 of measures and this of names.
    defaults = {name: DEFAULT_GAMMA if gamma is None else gamma for name, gamma in defaults.items()}
    assert len(defaults) >= 12 and set(defaults.values()) <= {0.1}


@pytest.mark.parametrize("page", OF_KERNELS, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_pages_beside_the_kernels_name_are_there(page):
    text = page.read_text()
    folders = [page.parent, ROOT / "csrc", ROOT / "csrc" / "cuda", ROOT]
    names = re.findall(r"`([\w./]+/[\w./]*|[\w.]+\.(?:cuh?|cpp|h|py|md))`", text)
    missing = [name for name in names if not any((folder / name).exists() for folder in folders)]
    missing = [name for name in missing if name not in SPECIALIZATIONS]
    missing += [link for link in re.findall(r"\]\(([^)#]+)", text) if not (page.parent / link).exists()]
    assert not missing


ROOMS = sorted({page.parent for page in (ROOT / "csrc").rglob("*.*")} - {ROOT / "csrc", ROOT / "csrc" / "cuda"})


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(ROOT)))
def test_every_folder_of_kernels_says_what_lives_there(room):
    if (room / "README.md").exists():
        assert 5 <= len((room / "README.md").read_text().splitlines()) <= 15
    else:
        named = [file for file in room.iterdir() if file.stem in (room.name, f"{room.name}_strip")]
        assert named and all(file.read_text().startswith("// ") for file in named)


if __name__ == "__main__":
    sys.exit(run(sys.stdin.read()) or 0)
