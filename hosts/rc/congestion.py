"""The link between a queue pair and its congestion controller (`hosts/congestion`), on both ends.

A receiver counts the packets that came marked (ECN), and reports their number in each
acknowledgement, modulo 64, in the six bits that BTH reserves beside FECN and BECN: as TCP does
with Accurate ECN (RFC 9768), which loses no mark where acknowledgements are merged or lost. BECN
says that there are new marks. If the controller wants CNPs, the receiver sends them, too (RoCEv2,
A17.9).
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Bytes
from ringleaf.core.compiled import call_handler, copy_items, inline
from ringleaf.core.headers import ECN_MARKED, ECN_MASK, IP_TOS_AT, PRIORITIES, write_priority
from ringleaf.core.units import FOREVER_PS, PS_PER_S
from ringleaf.core.views import window
from ringleaf.hosts.agent import READY, TIMER_AT_PS
from ringleaf.hosts.congestion.control import (
    CNP_DUE,
    CNP_FROM_PS,
    CNP_GAP_PS,
    DELAY_PS,
    HEARD_AT,
    IN_FLIGHT,
    MARKED,
    MARKS,
    ON_ACK,
    ON_CNP,
    ON_LOSS,
    ON_POST,
    ON_TIMER,
    RATE_BPS,
    SEEN_MARKS,
    TIMES_AT,
    TIMES_MASK,
    TOLD_AT,
    TOLD_MARKS,
    UNSET,
    WINDOW,
)
from ringleaf.hosts.congestion.control import PRIORITY as CONTROL_PRIORITY
from ringleaf.hosts.congestion.control import TIMER_AT_PS as CONTROL_TIMER_AT_PS
from ringleaf.hosts.congestion.telemetry import TELEMETRY_BYTES
from ringleaf.hosts.fifo import fifo_push, open_fifo
from ringleaf.hosts.rc.queue import is_owing
from ringleaf.hosts.rc.state import (
    ACKED_PSN,
    ALLOWED,
    ANSWERS_AT,
    CONTROL_AT,
    FREE_AT_PS,
    LONGEST_PAUSE,
    MIN_TIMEOUT_PS,
    NEXT_PSN,
    PACED_WITH,
    POSTED_PSN,
    PRIORITY,
    QP_WORDS,
    QPS_AT,
    SENT_PSN,
    STRICT_CLASSES,
    TEMPLATE_AT,
    Qp,
)
from ringleaf.hosts.rc.state import RATE_BPS as QP_RATE_BPS
from ringleaf.hosts.rc.wire import (
    ACK_HEAD_BYTES,
    BECN,
    FRAME_OVERHEAD_BYTES,
    HEAD_BYTES,
    MARKS_MASK,
    NOTICES_AT,
    body_bytes,
)

AGAIN_PS = -1  # in place of the time of a packet that was sent more than once


@inline
def take_priority(arena: Arena, at: int, qp: Qp, priority: int) -> None:
    """Let data have a priority from now on, if no packet overtakes another of the queue pair by it.

    Where it rises, all that was sent must have been acknowledged; likewise where it falls and the
    network may send packets of a lower class first.
    """
    state = qp.state
    may_fall = priority < state[PRIORITY] and arena.words[at + STRICT_CLASSES]
    if may_fall or (priority != state[PRIORITY] and state[ACKED_PSN] == state[SENT_PSN]):
        state[PRIORITY] = priority
        write_priority(window(arena.bytes, state[TEMPLATE_AT], HEAD_BYTES), priority)


@inline
def tell_controller(arena: Arena, at: int, qp: Qp, event: int, argument: int, now_ps: int) -> None:
    """Call one of the controller's handlers, and take over its decisions."""
    words = arena.words
    block = qp.state[CONTROL_AT]
    words[block + IN_FLIGHT] = qp.state[NEXT_PSN] - qp.state[ACKED_PSN]
    call_handler(words[block + event], arena, block, argument, now_ps)
    qp.state[ALLOWED] = words[block + WINDOW]
    if words[block + CONTROL_PRIORITY] != UNSET:
        take_priority(arena, at, qp, words[block + CONTROL_PRIORITY])
    words[at + TIMER_AT_PS] = min(words[at + TIMER_AT_PS], words[block + CONTROL_TIMER_AT_PS])


@inline
def note_sent(arena: Arena, qp: Qp, psn: int, now_ps: int) -> None:
    """Note when a packet is sent, for controllers that go by delays.

    An acknowledgement of a packet that was sent twice does not tell which one it is of (Karn).
    """
    words = arena.words
    block = qp.state[CONTROL_AT]
    if words[block + TIMES_AT] > 0:
        sent_at = words[block + TIMES_AT] + (psn & words[block + TIMES_MASK])
        words[sent_at] = AGAIN_PS if psn < qp.state[SENT_PSN] else now_ps


@inline
def note_post(arena: Arena, at: int, qp: Qp, now_ps: int) -> None:
    """Tell the controller how many packets are left, now that a message was posted."""
    left = qp.state[POSTED_PSN] - qp.state[ACKED_PSN]
    tell_controller(arena, at, qp, ON_POST, left, now_ps)


@inline
def telemetry_room(arena: Arena, qp: Qp) -> int:
    """Return the bytes that packets of a queue pair, data and answers, have for telemetry."""
    block = qp.state[CONTROL_AT]
    return TELEMETRY_BYTES if block and arena.words[block + TOLD_AT] > 0 else 0


@inline
def keep_telemetry(arena: Arena, qp: Qp, head: Bytes) -> None:
    """Keep a data packet's telemetry for the next answer."""
    if telemetry_room(arena, qp):
        told_at = arena.words[qp.state[CONTROL_AT] + TOLD_AT]
        copy_items(arena.bytes, told_at, head, HEAD_BYTES, TELEMETRY_BYTES)


@inline
def hear_telemetry(arena: Arena, qp: Qp, head: Bytes) -> None:
    """Take the telemetry out of an answer, or note that it has none."""
    heard_at = arena.words[qp.state[CONTROL_AT] + HEARD_AT]
    if body_bytes(head) >= ACK_HEAD_BYTES - HEAD_BYTES + TELEMETRY_BYTES:
        copy_items(arena.bytes, heard_at, head, ACK_HEAD_BYTES, TELEMETRY_BYTES)
    else:
        arena.bytes[heard_at] = 0


@inline
def note_ack(
    arena: Arena, at: int, qp: Qp, head: Bytes, packets: int, probes: int, now_ps: int
) -> None:
    """Handle an acknowledgement of `packets` that were not acknowledged before.

    If `probes` were sent since the last one, this may be a probe's answer. The time since the data
    was sent then has a timeout in it, and no controller may take it for a round trip (Karn).
    """
    words = arena.words
    block = qp.state[CONTROL_AT]
    count = int(head[NOTICES_AT]) & MARKS_MASK
    if packets > 0:  # an older one's count would be taken for a lap
        # The count has six bits, so the difference is right while fewer than 64 marks come in one
        # acknowledgement.
        words[block + MARKED] = (count - words[block + SEEN_MARKS]) & MARKS_MASK
        words[block + SEEN_MARKS] = count
        if words[block + TIMES_AT] > 0:
            sent_at = words[block + TIMES_AT]
            sent_at += (qp.state[ACKED_PSN] - 1) & words[block + TIMES_MASK]
            sent_ps = words[sent_at]
            is_clear = sent_ps != AGAIN_PS and probes == 0
            words[block + DELAY_PS] = now_ps - sent_ps if is_clear else 0
        if words[block + TOLD_AT] > 0:
            hear_telemetry(arena, qp, head)
        tell_controller(arena, at, qp, ON_ACK, packets, now_ps)


@inline
def note_loss(arena: Arena, at: int, qp: Qp, timeout: int, now_ps: int) -> None:
    """Tell the controller, if there is one, of a loss by a NAK (`timeout` 0) or a timeout (1)."""
    if qp.state[CONTROL_AT]:
        tell_controller(arena, at, qp, ON_LOSS, timeout, now_ps)


@inline
def receive_notice(arena: Arena, at: int, qp: Qp, now_ps: int) -> None:
    """Handle a CNP."""
    if qp.state[CONTROL_AT]:
        tell_controller(arena, at, qp, ON_CNP, 0, now_ps)


@inline
def tend(arena: Arena, at: int, qp: Qp, now_ps: int) -> None:
    """Call the controller if its timer is due, and keep the agent's timer up to date."""
    words = arena.words
    block = qp.state[CONTROL_AT]
    if words[block + CONTROL_TIMER_AT_PS] <= now_ps:
        words[block + CONTROL_TIMER_AT_PS] = FOREVER_PS
        tell_controller(arena, at, qp, ON_TIMER, 0, now_ps)
    words[at + TIMER_AT_PS] = min(words[at + TIMER_AT_PS], words[block + CONTROL_TIMER_AT_PS])


@inline
def pace(arena: Arena, at: int, qp: Qp, payload_bytes: int, now_ps: int) -> None:
    """Delay the next packet by the time that this one takes at the rates that are set.

    A controller's pause has a limit: stalls are told by it (`networks/virtual/patience.py`), and a
    rate near 0 would be one.
    """
    bits = 8 * (payload_bytes + FRAME_OVERHEAD_BYTES)
    start_ps = max(qp.state[FREE_AT_PS], now_ps)
    qp.state[FREE_AT_PS] = 0
    if qp.state[QP_RATE_BPS] > 0:
        pace_together(arena, at, qp, start_ps + bits * PS_PER_S // qp.state[QP_RATE_BPS])
    if qp.state[CONTROL_AT] > 0:
        rate_bps = arena.words[qp.state[CONTROL_AT] + RATE_BPS]
        if rate_bps > 0:
            most_ps = LONGEST_PAUSE * arena.words[at + MIN_TIMEOUT_PS]
            free_ps = start_ps + min(bits * PS_PER_S // rate_bps, most_ps)
            qp.state[FREE_AT_PS] = max(qp.state[FREE_AT_PS], free_ps)


@inline
def pace_together(arena: Arena, at: int, qp: Qp, free_ps: int) -> None:
    """Delay the next packet of a queue pair, and of those that share its rate."""
    first = qp.state[PACED_WITH]
    number = first
    while True:
        free_at = arena.words[at + QPS_AT] + number * QP_WORDS + FREE_AT_PS
        arena.words[free_at] = max(arena.words[free_at], free_ps)
        number = arena.words[free_at - FREE_AT_PS + PACED_WITH]
        if number == first:
            return


@inline
def count_mark(arena: Arena, at: int, number: int, qp: Qp, head: Bytes, now_ps: int) -> None:
    """Count a data packet that is marked (ECN), and owe the sender a CNP if one is due."""
    if head[IP_TOS_AT] & ECN_MASK != ECN_MARKED:
        return
    words = arena.words
    block = qp.state[CONTROL_AT]
    words[block + MARKS] += 1
    if words[block + CNP_GAP_PS] > 0 and words[block + CNP_FROM_PS] <= now_ps:
        words[block + CNP_FROM_PS] = now_ps + words[block + CNP_GAP_PS]
        if not is_owing(arena, qp):
            fifo_push(open_fifo(arena, at + ANSWERS_AT), number)
            words[at + READY] = 1
        words[block + CNP_DUE] = 1


@inline
def write_notices(arena: Arena, qp: Qp, head: Bytes) -> None:
    """Write the count of marks into an acknowledgement."""
    words = arena.words
    block = qp.state[CONTROL_AT]
    marks = words[block + MARKS]
    head[NOTICES_AT] = marks & MARKS_MASK | (BECN if marks > words[block + TOLD_MARKS] else 0)
    words[block + TOLD_MARKS] = marks
    if words[block + CONTROL_PRIORITY] != UNSET:
        write_priority(head, PRIORITIES - 1)
