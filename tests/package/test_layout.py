"""Where things are in csrc: what csrc/README.md promises a reader, and CONTRIBUTING.md asks of a change."""

import re
from functools import cache
from pathlib import Path

CSRC = Path(__file__).parents[2] / "csrc"
HEADERS = {".h", ".cuh"}
FILES = [path for path in CSRC.rglob("*") if path.suffix in HEADERS | {".cu", ".cpp"}]
ROOMS = sorted({path.parent for path in FILES})


@cache
def longest_chain(path):
    """The longest chain of project headers that a file includes, itself included if it is one."""
    own = [path] if path.suffix in HEADERS else []
    chains = []
    for name in re.findall(r'^\s*#include "(.+)"', path.read_text(), re.MULTILINE):
        included = next(folder / name for folder in (path.parent, CSRC) if (folder / name).exists())
        chains.append(longest_chain(included.resolve()))
    return own + max(chains, key=len, default=[])


def test_no_chain_of_headers_is_longer_than_nine():
    chain = max((longest_chain(path.resolve()) for path in FILES), key=len)
    assert len(chain) <= 9, " -> ".join(path.name for path in chain)


def test_rooms_of_kernels_are_small_and_say_what_they_are():
    of_kernels = (CSRC / "cpu", CSRC / "cuda")
    for room in ROOMS:
        if any(kernels in (room, *room.parents) for kernels in of_kernels):
            assert len([path for path in room.iterdir() if path.is_file()]) <= 9, room
    for room in (CSRC, *(path for path in ROOMS if path.parent in of_kernels)):
        assert (room / "README.md").exists(), room


def test_assembly_is_in_one_file():
    with_assembly = [path.name for path in FILES if re.search(r"\basm\s*(volatile\s*)?\(", path.read_text())]
    assert with_assembly == ["assembly.cuh"]
