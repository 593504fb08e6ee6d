"""The meaning of a system's registers and packets, for people who step through it.

A system whose `reader` has the methods of `SystemReader` explains itself; registers and packets of
others are shown as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import networkx as nx

if TYPE_CHECKING:
    from ringleaf.switches.control.plane import ControlPlane


@dataclass(frozen=True, slots=True)
class EntryFact:
    """A fact about an entry of a switch's registers.

    `bits` are a bitmap's names of bits, from the lowest on, and whether each is set.
    """

    name: str
    text: str
    bits: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class TableRow:
    """An entry of a table as a system's control plane wrote it: values of keys, and arguments."""

    keys: tuple[int, ...]
    arguments: Mapping[str, int]


def rows_of(switch: ControlPlane, table: str) -> Iterator[TableRow]:
    """Yield a table's entries; `table` is the last part of its name."""
    actions = switch.program.source.actions
    for info in switch.program.schema.tables.values():
        if info.name.rpartition(".")[2] == table:
            for entry in switch.entries(info.name):
                names = actions[entry.action].parameters
                keys = tuple(value for value, _ in entry.match)
                yield TableRow(keys, dict(zip(names, entry.arguments, strict=True)))


@runtime_checkable
class SystemReader(Protocol):
    """The reader of a system that explains itself."""

    def read_entry(
        self, graph: nx.Graph[str], switch: ControlPlane, index: int, cells: Mapping[str, int]
    ) -> Sequence[EntryFact]:
        """Return the meaning of one index's scalar registers, by the last part of their names."""

    def read_packet(self, data: bytes) -> str:
        """Return a packet's meaning in a few words; "" if it is not this system's."""

    def read_values(self, data: bytes) -> Sequence[int]:
        """Return the whole numbers that a packet carries; none if it has none or is not ours."""

    def read_counter(self, name: str, row: int) -> str:
        """Return the meaning of a counter's row in a few words, given the last part of its name."""
