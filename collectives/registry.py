"""Algorithms and codecs by name.

A new one is a file in `algorithms` or `codecs`, or an entry point of a package. Each aggregation
system is an algorithm, too, and brings it along. So is each file with a schedule, by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.codec import Codec
from ringleaf.collectives.files.algorithm import read_algorithm
from ringleaf.collectives.files.registry import names_file
from ringleaf.registry import Registry


class Aggregating(Protocol):
    """An aggregation system, as far as collectives need to know it (`ringleaf.ina.systems`)."""

    @property
    def algorithm(self) -> Algorithm: ...


SYSTEMS: Registry[Aggregating] = Registry("systems", "system", "ina", "SYSTEM", module="system")


class _Others(Mapping[str, Algorithm]):
    """The algorithms that systems bring along, and those in files, of which there is no list."""

    def __getitem__(self, name: str) -> Algorithm:
        return read_algorithm(Path(name)) if names_file(name) else SYSTEMS[name].algorithm

    def __iter__(self) -> Iterator[str]:
        return iter(SYSTEMS)

    def __len__(self) -> int:
        return len(SYSTEMS)

    def __contains__(self, name: object) -> bool:
        return name in SYSTEMS or (isinstance(name, str) and names_file(name))


ALGORITHMS: Registry[Algorithm] = Registry(
    "algorithms",
    "algorithm",
    "collectives/algorithms",
    "ALGORITHM",
    others=_Others(),
)

CODECS: Registry[Codec] = Registry("codecs", "codec", "collectives/codecs", "CODEC")


def find_algorithm(name: str) -> Algorithm:
    """Return the algorithm of that name.

    Raises:
        ConfigError: If there is none; the message names the valid ones.
    """
    return ALGORITHMS.find(name, "algo")
