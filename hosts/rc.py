"""Reliable connected transport, framed as RoCEv2: SEND with posted receives, go-back-N.

UDP port 4791 and the base transport header (InfiniBand Architecture vol. 1, 9.2 and annex
A17), so that scapy and Wireshark dissect it. A queue pair (QP) delivers messages in order,
each into the receive that was posted next. Acknowledgements carry credits, the receives that
are posted (9.7.7.2); a sender without credit waits for some, and after a timeout tries with one
packet, which is refused (RNR NAK) if still no receive is posted. The ICRC is sent as zero.

Packet sequence numbers (PSN) are 64-bit counters here and 24 bits on the wire.
"""

from __future__ import annotations

from typing import NamedTuple

from numba import types

from hosts.agent import (
    AGENT_WORDS,
    READY,
    RETRANSMISSIONS,
    TIMER_AT_PS,
    complete,
    make_agent,
)
from ringleaf.arena import Arena, Bytes, Store, Words
from ringleaf.compiled import ARENA, compiled, copy_items, handler, inline
from ringleaf.errors import ProtocolError
from ringleaf.headers import (
    IP_LENGTH_AT,
    UDP_LENGTH_AT,
    UDP_PAYLOAD_AT,
    get24,
    put16,
    put24,
    write_ip_checksum,
    write_udp,
)
from ringleaf.packets import (
    HEAD_LEN,
    PAYLOAD_AT,
    PAYLOAD_LEN,
    TAIL_LEN,
    allocate_packet,
    open_packet,
)
from ringleaf.units import FOREVER_PS
from ringleaf.views import window

UDP_PORT = 4791

# Opcodes of the reliable connection service.
SEND_FIRST = 0x00
SEND_MIDDLE = 0x01
SEND_LAST = 0x02
SEND_ONLY = 0x04
ACKNOWLEDGE = 0x11

# Offsets in the frame.
OPCODE_AT = UDP_PAYLOAD_AT
PARTITION_AT = UDP_PAYLOAD_AT + 2
DEST_QP_AT = UDP_PAYLOAD_AT + 5
ACK_REQUEST_AT = UDP_PAYLOAD_AT + 8
PSN_AT = UDP_PAYLOAD_AT + 9
HEAD_BYTES = UDP_PAYLOAD_AT + 12
SYNDROME_AT = HEAD_BYTES
ACK_HEAD_BYTES = HEAD_BYTES + 4
ICRC_BYTES = 4
PACKET_OVERHEAD_BYTES = HEAD_BYTES + ICRC_BYTES

# AETH syndromes (9.7.5.2.1). An ACK's low five bits say how many receives are posted.
ACK = 0x00
CREDITS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
CREDIT_MASK = 0x1F
RNR_NAK = 0x20
SEQUENCE_NAK = 0x60

# What an rc agent reports.
SENT = 1  # a: QP, b: tag; the peer has the whole message
RECEIVED = 2  # a: QP, b: tag of the receive it went into
OVERRUN = 3  # a: QP, b: tag; the message was longer than the receive

# The agent's words.
QPS_AT = AGENT_WORDS
QP_COUNT = AGENT_WORDS + 1
MTU = AGENT_WORDS + 2  # payload bytes per packet
WINDOW = AGENT_WORDS + 3  # packets in flight per QP
ACK_EVERY = AGENT_WORDS + 4  # packets between acknowledgements asked for
MIN_TIMEOUT_PS = AGENT_WORDS + 5
RNR_WAIT_PS = AGENT_WORDS + 6
SENDERS_AT = AGENT_WORDS + 7  # fifo of QPs that may have data to send
ANSWERS_AT = AGENT_WORDS + 12  # fifo of QPs that owe an acknowledgement
TIMEOUTS = AGENT_WORDS + 17  # for the curious
OWN_WORDS = 24

# A QP's words.
PEER_QP = 0
TEMPLATE_AT = 1  # in arena.bytes, HEAD_BYTES long
NEXT_PSN = 2  # to send
ACKED_PSN = 3  # all before it are acknowledged
SENT_PSN = 4  # all before it have been sent at least once
POSTED_PSN = 5  # all before it belong to posted sends
SENDS_AT = 6  # ring of posted sends
SENDS_FIRST = 7  # oldest not acknowledged
SENDS_CURRENT = 8  # the one that NEXT_PSN is in
SENDS_END = 9
RECEIVES_AT = 10  # ring of posted receives
RECEIVES_FIRST = 11
RECEIVES_END = 12
EXPECTED_PSN = 13
PLACED_BYTES = 14  # of the message that is coming in
SYNDROME = 15  # the acknowledgement owed, or -1
GAP_REPORTED = 16  # 1 after a NAK until the expected packet comes
DEADLINE_PS = 17  # of the retransmission timer
TIMEOUT_PS = 18
SMOOTHED_PS = 19  # round trip, RFC 6298; 0 before the first sample
VARIATION_PS = 20
TIMED_PSN = 21  # the packet being timed, or -1
TIMED_FROM_PS = 22
IN_SENDERS = 23
HOLD_UNTIL_PS = 24  # after an RNR NAK
LIMIT = 25  # messages before this one have credit
PROBING = 26  # 1: one packet may go without credit
ADVERTISED = 27  # the LIMIT that the peer was last told
QP_WORDS = 32

RING = 256  # work requests per QP and direction
REQUEST_WORDS = 4  # address, length, tag, first PSN
PSN_MASK = 0xFFFFFF
MAX_BACKOFF = 256  # times the least timeout

# A fifo's words.
FIFO_ROWS = 0
FIFO_FIRST = 1
FIFO_COUNT = 2
FIFO_ROOM = 3
FIFO_WORDS = 5


class Fifo(NamedTuple):
    state: Words
    rows: Words


class Qp(NamedTuple):
    """One queue pair."""

    state: Words  # (QP_WORDS,)
    sends: Words  # (RING * REQUEST_WORDS,)
    receives: Words


def make_rc(
    store: Store,
    *,
    host: int,
    ring: int,
    mtu: int,
    window: int,
    min_timeout_ps: int,
    rnr_wait_ps: int,
) -> int:
    """Return the offset of an rc agent without queue pairs; `add_qp` makes them.

    Args:
        store: Where it lives.
        host: Its host's index.
        ring: Completion ring it reports to.
        mtu: Payload bytes of a full packet.
        window: Packets in flight per queue pair.
        min_timeout_ps: Floor of the retransmission timeout, and its value before any sample.
        rnr_wait_ps: How long a sender waits when no receive was posted.

    Raises:
        ProtocolError: If a number is out of range.
    """
    if mtu < 1 or not 1 <= window < 1 << 23:
        raise ProtocolError(f"rc on h{host}: mtu and window must be >= 1, got {mtu}, {window}")
    at = make_agent(store, OWN_WORDS, host=host, ring=ring, udp_ports=(UDP_PORT, UDP_PORT))
    words = store.arena.words
    words[at + MTU], words[at + WINDOW] = mtu, window
    words[at + ACK_EVERY] = max(1, window // 4)
    words[at + MIN_TIMEOUT_PS], words[at + RNR_WAIT_PS] = min_timeout_ps, rnr_wait_ps
    return at


def add_qp(store: Store, at: int) -> int:
    """Return the number of a new queue pair, from 0; the agent must be idle."""
    count = int(store.arena.words[at + QP_COUNT])
    if count & (count - 1) == 0:  # room is a power of two, and full
        _reserve(store, at, max(1, 2 * count))
    store.arena.words[at + QP_COUNT] = count + 1
    return count


def _reserve(store: Store, at: int, room: int) -> None:
    """Move the agent's queue pairs, and their fifos, to where `room` of them fit."""
    qps_at = store.allocate("words", room * QP_WORDS)
    fifos = {fifo_at: store.allocate("words", room) for fifo_at in (SENDERS_AT, ANSWERS_AT)}
    words = store.arena.words
    size = int(words[at + QP_COUNT]) * QP_WORDS
    words[qps_at : qps_at + size] = words[words[at + QPS_AT] :][:size]
    words[at + QPS_AT] = qps_at
    for fifo_at, rows in fifos.items():
        assert words[at + fifo_at + FIFO_COUNT] == 0
        words[at + fifo_at + FIFO_ROWS], words[at + fifo_at + FIFO_ROOM] = rows, room
        words[at + fifo_at + FIFO_FIRST] = 0


def connect_qp(
    store: Store,
    at: int,
    qp: int,
    *,
    peer_qp: int,
    macs: tuple[int, int],
    addresses: tuple[int, int],
    source_port: int,
) -> None:
    """Make queue pair `qp` ready.

    Queue pairs are numbered from 0 here and from 1 on the wire; pairs of arguments are (own,
    peer's). The UDP source port is what ECMP tells connections apart by.
    """
    rings = [store.allocate("words", RING * REQUEST_WORDS) for _ in range(2)]
    template_at = store.allocate("bytes", HEAD_BYTES)
    words = store.arena.words
    state = words[words[at + QPS_AT] + qp * QP_WORDS :][:QP_WORDS]
    state[:] = 0
    state[PEER_QP], state[TEMPLATE_AT] = peer_qp + 1, template_at
    state[SENDS_AT], state[RECEIVES_AT] = rings
    state[SYNDROME] = state[TIMED_PSN] = -1
    state[DEADLINE_PS] = FOREVER_PS
    state[TIMEOUT_PS] = 4 * words[at + MIN_TIMEOUT_PS]
    state[LIMIT] = 1  # before anything is known
    head = store.arena.bytes[template_at : template_at + HEAD_BYTES]
    write_udp(head, macs, addresses, (source_port, UDP_PORT), 0)
    put16(head, PARTITION_AT, 0xFFFF)  # the default partition
    put24(head, DEST_QP_AT, peer_qp + 1)


@inline
def open_qp(arena: Arena, at: int, qp: int) -> Qp:
    words = arena.words
    start = words[at + QPS_AT] + qp * QP_WORDS
    sends, receives = words[start + SENDS_AT], words[start + RECEIVES_AT]
    return Qp(
        window(words, start, QP_WORDS),
        window(words, sends, RING * REQUEST_WORDS),
        window(words, receives, RING * REQUEST_WORDS),
    )


@inline
def open_fifo(arena: Arena, at: int) -> Fifo:
    words = arena.words
    rows = words[at + FIFO_ROWS]
    return Fifo(window(words, at, FIFO_WORDS), window(words, rows, words[at + FIFO_ROOM]))


@inline
def fifo_push(fifo: Fifo, value: int) -> None:
    state = fifo.state
    slot = state[FIFO_FIRST] + state[FIFO_COUNT]
    if slot >= state[FIFO_ROOM]:
        slot -= state[FIFO_ROOM]
    fifo.rows[slot] = value
    state[FIFO_COUNT] += 1


@inline
def fifo_pop(fifo: Fifo) -> int:
    state = fifo.state
    value = fifo.rows[state[FIFO_FIRST]]
    state[FIFO_FIRST] += 1
    if state[FIFO_FIRST] == state[FIFO_ROOM]:
        state[FIFO_FIRST] = 0
    state[FIFO_COUNT] -= 1
    return value


@inline
def packets_of(size_bytes: int, mtu: int) -> int:
    return max(1, (size_bytes + mtu - 1) // mtu)


@inline
def has_credit(qp: Qp) -> bool:
    return qp.state[SENDS_CURRENT] < qp.state[LIMIT] or qp.state[PROBING] == 1


@inline
def sendable(qp: Qp, window: int, now_ps: int) -> bool:
    """Whether the QP has a packet that window, credits and RNR wait allow to go now."""
    state = qp.state
    return (
        state[NEXT_PSN] < state[POSTED_PSN]
        and state[NEXT_PSN] - state[ACKED_PSN] < window
        and state[HOLD_UNTIL_PS] <= now_ps
        and has_credit(qp)
    )


@inline
def offer(arena: Arena, at: int, number: int, qp: Qp, now_ps: int) -> None:
    """Queue the QP for sending, once, if it has something to send."""
    state = qp.state
    if sendable(qp, arena.words[at + WINDOW], now_ps):
        if not state[IN_SENDERS]:
            state[IN_SENDERS] = 1
            fifo_push(open_fifo(arena, at + SENDERS_AT), number)
            arena.words[at + READY] = 1
    elif state[NEXT_PSN] < state[POSTED_PSN] and state[DEADLINE_PS] == FOREVER_PS:
        set_deadline(arena, at, qp, now_ps + state[TIMEOUT_PS])  # nothing else brings it back


@inline
def owe(arena: Arena, at: int, number: int, qp: Qp, syndrome: int) -> None:
    """Queue an acknowledgement; of those still waiting to be sent, a NAK says more."""
    if qp.state[SYNDROME] < 0:
        fifo_push(open_fifo(arena, at + ANSWERS_AT), number)
        arena.words[at + READY] = 1
    qp.state[SYNDROME] = max(qp.state[SYNDROME], syndrome)


@inline
def set_deadline(arena: Arena, at: int, qp: Qp, deadline_ps: int) -> None:
    qp.state[DEADLINE_PS] = deadline_ps
    arena.words[at + TIMER_AT_PS] = min(arena.words[at + TIMER_AT_PS], deadline_ps)


@compiled(types.boolean(ARENA, *[types.int64] * 6))
def post_send(
    arena: Arena, at: int, number: int, address: int, size_bytes: int, tag: int, now_ps: int
) -> bool:
    """Send `size_bytes` of memory from `address` on; False when the ring of requests is full.

    The memory must stay as it is until SENT is reported with this tag.
    """
    qp = open_qp(arena, at, number)
    state = qp.state
    if state[SENDS_END] - state[SENDS_FIRST] == RING:
        return False
    row = (state[SENDS_END] % RING) * REQUEST_WORDS
    qp.sends[row] = address
    qp.sends[row + 1] = size_bytes
    qp.sends[row + 2] = tag
    qp.sends[row + 3] = state[POSTED_PSN]
    state[SENDS_END] += 1
    state[POSTED_PSN] += packets_of(size_bytes, arena.words[at + MTU])
    offer(arena, at, number, qp, now_ps)
    return True


@compiled(types.boolean(ARENA, *[types.int64] * 5))
def post_receive(
    arena: Arena, at: int, number: int, address: int, size_bytes: int, tag: int
) -> bool:
    """Give memory for the QP's next message; False when the ring of requests is full."""
    qp = open_qp(arena, at, number)
    state = qp.state
    if state[RECEIVES_END] - state[RECEIVES_FIRST] == RING:
        return False
    row = (state[RECEIVES_END] % RING) * REQUEST_WORDS
    qp.receives[row] = address
    qp.receives[row + 1] = size_bytes
    qp.receives[row + 2] = tag
    state[RECEIVES_END] += 1
    if state[ADVERTISED] <= state[RECEIVES_FIRST] + 1:  # the peer is about to run out of credit
        owe(arena, at, number, qp, ACK)
    return True


@inline
def credit_code(receives: int) -> int:
    """The largest code that promises no more than there are."""
    code = 0
    while code + 1 < len(CREDITS) and CREDITS[code + 1] <= receives:
        code += 1
    return code


@inline
def write_head(arena: Arena, qp: Qp, packet: int, opcode: int, psn: int, extra: int) -> None:
    """Fill a packet's head from the QP's template; `extra` counts the bytes after the BTH."""
    view = open_packet(arena, packet)
    head = view.head
    template = qp.state[TEMPLATE_AT]
    copy_items(head, 0, arena.bytes, template, HEAD_BYTES)
    udp_bytes = HEAD_BYTES - UDP_PAYLOAD_AT + extra + ICRC_BYTES
    put16(head, IP_LENGTH_AT, 28 + udp_bytes)
    put16(head, UDP_LENGTH_AT, 8 + udp_bytes)
    head[OPCODE_AT] = opcode
    put24(head, PSN_AT, psn & PSN_MASK)
    view.row[HEAD_LEN] = HEAD_BYTES
    view.row[TAIL_LEN] = ICRC_BYTES


@inline
def make_answer(arena: Arena, at: int) -> int:
    """Return the acknowledgement that has waited longest, as a packet."""
    qp = open_qp(arena, at, fifo_pop(open_fifo(arena, at + ANSWERS_AT)))
    state = qp.state
    packet = allocate_packet(arena)
    syndrome = state[SYNDROME]
    state[SYNDROME] = -1
    # An ACK names the last packet received, a NAK the one wanted (9.7.5.2).
    psn = state[EXPECTED_PSN] - (1 if syndrome == ACK else 0)
    write_head(arena, qp, packet, ACKNOWLEDGE, psn, 4)
    head = open_packet(arena, packet).head
    if syndrome == ACK:
        code = credit_code(state[RECEIVES_END] - state[RECEIVES_FIRST])
        state[ADVERTISED] = state[RECEIVES_FIRST] + CREDITS[code]
        syndrome = ACK | code
    head[SYNDROME_AT] = syndrome
    put24(head, SYNDROME_AT + 1, state[RECEIVES_FIRST] & PSN_MASK)  # messages completed
    write_ip_checksum(head)
    open_packet(arena, packet).row[HEAD_LEN] = ACK_HEAD_BYTES
    return packet


@inline
def opcode_of(is_first: bool, is_last: bool) -> int:
    if is_first:
        return SEND_ONLY if is_last else SEND_FIRST
    return SEND_LAST if is_last else SEND_MIDDLE


@inline
def make_data(arena: Arena, at: int, qp: Qp, now_ps: int) -> int:
    """Return the QP's next data packet, and advance."""
    state = qp.state
    words = arena.words
    mtu = words[at + MTU]
    row = (state[SENDS_CURRENT] % RING) * REQUEST_WORDS
    size, first_psn = qp.sends[row + 1], qp.sends[row + 3]
    psn = state[NEXT_PSN]
    offset = (psn - first_psn) * mtu
    length = min(mtu, size - offset)
    is_last = offset + length == size
    packet = allocate_packet(arena)
    write_head(arena, qp, packet, opcode_of(psn == first_psn, is_last), psn, length)
    view = open_packet(arena, packet)
    head = view.head
    if is_last or state[PROBING] or (psn + 1) % words[at + ACK_EVERY] == 0:
        head[ACK_REQUEST_AT] = 0x80
    state[PROBING] = 0
    write_ip_checksum(head)
    view.row[PAYLOAD_AT] = qp.sends[row] + offset
    view.row[PAYLOAD_LEN] = length
    state[NEXT_PSN] = psn + 1
    if is_last:
        state[SENDS_CURRENT] += 1
    if psn < state[SENT_PSN]:
        words[at + RETRANSMISSIONS] += 1
    else:
        state[SENT_PSN] = psn + 1
        if state[TIMED_PSN] < 0 and head[ACK_REQUEST_AT]:
            state[TIMED_PSN] = psn
            state[TIMED_FROM_PS] = now_ps
    if state[DEADLINE_PS] == FOREVER_PS:
        set_deadline(arena, at, qp, now_ps + state[TIMEOUT_PS])
    return packet


@handler
def transmit(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Return the next packet: acknowledgements first, then queue pairs in turn."""
    words = arena.words
    answers = open_fifo(arena, at + ANSWERS_AT)
    senders = open_fifo(arena, at + SENDERS_AT)
    packet = -1
    if answers.state[FIFO_COUNT] > 0:
        packet = make_answer(arena, at)
    while packet < 0 and senders.state[FIFO_COUNT] > 0:
        number = fifo_pop(senders)
        qp = open_qp(arena, at, number)
        qp.state[IN_SENDERS] = 0
        if sendable(qp, words[at + WINDOW], now_ps):
            packet = make_data(arena, at, qp, now_ps)
            offer(arena, at, number, qp, now_ps)
    words[at + READY] = answers.state[FIFO_COUNT] + senders.state[FIFO_COUNT] > 0
    return packet


@inline
def take_sample(arena: Arena, at: int, qp: Qp, now_ps: int) -> None:
    """Update the timeout from the round trip just timed (RFC 6298, section 2)."""
    state = qp.state
    sample = now_ps - state[TIMED_FROM_PS]
    state[TIMED_PSN] = -1
    if state[SMOOTHED_PS] == 0:
        state[SMOOTHED_PS] = sample
        state[VARIATION_PS] = sample // 2
    else:
        state[VARIATION_PS] += (abs(state[SMOOTHED_PS] - sample) - state[VARIATION_PS]) // 4
        state[SMOOTHED_PS] += (sample - state[SMOOTHED_PS]) // 8
    timeout = state[SMOOTHED_PS] + 4 * state[VARIATION_PS]
    state[TIMEOUT_PS] = max(timeout, arena.words[at + MIN_TIMEOUT_PS])


@inline
def go_back(qp: Qp) -> None:
    """Start again from the first packet that is not acknowledged."""
    state = qp.state
    state[NEXT_PSN] = state[ACKED_PSN]
    state[SENDS_CURRENT] = state[SENDS_FIRST]
    state[TIMED_PSN] = -1  # Karn: a retransmitted packet's round trip is ambiguous


@inline
def acknowledge(arena: Arena, at: int, number: int, qp: Qp, before_psn: int, now_ps: int) -> None:
    """Everything before `before_psn` has arrived."""
    state = qp.state
    if before_psn <= state[ACKED_PSN]:
        return
    if 0 <= state[TIMED_PSN] < before_psn:
        take_sample(arena, at, qp, now_ps)
    state[ACKED_PSN] = before_psn
    mtu = arena.words[at + MTU]
    while state[SENDS_FIRST] < state[SENDS_END]:
        row = (state[SENDS_FIRST] % RING) * REQUEST_WORDS
        if qp.sends[row + 3] + packets_of(qp.sends[row + 1], mtu) > before_psn:
            break
        complete(arena, at, SENT, number, qp.sends[row + 2], now_ps)
        state[SENDS_FIRST] += 1
    if state[NEXT_PSN] < before_psn:  # it was on its way back to what has arrived after all
        state[NEXT_PSN] = before_psn
    state[SENDS_CURRENT] = max(state[SENDS_CURRENT], state[SENDS_FIRST])
    if before_psn < state[SENT_PSN]:
        set_deadline(arena, at, qp, now_ps + state[TIMEOUT_PS])
    else:
        state[DEADLINE_PS] = FOREVER_PS


@inline
def full_number(wire_psn: int, near: int) -> int:
    """Return the 64-bit number closest to `near` that has these 24 bits."""
    return near + ((wire_psn - near + 0x800000) & PSN_MASK) - 0x800000


@inline
def receive_answer(arena: Arena, at: int, number: int, qp: Qp, head: Bytes, now_ps: int) -> None:
    state = qp.state
    syndrome = int(head[SYNDROME_AT])
    is_ack = syndrome & ~CREDIT_MASK == ACK
    psn = full_number(get24(head, PSN_AT), state[ACKED_PSN])
    before = psn + 1 if is_ack else psn
    if before > state[SENT_PSN]:
        return  # acknowledges what was never sent: not ours
    if is_ack:
        done = full_number(get24(head, SYNDROME_AT + 1), state[SENDS_FIRST])
        limit = done + CREDITS[min(syndrome & CREDIT_MASK, len(CREDITS) - 1)]
        if limit > state[LIMIT]:
            state[LIMIT] = limit
            state[HOLD_UNTIL_PS] = 0
    is_news = before >= state[ACKED_PSN]
    acknowledge(arena, at, number, qp, before, now_ps)
    if syndrome == SEQUENCE_NAK and is_news:
        go_back(qp)
    elif syndrome == RNR_NAK and is_news:
        go_back(qp)
        state[LIMIT] = min(state[LIMIT], state[SENDS_FIRST])
        state[HOLD_UNTIL_PS] = now_ps + arena.words[at + RNR_WAIT_PS]
        set_deadline(arena, at, qp, state[HOLD_UNTIL_PS])
    offer(arena, at, number, qp, now_ps)


@inline
def place(arena: Arena, qp: Qp, packet_row: Words, opcode: int) -> bool:
    """Copy a packet's payload to where its message goes; False if it does not fit there."""
    state = qp.state
    row = (state[RECEIVES_FIRST] % RING) * REQUEST_WORDS
    if opcode in (SEND_FIRST, SEND_ONLY):
        state[PLACED_BYTES] = 0
    length = packet_row[PAYLOAD_LEN]
    if state[PLACED_BYTES] + length > qp.receives[row + 1]:
        return False
    memory = arena.memory
    target = qp.receives[row] + state[PLACED_BYTES]
    copy_items(memory, target, memory, packet_row[PAYLOAD_AT], length)
    state[PLACED_BYTES] += length
    return True


@inline
def receive_data(arena: Arena, at: int, number: int, qp: Qp, packet: int, now_ps: int) -> None:
    state = qp.state
    view = open_packet(arena, packet)
    opcode = view.head[OPCODE_AT]
    psn = full_number(get24(view.head, PSN_AT), state[EXPECTED_PSN])
    if psn < state[EXPECTED_PSN]:
        owe(arena, at, number, qp, ACK)  # a duplicate: the acknowledgement was lost
    elif psn > state[EXPECTED_PSN]:
        if not state[GAP_REPORTED]:
            state[GAP_REPORTED] = 1
            owe(arena, at, number, qp, SEQUENCE_NAK)
    elif state[RECEIVES_FIRST] == state[RECEIVES_END]:
        state[GAP_REPORTED] = 1  # what follows is refused with it
        owe(arena, at, number, qp, RNR_NAK)
    else:
        state[EXPECTED_PSN] += 1
        state[GAP_REPORTED] = 0
        state[SYNDROME] = min(state[SYNDROME], ACK)  # a NAK not yet sent has no object any more
        tag = qp.receives[(state[RECEIVES_FIRST] % RING) * REQUEST_WORDS + 2]
        if not place(arena, qp, view.row, opcode):
            complete(arena, at, OVERRUN, number, tag, now_ps)
        if opcode in (SEND_LAST, SEND_ONLY):
            state[RECEIVES_FIRST] += 1
            complete(arena, at, RECEIVED, number, tag, now_ps)
        if view.head[ACK_REQUEST_AT] & 0x80:
            owe(arena, at, number, qp, ACK)


@handler
def receive(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    head = open_packet(arena, packet).head
    number = get24(head, DEST_QP_AT) - 1
    if not 0 <= number < arena.words[at + QP_COUNT]:
        return 0
    qp = open_qp(arena, at, number)
    if head[OPCODE_AT] == ACKNOWLEDGE:
        receive_answer(arena, at, number, qp, head, now_ps)
    else:
        receive_data(arena, at, number, qp, packet, now_ps)
    return 0


@inline
def expire(arena: Arena, at: int, number: int, qp: Qp, now_ps: int) -> None:
    """The QP's deadline has come: an RNR wait is over, or an acknowledgement is overdue."""
    state = qp.state
    state[DEADLINE_PS] = FOREVER_PS
    if state[NEXT_PSN] == state[ACKED_PSN] and not has_credit(qp):
        state[PROBING] = 1
    elif state[HOLD_UNTIL_PS] != now_ps:
        arena.words[at + TIMEOUTS] += 1
        most_ps = MAX_BACKOFF * arena.words[at + MIN_TIMEOUT_PS]
        state[TIMEOUT_PS] = min(2 * state[TIMEOUT_PS], most_ps)  # RFC 6298, 5.5
        go_back(qp)
    offer(arena, at, number, qp, now_ps)


@handler
def fire_timer(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Expire what is due, and set the agent's timer to the earliest deadline left."""
    words = arena.words
    words[at + TIMER_AT_PS] = FOREVER_PS
    for number in range(words[at + QP_COUNT]):
        qp = open_qp(arena, at, number)
        if qp.state[DEADLINE_PS] <= now_ps:
            expire(arena, at, number, qp, now_ps)
        words[at + TIMER_AT_PS] = min(words[at + TIMER_AT_PS], qp.state[DEADLINE_PS])
    return 0
