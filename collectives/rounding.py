"""The shares by which rounded sums may be off.

Source:
    Higham, "Accuracy and stability of numerical algorithms", 2nd edition, SIAM 2002: section 4.2
    (any order of additions).
"""

from __future__ import annotations

UNIT = 2.0**-24
"""Half of the distance from 1 to the next float32: a rounded sum is off by this share of itself."""

FINE_UNIT = 2.0**-53
"""The same, of float64."""


def sum_growth(addends: int) -> float:
    """Return the allowed error of a float32 sum, as a share of the sum of magnitudes in float32."""
    share, fine = (growth(addends, unit) for unit in (UNIT, FINE_UNIT))
    return (share + fine) / (1 - share) * (1 + 2.0**-40)


def growth(addends: int, unit: float) -> float:
    """Return Higham's gamma of addends - 1 roundings."""
    roundings = (addends - 1) * unit
    return roundings / (1 - roundings)
