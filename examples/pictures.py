"""What the pictures of the examples have in common. They go into a file: no display is needed."""

import matplotlib

matplotlib.use("Agg")

DPI = 110


def frame(axis, first, last, label="step"):
    """Show this range only, without lines above and on the right."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_xlim(first, last)
    axis.set_xlabel(label)


def legend_below(figure, axis):
    """One legend for all panels, of what this one shows."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(handles), frameon=False)


def save(figure, title, path):
    figure.suptitle(title, fontsize=12)
    figure.savefig(path, dpi=DPI)
