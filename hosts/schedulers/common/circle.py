"""Periodic demands on a circle: how well jobs fit on a link, and by which shifts they fit best.

A job's demand repeats each iteration. Jobs of different iterations share a circle whose perimeter
is a multiple of all of them; a rotation of a job's demand is a shift of its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import lcm

import numpy as np
import numpy.typing as npt

ANGLES = 72  # of 5 degrees: the rotations of each job
MOST_TURNS = 64
"""Iterations on the longest circle."""

MOST_TRIES = 10_000
"""Combinations of rotations that are tried; of more jobs, one after the other is rotated."""

Demand = npt.NDArray[np.float64]
"""(angles of the circle,) part of the link's capacity that a job wants."""


def demand(period_ps: int, busy_ps: Sequence[tuple[int, int]], load: float, angles: int) -> Demand:
    """Return a job's demand over one iteration, by the share of each angle in which it sends."""
    edges = np.linspace(0, period_ps, angles + 1)
    covered = np.zeros(angles)
    for begin, stop in busy_ps:
        for first, last in _wrapped(begin, stop, period_ps):
            covered += np.clip(np.minimum(edges[1:], last) - np.maximum(edges[:-1], first), 0, None)
    return np.minimum(covered * angles / period_ps, 1.0) * load


def _wrapped(begin: int, stop: int, period_ps: int) -> list[tuple[int, int]]:
    """Return a span within the period; what reaches beyond it begins anew."""
    if stop <= period_ps:
        return [(begin, stop)]
    return [(begin, period_ps), (0, min(stop - period_ps, begin))]


def score(demands: Sequence[Demand]) -> float:
    """Return how well demands fit: 1 less the mean of what exceeds the capacity of 1."""
    return 1.0 - float(np.clip(np.sum(demands, axis=0) - 1, 0, None).mean())


def turns(periods_ps: Sequence[int]) -> list[int]:
    """Return how often each job's iteration goes round while the circle does once.

    Ratios of the periods are rounded, the more coarsely the longer the circle would be. If it would
    be longer than `MOST_TURNS` all the same, iterations are taken to be equally long.
    """
    for most in (8, 4, 2, 1):
        least = min(periods_ps)
        ratios = [Fraction(each, least).limit_denominator(most) for each in periods_ps]
        common = lcm(*(each.denominator for each in ratios))
        whole = [each.numerator * (common // each.denominator) for each in ratios]
        counts = [lcm(*whole) // each for each in whole]
        if lcm(*counts) <= MOST_TURNS:
            return counts
    return [1] * len(periods_ps)


def best_rotations(demands: Sequence[Demand], counts: Sequence[int]) -> tuple[float, list[int]]:
    """Return the best score, and the rotation of each demand, in angles.

    Args:
        demands: Each job's, round the whole circle.
        counts: Iterations of each on the circle: it has as many rotations that are the same.

    The first job stays where it is. Among equal scores, the smallest rotations count.
    """
    size = len(demands[0])  # a multiple of each count times `ANGLES`
    ways = [range(1)]
    ways += [range(0, size // count, size // (count * ANGLES)) for count in counts[1:]]
    tries = int(np.prod([float(len(each)) for each in ways]))
    if tries <= MOST_TRIES:
        best = max(product(*ways), key=lambda each: _score(demands, each))
        return _score(demands, best), list(best)
    rotations = [0] * len(demands)
    for job in range(1, len(demands)):

        def trial(way: int, job: int = job) -> float:
            return _score(demands[: job + 1], [*rotations[:job], way])

        rotations[job] = max(ways[job], key=trial)
    return _score(demands, rotations), rotations


def _score(demands: Sequence[Demand], rotations: Sequence[int]) -> float:
    pairs = zip(demands, rotations, strict=True)
    return round(score([np.roll(each, way) for each, way in pairs]), 9)
