"""Products of rates, bytes and picoseconds, which int64 does not always hold.

A rate of 800 Gbit/s times 12 us is 9.6 * 10**18, more than int64's 9.2 * 10**18. NumPy and compiled
code wrap such a product round without a word.
"""

from __future__ import annotations

import math

from ringleaf.core.compiled import inline

_LARGEST = float(1 << 62)


@inline
def scaled(value: int, factor: int, divisor: int) -> int:
    """Return `value * factor // divisor`, also where the product does not fit int64.

    It is exact if the product is below 2**62, and else as exact as float64 is: to 15 digits. The
    result must fit int64.

    Args:
        value: int64, of either sign.
        factor: int64, of either sign.
        divisor: int64, above 0.
    """
    product = float(value) * float(factor)
    if abs(product) < _LARGEST:
        return value * factor // divisor
    return math.floor(product / divisor)
