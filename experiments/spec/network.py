"""The options of all experiments: the network, its simulation, and the files that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import ValidationInfo, model_validator

from ringleaf.core.faults import NetworkFault
from ringleaf.core.marking import NEVER, Marking
from ringleaf.core.sequence_numbers import MOST_WINDOW
from ringleaf.errors import choose
from ringleaf.experiments.programs.names import check_control, check_programs, is_path
from ringleaf.experiments.spec import kinds
from ringleaf.experiments.spec.checked import WHERE, Checked
from ringleaf.experiments.spec.choices import (
    DCELL,
    FIXED,
    KSP,
    LANES,
    LIVE_SCALES,
    MAX_HOSTS,
    MININET,
    MTUS,
    NETWORKS,
    PROGRAMS,
    ROUTES,
    SWITCHES,
    UGAL,
    VALIANT,
    VIRTUAL,
)
from ringleaf.experiments.spec.kinds import ValueReader, label, option
from ringleaf.experiments.spec.together import check_together
from ringleaf.hosts.congestion.registry import CONTROLLERS
from ringleaf.ina.systems import FORWARD, MOST_TREES
from ringleaf.ina.window_registry import WINDOWS
from ringleaf.topologies.k_shortest import MOST_PATHS, USUAL_PATHS
from ringleaf.topologies.registry import TOPOLOGIES

LOOKS = ("figures", "column", "wide")
"""Options on how results look, which no file of results has."""


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
        check_together(self, label(info, WHERE))
        return self

    @property
    def network_faults(self) -> tuple[NetworkFault, ...]:
        """The faults that are the network's: all, but for those that a workload sees to."""
        return self.faults

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
