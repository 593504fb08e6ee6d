"""The hosts' rc agents and the queue pairs between ranks, made when a schedule wants them."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx

from hosts import rc
from networks.virtual.options import Options
from ringleaf.arena import Store
from ringleaf.units import serialize_ps
from topologies.addresses import ipv4, mac
from topologies.graph import attachment, hosts, link

FIRST_SOURCE_PORT = 0xC000  # RoCEv2 senders use the dynamic range
SOURCE_PORTS = 0x4000
FRAME_OVERHEAD_BYTES = rc.PACKET_OVERHEAD_BYTES + 24  # and preamble, FCS and gap
MAX_WINDOW = 1 << 14


class Connections:
    """One rc agent per rank, and which of its queue pairs leads to which peer."""

    def __init__(
        self, graph: nx.Graph[str], store: Store, options: Options, *, ring: int, rtt_ps: int
    ) -> None:
        self._store = store
        self._graph = graph
        self._hosts = hosts(graph)
        self._qps: list[dict[int, int]] = [{} for _ in self._hosts]  # rank -> peer -> QP
        self._peers: list[list[int]] = [[] for _ in self._hosts]  # rank -> QP -> peer
        self.agents = [
            self._make_agent(rank, options, ring=ring, rtt_ps=rtt_ps)
            for rank in range(len(self._hosts))
        ]

    @property
    def window_bytes(self) -> int:
        """The most payload that one connection has in flight."""
        words = self._store.arena.words
        return max(int(words[at + rc.WINDOW] * words[at + rc.MTU]) for at in self.agents)

    def _make_agent(self, rank: int, options: Options, *, ring: int, rtt_ps: int) -> int:
        host = self._hosts[rank]
        access = link(self._graph, host, attachment(self._graph, host))
        full_ps = serialize_ps(options.mtu + FRAME_OVERHEAD_BYTES, access.rate_bps)
        window = options.window or min(max(8, 2 * rtt_ps // full_ps), MAX_WINDOW)
        return rc.make_rc(
            self._store,
            host=rank,
            ring=ring,
            mtu=options.mtu,
            window=window,
            min_timeout_ps=2 * rtt_ps + 4 * window * full_ps,
            rnr_wait_ps=rtt_ps,
        )

    def qp(self, rank: int, peer: int) -> int:
        """The queue pair of `rank` that leads to `peer`."""
        return self._qps[rank][peer]

    def peer(self, rank: int, qp: int) -> int:
        return self._peers[rank][qp]

    def connect(self, pairs: Iterable[tuple[int, int]]) -> None:
        """See to it that these pairs of ranks are connected; the agents must be idle."""
        for a, b in pairs:
            if b not in self._qps[a]:
                self._connect(a, b)

    def _connect(self, a: int, b: int) -> None:
        ends = [(a, b), (b, a)]
        for rank, peer in ends:
            self._qps[rank][peer] = rc.add_qp(self._store, self.agents[rank])
            self._peers[rank].append(peer)
        for rank, peer in ends:
            rc.connect_qp(
                self._store,
                self.agents[rank],
                self._qps[rank][peer],
                peer_qp=self._qps[peer][rank],
                macs=(self._mac(rank), self._mac(peer)),
                addresses=(self._ip(rank), self._ip(peer)),
                source_port=FIRST_SOURCE_PORT + (rank * 131 + peer) % SOURCE_PORTS,
            )

    def _mac(self, rank: int) -> int:
        return mac(self._graph, self._hosts[rank], 1)

    def _ip(self, rank: int) -> int:
        return ipv4(self._graph, self._hosts[rank])
