"""Hosts, switches and links of a topology as namespaces, veth pairs and processes."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import networkx as nx
from mininet.net import Mininet

from ringleaf.core.live_limits import check_discipline, check_pausing
from ringleaf.core.pausing import Pausing
from ringleaf.errors import BackendError, ConfigError, choose
from ringleaf.networks.live.client import DaemonCommands
from ringleaf.networks.live.engine import CPU_PORT, LinkEnd
from ringleaf.networks.live.line_changes import SwitchChanges
from ringleaf.networks.mininet.links import MTU_BYTES
from ringleaf.networks.mininet.preflight import check_machine
from ringleaf.networks.mininet.programming import Door, program_switches
from ringleaf.networks.mininet.recording import Recording
from ringleaf.networks.mininet.runtime import Runtime
from ringleaf.networks.mininet.shaping import netem_options
from ringleaf.networks.mininet.state import INTERFACES, clean_stale
from ringleaf.networks.mininet.switches import Bmv2Switch, EmbeddedSwitch, P4Switch
from ringleaf.networks.mininet.topo import GraphTopo, Programs
from ringleaf.networks.outcome import Forbidden, forbidden_by
from ringleaf.networks.traces.writer import check_folder
from ringleaf.topologies.graph import directions, link, neighbors, switches

SCALE = 1000
SWITCHES: dict[str, type[P4Switch]] = {"embedded": EmbeddedSwitch, "bmv2": Bmv2Switch}


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """Settings of switches and links.

    Args:
        switch: `embedded`, or `bmv2`.
        scale: Divisor of links' rates. Delays are not scaled.
        loss: Probability that a packet is lost on a link without one of its own; hosts apply it to
            their own packets.
        queue_bytes: Queue size of each switch port; likewise.
        discipline: Discipline of each switch port's queues, in the form that
            `switches/engine/disciplines.py` reads.
        pfc: Priority flow control; queues then have no size of their own. Embedded switches only.
        mtu_bytes: MTU of all interfaces, as IP counts: without the Ethernet header.
        seed: Seed of the switches' losses and random numbers.
        cpu_port: Number of the switches' port to their controllers.
        run_dir: Folder for logs; None for a temporary folder, which is removed after success.
        shapes_hosts: Whether hosts' own programs get their links' rates, delays and losses, too;
            agents pace themselves.
        captures: Whether BMv2 switches are started so that they can be recorded; embedded ones
            always can.
    """

    switch: str = "embedded"
    scale: int = SCALE
    loss: float = 0.0
    queue_bytes: int = 4 << 20
    discipline: str = "strict"
    pfc: Pausing | None = None
    mtu_bytes: int = MTU_BYTES
    seed: int = 1
    cpu_port: int = CPU_PORT
    run_dir: Path | None = None
    shapes_hosts: bool = False
    captures: bool = False

    def __post_init__(self) -> None:
        choose("mininet", "switch", self.switch, SWITCHES)
        check_discipline(self.switch, self.discipline, "mininet: ")
        check_pausing(self.switch, self.pfc, "mininet: ")
        if not 1 <= self.cpu_port <= CPU_PORT:
            raise ConfigError(f"CPU port: must be in [1, {CPU_PORT}], got {self.cpu_port}")


class MininetFabric:
    """A live network without agents: `with Fabric(graph, Settings(), program=...) as fabric:`.

    While it is open there is a namespace per host, with the addresses of
    `ringleaf.topologies.addresses` and permanent neighbours, and P4 switches that run `program`.
    gRPC is never used in this process, so that it may fork: a child of its own programs the
    switches. The switches end with the thread that has opened the fabric.

    Args:
        graph: A topology.
        settings: Settings of switches and links.
        program: BMv2 JSON of all switches, or of each by name.
        p4info: P4Info as text; by default the file beside the program.
        entities: Switch -> entities written to it, as `forwarding_entities` returns them.

    Raises:
        ConfigError: If something that is needed is missing; the message names all of it.
        BackendError: If a switch doesn't start, or refuses its program or entities.
    """

    def __init__(
        self,
        graph: nx.Graph[str],
        settings: LiveSettings,
        *,
        program: Programs,
        p4info: Path | None = None,
        entities: Mapping[str, Sequence[Any]],
    ) -> None:
        self.graph = graph
        self.settings = settings
        self._what = (program, p4info, entities)
        check_machine(bmv2=self._is_bmv2, netem_for=_netem_wanted(graph, settings))

    def __enter__(self) -> Self:
        clean_stale()
        self.net: Any = None
        self._recording: Recording | None = None
        settings = self.settings
        self._runtime = Runtime(
            settings.run_dir,
            seed=settings.seed,
            cpu_port=settings.cpu_port,
            captures=settings.captures and self._is_bmv2,
        )
        try:
            self._build()
        except BaseException:
            self._close(keep_logs=True)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close(keep_logs=isinstance(error, Exception))

    @property
    def _is_bmv2(self) -> bool:
        return self.settings.switch == "bmv2"

    @property
    def name(self) -> str:
        """The prefix of this network's interfaces and of its state file; unique on the machine."""
        return self._runtime.name

    @property
    def run_dir(self) -> Path:
        """The folder of the switches' logs."""
        return self._runtime.run_dir

    def namespace_pid(self, host: str) -> int:
        """Return a process in a host's network namespace, which is /proc/PID/ns/net."""
        return int(self.net[host].pid)

    def interface(self, host: str) -> str:
        """Return the name of a host's only interface in its namespace."""
        return self._runtime.interface(host, 0)

    def rate_bps(self, a: str, b: str) -> int:
        """Return the rate from `a` to `b` of the link that joins them, scaled."""
        return max(1, link(self.graph, a, b).rate_bps // self.settings.scale)

    def program(
        self,
        program: Programs,
        p4info: Path | None = None,
        *,
        entities: Mapping[str, Sequence[Any]],
    ) -> None:
        """Give all switches a program and entities, after emptying tables and zeroing registers.

        The same program again resets the switches, too. Packets on their way may be lost.

        Raises:
            BackendError: If a switch refuses it; the message names the switch.
        """
        self.check()
        for switch in self.net.switches:
            own = program[switch.name] if isinstance(program, Mapping) else program
            switch.run_program(own, p4info, entities.get(switch.name, ()))
        targets = filter(None, (switch.target() for switch in self.net.switches))
        program_switches(targets, self._runtime.children)

    def door(self) -> Door:
        """Return what writes further entities to running switches; see `programming.Door`."""
        return Door(filter(None, (switch.target() for switch in self.net.switches)))

    def record(self, folder: Path, *, mask: Sequence[str] = ()) -> None:
        """Record the packets that each switch receives and sends, from its next program on.

        Args:
            folder: Folder for the traces, a folder each; new or empty.
            mask: Fields of packets that depend on queues: as BMv2's queues are not known, its
                replays leave these fields out of the comparison.

        Raises:
            ConfigError: If the folder is not empty, or BMv2 switches lack `captures`.
            BackendError: If a recording is under way already.
        """
        check_folder(folder)
        lines = {switch.name: switch.lines for switch in self.net.switches}
        kind = SWITCHES[self.settings.switch]
        self._recording = kind.make_recording(self._runtime, lines, folder, mask=mask)

    def save_recording(self) -> None:
        """End the recording, if there is one, and write the traces.

        Raises:
            BackendError: If the disk is full, or the like.
        """
        recording, self._recording = self._recording, None
        if recording is not None:
            targets = {switch.name: switch.target() for switch in self.net.switches}
            recording.save(targets)

    def disturb(self, changes: SwitchChanges, start_ns: int) -> None:
        """Have embedded switches' lines change, and switches restart, in a run.

        Args:
            changes: What happens.
            start_ns: The run's start by the monotonic clock.
        """
        self._runtime.disturb(changes, start_ns)

    def commands(self) -> DaemonCommands:
        """Return commands to embedded switches, for a process that is about to be forked."""
        return self._runtime.daemon.more_commands()

    def settle(self) -> None:
        """Have all lines of switches as usual again."""
        self._runtime.settle()

    def counters(self) -> dict[str, list[dict[str, int]]]:
        """Return packets and bytes since the network started, per switch and port (from 1 on).

        All switches have `tx_packets`, `tx_bytes`, `rx_packets`, `rx_bytes` and `dropped` (as the
        port's queue was full); embedded ones have the daemon's counters, too, whose peaks are those
        since the last call.
        """
        embedded = self._runtime.counters()
        drops = {} if embedded else _discipline_drops()
        counters = {}
        for switch in self.net.switches:
            rows = []
            for number, line in enumerate(switch.lines):
                more = embedded[switch.name][number] if embedded else {}
                dropped = more.get("queue_drops", drops.get(line.interface, 0))
                counted = self._kernel_counters(switch.name, line.interface)
                rows.append({**more, **counted, "dropped": dropped})
            counters[switch.name] = rows
        return counters

    def forbidden(self) -> Forbidden:
        """Return the packets so far that embedded switches' programs have forbidden."""
        return forbidden_by(self._runtime.forbidden())

    def cpu_s(self) -> float:
        """Return the processor time in seconds that the switches' processes have used so far."""
        return sum(child.cpu_s() for child in self._runtime.children)

    def check(self) -> None:
        """Check that no switch and no host has ended.

        Raises:
            BackendError: If one has ended; the message names it.
        """
        self._runtime.check()
        for host in self.net.hosts:
            status = host.shell.poll()
            if status is not None:
                raise BackendError(f"{host.name}: its shell has ended, got status {status}")

    def cut_links(self) -> list[str]:
        """Return the links that are down, for people."""
        links = []
        for switch in self.net.switches:
            for port, line in enumerate(switch.lines, start=1):
                state = _state(line.interface)
                if state != "up":
                    peer = neighbors(self.graph, switch.name)[port]
                    what = f"link {switch.name} to {peer}: {line.interface} is {state}"
                    links.append(f"{what}; ip link set {line.interface} up")
        return links

    def watched(self) -> dict[int, str]:
        """Return descriptors that become readable when a switch's process ends -> its name."""
        return {child.descriptor: child.name for child in self._runtime.children}

    def _kernel_counters(self, switch: str, interface: str) -> dict[str, int]:
        folder = INTERFACES / interface / "statistics"
        names = ("tx_packets", "tx_bytes", "rx_packets", "rx_bytes")
        try:
            return {name: int((folder / name).read_text()) for name in names}
        except OSError as error:
            self.check()  # a namespace goes with its shell and its agents, and so do its interfaces
            raise BackendError(
                f"{switch}: an interface is gone, got {interface!r}; run it again"
            ) from error

    def _build(self) -> None:
        graph, settings, runtime = self.graph, self.settings, self._runtime
        program, p4info, entities = self._what
        runtime.expect(
            [runtime.interface(s, port) for s in switches(graph) for port in neighbors(graph, s)]
        )
        topo = GraphTopo(
            graph,
            scale=settings.scale,
            loss=settings.loss,
            queue_bytes=settings.queue_bytes,
            discipline=settings.discipline,
            pfc=str(settings.pfc or ""),
            mtu_bytes=settings.mtu_bytes,
            program=program,
            p4info=p4info,
            entities=entities,
            name_of=runtime.interface,
            switch_options={"runtime": runtime},
            shapes_hosts=settings.shapes_hosts,
        )
        self.net = Mininet(switch=SWITCHES[settings.switch], controller=None)
        self.net.topo = topo  # and not before, so that a build that fails half-way can be stopped
        self.net.build()
        runtime.note({node.name: node.pid for node in self.net.values()})
        self.net.start()

    def _close(self, *, keep_logs: bool) -> None:
        """Remove all; switches first, or they would see their interfaces go."""
        with contextlib.suppress(BackendError):  # traces that led to a failure are worth keeping
            self.save_recording()
        self._runtime.stop_switches()
        if self.net is not None:
            self.net.stop()
        self._runtime.close(keep_logs=keep_logs)


def _netem_wanted(graph: nx.Graph[str], settings: LiveSettings) -> str | None:
    """Return the netem options that some link needs, or None."""
    lines = (
        LinkEnd("", 1, sent.delay_ps, sent.loss_or(settings.loss))
        for _, _, sent in directions(graph)
    )
    return next(filter(None, map(netem_options, lines)), None)


def _state(interface: str) -> str:
    """Return an interface's RFC 2863 state; `lowerlayerdown` if its other end is down."""
    try:
        return (INTERFACES / interface / "operstate").read_text().strip()
    except OSError:
        return "gone"


def _discipline_drops() -> dict[str, int]:
    """Return the number of packets that queueing disciplines have dropped, by interface."""
    done = subprocess.run(
        ["tc", "-s", "-j", "qdisc", "show"], capture_output=True, text=True, check=True
    )
    return {row["dev"]: row.get("drops", 0) for row in json.loads(done.stdout) if row.get("root")}
