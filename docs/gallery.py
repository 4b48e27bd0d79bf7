"""How Sphinx-Gallery makes the tutorials of the examples."""

import pathlib

ORDER = (
    "explain",
    "train_forecaster",
    "dilate",
    "fit_barycenter",
    "cluster_series",
    "nearest_centroid",
    "find_pattern",
    "draw_bands",
)
PICTURE = pathlib.Path(__file__).parents[1] / "build" / "example.png"  # beside what the page itself shows


def place(file):
    """A key to sort the examples by."""
    return ORDER.index(pathlib.Path(file).stem)


def arguments(_, script):
    """An example's arguments: it saves its picture outside of the sources, and runs where every machine can."""
    return ["--device", "cpu", "--output", str(PICTURE)]
