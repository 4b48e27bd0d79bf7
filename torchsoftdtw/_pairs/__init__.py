"""All pairs of two sets of series: in which tiles they are computed (tiles.py), and what is computed of a tile
(measure.py). Nothing here is part of the interface.
"""
