"""The meaning of a system's registers and packets, for people who step through it.

A system with the methods of `Readable` explains itself; what the others have is shown as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import networkx as nx

if TYPE_CHECKING:
    from ringleaf.switches.control.plane import ControlPlane


@dataclass(frozen=True, slots=True)
class Fact:
    """Something about an entry of a switch's registers.

    A bitmap names its bits, from the lowest on, and says of each whether it is set.
    """

    name: str
    text: str
    bits: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """An entry of a table as a system's control plane wrote it: values of keys, and arguments."""

    keys: tuple[int, ...]
    arguments: Mapping[str, int]


def rows_of(switch: ControlPlane, table: str) -> Iterator[Row]:
    """Yield a table's entries; `table` is the last part of its name."""
    actions = switch.program.source.actions
    for info in switch.program.schema.tables.values():
        if info.name.rpartition(".")[2] == table:
            for entry in switch.entries(info.name):
                names = actions[entry.action].parameters
                keys = tuple(value for value, _ in entry.match)
                yield Row(keys, dict(zip(names, entry.arguments, strict=True)))


@runtime_checkable
class Readable(Protocol):
    """A system that explains itself."""

    def read_entry(
        self, graph: nx.Graph[str], switch: ControlPlane, index: int, cells: Mapping[str, int]
    ) -> Sequence[Fact]:
        """What the scalar registers of one index say, by the last part of their names."""

    def read_packet(self, data: bytes) -> str:
        """What a packet is, in a few words; "" if it is none of this system's."""

    def read_values(self, data: bytes) -> Sequence[int]:
        """The whole numbers that a packet carries; none if it has none, or is not ours."""

    def read_counter(self, name: str, row: int) -> str:
        """What a row of a counter counts, in a few words, given the last part of its name."""
