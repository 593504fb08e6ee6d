"""A row of the table of all that can be chosen by name, and shapes that were looked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ringleaf.core.remembered import remembered
from ringleaf.experiments.published import claims


@dataclass(frozen=True, slots=True)
class PublishedShape:
    """A published shape that was looked for.

    Args:
        rows: The rows that it is of: kind and name.
        published: What was published.
        ours: What was found.
        figures: Our figures beside the published ones, as `claims.read` takes them.
        command: The command that looked for it.
        docs: The page that has more.
    """

    rows: tuple[str, ...]
    published: str
    ours: str
    figures: tuple[Mapping[str, Any], ...]
    command: str
    docs: str

    @property
    def verdict(self) -> str:
        """The finding: how much of the shape is there (`claims`), and our figures."""
        return f"{claims.read(self.figures)}: {self.ours}"


@dataclass(frozen=True, slots=True)
class MemberRow:
    """One member of a family: what it is, where it runs, and what is known of it.

    It has shapes, or the reason for which none was looked for.
    """

    kind: str
    name: str
    title: str
    source: str  # empty: the member's description names none
    runs: str
    command: str
    shapes: tuple[PublishedShape, ...]
    why_none: str


def known_rows(kinds: Sequence[str] = ()) -> Iterator[MemberRow]:
    """Yield all rows of these kinds, or of all, as they were made for the sources that are there.

    To make them imports every member of every family.
    """
    for each in remembered("rows", _make):
        if not kinds or each["kind"] in kinds:
            yield MemberRow(**each | {"shapes": tuple(map(_shape, each["shapes"]))})


def _make() -> list[dict[str, Any]]:
    from ringleaf.experiments.published.rows import rows

    return [asdict(row) for row in rows()]


def _shape(plain: Mapping[str, Any]) -> PublishedShape:
    lists = ("rows", "figures")
    return PublishedShape(**{**plain, **{name: tuple(plain[name]) for name in lists}})
