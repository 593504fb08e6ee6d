"""The processes of a run's ranks: started, watched, and ended."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from ringleaf.core import interrupts
from ringleaf.experiments.workloads.train.server import RankError
from ringleaf.experiments.workloads.train.wire import FOLDER

PORT = "29500"
"""The port that scripts are told, as by `torchrun`. Nothing listens there (`stores.py`)."""

TORCHRUN = {
    "GROUP_RANK": "0",
    "GROUP_WORLD_SIZE": "1",
    "ROLE_NAME": "default",
    "TORCHELASTIC_RESTART_COUNT": "0",
    "TORCHELASTIC_MAX_RESTARTS": "0",
    "TORCHELASTIC_RUN_ID": "ringleaf",  # by which is_torchelastic_launched() is true
    "TORCHELASTIC_USE_AGENT_STORE": "False",
}
"""What `torchrun` tells scripts on one machine, but for ranks and their number."""

END_S = 10.0
"""The time that ranks have to end by themselves, before they are killed."""

INTERRUPTED_S = 0.5
"""The same if the run was interrupted: whoever did that does not wait for them."""


class Processes:
    """One process for each rank, each with the environment that `torchrun` gives.

    As a context, they run from its start, and have ended at its end.

    Args:
        script: The script and its arguments.
        ranks: The number of ranks.
        folder: The fabric's folder.
    """

    def __init__(self, script: Sequence[str], ranks: int, folder: Path) -> None:
        self._ranks = ranks
        self._script = script
        self._folder = folder
        self._statuses: dict[int, int] = {}  # of ranks that have ended
        self._text = b""

    def __enter__(self) -> Self:
        """Start them."""
        self._reports, report = os.pipe()
        ranks = self._ranks
        command = [sys.executable, "-P", "-m", "ringleaf.experiments.workloads.train.forge"]
        environment = os.environ | {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": PORT,
            "WORLD_SIZE": str(ranks),
            "LOCAL_WORLD_SIZE": str(ranks),
            **TORCHRUN,
            "ROLE_WORLD_SIZE": str(ranks),
            "CUDA_VISIBLE_DEVICES": "",
            FOLDER: str(self._folder),
        }
        environment.setdefault("OMP_NUM_THREADS", "1")
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:  # a terminal interrupts all: it has SIGINT blocked until it ignores it
            self._forge: subprocess.Popen[bytes] = subprocess.Popen(
                [*command, str(os.getpid()), str(report), str(ranks), *self._script],
                env=environment,
                pass_fds=[report],
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(report)
        return self

    def look(self, ended: Sequence[int], gone: int = -1) -> None:
        """Raise an error if a rank has failed, or left without a word.

        Args:
            ended: The ranks that have said that they end.
            gone: A rank that is just ending; -1: there is none.

        Raises:
            RankError: If one has; the message has its exit status.
        """
        deadline_s = time.monotonic() + END_S
        while gone >= 0 and gone not in self._statuses and self._hear(deadline_s):
            pass
        self._hear()
        for rank, status in sorted(self._statuses.items()):
            if status:
                raise RankError(f"rank {rank}: must not fail, got {_as_text(status)}")
            if rank not in ended:
                raise RankError(
                    f"rank {rank}: must call init_process_group, and end as Python does, got an "
                    "end without"
                )

    def join(self) -> None:
        """Wait until all have ended.

        Raises:
            RankError: If one has failed.
        """
        everyone = range(self._ranks)
        while len(self._statuses) < self._ranks:
            self._hear(None)
            self.look(everyone)
        self.look(everyone)

    def __exit__(self, *error: object) -> None:
        """End those that are left: they have some seconds, and then are killed."""
        try:
            self._end(INTERRUPTED_S if interrupts.asked() else END_S)
        except KeyboardInterrupt:
            self._end(INTERRUPTED_S)
            raise
        finally:
            os.close(self._reports)

    def _end(self, wait_s: float) -> None:
        """End ranks within three times that many seconds, and the process that has made them."""
        for _ in range(3):  # by themselves; as they are told to; by force
            deadline_s = time.monotonic() + wait_s
            while len(self._statuses) < self._ranks and self._hear(deadline_s):
                pass
            if len(self._statuses) == self._ranks:
                break
            self._forge.terminate()
        self._forge.wait()

    def _hear(self, deadline_s: float | None = 0.0) -> bool:
        """Hear of ranks that have ended, now or until a time; return whether there was a word.

        Ranks that were not reported before the process that makes them has ended have its status.
        """
        wait_s = None if deadline_s is None else max(deadline_s - time.monotonic(), 0.0)
        if not select.select([self._reports], [], [], wait_s)[0]:
            return False
        data = os.read(self._reports, 4096)
        *lines, self._text = (self._text + data).split(b"\n")
        self._statuses |= {int(rank): int(status) for rank, status in map(bytes.split, lines)}
        if not data:
            status = self._forge.wait() or signal.SIGKILL.value
            self._statuses |= dict.fromkeys(set(range(self._ranks)) - self._statuses.keys(), status)
        return True


def _as_text(status: int) -> str:
    if status < 0:
        return f"signal {signal.Signals(-status).name}"
    return f"exit status {status}"
