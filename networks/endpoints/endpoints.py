"""All hosts of a network, without the switches and links between them, and without a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import networkx as nx

from ringleaf.collectives.schedule import Schedule
from ringleaf.core.arena import Store
from ringleaf.core.tensors import FLOAT32, Array, ElementType
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.hosts import rc
from ringleaf.hosts.agent import COMPLETIONS_AT, HostAgent, make_ring
from ringleaf.hosts.executor.build import Executors, words_of
from ringleaf.hosts.plan import Plans, plans
from ringleaf.hosts.staging import Staging, lay_out
from ringleaf.ina.holdings import Holding, Mover, Updates
from ringleaf.ina.rebuilding import Rebuilder
from ringleaf.networks.endpoints.connections import ChannelFlow, Connections
from ringleaf.networks.endpoints.joining import join_systems
from ringleaf.networks.endpoints.leases import Fill
from ringleaf.networks.endpoints.memory import RegisteredMemory, aligned
from ringleaf.networks.endpoints.operation import CollectiveOperation, Combine, add
from ringleaf.networks.endpoints.segments import SegmentLeases, is_one_sum, room_bytes
from ringleaf.networks.groups import Group, check_groups
from ringleaf.networks.options import NetworkOptions
from ringleaf.topologies.graph import hosts, index
from ringleaf.topologies.route_table import RouteTable
from ringleaf.topologies.routing import longest_rtt_ps

RING_ROWS = 1 << 16

Door = Callable[[Updates], None]
"""A function that writes P4Runtime entities, with their verbs, to switches."""

Relay = Callable[[int, int], None]
"""A function that is told a group and a priority."""


class Endpoints:
    """Every host's agents, connections and registered memory, in one store.

    Args:
        graph: The topology.
        store: The store that holds them.
        options: The options of the network.
        groups: The groups that run collectives together.
        rtt_ps: The longest round trip of the connections' packets.
        table: The topology's `routes`, if the caller has them.

    Raises:
        ConfigError: If groups, or the systems that aggregate for them, don't fit the topology.
    """

    def __init__(
        self,
        graph: nx.Graph[str],
        store: Store,
        options: NetworkOptions,
        groups: Sequence[Group],
        *,
        rtt_ps: int,
        table: RouteTable | None = None,
    ) -> None:
        check_groups(graph, groups)
        self.graph = graph
        self.groups = groups
        self._store = store
        self.ring = make_ring(store, RING_ROWS)
        self.connections = Connections(
            *(graph, store, options, groups), ring=self.ring, rtt_ps=rtt_ps, table=table
        )
        added_bytes = 4 * options.lanes  # of a switch's packet, which no MTU limits
        if added_bytes > options.mtu_bytes and any(group.system for group in groups):
            rtt_ps = max(rtt_ps, longest_rtt_ps(graph, added_bytes, table=table))
        self.aggregators = join_systems(
            *(graph, store, options, groups), ring=self.ring, rtt_ps=rtt_ps
        )
        self.cross_traffic = self._make_cross_traffic(options)
        self._agents = self._by_host(len(hosts(graph)))
        self._group_of = {
            agent.block: group
            for group, aggregator in self.aggregators.items()
            for agent in aggregator.agents
        }
        self.memory = RegisteredMemory(store)
        self._node_of = [
            {index(host): node for node, host in enumerate(group.nodes)} for group in groups
        ]
        self.ecmp = options.ecmp
        self._lanes = options.lanes
        self._has_data = options.has_data
        self._ahead_bytes = options.ahead_bytes or 2 * self.connections.window_bytes
        self.rings: Sequence[int] = [self.ring]
        self._region_of: Sequence[int] = [0] * len(self._agents)
        self._planned: tuple[Schedule, Plans] | None = None
        self.relay: Relay | None = None
        """Passes raised priorities on to processes that have the agents; None: this one has."""
        self._end_lease: Callable[[], None] = lambda: None
        self.door: Door | None = None
        """Tells the switches what has changed, over P4Runtime."""
        self.pass_move: Callable[[int, Holding], None] | None = None
        """Passes a group's new holding on to processes that have the agents, after switches."""
        self.allocator = options.allocator
        self._room = (0, 0)  # words of the last collective's executors: where, how many

    def divide(self, region_of: Sequence[int], rings: Sequence[int]) -> None:
        """Divide the hosts into regions, whose agents report to rings of their own."""
        self._region_of, self.rings = region_of, rings
        for host, agents in enumerate(self._agents):
            for agent in agents:
                self._store.arena.words[agent.block + COMPLETIONS_AT] = rings[region_of[host]]

    @property
    def regions(self) -> int:
        """The number of regions of the network, whose hosts work at the same time."""
        return len(self.rings)

    def region(self, host: int) -> int:
        """Return the region that has a host."""
        return self._region_of[host]

    @property
    def hosts(self) -> int:
        """The number of hosts."""
        return len(self._agents)

    @property
    def slots(self) -> int | None:
        """Packets that a worker of the first group's system has in flight; None without one."""
        return (
            self.aggregators[0].window_bytes // (4 * self._lanes) if 0 in self.aggregators else None
        )

    def agents(self, host: int) -> Sequence[HostAgent]:
        """Return a host's agents: rc's first."""
        return self._agents[host]

    def group_of(self, agent: int) -> int | None:
        """Return the group that an agent aggregates for; None if it is an rc agent."""
        return self._group_of.get(agent)

    def node_of(self, group: int, host: int) -> int:
        """Return the number of a host's node in a group; -1: it has none."""
        return self._node_of[group].get(host, -1)

    def arrays(
        self,
        elements: int,
        dtype: ElementType = FLOAT32,
        schedule: Schedule | None = None,
        *,
        group: int = 0,
    ) -> list[Array]:
        """Return one uninitialised array per rank of a group, in registered memory.

        Arrays that were given out before lose their memory to these. With the schedule that
        will run, there is room for the memory it needs besides, and nothing will have to be copied.
        """
        spare = 0
        if schedule is not None:
            parts = plans(schedule, elements)
            self._planned = (schedule, parts)
            spare = _spare(schedule, self.staging(parts, dtype), elements, dtype)
        self.memory.make_room(
            len(self.groups[group].hosts) * aligned(elements * dtype.itemsize) + spare
        )
        return [self.memory.take(elements, dtype) for _ in self.groups[group].hosts]

    @contextmanager
    def operation(
        self, schedule: Schedule, tensors: Sequence[Array]
    ) -> Iterator[CollectiveOperation]:
        """Connect the first group's nodes, and yield an operation for one start.

        Args:
            schedule: For as many ranks, and at most as many servers, as the group has.
            tensors: One per rank, of shape (elements,) and one type. Those that `arrays`
                gave are not copied.

        Raises:
            ConfigError: If schedule, tensors and group don't fit one another.
        """
        self.check(schedule, tensors)
        elements, dtype = tensors[0].size, tensors[0].dtype
        parts = self._take_plans(schedule, elements)
        self.connect(parts)
        staging = self.staging(parts, dtype)
        with self.memory.registered(tensors, _spare(schedule, staging, elements, dtype)) as known:
            nodes = known + [self.memory.take(elements, dtype) for _ in range(schedule.servers)]
            buffers = [self.memory.take_bytes(size) for size in staging.nodes.tolist()]
            at = self._take_room(words_of(parts, staging, self.regions))
            executors = self.executors(parts, staging, dtype, at=at)
            try:
                yield self.operate(schedule, executors, nodes, buffers)
            finally:
                self._end_lease()

    def lease_sum(self, tensors: Sequence[Array], fill: Fill) -> SegmentLeases:
        """Return leases of the first group's tensors, whose sum its operation is about to ask for.

        Its system is one whose workers may have a segment at a time, and `arrays` has given the
        tensors, for this schedule.
        """
        from ringleaf.ina.jobs import WorkersJob  # loads compiled code

        job = self.aggregators[0]
        assert isinstance(job, WorkersJob)
        room = self.memory.take_bytes(room_bytes(len(tensors)))
        leases = SegmentLeases(self._store, tensors, fill, room)
        job.lease(leases.tables)
        self._end_lease = partial(job.lease, ())
        return leases

    def connect(
        self,
        parts: Plans,
        *,
        group: int = 0,
        channel: int = 0,
        eager: bool = False,
        renewed: bool = False,
    ) -> None:
        """Make the queue pairs that these plans need, if there are none yet.

        On eager ones messages leave without credit, and it is reported when they have left. Each
        operation begins as on new ones if they are renewed.
        """
        self.connections.connect(group, channel, parts.ends, eager=eager, renewed=renewed)

    def staging(self, parts: Plans, dtype: ElementType) -> Staging:
        """Return the buffers that executors of these plans need."""
        return lay_out(parts, dtype.itemsize, ahead_bytes=self._ahead_bytes)

    def executors(
        self,
        parts: Plans,
        staging: Staging,
        dtype: ElementType,
        *,
        group: int = 0,
        channel: int = 0,
        at: int | None = None,
        by_callback: bool = False,
    ) -> Executors:
        """Return executors of plans that are connected, for operations one after the other.

        Args:
            parts: The plans.
            staging: Their buffers.
            dtype: Type of the elements.
            group: The group that runs them.
            channel: A channel that no other operation of the group uses at a time.
            at: A place for their words; None: a new one.
            by_callback: Whether messages are applied by the operation's `combine`.
        """
        members = [index(host) for host in self.groups[group].nodes[: parts.nodes]]
        executors = Executors(
            self._store,
            parts,
            staging,
            dtype,
            at=at,
            has_data=self._has_data,
            regions=[self._region_of[host] for host in members],
            by_callback=by_callback,
        )
        agents = [self.connections.agents[host] for host in members]
        numbers = [
            self.connections.qp(members[node], ChannelFlow(group, channel, stream))
            for node, stream in parts.ends
        ]
        executors.connect(agents, numbers)
        return executors

    def operate(
        self,
        schedule: Schedule,
        executors: Executors,
        tensors: Sequence[Array],
        staging: Sequence[int],
        *,
        group: int = 0,
        channel: int = 0,
        priority: int = 0,
        rate_bps: int = 0,
        gain: float = 1.0,
        marks: bool = True,
        combine: Combine = add,
    ) -> CollectiveOperation:
        """Return a collective that a network can start, once.

        Args:
            schedule: The collective's schedule.
            executors: Its executors, for this group and channel; the last operation is over.
            tensors: By node, in registered memory; servers' are set to zero.
            staging: By node, addresses of memory of the sizes that `staging` returns.
            group: The group that runs it.
            channel: A channel that no other operation of the group uses.
            priority: Priority of its packets: 0 to 7, the most urgent.
            rate_bps: Rate of each host's messages, on the line; 0: as fast as possible.
            gain: Factor on the growth of windows, for controllers that have one.
            marks: Whether packets carry the priority, so that switches obey it, too.
            combine: Reduces arriving elements into a rank's, where executors ask for it.
        """
        for tensor in tensors[schedule.ranks :] if self._has_data else ():
            tensor[:] = 0
        return self.take_up(
            executors,
            tensors,
            staging,
            ranks=schedule.ranks,
            group=group,
            channel=channel,
            priority=priority,
            rate_bps=rate_bps,
            gain=gain,
            marks=marks,
            combine=combine,
        )

    def take_up(
        self,
        executors: Executors,
        tensors: Sequence[Array],
        staging: Sequence[int],
        *,
        ranks: int,
        group: int,
        channel: int,
        priority: int = 0,
        rate_bps: int = 0,
        gain: float = 1.0,
        marks: bool = True,
        combine: Combine = add,
    ) -> CollectiveOperation:
        """Return an operation of so many ranks that another process has made; as `operate`.

        Servers' tensors stay as they are: the other process has set them to zero.
        """
        elements = executors.plans.elements
        assert all(tensor.size == elements for tensor in tensors)
        executors.prepare([self.memory.address(tensor) for tensor in tensors], staging)
        return CollectiveOperation(
            self._store,
            self.memory,
            executors,
            tensors,
            staging=staging,
            aggregator=self.aggregators.get(group),
            group=group,
            channel=channel,
            ranks=ranks,
            priority=priority,
            rate_bps=rate_bps,
            gain=gain,
            marks=marks,
            combine=combine,
        )

    def raise_priority(self, group: int, priority: int) -> None:
        """Raise all that a group's aggregation agents have under way to this priority at least."""
        if group not in self.aggregators:
            return
        if self.relay is not None:
            self.relay(group, priority)
            return
        for rank in range(len(self.groups[group].hosts)):
            self.aggregators[group].raise_priority(self._store.arena, rank, priority)

    def movers(self) -> dict[int, Mover]:
        """Return what changes groups' holdings, by group, of those that can change."""
        pairs = ((group, each.mover) for group, each in self.aggregators.items())
        return {group: mover for group, mover in pairs if mover is not None}

    def move(self, group: int, holding: Holding) -> None:
        """Give a group, of which nothing is under way, another part of switches' memory."""
        mover = self.aggregators[group].mover
        assert mover is not None
        assert self.door is not None
        self.door(mover.move(self._store.arena, holding))
        if self.pass_move is not None:
            self.pass_move(group, holding)

    @property
    def rebuilders(self) -> dict[int, Rebuilder]:
        """The builders of new trees, by group, for groups that can have others."""
        rebuilders = {
            group: getattr(each, "rebuilder", None) for group, each in self.aggregators.items()
        }
        return {group: each for group, each in rebuilders.items() if each is not None}

    def check(self, schedule: Schedule, tensors: Sequence[Array], *, group: int = 0) -> None:
        """Check that a group can run a schedule on these tensors.

        Raises:
            ConfigError: If not.
        """
        ranks = len(self.groups[group].hosts)
        if schedule.ranks != ranks or len(tensors) != ranks:
            raise ConfigError(
                f"run: schedule and tensors must be for {format_count(ranks, 'rank')}, "
                f"got {schedule.ranks} and {len(tensors)}"
            )
        kinds = sorted({f"{tuple(tensor.shape)} {tensor.dtype}" for tensor in tensors})
        if len(kinds) > 1 or tensors[0].ndim != 1:
            raise ConfigError(f"run: tensors must be alike and of one dimension, got {kinds}")
        self.check_group(schedule, group=group)

    def check_group(self, schedule: Schedule, *, group: int = 0) -> None:
        """Check that a group has the servers and the system that a schedule for its ranks needs.

        Raises:
            ConfigError: If not.
        """
        servers = len(self.groups[group].servers)
        if schedule.servers > servers:
            raise ConfigError(
                f"run: the schedule must do with {format_count(servers, 'server')}, got "
                f"{schedule.servers}"
            )
        if schedule.codec is not None and not self._has_data:
            raise ConfigError(
                f"run: messages must have data where a codec writes them, got "
                f"{schedule.codec.name!r} and none"
            )
        if schedule.groups and group not in self.aggregators:
            raise ConfigError(
                "run: the schedule aggregates in the network, got options without a system"
            )

    def agents_of(self, group: int) -> list[int]:
        """Return the blocks of the agents that may work for a group: its own, and the rc agents."""
        members = map(index, self.groups[group].nodes)
        number = self.groups[group].number
        return [
            agent.block
            for host in members
            for agent in self._agents[host]
            if agent.owner in (0, number)
        ]

    def _by_host(self, count: int) -> list[list[HostAgent]]:
        by_host = [[HostAgent(i, rc, at)] for i, at in enumerate(self.connections.agents)]
        assert len(by_host) == count
        for group, aggregator in self.aggregators.items():
            for agent in aggregator.agents:
                owned = replace(agent, owner=self.groups[group].number)
                by_host[agent.host].append(owned)
        for agent in self.cross_traffic:
            by_host[agent.host].append(agent)
        return by_host

    @property
    def owners(self) -> int:
        """A bound above the numbers of all packets' groups; 1 if there is only one group."""
        if len(self.groups) == 1:
            return 1
        numbers = [group.number for group in self.groups]
        return max(numbers) + 1 + bool(self.cross_traffic)

    def _make_cross_traffic(self, options: NetworkOptions) -> list[HostAgent]:
        """Return the agents that send cross traffic, if there is any."""
        if options.cross_traffic is None:
            return []
        from ringleaf.networks.cross_traffic import make_agents  # compiles

        owner = max(group.number for group in self.groups) + 1
        return make_agents(
            self.graph,
            self._store,
            options.cross_traffic,
            ring=self.ring,
            owner=owner,
            mtu=options.mtu_bytes,
        )

    def _take_plans(self, schedule: Schedule, elements: int) -> Plans:
        """Return the nodes' plans: those of `arrays`, if they were just made there."""
        planned, self._planned = self._planned, None
        if planned is not None and planned[0] is schedule and planned[1].elements == elements:
            return planned[1]
        return plans(schedule, elements)

    def _take_room(self, words: int) -> int:
        """Return a place for the executors of a collective: that of the last one, if it will do."""
        at, room = self._room
        if room < words:
            at = self._store.allocate("words", words)
            self._room = at, words
        return at


def _spare(schedule: Schedule, staging: Staging, elements: int, dtype: ElementType) -> int:
    """Return the bytes of memory that an operation takes besides its ranks' tensors."""
    servers = schedule.servers * aligned(elements * dtype.itemsize)
    segments = room_bytes(schedule.ranks) if is_one_sum(schedule) else 0
    return servers + segments + sum(aligned(size) for size in staging.nodes.tolist())
