"""Resources that the switches of one network share: its record, run directory and daemon."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from ringleaf.errors import BackendError
from ringleaf.networks.live.client import Daemon
from ringleaf.networks.live.engine import CPU_PORT, LinkEnd
from ringleaf.networks.live.line_changes import SwitchChanges
from ringleaf.networks.live.processes import Child, identify
from ringleaf.networks.mininet.send_buffers import give_room
from ringleaf.networks.mininet.state import Record, new_record, remove, runtime_dir

BMV2 = "simple_switch_grpc"
DAEMON_LOG = "daemon.log"
PRIORITY_QUEUES = 8  # without them, BMv2 drops packets of any priority but 0
READY_TIMEOUT_S = 60.0
POLL_S = 0.02
NAME_MAX = 15  # characters of an interface's name (IFNAMSIZ - 1)


class Runtime:
    """One live network's processes, and its record; close it in the end.

    Args:
        run_dir: Folder for logs; None for a temporary one, which stays only after a failure.
        seed: Seed of the embedded switches.
        cpu_port: Number of the switches' port to their controllers.
        captures: Whether BMv2 switches capture all packets, in the folder `self.captures`.
    """

    def __init__(
        self,
        run_dir: Path | None = None,
        *,
        seed: int = 1,
        cpu_port: int = CPU_PORT,
        captures: bool = False,
    ) -> None:
        self.record: Record = new_record()
        self._owner = os.getpid()
        self._seed = seed
        self._cpu_port = cpu_port
        self.run_dir = run_dir or self.record.make_folder()
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self.captures: Path | None = None
        if captures:
            self.captures = Path(tempfile.mkdtemp(prefix="bmv2-captures-", dir=self.run_dir))
        self._daemon: Daemon | None = None
        self._address = ""
        self._switches: dict[str, Child] = {}
        # The switches must also end with a script that never closes its network.
        atexit.register(self.close)

    @property
    def name(self) -> str:
        """Return the network's name, with which the interfaces of its switches begin."""
        return self.record.name

    def interface(self, node: str, port: int) -> str:
        """Return an interface name that no other network has."""
        return interface_name(self.name, node, port)

    def expect(self, interfaces: Sequence[str]) -> None:
        """Note that interfaces with names of this network are about to be made."""
        self.record.interfaces.update(dict.fromkeys(interfaces, 0))
        self.record.save()

    def adopt(self, interface: str) -> None:
        """Note an interface that Mininet has made and named, so that it goes with the network."""
        if interface not in self.record.interfaces:
            self.record.interfaces[interface] = socket.if_nametoindex(interface)

    def note(self, processes: dict[str, int]) -> None:
        """Note processes, by name."""
        for name, pid in processes.items():
            self.record.processes[name] = identify(pid)
        self.record.save()

    @property
    def daemon(self) -> Daemon:
        """The process of all embedded switches, started at its first use."""
        if self._daemon is None:
            control = runtime_dir() / f"{self.name}.sock"
            # They are on record before they exist, so that `ringleaf clean` finds them after a
            # crash.
            self.record.files += [str(control), str(control.with_suffix(".grpc"))]
            self.record.save()
            self._daemon = Daemon(
                control, self.run_dir / DAEMON_LOG, seed=self._seed, cpu_port=self._cpu_port
            )
            self._address = self._daemon.address
            self.note({"switch daemon": self._daemon.process.pid})
        return self._daemon

    def add_embedded(self, switches: dict[str, tuple[int, Sequence[LinkEnd]]]) -> None:
        """Add embedded switches: name -> device id, and lines by port from 1."""
        self.daemon.add(switches)
        for name, (device, _) in switches.items():
            self.record.switches[name] = f"{self._address}/{device}"
        self.record.save()

    def add_bmv2(self, switches: dict[str, tuple[int, Sequence[LinkEnd]]]) -> None:
        """Start a BMv2 per switch, without programs, and await them."""
        ports = _free_ports(len(switches))
        places = {}
        for thrift, (name, (device, lines)) in zip(ports, switches.items(), strict=True):
            places[name] = runtime_dir() / f"{self.name}-{name}.grpc"
            self.record.files.append(str(places[name]))
            self._switches[name] = self._start_bmv2(name, device, lines, thrift, places[name])
            self.record.processes[name] = self._switches[name].identity
            self.record.switches[name] = f"unix:{places[name]}/{device}"
        self.record.save()
        # All processes start at the same time, and only then is each awaited.
        for name, place in places.items():
            _await_socket(self._switches[name], place)
            self._give_room(self._switches[name])

    def _give_room(self, switch: Child) -> None:
        try:
            give_room(switch.identity[0])
        except OSError:
            switch.check()  # it has ended, and its log says why
            raise

    def remove(self, name: str) -> None:
        """End one switch."""
        self.record.switches.pop(name, None)
        if name in self._switches:
            self._switches.pop(name).stop()
        elif self._daemon is not None:
            self._daemon.remove(name)

    @property
    def children(self) -> list[Child]:
        """The switches' processes."""
        daemon = [] if self._daemon is None else [self._daemon.process]
        return [*daemon, *self._switches.values()]

    def check(self) -> None:
        """Raise BackendError if a switch's process has ended."""
        for child in self.children:
            child.check()

    def disturb(self, changes: SwitchChanges, start_ns: int) -> None:
        """Have embedded switches' lines change, and switches restart, in a run."""
        if changes.lines or changes.restarts:
            self.daemon.disturb(changes, start_ns)

    def settle(self) -> None:
        """Have all lines of embedded switches as usual again."""
        if self._daemon is not None:
            self._daemon.settle()

    def counters(self) -> dict[str, list[dict[str, int]]]:
        """Return the counters per embedded switch and port."""
        return {} if self._daemon is None else self._daemon.counters()

    def forbidden(self) -> dict[str, dict[str, int]]:
        """Return the packets that programs have forbidden, per embedded switch and by reason."""
        return {} if self._daemon is None else self._daemon.forbidden()

    def stop_switches(self) -> None:
        """End all switches."""
        if self._daemon is not None:
            self._daemon.stop()
            self._daemon = None
        for child in self._switches.values():
            child.stop()
        self._switches.clear()
        self.record.switches.clear()

    def close(self, *, keep_logs: bool = False) -> None:
        """End the switches, and remove all on record; it may be called more than once."""
        atexit.unregister(self.close)
        if os.getpid() != self._owner:
            return  # a fork of the owner
        self.stop_switches()
        if keep_logs:
            # `remove` takes only the folder that is on record.
            self.record.folder = ""
        remove(self.record)
        if self.captures is not None:
            shutil.rmtree(self.captures, ignore_errors=True)

    def _start_bmv2(
        self, name: str, device: int, lines: Sequence[LinkEnd], thrift: int, grpc: Path
    ) -> Child:
        interfaces = [
            option
            for port, line in enumerate(lines, start=1)
            for option in ("-i", f"{port}@{line.interface}")
        ]
        log = self.run_dir / f"{name}.log"
        captures = [] if self.captures is None else [f"--pcap={self.captures}"]
        command = [
            *(BMV2, "--no-p4", "--device-id", str(device), "--thrift-port", str(thrift)),
            *("--log-file", str(self.run_dir / name), "-L", "warn", *captures, *interfaces),
            *("--", "--grpc-server-addr", f"unix:{grpc}", "--cpu-port", str(self._cpu_port)),
            *("--priority-queues", str(PRIORITY_QUEUES)),
        ]
        return Child(name, command, log, urgent=True, umask=0o077)  # only this user may connect


def log_names(kind: str, switches: Iterable[str]) -> list[str]:
    """Return the names of the logs that a network's switches of a kind write.

    Args:
        kind: `embedded`, whose switches are one process, or `bmv2`.
        switches: Their names.
    """
    if kind == "embedded":
        return [DAEMON_LOG]
    return [f"{name}.{suffix}" for name in switches for suffix in ("log", "txt")]


def interface_name(network: str, node: str, port: int) -> str:
    """Return the name of an interface, which begins with the network's.

    That of a host, whose port is 0, ends in `eth0` as Mininet's do, if there is room: programs of
    hosts look for it.
    """
    usual = f"{network}-{node}-eth{port}"
    is_host = port == 0
    return usual if is_host and len(usual) <= NAME_MAX else f"{network}-{node}-{port}"


def _free_ports(count: int) -> list[int]:
    """Return different TCP ports that are free at the moment."""
    # The sockets stay open until all ports are known, so that none is given twice.
    probes = []
    try:
        for _ in range(count):
            probes.append(socket.socket())
            probes[-1].bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def _await_socket(child: Child, place: Path) -> None:
    """Wait until a process serves a socket of its own."""
    deadline_s = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline_s:
        child.check()
        with socket.socket(socket.AF_UNIX) as one:
            try:
                one.connect(str(place))
            except OSError:
                time.sleep(POLL_S)  # it is starting
            else:
                return
    raise BackendError(f"{child.name}: not ready, got {READY_TIMEOUT_S} s; see {child.log}")
