"""A table's entries, as the control plane sees them."""

from __future__ import annotations

from collections.abc import Iterable

from ringleaf.arena import Fields
from ringleaf.errors import Code, ConfigError
from switches.images import Image
from switches.shapes import Shape
from switches.updates import (
    Entry,
    Match,
)


class TableEntries:
    """The entries of one table of one switch."""

    def __init__(self, shape: Shape, where: str) -> None:
        self._shape = shape
        self._where = f"{where}: table {shape.table.name!r}"
        self._entries: dict[tuple[Match, int], Entry] = {}
        self._free_counters: list[int] = []
        self.counters = 0  # direct counters ever needed at once
        self.fresh: list[int] = []  # counters that have changed hands and must start at zero
        self._start_default()
        for const in shape.table.entries:
            match = tuple(
                _const_match(key.kind, values, width)
                for key, values, width in zip(
                    shape.table.keys, const.keys, shape.widths, strict=True
                )
            )
            self._add(Entry(match, const.action, const.arguments, -const.priority, _prefix(match)))

    @property
    def entries(self) -> Iterable[Entry]:
        """All entries, oldest first."""
        return self._entries.values()

    def image(self, counters_at: int) -> Fields:
        """Return the table as compiled code wants it.

        Args:
            counters_at: Offset in `arena.fields` of the table's direct counters, 0 for none.
        """
        return Image(self._shape, list(self._entries.values()), self.default).build(counters_at)

    def insert(self, entry: Entry) -> None:
        """Add an entry.

        Raises:
            ConfigError: If the table is constant or full, or has this match already.
        """
        self._check(entry)
        if (self._masked(entry.match), entry.precedence) in self._entries:
            raise ConfigError(
                f"{self._where}: entry exists already, got {_show(entry.match)}",
                Code.ALREADY_EXISTS,
            )
        if len(self._entries) >= self._shape.table.max_size:
            raise ConfigError(
                f"{self._where}: table is full, got entry {len(self._entries) + 1}"
                f" of {self._shape.table.max_size}",
                Code.RESOURCE_EXHAUSTED,
            )
        self._add(entry)

    def modify(self, entry: Entry) -> None:
        """Give an entry another action; its counters go on."""
        self._check(entry)
        old = self._find(entry)
        old.action, old.arguments = entry.action, entry.arguments

    def delete(self, entry: Entry) -> None:
        self._check_mutable()
        old = self._find(entry)
        self._free_counters.append(old.counter)
        del self._entries[old.match, old.precedence]

    def find(self, match: Match, precedence: int) -> Entry:
        return self._find(Entry(match, 0, (), precedence))

    def set_default(self, action: int, arguments: tuple[int, ...]) -> None:
        """Raises ConfigError if the program says that the default action is constant."""
        if self._shape.table.default_const:
            raise ConfigError(
                f"{self._where}: default action is constant, got a change of it",
                Code.PERMISSION_DENIED,
            )
        self._check_action(action)
        self.default = Entry((), action, arguments)

    def reset_default(self) -> None:
        self._start_default()

    def _start_default(self) -> None:
        table = self._shape.table
        self.default = Entry((), table.default_action, table.default_arguments)

    def _check(self, entry: Entry) -> None:
        self._check_mutable()
        self._check_action(entry.action)

    def _check_mutable(self) -> None:
        if self._shape.table.entries:
            raise ConfigError(
                f"{self._where}: entries are constant, got a change of them", Code.PERMISSION_DENIED
            )
        if not self._shape.table.keys:
            raise ConfigError(f"{self._where}: has no key, got an entry; set its default action")

    def _check_action(self, action: int) -> None:
        assert action in self._shape.table.actions, "p4info and JSON are of one program"

    def _find(self, entry: Entry) -> Entry:
        try:
            return self._entries[self._masked(entry.match), entry.precedence]
        except KeyError:
            raise ConfigError(
                f"{self._where}: no such entry, got {_show(entry.match)}", Code.NOT_FOUND
            ) from None

    def _add(self, entry: Entry) -> None:
        if self._free_counters:
            entry.counter = self._free_counters.pop()
            self.fresh.append(entry.counter)
        else:
            entry.counter = self.counters
            self.counters += 1
        entry.match = self._masked(entry.match)
        self._entries[entry.match, entry.precedence] = entry

    def _masked(self, match: Match) -> Match:
        """Return the match without the bits that the program's own masks leave out.

        So does BMv2, before it looks for duplicates (`match_units.cpp`, `apply_big_mask`).
        """
        keys = self._shape.table.keys
        return tuple(
            pair if key.mask is None else (pair[0] & key.mask, pair[1])
            for key, pair in zip(keys, match, strict=True)
        )


def prefix_mask(width: int, prefix: int) -> int:
    return ((1 << prefix) - 1) << (width - prefix)


def _const_match(kind: str, values: tuple[int, ...], width: int) -> tuple[int, int]:
    full = (1 << width) - 1
    match kind:
        case "exact":
            return values[0], full
        case "lpm":
            return values[0], prefix_mask(width, values[1])
        case _:
            return values[0], values[1]


def _prefix(match: Match) -> int:
    return sum(mask.bit_count() for _, mask in match)


def _show(match: Match) -> str:
    return ", ".join(f"{value:#x}/{mask:#x}" for value, mask in match) or "the default"
