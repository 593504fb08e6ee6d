"""Distributions of flows' sizes: two that papers measure by, and those of files.

A distribution is a cumulative one by points; between two points, all sizes are equally likely.

Source:
    WebSearch: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010. Hadoop: Roy et al., "Inside
    the Social Network's (Datacenter) Network", SIGCOMM 2015. Points of both are those that Li et
    al., "HPCC", SIGCOMM 2019, take (alibaba-edu/High-Precision-Congestion-Control, traffic_gen).
"""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ringleaf.core.units import parse_number
from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.meetings import MOST_BYTES


@dataclass(frozen=True, slots=True)
class Distribution:
    """Sizes by their cumulative distribution.

    Attributes:
        points: Sizes in bytes, and the percentage of flows that are no larger: from 0 % to 100 %.
    """

    points: tuple[tuple[float, float], ...]

    @property
    def mean_bytes(self) -> float:
        """The mean size."""
        return sum(
            (above - below) / 100 * (small + large) / 2
            for (small, below), (large, above) in pairwise(self.points)
        )

    def draw(self, rng: random.Random) -> int:
        """Return a size, at least 1 byte."""
        percent = rng.random() * 100
        at = bisect_right(self.points, percent, key=lambda point: point[1])
        (small, below), (large, above) = self.points[at - 1 : at + 1]
        return max(round(small + (large - small) * (percent - below) / (above - below)), 1)


WEBSEARCH = Distribution(
    (
        *((0, 0), (10_000, 15), (20_000, 20), (30_000, 30), (50_000, 40), (80_000, 53)),
        *((200_000, 60), (1_000_000, 70), (2_000_000, 80), (5_000_000, 90)),
        *((10_000_000, 97), (30_000_000, 100)),
    )
)

HADOOP = Distribution(
    (
        *((0, 0), (100, 1), (200, 2), (300, 5), (350, 15), (400, 20), (500, 30), (600, 40)),
        *((700, 50), (1_000, 60), (2_000, 67), (7_000, 70), (30_000, 72), (50_000, 82)),
        *((80_000, 87), (120_000, 90), (300_000, 95), (1_000_000, 97.5), (2_000_000, 99)),
        (10_000_000, 100),
    )
)

DISTRIBUTIONS = {"websearch": WEBSEARCH, "hadoop": HADOOP}


def read_distribution(path: Path) -> Distribution:
    """Return the distribution of a file, which has a size in bytes and a percentage on each line.

    Percentages may be fractions, too: the last one is 100 or 1.

    Raises:
        ConfigError: If it can't be read or is no distribution; the message names the line.
    """
    from ringleaf.hosts.workload.formats.framing import read_text

    points: list[tuple[float, float]] = []
    where = str(path)
    for at, line in enumerate(read_text(path).splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        where = f"{path}: line {at}"
        if len(words) != 2:
            hint = "; ns-2's files have packets first" if len(words) == 3 else ""
            raise ConfigError(f"{where}: must be a size and a percentage, got {line!r:.60}{hint}")
        size, percent = (parse_number(each, where) for each in words)
        if points and (size < points[-1][0] or percent < points[-1][1]):
            raise ConfigError(f"{where}: sizes and percentages must not decrease, got {line!r:.60}")
        points.append((size, percent))
    whole = points[-1][1] if points else 0
    if whole not in (1, 100) or points[-1][0] > MOST_BYTES or points[-1][0] < 1:
        raise ConfigError(f"{where}: must end with a size and 100 % (or 1), got {points[-1:]}")
    if points[0][1] > 0:  # all of these have the first size
        points.insert(0, (points[0][0], 0))
    return Distribution(tuple((size, percent * 100 / whole) for size, percent in points))
