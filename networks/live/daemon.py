"""The switch daemon: `python -m ringleaf.networks.live.daemon --control PATH`.

It serves P4Runtime at one address, a device per switch, and takes commands as lines of JSON on a
Unix socket that only its own user can connect to: {"add": {"name", "device", "lines"}},
{"add_all": {"switches": [those of add, ...]}},
{"remove": {"name"}}, {"disturb": {"start_ns", "changes": [[name, port, change], ...]}},
{"hold": {"ports": [[name, port], ...]}}, {"release": {"rates": [[name, port, bit/s], ...]}},
{"queued": {"ports"}}, {"settle": {}}, {"record": {"folder"}}, {"save": {}}, {"counters": {}},
{"forbidden": {}}, {"status": {}}, {"stop": {}}. Each is answered by one line: {"result": ...} or
{"error": text}. When the socket answers, the daemon is ready.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socketserver
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ringleaf.core.interrupts import ended_within
from ringleaf.errors import ConfigError, RingleafError, choose
from ringleaf.networks.live.engine import CPU_PORT
from ringleaf.networks.live.fleet import Fleet, parse_line
from ringleaf.networks.live.line_changes import WHAT, LineChange, SwitchChanges
from ringleaf.networks.live.processes import hurry
from ringleaf.switches.server.limits import FLEET_LIMITS
from ringleaf.switches.server.server import P4RuntimeServer

LONGEST_END_S = 1.5  # from a signal on


class Commands:
    """The commands of a daemon, a public method each."""

    def __init__(self, fleet: Fleet, server: P4RuntimeServer) -> None:
        self._fleet = fleet
        self._server = server

    def add(self, name: str, device: int, lines: list[dict[str, Any]]) -> int:
        """Add a switch, and return its device id."""
        self._server.add(self._fleet.add(name, device, [parse_line(line) for line in lines]))
        return device

    def add_all(self, switches: list[dict[str, Any]]) -> None:
        """Add several switches at once, which takes a small part of the time of single `add`s."""
        known = [
            (each["name"], each["device"], [parse_line(line) for line in each["lines"]])
            for each in switches
        ]
        for device in self._fleet.add_all(known):
            self._server.add(device)

    def remove(self, name: str) -> None:
        """End a switch: its interfaces, and the device that the server offers."""
        self._server.remove(self._fleet.remove(name))

    def disturb(
        self,
        start_ns: int,
        lines: list[tuple[str, int, dict[str, Any]]],
        restarts: list[tuple[str, int]],
    ) -> None:
        """Have lines change, and switches restart, in a run from a time of the monotonic clock."""
        known = [(name, port, LineChange(**change)) for name, port, change in lines]
        for _, _, change in known:
            choose("disturb", "change", change.what, WHAT)
        self._fleet.disturb(SwitchChanges(known, restarts), start_ns)

    def hold(self, ports: list[tuple[str, int]]) -> None:
        """Let nothing leave by ports of switches; what is for them waits in their queues."""
        self._fleet.hold(ports)

    def release(self, rates: list[tuple[str, int, int]]) -> None:
        """Let ports of switches send again, at rates in bit/s."""
        self._fleet.release(rates)

    def queued(self, ports: list[tuple[str, int]]) -> int:
        """Return the number of packets that wait in ports' queues, or are on their lines."""
        return self._fleet.queued(ports)

    def settle(self) -> None:
        """Have all lines as usual again."""
        self._fleet.settle()

    def record(self, folder: str) -> None:
        """Record each switch from its next program on."""
        self._fleet.record(Path(folder))

    def save(self) -> list[str]:
        """End the recording, and write a trace per switch; return their folders' names."""
        return self._fleet.save()

    def counters(self) -> dict[str, list[dict[str, int]]]:
        """Return each switch's counters, a mapping per port, by the switch's name."""
        return self._fleet.counters()

    def forbidden(self) -> dict[str, dict[str, int]]:
        """Return each switch's packets that its program has forbidden, by reason."""
        return self._fleet.forbidden()

    def status(self) -> dict[str, Any]:
        """Return P4Runtime's address, the process, its processor time, and the devices."""
        return {
            "address": self._server.address,
            "process": os.getpid(),
            "cpu_s": time.process_time(),
            "devices": {member.name: member.number for member in self._fleet.devices},
        }

    def stop(self) -> None:
        """End the loop that moves packets, and with it the daemon."""
        self._fleet.stop()

    def answer(self, line: bytes) -> dict[str, Any]:
        """Carry out the command of a line; errors of the client are answers, too."""
        try:
            ((name, arguments),) = json.loads(line).items()
            if name.startswith("_") or name == "answer" or not hasattr(self, name):
                raise ConfigError(f"daemon: no such command, got {name!r}")
            return {"result": getattr(self, name)(**arguments)}
        except (RingleafError, LookupError, ValueError, TypeError, AttributeError) as exc:
            return {"error": str(exc)}


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        """Answer each line of a connection, one after the other."""
        for line in self.rfile:
            answer = self.server.commands.answer(line)  # type: ignore[attr-defined]
            self.wfile.write(json.dumps(answer).encode() + b"\n")
            self.wfile.flush()


class _ControlServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, path: Path, commands: Commands) -> None:
        self.commands = commands
        before = os.umask(0o077)  # only this user may connect
        try:
            super().__init__(str(path), _Connection)
        finally:
            os.umask(before)


def serve(control: Path, address: str, *, seed: int, cpu_port: int) -> None:
    """Serve until told to stop, by command or signal."""
    hurry()
    fleet = Fleet(seed=seed, cpu_port=cpu_port)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: fleet.stop())
    # A daemon that was killed has left its sockets, at whose paths no other can listen.
    control.unlink(missing_ok=True)
    socket_file = Path(address.removeprefix("unix:")) if address.startswith("unix:") else None
    if socket_file is not None:
        socket_file.unlink(missing_ok=True)
    with (
        # The control socket is opened last: once it answers, all else is ready.
        ended_within(LONGEST_END_S),
        P4RuntimeServer([], address, poll_s=None, limits=FLEET_LIMITS) as server,
        _ControlServer(control, Commands(fleet, server)) as commands,
    ):
        threading.Thread(target=commands.serve_forever, daemon=True).start()
        try:
            fleet.run()
        finally:
            commands.shutdown()
            control.unlink(missing_ok=True)
            if socket_file is not None:
                socket_file.unlink(missing_ok=True)
    fleet.close()


def main() -> int:
    """Run the daemon; return the exit status."""
    # Not by typer, which makes a start 3 % slower (45 ms of a processor), on every live network.
    parser = argparse.ArgumentParser(prog="ringleaf daemon", description=__doc__)
    parser.add_argument("--control", type=Path, required=True, help="Unix socket for commands")
    parser.add_argument("--grpc", default="127.0.0.1:0", help="P4Runtime: HOST:PORT, unix:PATH")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpu-port", type=int, default=CPU_PORT, help="of each switch")
    options = parser.parse_args()
    try:
        serve(options.control, options.grpc, seed=options.seed, cpu_port=options.cpu_port)
    except (RingleafError, OSError) as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
