"""The wire format of ternary gradients: SwitchML's, a scale, and bits in place of lanes.

    bits    field
    0:80    as in SwitchML
    80:112  scale     float32, of which the block's elements are -1, 0 or 1 times; 0: all are zero;
                      all ones, in a result: workers had different scales

A worker's update has 192 bytes, size code 2: of 768 elements the lower bits of their levels plus
one, and then the upper bits; the first element is in the lowest bit of a part's first byte. Sums,
between switches and in results, have 576 bytes, code 4: six planes, the bits of 768 counts. A
count is the sum of the levels, plus one for each worker.
"""

from __future__ import annotations

from ringleaf.ina.switchml import wire

ELEMENTS = 768
"""Elements of a block."""

PLANE_BYTES = ELEMENTS // 8
WORDS = 2 * ELEMENTS // 32
"""Words of 4 bytes in a worker's packet."""

PLANES = 6
SUM_WORDS = PLANES * ELEMENTS // 32
MOST_WORKERS = ((1 << PLANES) - 1) // 2
"""Counts go up to twice the number of workers."""

SCALE_AT = wire.VALUES_AT
VALUES_AT = wire.VALUES_AT + 4
HEADER_BYTES = wire.HEADER_BYTES + 4

LEVELS_SIZE, SUM_SIZE = 2, 4
MIXED = 0xFFFFFFFF
FIRST_UDP_PORT = 0xBF10
