"""The compiled libraries and their ops (ops.py), which of the kernels runs (selection.py), and what it saves for its
backward pass (saved_state.py). Nothing here is part of the interface.
"""
