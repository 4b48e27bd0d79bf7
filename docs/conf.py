"""Sphinx: `make docs`."""

import pathlib
import sys

from sphinx.pycode import ModuleAnalyzer

import torchsoftdtw

sys.path.insert(0, str(pathlib.Path(__file__).parent))

project = "torchsoftdtw"
version = release = torchsoftdtw.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",  # from every name to its source
    "sphinx_gallery.gen_gallery",  # the tutorials
]
default_role = "py:obj"  # `soft_dtw` in a docstring is a link
myst_heading_anchors = 3

smartquotes = False  # "sqeuclidean" is typed as it stands
napoleon_use_rtype = False
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_typehints_format = "fully-qualified"
python_maximum_signature_line_length = 100

# One signature with all defaults, not one for each type of the result.
matches = ModuleAnalyzer.for_module("torchsoftdtw.matches")
matches.analyze()
matches.overloads.clear()

doctest_global_setup = "import torch\nfrom torchsoftdtw import *\nfrom torchsoftdtw.estimators import *"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "tutorials",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"(pictures|real_series)\.py$",
    "within_subsection_order": "gallery.place",
    "reset_argv": "gallery.arguments",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "reference_url": {"torchsoftdtw": None},
}

html_theme = "furo"
html_title = "torchsoftdtw"
