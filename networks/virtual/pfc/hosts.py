"""Hosts with PFC: a NIC's port sends packets of classes that are not paused.

Agents are told which classes are paused, and rc leaves queue pairs of these alone. Whatever else
an agent gives away in a paused class waits in a queue of the NIC, one per class.
"""

from __future__ import annotations

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import handler, inline
from ringleaf.core.headers import IP_TOS_AT, PRIORITY_SHIFT
from ringleaf.core.heap import order_own, push_event
from ringleaf.core.packets import open_packet
from ringleaf.hosts.agent import PAUSED as AGENT_PAUSED
from ringleaf.hosts.agent import READY
from ringleaf.networks.virtual.events import IDLE
from ringleaf.networks.virtual.lines import await_idle, send
from ringleaf.networks.virtual.pfc.layout import NIC_AT, PAUSED, pause_row
from ringleaf.networks.virtual.pfc.queues import eligible, pop_eligible
from ringleaf.networks.virtual.state import agent_row, node_row, port_row
from ringleaf.networks.virtual.stations import take_packet
from ringleaf.switches.engine.queues import push

MOST_TURNS = 64  # packets that one event takes from agents


@inline
def is_any_ready(words: Words, at: int, node: int) -> bool:
    """Return whether an agent of a host may have a packet to send."""
    first = words[node + s.FIRST_AGENT]
    for number in range(first, first + words[node + s.AGENT_COUNT]):
        if words[words[agent_row(words, at, number) + s.AGENT_AT] + READY]:
            return True
    return False


@inline
def offer_port(arena: Arena, at: int, node: int, now_ps: int) -> None:
    """Give an idle port of a host to a packet that waits in the NIC, or else to agents."""
    words = arena.words
    port = words[node + s.FIRST_PORT]
    mine = pause_row(words, at, port)
    nic = words[mine + NIC_AT]
    if eligible(words, nic, words[mine + PAUSED]) > 0:
        send(arena, at, port, pop_eligible(arena, mine, nic, now_ps), now_ps)
        return
    for _ in range(MOST_TURNS):
        packet = take_packet(arena, at, node, now_ps)
        if packet < 0:
            return
        level = int(open_packet(arena, packet).head[IP_TOS_AT]) >> PRIORITY_SHIFT
        if not words[mine + PAUSED] >> level & 1:
            send(arena, at, port, packet, now_ps)
            return
        push(words, nic, packet, level)
    here, heap = port_row(words, at, port), words[at + s.HEAP_AT]
    if not words[here + s.DRAINING]:  # agents may have more that may go: ask in an event of its own
        words[here + s.DRAINING] = 1
        push_event(words, heap, now_ps, IDLE | port << 3, order_own(words, heap))


@handler
def serve(arena: Arena, at: int, node: int, now_ps: int) -> int:
    """Send for a host if its port is idle, and come back if more is waiting."""
    words = arena.words
    port = words[node + s.FIRST_PORT]
    here = port_row(words, at, port)
    if words[here + s.BUSY_UNTIL_PS] <= now_ps:
        offer_port(arena, at, node, now_ps)
    if words[here + s.BUSY_UNTIL_PS] <= now_ps:
        return 1
    mine = pause_row(words, at, port)
    waiting = eligible(words, words[mine + NIC_AT], words[mine + PAUSED]) > 0
    if waiting or is_any_ready(words, at, node):
        await_idle(words, at, port)
    return 1


@inline
def tell_agents(words: Words, at: int, port: int) -> None:
    """Tell a host's agents which classes are paused; they are asked for packets again."""
    node = node_row(words, at, words[port_row(words, at, port) + s.NODE])
    first = words[node + s.FIRST_AGENT]
    for number in range(first, first + words[node + s.AGENT_COUNT]):
        block = words[agent_row(words, at, number) + s.AGENT_AT]
        words[block + AGENT_PAUSED] = words[pause_row(words, at, port) + PAUSED]
        words[block + READY] = 1
