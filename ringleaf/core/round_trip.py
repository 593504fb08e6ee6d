"""Smoothed round-trip times and the timeouts that follow from them (RFC 6298, section 2)."""

from __future__ import annotations

from ringleaf.core.arena import Words
from ringleaf.core.compiled import inline


@inline
def smooth(words: Words, average_at: int, variation_at: int, sample_ps: int, samples: int) -> None:
    """Take a round trip into account.

    Args:
        words: Where the averages are.
        average_at: Offset of the smoothed round trip in picoseconds; 0 before the first sample.
        variation_at: Offset of the mean deviation in picoseconds.
        sample_ps: The round trip.
        samples: How many of them are taken per round trip. With as many the averages would forget
            within a fraction of one, hence the smaller gains (RFC 7323, appendix G).
    """
    if words[average_at] == 0:
        words[average_at] = sample_ps
        words[variation_at] = sample_ps // 2
    else:
        error_ps = sample_ps - words[average_at]
        words[variation_at] += (abs(error_ps) - words[variation_at]) // (4 * samples)
        words[average_at] += error_ps // (8 * samples)


@inline
def timeout_ps(round_trip_ps: int, variation_ps: int, least_ps: int) -> int:
    """Return the timeout for an expected round trip, but not less than `least_ps`."""
    return max(round_trip_ps + 4 * variation_ps, least_ps)
