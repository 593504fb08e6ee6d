"""Carry collectives over networks: on all hosts, and again on those that are left of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleaf.collectives.algorithm import NOWHERE, Algorithm
from ringleaf.collectives.compression.compressor import codec_of
from ringleaf.collectives.compression.registry import parse_compressor
from ringleaf.collectives.queue_pairs import over_queue_pairs
from ringleaf.collectives.schedule import Schedule
from ringleaf.core.units import format_count
from ringleaf.errors import BackendError, ScheduleError
from ringleaf.experiments.checking.carrying import CarriedCollective, carry
from ringleaf.experiments.checking.data import RankInputs
from ringleaf.experiments.checking.exchanges import coded
from ringleaf.experiments.setup.network import MakeNetwork, Network
from ringleaf.experiments.setup.placing import placed
from ringleaf.experiments.spec.kinds import DTYPES, GIVEN
from ringleaf.experiments.workloads.collective.communicator import Communicator, Shrinking, joined
from ringleaf.experiments.workloads.collective.limits import CollectiveLimits
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec
from ringleaf.ina.registry import find_system
from ringleaf.networks.faults import lost_hosts

if TYPE_CHECKING:
    import networkx as nx

    from ringleaf.networks.outcome import RunResult

FEW = 5
"""As many lost hosts are counted, fewer are named."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A collective that some hosts have done, or have given up.

    Attributes:
        members: The hosts.
        schedule: What they did.
        inputs: Their inputs.
        carried: What came of it.
    """

    members: Communicator
    schedule: Schedule
    inputs: RankInputs
    carried: CarriedCollective


@dataclass(frozen=True, slots=True)
class Attempts:
    """All attempts at a collective.

    Attributes:
        last: The one after which ranks had results.
        outcome: The result of all together.
        communicators: Those of each.
    """

    last: Attempt
    outcome: RunResult
    communicators: tuple[Communicator, ...]


@dataclass(frozen=True, slots=True)
class AskedCollective:
    """A collective that is to be carried.

    Attributes:
        algorithm: How.
        size_bytes: Bytes of each rank's tensor, as they were asked for.
        threads: The most threads that simulate it.
    """

    algorithm: Algorithm
    size_bytes: int
    threads: int


class AttemptCarrier:
    """Carries the collectives of an experiment.

    Args:
        spec: The experiment.
        graph: Its topology.
        limits: The least times of its collectives.
        examine: Follows a schedule before it runs.
    """

    def __init__(
        self,
        spec: CollectiveSpec,
        graph: nx.Graph[str],
        limits: CollectiveLimits,
        examine: Callable[[Algorithm, Schedule], None],
    ) -> None:
        self._spec, self._graph, self._limits, self._examine = spec, graph, limits, examine
        self.everyone = Communicator.of_all(graph, spec.servers)
        """The communicator that every collective begins with."""

    @cached_property
    def _shrinking(self) -> Shrinking | None:
        """When ranks give up as a host is lost, and go on without it; None: they don't."""
        if self._spec.shrink_ps is None:
            return None
        return Shrinking(self._lost_ps, self._spec.shrink_ps)

    @cached_property
    def _lost_ps(self) -> dict[str, int]:
        return lost_hosts(self._spec.network_faults, self._graph)

    def carry(
        self,
        connect: MakeNetwork,
        asked: AskedCollective,
        inputs: RankInputs,
        tell: Callable[[int], None] | None,
    ) -> Attempts:
        """Run a collective until ranks have results; those that are left, if hosts are lost.

        Raises:
            BackendError: If it does not come to an end, or those that are left can't go on.
        """
        attempt = self._attempt(connect, asked, inputs, self.everyone, tell)
        outcomes, communicators = [attempt.carried.outcome], [attempt.members]
        while outcomes[-1].gave_up:
            members = self._without_lost(asked.algorithm, attempt)
            attempt = self._attempt(connect, asked, inputs, members, tell)
            outcomes.append(attempt.carried.outcome)
            communicators.append(members)
        return Attempts(attempt, joined(outcomes), tuple(communicators))

    def network(
        self, connect: MakeNetwork, asked: AskedCollective, members: Communicator | None = None
    ) -> Network:
        """Return a network for some of its hosts, which begin at a time; None: for all."""
        update: dict[str, Any] = {"threads": asked.threads}
        again: dict[str, Any] = {}
        if members is not None and members.lost:
            update["faults"] = members.faults(self._spec.faults)
            system = find_system(asked.algorithm.name) if asked.algorithm.in_network else None
            again["groups"] = [members.group(system)]
        members = members or self.everyone
        record = self._spec.record
        return connect(
            self._spec.model_copy(update=update),
            self._graph,
            in_network=asked.algorithm.name if asked.algorithm.in_network else None,
            capture=self.captures(asked.algorithm, asked.size_bytes, members),
            record=record and record / _folder(asked.algorithm, asked.size_bytes, members),
            **again,
        )

    def captures(self, algorithm: Algorithm, size_bytes: int, members: Communicator) -> Path | None:
        """Return the folder of a communicator's captures; None: nothing is captured."""
        base = self._spec.out / "pcap" if self._spec.pcap else None
        return base and base / _folder(algorithm, size_bytes, members)

    def schedule(
        self, algorithm: Algorithm, size_bytes: int, members: Communicator | None = None
    ) -> Schedule:
        """Return an algorithm's schedule for this topology, at one size.

        Messages are written by the compressor's codec, if the algorithm has none of its own.

        Args:
            algorithm: The algorithm.
            size_bytes: Bytes per rank.
            members: The hosts that are ranks; None: all.

        Raises:
            ScheduleError: If it is not for so many ranks.
        """
        spec, members = self._spec, members or self.everyone
        is_given = spec.rank_order == GIVEN and algorithm.symmetric
        embedding = NOWHERE if is_given else members.embedding

        def build(root: int) -> Schedule:
            return algorithm.build(
                members.ranks,
                size_bytes=size_bytes,
                hierarchy=members.hierarchy,
                root=root,
                fabric=self._limits.fabric,
                servers=spec.servers,
                embedding=embedding,
                time_ps=lambda schedule: self._limits.expected_ps(schedule, size_bytes),
                network=members.cabling,
            )

        schedule = placed(
            build,
            algorithm,
            spec.rank_order,
            embedding,
            ranks=members.ranks,
            seed=spec.seed,
        )
        codec = codec_of(parse_compressor(spec.compress)) if spec.compress else None
        return coded(over_queue_pairs(schedule, spec.queue_pairs), codec)

    def _attempt(
        self,
        connect: MakeNetwork,
        asked: AskedCollective,
        inputs: RankInputs,
        members: Communicator,
        tell: Callable[[int], None] | None,
    ) -> Attempt:
        """Run a collective on some hosts until they have results, or give up."""
        own = inputs.of(members.numbers) if members.lost else inputs
        moved_bytes = own.elements * DTYPES[self._spec.dtype]  # a compressor may give less
        schedule = self._schedule_again(asked.algorithm, moved_bytes, members)
        self._examine(asked.algorithm, schedule)
        until_ps = None
        if self._shrinking is not None:
            served = _is_served(asked.algorithm, schedule)
            until_ps = self._shrinking.until_ps(members, served=served)
        if until_ps is not None:
            until_ps *= self._spec.scale
        make = partial(self.network, connect, asked, members)
        try:
            carried = carry(self._spec, schedule, own, make, tell, until_ps)
        except BackendError as error:
            raise self._with_remedy(error) from None
        carried.network.close()
        return Attempt(members, schedule, own, carried)

    def _schedule_again(
        self, algorithm: Algorithm, size_bytes: int, members: Communicator
    ) -> Schedule:
        """Return the schedule of those that are left.

        Raises:
            BackendError: If there is none, as there are fewer than there were.
        """
        try:
            return self.schedule(algorithm, size_bytes, members)
        except ScheduleError as error:
            if not members.lost:
                raise
            raise BackendError(
                f"shrink: {algorithm.name} can't go on without {', '.join(members.lost)}, got "
                f"{error}; take another algorithm"
            ) from None

    def _with_remedy(self, error: BackendError) -> BackendError:
        """Return an error that ended a run; if hosts were lost, it says how to go on."""
        lost = [*self._lost_ps]
        if type(error) is not BackendError or self._shrinking is not None or not lost:
            return error
        names = ", ".join(lost) if len(lost) < FEW else format_count(len(lost), "host")
        return BackendError(f"{error}, or go on without {names}: --shrink 1ms")

    def _without_lost(self, algorithm: Algorithm, attempt: Attempt) -> Communicator:
        """Return who goes on after an attempt was given up.

        Raises:
            BackendError: If they can't.
        """
        assert self._shrinking is not None, "nobody gives up otherwise"
        schedule = attempt.schedule
        return self._shrinking.without_lost(
            attempt.members,
            where=algorithm.name,
            root=schedule.root if algorithm.collective.is_rooted else None,
            served=_is_served(algorithm, schedule),
        )


def _is_served(algorithm: Algorithm, schedule: Schedule) -> bool:
    """Return whether servers help."""
    return algorithm.in_network or schedule.servers > 0


def _folder(algorithm: Algorithm, size_bytes: int, members: Communicator) -> str:
    """Return the name of a collective's folder; each communicator has its own."""
    left = f"-without-{'-'.join(members.lost)}" if members.lost else ""
    return f"{algorithm.name}-{size_bytes}{left}"
