"""Averages of groups of series, all groups in one batch: which series belong to which (groups.py), where an average starts
(start.py), its objective (objective.py), and what lowers it: L-BFGS of this package (lbfgs.py), any optimizer of torch
(torch_optimizer.py) or DBA (dba.py). None of them waits for the device (steps.py), and a GPU gets the trials of L-BFGS as
a recording (replay.py). What an average's derivatives with respect to weights and series are: implicit.py, with equations
that minres.py solves. Nothing here is part of the interface.
"""
