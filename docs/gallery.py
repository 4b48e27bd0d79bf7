"""How Sphinx-Gallery makes the tutorials of the examples."""

import pathlib

ORDER = (
    "explain",
    "train_forecaster",
    "dilate",
    "fit_barycenter",
    "cluster_series",
    "nearest_centroid",
    "elastic_neighbours",
    "find_pattern",
    "draw_bands",
)


def place(file):
    """A key to sort the examples by."""
    return ORDER.index(pathlib.Path(file).stem)


def arguments(_, script):
    """An example's arguments: on the CPU, and with its picture saved outside of the sources; the page shows it too."""
    return ["--device", "cpu", "--output", f"../build/{pathlib.Path(script['src_file']).stem}.png"]
