"""Find a pattern: subsequence matches
===================================

Find a motion wherever it occurs in a long recording: each time at another speed, among other motions that look like it.

The recording consists of real series, one after another in random order. Each is played faster or slower, and the hand
rests between them. The query is another series, of the training part. ``subsequence_matches`` finds the ranges of the
recording that are nearest to the query, whatever their length. The true places of the motion are known, so hits can be
counted. For comparison, z-normalised windows of the query's own length are found by DTW and by the Euclidean distance,
which is DTW with a band of 0.
"""

import time

import matplotlib.pyplot as plt
import pictures
import real_series
import torch
from torch.nn.functional import interpolate

import torchsoftdtw
from torchsoftdtw import plot

HIT, MISS, QUERY = "#6a994e", "#d1495b", "#3c7dc4"
OVERLAP = 0.5  # of a match and an occurrence, as a share of what either covers: from here on it is a hit

# %%
# The recording
# -------------


def record(series, wanted, generator):
    """A recording (M, 1) of all series in random order, and [(start, end)] of those that are wanted."""
    parts, occurrences, length = [], [], 0
    for index in torch.randperm(len(series), generator=generator).tolist():
        speed = 0.7 + 0.8 * torch.rand((), generator=generator).item()
        played = interpolate(series[index].T[None], scale_factor=1 / speed, mode="linear", align_corners=True)[0].T
        last = parts[-1][-1:] if parts else played[:1]
        rest = 20 + int(60 * torch.rand((), generator=generator))
        parts += [last + (played[:1] - last) * torch.linspace(0, 1, rest).unsqueeze(1), played]
        length += rest + len(played)
        if wanted[index]:
            occurrences.append((length - len(played), length))
    return torch.cat(parts), occurrences


def is_hit(start, end, occurrences):
    def share(a, b):
        return max(0, min(end, b) - max(start, a)) / (max(end, b) - min(start, a))

    return any(share(*occurrence) >= OVERLAP for occurrence in occurrences)


# %%
# The picture
# -----------


def busiest(matches, length):
    """The first step of a part of so many steps that has the most matches."""
    return max(
        matches.start.tolist(), key=lambda first: ((matches.start >= first) & (matches.end <= first + length)).sum().item()
    )


def draw(query, recording, occurrences, matches, title, path, length=2500):
    figure = plt.figure(figsize=(11, 6), layout="constrained")
    long, cost, pair = figure.subplot_mosaic([["long", "long"], ["cost", "pair"]], width_ratios=[2, 1]).values()
    first = max(0, busiest(matches, length) - 50)
    shown = range(first, min(first + length, len(recording)))
    for axis, line, colour in ((long, recording[:, 0], "0.45"), (cost, matches.profile, "0.25")):
        axis.plot(shown, line[first : shown.stop].cpu(), color=colour, lw=0.9)
        for start, end in occurrences:
            axis.axvspan(start, end, color=QUERY, alpha=0.13, lw=0)
        pictures.frame(axis, shown.start, shown.stop)
    for start, end, value in zip(*(column.tolist() for column in matches[:3]), strict=True):
        colour = HIT if is_hit(start, end, occurrences) else MISS
        long.plot(range(start, end), recording[start:end, 0].cpu(), color=colour, lw=2)
        cost.plot(end - 1, value, "o", ms=4, color=colour)
    for colour, label in ((HIT, "match"), (MISS, "match of something else")):
        long.plot([], [], color=colour, lw=2, label=label)
    long.fill_between([], [], color=QUERY, alpha=0.13, label="where the motion is")
    long.legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1, 0.98), fontsize=9)
    long.set_title(title, fontsize=11, loc="left")
    long.set_xlabel("")
    cost.set(yscale="log", ylabel="DTW of the best range\nthat ends here")
    plot.pair(query, recording[matches.start[0] : matches.end[0]], ax=pair)
    pair.set_title("the query (x) and its best match (y)", fontsize=10, pad=18)
    figure.savefig(path, dpi=pictures.DPI)


# %%
# All of it
# ---------


def parse_arguments():
    parser = real_series.parser_of(__doc__, "pattern.png", dataset="gun_point")
    parser.add_argument("--label", type=int, help="the class to look for; by default the first one")
    parser.add_argument("--matches", type=int, default=20, help="how many ranges to find")
    parser.add_argument("--seed", type=int, default=0, help="of the recording")
    return parser.parse_args()


def main():
    options = parse_arguments()
    series, labels, others, other_labels = real_series.load(options.dataset)
    label = labels.min() if options.label is None else options.label
    own = series[torch.from_numpy(labels == label)]
    if not len(own):
        raise SystemExit(f"--label: {options.dataset} has the classes {sorted(set(labels.tolist()))}, not {label}")
    query = own[torchsoftdtw.cdist(own).sum(1).argmin()].to(options.device)  # the one that is nearest to all of its class
    recording, occurrences = record(others, other_labels == label, torch.Generator().manual_seed(options.seed))
    recording, k = recording.to(options.device), options.matches
    print(real_series.DATASETS[options.dataset])
    times = f"{len(occurrences)} times in a recording of {len(recording)}"
    print(f"a query of {len(query)} steps of class {label}, which is there {times}; {options.device}\n")

    ways = {
        "DTW of ranges of any length": {"warp_penalty": 0.1},  # which makes long rests cost something
        "DTW of z-normalised windows": {"normalize": True, "bandwidth": len(query) // 5},
        "Euclidean, z-normalised windows": {"normalize": True, "bandwidth": 0},
    }
    print(f"{'':<36}{'hits':>8}{'seconds':>10}")
    found = {}
    for name, way in ways.items():
        begin = time.perf_counter()
        found[name] = matches = torchsoftdtw.subsequence_matches(query, recording, k, profile=True, **way)
        seconds = time.perf_counter() - begin
        hits = sum(is_hit(*match, occurrences) for match in zip(matches.start.tolist(), matches.end.tolist(), strict=True))
        print(f"{name:<36}{f'{hits} of {len(matches.start)}':>8}{seconds:>10.2f}")
    title = f"{options.dataset}: class {label} in a part of the recording"
    draw(query, recording, occurrences, next(iter(found.values())), title, options.output)
    print(f"\nmatches drawn in {options.output}")


if __name__ == "__main__":
    main()
