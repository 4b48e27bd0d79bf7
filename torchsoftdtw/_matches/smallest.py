"""The least of many numbers, some of which change from one question to the next."""

import torch

WIDTH = 512  # numbers of a block, of which the least is known


class Smallest:
    """Numbers on the CPU, without NaN. inf is none."""

    def __init__(self, numbers):
        self.blocks = torch.nn.functional.pad(numbers, (0, -len(numbers) % WIDTH), value=torch.inf).view(-1, WIDTH)
        self.least = self.blocks.amin(1)

    def first(self):
        """(position, number) of the least, of equal ones the first; (None, inf) where there is none."""
        least, block = self.least.min(0)  # which is the first of equal ones, and so below
        if least.isinf():
            return None, torch.inf
        number, place = self.blocks[block].min(0)
        return block.item() * WIDTH + place.item(), number.item()

    def put(self, begin, end, numbers):
        """Numbers, or one for all, for positions begin to end."""
        self.blocks.view(-1)[begin:end] = numbers
        touched = slice(begin // WIDTH, -(-end // WIDTH))
        self.least[touched] = self.blocks[touched].amin(1)
