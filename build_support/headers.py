"""Whether PyTorch's headers are late enough to build with."""


def check_headers(include):
    """Raise SystemExit unless the headers in the folder `include` have what the sources need.

    Earlier ones of the stable ABI have other names, and what is built with them ends the process where an op should raise.
    """
    macros = include / "torch" / "csrc" / "stable" / "macros.h"
    if not macros.exists() or "STABLE_TORCH_ERROR_CODE_CHECK" not in macros.read_text():
        raise SystemExit(
            "torchsoftdtw: expected the headers of PyTorch 2.13 or later to build with; what is built runs with 2.10 or "
            f"later. Those in {include} are older"
        )
