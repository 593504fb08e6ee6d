"""A command as a whole process: its time and memory, and nothing left of it in the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.peers import whole_command
from bench.peers.peer import STDERR, read_end
from ringleaf.errors import BackendError

PATIENCE_S = 900  # for a whole process

_LONGEST_LINE = 160  # characters of an error's last line


@dataclass(frozen=True, slots=True)
class Used:
    """The time and memory of a whole process."""

    wall_s: float
    cpu_s: float
    peak_bytes: int  # of memory, by its largest process


def run_command(name: str, command: Sequence[str], at: Path) -> Used:
    """Run a command in an empty folder, where its outputs are left.

    Raises:
        BackendError: If it fails, with the last line of its stderr, or takes too long; the message
            begins with `name`.
    """
    with _session([sys.executable, "-I", "-S", whole_command.__file__, *command], at) as timer:
        try:
            printed, said = timer.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            raise BackendError(f"{name}: took more than {PATIENCE_S} s") from error
    if timer.returncode:
        raise BackendError(f"{name}: must start, got {_last_line(said)}")
    used = json.loads(printed)
    status = used.pop("status")
    if status:
        last = _last_line(read_end(at / STDERR))
        raise BackendError(f"{name}: must end with exit code 0, got {status}: {last}")
    return Used(**used)


@contextmanager
def _session(command: Sequence[str], at: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a command in a session of its own, of which nothing is left in the end."""
    timer = subprocess.Popen(
        command,
        cwd=at,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with timer:
        try:
            yield timer
        finally:
            if timer.poll() is None:  # it took too long, or Ctrl-C, which does not reach it
                os.killpg(timer.pid, signal.SIGKILL)


def _last_line(text: str) -> str:
    """Return the last line of a text that says something, as a terminal may show it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    last = lines[-1] if lines else "nothing on stderr"
    return "".join(each if each.isprintable() else "?" for each in last[:_LONGEST_LINE])
