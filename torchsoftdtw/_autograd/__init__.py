"""Derivatives of soft-DTW and of hard DTW, of the first order and beyond, compiled, and under torch.func.

Start with transforms.py, which chooses among first_order.py, what PyTorch has registered, and what torch.func needs;
second_order.py goes beyond, hard_dtw.py and along_path.py are hard DTW's. Nothing here is part of the interface.
"""
