"""What fields of missing headers hold in variants of a program, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ringleaf.switches.generate.storage import POSITION, VARBITS
from ringleaf.switches.generate.undefined_fields import Leftovers, _stretches
from ringleaf.switches.source import STACKS, VALID, FieldSource


def make(kind: int, width: int) -> Leftovers:
    headers = {
        "h": SimpleNamespace(metadata=False),
        "m": SimpleNamespace(metadata=True),
        STACKS: SimpleNamespace(metadata=False),
    }
    source: Any = SimpleNamespace(headers=headers)
    storage: Any = SimpleNamespace(shape=lambda _: SimpleNamespace(width=width))
    return Leftovers(source, storage, kind)


def test_leftovers_are_all_alike_or_all_different_within_their_width() -> None:
    """With two bits, 1, 2, 3 and 0; a field keeps its number."""
    a, b, c, d = (FieldSource("h", name) for name in "abcd")
    assert [make(1, 2).first(field) for field in (a, b, c, d)] == [1, 1, 1, 1]
    numbered = make(2, 2)
    assert [numbered.first(field) for field in (a, b, c, d, b)] == [1, 2, 3, 0, 2]
    wide = make(2, 200)
    assert [wide.first(field) for field in (a, b)] == [1, 2]
    assert [make(0, 2).first(field) for field in (a, b)] == [0, 0]


@pytest.mark.parametrize(
    ("field", "with_metadata", "value"),
    [
        (FieldSource("h", "a"), False, 1),
        (FieldSource("m", "a"), False, 0),
        (FieldSource("m", "a"), True, 1),
        (FieldSource("h", VALID), True, 0),
        (FieldSource("h", POSITION), True, 0),
        (FieldSource("h", VARBITS), True, 0),
        (FieldSource(STACKS, "a"), True, 0),
        (FieldSource("elsewhere", "a"), True, 0),
    ],
)
def test_validity_and_places_are_never_open(
    field: FieldSource, with_metadata: bool, value: int
) -> None:
    assert make(1, 8).first(field, with_metadata=with_metadata) == value


def test_stretches_are_of_consecutive_numbers() -> None:
    assert _stretches([]) == []
    assert _stretches([3]) == [(3, 3)]
    assert _stretches([1, 2, 3, 5, 7, 8]) == [(1, 3), (5, 5), (7, 8)]
