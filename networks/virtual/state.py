"""The state of a virtual network per port, node and agent: rows of words in the arena."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringleaf.core.arena import Arena, Store, Words
from ringleaf.core.chance import spread64
from ringleaf.core.compiled import inline
from ringleaf.core.disciplines import CLASSES
from ringleaf.core.heap import PORT_BITS, make_heap
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import NUMBER

# The network's block.
PORTS = 0  # number of ports
NODES = 1
AGENTS = 2
PORTS_AT = 3  # rows
NODES_AT = 4
AGENTS_AT = 5
HEAP_AT = 6
RING_AT = 7  # completion ring of all agents
RANDOM_AT = 8  # in arena.fields, one for each port
DUPLICATE = 9  # probabilities are in units of 2**-53
REORDER = 10
JITTER_PS = 11  # a reordered or duplicated packet is late by up to this
BINS_AT = 12  # per bin, PORTS * OWNERS counts of bytes on the line
BINS = 13
BIN_PS = 14  # width of a bin, doubled when time runs past the last
BINS_FROM_PS = 15  # when the first bin starts
CAPTURE_AT = 16  # rows of CAPTURE_ROW_WORDS
CAPTURE_ROWS = 17
CAPTURE_COUNT = 18
CAPTURE_BYTES_AT = 19  # in arena.bytes
CAPTURE_ROOM = 20
CAPTURE_USED = 21
EVENTS = 22  # handled so far
HOPS = 23  # packets that arrived anywhere so far
UNCLAIMED = 24  # packets that reached a host, but none of its agents
CAPTURE_RESERVE = 25  # bytes that one event may capture at most
CAPTURE_RESERVE_ROWS = 26
QUEUE_BINS_AT = 27  # per bin, PORTS * CLASSES counts of the most bytes queued; 0: not wanted
QUEUE_BIN_PS = 28
OWNERS = 29  # groups are numbered below this; 1: packets' groups do not matter
DROPS_AT = 30  # rows of `networks/virtual/drops.py`; 0: not wanted
DROP_ROWS = 31
DROP_KEYS = 32  # rows that are taken
DRIVER = 33  # block of the driver of executors; 0: Python looks after agents' reports
REGION = 34  # number of the region that this block is of
TEAM = 35  # block of the team that shares the work (`team`); 0: there is only one region
MAIL_AT = 36  # boxes for packets to other regions: two halves for each, used in turn
HALF = 37  # that is written now
MAIL_PS = 38  # time of the first packet in it
MEETINGS = 39  # of the team, so far
LINES_AT = 40  # a row for each port: the packets that are on the way to it
PFC_AT = 41  # block of priority flow control (`pfc/layout.py`); 0: it is off
TRIM_AT = 42  # block of `trimming`, whose first word is a handler; 0: full queues drop packets
DAMAGE_AT = 43  # block of `damage`, whose first word is a handler; 0: no packet is damaged
NETWORK_WORDS = 48

PACKET_BITS = 32  # of a packet's number, below that of its port, in what handlers are told

# Words of PFC's block: addresses of its handlers. The rest is its own.
PFC_HANDLE = 0  # of any event
PFC_SERVE = 1  # serves a host's agents

BOX_HEADER = 8  # before a box's rows: their number
BOX_ROWS = 1 << 14  # as those of a heap
BOX_WORDS = BOX_HEADER + 2 * BOX_ROWS

# A port's row. Its number is global; its switch knows it by LOCAL_PORT.
PEER = 0  # port at the other end of the link
NODE = 1  # the node that has the port
LOCAL_PORT = 2
RATE_BPS = 3
DELAY_PS = 4  # from the last bit on the line until the peer's node handles the packet
LOSS = 5  # probability that something happens to a packet, in units of 2**-53
QUEUES_AT = 6  # switches only
BUSY_UNTIL_PS = 7
DRAINING = 8  # 1 while an event for "the port is idle" is on the heap
TX_BYTES = 9  # on the line, with preamble, FCS and gap
TX_PACKETS = 10
LOST = 11  # packets
CAPTURE = 12  # CAPTURE_SENT | CAPTURE_RECEIVED | PIN
INWARD_PS = 13  # of the peer's DELAY_PS: time of this port's node per packet received
OUTWARD_PS = 14  # of DELAY_PS: time of this port's node per packet sent, before it is on the line
PEER_REGION = 15  # of PEER's node
PORT_WORDS = 16

# A port's row of LINES_AT: packets of its link that arrive in the order in which they were sent.
# The first one has an event on the heap; each other one gets it when that before it arrives.
LINE_FIRST = 0  # -1: there is none
LINE_LAST = 1
LINE_WORDS = 2

# A node's row.
KIND = 0  # HOST or SWITCH
BLOCK_AT = 1  # a switch's block
INGRESS = 2  # addresses of a switch's handlers
EGRESS = 3
FIRST_PORT = 4  # a host has only this one
FIRST_AGENT = 5  # a host's agents are in sequence
AGENT_COUNT = 6
TURN = 7  # the agent that may transmit next
BUSIED_PS = 8  # the last instant in which events of the switch's own (an idle port) were handled
BUSIED = 9  # number of those events in that instant
CPU_PORT = 10  # number of a switch's port to its controllers; 0: it has none
CPU_AT = 11  # that port, which is not among those from FIRST_PORT on
PASS_PS = 12  # time of a packet's pass through a switch's ingress pipeline
DSCP_SLOT = 13  # of a switch that trims packets: the place of the DSCP among a packet's fields
FETCHES_AHEAD = 14  # 1: a host with agents that fetch what they need for a packet
NODE_WORDS = 16

# An agent's row.
AGENT_AT = 0  # its block
RECEIVE = 1  # addresses of its handlers
TRANSMIT = 2
FIRE_TIMER = 3
AGENT_NODE = 4
TIMER_PS = 5  # time of its timer event on the heap
AGENT_OWNER = 6  # number of its group; 0: partition keys tell
FETCH_AHEAD = 7  # address of the handler that fetches what it needs for a packet; 0: it has none
AGENT_ROW_WORDS = 8

SWITCH = 0
HOST = 1
OUTSIDE = 2  # a place beyond this process: its INGRESS takes every packet that gets there

PROBABILITY_ONE = 1 << 53

CAPTURE_SENT = 1
CAPTURE_RECEIVED = 2
PIN = 4  # a host's packets take their payload along: memory may change before they arrive

DROP_WORDS = 8  # in a row of drops

# A row of the capture buffer: time_ps, port, offset, length, order.
CAPTURE_ROW_WORDS = 5
SENT = -1  # the order of a packet that was sent; that of a received one is BUSIED at its time

Rows = npt.NDArray[np.int64]


class NetworkState(NamedTuple):
    """Views of the tables for Python."""

    state: Words  # (NETWORK_WORDS,)
    ports: Rows  # (ports, PORT_WORDS)
    nodes: Rows  # (nodes, NODE_WORDS)
    agents: Rows  # (agents, AGENT_ROW_WORDS)
    bins: Rows  # (ports * OWNERS, BINS)
    queue_bins: Rows  # (ports * CLASSES, BINS); without rows, if not wanted
    drops: Rows  # (DROP_ROWS + 1, DROP_WORDS); without rows, if not wanted


def make_network(
    store: Store,
    *,
    ports: int,
    nodes: int,
    agents: int,
    ring: int,
    bins: int,
    seed: int,
    owners: int = 1,
) -> int:
    """Lay out an empty network with these numbers of rows; return its block's offset."""
    assert ports <= 1 << PORT_BITS, "the order of events has no room for more"
    at = store.allocate("words", NETWORK_WORDS)
    tables = {
        PORTS_AT: store.allocate("words", ports * PORT_WORDS),
        NODES_AT: store.allocate("words", nodes * NODE_WORDS),
        AGENTS_AT: store.allocate("words", agents * AGENT_ROW_WORDS),
        BINS_AT: store.allocate("words", ports * owners * bins),
        HEAP_AT: make_heap(store, 1 << 16),
        RANDOM_AT: store.allocate("fields", ports),
        LINES_AT: store.allocate("words", ports * LINE_WORDS),
    }
    state = store.arena.words[at : at + NETWORK_WORDS]
    for word, offset in tables.items():
        state[word] = offset
    state[PORTS], state[NODES], state[AGENTS], state[BINS] = ports, nodes, agents, bins
    state[RING_AT], state[OWNERS] = ring, owners
    store.arena.words[tables[LINES_AT] : tables[LINES_AT] + ports * LINE_WORDS] = -1
    random = store.arena.fields[tables[RANDOM_AT] : tables[RANDOM_AT] + ports]
    random[:] = [spread64(spread64(seed) ^ port) for port in range(ports)]
    open_network(store.arena, at).agents[:, TIMER_PS] = FOREVER_PS
    return at


def watch_queues(store: Store, at: int) -> None:
    """Have the loop note queues' contents over time."""
    state = store.arena.words[at : at + NETWORK_WORDS]
    rows = store.allocate("words", int(state[PORTS] * CLASSES * state[BINS]))
    store.arena.words[at + QUEUE_BINS_AT] = rows


def open_network(arena: Arena, at: int) -> NetworkState:
    """Return views of the tables, for Python; they go stale when the store moves."""
    words = arena.words

    def table(at_word: int, count: int, width: int) -> Rows:
        start = int(words[at + at_word])
        return words[start : start + count * width].reshape(count, width)

    ports, nodes, agents, bins = (int(words[at + i]) for i in (PORTS, NODES, AGENTS, BINS))
    return NetworkState(
        words[at : at + NETWORK_WORDS],
        table(PORTS_AT, ports, PORT_WORDS),
        table(NODES_AT, nodes, NODE_WORDS),
        table(AGENTS_AT, agents, AGENT_ROW_WORDS),
        table(BINS_AT, bins, ports * int(words[at + OWNERS])).T,
        table(QUEUE_BINS_AT, bins, ports * CLASSES if words[at + QUEUE_BINS_AT] else 0).T,
        table(DROPS_AT, int(words[at + DROP_ROWS]) + 1 if words[at + DROPS_AT] else 0, DROP_WORDS),
    )


def number_agents(arena: Arena, at: int) -> None:
    """Tell all agents their numbers."""
    rows = open_network(arena, at).agents
    arena.words[rows[:, AGENT_AT] + NUMBER] = np.arange(len(rows))


@inline
def box_of(words: Words, at: int, region: int, half: int) -> int:
    """Return the box of packets from one region to another."""
    return words[at + MAIL_AT] + (2 * region + half) * BOX_WORDS


@inline
def port_row(words: Words, at: int, number: int) -> int:
    """Return the offset in `arena.words` of a port's row; `at` is the network's block."""
    return words[at + PORTS_AT] + number * PORT_WORDS


@inline
def line_row(words: Words, at: int, number: int) -> int:
    """Return the offset in `arena.words` of the row of packets on their way to a port."""
    return words[at + LINES_AT] + number * LINE_WORDS


@inline
def node_row(words: Words, at: int, number: int) -> int:
    """Return the offset in `arena.words` of a node's row."""
    return words[at + NODES_AT] + number * NODE_WORDS


@inline
def agent_row(words: Words, at: int, number: int) -> int:
    """Return the offset in `arena.words` of an agent's row."""
    return words[at + AGENTS_AT] + number * AGENT_ROW_WORDS
