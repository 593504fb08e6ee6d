"""Runs on several processes or machines, with Dask's `distributed`.

A run is done in a folder of its own on the worker, and its files come back as bytes, so machines
need no common disk. If a worker dies, nothing is lost: the scheduler gives its run to another one,
and files are written here, once, when a run is complete.
"""

from __future__ import annotations

import io
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleaf.errors import BackendError, ConfigError
from ringleaf.experiments.spec.options import JOBS
from ringleaf.extras import require

if TYPE_CHECKING:
    from distributed import Client

CONNECT_S = 10
"""Seconds that a named scheduler may take to answer."""


@dataclass(frozen=True, slots=True)
class Crew:
    """The processes that do the runs.

    Args:
        processes: Number of processes on this machine, if no scheduler is named; 1: this one.
        address: Address of a Dask scheduler: `tcp://host:8786`.
    """

    processes: int = 1
    address: str | None = None

    @property
    def is_alone(self) -> bool:
        """Whether this process does all runs itself, one after the other."""
        return self.processes == 1 and self.address is None


ALONE = Crew()


@dataclass(frozen=True, slots=True)
class Leavings:
    """The output of a run: its lines for the terminal, and its files by name."""

    lines: list[str]
    files: dict[str, bytes]

    def write(self, folder: Path) -> None:
        """Write the files to a folder."""
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def run_apart(given: Mapping[str, Any]) -> Leavings:
    """Perform a run in a folder of its own, and return its output.

    Raises:
        RingleafError: If an option, the topology or the network does not allow it.
    """
    from ringleaf.experiments.sweep import run_one  # imports all that a worker needs

    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="ringleaf-") as name:
        folder = Path(name)
        with redirect_stderr(io.StringIO()):  # a terminal has room for one line of progress
            run_one({**_alone(given), "out": name}, lines.append, drawn=False)
        files = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
    return Leavings(lines, files)


def _alone(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's options for a worker beside others, which has a core for itself."""
    return dict(given) if JOBS in given else {"threads": "1", **given}


def run_all(cases: Mapping[str, Mapping[str, Any]], crew: Crew) -> Iterator[tuple[str, Leavings]]:
    """Perform runs on a crew, and yield each one's name and output as it ends.

    Raises:
        ConfigError: If `distributed` is missing, or no scheduler answers.
        BackendError: If one run has killed several workers.
        RingleafError: The error that a run raised.
    """
    require("distributed", "run: several processes or machines")
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    with _client(crew) as client:
        names = {
            client.submit(run_apart, dict(given), pure=False): name for name, given in cases.items()
        }
        for future in as_completed(names):
            try:
                yield names[future], future.result()
            except KilledWorker as error:
                raise BackendError(
                    f"run {names[future]}: every worker that tried it died, got {error}; "
                    "it may need more memory than there is"
                ) from error


@contextmanager
def _client(crew: Crew) -> Iterator[Client]:
    """Yield a connection to the crew's scheduler, which is started if none is named."""
    from distributed import Client, LocalCluster

    if crew.address is not None:
        try:
            client = Client(crew.address, timeout=CONNECT_S)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"on: no Dask scheduler answers, got {crew.address!r}: {error}; "
                "start one with `dask scheduler`, and workers beside it with `dask worker`"
            ) from error
        with client:
            yield client
        return
    with _deaf_to_interrupts():
        cluster = LocalCluster(
            n_workers=crew.processes,
            threads_per_worker=1,
            processes=True,
            memory_limit=None,
            dashboard_address=None,
            silence_logs=50,
        )
    with cluster, Client(cluster) as client:
        yield client


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Have threads and processes that are made meanwhile never see Ctrl-C, which is for this one.

    A terminal sends it to all processes. It is handled here when this ends.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
