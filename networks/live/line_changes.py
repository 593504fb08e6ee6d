"""Changes of live lines and restarts of live switches, at times of the wall clock."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import ringleaf.networks.virtual.state as s
from ringleaf.core.packets import HEAD_BYTES
from ringleaf.core.units import FOREVER_PS, PS_PER_NS
from ringleaf.networks.faults import (
    Agenda,
    Direction,
    Disturbance,
    LinkDamage,
    LinkLoss,
    LinkRate,
    T,
)
from ringleaf.networks.live.engine import Engine, LinkEnd
from ringleaf.networks.virtual.losses import set_losses

LOSS, DAMAGE, RATE = WHAT = "loss", "damage", "rate_bps"
"""The parts of a line that may change: attributes of a `LinkEnd`, and damage, usually none."""


@dataclass(frozen=True, slots=True)
class LineChange:
    """A change of one line of a process.

    Attributes:
        after_ps: Time since the run's start.
        line: Its number in the process.
        what: `LOSS`, `DAMAGE` or `RATE`.
        value: A probability, or bit/s; None: as usual.
    """

    after_ps: int
    line: int
    what: str
    value: float | None

    @classmethod
    def of(cls, change: LinkLoss | LinkDamage | LinkRate, line: int) -> LineChange:
        """Return a change of the link's direction that this line sends in."""
        if isinstance(change, LinkLoss):
            return cls(change.after_ps, line, LOSS, change.loss)
        if isinstance(change, LinkDamage):
            return cls(change.after_ps, line, DAMAGE, change.share)
        return cls(change.after_ps, line, RATE, change.rate_bps)


class SwitchChanges(NamedTuple):
    """Changes of embedded switches in a run.

    Attributes:
        lines: A switch, its port, and what changes; the change's own `line` does not matter.
        restarts: A switch, and the time after the run's start.
    """

    lines: Sequence[tuple[str, int, LineChange]]
    restarts: Sequence[tuple[str, int]]


def changes_of(
    disturbances: Iterable[Disturbance], direction: Direction, line: int = 0
) -> list[LineChange]:
    """Return what changes a direction of a link, of which a line has this number."""
    return [
        LineChange.of(each, line)
        for each in disturbances
        if isinstance(each, LinkLoss | LinkDamage | LinkRate) and each.link == direction
    ]


def agenda_of(disturbances: Iterable[T], engine: Engine, start_ns: int) -> Agenda[T]:
    """Return what happens, in an engine's time, in a run that starts by the monotonic clock."""
    ahead_ps = (start_ns - time.monotonic_ns()) * PS_PER_NS
    return Agenda(disturbances, engine.now_ps + ahead_ps)


class LineChanges:
    """The changes of a process's lines in one run, and what undoes them.

    Args:
        engine: The process's engine.
        lines: Its lines as they usually are, by number.
    """

    def __init__(self, engine: Engine, lines: Sequence[LinkEnd]) -> None:
        self._engine, self._lines = engine, lines
        self._agenda: Agenda[LineChange] = Agenda((), 0)
        self._touched: dict[tuple[int, str], float | None] = {}

    @property
    def next_ps(self) -> int:
        """The time of the next one, in the process's time; `FOREVER_PS` if there is none."""
        return self._agenda.next_ps

    def begin(self, changes: Iterable[LineChange], start_ns: int) -> None:
        """Note what will happen in a run that starts at a time of the monotonic clock."""
        changes = list(changes)
        if any(each.what == DAMAGE for each in changes):
            self._lay_out_damage()
        self._agenda = agenda_of(changes, self._engine, start_ns)

    def happen(self) -> None:
        """Let all happen that is due."""
        if self._agenda.next_ps < FOREVER_PS:
            for each in self._agenda.take_due(self._engine.now_ps):
                self.set(each.line, each.what, each.value)

    def settle(self) -> None:
        """Have all lines as usual when a run is over, for the next one."""
        self._agenda.take_rest()
        for line, what in sorted(self._touched):
            self.set(line, what, None)
        self._touched.clear()

    def set(self, line: int, what: str, value: float | None) -> None:
        """Change a line now, until the run is over; None has it as usual."""
        self._touched[line, what] = value
        usual = self._lines[line]
        if what == RATE:
            self._engine.network().ports[line][s.RATE_BPS] = int(value or usual.rate_bps)
            return
        loss, share = self._touched.get((line, LOSS)), self._touched.get((line, DAMAGE))
        loss = usual.loss if loss is None else loss
        set_losses(self._engine.store, self._engine.at, line, loss, share or 0.0)

    def _lay_out_damage(self) -> None:
        store, at = self._engine.store, self._engine.at
        words = store.arena.words
        if not words[at + s.DAMAGE_AT]:
            from ringleaf.networks.virtual.damage import lay_out_damage  # compiles, or loads

            lay_out_damage(store, [at], int(words[HEAD_BYTES]))  # live, heads hold whole packets
