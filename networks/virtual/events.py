"""The events of a virtual network: each is kind | index << 3.

The index is a packet's, whose PLACE is the number of a port, or else the number of what it says.
"""

from __future__ import annotations

ARRIVAL = 0  # of a packet at a port
IDLE = 1  # number of a port
TIMER = 2  # number of an agent
CLONED = 3  # a packet, a clone made by egress, and the port by which it is about to leave
AGAIN = 4  # a packet, which goes round, and the port that it came by when it first did
