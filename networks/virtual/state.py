"""What the virtual network keeps per port, node and agent, as columns in the arena."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from networks.virtual.heap import Heap, make_heap, open_heap
from ringleaf.arena import Arena, Fields, Store, Words
from ringleaf.compiled import inline
from ringleaf.units import FOREVER_PS

# Scalars of the network's block.
PORTS = 0
NODES = 1
AGENTS = 2
HEAP_AT = 3
RANDOM_AT = 4  # in arena.fields
RING_AT = 5  # completion ring of all agents
DUPLICATE = 6  # probabilities are in units of 2**-53
REORDER = 7
JITTER_PS = 8  # a reordered or duplicated packet is late by up to this
BIN_PS = 9  # width of a bin of `bins`, doubled when time runs past the last
BINS = 10
CAPTURE_AT = 11  # rows (time_ps, port, offset, length)
CAPTURE_ROWS = 12
CAPTURE_COUNT = 13
CAPTURE_BYTES_AT = 14  # in arena.bytes
CAPTURE_ROOM = 15
CAPTURE_USED = 16
EVENTS = 17  # handled so far
HOPS = 18  # packets that arrived anywhere so far
UNCLAIMED = 19  # packets that reached a host and no agent of it
DIRECTORY = 24  # offsets of the columns below, in their order
NETWORK_WORDS = 64

_PORT_COLUMNS = 13
_NODE_COLUMNS = 8
_AGENT_COLUMNS = 6

SWITCH = 0
HOST = 1

PROBABILITY_ONE = 1 << 53


class Network(NamedTuple):
    """The columns. A port's number is global; its switch knows it by `local_port`."""

    state: Words  # (NETWORK_WORDS,)
    # per port
    peer: Words  # port at the other end of the link
    rate_bps: Words
    delay_ps: Words
    loss: Words  # probability, in units of 2**-53
    node: Words  # whose port it is
    local_port: Words
    queues_at: Words  # switches only
    busy_until_ps: Words
    draining: Words  # 1 while an event for "the port is idle" is on the heap
    tx_bytes: Words  # on the line, with preamble, FCS and gap
    tx_packets: Words
    lost: Words  # packets
    capture: Words  # 1: to pcap
    # per node
    kind: Words  # HOST or SWITCH
    at: Words  # a switch's block
    ingress: Words  # addresses of a switch's handlers
    egress: Words
    first_port: Words  # a host has only this one
    first_agent: Words  # a host's agents are in sequence
    agents: Words  # how many
    turn: Words  # which of them may transmit next
    # per agent
    agent_at: Words  # its block
    receive: Words  # addresses of its handlers
    transmit: Words
    fire_timer: Words
    agent_node: Words
    timer_ps: Words  # time of its timer event on the heap
    # the rest
    bins: Words  # (ports * BINS,), bytes on the line per bin of time
    random: Fields  # (1,)
    heap: Heap


def make_network(
    store: Store, *, ports: int, nodes: int, agents: int, ring: int, bins: int, seed: int
) -> int:
    """Lay out an empty network of so many of each; return its block's offset."""
    at = store.allocate("words", NETWORK_WORDS)
    sizes = [ports] * _PORT_COLUMNS + [nodes] * _NODE_COLUMNS + [agents] * _AGENT_COLUMNS
    columns = [store.allocate("words", size) for size in [*sizes, ports * bins]]
    heap_at = make_heap(store, 1 << 16)
    random_at = store.allocate("fields", 1)
    store.arena.fields[random_at] = np.uint64(seed)
    state = store.arena.words[at : at + NETWORK_WORDS]
    state[PORTS], state[NODES], state[AGENTS], state[BINS] = ports, nodes, agents, bins
    state[HEAP_AT], state[RANDOM_AT], state[RING_AT] = heap_at, random_at, ring
    state[DIRECTORY : DIRECTORY + len(columns)] = columns
    open_network(store.arena, at).timer_ps[:] = FOREVER_PS
    return at


@inline
def _column(words: Words, at: int, index: int, size: int) -> Words:
    start = words[at + DIRECTORY + index]
    return words[start : start + size]


@inline
def open_network(arena: Arena, at: int) -> Network:
    words = arena.words
    ports, nodes, agents = words[at + PORTS], words[at + NODES], words[at + AGENTS]
    random_at = words[at + RANDOM_AT]
    return Network(
        words[at : at + NETWORK_WORDS],
        _column(words, at, 0, ports),
        _column(words, at, 1, ports),
        _column(words, at, 2, ports),
        _column(words, at, 3, ports),
        _column(words, at, 4, ports),
        _column(words, at, 5, ports),
        _column(words, at, 6, ports),
        _column(words, at, 7, ports),
        _column(words, at, 8, ports),
        _column(words, at, 9, ports),
        _column(words, at, 10, ports),
        _column(words, at, 11, ports),
        _column(words, at, 12, ports),
        _column(words, at, 13, nodes),
        _column(words, at, 14, nodes),
        _column(words, at, 15, nodes),
        _column(words, at, 16, nodes),
        _column(words, at, 17, nodes),
        _column(words, at, 18, nodes),
        _column(words, at, 19, nodes),
        _column(words, at, 20, nodes),
        _column(words, at, 21, agents),
        _column(words, at, 22, agents),
        _column(words, at, 23, agents),
        _column(words, at, 24, agents),
        _column(words, at, 25, agents),
        _column(words, at, 26, agents),
        _column(words, at, 27, ports * words[at + BINS]),
        arena.fields[random_at : random_at + 1],
        open_heap(arena, words[at + HEAP_AT]),
    )
