"""CUDA C++ of this package -> C++ for cuda.h and ptx.h: shared memory, launches and assembly; all else stands as it is."""

import re

# What the first instruction of a statement begins with -> a function of ptx.h.
INSTRUCTIONS = {
    "": None,
    "prefetch.": None,
    "ex2.": "ex2",
    "lg2.": "lg2",
    "rcp.": "rcp",
    "sqrt.": "sqrt",
    "min.NaN": "min_nan",
    "max.NaN": "max_nan",
    "mma.sync.aligned.m16n8k8": "mma",
    "bar.sync 1": "bar_sync",
    "mbarrier.init": "mbarrier_init",
    "mbarrier.inval": "mbarrier_inval",
    "mbarrier.arrive": "mbarrier_arrive",
    "mbarrier.test_wait.parity": "mbarrier_test",
    "mbarrier.try_wait.parity": "mbarrier_try",
    "atom.release.cta.shared.exch": "store_near",
    "atom.acquire.cta.shared.cas": "look_near",
    "st.release.gpu.global.u64": "store",
    "ld.acquire.gpu.global.u64": "look",
    "st.relaxed.gpu.global.u32": "store",
    "ld.relaxed.gpu.global.u32": "look",
    "st.relaxed.gpu.global.v4": "store_four",
    "ld.relaxed.gpu.global.v4": "look_four",
}


def translate(text, name):
    """The text of the file `name`."""
    text = text.replace("__CUDA_ARCH__", "emulation_architecture").replace("__CUDACC__", "emulation_architecture")
    text = _assembly(text, name)
    text = _shared(text, name)
    launch = r"([A-Za-z_]\w*(?:<[^<>;()]*>)?)\s*<<<(.*?)>>>\("
    return re.sub(launch, r"emulation::Launch(\2).run(\1, ", text, flags=re.DOTALL)


def _shared(text, name):
    text = re.sub(
        r"extern __shared__ (?:__align__\(\d+\) )?(\w+) (\w+)\[\];",
        r"#define \2 reinterpret_cast<\1*>(emulation::machine().dynamic_memory())",
        text,
    )

    def own(match):
        kind, variable, extents = match.groups()
        return f'auto& {variable} = emulation::shared<{kind}{extents}>("{name} {variable}");'

    return re.sub(r"__shared__ (?:__align__\(\d+\) )?([^;]+?) (\w+)((?:\[[^;]*\])?);", own, text)


def _assembly(text, name):
    parts, end = [], 0
    for match in re.finditer(r"\basm(?: volatile)?\(", text):
        if match.start() < end:
            continue
        close = _closing(text, match.end())
        parts += [text[end : match.start()], _call(text[match.end() : close], name)]
        end = close + 1
    return "".join([*parts, text[end:]])


def _call(statement, name):
    template, *operands = _split(statement, ":")
    code = "".join(re.findall(r'"([^"]*)"', template))
    code = re.sub(r"^\{ (?:\.reg [^;]*; )?", "", code)
    known = [prefix for prefix in INSTRUCTIONS if prefix and code.startswith(prefix)] or ([""] if not code else [])
    assert known, f"{name}: no translation of {code!r}"
    function = INSTRUCTIONS[max(known, key=len)]
    if function is None:
        return "(void)0"
    written = [operand for part in operands[:2] for operand in _split(part, ",")]
    values = [re.fullmatch(r'\s*"[^"]*"\s*\((.*)\)\s*', operand, re.DOTALL) for operand in written]
    return f"emulation::{function}({', '.join(value[1] for value in values if value)})"


def _split(text, mark):
    """At the marks outside of strings and brackets."""
    parts, depth, quoted, last = [], 0, False, 0
    for i, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif not quoted and character in "([{":
            depth += 1
        elif not quoted and character in ")]}":
            depth -= 1
        elif not quoted and depth == 0 and character == mark:
            parts.append(text[last:i])
            last = i + 1
    return [*parts, text[last:]]


def _closing(text, start):
    """Where the bracket is closed that was opened before `start`."""
    depth, quoted = 1, False
    for i in range(start, len(text)):
        character = text[i]
        if character == '"':
            quoted = not quoted
        elif not quoted:
            depth += (character == "(") - (character == ")")
            if depth == 0:
                return i
    raise AssertionError("a bracket is not closed")
