"""The wire format of OmniReduce in switches: SwitchML's header, and the block that comes next.

    bits    field
    0:80    as in SwitchML, but that the exponent is of the block that `next` names
    80:112  next      number of a block of the tensor, or NONE

In an update, `next` is the worker's first block in this slot, behind the round's, that is not zero.
In a result it is the least of all workers', and the exponent the largest of those who named it. A
packet without lanes (size 7) says that the block is zero there. A tensor's first round in a slot
has no block: workers only tell where they begin.
"""

from __future__ import annotations

from ringleaf.ina.switchml import wire

NEXT_AT = wire.VALUES_AT
VALUES_AT = wire.VALUES_AT + 4
HEADER_BYTES = wire.HEADER_BYTES + 4

NONE = 0xFFFFFFFF

FIRST_UDP_PORT = 0xBEF0
