"""Ways of an all-gather's chunks: a tree for each, by a program in whole numbers or greedily.

Source:
    Shah et al., "TACCL", NSDI 2023, section 5.1; github.com/microsoft/taccl 426bd1e: a chunk comes
    to each rank once; it leaves a rank after it has come; the time is at least that of each link's
    chunks one after the other (bandwidth is relaxed: chunks do not wait for one another); links on
    shortest ways only; symmetric variables are one. There indicators are Gurobi's; here they are
    large constants.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ringleaf.collectives.synthesis.integers import IntegerProgram
from ringleaf.collectives.synthesis.sketch import ANY, FEW, Sketch
from ringleaf.collectives.wires import Pair, RankNetwork

Routes = dict[int, dict[int, int]]
"""Chunk -> rank -> the rank that sends it there; the owner is not in it."""

Named = tuple[int, tuple[int, ...]]
"""A chunk, with the ends of a link or with a rank."""


@dataclass(frozen=True, slots=True)
class Routed:
    """Trees, and how far their relaxed time may be above the least: a share."""

    routes: Routes
    gap: float


def candidates(wires: RankNetwork, chunks: int, longer: int) -> dict[int, list[Pair]]:
    """Return the links that each chunk may take: on ways of few hops from its owner."""
    hops = [_hops(wires, owner) for owner in range(wires.ranks)]
    back = [_hops(wires.mirrored, rank) for rank in range(wires.ranks)]
    by_chunk: dict[int, list[Pair]] = {}
    for owner in range(wires.ranks):
        links = [
            (a, b)
            for a, b in wires.ways
            if b != owner
            and any(
                hops[owner][a] + 1 + back[end][b] <= hops[owner][end] + longer
                for end in range(wires.ranks)
            )
        ]
        by_chunk |= dict.fromkeys(range(owner * chunks, (owner + 1) * chunks), links)
    return by_chunk


def _hops(wires: RankNetwork, start: int) -> dict[int, int]:
    onward: dict[int, list[int]] = {}
    for a, b in wires.ways:
        onward.setdefault(a, []).append(b)
    hops, frontier = {start: 0}, [start]
    for node in frontier:
        for peer in onward.get(node, ()):
            if peer not in hops:
                hops[peer] = hops[node] + 1
                frontier.append(peer)
    return hops


class Orbits:
    """Gives one name to what is the same under symmetries: a chunk with ranks, in a tuple.

    Args:
        turns: For each symmetry, the rank that each rank is like.
        chunks: Chunks of each rank.
    """

    def __init__(self, turns: list[list[int]], chunks: int) -> None:
        self._turns, self._chunks = turns, chunks
        self._names: dict[Named, Named] = {}

    def __call__(self, chunk: int, ranks: tuple[int, ...]) -> Named:
        first = chunk, ranks
        if first not in self._names:
            orbit = [first]
            self._names[first] = first
            for at, places in orbit:
                owner, place = divmod(at, self._chunks)
                for turn in self._turns:
                    twin = turn[owner] * self._chunks + place, tuple(turn[r] for r in places)
                    if twin not in self._names:
                        self._names[twin] = first
                        orbit.append(twin)
        return self._names[first]


class _Model:
    """The program: a bit for each chunk and link, a time for each chunk and rank."""

    def __init__(self, turns: list[list[int]], chunks: int, times: dict[Pair, float]) -> None:
        self._name = Orbits(turns, chunks)
        self._chunks, self._times, self._most = chunks, times, sum(times.values())
        self._variables: dict[Named, int] = {}
        self._rows: set[tuple[object, ...]] = set()
        self.program = IntegerProgram()
        self.end = self.program.add(1.0)

    def bit(self, chunk: int, pair: Pair) -> int:
        """Return the variable that says whether a chunk goes over a link."""
        name = self._name(chunk, pair)
        if name not in self._variables:
            self._variables[name] = self.program.add(most=1.0, is_whole=True)
        return self._variables[name]

    def start(self, chunk: int, rank: int) -> int:
        """Return the variable that says when a rank has a chunk."""
        name = self._name(chunk, (rank,))
        if name not in self._variables:
            most = 0.0 if chunk // self._chunks == rank else self._most
            self._variables[name] = self.program.add(most=most)
        return self._variables[name]

    def demand(
        self, items: Iterable[tuple[int, float]], least: float, *, exactly: bool = False
    ) -> None:
        """Have a sum be at least so much; of symmetric rows there is one."""
        row: dict[int, float] = {}
        for variable, factor in items:
            row[variable] = row.get(variable, 0.0) + factor
        key = *sorted(row.items()), least, exactly
        if key not in self._rows:
            self._rows.add(key)
            self.program.demand(row, least, exactly=exactly)

    def spread(self, chunk: int, pairs: list[Pair]) -> None:
        """Have a chunk come to each rank once, from one that had it before."""
        arriving: dict[int, list[int]] = {}
        for a, b in pairs:
            bit, begun, come = self.bit(chunk, (a, b)), self.start(chunk, a), self.start(chunk, b)
            arriving.setdefault(b, []).append(bit)
            late = self._times[a, b] + self._most
            self.demand([(come, 1.0), (begun, -1.0), (bit, -late)], -self._most)
        for b, bits in arriving.items():
            self.demand([(bit, 1.0) for bit in bits], 1.0, exactly=True)
            self.demand([(self.end, 1.0), (self.start(chunk, b), -1.0)], 0.0)

    def load(self, pair: Pair, bits: list[int]) -> None:
        """Have a link's chunks go one after the other."""
        self.demand([(self.end, 1.0), *((bit, -self._times[pair]) for bit in bits)], 0.0)


def route(
    wires: RankNetwork, chunks: int, times: dict[Pair, float], sketch: Sketch, limit_s: float
) -> Routed | None:
    """Return the trees of the least relaxed time, or the best found in time; None: there are none.

    Args:
        wires: A network in which ways do not meet.
        chunks: Chunks that each rank contributes.
        times: The time of a chunk on each link, the least of them 1.
        sketch: Symmetry and preferences.
        limit_s: Time that the search may take.
    """
    links = candidates(wires, chunks, sketch.longer)
    model = _Model(sketch.turns(wires), chunks, times)
    on: dict[Pair, list[int]] = {}
    for chunk, pairs in links.items():
        model.spread(chunk, pairs)
        for pair in pairs:
            on.setdefault(pair, []).append(model.bit(chunk, pair))
    for pair, bits in on.items():
        model.load(pair, bits)
    if sketch.prefer != ANY and sketch.weight:
        _prefer(model.program, on, sketch)
    solution = model.program.solve(limit_s)
    if solution is None:
        return None
    routes: Routes = {chunk: {} for chunk in links}
    for chunk, pairs in links.items():
        for a, b in pairs:
            if solution.values[model.bit(chunk, (a, b))] > 0.5:
                routes[chunk][b] = a
    return Routed(routes, solution.gap)


def _prefer(program: IntegerProgram, on: dict[Pair, list[int]], sketch: Sketch) -> None:
    """Have few links be used, or many, where times are equal."""
    is_few = sketch.prefer == FEW
    for bits in dict.fromkeys(tuple(sorted(bits)) for bits in on.values()):
        used = program.add(sketch.weight if is_few else -sketch.weight, 1.0)
        if is_few:
            for bit in set(bits):
                program.demand({used: 1.0, bit: -1.0}, 0.0)
        else:
            program.demand({used: -1.0, **dict.fromkeys(bits, 1.0)}, 0.0)


def greedy_routes(wires: RankNetwork, chunks: int, times: dict[Pair, float]) -> Routes:
    """Return trees that grow by the link that is free first: no optimum, but at once."""
    load = dict.fromkeys(wires.ways, 0.0)
    routes: Routes = {}
    for turn in range(wires.ranks * chunks):
        chunk = turn % wires.ranks * chunks + turn // wires.ranks
        owner = chunk // chunks
        at, routes[chunk] = {owner: 0.0}, {}
        while len(at) < wires.ranks:
            end, (a, b) = min(
                (max(at[pair[0]], load[pair]) + times[pair], pair)
                for pair in wires.ways
                if pair[0] in at and pair[1] not in at
            )
            at[b], routes[chunk][b] = end, a
            load[a, b] += times[a, b]
    return routes
