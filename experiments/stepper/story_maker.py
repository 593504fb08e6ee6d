"""Make a story from options, which give the collective, the topology and the data."""

from __future__ import annotations

import os
import sys
from shlex import quote
from typing import Any

import networkx as nx
import numpy as np

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.schedule import Schedule, check_asked_root
from ringleaf.collectives.verify import demanded
from ringleaf.core.mersenne import Mersenne
from ringleaf.core.tensors import Array
from ringleaf.core.units import format_count, format_time
from ringleaf.errors import ConfigError
from ringleaf.experiments.setup.cabling import Cabling
from ringleaf.experiments.setup.network import (
    divide_injection,
    fold_hierarchy,
    make_graph,
    network_options,
)
from ringleaf.experiments.setup.placing import embedding_of
from ringleaf.experiments.spec.options import options_of
from ringleaf.experiments.stepper.request import StepRequest, StepSpec, check_ranks
from ringleaf.experiments.stepper.story import Goals, Story, members
from ringleaf.experiments.stepper.transfers import first_buffers, transfer_frames
from ringleaf.topologies.graph import hosts

RANKS = 4  # unless asked for, or given by the topology
ELEMENTS = 8  # at least, and two for each chunk
MOST_FRAMES = 10_000
PACKETS_PER_RANK = 4  # of in-network aggregation, so that both versions of its slots are used
MOST_PACKETS = 64  # per rank
LARGEST = 9  # numbers are from 1 to this, to be added up in one's head


def tell(request: StepRequest) -> Story:
    """Compute the story.

    Raises:
        ConfigError: If options don't fit one another.
        ScheduleError: If the algorithm can't make a schedule for them.
        TopologyError: If there is no such topology.
    """
    graph, ranks = _place(request)
    check_ranks(ranks)
    tell_it = _tell_packets if request.algorithm.in_network else _tell_transfers
    story = tell_it(request, graph, ranks)
    if len(story.frames) > MOST_FRAMES:
        raise ConfigError(
            f"step: at most {MOST_FRAMES} frames, got {len(story.frames)}; "
            "take fewer ranks or elements"
        )
    return story


def _place(request: StepRequest) -> tuple[nx.Graph[str], int]:
    """Return the topology asked for, or a single switch; and the number of hosts that are ranks.

    The last hosts are the servers.
    """
    spec, ranks = request.spec, request.spec.ranks
    if "topo" not in spec.model_fields_set:
        ranks = ranks or request.algorithm.ranks or RANKS
    host_count = None if ranks is None else ranks + spec.servers
    graph = make_graph(divide_injection(spec.model_copy(update={"hosts": host_count})))
    return graph, len(hosts(graph)) - spec.servers


def _schedule(request: StepRequest, graph: nx.Graph[str], ranks: int, size_bytes: int) -> Schedule:
    spec = request.spec
    facts: dict[str, Any] = {
        "size_bytes": size_bytes,
        "hierarchy": fold_hierarchy(graph.graph["hierarchy"], ranks),
        "segments": spec.segments,
        "root": spec.root,
        "servers": spec.servers,
        "embedding": embedding_of(graph, ranks),
        "network": Cabling(graph),
    }
    schedule = request.algorithm.build(ranks, **facts)
    if spec.segments is not None:
        request.algorithm.check_asked({"segments": str(spec.segments)}, ranks, **facts)
    if "root" in spec.model_fields_set:
        check_asked_root(schedule, spec.root)
    return schedule


def _inputs(spec: StepSpec, ranks: int, elements: int) -> list[Array]:
    chance = Mersenne(spec.seed)
    return [chance.integers(1, LARGEST + 1, elements) for _ in range(ranks)]


def _tell_transfers(request: StepRequest, graph: nx.Graph[str], ranks: int) -> Story:
    algorithm, elements = request.algorithm, request.spec.elements or 0
    schedule = _schedule(request, graph, ranks, 4 * (elements or ELEMENTS))
    elements = elements or schedule.chunks * max(-(-ELEMENTS // schedule.chunks), 2)
    if elements < schedule.chunks:
        raise ConfigError(
            f"step: elements must be {schedule.chunks} or more, one for each chunk of "
            f"{algorithm.name} among {format_count(ranks, 'rank')}, got {elements}"
        )
    inputs = _inputs(request.spec, ranks, elements)
    frames = transfer_frames(schedule, inputs, graph)
    steps = format_count(frames[-1].step + 1 if frames else 0, "step")
    return Story(
        title=_title(algorithm),
        summary=(
            f"{_held(ranks, elements)}, in {format_count(schedule.chunks, 'chunk')}; "
            f"{format_count(len(frames), 'transfer')} in {steps}"
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


def _tell_packets(request: StepRequest, graph: nx.Graph[str], ranks: int) -> Story:
    run_uncompiled()
    from ringleaf.experiments.stepper.observed import observe
    from ringleaf.experiments.stepper.packets import packet_frames
    from ringleaf.experiments.stepper.terns import TERNS
    from ringleaf.experiments.stepper.votes import VOTES

    algorithm, spec = request.algorithm, request.spec
    blocks = {"vote": VOTES, "tern": TERNS}.get(algorithm.name)
    lanes = blocks.size if blocks else spec.lanes
    elements = spec.elements or (1 if blocks else PACKETS_PER_RANK) * lanes
    schedule = _schedule(request, graph, ranks, 4 * elements)
    most = MOST_PACKETS * lanes
    if not schedule.chunks <= elements <= most:
        raise ConfigError(
            f"step: elements must be {schedule.chunks} to {most}, {MOST_PACKETS} packets from "
            f"each rank, got {elements}"
        )
    if blocks:
        blocks.check_elements(elements, ranks)
        inputs = blocks.draw(ranks, elements, spec.seed)
    else:
        inputs = _inputs(spec, ranks, elements)
    options = network_options(spec, algorithm.name)
    assert options.system is not None  # as the algorithm is one of switches
    in_flight = options.system.in_flight(spec.slots or 0, lanes)
    observed = observe(graph, options, schedule, inputs, spec.seed, blocks)
    story = packet_frames(observed, [array.astype(np.int32).tolist() for array in inputs])
    time_ps = story.frames[-1].time_ps or 0
    lost = sum(sight.lost for event in observed.events for sight in event.sights)
    return Story(
        title=_title(algorithm),
        summary=(
            f"{_held(ranks, elements)}, {lanes} to a packet, {in_flight}; "
            f"{format_count(len(story.frames), 'packet')} and hops, {lost} lost, in "
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


def _held(ranks: int, elements: int) -> str:
    """Return what there is at the start: `4 ranks with 8 numbers each`."""
    return f"{format_count(ranks, 'rank')} with {format_count(elements, 'number')} each"


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
    words = [f"ringleaf step {quote(*request.spec.algos)} --ranks {ranks} --elements {elements}"]
    for name, option in options_of(StepSpec).items():
        typed = request.typed.get(name, option.default)
        if typed != option.default and name not in ("ranks", "elements"):
            words.append(f"{option.flags.split()[0]} {quote(typed)}")
    return " ".join(words)


def run_uncompiled() -> None:
    """Keep Numba, if not imported yet, from compiling, which takes longer than the job."""
    if "numba" not in sys.modules:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
