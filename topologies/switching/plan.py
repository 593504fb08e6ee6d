"""Circuits of racks: the demand that a controller is told of, and the circuits that it wants.

A controller is `(demand, now_ps) -> circuits`, a pure function. The network asks it, carries it
out, and checks that no rack has more circuits than ports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError

Pair = tuple[int, int]
"""Two racks: the one that sends, and the one that receives."""

Matrix = npt.NDArray[np.int64]
"""(racks, racks) bytes, by sending and receiving rack."""


@dataclass(frozen=True)
class Planned:
    """The traffic of a job that is about to start, as far as it is known.

    Attributes:
        steps: Bytes between racks in each step of its schedule; none: it has several, or is not
            known.
        free: Bytes of allreduces, which any order of ranks suits, by the racks of their ranks.
        fixed: Bytes between racks of all else; None: they are not known.
        whole: Bytes between racks of both; None: likewise.
    """

    steps: Sequence[Matrix] = ()
    free: Mapping[tuple[int, ...], int] = field(default_factory=dict)
    fixed: Matrix | None = None
    whole: Matrix | None = None


@dataclass(frozen=True)
class CircuitDemand:
    """The bytes that racks have sent to one another, and will send.

    Attributes:
        racks: Number of racks.
        optical: Circuits that a rack can have at a time, each way.
        delivered: Bytes acknowledged since the last cycle: counters, as Helios reads them.
        waiting: Bytes of open messages that are not acknowledged: hosts' queues, as c-Through has
            them.
        flows: Pairs of hosts that had bytes of either kind since the last cycle.
        rack_of: The rack of each host.
        planned: The job's traffic.
        done: Bytes acknowledged since the job's start.
        cycle: Number of the decision, from 0.
        current: The circuits that are up.
        has_core: Whether racks reach one another without circuits.
    """

    racks: int
    optical: int
    delivered: Matrix
    waiting: Matrix
    flows: Sequence[Pair] = ()
    rack_of: Sequence[int] = ()
    planned: Planned = field(default_factory=Planned)
    done: Matrix = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    cycle: int = 0
    current: Circuits | None = None
    has_core: bool = True

    @property
    def whole(self) -> Matrix:
        """The bytes of the whole job; the same for all pairs where they are not known."""
        return self._equal if self.planned.whole is None else self.planned.whole

    @property
    def fixed(self) -> Matrix:
        """The bytes that are not of allreduces; likewise."""
        return self._equal if self.planned.fixed is None else self.planned.fixed

    @property
    def _equal(self) -> Matrix:
        return np.asarray(1 - np.eye(self.racks, dtype=np.int64))


@dataclass(frozen=True)
class Circuits:
    """Circuits that are up at the same time.

    Attributes:
        ports: The number of ports of each pair of racks, in that direction.
        shares: The rate of a pair's circuits, in rates of one port; missing: the number of ports.
        following: The rack that comes next on the way from one to another, where it is not to be
            worked out.
        rings: The strides of the rings that groups of racks have for their allreduces, by the
            group's racks in order.
    """

    ports: Mapping[Pair, int] = field(default_factory=dict)
    shares: Mapping[Pair, Fraction] = field(default_factory=dict)
    following: Mapping[Pair, int] = field(default_factory=dict)
    rings: Mapping[tuple[int, ...], tuple[int, ...]] = field(default_factory=dict)

    def rate_of(self, pair: Pair) -> Fraction:
        """Return the rate of a pair's circuits, in rates of one port; 0: it has none."""
        return self.shares.get(pair, Fraction(self.ports.get(pair, 0)))

    def staying(self, after: Circuits) -> Circuits:
        """Return those of these that others have, too, at the same rate."""
        ports = {
            pair: count
            for pair, count in self.ports.items()
            if after.rate_of(pair) == self.rate_of(pair)
        }
        shares = {pair: share for pair, share in self.shares.items() if pair in ports}
        return Circuits(ports, shares, after.following)

    def check(self, racks: int, optical: int, where: str) -> None:
        """Check that there can be such circuits.

        Raises:
            ConfigError: If a rack has too many, or a pair is none.
        """
        for pair, count in sorted(self.ports.items()):
            if not set(pair) <= set(range(racks)) or pair[0] == pair[1] or count < 1:
                raise ConfigError(
                    f"{where}: a circuit must join two of {format_count(racks, 'rack')}, got "
                    f"{pair}: {count}"
                )
        for end, name in enumerate(("leave", "reach")):
            degrees: Counter[int] = Counter()
            for pair, count in self.ports.items():
                degrees[pair[end]] += count
            for rack, degree in sorted(degrees.items()):
                if degree > optical:
                    raise ConfigError(
                        f"{where}: at most {format_count(optical, 'circuit')} may {name} a rack, "
                        f"got {degree} at rack {rack}"
                    )


def as_weights(matrix: Matrix) -> dict[Pair, int]:
    """Return the entries of a matrix that are not zero, by pair."""
    return {
        (int(src), int(dst)): int(matrix[src, dst])
        for src, dst in zip(*matrix.nonzero(), strict=True)
    }


def unordered(matrix: Matrix) -> dict[Pair, int]:
    """Return the demand of each two racks in both directions, the lower number first."""
    both = matrix + matrix.T
    return {pair: size for pair, size in as_weights(both).items() if pair[0] < pair[1]}


def ring(racks: int) -> list[Pair]:
    """Return the links of a ring, each to the next rack."""
    return [(rack, (rack + 1) % racks) for rack in range(racks)]


def from_links(links: Iterable[Pair]) -> Circuits:
    """Return one-way circuits; a pair that is named twice has two."""
    return Circuits(dict(sorted(Counter(links).items())))


def both_ways(pairs: Sequence[Pair]) -> Circuits:
    """Return circuits that join pairs of racks both ways; a pair that is named twice has two."""
    counts = Counter(each for a, b in pairs for each in ((a, b), (b, a)))
    return Circuits(dict(sorted(counts.items())))
