"""The process that makes a run's ranks: it imports PyTorch once, and forks a process for each rank.

So the machine imports PyTorch once, and ranks share most of its memory. The process reports how
ranks end, a line `RANK STATUS` for each, on a pipe: a status is what `Popen.returncode` would be.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

from ringleaf.core.ending import end_process
from ringleaf.core.orphans import die_with_parent
from ringleaf.experiments.workloads.train import launch
from ringleaf.experiments.workloads.train.on_cpu import hint


class Forge:
    """The ranks' parent.

    Args:
        report: The file descriptor for reports.
        script: The script and its arguments.
    """

    def __init__(self, report: int, script: Sequence[str]) -> None:
        self._report = report
        self._script = script
        self._ranks: dict[int, int] = {}  # by process, those that have not ended
        self._signal = signal.SIGTERM
        self._process = os.getpid()

    def make(self, ranks: int) -> None:
        """Fork the ranks, each of which runs the script and ends."""
        gc.freeze()  # else the search for garbage in ranks writes to memory that they share
        for rank in range(ranks):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of threads of libraries, which live on elsewhere
                process = os.fork()
            if not process:
                die_with_parent(self._process)
                os.close(self._report)
                _be_rank(rank, self._script)
            self._ranks[process] = rank

    def watch(self) -> None:
        """Report the ends of all ranks.

        The first SIGTERM is passed on to ranks, and any further one kills them.
        """
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        while self._ranks:
            process, status = os.wait()
            rank = self._ranks.pop(process, None)
            if rank is not None:
                os.write(self._report, f"{rank} {os.waitstatus_to_exitcode(status)}\n".encode())

    def _end(self) -> None:
        for process in self._ranks:
            os.kill(process, self._signal)
        self._signal = signal.SIGKILL


def main() -> None:
    """Make the ranks of a script: `forge PARENT REPORT RANKS SCRIPT [ARGUMENT ...]`."""
    parent, report, ranks, *script = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ranks are told by the terminal, too
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    die_with_parent(int(parent), signal.SIGTERM)
    launch.preload()
    forge = Forge(int(report), script)
    forge.make(int(ranks))
    forge.watch()


def _be_rank(rank: int, script: Sequence[str]) -> NoReturn:
    """Run the script, and end."""
    status = 1
    try:
        launch.run(rank, script)
        status = 0
    except SystemExit as error:
        status = _status_of(error)
    except KeyboardInterrupt:
        status = launch.INTERRUPTED  # the run says that it was
    except BaseException as error:  # noqa: BLE001 - as Python does
        if not getattr(error, "is_elsewhere", False):  # the run says why it has ended
            sys.excepthook(*sys.exc_info())
            sys.stderr.write(hint(error, os.environ))
            sys.stderr.write(launch.version_hint(version("torch")))
    end_process(status)


def _status_of(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    sys.stderr.write(f"{error.code}\n")
    return 1


if __name__ == "__main__":
    main()
