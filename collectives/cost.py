"""The cost of a collective on an ideal network: the alpha-beta model.

A message of b bytes takes alpha + wire_bytes(b) / rate from its first byte leaving to its
last byte arriving. Alpha is latency: it keeps no port busy. Every rank has one port, full
duplex, and the network between ports has no bottleneck. The closed forms live beside the
algorithms; `critical_path` gives the time of any schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from ringleaf.collectives.collective import Collective
from ringleaf.core.units import PS_PER_S, PS_PER_US


def _same(payload_bytes: int) -> int:
    return payload_bytes


Alpha = int | Callable[[int, int], int] | Sequence[Sequence[int]]
"""Latency in ps: one for all, or by (src, dst), or as a matrix [src][dst]."""


@dataclass(frozen=True, slots=True)
class AlphaBeta:
    """The network as the model sees it.

    `wire_bytes` turns a message's payload into bytes on the wire, headers and all;
    `aggregate_wire_bytes` does it for payload to aggregating switches, whose packets are
    smaller. `overhead_ps` is time that each message keeps its ports busy besides its bytes.
    `aggregate_ps` is the time from a host to the root of aggregation and back (RTT); by
    default that of the longest way between two hosts, which passes there too. `longest_ps` gives
    the largest alpha among so many ranks; by default all pairs are looked at.
    """

    rate_bps: int = 100_000_000_000
    alpha_ps: Alpha = PS_PER_US
    overhead_ps: int = 0
    wire_bytes: Callable[[int], int] = _same
    aggregate_wire_bytes: Callable[[int], int] = _same
    aggregate_ps: int | None = None
    longest_ps: Callable[[int], int] | None = None
    _worst_ps: dict[int, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def latency_ps(self, src: int, dst: int) -> int:
        """Return alpha from `src` to `dst`."""
        if isinstance(self.alpha_ps, int):
            return self.alpha_ps
        if callable(self.alpha_ps):
            return self.alpha_ps(src, dst)
        return self.alpha_ps[src][dst]

    def worst_latency_ps(self, ranks: int) -> int:
        """Return the largest alpha between any two of `ranks` ranks."""
        if isinstance(self.alpha_ps, int):
            return self.alpha_ps if ranks > 1 else 0
        if ranks not in self._worst_ps:  # builders that choose a number of segments ask again
            self._worst_ps[ranks] = self._longest_of_all_ps(ranks)
        return self._worst_ps[ranks]

    def _longest_of_all_ps(self, ranks: int) -> int:
        if self.longest_ps is not None:
            return self.longest_ps(ranks)
        pairs = permutations(range(ranks), 2)
        return max((self.latency_ps(*pair) for pair in pairs), default=0)

    def port_ps(self, payload_bytes: float) -> int:
        """Return the time that a message keeps a port busy."""
        wire_bytes = self.wire_bytes(round(payload_bytes))
        return self.overhead_ps + round(wire_bytes * 8 * PS_PER_S / self.rate_bps)

    def aggregation_ps(self, payload_bytes: float, ranks: int) -> int:
        """Return the time to stream `payload_bytes` through aggregating switches and back."""
        wire_bytes = self.aggregate_wire_bytes(round(payload_bytes))
        rtt_ps = self.worst_latency_ps(ranks) if self.aggregate_ps is None else self.aggregate_ps
        return round(wire_bytes * 8 * PS_PER_S / self.rate_bps) + rtt_ps


@dataclass(frozen=True, slots=True)
class Cost:
    """The figures that a closed form gives for one collective.

    `sent_bytes` is the payload that the busiest rank sends; `latency_terms` counts the
    alphas, one after the other, in `time_ps`.
    """

    time_ps: int
    sent_bytes: int
    latency_terms: int


def steps_cost(
    counts: Sequence[int], payloads: Sequence[float], ranks: int, fabric: AlphaBeta
) -> Cost:
    """Return the cost of steps in sequence, `counts[i]` of them of `payloads[i]` bytes each.

    Where alpha depends on the pair, the worst one is taken: then this is an upper bound.
    """
    alpha_ps = fabric.worst_latency_ps(ranks)
    pairs = list(zip(counts, payloads, strict=True))
    return Cost(
        time_ps=sum(count * (alpha_ps + fabric.port_ps(payload)) for count, payload in pairs),
        sent_bytes=round(sum(count * payload for count, payload in pairs)),
        latency_terms=sum(counts),
    )


SMALLEST_SEGMENT_BYTES = 4096  # smaller ones would not fill a packet
FEW_ROWS = 8192  # a schedule of no more rows costs next to nothing to execute

MANY_ROWS = 1 << 23
"""The most rows that a pipeline is cut into, for its sake: a few for each of many ranks."""


def most_segments(size_bytes: int, ranks: int, rows_per_segment: int) -> int:
    """Return the largest number of segments worth considering.

    Without overhead per message the model always wants more; real ones are bounded by the
    size of a packet, and by the number of rows: as many as a ring has, or `FEW_ROWS`, and no more
    than `MANY_ROWS`.
    """
    rows = max(FEW_ROWS, min(2 * ranks * (ranks - 1), MANY_ROWS))
    return max(1, min(size_bytes // SMALLEST_SEGMENT_BYTES, rows // max(1, rows_per_segment)))


def best_segments(time_ps: Callable[[int], int], most: int) -> int:
    """Return the number among 1, 2, 4, ... and `most` that takes least time; the fewest if tied."""
    powers = (1 << exponent for exponent in range(most.bit_length()))
    return min([*powers, most], key=time_ps)


def in_network_bound_ps(ranks: int, size_bytes: int, fabric: AlphaBeta) -> int:
    """Return the least time of an in-network allreduce: bytes go up and down once, at once."""
    return fabric.aggregation_ps(size_bytes, ranks) if ranks > 1 else 0


def point_to_point_bound_ps(
    collective: Collective, ranks: int, size_bytes: int, fabric: AlphaBeta
) -> int:
    """Return the least time of a collective between hosts alone, by the bytes through one port.

    The factors are those by which nccl-tests turns algbw into busbw (PERFORMANCE.md): S is
    the whole tensor, also for reduce-scatter and all-gather.
    """
    if ranks < 2:
        return 0
    share = (ranks - 1) / ranks
    factor = {
        Collective.ALLREDUCE: 2 * share,
        Collective.REDUCE: 1.0,
        Collective.BROADCAST: 1.0,
        Collective.REDUCE_SCATTER: share,
        Collective.ALL_GATHER: share,
        Collective.ALL_TO_ALL: share,
    }[collective]
    return round(factor * size_bytes * 8 * PS_PER_S / fabric.rate_bps)
