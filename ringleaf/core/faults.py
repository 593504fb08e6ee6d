"""Faults of a network as people write them: what is wrong where, from when, for how long.

`s0-s8 down at 50us for 200us`: a link is down. `s9 down at 1ms`: a node is, with all its links,
and stays so. `h3-s1 loss 10% at 0 for 1ms`: a link loses packets. `h3-s1 corrupt 1% at 0 for 1ms`:
packets that cross it get a wrong bit. `s0-s8 rate 10G at 20us`: it is slower.
`s0-s8 down at 50us for 5us every 20us times 8`: it flaps. `h3 slow 2 at 1ms`: a host takes twice as
long for what it computes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ringleaf.core.plausible import link_rate
from ringleaf.core.units import exact_rate, exact_time, parse_fraction, parse_number, parse_time
from ringleaf.errors import ConfigError

DOWN, LOSS, CORRUPT, RATE, SLOW = "down", "loss", "corrupt", "rate", "slow"
MOST_TIMES = 10_000
MOST_SLOW = 1e6

_WORDS = re.compile(
    r"(?P<place>\S+(?:\s+\S+)*?)\s+"
    r"(?:(?P<down>down)|loss\s+(?P<loss>\S+)|corrupt\s+(?P<corrupt>\S+)|rate\s+(?P<rate>\S+)|"
    r"slow\s+(?P<slow>\S+))"
    r"(?:\s+at\s+(?P<at>\S+))?(?:\s+for\s+(?P<lasting>\S+))?"
    r"(?:\s+every\s+(?P<every>\S+)\s+times\s+(?P<times>\d+))?"
)
_EXAMPLE = "like 's0-s8 down at 50us for 200us'"


@dataclass(frozen=True, slots=True)
class NetworkFault:
    """A fault.

    Attributes:
        place: A node, or the two ends of a link with a `-` between.
        kind: `DOWN`, `LOSS`, `CORRUPT`, `RATE` or `SLOW`.
        value: The share of packets that are lost or damaged, the rate in bit/s, or how many times
            as long a host computes; of `DOWN`, 0.
        at_ps: When it begins, after the start of a run.
        lasting_ps: How long it lasts; None: to the end of the run.
        every_ps: The time from one beginning to the next, if there are several.
        times: How often it begins.

    Raises:
        ConfigError: If it begins again before it is over.
    """

    place: str
    kind: str
    value: float = 0
    at_ps: int = 0
    lasting_ps: int | None = None
    every_ps: int = 0
    times: int = 1

    def __post_init__(self) -> None:
        if self.lasting_ps == 0:
            raise ConfigError(f"faults: one must last, got for 0 at {self.place}")
        if self.times > 1 and (self.lasting_ps is None or self.lasting_ps >= self.every_ps):
            raise ConfigError(
                "faults: one that comes again must be over before, got "
                f"for {_or_ever(self.lasting_ps)} every {exact_time(self.every_ps)}; {_EXAMPLE}"
            )

    def __str__(self) -> str:
        """Return the text that `parse_faults` reads."""
        what = {
            DOWN: "down",
            LOSS: f"loss {_share(self.value)}",
            CORRUPT: f"corrupt {_share(self.value)}",
            RATE: f"rate {exact_rate(int(self.value))}",
            SLOW: f"slow {_exact(self.value)}",
        }[self.kind]
        text = f"{self.place} {what} at {exact_time(self.at_ps) if self.at_ps else 0}"
        if self.lasting_ps is not None:
            text += f" for {exact_time(self.lasting_ps)}"
        if self.times > 1:
            text += f" every {exact_time(self.every_ps)} times {self.times}"
        return text

    def at_scale(self, factor: int) -> NetworkFault:
        """Return the same in a network that is so many times as slow: its rates, and all times."""
        return replace(
            self,
            value=self.value // factor if self.kind == RATE else self.value,
            at_ps=self.at_ps * factor,
            lasting_ps=None if self.lasting_ps is None else self.lasting_ps * factor,
            every_ps=self.every_ps * factor,
        )

    def sooner(self, by_ps: int) -> NetworkFault:
        """Return the same in a run that begins so much later; it may have begun before."""
        return replace(self, at_ps=self.at_ps - by_ps)

    def spans(self) -> list[tuple[int, int | None]]:
        """Return when it begins and is over, each time."""
        starts = [self.at_ps + number * self.every_ps for number in range(self.times)]
        return [(at, None if self.lasting_ps is None else at + self.lasting_ps) for at in starts]


def parse_faults(text: str, where: str) -> tuple[NetworkFault, ...]:
    """Read faults with commas between them.

    Raises:
        ConfigError: If one is not understood.
    """
    return tuple(_parse(part.strip(), where) for part in text.split(",") if part.strip())


def _parse(text: str, where: str) -> NetworkFault:
    match = _WORDS.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"{where}: must be PLACE down, loss SHARE, corrupt SHARE, rate RATE or slow TIMES, "
            f"then at TIME, for TIME, every TIME times N, got {text!r}; {_EXAMPLE}"
        )
    parts = match.groupdict()
    kind, value = _value(parts, where)
    times = int(parts["times"] or 1)
    if not 1 <= times <= MOST_TIMES:
        raise ConfigError(f"{where}: times must be 1 to {MOST_TIMES}, got {times}")
    return NetworkFault(
        parts["place"],
        kind,
        value,
        parse_time(parts["at"] or "0", where),
        None if parts["lasting"] is None else parse_time(parts["lasting"], where),
        parse_time(parts["every"] or "0", where),
        times,
    )


def _value(parts: Mapping[str, str | None], where: str) -> tuple[str, float]:
    for kind in (LOSS, CORRUPT):
        if (share := parts[kind]) is not None:
            return kind, 1.0 if share in ("100%", "1") else parse_fraction(share, where)
    if parts["rate"] is not None:
        return RATE, link_rate(parts["rate"], where)
    if parts["slow"] is not None:
        return SLOW, _times(parts["slow"], where)
    return DOWN, 0


def _times(text: str, where: str) -> float:
    value = parse_number(text.removesuffix("x"), where)
    if not 1 < value <= MOST_SLOW:
        raise ConfigError(
            f"{where}: slow must be more than 1, up to {MOST_SLOW:g} times, got {text!r}; like "
            "'h3 slow 2 at 1ms'"
        )
    return value


def _share(value: float) -> str:
    """Return the share as people write it, `10%`, or with all digits that it has."""
    percent = f"{100 * value:g}%"
    return percent if float(percent[:-1]) / 100 == value else _exact(value)


def _exact(value: float) -> str:
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _or_ever(time_ps: int | None) -> str:
    return "ever" if time_ps is None else exact_time(time_ps)


def check_recorded(faults: Iterable[NetworkFault], *, reroutes: bool, where: str = "") -> None:
    """Check that traces, which have a beginning only, can hold what changes.

    Args:
        faults: The faults.
        reroutes: Whether routes change.
        where: The beginning of the message.

    Raises:
        ConfigError: If they can't.
    """
    if reroutes:
        raise ConfigError(
            f"{where}reroute: traces have a switch's routes at the beginning, got record; leave "
            "out either of them"
        )
    for each in faults:
        if each.kind not in (DOWN, LOSS, CORRUPT):
            raise ConfigError(
                f"{where}faults: traces have ports' rates at the beginning, got {str(each)!r} and "
                "record; leave out either of them"
            )
