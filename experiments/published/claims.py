"""How much of a published figure a measurement shows: one definition for all studies and tables.

A verdict is `MAGNITUDE` if our figure is about as large as the published one, `DIRECTION` if it is
better or worse as published but not by as much, and `NONE` otherwise. A verdict of direction says
that a mechanism works here, not that its figure is reproduced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any

LEAST_GAIN = 0.02
"""The least gain, as a part of 1, that counts: less comes from where packets happen to meet."""

PART = 0.75
"""The part of the published gain that is of its magnitude; so is the published gain over it."""

NEAR = 0.05
"""How far a figure may be from a published one that it shall equal, as a part of that."""


class Claimed(IntEnum):
    """The verdict on a published figure."""

    NONE = 0
    DIRECTION = 1
    MAGNITUDE = 2

    def __str__(self) -> str:
        """Return it as tables print it."""
        return self.name.lower()


Published = float | tuple[float, float] | None
"""A figure, the least and the most of a range, or None where only a direction was published."""


def ratio(ours: float, published: Published) -> Claimed:
    """Judge how many times better something is, where more than 1 is as published.

    Gains, ratios less 1, are compared: of magnitude is one between `PART` of the least published
    one and the most over `PART`. "Up to" a figure is that figure.
    """
    gain = ours - 1
    if gain < LEAST_GAIN:
        return Claimed.NONE
    if published is None:
        return Claimed.DIRECTION
    least, most = published if isinstance(published, tuple) else (published, published)
    is_large = PART * (least - 1) <= gain <= (most - 1) / PART
    return Claimed.MAGNITUDE if is_large else Claimed.DIRECTION


def equal(ours: float, published: float) -> Claimed:
    """Judge a figure that shall be the published one: it is, within `NEAR` of it, or it is not."""
    is_near = abs(ours - published) <= NEAR * abs(published)
    return Claimed.MAGNITUDE if is_near else Claimed.NONE


def bound(ours: float, most: float) -> Claimed:
    """Judge a figure that shall be at most the published one."""
    return Claimed.MAGNITUDE if ours <= most else Claimed.NONE


def holds(whether: bool) -> Claimed:
    """Judge a claim without a figure: its direction is there, or it is not."""
    return Claimed.DIRECTION if whether else Claimed.NONE


def least(verdicts: Iterable[Claimed]) -> Claimed:
    """Return the verdict on figures that were published together: the least of theirs."""
    return min(verdicts)


def read(figures: Iterable[Mapping[str, Any]]) -> Claimed:
    """Return the verdict on figures as `shapes.yaml` has them: see there.

    Raises:
        KeyError: If a figure has none of the kinds.
    """
    return least(_read(each) for each in figures)


def _read(figure: Mapping[str, Any]) -> Claimed:
    if "times" in figure:
        published = figure["published"]
        return ratio(
            figure["times"], tuple(published) if isinstance(published, list) else published
        )
    if "value" in figure:
        return equal(figure["value"], figure["published"])
    if "at_most" in figure:
        return bound(figure["ours"], figure["at_most"])
    return holds(figure["holds"])
