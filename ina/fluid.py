"""The fluid form of in-network aggregation: a job's blocks as one stream up its tree and down it.

A worker sends a block only when a slot is free, and a slot is free when its last sum has come. So
what goes up and what comes down keep pace, and a job's blocks are one flow over all links of both
ways. It has at most its slots in flight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Direction = tuple[str, str]


@dataclass(frozen=True, slots=True)
class FluidStream:
    """The blocks of one job, as a network of flows carries them.

    Attributes:
        way: The directions of links that blocks go by, with the packets of each block there.
        packet_bytes: Line time of a block's packet.
        values: Values in a block.
        slots: Blocks in flight at most.
        round_ps: From when all workers send a block until all have its sum, in an empty network.
        float_ps: Time that floats take in front, before any block is sent.
        float_bytes: Line time of a packet of these: each slot sends one before its first block.
    """

    way: Mapping[Direction, float]
    packet_bytes: int
    values: int
    slots: int
    round_ps: int
    float_ps: int
    float_bytes: int
