"""Sphinx: `make docs`."""

import torchsoftdtw

project = "torchsoftdtw"
version = release = torchsoftdtw.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.doctest", "sphinx.ext.napoleon"]
default_role = "py:obj"  # `soft_dtw` in a docstring is a link
myst_heading_anchors = 3

smartquotes = False  # "sqeuclidean" is typed as it stands
napoleon_use_rtype = False

doctest_global_setup = "import torch\nfrom torchsoftdtw import *"

html_theme = "furo"
html_title = "torchsoftdtw"
