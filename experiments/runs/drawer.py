"""A process that draws figures beside a run.

While the run is checked and simulates, it imports matplotlib and loads fonts; when the run's files
are there, it draws them with all cores. So the run itself never imports matplotlib. Both sides
speak JSON, a line each way: the run names its folder, and the process answers with the files that
it has written.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from ringleaf.core import light_packages
from ringleaf.core.kept_code import kept
from ringleaf.core.orphans import die_with_parent
from ringleaf.core.threads import ONE_THREAD, count_cores
from ringleaf.core.undocumented import indented
from ringleaf.experiments.figures.tasks import by_all_cores


class Drawer:
    """The process, from the run's side; as a context, it ends with the run.

    It has a session of its own, so Ctrl-C interrupts only the run, which still has its results
    drawn. If the run is killed, or ends before it has begun, the kernel ends the process.

    Args:
        kind: The kind of workload whose modules it imports before it is asked to draw.
    """

    def __init__(self, kind: str = "collective") -> None:
        module, parent = "ringleaf.experiments.runs.drawer", str(os.getpid())
        self._process = subprocess.Popen(
            (sys.executable, "-P", "-m", module, parent, kind),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | ONE_THREAD,  # so that it can be forked
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)  # and its forks
        with suppress(OSError):  # a pipe whose reader has died
            self._process.__exit__(kind, error, trace)

    def draw(self, folder: Path) -> list[Path] | None:
        """Have figures and report of a run directory drawn; return the files.

        Return None if the process could not do it, so that the caller draws, and meets the error.
        """
        with suppress(OSError, ValueError):
            answer, _ = self._process.communicate(json.dumps(str(folder)) + "\n")
            return [folder / name for name in json.loads(answer)]
        return None


_early: list[Drawer] = []
"""The process that was started with the command, until its run has it."""


def drawer(kind: str = "collective") -> Drawer | None:
    """Return a process that draws a kind of workload, or none on a machine with one core."""
    if _early:
        return _early.pop()
    return Drawer(kind) if count_cores() > 1 else None


@contextmanager
def started_early() -> Iterator[None]:
    """Start the process that `drawer` returns now; if nobody has asked for it by the end, end it.

    To load what draws takes as long as to load what simulates, so both begin together.
    """
    if count_cores() > 1:
        _early.append(Drawer())
    try:
        yield
    finally:
        while _early:
            with _early.pop():
                pass


_NEW_OBJECTS = 200_000
"""New objects before Python looks for garbage: by default it did so all the time it drew."""

_OF_ALL = ("experiments.figures.looks", "topologies.draw")
_OF_KIND = ("kind", "results", "figures", "page")
"""Modules that draw a run. A kind may have others, which are imported when it is drawn."""


def serve(source: IO[str], sink: IO[str], kind: str = "collective") -> None:
    """Get ready to draw, read the name of a run directory, draw it, and write the files' names.

    An input that ends before the name ends this, too.
    """
    gc.set_threshold(_NEW_OBJECTS)
    with indented():
        import networkx as nx

        from ringleaf.experiments.figures.style import warm_up
        from ringleaf.experiments.runs.drawing import redraw

    warm_up()
    for name in (*(f"experiments.workloads.{kind}.{part}" for part in _OF_KIND), *_OF_ALL):
        with suppress(ModuleNotFoundError):
            import_module(f"ringleaf.{name}")
    nx.Graph()  # loads them (`light_packages`)
    gc.freeze()  # all of this stays: the search for garbage, and forks, leave it alone
    line = source.readline()
    if line:
        folder = Path(json.loads(line))
        files = redraw(folder, by_all_cores)
        json.dump([str(path.relative_to(folder)) for path in files], sink)


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    light_packages.install()
    with kept("drawer"):
        serve(sys.stdin, sys.stdout, *sys.argv[2:])
        sys.stdout.flush()
    os._exit(0)  # the run waits for the end, and to take all apart takes a while
