"""The compiled libraries and their ops (ops.py), what these return without a computation (fakes.py), which of the kernels
runs (selection.py). Nothing here is part of the interface.
"""

from . import fakes  # noqa: F401  they belong to every use of the ops
