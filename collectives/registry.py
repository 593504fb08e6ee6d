"""Algorithms by name.

A new one is a file in `algorithms`, or an entry point of a package. Each aggregation
system is an algorithm, too, and brings it along. So is each file with a schedule, by its name, and
each synthesiser, with a topology; and each sparse allreduce, which has exchanges and no schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.files.algorithm import read_algorithm
from ringleaf.collectives.files.registry import FILES, names_file
from ringleaf.collectives.sparse.algorithm import names_sparse, sparse_algorithm
from ringleaf.collectives.synthesis.algorithm import synthesised
from ringleaf.collectives.synthesis.names import is_synthesised
from ringleaf.core.registry import Registry


@runtime_checkable
class Aggregating(Protocol):
    """An aggregation system, as far as collectives need to know it (`ringleaf.ina.systems`)."""

    @property
    def algorithm(self) -> Algorithm:
        """Return the algorithm by whose name collectives choose the system."""


SYSTEMS: Registry[Aggregating] = Registry(
    "systems",
    "system",
    "ina",
    "SYSTEM",
    module="system",
    kind=Aggregating,
    taken=lambda: ALGORITHMS.shipped(),
)


class _Others(Mapping[str, Algorithm]):
    """The algorithms that systems bring along, and those that only some networks have.

    These are in files, of which there is no list, synthesised, or sparse allreduces: whoever takes
    all algorithms in turn, for any number of ranks, does not get them.
    """

    def __getitem__(self, name: str) -> Algorithm:
        if names_file(name):
            return read_algorithm(Path(name))
        if names_sparse(name):
            return sparse_algorithm(name)
        return synthesised(name) if is_synthesised(name) else SYSTEMS[name].algorithm

    def __iter__(self) -> Iterator[str]:
        return iter(SYSTEMS)

    def __len__(self) -> int:
        return len(SYSTEMS)

    def __contains__(self, name: object) -> bool:
        if name in SYSTEMS:
            return True
        return isinstance(name, str) and (
            names_file(name) or names_sparse(name) or is_synthesised(name)
        )


ALGORITHMS: Registry[Algorithm] = Registry(
    "algorithms",
    "algorithm",
    "collectives/algorithms",
    "ALGORITHM",
    kind=Algorithm,
    others=_Others(),
    files=FILES,
)


def find_algorithm(name: str) -> Algorithm:
    """Return the algorithm of that name.

    Raises:
        ConfigError: If there is none; the message names the valid ones.
    """
    return ALGORITHMS.find(name, "algo")
