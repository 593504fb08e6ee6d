"""A row of the table of all that can be chosen by name, and shapes that were looked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
