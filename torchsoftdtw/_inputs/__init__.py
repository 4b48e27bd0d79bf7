"""What the user passes, checked: series, cost matrices, lengths, bands, gamma, penalties and the name of a cost.

Start with problem.py, which makes one Problem of what a function of series is given; arguments.py and per_pair.py have the
checks, remedies.py what their errors advise and which shapes are warned of. Nothing here knows a kernel or a gradient, and
nothing is part of the interface.
"""
