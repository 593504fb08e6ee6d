"""Results of a run, on whichever network: times, bytes, queues, drops, processors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringleaf.core.units import format_count

BOUND = 0.85  # busy for this share of the time counts as always: ticks are coarse

Direction = tuple[str, str]  # of a link: from, to

MOST_CELLS = 1 << 23
"""Links times bins of a result's series; bins are wider where there would be more."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Packets of one source that one queue dropped; live, only queues and packets are known."""

    switch: str  # "": several queues, as there were too many to count each
    port: int  # as the switch knows it
    peer: str  # the node that it leads to
    level: int | None = None  # class
    source: str = ""  # the host whose address the packets had as source
    packets: int = 0
    size_bytes: int | None = None  # of their frames
    first_ps: int | None = None  # since the run's start
    last_ps: int | None = None


Forbidden = Counter[tuple[str, str]]
"""Packets that switches dropped as their programs forbid them: by switch, and by what."""


def forbidden_by(reasons: Mapping[str, Mapping[str, int]]) -> Forbidden:
    """Return the counts of packets that switches have dropped, each by reason."""
    return Counter(
        {(name, label): n for name, counts in reasons.items() for label, n in counts.items()}
    )


_NAMED = 4  # switches and reasons that a line names


def tell_forbidden(counts: Forbidden) -> str:
    """Return which switches dropped packets that their programs forbid, and why; "": none did."""
    phrases = [
        f"{name} dropped {format_count(count, 'packet')} by {label}"
        for (name, label), count in counts.items()
    ]
    more = [f"{len(phrases) - _NAMED} more"] if phrases[_NAMED:] else []
    return "; ".join([*phrases[:_NAMED], *more])


@dataclass(frozen=True, slots=True)
class ProcessorSeconds:
    """Seconds of the processors while something ran for `wall_s`.

    The kernel's handling of packets, `softirq_s`, happens in the middle of whatever runs; where
    the kernel doesn't keep its time apart, it is in `hosts_s` and `switches_s`, too.
    """

    wall_s: float
    processors: int
    busy_s: float  # of all processors, for any work
    softirq_s: float
    hosts_s: float
    switches_s: float  # of all switches' processes
    is_one_thread: bool  # whether the switches share one thread

    def share(self, used_s: float) -> float:
        """Return a time as a share of all processors' time."""
        return used_s / (self.wall_s * self.processors)

    @property
    def others_s(self) -> float:
        """The time of all other processes than hosts' and switches', and of the kernel itself."""
        return max(self.busy_s - self.hosts_s - self.switches_s, 0.0)

    @property
    def limit(self) -> str:
        """The saturated part: "all processors", "the switches' thread", or "" for none."""
        if self.share(self.busy_s) >= BOUND:
            return "all processors"
        if self.is_one_thread and self.switches_s >= BOUND * self.wall_s:
            return "the switches' thread"
        return ""


SEND, RECEIVE, AGGREGATE = "send", "receive", "aggregate"


class Note(NamedTuple):
    """One node's part in a message, or in an aggregate; times are since the run's start."""

    kind: str  # SEND, RECEIVE or AGGREGATE
    node: int
    peer: int  # of a message; -1: the switches
    row: int  # among `ringleaf.collectives.schedule.messages`
    start_ps: int  # when the sender's agent was given it
    end_ps: int  # SEND: acknowledged; else: all there


class CircuitChange(NamedTuple):
    """A change of circuits; times are since the run's start, None: it was over before."""

    at_ps: int  # when it was decided
    dark_ps: int | None = None  # when those that went were empty
    up_ps: int | None = None  # when the new ones were up
    pairs: tuple[Direction, ...] = ()  # the circuits that were up then
    stayed: tuple[Direction, ...] = ()  # those that were up all the while, at the same rate


@dataclass(frozen=True, slots=True)
class CircuitUse:
    """Counts of circuits in a run.

    Attributes:
        changes: Changes of circuits, in order.
        circuit_bytes: Bytes on circuits, with headers, checksums, preambles and gaps.
        packet_bytes: Likewise, on other links between switches.
        time_ps: The run's length.
        first: The circuits that were up when it began.
    """

    changes: tuple[CircuitChange, ...]
    circuit_bytes: int
    packet_bytes: int
    time_ps: int
    first: tuple[Direction, ...] = ()

    def spells(self) -> Iterator[tuple[Direction, int, int]]:
        """Yield each circuit, and the times from when and until when it was up, in order.

        One that stays as it is when others change is up all the while.
        """
        up = dict.fromkeys(self.first, 0)
        for change in self.changes:
            if change.dark_ps is None:
                break  # packets were still leaving when the run was over
            for pair in sorted(up.keys() - set(change.stayed)):
                yield pair, up.pop(pair), min(change.dark_ps, self.time_ps)
            if change.up_ps is not None:
                up |= dict.fromkeys(set(change.pairs) - up.keys(), change.up_ps)
        for pair, since_ps in sorted(up.items()):
            if since_ps < self.time_ps:
                yield pair, since_ps, self.time_ps

    @property
    def dark_ps(self) -> int:
        """The time in which circuits that were to come were not up yet, and others not any more."""
        return sum(
            min(self.time_ps if each.up_ps is None else each.up_ps, self.time_ps) - each.dark_ps
            for each in self.changes
            if each.dark_ps is not None and each.dark_ps < self.time_ps
        )

    @property
    def duty(self) -> float:
        """The share of the time that was not dark."""
        return 1 - self.dark_ps / max(self.time_ps, 1)


class TreeRebuilt(NamedTuple):
    """A job's aggregation tree that was built again; times are since the run's start."""

    at_ps: int  # when switches and workers were told
    resumed_ps: int | None  # when all workers had a result again; None: the run was over before

    def later(self, by_ps: int) -> TreeRebuilt:
        """Return the same in a run that began so much earlier."""
        resumed_ps = None if self.resumed_ps is None else self.resumed_ps + by_ps
        return TreeRebuilt(self.at_ps + by_ps, resumed_ps)


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of one collective; byte counts are line time: frame, preamble, FCS and gap."""

    time_ps: int  # until the last rank had its result
    finish_ps: list[int]  # per rank
    wire_bytes: list[int]  # sent by each rank
    retransmissions: int  # packets that hosts sent again
    drops: int  # packets that found a queue full
    lost: int  # packets that links lost
    link_bytes: dict[Direction, int]
    bin_ps: int
    link_series: dict[Direction, npt.NDArray[np.int64]]  # bytes per bin, from the start
    peak_queue_bytes: int | None  # of the fullest switch port so far; None: live BMv2 tells none
    packet_hops: int  # arrivals at switches and hosts
    events: int
    wall_s: float  # wall-clock time of the run
    owner_series: dict[Direction, npt.NDArray[np.int64]] = field(default_factory=dict)
    """Likewise, by group number: (numbers, bins); of one group alone, (1, bins)."""
    peak_class_bytes: list[int] = field(default_factory=list)  # likewise, by class, 0 first
    queue_peaks: dict[Direction, int] = field(default_factory=dict)
    """Most bytes queued at each switch port, since the network was made; live: not known."""
    queue_bin_ps: int = 0
    queue_series: dict[Direction, npt.NDArray[np.int64]] = field(default_factory=dict)
    """Per switch port, if watched: bytes by class, when it held most in a bin, (classes, bins)."""
    memory_interval_ps: int = 0
    memory_series: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    """Per switch that aggregates, if watched: its entries in use, (group numbers, samples)."""
    notes: list[Note] = field(default_factory=list)  # of messages, if watched: the first of them
    left_out: int = 0  # messages' ends that there was no more room to note
    step_ends_ps: npt.NDArray[np.int64] | None = None
    """In place of notes, if a run went by classes of ranks that receive one message in each step:
    when each class had them, (steps, classes)."""
    corrupted: int = 0  # packets that receivers discarded, as a bit was wrong
    repaths: int = 0  # times that a connection took another path, as nothing got through
    refusals: int = 0  # RNR NAKs: of packets for which no receive was posted
    overflows: int = 0  # live: frames that found a packet socket's ring full; also in `drops`
    trims: int = 0  # packets that found a queue full, and went on without their payload
    pauses: int = 0  # times that a port asked the other end to pause a class
    usage: ProcessorSeconds | None = None  # live: of the processors
    drop_counts: list[Drop] = field(default_factory=list)  # `drops` by queue and source
    circuits: CircuitUse | None = None  # if a controller sets circuits up
    rebuilt: tuple[TreeRebuilt, ...] = ()  # trees of aggregation, if some were
    forbidden: Forbidden = field(default_factory=Counter)  # live BMv2s: not known
    gave_up: bool = False  # whether it ended at a time that was set, before ranks had results
