"""Numbers of words, codes and bits that count up by one name each number once, and leave out none.

A word that is left out is memory that nobody uses, and tests of what a block does cannot see it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = (
    "collectives", "experiments", "hosts", "ina", "networks", "ringleaf", "switches", "topologies",
)  # fmt: skip
SHARED = {
    ("ringleaf/core/packets.py", "ENQUEUED_PS"),  # a packet is on a link, or in a queue
    ("networks/live/state.py", "VECTORS_OF_MESSAGE"),  # sizes, as the next
    ("experiments/estimates/estimate.py", "FLOAT32_BYTES"),
}
LEFT_OUT = {
    ("hosts/executor/layout.py", "BUFFER"),  # a claim has two words
    ("ina/congestion.py", "WANTED"),  # SHARE, which is 7, stands with what is chosen
    ("ina/congestion.py", "OWN"),  # room for one more fact
    ("ringleaf/core/packets.py", "ROWS_AT"),  # OUTBOX_AT, which is 2, stands by itself
    ("switches/engine/layout.py", "RECIRCULATED"),  # 3 is COALESCED, which BMv2 never makes
}
"""Numbers after one that is left out, with the reason."""

Number = tuple[str, str, int]
"""A name, and its value: the name of a base, if there is one, and a number above it."""


def value_of(node: ast.expr) -> tuple[str, int] | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return "", node.value
    if isinstance(node, ast.Name):
        return node.id, 0
    match node:
        case ast.BinOp(ast.Name(base), ast.Add(), ast.Constant(int(number))):
            return base, number
    return None


def groups_of(text: str) -> Iterator[list[Number]]:
    """Yield the numbers that a module names on adjacent lines."""
    group: list[Number] = []
    last = 0
    for node in ast.parse(text).body:
        match node:
            case ast.Assign([ast.Name(name)], value) if name.isupper():
                number = value_of(value)
                if number is None:
                    continue
                if node.lineno != last + 1 and group:
                    yield group
                    group = []
                group.append((name, *number))
                last = node.end_lineno or 0
    yield group


def doubles_of(group: list[Number]) -> list[str]:
    """Return names that have the number of the one before, in a sequence that counts up."""
    steps = [b[2] - a[2] if a[1] == b[1] else None for a, b in pairwise(group)]
    return [
        group[place + 1][0]
        for place, step in enumerate(steps)
        if step == 0
        and (2 in steps[max(place - 1, 0) : place] or 1 in steps[place + 1 : place + 2])
    ]


@pytest.mark.parametrize(
    ("numbers", "doubles"),
    [
        ([0, 1, 2, 3], []),
        ([0, 1, 3, 3], ["D"]),
        ([0, 2, 2, 3], ["C"]),
        ([1, 1, 2], ["B"]),
        ([4, 8, 8, 2], []),
        ([4, 8, 8], []),
    ],
)
def test_doubles_are_found(numbers: list[int], doubles: list[str]) -> None:
    assert doubles_of([(chr(65 + n), "", each) for n, each in enumerate(numbers)]) == doubles


def gaps_of(group: list[Number]) -> list[str]:
    """Return names that leave out a number, in a sequence that counts up by one around them.

    Sizes, flags, which are powers of two, and places in packets, which hold fields of any size, are
    no such sequences.
    """
    steps = [b[2] - a[2] if a[1] == b[1] else None for a, b in pairwise(group)]
    found = []
    for place, step in enumerate(steps):
        name, base, number = group[place + 1]
        is_flag = not base and number & (number - 1) == 0 and group[place][2] * 2 == number
        is_other = is_flag or name.endswith(("_WORDS", "_ROOM")) or base.endswith("_AT")
        if step == 2 and 1 in steps[max(place - 1, 0) : place] + steps[place + 1 : place + 2]:
            found += [] if is_other else [name]
    return found


@pytest.mark.parametrize(
    ("numbers", "gaps"),
    [
        ([0, 1, 2, 3], []),
        ([0, 1, 3, 4], ["C"]),
        ([0, 1, 3], ["C"]),
        ([5, 7, 8], ["B"]),
        ([0, 1, 2, 4, 8], []),
        ([2, 4, 6, 8], []),
        ([0, 1, 6, 7], []),
    ],
)
def test_gaps_are_found(numbers: list[int], gaps: list[str]) -> None:
    """Above a base, 4 after 2 is no flag."""
    assert gaps_of([(chr(65 + n), "BASE", each) for n, each in enumerate(numbers)]) == (
        ["D"] if numbers == [0, 1, 2, 4, 8] else gaps
    )
    assert gaps_of([(chr(65 + n), "", each) for n, each in enumerate(numbers)]) == gaps


def all_groups(folder: str) -> Iterator[tuple[str, list[Number]]]:
    for path in sorted((ROOT / folder).rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        if not any(part.is_symlink() for part in path.parents if part != ROOT):
            for group in groups_of(path.read_text()):
                yield file, group


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_number_has_two_names(folder: str) -> None:
    found = {(file, name) for file, group in all_groups(folder) for name in doubles_of(group)}
    assert found <= SHARED


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_number_is_left_out(folder: str) -> None:
    found = {
        (file, name)
        for file, group in all_groups(folder)
        if not file.endswith(("wire.py", "headers.py"))
        for name in gaps_of(group)
    }
    assert found <= LEFT_OUT


def words_before(text: str) -> list[str]:
    """Return names that lie before a base from which others of their module are counted up."""
    signs: dict[tuple[str, type[ast.operator]], list[str]] = {}
    for node in ast.parse(text).body:
        match node:
            case ast.Assign([ast.Name(name)], ast.BinOp(ast.Name(base), sign, ast.Constant())):
                signs.setdefault((base, type(sign)), []).append(name)
    return [
        name
        for (base, sign), names in signs.items()
        if sign is ast.Sub and (base, ast.Add) in signs
        for name in names
    ]


def test_words_before_their_base_are_found() -> None:
    assert words_before("A = BASE\nB = BASE + 1\nC = BASE - 2\nD = OTHER - 1") == ["C"]


def test_no_word_lies_before_its_base() -> None:
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    found = {str(path): words_before(path.read_text()) for path in paths}
    assert {path: names for path, names in found.items() if names} == {}
