"""The packing of a table's keys and parameters into the words of its image.

The generator (which writes look-ups) and the tables (which write images) must agree on this.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringleaf.switches.engine.lookup import GROUP_ACTION, KEYS
from ringleaf.switches.engine.meters import METER_WORDS
from ringleaf.switches.engine.updates import Match
from ringleaf.switches.source import (
    NO_ACTION,
    PSA,
    VALID,
    FieldSource,
    MatchKey,
    ProgramSource,
    TableSource,
)

WORD = 64
COUNTER_WORDS = 2  # packets, bytes


@dataclass(frozen=True, slots=True)
class KeyPart:
    """Up to 64 bits of a key: word `source` of the field, shifted into word `word` of the row."""

    key: int
    source: int
    word: int
    shift: int
    width: int


@dataclass(frozen=True, slots=True)
class TableShape:
    """One table's packing."""

    table: TableSource
    widths: tuple[int, ...]  # bits of each key
    parts: tuple[KeyPart, ...]  # of keys that are matched under a mask
    key_words: int
    ranges: tuple[int, ...]  # keys that are matched by range
    range_words: tuple[int, ...]  # words of each of them
    argument_words: dict[int, tuple[int, ...]]  # per action: words of each parameter
    arguments_at: int  # column of the first parameter
    row_words: int
    meter_at: int  # offset of the direct meter in an entry's record, which starts with its counter
    hit_at: int  # offset of the time of the last hit, in picoseconds, plus 1
    record_words: int
    padding: tuple[int, ...]  # bits of each key that a prefix's length counts before the key

    def __hash__(self) -> int:
        """Return a hash by the table's name, as a mapping has none."""
        return hash(self.table.name)

    def masks(self, match: Match) -> list[int]:
        """Return the mask of each key as a look-up applies it.

        BMv2 keeps keys as bytes and counts a prefix from the first bit of the first byte, so the
        longest prefix of 13 bits decides by 10 of them (`match_units.cpp`, `match_params_to_entry`
        and `create_mask_from_pref_len`).
        """
        columns = zip(match, self.padding, self.widths, strict=True)
        return [mask << pad & (1 << width) - 1 for (_, mask), pad, width in columns]

    @property
    def prioritized(self) -> bool:
        """Whether entries have priorities, as in all tables where several entries may match."""
        return any(key.kind in ("ternary", "range", "optional") for key in self.table.keys)

    @property
    def kind(self) -> str:
        """Return the form of the table's image: `exact`, `masked` (prefixes, too) or `range`."""
        if self.ranges:
            return "range"
        exact = all(key.kind == "exact" for key in self.table.keys)
        return "exact" if exact else "masked"


def shape_table(source: ProgramSource, table: TableSource) -> TableShape:
    """Return a table's packing."""
    widths = tuple(_width(source, key.target) for key in table.keys)
    ranges = tuple(i for i, key in enumerate(table.keys) if key.kind == "range")
    range_words = tuple(-(-widths[i] // WORD) for i in ranges)
    parts, words = _pack(table.keys, widths)
    if ranges:
        words = max(words, 1)  # a tuple must have something in it
    arguments_at = KEYS + (2 * words + 2 * sum(range_words) if ranges else words)
    argument_words = {
        number: tuple(-(-width // WORD) for width in source.actions[number].widths)
        for number in table.actions
    }
    argument_words[NO_ACTION] = ()
    most = max(sum(counts) for counts in argument_words.values())
    if table.profile:
        argument_words[GROUP_ACTION] = (1, 1)
        most = max(most, 2)
    meter_at = COUNTER_WORDS if table.counted else 0
    hit_at = meter_at + (METER_WORDS if table.meter else 0)
    return TableShape(
        table,
        widths,
        parts,
        words,
        ranges,
        range_words,
        argument_words,
        arguments_at,
        arguments_at + most,
        meter_at,
        hit_at,
        hit_at + table.timed,
        _padding(source, table, widths),
    )


def _padding(source: ProgramSource, table: TableSource, widths: tuple[int, ...]) -> tuple[int, ...]:
    """Return the bits before each key that its prefixes count; PSA's are as P4Runtime has them."""
    counted = source.architecture is not PSA
    columns = zip(table.keys, widths, strict=True)
    return tuple(-width % 8 if counted and key.kind == "lpm" else 0 for key, width in columns)


def _pack(keys: tuple[MatchKey, ...], widths: tuple[int, ...]) -> tuple[tuple[KeyPart, ...], int]:
    parts: list[KeyPart] = []
    word, used = -1, WORD
    for i, (key, width) in enumerate(zip(keys, widths, strict=True)):
        if key.kind == "range":
            continue
        for start in range(0, width, WORD):
            part = min(WORD, width - start)
            if used + part > WORD:
                word, used = word + 1, 0
            parts.append(KeyPart(i, start // WORD, word, used, part))
            used += part
    return tuple(parts), word + 1


def _width(source: ProgramSource, target: FieldSource) -> int:
    return 1 if target.name == VALID else source.field_of(target).width
