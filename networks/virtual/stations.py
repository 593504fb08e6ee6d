"""Packets at hosts: the agent that a packet is for, the agent that may send, and timers."""

from __future__ import annotations

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import call_handler, inline
from ringleaf.core.headers import (
    ETHERTYPE_AT,
    ETHERTYPE_IPV4,
    IP_PROTOCOL_AT,
    PROTOCOL_UDP,
    UDP_DST_AT,
    UDP_PAYLOAD_AT,
    get16,
)
from ringleaf.core.heap import push_event
from ringleaf.core.packets import HEAD_LEN, OWNER, free_packet, open_packet, row_of
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import READY, TIMER_AT_PS, UDP_PORT_HIGH, UDP_PORT_LOW
from ringleaf.hosts.rc.wire import PARTITION_AT, PARTITION_NUMBER
from ringleaf.networks.virtual.events import TIMER
from ringleaf.networks.virtual.lines import await_idle, send
from ringleaf.networks.virtual.state import agent_row, node_row, port_row


@inline
def note_owner(arena: Arena, agent: int, packet: int) -> None:
    """Note the group for which a host sends a packet."""
    words = arena.words
    owner = words[agent + s.AGENT_OWNER]
    if owner == 0:
        owner = get16(open_packet(arena, packet).head, PARTITION_AT) & PARTITION_NUMBER
    words[row_of(words, packet) + OWNER] = owner


@inline
def take_packet(arena: Arena, at: int, node: int, now_ps: int) -> int:
    """Return a packet of the next agent of a host that has something to send, -1 if none has."""
    words = arena.words
    first, count = words[node + s.FIRST_AGENT], words[node + s.AGENT_COUNT]
    for _ in range(count):
        number = first + words[node + s.TURN]
        # Agents take turns, so that none keeps the port from the others.
        words[node + s.TURN] = (words[node + s.TURN] + 1) % count
        agent = agent_row(words, at, number)
        block = words[agent + s.AGENT_AT]
        if words[block + READY]:
            packet = call_handler(words[agent + s.TRANSMIT], arena, block, 0, now_ps)
            arm_timer(words, at, number, now_ps)
            if packet >= 0:
                if words[at + s.OWNERS] > 1:
                    note_owner(arena, agent, packet)
                return packet
    return -1


@inline
def offer_port(arena: Arena, at: int, node: int, now_ps: int) -> None:
    """Give an idle port of a host to the next agent that has something to send."""
    packet = take_packet(arena, at, node, now_ps)
    if packet >= 0:
        send(arena, at, arena.words[node + s.FIRST_PORT], packet, now_ps)


@inline
def serve_agents(arena: Arena, at: int, node: int, now_ps: int) -> None:
    """Send for a host's agents if its port is idle, and come back if more is waiting."""
    words = arena.words
    port = words[node + s.FIRST_PORT]
    here = port_row(words, at, port)
    if words[here + s.BUSY_UNTIL_PS] <= now_ps:
        offer_port(arena, at, node, now_ps)
    # Nobody had a packet, so the port stays idle and needs no event.
    if words[here + s.BUSY_UNTIL_PS] <= now_ps:
        return
    first = words[node + s.FIRST_AGENT]
    for number in range(first, first + words[node + s.AGENT_COUNT]):
        if words[words[agent_row(words, at, number) + s.AGENT_AT] + READY]:
            await_idle(words, at, port)
            return


@inline
def arm_timer(words: Words, at: int, number: int, now_ps: int) -> None:
    """Make sure of an event no later than the agent's timer; too early ones arm the timer again.

    A timer may be over when it is set: a shorter timeout counts from when a packet was sent.
    """
    agent = agent_row(words, at, number)
    timer_ps = max(words[words[agent + s.AGENT_AT] + TIMER_AT_PS], now_ps)
    if timer_ps < words[agent + s.TIMER_PS]:
        words[agent + s.TIMER_PS] = timer_ps
        push_event(words, words[at + s.HEAP_AT], timer_ps, TIMER | number << 3, 0)


@inline
def udp_port(arena: Arena, packet: int) -> int:
    """Return the destination port of a UDP packet, -1 for any other packet."""
    view = open_packet(arena, packet)
    head = view.head
    if view.row[HEAD_LEN] < UDP_PAYLOAD_AT or get16(head, ETHERTYPE_AT) != ETHERTYPE_IPV4:
        return -1
    return get16(head, UDP_DST_AT) if head[IP_PROTOCOL_AT] == PROTOCOL_UDP else -1


@inline
def agent_for(arena: Arena, at: int, node: int, packet: int) -> int:
    """Return the number of the agent of a host that a packet is for, -1 if there is none."""
    words = arena.words
    port = udp_port(arena, packet)
    first = words[node + s.FIRST_AGENT]
    for number in range(first, first + words[node + s.AGENT_COUNT]):
        block = words[agent_row(words, at, number) + s.AGENT_AT]
        if words[block + UDP_PORT_LOW] <= port <= words[block + UDP_PORT_HIGH]:
            return int(number)
    return -1


@inline
def fetch_for_packet(arena: Arena, at: int, node: int, packet: int) -> None:
    """Have the agent of a host that a packet is for fetch what it will need for it."""
    number = agent_for(arena, at, node, packet)
    if number >= 0:
        agent = agent_row(arena.words, at, number)
        fetch_ahead, block = arena.words[agent + s.FETCH_AHEAD], arena.words[agent + s.AGENT_AT]
        if fetch_ahead:
            call_handler(fetch_ahead, arena, block, packet, 0)


@inline
def reach_agent(arena: Arena, at: int, node: int, packet: int, now_ps: int) -> None:
    """Give a packet to the agent of a host that it is for."""
    words = arena.words
    number = agent_for(arena, at, node, packet)
    if number >= 0:
        agent = agent_row(words, at, number)
        call_handler(words[agent + s.RECEIVE], arena, words[agent + s.AGENT_AT], packet, now_ps)
        arm_timer(words, at, number, now_ps)
    else:
        words[at + s.UNCLAIMED] += 1
    free_packet(arena, packet)


@inline
def reach_host(arena: Arena, at: int, node: int, packet: int, now_ps: int) -> None:
    """Give a packet to the agent that it is for, and let the host send if its port is idle."""
    reach_agent(arena, at, node, packet, now_ps)
    serve_agents(arena, at, node, now_ps)


@inline
def ring_agent(arena: Arena, at: int, number: int, now_ps: int) -> int:
    """Handle an agent's timer; return the row of its host, or -1 if there is nothing to do."""
    words = arena.words
    agent = agent_row(words, at, number)
    if words[agent + s.TIMER_PS] != now_ps:
        return -1  # an earlier event took its place
    words[agent + s.TIMER_PS] = FOREVER_PS
    block = words[agent + s.AGENT_AT]
    if words[block + TIMER_AT_PS] <= now_ps:
        call_handler(words[agent + s.FIRE_TIMER], arena, block, 0, now_ps)
    arm_timer(words, at, number, now_ps)
    return node_row(words, at, words[agent + s.AGENT_NODE])


@inline
def ring_timer(arena: Arena, at: int, number: int, now_ps: int) -> None:
    """Fire an agent's timer, and let its host send if its port is idle."""
    node = ring_agent(arena, at, number, now_ps)
    if node >= 0:
        serve_agents(arena, at, node, now_ps)
