"""The table of all that can be chosen by name, as it was made for the sources that are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ringleaf.core.remembered import remembered
from ringleaf.experiments.published.member import MemberRow, PublishedShape


def known_rows(kinds: Sequence[str] = ()) -> Iterator[MemberRow]:
    """Yield all rows of these kinds, or of all; to make them imports every member."""
    for each in remembered("rows", _make):
        if not kinds or each["kind"] in kinds:
            yield MemberRow(**each | {"shapes": tuple(map(_shape, each["shapes"]))})


def _make() -> list[dict[str, Any]]:
    from ringleaf.experiments.published.rows import rows

    return [asdict(row) for row in rows()]


def _shape(plain: Mapping[str, Any]) -> PublishedShape:
    lists = ("rows", "figures")
    return PublishedShape(**{**plain, **{name: tuple(plain[name]) for name in lists}})
