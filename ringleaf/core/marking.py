"""When switches mark packets that met a long queue (ECN, RFC 3168)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ringleaf.core.units import is_whole, parse_fraction
from ringleaf.errors import ConfigError

MOST_PACKETS = (1 << 19) - 1
"""Queue depths have 19 bits in v1model."""

LEAST_CHANCE = 1e-4

USUAL_BPS, USUAL_BYTES = 10**11, 4096
"""The rate and the packets that numbers of congestion controls are for."""


@dataclass(frozen=True, slots=True)
class Marking:
    """Of packets that are capable of it, by how many are in their queue when they join it.

    Up to `least` none are marked, from `full` on all; in between with a probability that grows
    from 0 to `most`: RED's (Floyd and Jacobson, 1993) Kmin, Kmax and Pmax in the DCQCN paper.
    With one threshold it is DCTCP's K. All zero: none are marked.

    Raises:
        ConfigError: If a number is out of range.
    """

    least: int = 0
    full: int = 0
    most: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.full <= MOST_PACKETS:
            raise ConfigError(
                f"ecn: depths must grow from 0 to at most {MOST_PACKETS} packets, "
                f"got {self.least}:{self.full}"
            )
        if not LEAST_CHANCE <= self.most <= 1:
            raise ConfigError(f"ecn: the probability must be 0.01% to 100%, got {self.most!r}")

    @property
    def is_on(self) -> bool:
        """Whether anything is ever marked."""
        return self.full > 0

    @property
    def is_random(self) -> bool:
        """Whether chance decides which packets are marked."""
        return self.full > self.least

    def in_proportion(self, rate_bps: float, packet_bytes: int) -> Marking:
        """Return the same for another line and other packets: as much time, and marks per byte.

        These numbers are for `USUAL_BPS` and packets of `USUAL_BYTES`. A probability of 1 stays.
        """
        share = Fraction(rate_bps) / USUAL_BPS * USUAL_BYTES / packet_bytes
        least, full = (min(round(each * share), MOST_PACKETS) for each in (self.least, self.full))
        most = self.most if self.most == 1 else self.most * packet_bytes / USUAL_BYTES
        return Marking(least, max(full, 1), min(max(most, LEAST_CHANCE), 1.0))

    @property
    def last_draw(self) -> int:
        """Numbers up to this one are drawn: as many are below d as `least + d` packets ask for."""
        return max(round((self.full - self.least) / self.most), 1) - 1


NEVER = Marking()


def from_depth(packets: int) -> Marking:
    """Mark all packets from this depth on; 0: none."""
    return Marking(packets, packets)


def parse_marking(text: str, where: str) -> Marking:
    """Read a depth in packets, or two and a probability: `65`, `5:200:1%`.

    Raises:
        ConfigError: If it is neither, or a number is out of range.
    """
    parts = text.strip().split(":")
    if len(parts) not in (1, 3) or not all(map(is_whole, parts[:2])):
        raise ConfigError(
            f"{where}: must be a depth in packets, or two and a probability, got {text!r}; "
            "like 65, or 5:200:1%"
        )
    if len(parts) == 1:
        return from_depth(int(parts[0]))
    most = 1.0 if parts[2].strip() in ("1", "100%") else parse_fraction(parts[2], where)
    return Marking(int(parts[0]), int(parts[1]), most)
