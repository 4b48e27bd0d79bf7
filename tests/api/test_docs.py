"""What the documents show runs and prints what they say; the reference names every public name."""

import doctest
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import torchsoftdtw

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OTHERS = ("pysdtw", "tslearn")
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
@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "migrating"], ids=lambda page: page.stem)
def test_examples_run_and_print_what_they_say(page):
    report = run(page.read_text())
    assert not report, report


def test_other_packages_give_the_same_numbers():
    missing = [package for package in OTHERS if importlib.util.find_spec(package) is None]
    if len(missing) == len(OTHERS):
        pytest.skip(f"needs {' or '.join(OTHERS)}")
    parts = re.split(r"^(?=## )", (ROOT / "docs" / "migrating.md").read_text(), flags=re.MULTILINE)
    imports = [rf"^>>> (import|from) {package}\b" for package in missing]
    text = "".join(part for part in parts if not any(re.search(line, part, re.MULTILINE) for line in imports))
    # numba would compile for longer than Python takes to compute.
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(p or os.curdir for p in sys.path)}
    done = subprocess.run([sys.executable, __file__], input=text, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_reference_names_every_public_name():
    reference = (ROOT / "docs" / "api.md").read_text()
    for name in torchsoftdtw.__all__:
        assert re.search(rf"^\.\. auto(class|function):: {name}$", reference, re.MULTILINE), name


if __name__ == "__main__":
    sys.exit(run(sys.stdin.read()) or 0)
