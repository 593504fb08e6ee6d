"""The options of all experiments: the network, its simulation, and the files that are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationInfo, model_validator

from ringleaf.core.faults import SLOW, NetworkFault, check_recorded
from ringleaf.core.live_limits import (
    check_discipline,
    check_faults,
    check_live,
    check_pausing,
    check_queues,
    check_ways,
)
from ringleaf.core.marking import NEVER, Marking
from ringleaf.core.sequence_numbers import MOST_WINDOW
from ringleaf.core.units import exact_rate, format_count
from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.programs.names import check_control, check_programs, is_path
from ringleaf.experiments.spec import kinds
from ringleaf.experiments.spec.kinds import ValueReader, label, option
from ringleaf.experiments.spec.renamed import choose_option
from ringleaf.hosts.congestion.registry import CONTROLLERS
from ringleaf.ina.systems import FORWARD, MOST_TREES
from ringleaf.ina.window_registry import WINDOWS
from ringleaf.networks.flow.scope import check_flow
from ringleaf.topologies.k_shortest import MOST_PATHS, USUAL_PATHS
from ringleaf.topologies.registry import TOPOLOGIES

MAX_HOSTS = 4096
"""The most hosts: more can be drawn and routed, but not simulated in any useful time."""

LANES = (64, 256)
"""The values per SwitchML packet: one P4 program is built for each."""

MTUS = (256, 512, 1024, 2048, 4096)
"""The payload bytes per packet that RoCEv2 allows (InfiniBand specification, path MTU)."""

KSP = "ksp"
SOLVED = GRID, GOAT = ("grid", "goat")
"""Ways of one job's gradients to its parameter servers, solved for the topology."""
VALIANT, UGAL, DCELL = ("valiant", "ugal", "dcell")
ROUTES = ("dealt", "ecmp", KSP, VALIANT, UGAL, DCELL, *SOLVED)

FIXED = "fixed"
"""The name for no congestion control, which is known to need no marks without being loaded."""

PROGRAMS = (FORWARD, "tensorexpress")

VIRTUAL = "virtual"
FLOW = "flow"
MININET = "mininet"
NETWORKS = (VIRTUAL, FLOW, MININET)
SWITCHES = ("embedded", "bmv2")

LIVE_SCALES = {"embedded": 1000, "bmv2": 100_000}
"""The default factor by which links are slower on a live network than asked for.

Twenty BMv2s on two processors forward some 15 thousand packets/s in all, and fewer of SwitchML's.
"""


LOOKS = ("figures", "column", "wide")
"""Options on how results look, which no file of results has."""

WHERE = "where messages begin"
"""The key of messages' beginning in a validator's context; other keys are fields, with options."""


class Checked(BaseModel):
    """A model read from options: every value is checked, every default filled in."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    takes: ClassVar[Sequence[str]] = ()
    """The options that a command takes, in order, if not all; the others have their defaults."""

    defaults: ClassVar[Mapping[str, str]] = {}
    """The defaults, as typed, of inherited fields that have another here."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        for field, default in cls.__dict__.get("defaults", {}).items():
            cls.model_fields[field].default = default

    @classmethod
    @cache
    def names(cls) -> dict[str, str]:
        """Return each field's name as an option: `topo`, its own, then inherited ones."""
        own = cls.__annotations__
        order = sorted(cls.model_fields, key=lambda field: (field != "topo", field not in own))
        names = {field: cls.model_fields[field].alias or field for field in order}
        fields = {name: field for field, name in names.items()}
        return {fields[name]: name for name in cls.takes} or names

    @classmethod
    def read(cls, options: Mapping[str, Any], where: str = "") -> Self:
        """Check options, and fill in the rest.

        Args:
            options: Values by option, as typed or as YAML has them.
            where: The beginning of messages, before the option: `spec jobs.yaml: `.

        Raises:
            ConfigError: If one is wrong; the message names it, its value and the valid ones.
        """
        names = cls.names()
        for name in options:
            choose_option(where.rstrip(": ") or "options", str(name), names.values())
        labels = {field: f"{where}{name}" for field, name in names.items()} | {WHERE: where}
        return cls.model_validate(dict(options), context=labels)


def _program(text: str, where: str) -> str:
    return (
        check_programs(text, where)
        if is_path(text)
        else choose(where, "program", text, PROGRAMS, "*.json, *.p4")
    )


class NetworkSpec(Checked):
    """The network of an experiment; times in picoseconds, rates in bit/s."""

    networks: ClassVar[Sequence[str]] = (VIRTUAL, MININET)
    """The networks that can carry the workload."""

    virtual: ClassVar[str] = f"net={VIRTUAL}"
    """The way to have virtual time instead, for messages."""

    topo: kinds.Topology = option(
        "fattree",
        f"Topology: {', '.join(TOPOLOGIES)}; with parameters: fattree,k=8; "
        "hosts may be machines: fattree,node=8xh100; or a file: net.graphml",
        flags="--topo",
    )
    hosts: Annotated[int | None, kinds.whole(2, MAX_HOSTS, empty=True)] = option(
        "",
        "Number of hosts, servers included; default: all of the topology",
        flags="--hosts",
    )
    rate_bps: kinds.Rate = option(
        "100G", "Rate of every link in bit/s: 100G, 25Gbps", flags="--rate", name="rate"
    )
    delay_ps: kinds.Delay = option(
        "1us", "Delay of every link: 1us, 500ns", flags="--delay", name="delay"
    )
    switch_delay_ps: kinds.Delay = option(
        "0",
        "Delay of each packet in every switch: 400ns (docs/delays.md has published figures)",
        flags="--switch-delay",
        name="switch_delay",
    )
    host_delay_ps: kinds.Delay = option(
        "0",
        "Delay of each packet in a host, between agent and line, each way: 600ns",
        flags="--host-delay",
        name="host_delay",
    )
    message_overhead_ps: kinds.Delay = option(
        "0",
        "Processor time of a host for each message it sends or receives (LogGP's o): 500ns",
        flags="--message-overhead",
        name="message_overhead",
    )
    inject_bps: kinds.AnyRate = option(
        "",
        "Rate at which a host can inject, over all ports of its server: 100G. The links' rate "
        "follows from it; default: RATE by each port",
        flags="--inject",
        name="inject",
    )
    loss: kinds.Probability = option(
        "0", "Share of packets lost on every link: 0.1%, 0.001", flags="--loss"
    )
    duplicate: kinds.Probability = option(
        "0", "Share of packets duplicated on every link", flags="--duplicate", variable="DUP"
    )
    reorder: kinds.Probability = option(
        "0", "Share of packets that arrive late, on every link", flags="--reorder"
    )
    faults: kinds.Faults = option(
        "",
        "Links or nodes that fail in each run: 's0-s8 down at 50us for 200us', 'h3 down at 1ms', "
        "'s0-s8 loss 10%', 's0-s8 corrupt 1%', 's0-s8 rate 10G at 20us', '... for 5us every 20us "
        "times 8'; of workloads also hosts that compute slowly: 'h3 slow 2 at 1ms'; several are "
        "separated by commas (docs/faults.md)",
        flags="--faults",
    )
    reroute_ps: kinds.AnyTime = option(
        "",
        "Time from when a link between switches goes down, or comes back, until switches have "
        "routes, and aggregation trees, that know of it: 100us; default: they stay",
        flags="--reroute",
        name="reroute",
    )
    repath: kinds.AnyCount = option(
        "",
        "Probes without an answer after which a host gives a connection another UDP source port, "
        "so that ECMP leads it elsewhere: 1; needs routes=ecmp; default: it never does",
        flags="--repath",
    )
    circuits: kinds.AnyCircuits = option(
        "",
        "Controller that sets up the circuits of topo=circuits, and its times: "
        "helios,period=300us,dead=25us (until new circuits are up),drain=50us (at most, until old "
        "ones are empty),senders=pause; default: all circuits are there (docs/circuits.md)",
        flags="--circuits",
    )
    seed: Annotated[int, kinds.whole(0)] = option(
        "1", "Seed of the data, the losses and everything else that is random", flags="--seed"
    )
    lanes: Annotated[int, kinds.one_number_of(LANES)] = option(
        "256", "Values per aggregated packet: 64 or 256", flags="--lanes"
    )
    mtu_bytes: Annotated[int, kinds.one_number_of(MTUS)] = option(
        "4096",
        "Payload bytes per packet: 256, 512, 1024, 2048, 4096",
        flags="--mtu",
        name="mtu",
    )
    window: Annotated[int | None, kinds.whole(1, MOST_WINDOW, empty=True)] = option(
        "",
        "Packets in flight per connection; default: as many as the links need",
        flags="--window",
    )
    routes: Annotated[str, kinds.one_with_number("way", ROUTES, KSP, MOST_PATHS)] = option(
        "dealt",
        "Choice among paths. dealt: one of the shortest for each destination host; ecmp: of the "
        f"shortest by flow hash; {KSP}:8: of the 8 shortest, which may be longer, for each pair; "
        f"{VALIANT}: by way of a random switch, or group of a dragonfly; {UGAL}: dealt, or "
        f"{VALIANT}'s where the first switch's queues are shorter; {DCELL}: DCellRouting; "
        "grid, goat: dealt, but workers' gradients for servers go where these papers' programs "
        "have them added up (docs/aggregation.md)",
        flags="--routes",
    )
    adds_bps: kinds.AnyRate = option(
        "",
        "Rate at which a switch can add up, which ROUTES=grid keeps to: 9G; default: any",
        flags="--adds",
        name="adds",
    )
    detours: kinds.Ways = option(
        "",
        "Paths for the packets of one host to another, in place of the usual ones: h3-s1-h8; "
        "several are separated by commas. ATP aggregates at the first switch named",
        flags="--detours",
    )
    cc: Annotated[str, kinds.one_of("congestion controller", CONTROLLERS, shown=False)] = option(
        FIXED,
        "Congestion control of the hosts: fixed (window), dctcp, dcqcn, swift, timely, nscc, "
        "pfabric; all are in docs/congestion.md",
        flags="--cc",
    )
    ina_cc: Annotated[str | None, kinds.one_of("window", WINDOWS, shown=False, empty=True)] = (
        option(
            "",
            "Congestion control of the workers of ATP, A2TP and PANAMA: a2tp, a2tp-ns3, aimd, "
            "dctcp; default: aimd for ATP, a2tp for A2TP, dctcp for PANAMA",
            flags="--ina-cc",
        )
    )
    trees: Annotated[int | None, kinds.whole(1, MOST_TREES, empty=True)] = option(
        "",
        "Trees of a PANAMA job, which blocks are dealt to in turn; default: one for each switch "
        "that is as good a root as any",
        flags="--trees",
    )
    marking: kinds.AnyMarking = option(
        "",
        "Queue depth in packets from which on packets are marked (DCTCP's K), or two depths and "
        "the probability that grows between them (RED): 5:200:1%. 0: never; default: as CC needs",
        flags="--ecn",
        name="ecn",
    )
    queue_bytes: kinds.AnyRoom = option(
        "", "Size of each port's queue in bytes: 1MiB", flags="--queue", name="queue"
    )
    trim_bytes: kinds.AnyRoom = option(
        "",
        "Room of each port for headers of packets that found its queue full, and whose payload is "
        "cut off (packet trimming): 64K; default: they are dropped",
        flags="--trim",
        name="trim",
    )
    pfc: kinds.AnyPausing = option(
        "",
        "Priority flow control: bytes of a class from one port above which a switch has the sender "
        "paused, and at which it goes on: 64K:48K; and the headroom above, by default as much as "
        "each link needs: 64K:48K:100K. Ports' queues then have no size of their own. off: packets "
        "are dropped",
        flags="--pfc",
    )
    discipline: kinds.Discipline = option(
        "strict",
        "Discipline of each port's 8 queues: strict, wrr or drr; weights: drr:1,1,1,1,2,2,4,4",
        flags="--discipline",
    )
    program: Annotated[str, ValueReader(_program, renamed=kinds.files_here)] = option(
        "forward",
        "P4 program of switches that do not aggregate: forward, or tensorexpress (queues by job); "
        "or your own of all switches: my.p4, my.json; or of some: s0=my.p4,s3=other.json",
        flags="--program",
    )
    control: Annotated[str, ValueReader(check_control, renamed=kinds.files_here)] = option(
        "",
        "Entries of your program's tables: a file of Python, P4Runtime text, JSON or commands, or "
        "a folder with one for each switch; default: routes, as for forward.p4",
        flags="--control",
    )
    threads: kinds.AnyCount = option(
        "",
        "Threads that simulate the network; results are the same. Default: 1, or as many as "
        "there are cores if that takes more than a second",
        flags="--threads",
    )
    net: Annotated[str, kinds.one_of("network", NETWORKS)] = option(
        VIRTUAL,
        "Network: virtual (every packet, simulated time), flow (messages share links by max-min "
        "fair rates; docs/flow.md) or mininet (wall-clock time; root)",
        flags="--net",
    )
    switch: Annotated[str, kinds.one_of("kind", SWITCHES)] = option(
        "embedded", "Kind of switch on mininet: embedded or bmv2", flags="--switch"
    )
    slowdown: kinds.AnyCount = option(
        "",
        "Divisor of the links' rates; default: 1, on mininet "
        f"{LIVE_SCALES['embedded']}, with bmv2 {LIVE_SCALES['bmv2']}",
        flags="--scale",
        name="scale",
    )
    stall_ps: kinds.SomeTime = option(
        "30s",
        "Time without progress after which a run on mininet is given up",
        flags="--stall",
        name="stall",
    )
    cross_traffic: kinds.AnyPath = option(
        "",
        "Capture (pcap, pcapng) whose packets hosts send besides, once, at its times and sizes",
        flags="--cross-traffic",
    )
    pcap: kinds.Yes = option(
        "no", "Write packets of all ports to one pcapng, an interface per port", flags="--pcap"
    )
    record: kinds.AnyPath = option(
        "",
        "Folder for traces, for replay: the packets that each switch received and sent",
        flags="--record",
    )
    figures: kinds.Yes = option(
        "yes", "Draw figures, yes or no: PNG, PDF, and in the report", flags="--figures"
    )
    column: kinds.AnyColumn = option(
        "",
        "Width of figures, for a column of a paper: 3.3in, 84mm; text stays as large. Default: "
        "what suits each figure",
        flags="--column",
    )
    wide: kinds.Yes = option(
        "no",
        "Print all columns of the table; default: those that fit the terminal, or 100 letters",
        flags="--wide",
    )
    folder: kinds.AnyPath = option(
        "", "Folder for results; default: runs/NAME", flags="--out -o", name="out"
    )

    @property
    def ecn(self) -> Marking:
        """The switches' marking of packets: as asked for, or as the congestion control needs."""
        if self.marking is not None:
            return self.marking
        if self.cc == FIXED:
            return NEVER
        return CONTROLLERS[self.cc].marking_at(self.rate_bps, self.mtu_bytes)

    @property
    def shortest_paths(self) -> int | None:
        """The number of shortest paths that pairs of hosts are hashed to; None: other routes."""
        name, _, number = self.routes.partition(":")
        return int(number or USUAL_PATHS) if name == KSP else None

    @property
    def plain_program(self) -> str:
        """The name of our program of switches that do not aggregate."""
        if self.routes == UGAL:
            return UGAL
        return FORWARD if is_path(self.program) else self.program

    @property
    def scale(self) -> int:
        """The factor by which links are slower than their rate says."""
        if self.slowdown is not None:
            return self.slowdown
        return LIVE_SCALES[self.switch] if self.is_live else 1

    @property
    def is_live(self) -> bool:
        """Whether the network runs by the wall clock."""
        return self.net == MININET

    @property
    def out(self) -> Path:
        """The run directory."""
        return self.folder or Path("runs")

    @model_validator(mode="after")
    def _check_network(self, info: ValidationInfo) -> Self:
        where = label(info, WHERE)
        if self.inject_bps is not None and "rate_bps" in self.model_fields_set:
            got = exact_rate(self.inject_bps)
            raise ConfigError(f"{where}inject: can't go with rate, got {got}; give either")
        if self.control and not is_path(self.program):
            raise ConfigError(
                f"{where}control: is for a program of yours, got {self.control!r} and program "
                f"{self.program!r}"
            )
        self._check_gradients(where)
        self._check_traces(where)
        self._check_pausing(where)
        if self.queue_bytes is not None and self.queue_bytes < self.mtu_bytes:
            raise ConfigError(
                f"{where}queue: must hold a packet of mtu {self.mtu_bytes}, "
                f"got {format_count(self.queue_bytes, 'byte')}; like 64K"
            )
        if self.net not in self.networks:
            raise ConfigError(
                f"{where}net: can't carry this workload, got {self.net!r}; "
                f"take net={' or '.join(self.networks)}"
            )
        values = {name: getattr(self, name) for name in type(self).model_fields}
        if self.is_live:
            self._check_switch(where)
            check_live(values, where, self.virtual)
        elif self.switch != SWITCHES[0]:
            raise ConfigError(f"switch: needs net={MININET}, got {self.switch!r}")
        slow = next((str(each) for each in self.network_faults if each.kind == SLOW), None)
        if slow is not None:
            raise ConfigError(
                f"{where}faults: slow is for workloads that compute, got {slow!r}; take "
                "ringleaf workload run"
            )
        if self.net == FLOW:
            check_flow(values | {"faults": self.network_faults}, where)
        self._check_circuits(where)
        self._check_repath(where)
        self._check_adaptive(where)
        return self

    @property
    def network_faults(self) -> tuple[NetworkFault, ...]:
        """The faults that are the network's: all, but for those that a workload sees to."""
        return self.faults

    def _check_switch(self, where: str) -> None:
        """Check that live switches of this kind have what is asked for."""
        check_discipline(self.switch, self.discipline, where)
        check_pausing(self.switch, self.pfc, where, captured=self.pcap)
        check_faults(self.switch, self.faults, where)
        if self.circuits is not None:
            self.circuits.check_live(self.switch, where, captured=self.pcap)
        if self.cc != FIXED:
            check_queues(self.switch, self.cc, where, reads=CONTROLLERS[self.cc].reads_queues)

    def _check_traces(self, where: str) -> None:
        """Check that traces can hold what faults change."""
        if self.record is not None:
            reroutes = self.reroute_ps is not None
            check_recorded(self.network_faults, reroutes=reroutes, where=where)

    def _check_pausing(self, where: str) -> None:
        """Check that all that is asked for beside PFC has a part in it."""
        for name in ("queue_bytes", "trim_bytes", "record") if self.pfc is not None else ():
            if getattr(self, name) is not None:
                got = str(getattr(self, name))
                raise ConfigError(
                    f"{where}pfc: can't go with {name.removesuffix('_bytes')}, got {got}; "
                    "give either"
                )

    def _check_circuits(self, where: str) -> None:
        """Check that nothing else is asked for that a controller of circuits has no part in."""
        if self.circuits is None:
            return
        got = f"got {self.circuits.name}"
        if self.topo.partition(",")[0].strip() != "circuits":
            raise ConfigError(
                f"{where}circuits: is for topo=circuits, {got} and topo={self.topo!r}"
            )
        if self.routes not in ("dealt", "ecmp") or self.detours:
            raise ConfigError(
                f"{where}circuits: its controller sets routes, {got} and "
                f"{f'routes={self.routes}' if not self.detours else 'detours'}; leave out either "
                "of them"
            )
        for name in ("reroute_ps", "record", "pfc"):
            if getattr(self, name) is not None:
                option = name.removesuffix("_ps")
                raise ConfigError(
                    f"{where}circuits: can't go with {option}, {got}; leave out either of them"
                )

    def _check_repath(self, where: str) -> None:
        """Check that another source port may lead elsewhere."""
        if self.repath is not None and self.routes != "ecmp":
            raise ConfigError(
                f"{where}repath: other source ports lead elsewhere by ECMP alone, got repath="
                f"{self.repath} and routes={self.routes}; take routes=ecmp"
            )

    def _check_adaptive(self, where: str) -> None:
        """Check that switches can run the program that routes by queues, and see these."""
        if self.routes != UGAL:
            return
        others = {
            "program": "" if self.program == FORWARD else self.program,
            "cc": self.cc if self.cc != FIXED and CONTROLLERS[self.cc].program else "",
            "detours": ", ".join("-".join(way) for way in self.detours),
        }
        for name, value in others.items():
            if value:
                raise ConfigError(
                    f"{where}{name}: can't go with routes={UGAL}, which has a program and detours "
                    f"of its own, got {value!r}; leave out either of them"
                )
        if self.net == FLOW:
            raise ConfigError(
                f"{where}routes: no fluid model covers ways that depend on queues, got {UGAL!r}; "
                f"take net={VIRTUAL}"
            )
        if self.is_live:
            check_ways(self.switch, self.routes, where)

    def _check_gradients(self, where: str) -> None:
        """Check that routes that are solved for a job are for one job with servers."""
        if self.routes in SOLVED:
            servers = getattr(self, "servers", 0)
            if hasattr(self, "jobs") or not servers:
                raise ConfigError(
                    f"{where}routes: {self.routes} is for one collective with parameter servers, "
                    f"got servers={servers}{' and jobs' if hasattr(self, 'jobs') else ''}; "
                    "take algo=atp, servers=1"
                )
        elif self.adds_bps is not None:
            got = exact_rate(self.adds_bps)
            raise ConfigError(f"{where}adds: is for routes=grid, got {got} and {self.routes!r}")

    def plain(self) -> dict[str, Any]:
        """Return the spec as for JSON, with resolved values in place of typed ones."""
        typed = {"marking", "slowdown", "folder", *LOOKS}
        values = self.model_dump(exclude=typed) | {
            "ecn": asdict(self.ecn),
            "pfc": asdict(self.pfc) if self.pfc else None,
            "scale": self.scale,
            "faults": [str(each) for each in self.faults],
            "circuits": str(self.circuits) if self.circuits else None,
            "record": str(self.record) if self.record else None,
            "cross_traffic": str(self.cross_traffic) if self.cross_traffic else None,
            "out": str(self.out),
        }
        return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
