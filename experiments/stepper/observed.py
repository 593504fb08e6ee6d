"""A collective really run, in virtual time, with hosts' and switches' state after each event.

Sums don't show which ranks' numbers are in them. So the job runs again with tracers as numbers:
rank r brings 4^r, and the base-4 digits of a sum are how often each rank is in it (a window of
`WINDOW` ranks per run). Packets come and go at the same times whatever they carry, so events of
the runs match. It is always the P4 program that adds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import networkx as nx
import numpy as np

from ringleaf.collectives.schedule import Schedule
from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES, MIN_FRAME_BYTES
from ringleaf.core.tensors import Array
from ringleaf.core.units import serialize_ps
from ringleaf.errors import ConfigError
from ringleaf.experiments.stepper.blocks import SparseBlocks
from ringleaf.ina.reading import EntryFact, SystemReader
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.networks.virtual.watch import Sight
from ringleaf.switches.switch import Switch
from ringleaf.topologies.delays import node_delay_ps
from ringleaf.topologies.graph import link

WINDOW = 15  # ranks per run: 30 bits, as sums are of 31 and a sign
FEWEST_LANES = 4  # registers numbered alike that are taken for lanes, not for scalars


@dataclass(frozen=True, slots=True)
class RegisterEntry:
    """One index of a switch's registers: scalars by the last part of their name, and lanes."""

    scalars: Mapping[str, int]
    lanes: tuple[int, ...]
    facts: tuple[EntryFact, ...]


@dataclass(frozen=True, slots=True)
class Instant:
    """The packets that came and left at a time, and the state after that."""

    sights: tuple[Sight, ...]
    held: Mapping[
        str, Mapping[int, RegisterEntry]
    ]  # by switch and index; of the switches at the packets
    counted: Mapping[str, Mapping[str, int]]  # by switch: packets of each counter's rows
    tensors: tuple[tuple[int, ...], ...]  # by rank


@dataclass(frozen=True, slots=True)
class Observed:
    """One run with the real numbers, and its twins with tracers, one for each window."""

    events: tuple[Instant, ...]
    traced: tuple[tuple[Instant, ...], ...]
    readable: SystemReader | None
    blocks: SparseBlocks | None = None  # of a system whose numbers have few values
    ranks: int = 0

    def who(self, values: Sequence[int]) -> tuple[int, ...]:
        """Return the ranks whose contributions are in a number.

        Args:
            values: The number that the run of each window has in its place.
        """
        ranks = []
        for window, value in enumerate(values):
            for digit in range(WINDOW):
                rank = WINDOW * window + digit
                ranks += [rank] * (value >> 2 * digit & 3)
        return tuple(ranks)

    def who_in(self, number: int, rank: int, start: int) -> tuple[int, ...]:
        """Return the ranks whose contributions are in a rank's elements from `start` on."""
        twins = [twin[number].tensors[rank] for twin in self.traced]
        if self.blocks is not None:
            return self.blocks.who(twins[0][start:], self.ranks)
        return self.who([twin[start] for twin in twins])

    def ranges(self, elements: int) -> list[tuple[int, int]]:
        """Cut tensors where neighbours ever had different contributions; return the ranges."""
        if self.blocks is not None:
            return self.blocks.ranges(elements)
        cuts = {0, elements}
        for run in self.traced:
            for tensor in {tensor for event in run for tensor in event.tensors}:
                cuts.update(i for i, (a, b) in enumerate(pairwise(tensor), 1) if a != b)
        return list(pairwise(sorted(cuts)))


def observe(
    graph: nx.Graph[str],
    options: NetworkOptions,
    schedule: Schedule,
    inputs: Sequence[Array],
    seed: int,
    blocks: SparseBlocks | None = None,
) -> Observed:
    """Run the schedule on whole numbers (int32), or on those of `blocks`, with tracers too.

    Raises:
        ConfigError: If options, topology and system don't fit one another, or there are too many
            ranks for a system that sends nothing for zeros.
    """
    events = _run(graph, options, schedule, inputs, seed)
    if blocks is not None:
        beside = blocks.beside(schedule.ranks, inputs[0].size)
        twin = _run(graph, options, schedule, beside, seed)
        return Observed(events, (twin,), _readable(options), blocks, schedule.ranks)
    windows = range(-(-schedule.ranks // WINDOW))
    traced = [_run(graph, options, schedule, _tracers(inputs, window), seed) for window in windows]
    if any(len(twin) != len(events) for twin in traced):
        raise ConfigError(
            f"step: packets of {schedule.algorithm} depend on the numbers, so more than {WINDOW} "
            f"ranks can't be traced, got {schedule.ranks}"
        )
    return Observed(events, tuple(traced), _readable(options))


def _readable(options: NetworkOptions) -> SystemReader | None:
    """Return the object that explains the registers and packets of a network's system, if any."""
    reader = options.system.reader() if options.system is not None else None
    return reader if isinstance(reader, SystemReader) else None


def _tracers(inputs: Sequence[Array], window: int) -> list[Array]:
    arrays = [np.zeros_like(array) for array in inputs]
    for digit, array in enumerate(arrays[WINDOW * window : WINDOW * (window + 1)]):
        array.fill(1 << 2 * digit)
    return arrays


def _run(
    graph: nx.Graph[str],
    options: NetworkOptions,
    schedule: Schedule,
    inputs: Sequence[Array],
    seed: int,
) -> tuple[Instant, ...]:
    network = VirtualNetwork(graph, options, seed=seed)
    arrays = network.arrays(inputs[0].size, inputs[0].dtype, schedule)
    for array, values in zip(arrays, inputs, strict=True):
        array[:] = values
    readers = {name: _Reader(graph, switch, options) for name, switch in network.switches.items()}
    events: list[Instant] = []

    def see(seen: Sequence[Sight]) -> None:
        sights = [
            replace(each, time_ps=due_ps(graph, each)) if each.lost else each for each in seen
        ]
        here = sorted({sight.place.node for sight in sights} & readers.keys())
        events.append(
            Instant(
                tuple(sights),
                {name: readers[name].held() for name in here},
                {name: readers[name].counted() for name in here},
                tuple(tuple(map(int, array.tolist())) for array in arrays),
            )
        )

    network.watch(see)
    with np.errstate(over="ignore"):  # sums of uint64 wrap, where nothing is compiled
        network.run(schedule, arrays)
        network.close()
    return tuple(events)


def due_ps(graph: nx.Graph[str], sight: Sight) -> int:
    """Return when a packet that was sent is to be at the other end of its link.

    A lost one is told of then, beside the packets that were sent at the same time and arrived.
    """
    wire = link(graph, sight.place.node, sight.place.peer)
    line = max(len(sight.data), MIN_FRAME_BYTES) + LINE_OVERHEAD_BYTES
    inside_ps = node_delay_ps(graph, sight.place.peer)
    return sight.time_ps + serialize_ps(line, wire.rate_bps) + wire.delay_ps + inside_ps


class _Reader:
    """Reads a switch's registers through its control plane."""

    def __init__(self, graph: nx.Graph[str], switch: Switch, options: NetworkOptions) -> None:
        self._graph = graph
        self._switch = switch
        self._readable = _readable(options)
        registers = switch.program.source.registers
        self._scalars, self._lanes = split_lanes(list(registers))
        self._widths = {name: register.width for name, register in registers.items()}
        self._counters = {
            name: counter.size for name, counter in switch.program.source.counters.items()
        }

    def held(self) -> dict[int, RegisterEntry]:
        """Return the registers that are not zero, by index."""
        cells = {name: self._switch.read_registers(name) for name in self._scalars + self._lanes}
        indices = sorted({index for register in cells.values() for index in register})
        return {index: self._register(cells, index) for index in indices}

    def counted(self) -> dict[str, int]:
        """Return the packets of each row of each indirect counter, by the row's name."""
        return {
            self._name_row(_last(name), row): self._switch.read_counter(name, row).packets
            for name, size in self._counters.items()
            for row in range(size)
        }

    def _name_row(self, counter: str, row: int) -> str:
        if self._readable is not None:
            return self._readable.read_counter(counter, row)
        return f"{counter}[{row}]"

    def _register(self, cells: Mapping[str, Mapping[int, int]], index: int) -> RegisterEntry:
        scalars = {_last(name): cells[name].get(index, 0) for name in self._scalars}
        lanes = tuple(
            _signed(cells[name].get(index, 0), self._widths[name]) for name in self._lanes
        )
        if self._readable is not None:
            facts = tuple(self._readable.read_entry(self._graph, self._switch, index, scalars))
        else:
            facts = tuple(EntryFact(name, str(value)) for name, value in scalars.items())
            facts = (EntryFact("index", str(index)), *facts)
        return RegisterEntry(scalars, lanes, facts)


def split_lanes(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the registers that stand alone, and those of the largest family of numbered names."""
    families: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        if match := re.fullmatch(r"(.*?)(\d+)", name):
            families.setdefault(match[1], []).append((int(match[2]), name))
    largest = max(families.values(), key=len, default=[])
    if len(largest) < FEWEST_LANES:
        return list(names), []
    lanes = [name for _, name in sorted(largest)]
    return [name for name in names if name not in set(lanes)], lanes


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _signed(word: int, width: int) -> int:
    """Return a lane as a number of 32 bits; wider ones are bits of many elements."""
    return word - (1 << 32) if width == 32 and word >> 31 else word
