"""Flows between pairs of ranks as graphs of work, and patterns of them.

A flow is a message that its sender gives away at a time. It depends on no other flow, but for the
pattern `ring`, in which each message but the first waits for the one that its sender has received.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ringleaf.errors import ConfigError, choose
from ringleaf.hosts.workload.flow_sizes import DISTRIBUTIONS, Distribution
from ringleaf.hosts.workload.graph import Graph, NodeKind, RankWork, WorkNode, check_ranks

LABEL = "flow"
"""The kind of traffic that flows are, in tables."""

RING = "ring"
RANDOM = "random"


@dataclass(frozen=True, slots=True)
class TimedFlow:
    """A message of `size_bytes` from one rank to another, from `start_ps` on."""

    source: int
    target: int
    size_bytes: int
    start_ps: int = 0


@dataclass(frozen=True, slots=True)
class FlowFile:
    """The flows of a file.

    Attributes:
        flows: The flows.
        ranks: The number of ranks; None: those that send or receive, and those before them.
        notes: Lines on parts of the file that are not used.
    """

    flows: Sequence[TimedFlow]
    ranks: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Traffic:
    """The sizes of a pattern.

    Attributes:
        pattern: Its name, of `PATTERNS`.
        ranks: The number of ranks, at least 2.
        sizes_bytes: Sizes of flows. They go round among the flows, in a random order; all messages
            of `ring` have the first one.
        flows: The number of flows of `random`.
        interval_ps: The mean time between two starts of `random`.
        seed: Of all that is random.
        drawn: The distribution of sizes, which are drawn from it then; None: they are
            `sizes_bytes`.
    """

    pattern: str
    ranks: int
    sizes_bytes: tuple[int, ...]
    flows: int
    interval_ps: int
    seed: int
    drawn: Distribution | None = None


Pairs = list[tuple[int, int]]
"""Sources and destinations of flows."""


def incast(traffic: Traffic, rng: random.Random) -> Pairs:
    """All others send to one rank."""
    target = rng.randrange(traffic.ranks)
    return [(rank, target) for rank in range(traffic.ranks) if rank != target]


def permutation(traffic: Traffic, rng: random.Random) -> Pairs:
    """Each rank sends to another, and each receives from another: one cycle of all ranks."""
    order = rng.sample(range(traffic.ranks), traffic.ranks)
    return sorted(zip(order, order[1:] + order[:1], strict=True))


def all_to_all(traffic: Traffic, rng: random.Random) -> Pairs:
    """Each rank sends to all others, beginning with the one after it, and all at once."""
    del rng
    ranks = traffic.ranks
    return [
        (rank, (rank + distance) % ranks) for distance in range(1, ranks) for rank in range(ranks)
    ]


def anywhere(traffic: Traffic, rng: random.Random) -> Pairs:
    """Flows between random pairs, which start at random times: a Poisson process."""
    return [
        (pair[0], pair[1])
        for pair in (rng.sample(range(traffic.ranks), 2) for _ in range(traffic.flows))
    ]


def neighbours(traffic: Traffic, rng: random.Random) -> Pairs:
    """Each rank sends 2(n - 1) messages to the next one, as in a ring all-reduce."""
    del rng
    ranks = traffic.ranks
    return [(rank, (rank + 1) % ranks) for _ in range(2 * (ranks - 1)) for rank in range(ranks)]


PATTERNS: dict[str, Callable[[Traffic, random.Random], Pairs]] = {
    "incast": incast,
    "permutation": permutation,
    "all-to-all": all_to_all,
    RING: neighbours,
    RANDOM: anywhere,
    **dict.fromkeys(DISTRIBUTIONS, anywhere),
}

AT_RANDOM = (RANDOM, *DISTRIBUTIONS)
"""The patterns whose flows start at random times, and may be given by a load."""


def make_flows(traffic: Traffic) -> list[TimedFlow]:
    """Return the flows of a pattern; the same for the same sizes and seed.

    Raises:
        ConfigError: If there is no such pattern, or there are fewer than 2 ranks.
    """
    choose("pattern", "pattern", traffic.pattern, PATTERNS)
    if check_ranks("ranks", traffic.ranks) < 2:
        raise ConfigError(f"ranks: flows need 2 ranks at least, got {traffic.ranks}")
    rng = random.Random(f"{traffic.pattern} {traffic.seed}")
    pairs = PATTERNS[traffic.pattern](traffic, rng)
    if traffic.drawn is not None:
        sizes = [traffic.drawn.draw(rng) for _ in pairs]
    else:
        cycle = traffic.sizes_bytes[:1] if traffic.pattern == RING else traffic.sizes_bytes
        sizes = [cycle[number % len(cycle)] for number in range(len(pairs))]
        rng.shuffle(sizes)
    flows, start_ps = [], 0
    for (source, target), size in zip(pairs, sizes, strict=True):
        if traffic.pattern in AT_RANDOM:
            start_ps += round(rng.expovariate(1) * traffic.interval_ps)
        flows.append(TimedFlow(source, target, size, start_ps))
    return flows


def graph_of(
    name: str,
    flows: Sequence[TimedFlow],
    *,
    ranks: int | None = None,
    notes: tuple[str, ...] = (),
    in_turn: bool = False,
) -> Graph:
    """Return the graph of work of flows.

    Args:
        name: The graph's name.
        flows: The flows. Each has a tag of its own, so that none waits for another.
        ranks: The number of ranks; None: up to the last one that sends or receives.
        notes: Lines on where the flows are from.
        in_turn: Whether a rank's n-th message waits for the one before it that it receives.
    """
    ranks = ranks or 1 + max(max(flow.source, flow.target) for flow in flows)
    nodes: list[list[WorkNode]] = [[] for _ in range(ranks)]
    received: list[list[int]] = [[] for _ in range(ranks)]
    sent = [0] * ranks

    def add(rank: int, kind: NodeKind, **more: object) -> int:
        number = len(nodes[rank])
        nodes[rank].append(WorkNode(number, kind, **more))  # type: ignore[arg-type]
        return number

    for tag, flow in enumerate(flows):
        after: tuple[int, ...] = ()
        if flow.start_ps:
            after = (add(flow.source, NodeKind.COMPUTE, duration_ps=flow.start_ps, stream=tag + 1),)
        if in_turn and sent[flow.source]:
            after += (received[flow.source][sent[flow.source] - 1],)
        sent[flow.source] += 1
        about = {"size_bytes": flow.size_bytes, "tag": tag, "label": LABEL}
        add(flow.source, NodeKind.SEND, peer=flow.target, after=after, **about)
        received[flow.target].append(add(flow.target, NodeKind.RECEIVE, peer=flow.source, **about))
    works = tuple(RankWork(tuple(each)) for each in nodes)
    return Graph(name, works, notes=notes, are_flows=True)
