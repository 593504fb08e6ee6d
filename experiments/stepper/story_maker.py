"""Make a story from options, which give the collective, the topology and the data."""

from __future__ import annotations

import os
import sys
from shlex import quote

import networkx as nx
import numpy as np

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.registry import find_algorithm
from ringleaf.collectives.schedule import Schedule
from ringleaf.collectives.verify import demanded
from ringleaf.errors import ConfigError
from ringleaf.experiments.setup.cabling import Cabling
from ringleaf.experiments.setup.network import build_topology, fold_hierarchy
from ringleaf.experiments.setup.placing import embedding_of
from ringleaf.experiments.stepper.request import TIMED, StepRequest, check_ranks, check_request
from ringleaf.experiments.stepper.story import Goals, Story, members
from ringleaf.experiments.stepper.transfers import first_buffers, transfer_frames
from ringleaf.mersenne import Mersenne
from ringleaf.plausible import link_rate
from ringleaf.tensors import Array
from ringleaf.topologies.delays import with_delays
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.injection import divide_ports
from ringleaf.units import PS_PER_US, format_time, parse_fraction, parse_time

RANKS = 4  # unless asked for, or given by the topology
ELEMENTS = 8  # at least, and two for each chunk
MOST_FRAMES = 10_000
PACKETS_PER_RANK = 4  # of in-network aggregation, so that both versions of its slots are used
MOST_PACKETS = 64  # per rank
SLOTS = 2
LARGEST = 9  # numbers are from 1 to this, to be added up in one's head

RATE_BPS = 100_000_000_000
DELAY_PS = PS_PER_US


def tell(request: StepRequest) -> Story:
    """Compute the story.

    Raises:
        ConfigError: If options don't fit one another.
        ScheduleError: If the algorithm can't make a schedule for them.
        TopologyError: If there is no such topology.
    """
    algorithm = find_algorithm(request.algo)
    check_request(request)
    graph, ranks = _place(request, algorithm)
    check_ranks(ranks)
    tell_it = _tell_packets if algorithm.in_network else _tell_transfers
    story = tell_it(request, algorithm, graph, ranks)
    if len(story.frames) > MOST_FRAMES:
        raise ConfigError(
            f"step: at most {MOST_FRAMES} frames, got {len(story.frames)}; "
            "take fewer ranks or elements"
        )
    return story


def _place(request: StepRequest, algorithm: Algorithm) -> tuple[nx.Graph[str], int]:
    """Return the topology asked for, or a single switch; and the number of hosts that are ranks.

    The last hosts are the servers.
    """
    ranks, servers, topo = request.ranks, request.servers, request.topo
    if topo is None:
        ranks = ranks or algorithm.ranks or RANKS
        topo = f"leafspine,leaves=1,spines=0,hosts={ranks + servers}"
    host_count = None if ranks is None else ranks + servers
    rate_bps = RATE_BPS
    if request.inject is not None:
        inject_bps = link_rate(request.inject, "step: inject")
        topo, rate_bps = divide_ports(topo, inject_bps, hosts=host_count)
    graph = build_topology(topo, rate_bps=rate_bps, delay_ps=DELAY_PS, hosts=host_count)
    graph = with_delays(
        graph,
        switch_delay_ps=parse_time(request.switch_delay, "step: switch_delay"),
        host_delay_ps=parse_time(request.host_delay, "step: host_delay"),
    )
    return graph, len(hosts(graph)) - servers


def _schedule(
    request: StepRequest, algorithm: Algorithm, graph: nx.Graph[str], ranks: int, size_bytes: int
) -> Schedule:
    return algorithm.build(
        ranks,
        size_bytes=size_bytes,
        hierarchy=fold_hierarchy(graph.graph["hierarchy"], ranks),
        segments=request.segments,
        root=request.root,
        servers=request.servers,
        embedding=embedding_of(graph, ranks),
        network=Cabling(graph),
    )


def _inputs(request: StepRequest, ranks: int, elements: int) -> list[Array]:
    chance = Mersenne(request.seed)
    return [chance.integers(1, LARGEST + 1, elements) for _ in range(ranks)]


def _tell_transfers(
    request: StepRequest, algorithm: Algorithm, graph: nx.Graph[str], ranks: int
) -> Story:
    elements = request.elements or 0
    schedule = _schedule(request, algorithm, graph, ranks, 4 * (elements or ELEMENTS))
    elements = elements or schedule.chunks * max(-(-ELEMENTS // schedule.chunks), 2)
    if elements < schedule.chunks:
        raise ConfigError(
            f"step: elements must be {schedule.chunks} or more, one for each chunk of "
            f"{algorithm.name} among {ranks} ranks, got {elements}"
        )
    inputs = _inputs(request, ranks, elements)
    frames = transfer_frames(schedule, inputs, graph)
    steps = frames[-1].step + 1 if frames else 0
    return Story(
        title=_title(algorithm),
        summary=(
            f"{ranks} ranks with {elements} numbers each, in {schedule.chunks} "
            f"chunk{'s' * (schedule.chunks > 1)}; {len(frames)} transfers in {steps} steps"
        ),
        command=_command(request, ranks, elements),
        graph=graph,
        ranks=ranks,
        cells=tuple(f"chunk {chunk}" for chunk in range(schedule.chunks)),
        first=first_buffers(schedule, inputs),
        goals=_goals(schedule, list(range(schedule.chunks))),
        frames=frames,
        exact=schedule.codec is None or schedule.codec.is_lossless,
        nodes=schedule.nodes,
    )


def _tell_packets(
    request: StepRequest, algorithm: Algorithm, graph: nx.Graph[str], ranks: int
) -> Story:
    run_uncompiled()
    from ringleaf.experiments.stepper.observed import observe
    from ringleaf.experiments.stepper.packets import packet_frames
    from ringleaf.experiments.stepper.terns import TERNS
    from ringleaf.experiments.stepper.votes import VOTES
    from ringleaf.ina.registry import find_system
    from ringleaf.networks.options import NetworkOptions

    blocks = {"vote": VOTES, "tern": TERNS}.get(algorithm.name)
    lanes = blocks.size if blocks else request.lanes
    elements = request.elements or (1 if blocks else PACKETS_PER_RANK) * lanes
    schedule = _schedule(request, algorithm, graph, ranks, 4 * elements)
    most = MOST_PACKETS * lanes
    if not schedule.chunks <= elements <= most:
        raise ConfigError(
            f"step: elements must be {schedule.chunks} to {most}, {MOST_PACKETS} packets from "
            f"each rank, got {elements}"
        )
    if blocks:
        blocks.check_elements(elements, ranks)
        inputs = blocks.draw(ranks, elements, request.seed)
    else:
        inputs = _inputs(request, ranks, elements)
    slots = request.slots or SLOTS
    options = NetworkOptions(
        system=find_system(algorithm.name),
        lanes=request.lanes,
        slots=slots,
        loss=parse_fraction(request.loss, "step: loss"),
        servers=request.servers,
        message_overhead_ps=parse_time(request.message_overhead, "step: message_overhead"),
    )
    observed = observe(graph, options, schedule, inputs, request.seed, blocks)
    story = packet_frames(observed, [array.astype(np.int32).tolist() for array in inputs])
    time_ps = story.frames[-1].time_ps or 0
    lost = sum(sight.lost for event in observed.events for sight in event.sights)
    return Story(
        title=_title(algorithm),
        summary=(
            f"{ranks} ranks with {elements} numbers each, {lanes} to a packet, in {slots} "
            f"slots of the switches; {len(story.frames)} packets and hops, {lost} lost, in "
            f"{format_time(time_ps)} of virtual time"
        ),
        command=_command(request, ranks, elements),
        graph=graph,
        ranks=ranks,
        cells=story.cells,
        first=story.first,
        goals=_goals(schedule, [0] * len(story.cells)),
        frames=story.frames,
        exact=blocks is None or blocks.is_exact,
    )


def _goals(schedule: Schedule, chunks: list[int]) -> Goals:
    """Return the contributions that each rank's cells must hold; `chunks` has each cell's chunk."""
    return tuple(
        tuple(
            None if (bits := demanded(schedule, rank, chunk)) is None else members(bits)
            for chunk in chunks
        )
        for rank in range(schedule.places)
    )


def _title(algorithm: Algorithm) -> str:
    """Return a title: `Ring allreduce`; the collective is left out if the name contains it."""
    collective = algorithm.collective.value.replace("_", "-")
    words = algorithm.title if collective in algorithm.title else f"{algorithm.title} {collective}"
    return words[0].upper() + words[1:]


def _command(request: StepRequest, ranks: int, elements: int) -> str:
    words = [f"ringleaf step {quote(request.algo)} --ranks {ranks} --elements {elements}"]
    default = StepRequest(request.algo)
    names = ("topo", "segments", "root", "servers", "lanes", "slots", "loss", *TIMED, "seed")
    for name in names:
        if getattr(request, name) != getattr(default, name):
            words.append(f"--{name.replace('_', '-')} {getattr(request, name)}")
    return " ".join(words)


def run_uncompiled() -> None:
    """Keep Numba, if not imported yet, from compiling, which takes longer than the job."""
    if "numba" not in sys.modules:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
