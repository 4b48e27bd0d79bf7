"""Matches of a short series in a long one: arguments.py what is asked; by_end.py the best range for every end; greedy.py
which ranges are taken; windows.py z-normalised windows; smallest.py the least of many numbers that change.
"""
