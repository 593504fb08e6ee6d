"""The compiled event loop: packets cross links and switches in virtual time.

One event per packet and hop: the arrival of its last bit (store and forward). A port that
is busy gets one more event, when it falls idle. Python is called back, by returning, only
when an agent has reported something.
"""

from __future__ import annotations

import numpy as np
from numba import types

import networks.virtual.state as s
from hosts.agent import READY, TIMER_AT_PS, UDP_PORT_HIGH, UDP_PORT_LOW
from hosts.rc.wire import PARTITION_AT, PARTITION_NUMBER
from networks.virtual.bins import count_bin, note_queues
from networks.virtual.heap import CAPACITY, COUNT, first_time_ps, pop_event, push_event
from networks.virtual.state import agent_row, node_row, port_row
from ringleaf.arena import Arena, Fields, Words
from ringleaf.compiled import ARENA, compiled, copy_items, handler_at, inline, signed
from ringleaf.headers import (
    ETHERTYPE_AT,
    ETHERTYPE_IPV4,
    IP_PROTOCOL_AT,
    PROTOCOL_UDP,
    UDP_DST_AT,
    UDP_PAYLOAD_AT,
    get16,
)
from ringleaf.packets import (
    ENQUEUED_PS,
    HEAD_LEN,
    IN_PORT,
    MARK,
    OUTBOX_AT,
    OUTBOX_ROWS,
    OWNER,
    PAYLOAD_AT,
    PAYLOAD_LEN,
    POOL_FREE,
    TAIL_LEN,
    TWIN,
    copy_packet,
    free_packet,
    open_packet,
    pin_payload,
    row_bytes,
    row_of,
)
from ringleaf.units import FOREVER_PS, PS_PER_S, PS_PER_US
from switches.layout import (
    AGAIN_PORT,
    CLONE,
    DEQ_QDEPTH,
    DEQ_TIMEDELTA,
    EGRESS_PORT,
    ENQ_QDEPTH,
    ENQ_TIMESTAMP,
    PORT_COUNT,
    PRIORITY,
    ROUND,
    SEND,
)
from switches.queues import LENGTHS, PACKETS, push
from switches.replication import may_pass, replicate, send_twin
from switches.schedulers import pop

# Why `run` returned.
REPORTED = 1  # agents have reported; all events of that instant are done
EMPTY = 2  # nothing is left to happen
UNTIL = 3  # the next event is later than asked for
NEEDS_ROOM = 4  # the packet pool or the heap must grow
CAPTURED = 5  # the capture buffer must be emptied

# An event is kind | number << 3 | packet << 32.
ARRIVAL = 0  # number: port
IDLE = 1  # number: port
TIMER = 2  # number: agent
CLONED = 3  # number: port that the packet, a clone of what egress has made, is about to leave by
AGAIN = 4  # number: port that the packet, which goes round, came by when it first did

MIN_FRAME_BYTES = 60  # without FCS; shorter ones are padded on the line
LINE_OVERHEAD_BYTES = 24  # preamble 8, FCS 4, gap 12 (IEEE 802.3)


@inline
def line_bytes(size_bytes: int) -> int:
    """Bytes of line time that a frame of `size_bytes`, without FCS, takes."""
    return max(size_bytes, MIN_FRAME_BYTES) + LINE_OVERHEAD_BYTES


@inline
def draw(random: Fields) -> int:
    """Return the next of 53 random bits (splitmix64, Steele et al., OOPSLA 2014)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return signed((z ^ (z >> np.uint64(31))) >> np.uint64(11))


@inline
def happens(random: Fields, probability: int) -> bool:
    return probability > 0 and draw(random) < probability


@inline
def capture(arena: Arena, at: int, port: int, packet: int, now_ps: int, order: int) -> None:
    """Append a packet to the capture buffer: its first bit goes on the line, or all have come."""
    words = arena.words
    view = open_packet(arena, packet)
    row = view.row
    head, body, tail = row[HEAD_LEN], row[PAYLOAD_LEN], row[TAIL_LEN]
    start = words[at + s.CAPTURE_BYTES_AT] + words[at + s.CAPTURE_USED]
    buffer = arena.bytes[start : start + head + body + tail]
    copy_items(buffer, 0, view.head, 0, head)
    copy_items(buffer, head, arena.memory, row[PAYLOAD_AT], body)
    buffer[head + body :] = 0
    entry = words[at + s.CAPTURE_AT] + s.CAPTURE_ROW_WORDS * words[at + s.CAPTURE_COUNT]
    words[entry] = now_ps
    words[entry + 1] = port
    words[entry + 2] = start
    words[entry + 3] = buffer.size
    words[entry + 4] = order
    words[at + s.CAPTURE_COUNT] += 1
    words[at + s.CAPTURE_USED] += buffer.size


@inline
def send(arena: Arena, at: int, port: int, packet: int, now_ps: int) -> None:
    """Put a packet on the line of an idle port."""
    words = arena.words
    here = port_row(words, at, port)
    row = row_of(words, packet)
    line = line_bytes(row_bytes(words, row))
    rate = words[here + s.RATE_BPS]
    done_ps = now_ps + (line * (8 * PS_PER_S) + rate - 1) // rate
    words[here + s.BUSY_UNTIL_PS] = done_ps
    words[here + s.TX_BYTES] += line
    words[here + s.TX_PACKETS] += 1
    count_bin(words, at, port, words[row + OWNER], now_ps, line)
    if words[here + s.CAPTURE]:
        if words[here + s.CAPTURE] & s.CAPTURE_SENT:
            capture(arena, at, port, packet, now_ps, s.SENT)
        if words[here + s.CAPTURE] & s.PIN:
            pin_payload(arena, packet)
    random = arena.fields[words[at + s.RANDOM_AT] :]
    if happens(random, words[here + s.LOSS]):
        words[here + s.LOST] += 1
        free_packet(arena, packet)
        return
    at_ps = done_ps + words[here + s.DELAY_PS]
    target = ARRIVAL | words[here + s.PEER] << 3
    heap = words[at + s.HEAP_AT]
    if happens(random, words[at + s.DUPLICATE]):
        twin = copy_packet(arena, packet)
        late_ps = at_ps + draw(random) % (words[at + s.JITTER_PS] + 1)
        push_event(words, heap, late_ps, target | twin << 32)
    if happens(random, words[at + s.REORDER]):
        at_ps += draw(random) % (words[at + s.JITTER_PS] + 1)
    push_event(words, heap, at_ps, target | packet << 32)


@inline
def await_idle(words: Words, at: int, port: int) -> None:
    """See to it that an event comes when the port falls idle."""
    here = port_row(words, at, port)
    if not words[here + s.DRAINING]:
        words[here + s.DRAINING] = 1
        push_event(words, words[at + s.HEAP_AT], words[here + s.BUSY_UNTIL_PS], IDLE | port << 3)


@inline
def find_port(words: Words, node: int, local: int) -> int:
    """The port that a switch knows by a number, -1 if there is none."""
    if 1 <= local <= words[words[node + s.BLOCK_AT] + PORT_COUNT]:
        return words[node + s.FIRST_PORT] + local - 1
    return words[node + s.CPU_AT] if 0 < local == words[node + s.CPU_PORT] else -1


@inline
def arrive_again(words: Words, at: int, node: int, packet: int, now_ps: int) -> None:
    """Let a packet come in once more, at this instant, by the port that it came by."""
    port = find_port(words, node, words[row_of(words, packet) + IN_PORT])
    push_event(words, words[at + s.HEAP_AT], now_ps, AGAIN | port << 3 | packet << 32)


@inline
def split_off(arena: Arena, at: int, port: int, packet: int, flags: int, now_ps: int) -> bool:
    """Do what egress has asked for besides; return whether the packet went on the line.

    Clones, and a packet that goes round, are events of their own at this instant.
    """
    words = arena.words
    node = node_row(words, at, words[port_row(words, at, port) + s.NODE])
    if flags & CLONE:
        event = CLONED | port << 3 | words[row_of(words, packet) + TWIN] << 32
        push_event(words, words[at + s.HEAP_AT], now_ps, event)
    if flags & SEND:
        send(arena, at, port, packet, now_ps)
        return True
    if flags & ROUND and may_pass(words, words[node + s.BLOCK_AT], packet):
        arrive_again(words, at, node, packet, now_ps)
    else:
        free_packet(arena, packet)
    return False


@inline
def leave_switch(arena: Arena, at: int, port: int, packet: int, now_ps: int) -> bool:
    """Run egress on a packet that leaves its queue; return whether it went on the line.

    Depths are of the packet's class, as in BMv2.
    """
    words = arena.words
    here = port_row(words, at, port)
    node = node_row(words, at, words[here + s.NODE])
    row = row_of(words, packet)
    enqueued_ps = words[row + ENQUEUED_PS]
    fields = open_packet(arena, packet).fields
    fields[EGRESS_PORT] = np.uint64(words[here + s.LOCAL_PORT])
    fields[ENQ_TIMESTAMP] = np.uint64(enqueued_ps // PS_PER_US)
    fields[ENQ_QDEPTH] = np.uint64(words[row + MARK])
    fields[DEQ_TIMEDELTA] = np.uint64((now_ps - enqueued_ps) // PS_PER_US)
    level = signed(fields[PRIORITY]) & 7
    fields[DEQ_QDEPTH] = np.uint64(words[words[here + s.QUEUES_AT] + LENGTHS + level])
    flags = handler_at(words[node + s.EGRESS])(arena, words[node + s.BLOCK_AT], packet, now_ps)
    if flags > SEND:
        return split_off(arena, at, port, packet, flags, now_ps)
    if flags:
        send(arena, at, port, packet, now_ps)
        return True
    free_packet(arena, packet)
    return False


@inline
def enqueue(arena: Arena, at: int, port: int, packet: int, now_ps: int) -> None:
    words = arena.words
    here = port_row(words, at, port)
    queues = words[here + s.QUEUES_AT]
    level = signed(open_packet(arena, packet).fields[PRIORITY]) & 7
    row = row_of(words, packet)
    words[row + ENQUEUED_PS] = now_ps
    words[row + MARK] = words[queues + LENGTHS + level]
    if words[queues + PACKETS] == 0 and words[here + s.BUSY_UNTIL_PS] <= now_ps:
        leave_switch(arena, at, port, packet, now_ps)
    elif push(words, queues, packet, level):
        await_idle(words, at, port)
        if words[at + s.QUEUE_BINS_AT]:
            note_queues(words, at, port, now_ps)
    else:
        free_packet(arena, packet)


@inline
def drain(arena: Arena, at: int, port: int, now_ps: int) -> None:
    """Send from the queues of a port that fell idle, until one packet is on the line."""
    words = arena.words
    queues = words[port_row(words, at, port) + s.QUEUES_AT]
    if words[at + s.QUEUE_BINS_AT]:
        note_queues(words, at, port, now_ps)
    went = False
    turns = OUTBOX_ROWS  # one event may not make more packets than there is room for
    while words[queues + PACKETS] > 0 and not went and turns > 0:
        turns -= 1
        went = leave_switch(arena, at, port, pop(words, queues), now_ps)
    if words[queues + PACKETS] > 0:
        await_idle(words, at, port)


@inline
def forward(arena: Arena, at: int, node: int, count: int, now_ps: int) -> None:
    """Take `count` packets from the outbox to the queues of their ports, or to ingress again."""
    words = arena.words
    outbox = words[OUTBOX_AT]
    for row in range(outbox, outbox + 2 * count, 2):
        packet, out = words[row], words[row + 1]
        port = find_port(words, node, out)
        if port >= 0:
            enqueue(arena, at, port, packet, now_ps)
        elif out == AGAIN_PORT:
            arrive_again(words, at, node, packet, now_ps)
        else:
            free_packet(arena, packet)  # as BMv2: no such port, no packet


@inline
def cross_switch(arena: Arena, at: int, node: int, port: int, packet: int, now_ps: int) -> None:
    words = arena.words
    block = words[node + s.BLOCK_AT]
    words[row_of(words, packet) + IN_PORT] = words[port_row(words, at, port) + s.LOCAL_PORT]
    handler_at(words[node + s.INGRESS])(arena, block, packet, now_ps)
    forward(arena, at, node, replicate(arena, block, packet, now_ps), now_ps)


@inline
def note_owner(arena: Arena, agent: int, packet: int) -> None:
    """Write down for which group a host sends a packet."""
    words = arena.words
    owner = words[agent + s.AGENT_OWNER]
    if owner == 0:
        owner = get16(open_packet(arena, packet).head, PARTITION_AT) & PARTITION_NUMBER
    words[row_of(words, packet) + OWNER] = owner


@inline
def offer_port(arena: Arena, at: int, node: int, now_ps: int) -> None:
    """Give an idle port of a host to the next agent that has something to send."""
    words = arena.words
    first, count = words[node + s.FIRST_AGENT], words[node + s.AGENT_COUNT]
    for _ in range(count):
        number = first + words[node + s.TURN]
        words[node + s.TURN] = (words[node + s.TURN] + 1) % count
        agent = agent_row(words, at, number)
        block = words[agent + s.AGENT_AT]
        if words[block + READY]:
            packet = handler_at(words[agent + s.TRANSMIT])(arena, block, 0, now_ps)
            arm_timer(words, at, number, now_ps)
            if packet >= 0:
                if words[at + s.OWNERS] > 1:
                    note_owner(arena, agent, packet)
                send(arena, at, words[node + s.FIRST_PORT], packet, now_ps)
                return


@inline
def serve_agents(arena: Arena, at: int, node: int, now_ps: int) -> None:
    """Send for a host's agents if its port is idle, and come back if more is waiting."""
    words = arena.words
    port = words[node + s.FIRST_PORT]
    here = port_row(words, at, port)
    if words[here + s.BUSY_UNTIL_PS] <= now_ps:
        offer_port(arena, at, node, now_ps)
    if words[here + s.BUSY_UNTIL_PS] <= now_ps:
        return
    first = words[node + s.FIRST_AGENT]
    for number in range(first, first + words[node + s.AGENT_COUNT]):
        if words[words[agent_row(words, at, number) + s.AGENT_AT] + READY]:
            await_idle(words, at, port)
            return


@inline
def arm_timer(words: Words, at: int, number: int, now_ps: int) -> None:
    """Have an event no later than the agent's timer; a later one is put off when it comes.

    A timer may be over when it is set: a shorter timeout counts from when a packet was sent.
    """
    agent = agent_row(words, at, number)
    timer_ps = max(words[words[agent + s.AGENT_AT] + TIMER_AT_PS], now_ps)
    if timer_ps < words[agent + s.TIMER_PS]:
        words[agent + s.TIMER_PS] = timer_ps
        push_event(words, words[at + s.HEAP_AT], timer_ps, TIMER | number << 3)


@inline
def udp_port(arena: Arena, packet: int) -> int:
    """The destination port of a UDP packet, -1 of any other."""
    view = open_packet(arena, packet)
    head = view.head
    if view.row[HEAD_LEN] < UDP_PAYLOAD_AT or get16(head, ETHERTYPE_AT) != ETHERTYPE_IPV4:
        return -1
    return get16(head, UDP_DST_AT) if head[IP_PROTOCOL_AT] == PROTOCOL_UDP else -1


@inline
def reach_host(arena: Arena, at: int, node: int, packet: int, now_ps: int) -> None:
    words = arena.words
    port = udp_port(arena, packet)
    first = words[node + s.FIRST_AGENT]
    end = first + words[node + s.AGENT_COUNT]
    for number in range(first, end):
        agent = agent_row(words, at, number)
        block = words[agent + s.AGENT_AT]
        if words[block + UDP_PORT_LOW] <= port <= words[block + UDP_PORT_HIGH]:
            handler_at(words[agent + s.RECEIVE])(arena, block, packet, now_ps)
            arm_timer(words, at, number, now_ps)
            break
    else:
        words[at + s.UNCLAIMED] += 1
    free_packet(arena, packet)
    serve_agents(arena, at, node, now_ps)


@inline
def ring_timer(arena: Arena, at: int, number: int, now_ps: int) -> None:
    words = arena.words
    agent = agent_row(words, at, number)
    if words[agent + s.TIMER_PS] != now_ps:
        return  # an earlier event took its place
    words[agent + s.TIMER_PS] = FOREVER_PS
    block = words[agent + s.AGENT_AT]
    if words[block + TIMER_AT_PS] <= now_ps:
        handler_at(words[agent + s.FIRE_TIMER])(arena, block, 0, now_ps)
    arm_timer(words, at, number, now_ps)
    serve_agents(arena, at, node_row(words, at, words[agent + s.AGENT_NODE]), now_ps)


@inline
def busied(words: Words, node: int, now_ps: int) -> int:
    """How many events of a switch's own were handled in this instant: with that, a replay
    puts what arrives in the same instant where it was among them.
    """
    return words[node + s.BUSIED] if words[node + s.BUSIED_PS] == now_ps else 0


@inline
def note_busied(words: Words, node: int, now_ps: int) -> None:
    words[node + s.BUSIED] = busied(words, node, now_ps) + 1
    words[node + s.BUSIED_PS] = now_ps


@inline
def handle(arena: Arena, at: int, event: int, now_ps: int) -> None:
    words = arena.words
    kind = event & 7
    number = (event >> 3) & 0x1FFFFFFF
    if kind == TIMER:
        ring_timer(arena, at, number, now_ps)
        return
    here = port_row(words, at, number)
    node = node_row(words, at, words[here + s.NODE])
    is_switch = words[node + s.KIND] == s.SWITCH
    if kind == ARRIVAL:
        words[at + s.HOPS] += 1
        if words[here + s.CAPTURE] & s.CAPTURE_RECEIVED:
            order = busied(words, node, now_ps)
            capture(arena, at, number, event >> 32, now_ps, order)
        if is_switch:
            cross_switch(arena, at, node, number, event >> 32, now_ps)
        elif words[node + s.KIND] == s.OUTSIDE:
            handler_at(words[node + s.INGRESS])(
                arena, words[node + s.BLOCK_AT], event >> 32, now_ps
            )
        else:
            reach_host(arena, at, node, event >> 32, now_ps)
    elif kind == AGAIN:
        words[at + s.HOPS] += 1
        note_busied(words, node, now_ps)
        cross_switch(arena, at, node, number, event >> 32, now_ps)
    elif kind == CLONED:
        note_busied(words, node, now_ps)
        count = send_twin(arena, words[node + s.BLOCK_AT], event >> 32)
        forward(arena, at, node, count, now_ps)
    else:
        words[here + s.DRAINING] = 0
        if is_switch:
            note_busied(words, node, now_ps)
            drain(arena, at, number, now_ps)
        else:
            serve_agents(arena, at, node, now_ps)


@inline
def lacks_room(words: Words, at: int) -> int:
    """Why the next event can't be handled yet, or 0: one may send and clone OUTBOX_ROWS packets."""
    heap = words[at + s.HEAP_AT]
    if words[POOL_FREE] < 2 * OUTBOX_ROWS:
        return NEEDS_ROOM
    if words[heap + COUNT] + 4 * OUTBOX_ROWS > words[heap + CAPACITY]:
        return NEEDS_ROOM
    if words[at + s.CAPTURE_ROOM] > 0:
        rows_left = words[at + s.CAPTURE_ROWS] - words[at + s.CAPTURE_COUNT]
        bytes_left = words[at + s.CAPTURE_ROOM] - words[at + s.CAPTURE_USED]
        if rows_left < words[at + s.CAPTURE_RESERVE_ROWS]:
            return CAPTURED
        if bytes_left < words[at + s.CAPTURE_RESERVE]:
            return CAPTURED
    return 0


@compiled(types.int64(ARENA, types.int64, types.int64))
def run(arena: Arena, at: int, until_ps: int) -> int:
    """Handle events until an agent reports, and say why it returned.

    Events of the instant in which an agent reports are all handled first.
    """
    words = arena.words
    heap, ring = words[at + s.HEAP_AT], words[at + s.RING_AT]
    now_ps = -1
    while words[heap + COUNT] > 0:
        time_ps = first_time_ps(words, heap)
        if time_ps > now_ps:
            if words[ring] > 0:
                return REPORTED
            if time_ps > until_ps:
                return UNTIL
        reason = lacks_room(words, at)
        if reason:
            return reason
        now_ps = time_ps
        words[at + s.EVENTS] += 1
        handle(arena, at, pop_event(words, heap), now_ps)
    return REPORTED if words[ring] > 0 else EMPTY


@compiled(types.void(ARENA, types.int64, types.int64, types.int64))
def wake(arena: Arena, at: int, agent: int, now_ps: int) -> None:
    """Look at an agent that Python has given something to do at `now_ps`."""
    words = arena.words
    arm_timer(words, at, agent, now_ps)
    node = words[agent_row(words, at, agent) + s.AGENT_NODE]
    serve_agents(arena, at, node_row(words, at, node), now_ps)
