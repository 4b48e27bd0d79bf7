"""The value that a function has answered, kept for its backward pass although its user may write into it (`loss /= 4`).

PyTorch refuses to differentiate where a saved tensor has been written into, and a copy would cost each call a kernel. So a
function keeps what it answers beside the tensors that it saves, and computes it anew in the rare case.
"""


def keep(value):
    """What `kept` takes: the value without its graph, which holds the function, and how often it has been written into."""
    return value.detach(), value._version


def kept(value, version):
    """The value as it was, or None where it has been written into."""
    return value if value._version == version else None
