"""A fabric of its own, for ranks that `torchrun` or somebody else has started."""

from __future__ import annotations

import atexit
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from ringleaf.errors import ConfigError
from ringleaf.experiments.workloads.train.folder import clean_stale, make_held
from ringleaf.experiments.workloads.train.wire import SOCKET

START_S = 60.0
_BEAT_S = 0.02


def start_fabric(options: str, ranks: int) -> Path:
    """Start a fabric; return its folder. This process waits for it when it ends.

    Args:
        options: Options of `ringleaf train`, as typed.
        ranks: The number of ranks.

    Raises:
        ConfigError: If it does not start; it has said why.
    """
    clean_stale()
    folder, _ = make_held()  # until this process ends, which outlives the fabric
    command = [sys.executable, "-P", "-m", "ringleaf.experiments.commands.cli", "train"]
    command += [*shlex.split(options), "--serve", str(folder), "--ranks", str(ranks)]
    process = subprocess.Popen([*command, "--", sys.argv[0] or "python"])
    atexit.register(process.wait)  # it has the last word: the table
    deadline_s = time.monotonic() + START_S
    while not (folder / SOCKET).exists():
        if process.poll() is not None or time.monotonic() > deadline_s:
            shutil.rmtree(folder, ignore_errors=True)
            raise ConfigError(
                f"RINGLEAF_TRAIN: must be options of ringleaf train, got {options!r}, and no "
                "fabric; its own output says why"
            )
        time.sleep(_BEAT_S)
    return folder
