"""The interface of an in-network aggregation system to networks and experiments.

A network knows no system: it asks one for a P4 program, for the switches' entities, and for agents
on hosts, and hands each rank's tensors to its agent. Nor do experiments: bounds, estimates, judges
and figures ask it for its loads, costs, errors and look.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from ringleaf.core.shipped import BuiltProgram
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError

if TYPE_CHECKING:
    import networkx as nx
    import numpy as np
    import numpy.typing as npt

    from ringleaf.collectives.algorithm import Algorithm, Look
    from ringleaf.core.arena import Arena, Store
    from ringleaf.core.tensors import Array, ElementType
    from ringleaf.hosts.agent import HostAgent
    from ringleaf.ina.fluid import FluidStream
    from ringleaf.ina.holdings import Mover
    from ringleaf.ina.jobs import WorkersJob
    from ringleaf.ina.loads import Aggregation, Demand
    from ringleaf.ina.samples import Example, SampleRound
    from ringleaf.topologies.ways import TopologyRoutes


MOST_TREES = 255
"""Trees of one job; packets name theirs in a byte."""

LANES = (64, 256)
"""Numbers of values in a packet that our programs are built for."""

FORWARD = "forward"
"""The program of switches that do not aggregate."""


def program_for(system: str, program: str, lanes: int, known: Sequence[int]) -> str:
    """Return the name of a program that is built once for each of some numbers of lanes: `atp-64`.

    Raises:
        ConfigError: If it is not built for so many.
    """
    if lanes not in known:
        raise ConfigError(f"{system}: lanes must be one of {list(known)}, got {lanes!r}")
    return f"{program}-{lanes}"


@dataclass(frozen=True, slots=True)
class Costs:
    """Figures for estimates of a run's memory and time, on one processor core.

    Args:
        switch_bytes: Memory of a switch's registers.
        hops_per_s: Packet arrivals simulated per second.
        packets: The packets that cross the mean distance between hosts, per packet that a worker
            sends into the network.
    """

    switch_bytes: int = 1 << 20
    hops_per_s: float = 4e5
    packets: float = 2.0


@dataclass(frozen=True, slots=True)
class ResourceShare:
    """Part `index`, from 0, of `of` equal parts of the switches' resources.

    All parts together get `entries` at most, if that is not None. The first `moving` parts are of
    jobs that exchange them while they run; the others' jobs keep theirs.
    """

    index: int = 0
    of: int = 1
    entries: int | None = None
    moving: int = 0

    def cut(self, available: int) -> tuple[int, int]:
        """Return the first entry, and the number of entries, of this part of a switch's entries."""
        first, end = (self._all(available) * i // self.of for i in (self.index, self.index + 1))
        return first, end - first

    def exchanged(self, available: int) -> int:
        """Return how many of a switch's entries, the first ones, jobs exchange while they run."""
        return self._all(available) * self.moving // self.of

    def _all(self, available: int) -> int:
        return available if self.entries is None else min(available, self.entries)


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request to a system for a job.

    Args:
        number: The job's number, 1 to 255.
        members: The workers' hosts, in rank order.
        servers: Hosts that help: parameter servers, aggregators; may be members', too.
        share: Its share of the switches' resources, for systems that deal them out beforehand.
        ring: Completion ring that agents report to.
        lanes: Values in a full packet.
        slots: Packets in flight per worker; None: the system's choice, twice a path's capacity.
        rtt_ps: The longest round trip.
        ecmp: Whether flows are hashed to paths; if not, each host is reached by one path.
        congestion: The name of the workers' congestion control, for systems that have a choice;
            None: the system's choice.
        trees: Trees of switches that add up, for systems that may have several; None: the
            system's choice.
        earlier: Numbers and members of the system's jobs before this one on the network.
        moves: Whether its part of the switches' memory is to change while it runs, if the
            system's parts can (`System.moves`).
        rebuilds: Whether its tree is to be built again while it runs, if switches or links of it
            fail, and the system can.
        quiet_ps: The time for which the network may answer nothing although nothing is lost; it
            comes on top of all timeouts.
        stretch: How many times as long as at links' rates packets may take, since they are paused.
    """

    number: int
    members: Sequence[str]
    servers: Sequence[str]
    share: ResourceShare
    ring: int
    lanes: int
    slots: int | None
    rtt_ps: int
    ecmp: bool
    congestion: str | None = None
    trees: int | None = None
    earlier: Sequence[tuple[int, Sequence[str]]] = ()
    moves: bool = False
    rebuilds: bool = False
    quiet_ps: int = 0
    stretch: int = 1

    def timeouts_ps(self, window_ps: int) -> tuple[int, int]:
        """Return a worker's least timeout, and what is added to each, where it resends unasked.

        Paused links hold a window for longer, but no longer each time that a timeout doubles.

        Args:
            window_ps: The time that a worker's packets in flight take on the busiest link.
        """
        least_ps = 2 * max(self.rtt_ps, window_ps)
        return least_ps, self.quiet_ps + (self.stretch - 1) * least_ps


AWAITED = "the switches to aggregate"
"""The reason why a rank waits whose sums switches make."""


class JobAggregator(Protocol):
    """One job of one system on one network.

    If its request says that it rebuilds, and the system does, it has a `rebuilder`, too
    (`ringleaf.ina.rebuilding.Rebuilder`), which builds its tree again while it runs.
    """

    @property
    def entities(self) -> Mapping[str, Sequence[Any]]:
        """The P4Runtime entities of each switch, by the switch's name."""

    @property
    def agents(self) -> Sequence[HostAgent]:
        """Its agents, of workers and servers; a host may have several."""

    @property
    def window_bytes(self) -> int:
        """The most bytes that a worker has in flight; it takes tensors in the order of `start`."""

    @property
    def mover(self) -> Mover | None:
        """Changes its part of the switches' memory; None: it keeps it."""

    @property
    def awaited(self) -> str:
        """The reason why a rank waits that is not done, for people."""

    def start(
        self,
        arena: Arena,
        rank: int,
        address: int,
        elements: int,
        tag: int,
        dtype: ElementType,
        now_ps: int,
        priority: int = 0,
    ) -> int:
        """Aggregate a rank's memory in place; return the agent that reports `tag` (b) when done.

        Its packets carry the priority as DSCP's class selector, 0 to 7, the most urgent.

        Raises:
            ConfigError: If the system can't add up this type.
        """

    def raise_priority(self, arena: Arena, rank: int, priority: int) -> None:
        """Send the rest of a rank's tensors under way with at least this priority."""


class System(ABC):
    """An in-network aggregation system, and all that others need to know of it.

    A system has a name, a program, jobs, and a bound on its errors; for the rest, this class has
    an answer that suits any. An instance is cheap to make and to import: whatever needs compiled
    code is imported by the method that needs it.

    Attributes:
        name: Its name in the registry, by which people choose it.
        title: Its name in texts; "": `name`.
        look: The colour and marker of its figures; None: chosen by its name.
        costs: Figures for estimates of memory and time.
        builds: The P4 programs in Ringleaf's `p4` that are its own.
        joint: Programs of several systems -> the program that serves all their jobs at once.
        last_comers: Fields that a sum takes from whichever packet completed it: `IP.ttl`.
        layers: The module of its packets' scapy layers; "": there is none.
        is_forgetful: Whether a worker that has its result does not resend the packet that a slower
            one waits for, so that a run may fail after a switch has lost its registers.
        leases: Whether its workers may have their tensors in memory a segment at a time
            (`ringleaf.ina.leases`); its jobs are `ringleaf.ina.jobs.WorkersJob`.
        compress: The compressor whose elements its workers must be given, as people write it
            (`--compress`): `signsgd`; "": they take any.
        has_windows: Whether workers' windows change with congestion; else as many packets are in
            flight all the time.
        has_trees: Whether a job may have several trees, as many as its request says.
        has_lanes: Whether its packets have as many values as lanes are asked for.
        has_entries: Whether its sums take entries of switches' memory, slots or aggregators.
        moves: Whether its jobs' parts of switches' memory can change while they run: if a request
            says so, they have a `mover`.
        rebuilds: Whether its trees can be built again while jobs run, when switches or links fail:
            if a request says so, they have a `rebuilder`.
        has_icrc: Whether all its packets are RoCEv2's, and none is changed by switches, so that
            receivers find those that were damaged.
        deals_on: Whether it deals a tensor's blocks to servers from where the last tensor's dealing
            ended. Its bound is for the first tensor; later ones may be a block's time below it.
    """

    name: str
    title: str = ""
    look: Look | None = None
    costs: Costs = Costs()
    builds: Sequence[BuiltProgram] = ()
    joint: Mapping[frozenset[str], str] = MappingProxyType({})
    last_comers: tuple[str, ...] = ()
    layers: str = ""
    is_forgetful: bool = False
    leases: bool = False
    compress: str = ""
    has_windows: bool = False
    has_trees: bool = False
    has_lanes: bool = True
    has_entries: bool = True
    moves: bool = False
    rebuilds: bool = False
    has_icrc: bool = False
    deals_on: bool = False

    @cached_property
    def algorithm(self) -> Algorithm:
        """The allreduce that it does."""
        from ringleaf.collectives.aggregate import in_network_algorithm  # loads NumPy

        return in_network_algorithm(self.name, self.title or self.name, self.look)

    @abstractmethod
    def program(self, lanes: int) -> str:
        """Return the name of its P4 program for packets of so many values.

        It is one of ours, or the path of another BMv2 JSON, without `.json`. If switches just
        forward, it is `forward`.

        Raises:
            ConfigError: If there is none.
        """

    def check_racks(  # noqa: B027 - most systems take any job
        self, racks: Sequence[int], servers: int
    ) -> None:
        """Check that it takes a job, before anything large is loaded.

        Args:
            racks: Number of the job's workers in each rack, the hosts of a switch.
            servers: Number of its servers.

        Raises:
            ConfigError: If it does not.
        """

    def slots_of(self, slots: int, lanes: int) -> int:
        """Return how many of the `slots` asked for a worker takes, or how many more, by rounding.

        Args:
            slots: As those of `in_flight`.
            lanes: Likewise.
        """
        del lanes
        return slots

    def in_flight(self, slots: int, lanes: int) -> str:
        """Return what `slots` sets, as a summary has it: `in 2 slots of the switches`.

        Args:
            slots: Packets in flight per worker, as asked for.
            lanes: Values in a full packet.
        """
        del lanes
        return f"in {format_count(slots, 'slot')} of the switches"

    def added_bytes(self, lanes: int) -> int:
        """Return the most bytes that its P4 program adds to a packet; BMv2 can add 512."""
        return 0

    @abstractmethod
    def join(self, graph: nx.Graph[str], store: Store, request: JobRequest) -> JobAggregator:
        """Make a job.

        Raises:
            ConfigError: If it does not fit the switches.
        """

    @abstractmethod
    def error_bound(self, parts: Array, lanes: int) -> npt.NDArray[np.float64]:
        """Return how far each float of the result may be from the exact sum; integers are exact.

        Args:
            parts: (workers, elements) float32: their tensors, or a part of them that starts at a
                multiple of `lanes`.
            lanes: Values in a full packet.

        Returns:
            (elements,)
        """

    def allowed_error(self, parts: Array, lanes: int) -> npt.NDArray[np.float64]:
        """Return how far each float of the result may be from the exact sum when it is judged.

        It is `error_bound`, but where that is more than the largest sum of magnitudes, or no
        number, it would bound nothing: a result of zeros would do. There, sums may be rounded, and
        no more, as if hosts had added one value after the other (`omnireduce`).

        Args:
            parts: As those of `error_bound`.
            lanes: Likewise.

        Returns:
            (elements,)
        """
        import numpy as np

        bound = np.asarray(self.error_bound(parts, lanes), np.float64)
        magnitudes = np.abs(parts).sum(axis=0, dtype=np.float64)
        most = magnitudes.max(initial=0.0)
        if not np.isfinite(most):  # what is compared with it is no number either
            return bound
        rounded = len(parts) * 2.0**-24 * magnitudes
        return np.where((bound >= 0) & (bound <= most), bound, rounded)

    def demand(self, ways: TopologyRoutes, what: Aggregation) -> Demand:
        """Return the least bytes that it sends over each link, and its least times."""
        from ringleaf.ina.loads import least_demand

        return least_demand(ways, what)

    def fluid(self, graph: nx.Graph[str], request: JobRequest) -> FluidStream | None:
        """Return a job as a flow, for networks without packets; None: it has no such form.

        Raises:
            ConfigError: If the job does not fit the switches.
        """
        return None

    @property
    def is_fluid(self) -> bool:
        """Whether its jobs have a fluid form."""
        return False

    def prepare(self) -> None:  # noqa: B027 - there may be nothing to do
        """Import its agents, so that their code is compiled with all others'."""

    def reader(self) -> object:
        """Return the object that explains its registers and packets to people.

        It has the methods of `Readable` (`ina/reading.py`), those of `Occupies`
        (`ina/occupancy.py`), both, or neither.
        """
        return None

    def examples(self) -> Mapping[str, Callable[[], Example]]:
        """Return functions that make the packet to follow through a program, by program.

        A program's name is as `program` has it.
        """
        return {}

    def rounds(self) -> Mapping[str, Callable[[], SampleRound]]:
        """Return functions that make the packets to measure a program with, by program."""
        return {}


class FolderSystem(System):
    """A system that is a package: what needs compiled code is in modules of it.

    `job` has `join`; those that there are of `loads` (`demand`), `fluid` (`stream`), `reading` (the
    reader itself) and `samples` (`EXAMPLES` and `ROUNDS`) are used, too.

    Attributes:
        home: The package. The last part of its name is that of its P4 programs: `atp-64`.
        lanes: The numbers of values in a packet that it has programs for.
        reading: The module that explains registers and packets, if these are another system's.
    """

    home: str
    reading: str = ""
    lanes: tuple[int, ...] = LANES

    def program(self, lanes: int) -> str:
        """Return the name of the P4 program for packets of so many values.

        Raises:
            ConfigError: If there is none.
        """
        return program_for(self.name, self.home.rpartition(".")[2], lanes, self.lanes)

    def join(self, graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
        """Make a job.

        Raises:
            ConfigError: If it does not fit the switches.
        """
        self.program(request.lanes)  # which refuses lanes
        job: WorkersJob = self._module("job").join(graph, store, request)
        return job

    def demand(self, ways: TopologyRoutes, what: Aggregation) -> Demand:
        """Return the least bytes that it sends over each link, and its least times."""
        if not self._has("loads"):
            return super().demand(ways, what)
        demand: Demand = self._module("loads").demand(ways, what)
        return demand

    def fluid(self, graph: nx.Graph[str], request: JobRequest) -> FluidStream | None:
        """Return a job as a flow, for networks without packets; None: it has no such form.

        Raises:
            ConfigError: If the job does not fit the switches.
        """
        if not self.is_fluid:
            return None
        stream: FluidStream = self._module("fluid").stream(graph, request)
        return stream

    @property
    def is_fluid(self) -> bool:
        """Whether its jobs have a fluid form."""
        return self._has("fluid")

    def prepare(self) -> None:
        """Import its agents, so that their code is compiled with all others'."""
        self._module("job")

    def reader(self) -> object:
        """Return the object that explains its registers and packets to people."""
        if self.reading:
            return import_module(self.reading)
        return self._module("reading") if self._has("reading") else None

    def examples(self) -> Mapping[str, Callable[[], Example]]:
        """Return functions that make the packet to follow through a program, by program."""
        return self._module("samples").EXAMPLES if self._has("samples") else {}

    def rounds(self) -> Mapping[str, Callable[[], SampleRound]]:
        """Return functions that make the packets to measure a program with, by program."""
        return self._module("samples").ROUNDS if self._has("samples") else {}

    def _has(self, name: str) -> bool:
        return find_spec(f"{self.home}.{name}") is not None

    def _module(self, name: str) -> ModuleType:
        return import_module(f"{self.home}.{name}")
