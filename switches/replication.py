"""What v1model does with a packet at the end of ingress: clone it, copy it, queue it or drop it.

Source: behavioral-model `targets/simple_switch/simple_switch.cpp`, `ingress_thread`.
"""

from __future__ import annotations

import numpy as np

from ringleaf.arena import Arena
from ringleaf.compiled import inline, signed
from ringleaf.packets import (
    FIELD_COUNT,
    FIELDS_AT,
    OUTBOX_AT,
    OUTBOX_ROWS,
    copy_packet,
    free_packet,
)
from ringleaf.views import window
from switches.layout import (
    CLONE_COUNT,
    CLONE_SESSION,
    CLONES_AT,
    DROP_PORT,
    EGRESS_RID,
    EGRESS_SPEC,
    GROUP_COUNT,
    GROUPS_AT,
    INSTANCE_TYPE,
    MCAST_GRP,
    STANDARD_FIELDS,
    TRUNCATE_LEN,
)

# Values of `instance_type`; 0 is a packet that came in and goes out once.
INGRESS_CLONE = 1
REPLICATION = 5

_U0 = np.uint64(0)
_INGRESS_CLONE = np.uint64(INGRESS_CLONE)
_REPLICATION = np.uint64(REPLICATION)


@inline
def put_out(arena: Arena, count: int, packet: int, port: int) -> int:
    row = arena.words[OUTBOX_AT] + 2 * count
    arena.words[row] = packet
    arena.words[row + 1] = port
    return count + 1


@inline
def clone_packet(arena: Arena, at: int, packet: int, session: int, count: int) -> int:
    """Put a clone of the packet as it came into the outbox, if its session is set up."""
    words = arena.words
    if session >= words[at + CLONE_COUNT]:
        return count
    port = words[words[at + CLONES_AT] + session]
    if port < 0:
        return count
    twin = copy_packet(arena, packet)
    fields = window(arena.fields, words[FIELDS_AT] + twin * words[FIELD_COUNT], STANDARD_FIELDS)
    fields[INSTANCE_TYPE] = _INGRESS_CLONE
    fields[EGRESS_RID] = _U0
    fields[TRUNCATE_LEN] = _U0
    return put_out(arena, count, twin, port)


@inline
def multicast(arena: Arena, at: int, packet: int, group: int, count: int) -> int:
    """Put a copy per member into the outbox; the last one is the packet itself."""
    words = arena.words
    members, size = 0, 0
    if group < words[at + GROUP_COUNT]:
        entry = words[at + GROUPS_AT] + 2 * group
        members, size = words[entry], words[entry + 1]
    if size == 0:
        free_packet(arena, packet)
        return count
    fields = window(arena.fields, words[FIELDS_AT] + packet * words[FIELD_COUNT], STANDARD_FIELDS)
    fields[INSTANCE_TYPE] = _REPLICATION
    fields[TRUNCATE_LEN] = _U0  # BMv2's copies are whole again
    for member in range(members, members + 2 * (size - 1), 2):
        fields[EGRESS_RID] = np.uint64(words[member + 1])
        count = put_out(arena, count, copy_packet(arena, packet), words[member])
    last = members + 2 * (size - 1)
    fields[EGRESS_RID] = np.uint64(words[last + 1])
    return put_out(arena, count, packet, words[last])


@inline
def replicate(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Return how many rows (packet, egress port) ingress has led to; they are in the outbox.

    A packet that goes nowhere is freed. At most `OUTBOX_ROWS` leave.
    """
    words = arena.words
    fields = window(arena.fields, words[FIELDS_AT] + packet * words[FIELD_COUNT], STANDARD_FIELDS)
    count = 0
    if fields[CLONE_SESSION] != _U0:
        session = signed(fields[CLONE_SESSION]) - 1
        fields[CLONE_SESSION] = _U0
        count = clone_packet(arena, at, packet, session, count)
    group = signed(fields[MCAST_GRP])
    if group != 0:
        return multicast(arena, at, packet, group, count)
    port = signed(fields[EGRESS_SPEC])
    if port == DROP_PORT:
        free_packet(arena, packet)
        return count
    return put_out(arena, count, packet, port)


LONGEST_GROUP = OUTBOX_ROWS - 1
"""Members that a multicast group may have: one row is left for a clone."""
