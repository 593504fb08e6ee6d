"""Live networks as commands that tests run, watch, and take away again."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from interrupting import heed_interrupts

from ringleaf.networks.live.processes import Identity, identify, is_running
from ringleaf.networks.mininet.state import FOLDER, INTERFACES, inside, records, runtime_dir

ROOT = Path(__file__).resolve().parents[1]
Found = TypeVar("Found")
COMMAND = [sys.executable, "-m", "ringleaf.experiments.commands.cli"]
PATIENCE_S = 200  # a new machine compiles first
POLL_S = 0.01


BOTH = ["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)]


def run(*command: str, text: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def start(*command: str) -> subprocess.Popen[str]:
    """Start a command of ours, in a process group of its own, with pipes."""
    return subprocess.Popen(
        [*COMMAND, *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process, and close its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe
        with contextlib.suppress(BrokenPipeError):
            pipe.close()


def wait_for(look: Callable[[], Found | None]) -> Found:
    """Look until there is something."""
    deadline_s = time.monotonic() + PATIENCE_S
    while (found := look()) is None:
        assert time.monotonic() < deadline_s
        time.sleep(POLL_S)  # and leave the processor to those that are waited for
    return found


class Leavings:
    """What a network of a process has made, from its record."""

    def __init__(self, owner: int) -> None:
        (record,) = [each for each in records() if each.owner == identify(owner)]
        self.name = record.name
        self.processes: dict[str, Identity] = record.processes
        self.agents: list[Identity] = []

    @property
    def state(self) -> Path:
        return runtime_dir() / f"{self.name}.json"

    def agent(self, host: str) -> int:
        """The process of a host's agent: in the host's namespace, and not its shell."""
        shell, _ = self.processes[host]
        namespace = os.readlink(f"/proc/{shell}/ns/net")

        def look() -> int | None:
            for pid, _ in inside(self.name):
                with contextlib.suppress(OSError):
                    if pid != shell and os.readlink(f"/proc/{pid}/ns/net") == namespace:
                        return pid
            return None

        pid = wait_for(look)
        self.agents.append(identify(pid))
        return pid

    def left(self) -> list[str]:
        """What there still is of it."""
        interfaces = [
            each.name for each in INTERFACES.iterdir() if each.name.startswith(f"{self.name}-")
        ]
        processes = [name for name, identity in self.processes.items() if is_running(identity)]
        agents = [str(pid) for pid, start in self.agents if is_running((pid, start))]
        files = [path.name for path in runtime_dir().glob(f"{self.name}*")]
        logs = [path.name for path in Path(tempfile.gettempdir()).glob(f"{FOLDER}{self.name}")]
        groups = [str(path) for path in Path("/sys/fs/cgroup").glob("**/h0")]
        return [
            *interfaces,
            *processes,
            *agents,
            *map(str, inside(self.name)),
            *files,
            *logs,
            *groups,
        ]


class Foreign:
    """A veth and a namespace with a process that are not ours."""

    def __init__(self, veth: str, process: Identity) -> None:
        self._veth = veth
        self._process = process

    def untouched(self) -> bool:
        try:
            same = identify(self._process[0]) == self._process
        except OSError:
            return False
        return same and (INTERFACES / self._veth).exists()


@contextlib.contextmanager
def strangers() -> Iterator[Foreign]:
    name = f"f{os.getpid()}"
    add = ["ip", "link", "add", "name", f"{name}a", "type", "veth", "peer", "name", f"{name}b"]
    subprocess.run(add, check=True)
    with subprocess.Popen(["mnexec", "-n", "cat"], stdin=subprocess.PIPE) as process:
        yield Foreign(f"{name}a", identify(process.pid))
        process.kill()
    subprocess.run(["ip", "link", "delete", "dev", f"{name}a"], check=True)
