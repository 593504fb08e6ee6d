"""The wire format of votes: SwitchML's, with bits in place of lanes.

An update of a worker has 96 bytes, size code 0: the signs of 768 elements, 1 for +1, the first in
the lowest bit of the first byte. A switch's to its parent has 576, code 4: six planes, the bits of
768 counts. A result has the majority's signs.
"""

from __future__ import annotations

SIGNS = 768
"""Elements of a block."""

WORDS = SIGNS // 32
"""Words of 4 bytes in a worker's packet."""

PLANES = 6
# A count of votes has a bit in each plane.
MOST_WORKERS = (1 << PLANES) - 1

SIGNS_SIZE, COUNTS_SIZE = 0, 4
FIRST_UDP_PORT = 0xBF00
