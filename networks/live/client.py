"""The switch daemon seen from the process that started it: its life cycle, and its commands."""

from __future__ import annotations

import json
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ringleaf.errors import BackendError
from ringleaf.networks.live.engine import CPU_PORT, LinkEnd
from ringleaf.networks.live.line_changes import SwitchChanges
from ringleaf.networks.live.processes import Child

READY_TIMEOUT_S = 300.0  # a new machine compiles first
POLL_S = 0.02
ENDING_S = 5.0  # a process that is killed closes its sockets before others see that it has ended
ANSWER_TIMEOUT_S = 120.0  # it lays out hundreds of switches in seconds


class DaemonCommands:
    """A connection to a switch daemon, for the commands of one process.

    Args:
        control: The path of the daemon's socket.
        process: The daemon.

    Raises:
        BackendError: If the daemon has ended, or is not ready in time.
    """

    def __init__(self, control: Path, process: Child) -> None:
        self._process = process
        self._socket = self._connect(control)
        self._answers = self._socket.makefile("rb")

    def close(self) -> None:
        """Close the connection."""
        self._answers.close()
        self._socket.close()

    def _connect(self, control: Path) -> socket.socket:
        """Connect as soon as it answers."""
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline_s:
            self._process.check()
            one = socket.socket(socket.AF_UNIX)
            try:
                one.connect(str(control))
                one.settimeout(ANSWER_TIMEOUT_S)
            except (FileNotFoundError, ConnectionRefusedError):
                one.close()
                time.sleep(POLL_S)  # it loads, and may compile
            else:
                return one
        raise BackendError(f"switch daemon: not ready, got {READY_TIMEOUT_S} s of silence")

    def ask(self, command: str, **arguments: Any) -> Any:
        """Give a command, and return its result.

        Raises:
            BackendError: If the daemon refuses it, or has ended.
        """
        try:
            self._socket.sendall(json.dumps({command: arguments}).encode() + b"\n")
            line = self._answers.readline()
        except OSError:
            line = b""
        if not line:
            self._process.check(ENDING_S)
            raise BackendError(f"switch daemon: no answer to {command!r}; see {self._process.log}")
        answer = json.loads(line)
        if "error" in answer:
            raise BackendError(f"switch daemon: {command}: {answer['error']}")
        return answer["result"]


class Daemon:
    """A switch daemon of this process; use it as a context manager.

    It ends with the thread that has started it, however that ends. After a fork, only one of the
    processes may use it, as they would read one another's answers.

    Args:
        control: Path of its socket: short, as sockets' paths have 107 bytes.
        log: A file for its output.
        seed: Seed of the switches' losses and random numbers.
        cpu_port: Number of the port that leads to the switches' controllers.
        grpc: Address where P4Runtime listens; by default a socket beside `control`, which only
            this user's processes can connect to.

    Raises:
        BackendError: If it ends at once.
    """

    def __init__(
        self,
        control: Path,
        log: Path,
        *,
        seed: int = 1,
        cpu_port: int = CPU_PORT,
        grpc: str | None = None,
    ) -> None:
        command = [sys.executable, "-P", "-m", "ringleaf.networks.live.daemon"]
        command += ["--control", str(control)]
        command += ["--seed", str(seed), "--cpu-port", str(cpu_port)]
        command += ["--grpc", grpc or f"unix:{control.resolve().with_suffix('.grpc')}"]
        self._control = control
        self.process = Child("switch daemon", command, log, farewell=signal.SIGTERM)
        try:
            self._commands = DaemonCommands(control, self.process)
        except BaseException:
            self.process.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def add(self, switches: Mapping[str, tuple[int, Sequence[LinkEnd]]]) -> None:
        """Add switches without programs: name -> device id, and lines by port from 1.

        Raises:
            BackendError: If a name or device id is taken, or an interface isn't there.
        """
        self._commands.ask(
            "add_all",
            switches=[
                {"name": name, "device": device, "lines": [asdict(line) for line in lines]}
                for name, (device, lines) in switches.items()
            ],
        )

    def remove(self, name: str) -> None:
        """End a switch, and its P4Runtime device."""
        self._commands.ask("remove", name=name)

    def disturb(self, changes: SwitchChanges, start_ns: int) -> None:
        """Have lines change, and switches restart, in a run.

        Args:
            changes: What happens.
            start_ns: The run's start by the monotonic clock.
        """
        lines = [(name, port, asdict(change)) for name, port, change in changes.lines]
        restarts = list(changes.restarts)
        self._commands.ask("disturb", start_ns=start_ns, lines=lines, restarts=restarts)

    def settle(self) -> None:
        """Have all lines as usual again."""
        self._commands.ask("settle")

    def record(self, folder: Path) -> None:
        """Record each switch from its next program on.

        Raises:
            BackendError: If a recording is under way, or the folder is not empty.
        """
        self._commands.ask("record", folder=str(folder.resolve()))

    def save(self) -> list[str]:
        """End the recording, and write a trace per switch; return their folders' names.

        Raises:
            BackendError: If nothing is recorded, or the disk is full.
        """
        names: list[str] = self._commands.ask("save")
        return names

    def counters(self) -> dict[str, list[dict[str, int]]]:
        """Return the counters of packets per switch and port; peaks are since the last call."""
        counters: dict[str, list[dict[str, int]]] = self._commands.ask("counters")
        return counters

    def forbidden(self) -> dict[str, dict[str, int]]:
        """Return the packets that programs have forbidden so far, per switch and by reason."""
        forbidden: dict[str, dict[str, int]] = self._commands.ask("forbidden")
        return forbidden

    @property
    def address(self) -> str:
        """The address where P4Runtime listens."""
        return str(self._commands.ask("status")["address"])

    def more_commands(self) -> DaemonCommands:
        """Return another connection, for a process that is about to be forked.

        Raises:
            BackendError: If the daemon has ended.
        """
        return DaemonCommands(self._control, self.process)

    def check(self) -> None:
        """Check that it has not ended.

        Raises:
            BackendError: If it has ended, with the last lines of its log.
        """
        self.process.check()

    def stop(self) -> None:
        """Stop it, and wait until it has ended."""
        self._commands.close()
        self.process.stop()
        self._control.unlink(missing_ok=True)
