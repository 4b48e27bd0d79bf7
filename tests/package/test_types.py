"""Public names have types, which mypy checks against their code and against what uses them."""

import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import torchsoftdtw

ROOT = Path(__file__).parents[2]


def signatures():
    """Every public function, and what a public class defines of its own that can be called."""
    for name in sorted(torchsoftdtw.__all__):
        public = getattr(torchsoftdtw, name)
        if not inspect.isclass(public):
            yield name, public
        elif not issubclass(public, tuple):
            yield f"{name}.__init__", public.__init__
            yield f"{name}.forward", public.forward


def test_every_argument_and_answer_has_a_type():
    found = dict(signatures())
    assert len(found) >= 9 + 2 * 3
    for name, function in found.items():
        signature = inspect.signature(function)
        untyped = [p.name for p in signature.parameters.values() if p.name != "self" and p.annotation is p.empty]
        assert not untyped and signature.return_annotation is not signature.empty, (name, untyped)


def test_every_argument_and_answer_of_estimators_has_a_type():
    pytest.importorskip("sklearn", minversion="1.6")
    from torchsoftdtw import estimators

    for name in estimators.__all__:
        public = {key: value for key, value in vars(getattr(estimators, name)).items() if inspect.isfunction(value)}
        for method in {"__init__", *public} - {key for key in public if key.startswith("_") and key != "__init__"}:
            signature = inspect.signature(public[method])
            untyped = [p.name for p in signature.parameters.values() if p.name != "self" and p.annotation is p.empty]
            assert not untyped and signature.return_annotation is not signature.empty, (name, method, untyped)


def test_the_package_tells_that_it_has_types():
    assert (Path(torchsoftdtw.__file__).parent / "py.typed").exists()


def test_mypy_agrees():
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("needs mypy")
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
