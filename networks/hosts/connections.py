"""The hosts' rc agents and their queue pairs, made when a schedule wants them."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx

from hosts import rc
from hosts.plan import Stream
from networks.options import Options
from ringleaf.arena import Store
from ringleaf.units import serialize_ps
from topologies.addresses import ipv4, mac
from topologies.graph import attachment, hosts, link

FIRST_SOURCE_PORT = 0xC000  # RoCEv2 senders use the dynamic range
SOURCE_PORTS = 0x4000
FRAME_OVERHEAD_BYTES = rc.PACKET_OVERHEAD_BYTES + 24  # and preamble, FCS and gap
MAX_WINDOW = 1 << 14


class Connections:
    """One rc agent per rank, and which of its queue pairs carries which stream."""

    def __init__(
        self, graph: nx.Graph[str], store: Store, options: Options, *, ring: int, rtt_ps: int
    ) -> None:
        self._store = store
        self._graph = graph
        self._hosts = hosts(graph)
        self._qps: list[dict[Stream, int]] = [{} for _ in self._hosts]  # by rank
        self._streams: list[list[Stream]] = [[] for _ in self._hosts]  # by rank, then QP
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

    def qp(self, rank: int, stream: Stream) -> int:
        """The queue pair of `rank` that carries a stream, both ways."""
        return self._qps[rank][stream]

    def stream(self, rank: int, qp: int) -> Stream:
        return self._streams[rank][qp]

    def connect(self, rank: int, streams: Iterable[Stream]) -> None:
        """See to it that `rank` has queue pairs for these; the agents must be idle."""
        for stream in streams:
            if stream not in self._qps[rank]:
                self._connect(rank, stream)

    def _connect(self, rank: int, stream: Stream) -> None:
        ends = [(rank, stream), (stream.peer, Stream(rank, stream.op))]
        for end, facing in ends:
            self._qps[end][facing] = rc.add_qp(self._store, self.agents[end])
            self._streams[end].append(facing)
        for (end, facing), (peer, back) in (ends, ends[::-1]):
            number = self._qps[end][facing]
            rc.connect_qp(
                self._store,
                self.agents[end],
                number,
                peer_qp=self._qps[peer][back],
                macs=(self._mac(end), self._mac(peer)),
                addresses=(self._ip(end), self._ip(peer)),
                source_port=FIRST_SOURCE_PORT + (end * 131 + number) % SOURCE_PORTS,
            )

    def _mac(self, rank: int) -> int:
        return mac(self._graph, self._hosts[rank], 1)

    def _ip(self, rank: int) -> int:
        return ipv4(self._graph, self._hosts[rank])
