"""A run of a training script from start to end: processes, fabric, table and files."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ringleaf.errors import RingleafError
from ringleaf.experiments.train import table
from ringleaf.experiments.train.hosting import Hosting
from ringleaf.experiments.train.processes import Processes
from ringleaf.experiments.train.spec import TrainSpec

Emit = Callable[[str], None]

_MEMORY = Path("/dev/shm")


@contextmanager
def fabric_folder() -> Iterator[Path]:
    """Yield a folder that only this user can enter, in memory if there is such a place."""
    above = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="ringleaf-", dir=above) as name:
        yield Path(name)


def run(
    spec: TrainSpec, script: Sequence[str], emit: Emit, *, serve: Path | None = None
) -> Hosting:
    """Run a script on all ranks; return what was measured.

    Args:
        spec: The options.
        script: The script, and its arguments.
        emit: Takes lines of the table.
        serve: The folder of a fabric for ranks that somebody else starts.

    Raises:
        RingleafError: If a rank fails, or its calls can't be carried.
    """
    if serve is not None:
        try:
            hosting = _host(Hosting(spec, serve), script, emit)
        finally:
            shutil.rmtree(serve, ignore_errors=True)
    else:
        with fabric_folder() as folder:
            processes = Processes(script, spec.ranks, folder)
            try:
                hosting = _host(Hosting(spec, folder, processes.look), script, emit)
                processes.join()
            finally:
                processes.end()
    for line in table.rows(hosting.account):
        emit(line)
    return hosting


def _host(hosting: Hosting, script: Sequence[str], emit: Emit) -> Hosting:
    """Carry the calls of a script's ranks to the end."""
    try:
        for line in table.head(hosting.spec, script, hosting.graph):
            emit(line)
        hosting.run()
    except RingleafError as error:
        hosting.server.abort(str(error))
        raise
    finally:
        hosting.server.close()
    return hosting
