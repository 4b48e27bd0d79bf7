"""Lengths and bands
=================

Draw which pairs of steps an alignment may use: all of them, a band, a band for unequal lengths, and those without padding.

The colours show the soft alignment, and the grey what is left out.
"""

import matplotlib.pyplot as plt
import numpy as np
import pictures
import real_series
import torch

from torchsoftdtw import soft_dtw_alignment

LONG, SHORT, RADIUS = 60, 40, 8

# %%
# The series
# ----------


def bump(length, place):
    """A series (length, 1) with an event around this step."""
    step = torch.arange(float(length))
    return torch.exp(-(((step - place) / 3) ** 2)).unsqueeze(1)


# %%
# The picture
# -----------
# With ``bandwidth=r``, the cells (i, j) with min(0, M - N) - r <= j - i <= max(0, M - N) + r take part.


def in_band(n, m, radius):
    """(n, m): True where a pair of steps takes part."""
    offset = np.arange(m) - np.arange(n)[:, None]
    return (offset >= min(0, m - n) - radius) & (offset <= max(0, m - n) + radius)


def draw(panels, path):
    figure, axes = plt.subplots(1, len(panels), figsize=(3.4 * len(panels), 3.7), layout="constrained")
    for axis, (title, (alignment, takes_part)) in zip(axes, panels.items(), strict=True):
        n, m = takes_part.shape
        axis.imshow(np.where(takes_part, np.nan, 1), cmap="Greys", vmin=0, vmax=3)
        axis.imshow(np.where(alignment > 0.01, alignment, np.nan), cmap="Oranges", vmin=-0.4, vmax=1)
        axis.set(title=title, xlabel="step of y", ylabel="step of x", xlim=(-0.5, m - 0.5), ylim=(n - 0.5, -0.5))
        axis.title.set_fontsize(10)
    figure.savefig(path, dpi=pictures.DPI)


# %%
# All of it
# ---------


def main():
    options = real_series.parser_of(__doc__, "bands.png", device="cpu").parse_args()
    x, y, short = (bump(*given).to(options.device) for given in ((LONG, 24), (LONG, 36), (SHORT, 24)))
    padding = torch.full((LONG - SHORT, 1), torch.nan, device=options.device)
    padded = torch.cat([short, padding])

    without_padding = in_band(LONG, LONG, LONG)
    without_padding[:, SHORT:] = False
    calls = {
        "no band": (x, y, {}, in_band(LONG, LONG, LONG)),
        f"bandwidth={RADIUS}": (x, y, {"bandwidth": RADIUS}, in_band(LONG, LONG, RADIUS)),
        f"bandwidth={RADIUS}, {LONG} and {SHORT} steps": (x, short, {"bandwidth": RADIUS}, in_band(LONG, SHORT, RADIUS)),
        f"padded, y_lengths=[{SHORT}]": (x, padded, {"y_lengths": [SHORT]}, without_padding),
    }
    panels = {}
    print(f"{'':<32}{'pairs of steps':>16}{'soft-DTW':>12}")
    for title, (first, second, given, takes_part) in calls.items():
        value, alignment = soft_dtw_alignment(first[None], second[None], gamma=0.01, **given)
        print(f"{title:<32}{takes_part.sum():>16}{value.item():>12.2f}")
        panels[title] = alignment[0].cpu().numpy(), takes_part
    draw(panels, options.output)
    print(f"\ndrawn in {options.output}")


if __name__ == "__main__":
    main()
