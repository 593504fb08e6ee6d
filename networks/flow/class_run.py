"""A symmetric collective by classes: what a few ranks do is carried, and all get its times."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

import ringleaf.networks.virtual.state as s
from ringleaf.collectives.schedule import Schedule, chunk_ranges
from ringleaf.collectives.symmetric_rows import symmetry_of
from ringleaf.core.arena import Store
from ringleaf.core.tensors import ElementType
from ringleaf.core.units import format_count
from ringleaf.networks.endpoints.connections import ChannelFlow
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.journal import Journal
from ringleaf.networks.endpoints.memory import aligned
from ringleaf.networks.endpoints.operation import CollectiveOperation
from ringleaf.networks.flow.class_layout import ClassLayout, hosts_of, join
from ringleaf.networks.flow.classes import Classes, class_plans
from ringleaf.networks.flow.machine import FlowMachine
from ringleaf.networks.groups import whole
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import MOST_CELLS, RECEIVE, RunResult
from ringleaf.networks.telling import Tell, Telling
from ringleaf.networks.virtual.state import open_network
from ringleaf.topologies.graph import hosts, neighbors, switches

if TYPE_CHECKING:
    from ringleaf.hosts.shared_plans import SharedPlans
    from ringleaf.topologies.arrays import Numbers


def without_classes(schedule: Schedule, elements: int, options: NetworkOptions) -> str:
    """Return why a symmetric collective can't be carried by classes; empty if it can."""
    symmetry = symmetry_of(schedule.as_rows)
    if symmetry is None:
        return f"{schedule.algorithm} does not say which of its ranks do the same"
    if symmetry.is_even and elements % schedule.chunks:
        return f"chunks differ in size, {schedule.chunks} of {format_count(elements, 'element')}"
    if options.has_data:
        return "data is added up message by message"
    if options.ecmp:
        return "hashes tell all connections apart"
    if options.message_overhead_ps:
        return "a processor's messages of one time wait in the order of hosts' numbers"
    if schedule.codec is not None or schedule.servers:
        return "codecs and servers are not symmetric"
    return ""


class ClassRun:
    """One collective by classes, on hosts that have done nothing before.

    Args:
        graph: The topology.
        options: The options of the network.
        classes: The classes of the schedule's ranks.
        rtt_ps: The longest round trip of any hosts.
    """

    def __init__(
        self, graph: nx.Graph[str], options: NetworkOptions, classes: Classes, rtt_ps: int
    ) -> None:
        self._graph, self._options = graph, options
        self._classes, self._rtt_ps = classes, rtt_ps

    def run(
        self,
        schedule: Schedule,
        elements: int,
        dtype: ElementType,
        tell: Tell | None = None,
        *,
        notes: bool = False,
    ) -> RunResult:
        """Return the result of all ranks.

        Args:
            schedule: The schedule, of as many ranks.
            elements: The number of elements of each rank's tensor.
            dtype: Their type.
            tell: Called with the packet-hops so far.
            notes: Whether to note when messages were there.
        """
        began_s = time.perf_counter()
        stops = (stop for _, stop in chunk_ranges(elements, schedule.chunks))
        edges = np.array([0, *stops], np.int64)
        plans = class_plans(self._classes, schedule, edges)
        result = self._carry(plans, dtype, tell, schedule.steps if notes else 0)
        return replace(self._expanded(result), wall_s=time.perf_counter() - began_s)

    def _carry(
        self, parts: SharedPlans, dtype: ElementType, tell: Tell | None, noted_steps: int
    ) -> RunResult:
        """Carry plans; return the result of classes: of their first ranks and links."""
        classes, options, store = self._classes, self._options, Store(has_data=False)
        graph = hosts_of(classes)
        endpoints = Endpoints(graph, store, options, [whole(graph, None, 0)], rtt_ps=self._rtt_ps)
        flows = [(node, ChannelFlow(0, 0, stream)) for node, stream in parts.ends]
        join(endpoints.connections, classes, flows)
        tables = ClassLayout(
            *(store, endpoints.connections, classes), ring=endpoints.ring, bins=options.bins
        )
        tables.update()
        ends = [classes.columns.ends[link] for link in classes.first_link.tolist()]
        machine = FlowMachine(
            *(self._graph, store, options, endpoints, tables), ends=ends, sources={}
        )
        machine.telling = Telling(tell)
        operation = _operation(endpoints, parts, dtype)
        meter = machine.meter()
        journal = None
        if noted_steps:
            journal = Journal(store, parts.first_sum, most=parts.count, start_ps=machine.now_ps)
        machine.execution.note(journal)
        result = machine.with_queues(meter.result(machine.carry(operation)))
        packets = open_network(store.arena, tables.net).ports[:, s.TX_PACKETS]
        ends_ps = None if journal is None else _step_ends(journal, noted_steps)
        return replace(result, packet_hops=int(packets @ classes.link_sizes), step_ends_ps=ends_ps)

    def _expanded(self, result: RunResult) -> RunResult:
        """Return the result of all ranks and links, given that of classes."""
        classes, graph = self._classes, self._graph
        number = {ends: link for link, ends in enumerate(classes.columns.ends)}
        nodes = [*switches(graph), *hosts(graph)]
        links = [(node, peer) for node in nodes for peer in neighbors(graph, node).values()]
        class_of = classes.of_link[[number[ends] for ends in links]].tolist()
        first = [classes.columns.ends[link] for link in classes.first_link.tolist()]
        sent = [*result.link_bytes.values(), 0]
        series, bin_ps = _widened([*result.link_series.values()], result.bin_ps, len(links))
        queued = [result.queue_peaks.get(ends, 0) for ends in first] + [0]
        wire_bytes = np.zeros(len(nodes) - len(switches(graph)), np.int64)
        wire_bytes[classes.hosts] = np.array(result.wire_bytes)[classes.of_rank]
        own = set(hosts(graph))
        by_link = dict(zip(links, class_of, strict=True))
        rows = [*series, np.zeros_like(series[0])]
        return replace(
            result,
            finish_ps=np.array(result.finish_ps)[classes.of_rank].tolist(),
            wire_bytes=wire_bytes.tolist(),
            link_bytes={ends: sent[each] for ends, each in by_link.items()},
            bin_ps=bin_ps,
            link_series={ends: rows[each] for ends, each in by_link.items()},
            owner_series={ends: rows[each][None] for ends, each in by_link.items()},
            queue_peaks={
                ends: queued[each] for ends, each in by_link.items() if ends[0] not in own
            },
        )


def _step_ends(journal: Journal, steps: int) -> Numbers | None:
    """Return when each class had what it received in each step, if that is one message each."""
    ends = [(note.node, note.end_ps) for note in journal.notes if note.kind == RECEIVE]
    nodes, ends_ps = np.array(sorted(ends), np.int64).reshape(-1, 2).T
    if (np.bincount(nodes) != steps).any():
        return None
    return ends_ps.reshape(-1, steps).T


def _widened(series: list[Numbers], bin_ps: int, links: int) -> tuple[list[Numbers], int]:
    """Return series, and the width of their bins, such that all links' have few enough bins."""
    while links * len(series[0]) > MOST_CELLS:
        whole = [np.append(each, np.zeros(len(each) % 2, np.int64)) for each in series]
        series, bin_ps = [each.reshape(-1, 2).sum(axis=1) for each in whole], 2 * bin_ps
    return series, bin_ps


def _operation(endpoints: Endpoints, parts: SharedPlans, dtype: ElementType) -> CollectiveOperation:
    """Return an operation of plans whose data nobody has."""
    staging, memory = endpoints.staging(parts, dtype), endpoints.memory
    sizes = staging.nodes.tolist()
    memory.make_room(sum(map(aligned, [parts.elements * dtype.itemsize, *sizes])))
    tensors = [memory.take(parts.elements, dtype)] * parts.nodes
    buffers = [memory.take_bytes(size) for size in sizes]
    executors = endpoints.executors(parts, staging, dtype)
    return endpoints.take_up(executors, tensors, buffers, ranks=parts.nodes, group=0, channel=0)
