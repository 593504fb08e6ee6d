"""The end of an ingress pipeline: a packet is cloned, copied, queued or dropped.

This is v1model's. Programs for PSA leave the same fields, so that it serves them, too.

Source: behavioral-model `targets/simple_switch/simple_switch.cpp`, `ingress_thread` and
`egress_thread`.
"""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import inline, signed
from ringleaf.core.packets import (
    AGAIN,
    OUTBOX_AT,
    OUTBOX_ROWS,
    PASSES,
    POOL_FREE,
    TWIN,
    copy_packet,
    fields_of,
    free_packet,
    row_of,
)
from ringleaf.core.views import window
from ringleaf.switches.engine.layout import (
    AGAIN_PORT,
    CLONE_BITS,
    CLONE_COUNT,
    CLONES_AT,
    DROP_PORT,
    EGRESS_CLONE,
    EGRESS_RID,
    EGRESS_SPEC,
    GROUP_COUNT,
    GROUPS_AT,
    INGRESS_CLONE,
    INSTANCE_TYPE,
    KEEPS_RID,
    KEPT_RID,
    LOOPED,
    MCAST_GRP,
    MOST_PASSES,
    NORMAL,
    PRIORITY,
    REPLICATION,
    REQUESTS,
    RESUBMIT_SHIFT,
    RESUBMITTED,
    STANDARD_FIELDS,
    TRUNCATE_LEN,
    TWINNED,
)

CLONE_COLUMNS = 4  # of a clone session: its replicas' offset and count, bytes to keep, class

_U0 = np.uint64(0)
_U1 = np.uint64(1)
_CLONE_BITS = np.uint64(CLONE_BITS)
_KEEPS_RID = np.uint64(KEEPS_RID)
_TWINNED = np.uint64(TWINNED)
_RESUBMIT_SHIFT = np.uint64(RESUBMIT_SHIFT)
_NORMAL = np.uint64(NORMAL)
_INGRESS_CLONE = np.uint64(INGRESS_CLONE)
_EGRESS_CLONE = np.uint64(EGRESS_CLONE)
_REPLICATION = np.uint64(REPLICATION)


@inline
def put_out(arena: Arena, count: int, packet: int, port: int) -> int:
    """Put a packet and its port into the outbox, after `count` others; return their new count."""
    row = arena.own[OUTBOX_AT] + 2 * count
    arena.words[row] = packet
    arena.words[row + 1] = port
    return count + 1


@inline
def spread(arena: Arena, packet: int, members: int, size: int, count: int) -> int:
    """Put a copy per member (port, egress_rid) into the outbox; the last is the packet itself.

    A member with `KEPT_RID` leaves the packet's own number as it is.
    """
    words = arena.words
    fields = window(arena.fields, fields_of(arena.words, packet), STANDARD_FIELDS)
    last = members + 2 * (size - 1)
    for member in range(members, last + 2, 2):
        if words[member + 1] != KEPT_RID:
            fields[EGRESS_RID] = np.uint64(words[member + 1])
        if member < last:
            count = put_out(arena, count, copy_packet(arena, packet), words[member])
    return put_out(arena, count, packet, words[last])


@inline
def send_clone(
    arena: Arena, at: int, twin: int, session: int, instance_type: np.uint64, count: int
) -> int:
    """Put a clone into the outbox, once per replica of its session; free it if there is none."""
    words = arena.words
    size, entry = 0, 0
    if session < words[at + CLONE_COUNT]:
        entry = words[at + CLONES_AT] + CLONE_COLUMNS * session
        size = words[entry + 1]
    if size == 0:
        free_packet(arena, twin)
        return count
    fields = window(arena.fields, fields_of(arena.words, twin), STANDARD_FIELDS)
    keep = np.uint64(words[entry + 2])
    fields[INSTANCE_TYPE] = instance_type
    if fields[REQUESTS] & _TWINNED != _U0:
        fields[PRIORITY] = np.uint64(words[entry + 3])
        fields[EGRESS_RID] = _U0
    # The clone has the session that asked for it in its fields, and must not be cloned by it again.
    fields[REQUESTS] = _U0
    # The field holds the length plus 1, as 0 stands for a packet that is not cut.
    fields[TRUNCATE_LEN] = keep + _U1 if keep != _U0 else _U0
    return spread(arena, twin, words[entry], size, count)


@inline
def send_twin(arena: Arena, at: int, twin: int) -> int:
    """Put a clone that egress has made into the outbox; return how many rows there are.

    Clones of clones end like packets that come round too often.
    """
    fields = window(arena.fields, fields_of(arena.words, twin), STANDARD_FIELDS)
    session = signed(fields[REQUESTS] & _CLONE_BITS) - 1
    if not may_pass(arena, at, twin):
        free_packet(arena, twin)
        return 0
    return send_clone(arena, at, twin, session, _EGRESS_CLONE, 0)


@inline
def may_pass(arena: Arena, at: int, packet: int) -> bool:
    """Count that a packet comes round once more; return whether it may.

    BMv2 has no limit; here a packet that never leaves would stop the clock.
    """
    words = arena.words
    row = row_of(words, packet)
    words[row + PASSES] += 1
    passes = words[row + PASSES] <= MOST_PASSES and arena.own[POOL_FREE] >= OUTBOX_ROWS
    if not passes:
        words[at + LOOPED] += 1
    return passes


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
    fields = window(arena.fields, fields_of(arena.words, packet), STANDARD_FIELDS)
    fields[INSTANCE_TYPE] = _REPLICATION
    fields[TRUNCATE_LEN] = _U0  # BMv2's copies are whole again
    return spread(arena, packet, members, size, count)


@inline
def resubmit(arena: Arena, at: int, packet: int, field_list: int, count: int) -> int:
    """Put the packet, with its bytes as they came, into the outbox for ingress."""
    if not may_pass(arena, at, packet):
        free_packet(arena, packet)
        return count
    arena.words[row_of(arena.words, packet) + AGAIN] = RESUBMITTED | field_list << 8
    return put_out(arena, count, packet, AGAIN_PORT)


@inline
def replicate(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Return how many rows (packet, egress port) ingress has led to; they are in the outbox.

    A packet that goes nowhere is freed; one that is resubmitted has the port `AGAIN_PORT`. At most
    `OUTBOX_ROWS` leave.
    """
    fields = window(arena.fields, fields_of(arena.words, packet), STANDARD_FIELDS)
    count = 0
    # The order is that of BMv2's `ingress_thread`: a clone first, then a resubmission, which is all
    # that follows, then multicast, and last the port or a drop.
    requests = fields[REQUESTS]
    if requests != _U0:
        fields[REQUESTS] = _U0
        session = signed(requests & _CLONE_BITS) - 1
        if session >= 0:
            if requests & _TWINNED != _U0:
                twin = arena.words[row_of(arena.words, packet) + TWIN]
            else:
                twin = copy_packet(arena, packet)
                if requests & _KEEPS_RID == _U0:
                    arena.fields[fields_of(arena.words, twin) + EGRESS_RID] = _U0
            count = send_clone(arena, at, twin, session, _INGRESS_CLONE, count)
        field_list = signed(requests >> _RESUBMIT_SHIFT)
        if field_list != 0:
            return resubmit(arena, at, packet, field_list, count)
    group = signed(fields[MCAST_GRP])
    if group != 0:
        return multicast(arena, at, packet, group, count)
    port = signed(fields[EGRESS_SPEC])
    if port == DROP_PORT:
        free_packet(arena, packet)
        return count
    fields[INSTANCE_TYPE] = _NORMAL
    return put_out(arena, count, packet, port)


LONGEST_SESSION = 64
"""Replicas that a clone session may have."""

LONGEST_GROUP = OUTBOX_ROWS - LONGEST_SESSION
"""Members that a multicast group may have; the outbox also holds the replicas of a clone."""
