"""A parameter server of ATP: an agent that completes the switches' sums, and answers all workers.

Each gradient says whose values are in it. It is added if none of them are in the block's sum,
and takes the sum's place if all of them are; otherwise it is dropped, for its workers will send
again, alone if need be. So each worker's values count once, whatever is lost, repeated or late.

When all are there, the result goes to the job's group, on its way frees the block's aggregators,
and is kept for workers that ask again.
"""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Arena, Bytes
from ringleaf.core.compiled import copy_items, handler, inline, signed
from ringleaf.core.headers import (
    ECN_MARKED,
    ECN_MASK,
    IP_LENGTH_AT,
    IP_TOS_AT,
    UDP_LENGTH_AT,
    get16,
    put16,
    put32,
    write_ip_checksum,
)
from ringleaf.core.packets import HEAD_LEN, allocate_packet, open_packet
from ringleaf.core.units import FOREVER_PS
from ringleaf.core.views import swap_items, window
from ringleaf.hosts.agent import READY, TIMER_AT_PS
from ringleaf.hosts.fifo import FIFO_COUNT, FIFO_ROOM, fifo_pop, fifo_push
from ringleaf.ina.atp.ledger import (
    AGAIN,
    AGGREGATOR,
    AGGREGATORS,
    ANSWERED_PS,
    ASK,
    COLLIDED,
    DSCP,
    ECMP,
    ENTRIES,
    ENTRY_WORDS,
    INTEGERS,
    IS_CONGESTED,
    IS_DONE,
    IS_LATE,
    IS_MENDED,
    IS_RAW,
    IS_WANTED,
    JOB,
    KIND_SHIFT,
    LANES,
    NUMBER,
    PROPOSAL,
    PROPOSALS_AT,
    PROPOSED,
    RACKS,
    RESULT,
    RESUMED_PS,
    RTT_PS,
    SEQUENCE,
    SIZE,
    TARGET_SHIFT,
    TEMPLATES_AT,
    WORKERS,
    ParameterServer,
    open_server,
)
from ringleaf.ina.atp.scaling import (
    add_floats,
    add_integers,
    dequantise,
    has_overflowed,
    narrow,
    wrap,
)
from ringleaf.ina.atp.tally import (
    BEGINS,
    REFUSED,
    admit,
    empty_sum,
    has_all,
    has_worker,
    note_probe,
)
from ringleaf.ina.atp.wire import (
    AGGREGATOR_AT,
    COLLISION,
    CONGESTED,
    GRADIENT,
    HEADER_BYTES,
    JOB_AT,
    LATE,
    LATE_GRADIENT,
    MESSAGE_AT,
    NO_PROPOSAL,
    PROPOSAL_AT,
    RACK_AT,
    RAW,
    REQUEST,
    RESEND,
    SEQUENCE_AT,
    SEQUENCE_MASK,
    SERVER_AT,
    SIZE_AT,
    SIZE_MASK,
    SIZE_NONE,
    VALUES_AT,
    WANTED,
    get_rack,
    get_sender,
    get_sequence,
    get_workers,
    put_workers,
)
from ringleaf.ina.atp.wire import INTEGERS as INTEGERS_FLAG

ALL = 0


@inline
def answer(server: ParameterServer, entry: int, kind: int, target: int) -> None:
    """Queue a parameter; if there is no room, a worker that lacks it will ask again."""
    if server.answers.state[FIFO_COUNT] < server.answers.state[FIFO_ROOM]:
        fifo_push(server.answers, entry | kind << KIND_SHIFT | target << TARGET_SHIFT)


@inline
def is_ours(server: ParameterServer, head: Bytes, size: int) -> bool:
    """Return whether a packet is a whole gradient for this server."""
    state = server.state
    return bool(
        size >= VALUES_AT + 4 * state[LANES]
        and head[MESSAGE_AT] >> 4 == GRADIENT
        and head[JOB_AT] == state[JOB]
        and head[SERVER_AT] == state[NUMBER]
        and head[SIZE_AT] & SIZE_MASK == state[SIZE]
        and get_sender(head) < state[WORKERS]
        and get_rack(head) < state[RACKS]
    )


@inline
def begin_block(server: ParameterServer, entry: int, head: Bytes) -> None:
    """Clear an entry, and give it to the block that a gradient's header names."""
    row = entry * ENTRY_WORDS
    rows = server.rows
    for i in range(ENTRY_WORDS):
        rows[row + i] = 0
    empty_sum(server, entry)
    for i in range(entry * server.state[RACKS], (entry + 1) * server.state[RACKS]):
        server.missed[i] = 0
    rows[row + SEQUENCE] = get_sequence(head)
    rows[row + INTEGERS] = head[SIZE_AT] & INTEGERS_FLAG
    rows[row + AGGREGATOR] = get16(head, AGGREGATOR_AT)
    rows[row + PROPOSAL] = NO_PROPOSAL
    # Results go back with their gradients' priority; ECN's two bits are set by switches on the way.
    rows[row + DSCP] = signed(head[IP_TOS_AT]) & ~ECN_MASK


@inline
def find_entry(server: ParameterServer, head: Bytes) -> int:
    """Return the entry of a gradient's block; -1 if the block is older than those that are kept."""
    sequence = get_sequence(head)
    # Entries are a power of two (two windows), so numbers that wrap at 2^32 still follow one
    # another.
    entry = sequence & (server.state[ENTRIES] - 1)
    there = server.rows[entry * ENTRY_WORDS + SEQUENCE]
    if sequence != there:
        ahead = (sequence - there) & SEQUENCE_MASK  # serial arithmetic, RFC 1982
        if there >= 0 and ahead > SEQUENCE_MASK >> 1:
            return -1
        begin_block(server, entry, head)
    return int(entry)


@inline
def sum_raw(server: ParameterServer, entry: int) -> None:
    """Give up the block's sum, and ask all workers for their values as they are."""
    server.rows[entry * ENTRY_WORDS + IS_RAW] = 1
    # Sums in fixed point can't be continued with floats, so all workers send again, raw.
    empty_sum(server, entry)
    answer(server, entry, ASK, ALL)


@inline
def add_lanes(server: ParameterServer, entry: int, rack: int, workers: int) -> None:
    """Add the scratch lanes, or put them in the sum's place, so that no worker counts twice."""
    row = entry * ENTRY_WORDS
    rows, lanes = server.rows, server.state[LANES]
    outcome = admit(server, entry, rack, workers)
    if outcome == REFUSED:
        return
    sums = window(server.sums, entry * lanes, lanes)
    if outcome == BEGINS:
        for i in range(lanes):
            sums[i] = 0
    if rows[row + IS_RAW] and not rows[row + INTEGERS]:
        add_floats(sums.view(np.float64), server.scratch.view(np.float32))
    else:
        add_integers(sums, server.scratch.view(np.int32))


@inline
def add_gradient(server: ParameterServer, entry: int, head: Bytes) -> None:
    """Take a gradient of a block that has no result yet."""
    row = entry * ENTRY_WORDS
    rows = server.rows
    if head[MESSAGE_AT] & COLLISION:
        rows[row + COLLIDED] = 1
    if head[IP_TOS_AT] & ECN_MASK == ECN_MARKED:
        rows[row + IS_CONGESTED] = 1
    if head[RACK_AT] & WANTED:
        rows[row + IS_WANTED] = 1
    if get16(head, PROPOSAL_AT) == LATE_GRADIENT:
        rows[row + IS_LATE] = 1
    is_raw = bool(head[MESSAGE_AT] & RAW)
    swap_items(server.scratch, 0, head, VALUES_AT, server.state[LANES])
    if is_raw and not rows[row + IS_RAW]:
        sum_raw(server, entry)
    if is_raw == bool(rows[row + IS_RAW]):
        if not is_raw and has_overflowed(server.scratch.view(np.int32)):
            sum_raw(server, entry)
        else:
            add_lanes(server, entry, get_rack(head), get_workers(head))
    elif head[MESSAGE_AT] & RESEND:  # it has missed the request for raw values
        answer(server, entry, ASK, 1 + get_sender(head))


@inline
def request_lost(server: ParameterServer, entry: int, sender: int) -> None:
    """Ask a worker that has probed, or sent again, for its values if they have not come.

    No packet overtakes another on the way from a worker, and a probe brings along the aggregators'
    values. So values that have not come with it, or before it, have been lost. Only if flows are
    hashed to paths, another worker's probe may bring them on a longer way: then the second probe
    decides.
    """
    if has_worker(server, entry, sender):
        return
    if note_probe(server, entry, sender) or not server.state[ECMP]:
        server.rows[entry * ENTRY_WORDS + IS_MENDED] = 1
        answer(server, entry, AGAIN, 1 + sender)


@inline
def finish_block(arena: Arena, server: ParameterServer, entry: int, now_ps: int) -> None:
    """Write the result, propose another aggregator if this one was taken, and answer all."""
    row = entry * ENTRY_WORDS
    state, rows = server.state, server.rows
    lanes = state[LANES]
    sums = window(server.sums, entry * lanes, lanes)
    results = window(server.results, entry * lanes, lanes)
    if rows[row + INTEGERS]:
        wrap(sums, results)
    elif rows[row + IS_RAW]:
        narrow(sums.view(np.float64), results.view(np.float32))
    else:
        dequantise(sums, results.view(np.float32))
    if rows[row + COLLIDED]:
        # Proposals go round a shuffled list of all aggregators. Each server has an order of its
        # own, so that servers do not propose the same one to different blocks.
        place = state[PROPOSED] % state[AGGREGATORS]
        rows[row + PROPOSAL] = arena.words[state[PROPOSALS_AT] + place]
        state[PROPOSED] += 1
    rows[row + IS_DONE] = 1
    rows[row + ANSWERED_PS] = now_ps
    answer(server, entry, RESULT, ALL)


@handler
def receive(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Take a gradient."""
    server = open_server(arena, at)
    view = open_packet(arena, packet)
    head = view.head
    if not is_ours(server, head, view.row[HEAD_LEN]):
        return 0
    entry = find_entry(server, head)
    if entry >= 0:
        row = entry * ENTRY_WORDS
        if not server.rows[row + IS_DONE]:
            add_gradient(server, entry, head)
            if has_all(server, entry):
                finish_block(arena, server, entry, now_ps)
            elif head[MESSAGE_AT] & RESEND:
                request_lost(server, entry, get_sender(head))
        elif (
            head[MESSAGE_AT] & RESEND
            # A resend that comes within a round trip after the result was most likely sent before
            # it arrived. It needs no answer, which would be a packet for each of many workers.
            and now_ps - server.rows[row + ANSWERED_PS] >= server.state[RTT_PS]
        ):
            server.rows[row + IS_MENDED] = 1
            answer(server, entry, RESULT, 1 + get_sender(head))
        arena.words[at + READY] = server.answers.state[FIFO_COUNT] > 0
    return 0


@inline
def make_parameter(
    arena: Arena, server: ParameterServer, entry: int, kind: int, target: int
) -> int:
    """Return a new packet with a block's result (RESULT), or one that asks for its gradient again.

    Args:
        arena: The arena.
        server: The server.
        entry: The block's entry.
        kind: RESULT, ASK (without lanes, for raw values) or AGAIN (without lanes, for a loss).
        target: The template of the packet's addresses: 0 for the group, 1 + w for worker w.
    """
    row = entry * ENTRY_WORDS
    state, rows = server.state, server.rows
    lanes = state[LANES] if kind == RESULT else 0
    packet = allocate_packet(arena)
    view = open_packet(arena, packet)
    head = view.head
    copy_items(head, 0, arena.bytes, state[TEMPLATES_AT] + VALUES_AT * target, VALUES_AT)
    head[IP_TOS_AT] |= rows[row + DSCP]
    # An IPv4 header without options has 20 bytes, and a UDP header 8.
    put16(head, IP_LENGTH_AT, 28 + HEADER_BYTES + 4 * lanes)
    put16(head, UDP_LENGTH_AT, 8 + HEADER_BYTES + 4 * lanes)
    # The checksum covers DSCP and length, so it is written after both.
    write_ip_checksum(head)
    if kind == AGAIN:
        head[MESSAGE_AT] = REQUEST << 4
    if rows[row + IS_MENDED]:
        head[MESSAGE_AT] |= RESEND
    if rows[row + IS_RAW]:
        head[MESSAGE_AT] |= RAW
    if rows[row + IS_CONGESTED]:
        head[MESSAGE_AT] |= CONGESTED
    if rows[row + IS_WANTED]:
        head[RACK_AT] |= WANTED
    if rows[row + IS_LATE]:
        head[MESSAGE_AT] |= LATE
    put32(head, SEQUENCE_AT, rows[row + SEQUENCE])
    put16(head, AGGREGATOR_AT, rows[row + AGGREGATOR])
    put16(head, PROPOSAL_AT, rows[row + PROPOSAL])
    put_workers(head, server.arrived[entry * state[RACKS]])
    head[SIZE_AT] = rows[row + INTEGERS] | (state[SIZE] if kind == RESULT else SIZE_NONE)
    swap_items(head, VALUES_AT, server.results, entry * state[LANES], lanes)
    view.row[HEAD_LEN] = VALUES_AT + 4 * lanes
    return packet


@handler
def transmit(arena: Arena, at: int, _packet: int, _now_ps: int) -> int:
    """Return the parameter that has waited longest; skip those that have become obsolete."""
    server = open_server(arena, at)
    packet = -1
    while packet < 0 and server.answers.state[FIFO_COUNT] > 0:
        item = fifo_pop(server.answers)
        entry = item & (1 << KIND_SHIFT) - 1
        kind = item >> KIND_SHIFT & 15
        # While an answer waited, the block may have been completed, or its entry given to another
        # one: then a request would bring values that nobody needs, and a result does not exist.
        if server.rows[entry * ENTRY_WORDS + IS_DONE] == (kind == RESULT):
            packet = make_parameter(arena, server, entry, kind, item >> TARGET_SHIFT)
    arena.words[at + READY] = server.answers.state[FIFO_COUNT] > 0
    return packet


@handler
def repeat_results(arena: Arena, at: int, first: int, now_ps: int) -> int:
    """Queue all results from a block on for all workers, as they may have been lost.

    The timer, which is due at once, has the first one sent.
    """
    server = open_server(arena, at)
    state, rows = server.state, server.rows
    for sequence in range(first, first + state[ENTRIES]):
        entry = sequence & (state[ENTRIES] - 1)
        row = entry * ENTRY_WORDS
        if rows[row + SEQUENCE] == sequence & SEQUENCE_MASK and rows[row + IS_DONE]:
            rows[row + IS_MENDED] = 1
            rows[row + ANSWERED_PS] = now_ps
            answer(server, entry, RESULT, ALL)
    state[RESUMED_PS] = arena.words[at + TIMER_AT_PS] = now_ps
    return 0


@handler
def fire_timer(arena: Arena, at: int, _packet: int, _now_ps: int) -> int:
    """Send answers: a server has no other timer, as it waits for workers to send again."""
    server = open_server(arena, at)
    arena.words[at + READY] = server.answers.state[FIFO_COUNT] > 0
    arena.words[at + TIMER_AT_PS] = FOREVER_PS
    return 0
