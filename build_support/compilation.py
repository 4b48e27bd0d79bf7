"""Compiles what is out of date, the longest first."""

import json
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
BYTES_PER_SECOND = 12_000  # of a source and its headers: a guess for those that were never compiled


@dataclass(frozen=True)
class Task:
    """One source to compile in the folder root, which source and target are relative to."""

    root: Path
    source: str
    target: str
    compiler: tuple

    @property
    def command(self):
        return [*self.compiler, "-MD", "-MF", f"{self.target}.d", self.source, "-o", self.target]

    def beside(self, suffix):
        return self.root / (self.target + suffix)

    def note(self):
        """What was written beside the target when it was compiled: command, started, seconds; {} without it."""
        try:
            return json.loads(self.beside(".json").read_text())
        except (OSError, ValueError):
            return {}

    def is_outdated(self, modified):
        """Whether to compile anew. modified(path): last_write, or what remembers its answers."""
        note = self.note()
        if note.get("command") != self.command or not self.beside("").exists():
            return True
        try:
            files = dependencies(self.beside(".d").read_text())
        except OSError:
            return True
        return any(modified(self.root / file) > note["started"] for file in [self.source, *files])

    def seconds(self):
        """How long it took the last time, or a guess."""
        return self.note().get("seconds") or size_with_headers(self.root, self.source) / BYTES_PER_SECOND

    def compile(self):
        self.beside("").parent.mkdir(parents=True, exist_ok=True)
        started = time.time()  # an edit while the compiler runs makes the target out of date
        run(self.command, self.root)
        note = {"command": self.command, "started": started, "seconds": time.time() - started}
        self.beside(".json").write_text(json.dumps(note))


def tasks(root, folder, sources, compiler):
    """One for each source, whose path its target has in folder: two files of one name do not meet."""
    return [Task(root, source, f"{folder}/{source}.o", tuple(compiler)) for source in sources]


def compile_all(tasks, jobs, force=False):
    """Compiles the tasks that are out of date, as many at once as jobs says. The first error stops what has not begun."""
    modified = cache(last_write)
    left = [task for task in tasks if force or task.is_outdated(modified)]
    left.sort(key=Task.seconds, reverse=True)
    pool = ThreadPoolExecutor(max_workers=jobs)
    try:
        for done in as_completed([pool.submit(task.compile) for task in left]):
            done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def link(command, objects, output, root, notes):
    """Runs command, unless output came of the same command and is newer than all objects."""
    note = root / notes / re.sub(r"\W", "_", output)
    newest = max(last_write(root / target) for target in objects)
    is_same = note.exists() and note.read_text() == json.dumps(command)
    if is_same and (root / output).exists() and last_write(root / output) >= newest:
        return
    run(command, root)
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps(command))


def run(command, folder):
    print(" ".join(command), flush=True)
    subprocess.run(command, check=True, cwd=folder)


def dependencies(text):
    """The files that a compiler's dependency file (-MD) names after its target."""
    _, _, files = text.replace("\\\n", " ").partition(": ")
    return [re.sub(r"\\([ #\\])", r"\1", name).replace("$$", "$") for name in re.findall(r"(?:\\.|\S)+", files)]


def last_write(path):
    """When a file was last written. One that was deleted or moved counts as written just now."""
    try:
        return path.stat().st_mtime
    except OSError:
        return float("inf")


def size_with_headers(root, source):
    """The bytes of a source and of all project headers that it includes, which csrc or the including folder has."""
    found, left = {}, [root / source]
    while left:
        path = left.pop().resolve()
        if path in found or not path.is_file():
            continue
        text = path.read_text()
        found[path] = len(text)
        for name in INCLUDE.findall(text):
            left += [path.parent / name, root / "csrc" / name]
    return sum(found.values())
