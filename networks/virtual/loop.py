"""The compiled event loop: packets cross links and switches in virtual time.

One event per packet and hop: the arrival of its last bit (store and forward). A port that
is busy gets one more event, when it falls idle. Python is called back, by returning, only
when an agent has reported something.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import types
from switches.replication import replicate

from hosts.agent import READY, TIMER_AT_PS, UDP_PORT_HIGH, UDP_PORT_LOW
from networks.virtual import state as s
from networks.virtual.heap import CAPACITY, COUNT, pop_event, push_event
from networks.virtual.state import Network, open_network
from ringleaf.arena import Arena, Bytes, Fields
from ringleaf.compiled import ARENA, handler_at, inline, signed
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
    PAYLOAD_AT,
    PAYLOAD_LEN,
    POOL_FREE,
    copy_packet,
    free_packet,
    open_packet,
    packet_bytes,
)
from ringleaf.units import FOREVER_PS, PS_PER_S, PS_PER_US
from switches.layout import (
    DEQ_QDEPTH,
    DEQ_TIMEDELTA,
    EGRESS_PORT,
    ENQ_QDEPTH,
    ENQ_TIMESTAMP,
    PRIORITY,
)
from switches.queues import PACKETS, open_queues, pop, push

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

MIN_FRAME_BYTES = 60  # without FCS; shorter ones are padded on the line
LINE_OVERHEAD_BYTES = 24  # preamble 8, FCS 4, gap 12 (IEEE 802.3)
CAPTURE_RESERVE_BYTES = 1 << 20  # more than one event can send
CAPTURE_RESERVE_ROWS = 256


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
def count_bin(net: Network, port: int, now_ps: int, size: int) -> None:
    state = net.state
    bins = state[s.BINS]
    while now_ps >= bins * state[s.BIN_PS]:  # run past the last: double the width
        for first in range(0, net.bins.size, bins):
            for i in range(bins // 2):
                net.bins[first + i] = net.bins[first + 2 * i] + net.bins[first + 2 * i + 1]
            net.bins[first + bins // 2 : first + bins] = 0
        state[s.BIN_PS] *= 2
    net.bins[port * bins + now_ps // state[s.BIN_PS]] += size


@inline
def capture(net: Network, arena: Arena, port: int, packet: int, now_ps: int) -> None:
    """Append the packet to the capture buffer, as its first bit goes on the line."""
    state = net.state
    view = open_packet(arena, packet)
    row = view.row
    size = packet_bytes(row)
    start = state[s.CAPTURE_BYTES_AT] + state[s.CAPTURE_USED]
    buffer = arena.bytes[start : start + size]
    head, body = row[HEAD_LEN], row[PAYLOAD_LEN]
    buffer[:head] = view.head[:head]
    buffer[head : head + body] = arena.memory[row[PAYLOAD_AT] : row[PAYLOAD_AT] + body]
    buffer[head + body :] = 0
    entry = state[s.CAPTURE_AT] + 4 * state[s.CAPTURE_COUNT]
    arena.words[entry] = now_ps
    arena.words[entry + 1] = port
    arena.words[entry + 2] = start
    arena.words[entry + 3] = size
    state[s.CAPTURE_COUNT] += 1
    state[s.CAPTURE_USED] += size


@inline
def send(net: Network, arena: Arena, port: int, packet: int, now_ps: int) -> None:
    """Put a packet on the line of an idle port."""
    size = packet_bytes(open_packet(arena, packet).row)
    line = line_bytes(size)
    rate = net.rate_bps[port]
    done_ps = now_ps + (line * (8 * PS_PER_S) + rate - 1) // rate
    net.busy_until_ps[port] = done_ps
    net.tx_bytes[port] += line
    net.tx_packets[port] += 1
    count_bin(net, port, now_ps, line)
    if net.capture[port]:
        capture(net, arena, port, packet, now_ps)
    if happens(net.random, net.loss[port]):
        net.lost[port] += 1
        free_packet(arena, packet)
        return
    at_ps = done_ps + net.delay_ps[port]
    target = ARRIVAL | net.peer[port] << 3
    state = net.state
    if happens(net.random, state[s.DUPLICATE]):
        twin = copy_packet(arena, packet)
        late_ps = at_ps + draw(net.random) % (state[s.JITTER_PS] + 1)
        push_event(net.heap, late_ps, target | twin << 32)
    if happens(net.random, state[s.REORDER]):
        at_ps += draw(net.random) % (state[s.JITTER_PS] + 1)
    push_event(net.heap, at_ps, target | packet << 32)


@inline
def await_idle(net: Network, port: int) -> None:
    """See to it that an event comes when the port falls idle."""
    if not net.draining[port]:
        net.draining[port] = 1
        push_event(net.heap, net.busy_until_ps[port], IDLE | port << 3)


@inline
def leave_switch(net: Network, arena: Arena, port: int, packet: int, now_ps: int) -> bool:
    """Run egress on a packet that leaves its queue; return whether it went on the line."""
    view = open_packet(arena, packet)
    fields = view.fields
    node = net.node[port]
    enqueued_ps = view.row[ENQUEUED_PS]
    fields[EGRESS_PORT] = np.uint64(net.local_port[port])
    fields[ENQ_TIMESTAMP] = np.uint64(enqueued_ps // PS_PER_US)
    fields[ENQ_QDEPTH] = np.uint64(view.row[MARK])
    fields[DEQ_TIMEDELTA] = np.uint64((now_ps - enqueued_ps) // PS_PER_US)
    fields[DEQ_QDEPTH] = np.uint64(open_queues(arena, net.queues_at[port]).state[PACKETS])
    if handler_at(net.egress[node])(arena, net.at[node], packet, now_ps):
        send(net, arena, port, packet, now_ps)
        return True
    free_packet(arena, packet)
    return False


@inline
def enqueue(net: Network, arena: Arena, port: int, packet: int, now_ps: int) -> None:
    view = open_packet(arena, packet)
    queues = open_queues(arena, net.queues_at[port])
    waiting = queues.state[PACKETS]
    view.row[ENQUEUED_PS] = now_ps
    view.row[MARK] = waiting
    if waiting == 0 and net.busy_until_ps[port] <= now_ps:
        leave_switch(net, arena, port, packet, now_ps)
    elif push(queues, packet, signed(view.fields[PRIORITY]) & 7):
        await_idle(net, port)
    else:
        free_packet(arena, packet)


@inline
def drain(net: Network, arena: Arena, port: int, now_ps: int) -> None:
    """Send from the queues of a port that fell idle, until one packet is on the line."""
    queues = open_queues(arena, net.queues_at[port])
    while True:
        packet = pop(queues)
        if packet < 0:
            return
        if leave_switch(net, arena, port, packet, now_ps):
            break
    if queues.state[PACKETS] > 0:
        await_idle(net, port)


@inline
def cross_switch(net: Network, arena: Arena, port: int, packet: int, now_ps: int) -> None:
    node = net.node[port]
    at = net.at[node]
    open_packet(arena, packet).row[IN_PORT] = net.local_port[port]
    handler_at(net.ingress[node])(arena, at, packet, now_ps)
    copies = replicate(arena, at, packet, now_ps)
    outbox = arena.words[OUTBOX_AT]
    for row in range(outbox, outbox + 2 * copies, 2):
        copy = arena.words[row]
        out = arena.words[row + 1]
        if 1 <= out <= arena.words[at]:  # at + PORT_COUNT
            enqueue(net, arena, net.first_port[node] + out - 1, copy, now_ps)
        else:
            free_packet(arena, copy)  # as BMv2: no such port, no packet


@inline
def serve_agents(net: Network, arena: Arena, node: int, now_ps: int) -> None:
    """Give an idle port of a host to the next agent that has something to send."""
    port = net.first_port[node]
    first, count = net.first_agent[node], net.agents[node]
    turn = net.turn[node]
    if net.busy_until_ps[port] <= now_ps:
        for _ in range(count):
            agent = first + turn
            turn = turn + 1 if turn + 1 < count else 0
            at = net.agent_at[agent]
            if arena.words[at + READY]:
                packet = handler_at(net.transmit[agent])(arena, at, 0, now_ps)
                arm_timer(net, arena, agent)
                if packet >= 0:
                    send(net, arena, port, packet, now_ps)
                    break
        net.turn[node] = turn
    if net.busy_until_ps[port] <= now_ps:
        return
    for agent in range(first, first + count):
        if arena.words[net.agent_at[agent] + READY]:
            await_idle(net, port)
            return


@inline
def arm_timer(net: Network, arena: Arena, agent: int) -> None:
    """Have an event no later than the agent's timer; a later one is put off when it comes."""
    timer_ps = arena.words[net.agent_at[agent] + TIMER_AT_PS]
    if timer_ps < net.timer_ps[agent]:
        net.timer_ps[agent] = timer_ps
        push_event(net.heap, timer_ps, TIMER | agent << 3)


@inline
def claims(head: Bytes, words_at: int, arena: Arena, size: int) -> bool:
    """Whether an agent's block says that this frame is for it."""
    if size < UDP_PAYLOAD_AT or get16(head, ETHERTYPE_AT) != ETHERTYPE_IPV4:
        return False
    if head[IP_PROTOCOL_AT] != PROTOCOL_UDP:
        return False
    port = get16(head, UDP_DST_AT)
    low, high = arena.words[words_at + UDP_PORT_LOW], arena.words[words_at + UDP_PORT_HIGH]
    return low <= port <= high


@inline
def reach_host(net: Network, arena: Arena, port: int, packet: int, now_ps: int) -> None:
    node = net.node[port]
    view = open_packet(arena, packet)
    claimed = False
    for agent in range(net.first_agent[node], net.first_agent[node] + net.agents[node]):
        at = net.agent_at[agent]
        if claims(view.head, at, arena, view.row[HEAD_LEN]):
            handler_at(net.receive[agent])(arena, at, packet, now_ps)
            arm_timer(net, arena, agent)
            claimed = True
            break
    if not claimed:
        net.state[s.UNCLAIMED] += 1
    free_packet(arena, packet)
    serve_agents(net, arena, node, now_ps)


@inline
def ring_timer(net: Network, arena: Arena, agent: int, now_ps: int) -> None:
    if net.timer_ps[agent] != now_ps:
        return  # an earlier event took its place
    net.timer_ps[agent] = FOREVER_PS
    at = net.agent_at[agent]
    if arena.words[at + TIMER_AT_PS] <= now_ps:
        handler_at(net.fire_timer[agent])(arena, at, 0, now_ps)
    arm_timer(net, arena, agent)
    serve_agents(net, arena, net.agent_node[agent], now_ps)


@inline
def handle(net: Network, arena: Arena, event: int, now_ps: int) -> None:
    kind = event & 7
    number = (event >> 3) & 0x1FFFFFFF
    if kind == ARRIVAL:
        net.state[s.HOPS] += 1
        if net.kind[net.node[number]] == s.SWITCH:
            cross_switch(net, arena, number, event >> 32, now_ps)
        else:
            reach_host(net, arena, number, event >> 32, now_ps)
    elif kind == IDLE:
        net.draining[number] = 0
        node = net.node[number]
        if net.kind[node] == s.SWITCH:
            drain(net, arena, number, now_ps)
        else:
            serve_agents(net, arena, node, now_ps)
    else:
        ring_timer(net, arena, number, now_ps)


@numba.njit(types.int64(ARENA, types.int64, types.int64), cache=True, error_model="numpy")
def run(arena: Arena, at: int, until_ps: int) -> int:
    """Handle events until an agent reports, and say why it returned.

    Events of the instant in which an agent reports are all handled first.
    """
    net = open_network(arena, at)
    state = net.state
    heap, words = net.heap, arena.words
    ring = state[s.RING_AT]
    now_ps = -1
    while heap.state[COUNT] > 0:
        time_ps = heap.rows[0]
        if time_ps > now_ps:
            if words[ring] > 0:
                return REPORTED
            if time_ps > until_ps:
                return UNTIL
        if words[POOL_FREE] < OUTBOX_ROWS:
            return NEEDS_ROOM
        if heap.state[COUNT] + 2 * OUTBOX_ROWS > heap.state[CAPACITY]:
            return NEEDS_ROOM
        if state[s.CAPTURE_USED] + CAPTURE_RESERVE_BYTES > state[s.CAPTURE_ROOM] > 0:
            return CAPTURED
        if state[s.CAPTURE_COUNT] + CAPTURE_RESERVE_ROWS > state[s.CAPTURE_ROWS] > 0:
            return CAPTURED
        now_ps = time_ps
        state[s.EVENTS] += 1
        handle(net, arena, pop_event(heap), now_ps)
    return REPORTED if words[ring] > 0 else EMPTY


@numba.njit(types.void(ARENA, types.int64, types.int64, types.int64), cache=True)
def wake(arena: Arena, at: int, agent: int, now_ps: int) -> None:
    """Look at an agent that Python has given something to do at `now_ps`."""
    net = open_network(arena, at)
    arm_timer(net, arena, agent)
    serve_agents(net, arena, net.agent_node[agent], now_ps)
