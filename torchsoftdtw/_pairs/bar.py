"""A progress bar for long work."""

import sys
import time

QUIET = 5.0  # seconds in which short work is done, without a bar
OFTEN = 0.5


class Bar:
    """How many of `total` blocks are done, `before` by a run that this one goes on with: on stderr, tqdm's bar if that is
    installed, else a line. is_silent: nothing."""

    def __init__(self, name, total, before, is_silent):
        self.name, self.total, self.before, self.is_silent = name, total, before, is_silent
        self.start = self.last = time.monotonic()
        self.shown = None

    def update(self, count_done):
        """count_done(): how many there are; asked when there is something to show."""
        now = time.monotonic()
        if self.is_silent or now < self.start + QUIET or now < self.last + OFTEN:
            return
        self.last = now
        done = count_done()
        if self.shown is None:
            self.shown = self._open()
        self.shown(done)

    def close(self):
        if self.shown is not None:
            self.shown(None)

    def _open(self):
        try:
            from tqdm import tqdm
        except ImportError:
            return self._line
        bar = tqdm(total=self.total, desc=self.name, unit="block", file=sys.stderr, initial=self.before)
        bar.start_t -= time.monotonic() - self.start

        def show(done):
            bar.close() if done is None else bar.update(done - bar.n)

        return show

    def _line(self, done):
        if done is None:
            text = "\n"
        else:
            seconds = round(self.last - self.start)
            text = f"\r{self.name}: {100 * done // self.total} %, {done} of {self.total} blocks, {seconds} s"
        print(text, end="", file=sys.stderr, flush=True)
