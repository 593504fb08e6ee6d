"""A number and what it counts agree: texts are made by `format_count`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringleaf.experiments.runs.compare import MeasuredRows, compare, table

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    *("ringleaf", "experiments", "hosts", "ina"),
    *("networks", "switches", "topologies", "collectives"),
)

PLAIN = re.compile(r" ([a-z][a-z-]*s)(?![\w'=])")
ADJECTIVES = re.compile(r" (?:more|other|different|training|whole) ([a-z][a-z-]*s)(?![\w'=])")

UNITS = frozenset({"us", "ms", "ns", "ps", "s", "times"})
VERBS = re.compile(
    "is|has|was|does|as|its|this|needs|takes|sends|adds|lacks|waits|knows|depends|differs|begins|"
    "gives|brings|arrives|leaves|goes|makes|keeps|gets|fits|opens|expects|i?requires|changes"
)

NO_COUNTS = (
    *("record.owner[0]", "graph.name", "switch.name", "spec.switch"),
    *("rates", "arity or 'one or more'", "count or 'some'"),
)
"""Expressions that stand before a plural and are no whole numbers."""

CONSTANT = re.compile(r"(int\()?[A-Z_0-9.* /]+\)?")


def offences(source: str) -> Iterator[str]:
    """Yield the pieces of f-strings in which a number that may be 1 stands before a plural."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, text in zip(node.values, node.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            noun = PLAIN.match(str(text.value)) or ADJECTIVES.match(str(text.value))
            counted = ast.unparse(value.value)
            is_share = value.format_spec is not None and "." in ast.unparse(value.format_spec)
            if (
                noun is None
                or noun[1] in UNITS
                or VERBS.fullmatch(noun[1])
                or counted in NO_COUNTS
                or is_share
            ):
                continue
            if CONSTANT.fullmatch(counted) is None:
                yield f"{value.lineno}: {{{counted}}}{noun[0]}"


@pytest.mark.parametrize("room", ROOMS)
def test_no_text_has_a_plural_for_one(room: str) -> None:
    here = {
        f"{path.relative_to(ROOT)}:{offence}"
        for path in (ROOT / room).rglob("*.py")
        if not path.parent.is_symlink()
        for offence in offences(path.read_text())
        if "ringleaf/core/p" not in str(path)  # packets.py asserts; units.py imports plausible.py
    }
    assert here == set()


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        ('f"{n} packets"', True),
        ('f"{len(rows) - 3} more rows, in {file}"', True),
        ('f"{n:,} layers"', True),
        ('f"{n:.1f} packets"', False),
        ('f"{MOST} packets"', False),
        ('f"{switch} sends"', False),
        ('f"{host} packet"', False),
    ],
)
def test_a_plural_for_one_is_found(source: str, is_found: bool) -> None:
    assert bool(list(offences(source))) is is_found


@pytest.mark.parametrize(("count", "told"), [(1, "# 1 row: 1 equal"), (2, "# 2 rows: 2 equal")])
def test_compare_counts_its_rows(count: int, told: str) -> None:
    keys = [(f"ring{number}",) for number in range(count)]
    rows = MeasuredRows(("algo",), dict.fromkeys(keys, 5), dict.fromkeys(keys, 0))

    assert list(table(rows.names, compare(rows, rows, 0.0))) == [told]
