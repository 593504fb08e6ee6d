"""A small network whose parts tests call, a step at a time.

Everything runs as plain Python, compiled or not: handlers are Python's functions, too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import ringleaf.networks.virtual.pfc.layout as pfc
import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena, Store
from ringleaf.core.heap import (
    COUNT,
    first_time_ps,
)
from ringleaf.core.packets import (
    FIELD_COUNT,
    OUTBOX_ROWS,
    fields_of,
    make_pool,
    row_of,
    take_phv,
    write_packet,
)
from ringleaf.hosts.agent import make_agent
from ringleaf.networks.virtual import lines
from ringleaf.switches.engine import layout
from ringleaf.switches.engine.disciplines import make_port_queues
from ringleaf.switches.engine.queues import (
    make_queues,
)

GBPS = 10**9


HOST_PORT, FIRST_SWITCH_PORT, CPU_PORT = 0, 1, 4


HOST, SWITCH = 0, 1


Handler = Callable[[Arena, int, int, int], int]


Address = Callable[[Handler], int]


class Net:
    """A host with port 0, and a switch with ports 1 to 3 and a port to its CPU, number 4.

    The host and the switch's first port face each other; so do the second and the third.
    """

    def __init__(self, packets: int = 2 * OUTBOX_ROWS, agents: int = 2) -> None:
        self.store = Store(1 << 12)
        make_pool(self.store, size=packets, head_bytes=128, field_count=32, lane_count=0)
        ring = self.store.allocate("words", 16)
        self.at = s.make_network(
            self.store, ports=5, nodes=2, agents=agents, ring=ring, bins=4, seed=1, owners=2
        )
        self.queues = [make_queues(self.store, 1 << 20) for _ in range(4)]
        self.block = self.store.allocate("words", 64)
        self.agents = [
            make_agent(self.store, 0, host=0, ring=ring, udp_ports=(100 * n, 100 * n + 9))
            for n in range(1, agents + 1)
        ]
        net = self.net
        net.state[s.BIN_PS] = 10**15
        net.ports[:, s.RATE_BPS] = 10 * GBPS
        net.ports[:, s.DELAY_PS] = 7000
        net.ports[:, s.PEER] = [1, 0, 3, 2, 4]
        net.ports[:, s.NODE] = [HOST, SWITCH, SWITCH, SWITCH, SWITCH]
        net.ports[1:, s.LOCAL_PORT] = [1, 2, 3, 510]
        net.ports[1:, s.QUEUES_AT] = self.queues
        net.nodes[:, s.KIND] = s.HOST, s.SWITCH
        net.nodes[SWITCH, [s.BLOCK_AT, s.FIRST_PORT]] = self.block, FIRST_SWITCH_PORT
        net.nodes[SWITCH, [s.CPU_PORT, s.CPU_AT, s.PASS_PS]] = 510, CPU_PORT, 90
        net.nodes[HOST, s.AGENT_COUNT] = agents
        net.agents[:, s.AGENT_AT] = self.agents
        self.words[self.block + layout.PORT_COUNT] = 3
        self.heap = int(self.words[self.at + s.HEAP_AT])

    @property
    def net(self) -> s.NetworkState:
        return s.open_network(self.store.arena, self.at)

    @property
    def arena(self) -> Arena:
        return self.store.arena

    @property
    def words(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return self.store.arena.words

    def packet(self, size: int = 100) -> int:
        packet = write_packet(self.arena, bytes(range(size)))
        take_phv(self.arena, packet)
        at = fields_of(self.words, packet)
        self.arena.fields[at : at + int(self.words[FIELD_COUNT])] = 0
        return packet

    def row(self, packet: int, column: int) -> int:
        return int(self.words[row_of(self.words, packet) + column])

    def field(self, packet: int, field: int) -> int:
        return int(self.arena.fields[fields_of(self.words, packet) + field])

    def events(self) -> list[tuple[int, int, int]]:
        """Take all events: time, kind and index."""
        found = []
        while self.words[self.heap + COUNT]:
            time_ps = int(first_time_ps(self.words, self.heap))
            event = int(lines.take_event(self.words, self.at))
            found.append((time_ps, event & 7, event >> 3))
        return found


def none(_arena: Arena, _at: int, _packet: int, _now_ps: int) -> int:
    return 0


def agents_that(net: Net, transmit: Handler, plain_address: Address) -> None:
    for handler in (s.RECEIVE, s.TRANSMIT, s.FIRE_TIMER):
        net.net.agents[:, handler] = plain_address(none)
    net.net.agents[:, s.TRANSMIT] = plain_address(transmit)


NIC_PORT = 2


def pausing_nic(net: Net, paused: int) -> tuple[int, int]:
    """Give the host port 2 and the last agent alone; return PFC's row of that port and its queues.

    Args:
        net: The network.
        paused: The port's paused classes, as bits.
    """
    nic = make_port_queues(net.store, 1 << 30, "strict")
    block = net.store.allocate("words", pfc.BLOCK_WORDS)
    rows = net.store.allocate("words", 5 * pfc.ROW_WORDS)
    row = rows + NIC_PORT * pfc.ROW_WORDS
    net.words[net.at + s.PFC_AT], net.words[block + pfc.ROWS_AT] = block, rows
    net.words[row + pfc.NIC_AT], net.words[row + pfc.PAUSED] = nic, paused
    net.net.nodes[HOST, [s.FIRST_PORT, s.FIRST_AGENT, s.AGENT_COUNT]] = NIC_PORT, 1, 1
    return row, nic


def udp(port: int, kind: int = 0x0800, protocol: int = 17, size: int = 42) -> bytes:
    """Return an Ethernet, IPv4 and UDP header, as far as it goes."""
    head = bytearray(60)
    head[12:14] = kind.to_bytes(2, "big")
    head[14], head[23] = 0x45, protocol
    head[36:38] = port.to_bytes(2, "big")
    return bytes(head[:size])
