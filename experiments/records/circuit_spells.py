"""`circuits.csv`: when each circuit was up in a run, and when a controller changed them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ringleaf.networks.outcome import CircuitUse

FILE = "circuits.csv"
UP, DRAINING, DARK = "up", "draining", "dark"
Key = tuple[str, int]


class Spell(NamedTuple):
    """A time in which a circuit was up, or in which circuits were changed.

    Attributes:
        state: `UP`, `DRAINING` or `DARK`.
        circuit: Its ends, `s0-s1`; of changes, nothing.
        start_ps: When it began, since the run's start.
        end_ps: When it was over.
    """

    state: str
    circuit: str
    start_ps: int
    end_ps: int


def spells_of(use: CircuitUse) -> list[Spell]:
    """Return all spells of a run: those of circuits, then those of changes."""
    spells = [Spell(UP, "-".join(pair), start, end) for pair, start, end in use.spells()]
    for change in use.changes:
        dark_ps = use.time_ps if change.dark_ps is None else change.dark_ps
        up_ps = use.time_ps if change.up_ps is None else change.up_ps
        spells += [
            Spell(DRAINING, "", change.at_ps, min(dark_ps, use.time_ps)),
            Spell(DARK, "", dark_ps, min(up_ps, use.time_ps)),
        ]
    return [each for each in spells if each.start_ps < each.end_ps]


def as_csv(spells: Mapping[Key, Iterable[Spell]]) -> str:
    """Return the text of `circuits.csv`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("algo", "of_bytes", *Spell._fields))
    writer.writerows((*key, *each) for key, own in spells.items() for each in own)
    return text.getvalue()


def read_spells(path: Path) -> dict[Key, list[Spell]]:
    """Return what a run directory has; nothing, if no controller set circuits up."""
    spells: dict[Key, list[Spell]] = {}
    for key, spell in _rows(path) if path.exists() else ():
        spells.setdefault(key, []).append(spell)
    return spells


def _rows(path: Path) -> Iterator[tuple[Key, Spell]]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            times = int(row["start_ps"]), int(row["end_ps"])
            yield (row["algo"], int(row["of_bytes"])), Spell(row["state"], row["circuit"], *times)
