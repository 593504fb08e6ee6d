"""The options of a virtual network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringleaf.core.disciplines import parse_discipline
from ringleaf.core.faults import NetworkFault, check_recorded
from ringleaf.core.marking import NEVER, Marking
from ringleaf.core.pausing import Pausing
from ringleaf.core.shipped import P4_BUILD
from ringleaf.errors import ConfigError
from ringleaf.hosts.congestion.registry import find_controller
from ringleaf.ina.allocation import OWN
from ringleaf.ina.systems import System
from ringleaf.topologies.switching.plan import Planned
from ringleaf.topologies.switching.settings import CircuitSettings

MAX_MTU = 9000  # payload of a jumbo frame

ADAPTIVE_PROGRAM = "ugal"
"""The program of switches that choose between ways."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """A P4 program that a switch runs in place of the network's own.

    Attributes:
        program: BMv2 JSON; P4Info lies beside it.
        entities: The P4Runtime entities to write, as finsy's objects; None: the forwarding entries
            of `networks/forwarding.py`, which the program must have tables for.
    """

    program: Path
    entities: Sequence[Any] | None = None


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """The options of links, queues and hosts; sizes in bytes, times in picoseconds.

    Raises:
        ConfigError: If a value is out of range.
    """

    mtu_bytes: int = 4096  # payload of a full rc packet
    window: int | None = None  # packets in flight per connection; None: twice the path's capacity
    ecmp: bool = False  # split flows by hash; False: each host is reached by one path
    queue_bytes: int = 4 << 20  # per switch port
    discipline: str = "strict"  # of ports' queues, as `switches/engine/disciplines.py` reads it
    cc: str = "fixed"  # a controller of `hosts/congestion`
    ecn: Marking = NEVER  # when switches mark packets
    trim_bytes: int | None = None  # for headers of packets that a queue cuts; None: it drops them
    pfc: Pausing | None = None  # when switches pause those that send to them
    faults: Sequence[NetworkFault] = ()  # of every run
    reroute_ps: int | None = None  # until switches have routes around links that are down
    repath: int | None = None  # probes in vain after which connections take other paths, by ECMP
    circuits: CircuitSettings | None = None  # who sets circuits up, and in what times
    planned: Planned = field(default_factory=Planned)  # of what is played, before circuits are up
    loss: float = 0.0  # probabilities, per packet and link
    duplicate: float = 0.0
    reorder: float = 0.0
    jitter_ps: int = 5_000_000  # the most by which a reordered or duplicated packet is late
    system: System | None = None  # in-network aggregation
    lanes: int = 256
    slots: int | None = None  # per worker; None: twice the path's capacity
    switch_entries: int | None = None  # of all jobs together; None: all that there are
    program: str = "forward"  # of switches that aggregate nothing
    programs: Path = P4_BUILD  # folder of the switches' programs, as BMv2 JSON
    assigned: Mapping[str, Assigned] = field(default_factory=dict)  # programs by switch's name
    ina_cc: str | None = None  # of the system's workers, if it has a choice; None: its own
    allocator: str = OWN  # divides switches' memory anew while jobs run (`ina/allocation.py`)
    trees: int | None = None  # of the system's jobs, if it may have several; None: its own choice
    servers: int = 0  # of the hosts, the last ones
    bins: int = 512  # of the link utilisation series, at most
    watch_queues: bool = False  # note queues' contents over time, too
    watch_memory: bool = False  # note jobs' use of switches' memory over time, too
    watch_messages: int = 0  # note so many ends of messages, of a single collective
    cross_traffic: Path | None = None  # a capture, whose packets hosts send besides
    capture: Path | None = None  # folder for a capture
    record: Path | None = None  # folder for traces, one per switch
    ahead_bytes: int | None = None  # of receives posted ahead per peer; None: two windows
    has_data: bool = True  # False: messages have sizes only, and nothing is added up or copied
    message_overhead_ps: int = 0  # of a host's processor, per message: LogGP's o
    threads: int = 1  # that may handle events

    @property
    def switch_program(self) -> str:
        """The program of switches that aggregate nothing: as the congestion control needs it."""
        return find_controller(self.cc).program or self.program

    @property
    def quiet_ps(self) -> int:
        """The time for which nothing may be answered although nothing is lost.

        Hosts that pause while circuits change must not take their silence for a loss.
        """
        return self.circuits.quiet_ps if self.circuits else 0

    def __post_init__(self) -> None:
        parse_discipline(self.discipline)
        self.check_program(self.system is not None)
        self._check_pausing()
        if self.record is not None:
            check_recorded(self.faults, reroutes=self.reroute_ps is not None)
        self._check_circuits()
        if self.repath is not None and not self.ecmp:
            raise ConfigError(f"options: repath leads elsewhere by ecmp alone, got {self.repath}")
        self._check_numbers()

    def _check_numbers(self) -> None:
        """Check that numbers are in their ranges."""
        for name in ("loss", "duplicate", "reorder"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"options: {name} must be in [0, 1), got {getattr(self, name)}")
        positive = (
            "queue_bytes",
            "window",
            "slots",
            "switch_entries",
            "trees",
            "ahead_bytes",
            "trim_bytes",
            "repath",
            "threads",
        )
        for name in positive:
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ConfigError(f"options: {name} must be >= 1, got {getattr(self, name)}")
        if not 1 <= self.mtu_bytes <= MAX_MTU:
            raise ConfigError(f"options: mtu must be 1 to {MAX_MTU}, got {self.mtu_bytes}")
        if self.bins < 2 or self.bins % 2:
            raise ConfigError(f"options: bins must be even, got {self.bins}")
        for name in ("jitter_ps", "message_overhead_ps"):
            if getattr(self, name) < 0:
                raise ConfigError(f"options: {name} must be >= 0, got {getattr(self, name)}")

    def _check_circuits(self) -> None:
        """Check that nothing else is asked for that circuits have no part in."""
        if self.circuits is None:
            return
        if self.record is not None:
            raise ConfigError(
                "circuits: traces have a switch's routes at the beginning, got record; leave out "
                "either of them"
            )
        if self.pfc is not None:
            raise ConfigError(
                "circuits: pause frames go back by the link that they are for, which may be dark, "
                f"got pfc {self.pfc}; leave out either of them"
            )
        if self.reroute_ps is not None:
            raise ConfigError(
                "circuits: their controller sets routes, got reroute; leave out either of them"
            )

    def _check_pausing(self) -> None:
        """Check that nothing else is asked for that priority flow control has no part in."""
        if self.pfc is not None and self.record is not None:
            raise ConfigError(
                "pfc: traces can't replay pauses yet, got record; leave out either of them"
            )
        if self.trim_bytes is not None and self.record is not None:
            raise ConfigError(
                "trim: traces can't replay it yet, got record; leave out either of them"
            )
        if self.trim_bytes is not None and self.pfc is not None:
            raise ConfigError(
                f"trim: with pfc no queue is full, got {self.trim_bytes} and pfc {self.pfc}; "
                "leave out either of them"
            )

    def check_data(self) -> None:
        """Check that packets have what switches add up.

        Raises:
            ConfigError: If they have no data.
        """
        if self.system is not None and not self.has_data:
            raise ConfigError("options: packets must have data where switches add it up, got none")

    def check_program(self, aggregates: bool, *, adaptive: bool = False) -> None:
        """Check that switches can run the program that congestion control or routes need.

        Args:
            aggregates: Whether they run the program of a system that aggregates.
            adaptive: Whether the topology's switches choose between ways.

        Raises:
            ConfigError: If they run another.
        """
        runs = "one that aggregates" if aggregates else self.switch_program
        if adaptive and runs != ADAPTIVE_PROGRAM:
            raise ConfigError(
                f"options: adaptive routes need switches that run {ADAPTIVE_PROGRAM}, got {runs}"
            )
        program = find_controller(self.cc).program
        if not program:
            return
        other = "one that aggregates" if aggregates else self.program
        if other not in (program, "forward"):
            raise ConfigError(f"options: {self.cc} needs switches that run {program}, got {other}")
