"""Derivatives: of soft-DTW and of hard DTW, of the first order and beyond, compiled, and under torch.func.

Start with transforms.py, which chooses among them. Nothing here is part of the interface.
"""
