"""CUDA C++ of this package -> C++ for cuda.h: shared memory; all else stands as it is."""

import re


def translate(text, name):
    """The text of the file `name`."""
    text = text.replace("__CUDA_ARCH__", "emulation_architecture").replace("__CUDACC__", "emulation_architecture")
    text = re.sub(
        r"extern __shared__ (?:__align__\(\d+\) )?(\w+) (\w+)\[\];",
        r"#define \2 reinterpret_cast<\1*>(emulation::machine().dynamic_memory())",
        text,
    )

    def own(match):
        kind, variable, extents = match.groups()
        return f'auto& {variable} = emulation::shared<{kind}{extents}>("{name} {variable}");'

    return re.sub(r"__shared__ (?:__align__\(\d+\) )?([^;]+?) (\w+)((?:\[[^;]*\])?);", own, text)
