"""The state of an rc agent and its queue pairs: words of the arena."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringleaf.core.arena import Arena, Store, Words
from ringleaf.core.compiled import inline
from ringleaf.core.headers import (
    IP_DST_AT,
    IP_SRC_AT,
    PRIORITIES,
    UDP_SRC_AT,
    write_priority,
    write_udp,
)
from ringleaf.core.sequence_numbers import MOST_WINDOW
from ringleaf.core.units import FOREVER_PS
from ringleaf.core.views import span, window
from ringleaf.errors import ProtocolError
from ringleaf.hosts.agent import AGENT_WORDS, HOST, UDP_PORT_LOW, make_agent
from ringleaf.hosts.congestion.control import (
    CONTROL_WORDS,
    GAIN,
    ONE_GAIN,
    Controller,
    begin_anew,
    make_control,
)
from ringleaf.hosts.congestion.control import WINDOW as CONTROL_WINDOW
from ringleaf.hosts.congestion.telemetry import TELEMETRY_BYTES
from ringleaf.hosts.fifo import FIFO_COUNT, FIFO_FIRST, FIFO_ROOM, FIFO_ROWS, FIFO_WORDS
from ringleaf.hosts.rc.wire import (
    DEFAULT_PARTITION,
    DEST_QP_AT,
    FRAME_OVERHEAD_BYTES,
    HEAD_BYTES,
    PARTITION_AT,
    UDP_PORT,
)

# The reports of an rc agent.
SENT = 1  # a: QP, b: tag; the peer has the whole message
RECEIVED = 2  # a: QP, b: tag of the receive it went into, c: bytes that came
OVERRUN = 3  # a: QP, b: tag; the message was longer than the receive
LEFT = 4  # a: QP, b: tag; the last packet has gone to the line, of a QP that is eager

# The agent's words.
QPS_AT = AGENT_WORDS
QP_COUNT = AGENT_WORDS + 1
MTU = AGENT_WORDS + 2  # payload bytes per packet
WINDOW = AGENT_WORDS + 3  # packets in flight per QP, at most
HAS_DATA = AGENT_WORDS + 4  # 0: messages have sizes only, and none is written to memory
MIN_TIMEOUT_PS = AGENT_WORDS + 5
RNR_WAIT_PS = AGENT_WORDS + 6
ANSWERS_AT = AGENT_WORDS + 7  # fifo of QPs that owe an acknowledgement
PROBES_SENT = AGENT_WORDS + 12  # a statistic
LEVELS = AGENT_WORDS + 13  # a bit per priority: whether its fifo of senders has any
TURN = AGENT_WORDS + 14  # the queue pair after the last that sent at a shared rate
TAKES_CUTS = AGENT_WORDS + 15  # 1: packets without their data are asked for at once
QUIET_PS = AGENT_WORDS + 16  # for which the network may answer nothing; each deadline allows for it
REPATH_AFTER = AGENT_WORDS + 17  # probes in vain after which QPs take other paths; 0: they don't
STRICT_CLASSES = AGENT_WORDS + 18  # 1: no packet of a lower class overtakes one of a higher
SENDERS_AT = AGENT_WORDS + 19  # per priority, a fifo of QPs that may have data to send
OWN_WORDS = 19 + PRIORITIES * FIFO_WORDS

# A QP's words, by lines of the cache: what each message needs to be sent, to be received, and to be
# let go comes first.
SENDS_AT = 0  # ring of posted sends
SENDS_FIRST = 1  # oldest not acknowledged
SENDS_CURRENT = 2  # the one that NEXT_PSN is in
SENDS_END = 3
LIMIT = 4  # messages before this one have credit
NEXT_PSN = 5  # to send
ACKED_PSN = 6  # all before it are acknowledged
POSTED_PSN = 7  # all before it belong to posted sends
RECEIVES_AT = 8  # ring of posted receives
RECEIVES_FIRST = 9
RECEIVES_END = 10
SYNDROME = 11  # the acknowledgement owed, or -1
GAP_REPORTED = 12  # 1 after a NAK until the expected packet comes
ADVERTISED = 13  # the LIMIT that the peer was last told
IN_SENDERS = 14
EAGER = 15  # 1: messages leave without credit, and it is reported when they have left
ALLOWED = 16  # packets in flight
FREE_AT_PS = 17  # when pacing lets the next packet go
HOLD_UNTIL_PS = 18  # after an RNR NAK
CONTROL_AT = 19  # block of its congestion control, 0: none
PROBING = 20  # 1: a probe waits to be sent
CUTS = 21  # packets that came so and that the sender is yet to be told of
PRIORITY = 22  # of all its packets, 0 to PRIORITIES - 1
DEADLINE_PS = 23  # when to probe, or when an RNR wait is over
SENT_PSN = 24  # all before it have been sent at least once
EXPECTED_PSN = 25
PLACED_BYTES = 26  # of the message that is coming in
TEMPLATE_AT = 27  # in arena.bytes, HEAD_BYTES long
ACK_EVERY = 28  # packets between acknowledgements asked for
RETRY_END = 29  # packets from it on wait for progress, as one before it was cut again, or NO_LIMIT
TIMED_PSN = 30  # the packet being timed, or -1
RATE_BPS = 31  # of a flow scheduler, 0: none; congestion control may be slower
TIMEOUT_PS = 32  # without backoff
SMOOTHED_PS = 33  # round trip, RFC 6298; 0 before the first sample
VARIATION_PS = 34
TIMED_FROM_PS = 35
PACED_WITH = 36  # the next of those that keep to this rate together, a ring
PROBES = 37  # sent since something was last acknowledged, or sent again
NAKED_PSN = 38  # the PSN that a NAK has last asked for
UNANSWERED = 39  # probes sent since the last answer of any kind
WANTS_CUT = 40  # 1: the sender is yet to be asked for CUT_PSN
RETRIES = 41  # how often NAKED_PSN has been cut again, without any progress
PROBED_PSN = 42  # the packet that was expected when the last probe came, or -1
PROBED = 43  # probes that have come since then
CUT_PSN = 44  # the first packet that came without its data; below EXPECTED_PSN: none is missing
QP_WORDS = 48

RING = 256  # work requests per QP and direction
REQUEST_WORDS = 4  # address, length, tag; of a send the first PSN, of a receive how it lands
# Each packet copies its template, so a template begins at a cache line.
TEMPLATE_BYTES = -(-HEAD_BYTES // 64) * 64
# All three times the least timeout.
MAX_BACKOFF = 64  # of a shorter timeout; where many probes are lost, a run waits for the last gaps
LONGEST_TIMEOUT = LONGEST_PAUSE = 256
NO_LIMIT = 1 << 62


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
    quiet_ps: int = 0,
    has_data: bool = True,
    takes_cuts: bool = False,
    repath_after: int = 0,
    strict_classes: bool = True,
    udp_port: int = UDP_PORT,
) -> int:
    """Return the offset of an rc agent without queue pairs; `add_qps` makes them.

    Args:
        store: The store that holds the agent.
        host: The index of its host.
        ring: The completion ring that it reports to.
        mtu: Payload bytes of a full packet.
        window: Packets in flight per queue pair, at most.
        min_timeout_ps: Floor of the timeout; twice as much is its value before any sample.
        rnr_wait_ps: Time that a sender waits when no receive was posted.
        quiet_ps: Time for which the network may answer nothing although nothing is lost.
        has_data: Whether messages that arrive are written to memory.
        takes_cuts: Whether packets that switches have cut are asked for again at once.
        repath_after: Probes without an answer after which a queue pair takes another UDP source
            port, so that ECMP leads it elsewhere; 0: it never does.
        strict_classes: Whether the network sends no packet of a lower class before one of a higher
            that came earlier, as it may with another discipline, or where a class is paused.
        udp_port: The port that it sends to and is sent to; its peers have the same.

    Raises:
        ProtocolError: If a number is out of range.
    """
    if mtu < 1:
        raise ProtocolError(f"rc on h{host}: mtu must be at least 1, got {mtu}")
    if not 1 <= window <= MOST_WINDOW:
        raise ProtocolError(f"rc on h{host}: window must be 1 to {MOST_WINDOW}, got {window}")
    at = make_agent(store, OWN_WORDS, host=host, ring=ring, udp_ports=(udp_port, udp_port))
    words = store.arena.words
    words[at + MTU], words[at + WINDOW] = mtu, window
    words[at + HAS_DATA], words[at + TAKES_CUTS] = has_data, takes_cuts
    words[at + MIN_TIMEOUT_PS], words[at + RNR_WAIT_PS] = min_timeout_ps, rnr_wait_ps
    words[at + QUIET_PS], words[at + REPATH_AFTER] = quiet_ps, repath_after
    words[at + STRICT_CLASSES] = strict_classes
    return at


def add_qps(store: Store, at: int, count: int = 1) -> int:
    """Return the number, from 0, of the first of new queue pairs; others may be at work."""
    first = int(store.arena.words[at + QP_COUNT])
    total = first + count
    room = 1 << (first - 1).bit_length() if first else 0  # a power of two
    if total > room:
        _reserve(store, at, 1 << (total - 1).bit_length())
    store.arena.words[at + QP_COUNT] = total
    return first


def _reserve(store: Store, at: int, room: int) -> None:
    """Move the agent's queue pairs, and their fifos, to new places with room for `room` of them."""
    qps_at = store.allocate("words", room * QP_WORDS)
    senders = [SENDERS_AT + level * FIFO_WORDS for level in range(PRIORITIES)]
    fifos = {fifo_at: store.allocate("words", room) for fifo_at in (ANSWERS_AT, *senders)}
    words = store.arena.words
    size = int(words[at + QP_COUNT]) * QP_WORDS
    words[qps_at : qps_at + size] = words[words[at + QPS_AT] :][:size]
    words[at + QPS_AT] = qps_at
    for fifo_at, rows in fifos.items():
        state = words[at + fifo_at :][:FIFO_WORDS]
        waiting = np.arange(state[FIFO_FIRST], state[FIFO_FIRST] + state[FIFO_COUNT])
        if len(waiting):
            words[rows : rows + len(waiting)] = words[state[FIFO_ROWS] + waiting % state[FIFO_ROOM]]
        state[FIFO_ROWS], state[FIFO_ROOM], state[FIFO_FIRST] = rows, room, 0


class QpEnd(NamedTuple):
    """One end of a connection; pairs of numbers are (own, peer's).

    Queue pairs are numbered from 0 here and from 1 on the wire. ECMP tells connections apart by the
    UDP source port; switches may tell jobs apart by the partition key. At most `window` packets are
    in flight, if it is less than the agent's. An `eager` one sends messages without credit.
    """

    agent: int  # the agent's block
    number: int  # of its queue pair
    peer_qp: int
    macs: tuple[int, int]
    addresses: tuple[int, int]
    source_port: int
    partition: int = DEFAULT_PARTITION
    window: int = MOST_WINDOW
    eager: bool = False


def connect_qps(store: Store, ends: Sequence[QpEnd]) -> None:
    """Make queue pairs ready to send and receive."""
    if not ends:
        return
    rings_at = store.allocate("words", len(ends) * 2 * RING * REQUEST_WORDS)
    heads_at = store.allocate("bytes", len(ends) * TEMPLATE_BYTES)
    words = store.arena.words
    numbers = [(end.agent, end.number, end.window) for end in ends]
    agents, number, windows = np.array(numbers, np.int64).T
    states = np.zeros((len(ends), QP_WORDS), np.int64)
    places = np.arange(len(ends))
    states[:, TEMPLATE_AT] = heads_at + places * TEMPLATE_BYTES
    states[:, SENDS_AT] = rings_at + 2 * places * RING * REQUEST_WORDS
    states[:, RECEIVES_AT] = states[:, SENDS_AT] + RING * REQUEST_WORDS
    states[:, [SYNDROME, TIMED_PSN, NAKED_PSN, CUT_PSN, PROBED_PSN]] = -1
    states[:, DEADLINE_PS] = FOREVER_PS
    states[:, RETRY_END] = NO_LIMIT
    states[:, TIMEOUT_PS] = 2 * words[agents + MIN_TIMEOUT_PS]
    states[:, EAGER] = [end.eager for end in ends]
    states[:, LIMIT] = np.where(states[:, EAGER], NO_LIMIT, 1)  # before anything is known
    states[:, ALLOWED] = np.minimum(windows, words[agents + WINDOW])
    states[:, ACK_EVERY] = np.maximum(1, states[:, ALLOWED] // 4)
    rows = words[agents + QPS_AT] + number * QP_WORDS
    words[rows[:, None] + np.arange(QP_WORDS)] = states
    heads = store.arena.bytes[heads_at:][: len(ends) * TEMPLATE_BYTES]
    port = int(words[ends[0].agent + UDP_PORT_LOW])
    _write_heads(heads.reshape(len(ends), TEMPLATE_BYTES), ends, port)


def _write_heads(heads: npt.NDArray[np.uint8], ends: Sequence[QpEnd], port: int) -> None:
    """Write the templates of heads; checksums are written when a packet is sent."""
    write_udp(heads[0], ends[0].macs, ends[0].addresses, (ends[0].source_port, port), 0)
    heads[1:] = heads[0]
    for at, size, values in (
        (0, 6, [end.macs[1] for end in ends]),
        (6, 6, [end.macs[0] for end in ends]),
        (IP_SRC_AT, 4, [end.addresses[0] for end in ends]),
        (IP_DST_AT, 4, [end.addresses[1] for end in ends]),
        (UDP_SRC_AT, 2, [end.source_port for end in ends]),
        (PARTITION_AT, 2, [end.partition for end in ends]),
        (DEST_QP_AT, 3, [end.peer_qp + 1 for end in ends]),
    ):
        numbers = np.array(values, ">u8").view(np.uint8).reshape(-1, 8)
        heads[:, at : at + size] = numbers[:, 8 - size :]


def control_qp(
    store: Store,
    at: int,
    number: int,
    controller: Controller,
    *,
    line_bps: int,
    rtt_ps: int,
    hops: int = 1,
) -> None:
    """Put queue pair `number` under congestion control; it must be connected, and idle.

    Args:
        store: The store that holds the queue pair.
        at: The queue pair's agent.
        number: The queue pair's number; the peer's must be under the same control.
        controller: A controller of `ringleaf.hosts.congestion`.
        line_bps: Rate of the host's line.
        rtt_ps: Round trip of the longest path, without queues.
        hops: Switches between the two hosts, for controllers that are `routed`.
    """
    start = int(store.arena.words[at + QPS_AT]) + number * QP_WORDS
    block = make_control(
        store,
        controller,
        window=int(store.arena.words[start + ALLOWED]),
        line_bps=line_bps,
        rtt_ps=rtt_ps,
        packet_bytes=int(store.arena.words[at + MTU])
        + FRAME_OVERHEAD_BYTES
        + (TELEMETRY_BYTES if controller.program else 0),
        hops=hops,
        trims=bool(store.arena.words[at + TAKES_CUTS]),
    )
    words = store.arena.words
    words[start + CONTROL_AT] = block
    if block:
        words[start + ALLOWED] = words[block + CONTROL_WINDOW]


def renew_qp(arena: Arena, at: int, number: int, controller: Controller) -> None:
    """Let the congestion control of queue pair `number`, which is idle, begin as on a new one."""
    state = arena.words[int(arena.words[at + QPS_AT]) + number * QP_WORDS :][:QP_WORDS]
    if block := int(state[CONTROL_AT]):
        begin_anew(arena.words[block : block + CONTROL_WORDS], controller)
        state[ALLOWED] = arena.words[block + CONTROL_WINDOW]
        state[FREE_AT_PS] = 0


def set_gain(arena: Arena, at: int, number: int, gain: float) -> None:
    """Set the factor by which queue pair `number`'s window grows faster than usual.

    It must be under a controller that has one (`Controller.has_gain`).
    """
    start = int(arena.words[at + QPS_AT]) + number * QP_WORDS
    arena.words[int(arena.words[start + CONTROL_AT]) + GAIN] = round(gain * ONE_GAIN)


def set_priority(arena: Arena, at: int, number: int, priority: int, *, marks: bool = True) -> None:
    """Set the priority of all that queue pair `number` sends from now on; 7 is the most urgent.

    The host sends packets of higher priority first, and the priority is DSCP's class selector in
    the network; unless it `marks` packets, that is 0. Acknowledgements that the peer sends have the
    peer's priority.

    Raises:
        ProtocolError: If the priority is out of range.
    """
    if not 0 <= priority < PRIORITIES:
        where = f"rc on h{arena.words[at + HOST]}"
        raise ProtocolError(f"{where}: priority must be 0 to {PRIORITIES - 1}, got {priority!r}")
    start = int(arena.words[at + QPS_AT]) + number * QP_WORDS
    arena.words[start + PRIORITY] = priority
    template_at = int(arena.words[start + TEMPLATE_AT])
    write_priority(window(arena.bytes, template_at, HEAD_BYTES), priority if marks else 0)


def set_rate(arena: Arena, at: int, numbers: Sequence[int], rate_bps: int) -> None:
    """Set the rate at which these queue pairs send together from now on; 0: no pacing.

    The rate counts line time, headers and gaps included. A congestion controller may set a lower
    one.

    Raises:
        ProtocolError: If the rate is negative.
    """
    if rate_bps < 0:
        where = f"rc on h{arena.words[at + HOST]}"
        raise ProtocolError(f"{where}: rate_bps must be at least 0, got {rate_bps!r}")
    for place, number in enumerate(numbers):
        start = int(arena.words[at + QPS_AT]) + number * QP_WORDS
        arena.words[start + RATE_BPS], arena.words[start + FREE_AT_PS] = rate_bps, 0
        arena.words[start + PACED_WITH] = numbers[(place + 1) % len(numbers)]


@inline
def open_qp(arena: Arena, at: int, qp: int) -> Qp:
    """Return queue pair `qp` of the agent, from 0: its words, and its two rings of requests."""
    return qp_at(arena, arena.words[at + QPS_AT] + qp * QP_WORDS)


@inline
def qp_at(arena: Arena, start: int) -> Qp:
    """Return the queue pair whose words begin at `start`."""
    words = arena.words
    sends, receives = words[start + SENDS_AT], words[start + RECEIVES_AT]
    return Qp(
        span(words, start, QP_WORDS),
        span(words, sends, RING * REQUEST_WORDS),
        span(words, receives, RING * REQUEST_WORDS),
    )
