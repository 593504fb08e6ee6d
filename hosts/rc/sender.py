"""The sending half of a queue pair: data, acknowledgements of it, go-back-N and its timer.

A timeout (RFC 6298) is no sign of a loss: a packet may wait for long in queues, and without end
where others have a higher priority. So nothing is sent again because of it, but a probe asks
the receiver how far it has come, as QUIC's does (RFC 9002, section 6.2). It takes the way of
the data before it, which nothing overtakes: data that has not arrived when the probe does has been
lost, and the receiver says so by a NAK. Only that, or a refusal, makes the sender go back. The
timeout doubles with each probe that is not answered, and no longer: as probes cost next to
nothing, Karn's reason for more, timeouts that send again too early, does not hold here.
"""

from __future__ import annotations

from ringleaf.core import native_types as types
from ringleaf.core.arena import Arena, Bytes
from ringleaf.core.compiled import compiled, copy_items, inline
from ringleaf.core.headers import (
    IP_LENGTH_AT,
    UDP_LENGTH_AT,
    UDP_PAYLOAD_AT,
    get24,
    put16,
    put24,
    write_ip_checksum,
)
from ringleaf.core.native_types import ARENA
from ringleaf.core.packets import (
    HEAD_LEN,
    PAYLOAD_AT,
    PAYLOAD_LEN,
    TAIL_LEN,
    allocate_packet,
    open_packet,
)
from ringleaf.core.round_trip import smooth, timeout_ps
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import PROGRESS, RETRANSMISSIONS, complete
from ringleaf.hosts.rc.congestion import (
    note_ack,
    note_loss,
    note_post,
    note_sent,
    pace,
    telemetry_room,
)
from ringleaf.hosts.rc.queue import await_answer, longest_gap_ps, offer, sendable, set_deadline
from ringleaf.hosts.rc.repathing import repath_if_unanswered
from ringleaf.hosts.rc.state import (
    ACK_EVERY,
    ACKED_PSN,
    CONTROL_AT,
    DEADLINE_PS,
    EAGER,
    HOLD_UNTIL_PS,
    LEFT,
    LIMIT,
    MIN_TIMEOUT_PS,
    MTU,
    NAKED_PSN,
    NEXT_PSN,
    NO_LIMIT,
    POSTED_PSN,
    PROBES,
    PROBES_SENT,
    PROBING,
    RATE_BPS,
    REQUEST_WORDS,
    RETRIES,
    RETRY_END,
    RING,
    RNR_WAIT_PS,
    SENDS_CURRENT,
    SENDS_END,
    SENDS_FIRST,
    SENT,
    SENT_PSN,
    SMOOTHED_PS,
    TEMPLATE_AT,
    TIMED_FROM_PS,
    TIMED_PSN,
    TIMEOUT_PS,
    UNANSWERED,
    VARIATION_PS,
    Qp,
    open_qp,
)
from ringleaf.hosts.rc.wire import (
    ACK,
    ACK_REQUEST_AT,
    CREDIT_MASK,
    CREDITS,
    HEAD_BYTES,
    ICRC_BYTES,
    OPCODE_AT,
    PROBE,
    PSN_AT,
    PSN_MASK,
    RNR_NAK,
    SEQUENCE_NAK,
    SYNDROME_AT,
    TELEMETRY,
    full_number,
    opcode_of,
)


@inline
def packets_of(size_bytes: int, mtu: int) -> int:
    """Return the packets of a message of so many bytes; an empty message has one, too."""
    return max(1, (size_bytes + mtu - 1) // mtu)


@compiled(types.boolean(ARENA, *[types.int64] * 6))
def post_send(
    arena: Arena, at: int, number: int, address: int, size_bytes: int, tag: int, now_ps: int
) -> bool:
    """Send `size_bytes` of memory from `address` on; return False if the ring of requests is full.

    The memory must not change until SENT is reported with this tag.
    """
    qp = open_qp(arena, at, number)
    state = qp.state
    # Both numbers only grow, so a full ring can be told from an empty one.
    if state[SENDS_END] - state[SENDS_FIRST] == RING:
        return False
    row = (state[SENDS_END] % RING) * REQUEST_WORDS
    qp.sends[row] = address
    qp.sends[row + 1] = size_bytes
    qp.sends[row + 2] = tag
    # A message gets its PSNs when it is posted. So going back, and acknowledgements, need only PSNs
    # to find the message and the place in it.
    qp.sends[row + 3] = state[POSTED_PSN]
    state[SENDS_END] += 1
    state[POSTED_PSN] += packets_of(size_bytes, arena.words[at + MTU])
    if state[CONTROL_AT]:
        note_post(arena, at, qp, now_ps)
    offer(arena, at, number, qp, now_ps)
    return True


@inline
def write_head(arena: Arena, qp: Qp, packet: int, opcode: int, psn: int, extra: int) -> None:
    """Fill a packet's head from the QP's template; `extra` counts the bytes after the BTH."""
    view = open_packet(arena, packet)
    head = view.head
    template = qp.state[TEMPLATE_AT]
    copy_items(head, 0, arena.bytes, template, HEAD_BYTES)
    udp_bytes = HEAD_BYTES - UDP_PAYLOAD_AT + extra + ICRC_BYTES
    # An IPv4 header without options has 20 bytes, and a UDP header 8; `udp_bytes` are those after
    # both.
    put16(head, IP_LENGTH_AT, 28 + udp_bytes)
    put16(head, UDP_LENGTH_AT, 8 + udp_bytes)
    head[OPCODE_AT] = opcode
    put24(head, PSN_AT, psn & PSN_MASK)
    view.row[HEAD_LEN] = HEAD_BYTES
    view.row[TAIL_LEN] = ICRC_BYTES


@inline
def note_first_time(qp: Qp, psn: int, is_asking: bool, now_ps: int) -> None:
    """Note that a packet is sent for the first time; time it if its answer tells of it."""
    state = qp.state
    state[SENT_PSN] = psn + 1
    if is_asking and state[TIMED_PSN] < 0:
        state[TIMED_PSN] = psn
        state[TIMED_FROM_PS] = now_ps


@inline
def make_data(arena: Arena, at: int, number: int, qp: Qp, now_ps: int) -> int:
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
    telemetry_length = telemetry_room(arena, qp)
    opcode = opcode_of(psn == first_psn, is_last) | (TELEMETRY if telemetry_length else 0)
    write_head(arena, qp, packet, opcode, psn, telemetry_length + length)
    view = open_packet(arena, packet)
    head = view.head
    if telemetry_length:
        for i in range(HEAD_BYTES, HEAD_BYTES + telemetry_length):
            head[i] = 0
        view.row[HEAD_LEN] = HEAD_BYTES + telemetry_length
    every = 1 if state[CONTROL_AT] else state[ACK_EVERY]  # or a window may close on its own
    # The last packet must ask: the request is complete only when its acknowledgement is here.
    if is_last or (psn + 1) % every == 0:
        head[ACK_REQUEST_AT] = 0x80
    state[PROBING] = 0  # the receiver learns as much from this packet
    # The checksum comes last, as it covers the length, which varies by packet.
    write_ip_checksum(head)
    view.row[PAYLOAD_AT] = qp.sends[row] + offset
    view.row[PAYLOAD_LEN] = length
    state[NEXT_PSN] = psn + 1
    if state[CONTROL_AT] or state[RATE_BPS]:
        pace(arena, at, qp, telemetry_length + length, now_ps)
    if state[CONTROL_AT]:
        note_sent(arena, qp, psn, now_ps)
    if is_last:
        state[SENDS_CURRENT] += 1
    # SENT_PSN is behind the farthest packet that was ever sent; NEXT_PSN falls below it by going
    # back.
    if psn < state[SENT_PSN]:
        words[at + RETRANSMISSIONS] += 1
    else:
        note_first_time(qp, psn, bool(head[ACK_REQUEST_AT]), now_ps)
        if is_last and state[EAGER]:
            complete(arena, at, LEFT, number, qp.sends[row + 2], now_ps)
    # The timer is for the oldest packet without an answer, so later packets do not start it again
    # (RFC 6298, 5.1).
    if state[DEADLINE_PS] == FOREVER_PS:
        await_answer(arena, at, qp, now_ps)
    return packet


@inline
def make_probe(arena: Arena, at: int, qp: Qp, now_ps: int) -> int:
    """Return a packet that asks whether all before it has arrived, and for credit."""
    state = qp.state
    repath_if_unanswered(arena, at, qp)
    packet = allocate_packet(arena)
    # A probe has the PSN of the packet sent last before it, so the receiver sees whether that one
    # is missing. It takes no PSN of its own, so a lost one leaves no gap.
    write_head(arena, qp, packet, PROBE, state[NEXT_PSN] - 1, 0)
    head = open_packet(arena, packet).head
    head[ACK_REQUEST_AT] = 0x80
    write_ip_checksum(head)
    state[PROBING] = 0
    state[PROBES] += 1
    state[UNANSWERED] += 1
    arena.words[at + PROBES_SENT] += 1
    await_answer(arena, at, qp, now_ps)
    return packet


@inline
def take_sample(arena: Arena, at: int, qp: Qp, now_ps: int) -> None:
    """Update the timeout from the round trip just timed (RFC 6298, section 2).

    With probes in it, it may hold their timeouts, too, and counts for no more than such a one.
    """
    state = qp.state
    sample = now_ps - state[TIMED_FROM_PS]
    if state[PROBES] > 0:
        sample = min(sample, longest_gap_ps(arena, at, qp))
    state[TIMED_PSN] = -1
    smooth(state, SMOOTHED_PS, VARIATION_PS, sample, 1)
    least_ps = arena.words[at + MIN_TIMEOUT_PS]
    state[TIMEOUT_PS] = timeout_ps(state[SMOOTHED_PS], state[VARIATION_PS], least_ps)


@inline
def go_back(qp: Qp) -> None:
    """Start again from the first packet that is not acknowledged."""
    state = qp.state
    state[NEXT_PSN] = state[ACKED_PSN]
    state[SENDS_CURRENT] = state[SENDS_FIRST]
    state[PROBES] = state[PROBING] = 0
    state[TIMED_PSN] = -1  # Karn: a retransmitted packet's round trip is ambiguous


@inline
def acknowledge(arena: Arena, at: int, number: int, qp: Qp, before_psn: int, now_ps: int) -> None:
    """Note that all packets before `before_psn` have arrived."""
    state = qp.state
    if before_psn <= state[ACKED_PSN]:
        return
    # One packet at a time is timed, and an acknowledgement of a later one is its answer, too.
    if 0 <= state[TIMED_PSN] < before_psn:
        take_sample(arena, at, qp, now_ps)
    state[ACKED_PSN] = before_psn
    if state[RETRY_END] < NO_LIMIT:  # else RETRIES, in a line of the cache of its own, is 0
        state[RETRY_END] = NO_LIMIT
        state[RETRIES] = 0
    state[PROBES] = state[PROBING] = 0
    arena.words[at + PROGRESS] += 1
    mtu = arena.words[at + MTU]
    while state[SENDS_FIRST] < state[SENDS_END]:
        row = (state[SENDS_FIRST] % RING) * REQUEST_WORDS
        # Requests complete in the order of posting, each once its last packet is acknowledged.
        if qp.sends[row + 3] + packets_of(qp.sends[row + 1], mtu) > before_psn:
            break
        complete(arena, at, SENT, number, qp.sends[row + 2], now_ps)
        state[SENDS_FIRST] += 1
    if state[NEXT_PSN] < before_psn:  # it was going to resend packets that have arrived after all
        state[NEXT_PSN] = before_psn
    state[SENDS_CURRENT] = max(state[SENDS_CURRENT], state[SENDS_FIRST])
    # What is still in flight gets a whole timeout from this progress on; with nothing in flight the
    # timer stops (RFC 6298, 5.2 and 5.3).
    if before_psn < state[SENT_PSN]:
        await_answer(arena, at, qp, now_ps)
    else:
        state[DEADLINE_PS] = FOREVER_PS


@inline
def receive_answer(arena: Arena, at: int, number: int, qp: Qp, head: Bytes, now_ps: int) -> None:
    """Take an acknowledgement or a NAK, with the credits it brings.

    A sequence NAK makes the sender go back to the packet it names; an RNR NAK does that, and holds
    the queue pair until RNR_WAIT_PS is over or new credits come.
    """
    state = qp.state
    syndrome = int(head[SYNDROME_AT])
    is_ack = syndrome & ~CREDIT_MASK == ACK
    # The wire has 24 bits of a PSN. The number nearest to the last acknowledged one is meant, as
    # windows are far below 2^23 packets.
    psn = full_number(get24(head, PSN_AT), state[ACKED_PSN])
    before = psn + 1 if is_ack else psn
    if before > state[SENT_PSN]:
        return  # acknowledges packets that were never sent: not ours
    if is_ack:
        done = full_number(get24(head, SYNDROME_AT + 1), state[SENDS_FIRST])
        limit = done + CREDITS[min(syndrome & CREDIT_MASK, len(CREDITS) - 1)]
        # An acknowledgement that comes late must not take back credit that a newer one gave.
        if limit > state[LIMIT]:
            state[LIMIT] = limit
            state[HOLD_UNTIL_PS] = 0
    state[UNANSWERED] = 0  # packets get through: RFC 9002, 6.2.1
    packets = before - state[ACKED_PSN]
    is_news = packets >= 0
    probes = state[PROBES]
    acknowledge(arena, at, number, qp, before, now_ps)
    if state[CONTROL_AT]:
        note_ack(arena, at, qp, head, packets, probes, now_ps)
    if syndrome == SEQUENCE_NAK and is_news:
        if psn != state[NAKED_PSN] or probes > 0:  # or the same NAK comes a second time
            state[NAKED_PSN] = psn
            go_back(qp)
            note_loss(arena, at, qp, int(probes > 0), now_ps)
    elif syndrome == RNR_NAK and is_news:
        go_back(qp)
        # The peer had no receive for the first message that is not complete, so credit for it, and
        # for all behind it, is void.
        state[LIMIT] = min(state[LIMIT], state[SENDS_FIRST])
        state[HOLD_UNTIL_PS] = now_ps + arena.words[at + RNR_WAIT_PS]
        set_deadline(arena, at, qp, state[HOLD_UNTIL_PS])
    offer(arena, at, number, qp, now_ps)


@inline
def expire(arena: Arena, at: int, number: int, qp: Qp, now_ps: int) -> None:
    """Handle the QP's deadline: an RNR wait is over, or an acknowledgement or credit is overdue.

    While the QP has packets that wait for the line in its own host, there is no need to ask yet.
    """
    state = qp.state
    state[DEADLINE_PS] = FOREVER_PS
    # The deadline of an RNR wait is the end of a pause that the peer has asked for, and no sign of
    # a lost answer.
    if state[HOLD_UNTIL_PS] != now_ps:
        if sendable(qp, now_ps):
            await_answer(arena, at, qp, now_ps)
        else:
            state[PROBING] = 1
    offer(arena, at, number, qp, now_ps)
