"""What an explanation of a row finds, as data that figures and reports are made of."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FOLDER = "explained"  # of a run directory, with a file per row

# Where a path's time goes.
LINE = "line"  # data on lines, with its headers
SLOW = "slow"  # of that, what links take longer than the best of their kind
LINKS = "links"  # propagation
SWITCHES = "switches"
HOSTS = "hosts"
PROCESSORS = "processors"
ANSWERS = "answers"  # acknowledgements and credit on their way
RESENDS = "resends"
RATE = "rate"  # congestion control holds packets back
OTHER = "other"
KINDS = (LINE, SLOW, LINKS, SWITCHES, HOSTS, PROCESSORS, ANSWERS, RESENDS, RATE, OTHER)

# Parts of the time beyond a bound.
LATENCY = "latency"
IMBALANCE = "imbalance"
QUEUEING = "queueing"
WAITING = "waiting"
PARTS = (LATENCY, QUEUEING, IMBALANCE, WAITING, RESENDS, PROCESSORS, OTHER)

TITLES = {
    LATENCY: "latency",
    QUEUEING: "queueing",
    IMBALANCE: "imbalance of links",
    WAITING: "acknowledgements",
    RESENDS: "resends",
    PROCESSORS: "hosts' processors",
    OTHER: "other",
}
"""The parts' names for people."""


@dataclass(frozen=True, slots=True)
class BoundParts:
    """The parts of a bound, which add up to it.

    Attributes:
        line_ps: The bound, if no link, switch or host had a delay, and all links were as fast as
            the best of their kind.
        slow_ps: By so much links that are slower raise it.
        latency_ps: By so much delays raise it.
    """

    line_ps: int
    slow_ps: int
    latency_ps: int

    @property
    def time_ps(self) -> int:
        """The bound."""
        return self.line_ps + self.slow_ps + self.latency_ps


@dataclass(frozen=True, slots=True)
class Arrow:
    """A message, or messages between two lanes, from the first one's sending to the last one's end.

    Attributes:
        src: Lane that it leaves.
        dst: Lane that it gets to.
        sent_ps: When its first bit was given to the line: the first one's, and the last one's.
        there_ps: When its last bit was there: the first one's, and the last one's.
        count: Number of messages.
        again: How many of them had packets that were sent again.
    """

    src: int
    dst: int
    sent_ps: tuple[int, int]
    there_ps: tuple[int, int]
    count: int
    again: int


@dataclass(frozen=True, slots=True)
class Diagram:
    """A time-space diagram.

    Attributes:
        lanes: Names of the lanes, from the first host down.
        arrows: Arrows and bands.
        path: The path of causes, as places on lanes and times: (lane, ps) from the start on.
        messages: How many messages there were.
        each: What an arrow stands for, in the plural.
    """

    lanes: tuple[str, ...]
    arrows: tuple[Arrow, ...]
    path: tuple[tuple[int, int], ...]
    messages: int
    each: str


@dataclass(frozen=True, slots=True)
class Explained:
    """Where a row's time went; all in ps.

    Attributes:
        algo: The row's algorithm.
        size_bytes: Its size.
        time_ps: Its time.
        bound: The parts of its bound.
        lost_ps: Time beyond the bound, by part; adds up to the time minus the bound.
        spent_ps: Time on the path of causes, by kind; adds up to the time.
        headers_ps: Of the path, headers on lines.
        behind_ps: Of the path, data of other flows that it waited behind.
        packets: How many rows the log has.
        diagram: Messages over time.
    """

    algo: str
    size_bytes: int
    time_ps: int
    bound: BoundParts
    lost_ps: dict[str, int]
    spent_ps: dict[str, int]
    headers_ps: int
    behind_ps: int
    packets: int
    diagram: Diagram

    def plain(self) -> dict[str, Any]:
        """Return this as for JSON."""
        return asdict(self)

    @classmethod
    def read(cls, plain: dict[str, Any]) -> Explained:
        """Return what `plain` has written."""
        drawn = plain["diagram"]
        arrows = tuple(
            Arrow(**each | {name: tuple(each[name]) for name in ("sent_ps", "there_ps")})
            for each in drawn["arrows"]
        )
        path = tuple((lane, time_ps) for lane, time_ps in drawn["path"])
        drawn = drawn | {"arrows": arrows, "path": path, "lanes": tuple(drawn["lanes"])}
        return cls(**plain | {"bound": BoundParts(**plain["bound"]), "diagram": Diagram(**drawn)})


def file_of(algo: str, size_bytes: int) -> Path:
    """Return the path of a row's explanation, below the run directory."""
    return Path(FOLDER) / f"{algo}-{size_bytes}.json"
