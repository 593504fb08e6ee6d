"""The network between ranks as algorithms see it that fit themselves to one.

A way is the list of wires that a message from one rank to another passes, on the network's own
routes. A wire is one direction of a cable, or of a link inside a host. Messages on ways without a
common wire do not meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b

from ringleaf.core.units import PS_PER_S
from ringleaf.errors import ScheduleError

Pair = tuple[int, int]
"""The sending and the receiving rank."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One direction of a link: its rate in bit/s, and the time of a bit from end to end in ps."""

    rate_bps: int
    delay_ps: int


@dataclass(frozen=True)
class RankNetwork:
    """A network between ranks.

    Attributes:
        ranks: The number of ranks.
        wires: All wires that ways name.
        ways: (src, dst) -> the numbers of the wires from rank `src` to rank `dst`, in order. A pair
            that has no way must go through other ranks.
        sites: The switch that each rank is attached to, as a number; ranks of one switch share it.
        through: The numbers of the switches that ways pass; empty: they are not known.

    Raises:
        ScheduleError: If sizes don't fit one another, or ways name what there is not.
    """

    ranks: int
    wires: tuple[Wire, ...]
    ways: Mapping[Pair, tuple[int, ...]]
    sites: tuple[int, ...]
    through: Mapping[Pair, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.sites) != self.ranks:
            raise ScheduleError(f"wires: sites must be {self.ranks}, got {len(self.sites)}")
        for wire in self.wires:
            if wire.rate_bps < 1 or wire.delay_ps < 0:
                raise ScheduleError(f"wires: rate must be >= 1 and delay >= 0, got {wire}")
        for (src, dst), way in self.ways.items():
            known = 0 <= src < self.ranks and 0 <= dst < self.ranks and src != dst
            if not known or not way or not all(0 <= w < len(self.wires) for w in way):
                raise ScheduleError(f"wires: no such way, got {src} to {dst} by {way}")

    @classmethod
    def direct(cls, ranks: int, links: Iterable[tuple[int, int, int, int]]) -> RankNetwork:
        """Return a network of links from rank to rank: (src, dst, rate in bit/s, delay in ps)."""
        wires: list[Wire] = []
        ways: dict[Pair, tuple[int, ...]] = {}
        for src, dst, rate_bps, delay_ps in links:
            ways[src, dst] = (len(wires),)
            wires.append(Wire(rate_bps, delay_ps))
        return cls(ranks, tuple(wires), ways, tuple(range(ranks)))

    @cached_property
    def rates_bps(self) -> dict[Pair, int]:
        """The rate of each way: that of its slowest wire."""
        return {
            pair: min(self.wires[wire].rate_bps for wire in way) for pair, way in self.ways.items()
        }

    @cached_property
    def delays_ps(self) -> dict[Pair, int]:
        """The delay of each way."""
        return {
            pair: sum(self.wires[wire].delay_ps for wire in way) for pair, way in self.ways.items()
        }

    def time_ps(self, pair: Pair, size_bytes: int) -> int:
        """Return the time of a message that is alone, from its first bit to its last, rounded up.

        Wires hand bits on as they come; nothing is stored on the way.
        """
        return self.delays_ps[pair] - (-int(size_bytes) * 8 * PS_PER_S // self.rates_bps[pair])

    @cached_property
    def mirrored(self) -> RankNetwork:
        """The network in which every message goes the other way, on the same wires."""
        ways = {(dst, src): way for (src, dst), way in self.ways.items()}
        through = {(dst, src): way for (src, dst), way in self.through.items()}
        return RankNetwork(self.ranks, self.wires, ways, self.sites, through)

    @cached_property
    def digest(self) -> str:
        """A hash of all that there is."""
        known = sorted(self.ways.items()), sorted(self.through.items())
        parts = (self.ranks, self.wires, known, self.sites)
        return blake2b(repr(parts).encode(), digest_size=16).hexdigest()


Network = Callable[[], RankNetwork]
"""Makes the network when an algorithm asks for it, as finding all ways takes a while."""
