"""The processes of a run's ranks: started, watched, and ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ringleaf.experiments.train.server import RankError
from ringleaf.experiments.train.wire import FOLDER

END_S = 10.0
"""The time that ranks have to end by themselves, before they are killed."""

_BEAT_S = 0.05


class Processes:
    """One process for each rank, each with the environment that `torchrun` gives.

    Args:
        script: The script and its arguments.
        ranks: The number of ranks.
        folder: The fabric's folder.
    """

    def __init__(self, script: Sequence[str], ranks: int, folder: Path) -> None:
        command = [sys.executable, "-P", "-m", "ringleaf.experiments.train.launch", *script]
        common = os.environ | {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(_free_port()),
            "WORLD_SIZE": str(ranks),
            "LOCAL_WORLD_SIZE": str(ranks),
            "GROUP_RANK": "0",
            "CUDA_VISIBLE_DEVICES": "",
            FOLDER: str(folder),
        }
        common.setdefault("OMP_NUM_THREADS", "1")
        self._running: list[subprocess.Popen[bytes]] = []
        for rank in range(ranks):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            self._running.append(subprocess.Popen(command, env=common | own))

    def look(self, ended: Sequence[int], gone: int = -1) -> None:
        """Raise an error if a rank has failed, or left without a word.

        Args:
            ended: The ranks that have said that they end.
            gone: A rank that is just ending; -1: there is none.

        Raises:
            RankError: If one has; the message has its exit status.
        """
        if gone >= 0:
            with suppress(subprocess.TimeoutExpired):
                self._running[gone].wait(END_S)
        for rank, process in enumerate(self._running):
            status = process.poll()
            if status:
                raise RankError(f"rank {rank}: must not fail, got {_as_text(status)}")
            if status == 0 and rank not in ended:
                raise RankError(
                    f"rank {rank}: must call init_process_group, and end as Python does, got an "
                    "end without"
                )

    def join(self) -> None:
        """Wait until all have ended.

        Raises:
            RankError: If one has failed.
        """
        everyone = range(len(self._running))
        while any(process.poll() is None for process in self._running):
            self.look(everyone)
            time.sleep(_BEAT_S)
        self.look(everyone)

    def end(self) -> None:
        """End those that are left: they have some seconds, and then are killed."""
        deadline_s = time.monotonic() + END_S
        for process in self._running:
            try:
                process.wait(max(deadline_s - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                process.terminate()
        for process in self._running:
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _as_text(status: int) -> str:
    if status < 0:
        return f"signal {signal.Signals(-status).name}"
    return f"exit status {status}"


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port
