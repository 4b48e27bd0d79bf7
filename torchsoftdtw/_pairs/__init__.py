"""All pairs of two sets of series. Nothing here is part of the interface.

task.py      two sets and what is asked of their pairs; in which blocks it is computed
measure.py   what is computed of a pair; tiles.py: in which tiles of a block
bounds.py    lower bounds of hard DTW; pruning.py: the nearest series by them; best.py: the nearest so far
stream.py    the loop over blocks: series to the device, values from there
queue.py     which block is next, for one process or for many ranks
journal.py   which blocks are finished, in memory or in a file beside the result
results.py   where values go: memory, or a file
bar.py       a progress bar
"""
