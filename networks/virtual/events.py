"""The events of a virtual network: each is kind | number << 3 | packet << 32."""

from __future__ import annotations

ARRIVAL = 0  # number: port
IDLE = 1  # number: port
TIMER = 2  # number: agent
CLONED = 3  # number: port by which the packet, a clone made by egress, is about to leave
AGAIN = 4  # number: port that the packet, which goes round, came by when it first did
