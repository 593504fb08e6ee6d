"""Images of random tables, searched as compiled code does, against a search through a list."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from program_cases import PROGRAMS

from ringleaf.errors import ConfigError
from ringleaf.switches.control.tables import TableEntries
from ringleaf.switches.engine.lookup import ACTION, find_exact, find_in_ranges, find_masked
from ringleaf.switches.engine.shapes import shape_table
from ringleaf.switches.engine.updates import InstalledEntry, Match, prefix_mask
from ringleaf.switches.json.program import load_source

SOURCE = load_source(PROGRAMS / "tables.json")
AT = 5  # where the image lies in the fields: offsets in it must be relative

small = st.integers(0, 7)


def make_table(name: str) -> TableEntries:
    shape = shape_table(SOURCE, SOURCE.ingress.nodes[f"I.{name}"])  # type: ignore[arg-type]
    return TableEntries(shape, SOURCE.actions, "s1", None)


def argument(table: TableEntries, name: str, key: tuple[int, ...]) -> int:
    """Return the first parameter of the entry that the compiled search finds."""
    shape = shape_table(SOURCE, SOURCE.ingress.nodes[f"I.{name}"])  # type: ignore[arg-type]
    fields = np.concatenate([np.full(AT, 2**63, np.uint64), table.image(0)])
    words = [0] * shape.key_words
    for part in shape.parts:
        bits = key[part.key] >> 64 * part.source & ((1 << part.width) - 1)
        words[part.word] |= bits << part.shift
    keys = tuple(np.uint64(word) for word in words)
    at, size = np.uint64(AT), np.uint64(shape.row_words)
    with np.errstate(over="ignore"):
        if shape.ranges:
            values = tuple(np.uint64(key[i]) for i in shape.ranges)
            row = find_in_ranges(fields, at, keys, values, size)
        else:
            find = find_exact if shape.kind == "exact" else find_masked
            row = find(fields, at, keys, size)
    if shape.argument_words[int(fields[row + np.uint64(ACTION)])] == ():
        return -1  # NoAction
    return int(fields[int(row) + shape.arguments_at])


def action(name: str) -> int:
    return next(a.number for a in SOURCE.actions.values() if a.name == f"I.{name}")


def matches(match: Match, key: tuple[int, ...], ranges: tuple[int, ...] = ()) -> bool:
    return all(
        first <= value <= second if i in ranges else value & second == first & second
        for i, ((first, second), value) in enumerate(zip(match, key, strict=True))
    )


@given(st.dictionaries(st.tuples(small, small), st.integers(0, 255)), st.tuples(small, small))
def test_exact(entries: dict[tuple[int, int], int], wanted: tuple[int, int]) -> None:
    table = make_table("exact_table")
    for (address, port), value in entries.items():
        match = ((address, 2**32 - 1), (port, 0xFFFF), (1, 1))
        table.insert(InstalledEntry(match, action("set_exact"), (value,)))

    assert argument(table, "exact_table", (*wanted, 1)) == entries.get(wanted, -1)
    assert argument(table, "exact_table", (*wanted, 0)) == -1


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 32)), st.integers(0, 255), max_size=20
    ),
    st.data(),
)
def test_longest_prefix(prefixes: dict[tuple[int, int], int], data: st.DataObject) -> None:
    table = make_table("lpm_table")
    listed: dict[tuple[int, int], int] = {}
    for (address, length), value in prefixes.items():
        mask = prefix_mask(32, length)
        if (address & mask, length) not in listed:
            listed[address & mask, length] = value
            entry = InstalledEntry(
                ((address & mask, mask),), action("set_lpm"), (value,), prefix=length
            )
            table.insert(entry)
    near = [address ^ flip for address, _ in prefixes for flip in (0, 1, 1 << 15)]
    address = data.draw(st.sampled_from(near) if near else st.integers(0, 2**32 - 1))

    fits = [(p, value) for (a, p), value in listed.items() if address & prefix_mask(32, p) == a]
    expected = max(fits)[1] if fits else 0xDD  # the default action's
    assert argument(table, "lpm_table", (address,)) == expected


masks = st.sampled_from([0, 1, 3, 6, 7])


@given(
    st.lists(st.tuples(small, masks, small, masks, st.integers(1, 4)), max_size=12),
    st.tuples(small, small),
)
def test_ternary(rows: list[tuple[int, int, int, int, int]], key: tuple[int, int]) -> None:
    """The highest priority wins, and among equals the first that came."""
    table = make_table("ternary_table")
    kept: dict[tuple[Match, int], int] = {}
    for number, (address, address_mask, flags, flags_mask, priority) in enumerate(rows):
        match = ((address & address_mask, address_mask), (flags & flags_mask, flags_mask), (0, 0))
        if (match, priority) not in kept:
            kept[match, priority] = number
            table.insert(InstalledEntry(match, action("set_ternary"), (number,), priority))

    fits = [(-p, number) for (m, p), number in kept.items() if matches(m, (*key, 9))]
    expected = min(fits)[1] if fits else -1
    assert argument(table, "ternary_table", (*key, 9)) == expected


def test_a_later_mask_may_hold_the_better_entry() -> None:
    """The first mask has the highest priority of all, but not in the entry that matches."""
    table = make_table("ternary_table")
    rows = [((5, 7), 4, 10), ((2, 7), 1, 11), ((0, 0), 2, 12), ((2, 3), 3, 13)]
    for address, priority, number in rows:
        match = (address, (0, 0), (0, 0))
        table.insert(InstalledEntry(match, action("set_ternary"), (number,), priority))

    found = [argument(table, "ternary_table", (address, 0, 0)) for address in (5, 2, 6, 1)]
    assert found == [10, 13, 13, 12]


@given(
    st.lists(st.tuples(small, small, small, small, small), max_size=12),
    st.tuples(small, small, small),
)
def test_ranges(rows: list[tuple[int, ...]], key: tuple[int, int, int]) -> None:
    table = make_table("range_table")
    kept: dict[Match, int] = {}
    for number, (low, high, kind, first, last) in enumerate(rows):
        match = ((low, high), (kind, 0xFF), (first, last))
        if match not in kept:
            kept[match] = number
            table.insert(InstalledEntry(match, action("set_range"), (number,), 1000 - number))

    fits = [number for match, number in kept.items() if matches(match, key, (0, 2))]
    assert argument(table, "range_table", key) == min(fits, default=-1)


def test_wide_keys_and_parameters() -> None:
    table = make_table("mixed_table")
    key = 0x0123456789ABCDEF_FEDCBA9876543210
    for length in (8, 64, 65, 128):
        mask = prefix_mask(128, length)
        match = ((key & mask, mask), (3, 0xF))
        table.insert(InstalledEntry(match, action("set_mixed"), (length, key), prefix=length))

    for flipped, length in ((127, -1), (119, 8), (63, 64), (62, 65), (0, 65)):
        assert argument(table, "mixed_table", (key ^ 1 << flipped, 3)) == length
    assert argument(table, "mixed_table", (key, 3)) == 128
    assert argument(table, "mixed_table", (key, 2)) == -1


def test_many_entries_are_found_and_forgotten() -> None:
    table = make_table("exact_table")
    entries = [
        InstalledEntry(
            ((i * 7919 % 2**32, 2**32 - 1), (i % 5, 0xFFFF), (1, 1)), action("set_exact"), (i,)
        )
        for i in range(100)
    ]
    for entry in entries:
        table.insert(entry)
    for i in range(0, 100, 2):
        table.delete(entries[i])

    for i, entry in enumerate(entries):
        key = (entry.match[0][0], entry.match[1][0], 1)
        assert argument(table, "exact_table", key) == (i if i % 2 else -1)


def test_constant_entries_go_by_their_order() -> None:
    table = make_table("constant_table")

    assert argument(table, "constant_table", (0x81, 1)) == 1
    assert argument(table, "constant_table", (0x01, 1)) == -1
    assert argument(table, "constant_table", (0x55, 2)) == 3
    with pytest.raises(ConfigError, match=r"table 'I\.constant_table': entries are constant"):
        table.insert(InstalledEntry(((0, 0), (1, 0xFF)), action("set_constant"), (9,), 1))


@given(
    st.lists(
        st.tuples(st.integers(0, 15), masks, st.integers(1, 3), st.integers(0, 255)), max_size=12
    )
)
def test_an_image_with_rewritten_rows_is_as_one_made_anew(
    steps: list[tuple[int, int, int, int]],
) -> None:
    """Entries come, go (an even value), and get other actions, with an image after each step."""
    table = make_table("ternary_table")
    known: set[tuple[Match, int]] = set()
    for address, mask, priority, value in steps:
        match: Match = ((address & mask, mask), (0, 0), (0, 0))
        entry = InstalledEntry(match, action("set_ternary"), (value,), priority)
        if (match, priority) not in known:
            known.add((match, priority))
            table.insert(entry)
        elif value % 2:
            table.modify(entry)
        else:
            known.discard((match, priority))
            table.delete(entry)
        again = make_table("ternary_table")
        for each in table.entries:
            again.insert(replace(each))
        assert table.image(0).tolist() == again.image(0).tolist()
