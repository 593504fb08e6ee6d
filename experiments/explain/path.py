"""The path of causes of a run: from the last result back to the start, without a gap.

Each packet that is put on a line at some time has a cause at that time: the packet before it on
the line has just left, or a packet has just arrived at the node. So a walk back from the arrival
that ended the run passes through the packets that decided its length, and their times on lines and
links, one after the other, are the run's time. Where neither holds, the time between the last such
event and the packet is a wait of its own: for a host's processor, a timer or a rate.

A packet that a host had sent before is followed back to when that was: the time between is lost to
sending it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

import ringleaf.networks.virtual.state as s
from ringleaf.core.units import PS_PER_S
from ringleaf.experiments.explain.findings import (
    ANSWERS,
    HOSTS,
    KINDS,
    LINE,
    LINKS,
    OTHER,
    PROCESSORS,
    RATE,
    RESENDS,
    SLOW,
    SWITCHES,
)
from ringleaf.experiments.explain.log import CONTROL, IN_NETWORK, KIND, PROBE, PacketLog


@dataclass(frozen=True, slots=True)
class PathHop:
    """A packet of the path on one link; times in ps, nodes by number."""

    src: int
    dst: int
    sent_ps: int
    there_ps: int


@dataclass(slots=True)
class Path:
    """Where a run's time went; `spent_ps` adds up to it exactly.

    Attributes:
        spent_ps: Time by kind, all of KINDS.
        headers_ps: Of LINE and SLOW, the time of headers, preambles and gaps.
        behind_ps: Of LINE and SLOW, the time behind data of other flows.
        hops: Links that the path crosses, last first.
    """

    spent_ps: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    headers_ps: int = 0
    behind_ps: int = 0
    hops: list[PathHop] = field(default_factory=list)

    @property
    def time_ps(self) -> int:
        """The time of the whole path."""
        return sum(self.spent_ps.values())


def line_ps(line: npt.NDArray[np.int32], rate_bps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the time of bytes on lines, rounded up as the event loop does."""
    times_ps: npt.NDArray[np.int64] = (line * np.int64(8 * PS_PER_S) + rate_bps - 1) // rate_bps
    return times_ps


class LogWalk:
    """A walk through a log, from the end of a run to its start.

    Args:
        log: All packets of the run, which began at time 0.
        best_bps: (ports,) the best rate of the links of each port's kind.
        overhead_ps: Time of a host's processor for each message.
        is_paced: Whether a congestion control holds packets back.
        header_bytes: By IN_NETWORK or 0: bytes of a packet on the line that are not data.
    """

    def __init__(
        self,
        log: PacketLog,
        best_bps: npt.NDArray[np.int64],
        *,
        overhead_ps: int = 0,
        is_paced: bool = False,
        header_bytes: Mapping[int, int],
    ) -> None:
        self._log = log
        self._overhead_ps, self._is_paced, self._headers = overhead_ps, is_paced, header_bytes
        rates = log.ports[:, s.RATE_BPS]
        sent = np.flatnonzero(log.sent)
        ports = log.port[sent]
        self._line_ps = line_ps(log.line, rates[log.port])
        self._best_ps = line_ps(log.line, best_bps[log.port])
        order = np.argsort(ports, kind="stable")
        self._sent = sent[order]
        self._done_ps = (log.time_ps + self._line_ps)[self._sent]
        self._of_port = np.searchsorted(ports[order], np.arange(len(log.ports) + 1))
        came = np.flatnonzero(~log.sent)
        nodes = log.ports[log.port[came], s.NODE]
        order = np.argsort(nodes, kind="stable")
        self._came = came[order]
        self._at_node = np.searchsorted(nodes[order], np.arange(len(log.is_host) + 1))
        self._first = log.first
        self.path = Path()

    def back_from(self, node: int, end_ps: int) -> Path:
        """Return the path that ends with what a node has at a time: its last arrival until then."""
        here, stop = self._at_node[node : node + 2]
        came = self._came[here:stop]
        place = int(np.searchsorted(self._log.time_ps[came], end_ps, side="right")) - 1
        if place < 0:
            self._spend(OTHER, end_ps)
            return self.path
        arrival = int(came[place])
        gap_ps = end_ps - int(self._log.time_ps[arrival])
        self._spend(PROCESSORS if self._overhead_ps else OTHER, gap_ps)
        row = self._cross(arrival)
        while row >= 0:
            row = self._cause(row)
        return self.path

    def busiest_ps(self) -> int:
        """Return the most time that data, sent for the first time, would take on one link.

        All links count as fast as the best of their kind.
        """
        log = self._log
        rows = np.flatnonzero(
            log.sent & (log.kind & KIND == 0) & (log.first == np.arange(len(log)))
        )
        took_ps = np.zeros(len(log.ports), np.int64)
        np.add.at(took_ps, log.port[rows], self._best_ps[rows])
        return int(took_ps.max())

    def _spend(self, kind: str, time_ps: int) -> None:
        self.path.spent_ps[kind] += time_ps

    def _cross(self, arrival: int) -> int:
        """Follow a packet that has arrived to when it was sent; return that row, or -1."""
        log = self._log
        there, now_ps = int(log.port[arrival]), int(log.time_ps[arrival])
        port = int(log.ports[there, s.PEER])
        outward_ps, inward_ps = (
            int(log.ports[port, s.OUTWARD_PS]),
            int(log.ports[there, s.INWARD_PS]),
        )
        delay_ps = int(log.ports[port, s.DELAY_PS])
        first, stop = self._of_port[port : port + 2]
        done_ps = self._done_ps[first:stop]
        place = int(np.searchsorted(done_ps, now_ps - delay_ps, side="right")) - 1
        if place < 0:
            self._spend(OTHER, now_ps)
            return -1
        row = int(self._sent[first + place])
        late_ps = now_ps - delay_ps - int(done_ps[place])
        self._spend(OTHER, late_ps)  # a packet that was reordered or duplicated
        kind = int(log.kind[row])
        if kind & KIND:
            self._spend(_kind_of(kind), delay_ps)
        else:
            node = int(log.ports[there, s.NODE])
            self._spend(LINKS, delay_ps - outward_ps - inward_ps)
            self._spend(HOSTS, outward_ps + (inward_ps if log.is_host[node] else 0))
            self._spend(SWITCHES, 0 if log.is_host[node] else inward_ps)
        self._transmit(row, behind=False)
        ends = (int(log.ports[port, s.NODE]), int(log.ports[there, s.NODE]))
        self.path.hops.append(PathHop(*ends, int(log.time_ps[row]), now_ps))
        return row

    def _transmit(self, row: int, *, behind: bool) -> None:
        """Spend the time of a packet on its line."""
        kind, time_ps = int(self._log.kind[row]), int(self._line_ps[row])
        if kind & KIND:
            self._spend(_kind_of(kind), time_ps)
            return
        best_ps = int(self._best_ps[row])
        self._spend(LINE, best_ps)
        self._spend(SLOW, time_ps - best_ps)
        line = int(self._log.line[row])
        headers = min(self._headers[kind & IN_NETWORK], line)
        self.path.headers_ps += time_ps * headers // line
        if behind:
            self.path.behind_ps += time_ps

    def _cause(self, row: int) -> int:
        """Follow a packet that was sent to its cause; return the row of a packet sent, or -1."""
        log = self._log
        port, now_ps = int(log.port[row]), int(log.time_ps[row])
        again = int(self._first[row])
        if again != row and log.is_host[log.ports[port, s.NODE]]:
            self._spend(RESENDS, now_ps - int(log.time_ps[again]))
            return again
        first, stop = self._of_port[port : port + 2]
        place = int(np.searchsorted(self._sent[first:stop], row)) - 1
        free_ps = int(self._done_ps[first + place]) if place >= 0 else -1
        node = int(log.ports[port, s.NODE])
        here, end = self._at_node[node : node + 2]
        came = int(np.searchsorted(self._came[here:end], row)) - 1
        arrival = int(self._came[here + came]) if came >= 0 else -1
        came_ps = int(log.time_ps[arrival]) if came >= 0 else -1
        latest_ps = max(free_ps, came_ps, 0)
        wait = self._wait(row, node)
        if latest_ps < now_ps and wait == PROCESSORS:
            latest_ps = max(came_ps, 0)  # which the processor has worked on since
        self._spend(wait, now_ps - latest_ps)
        if place >= 0 and free_ps == latest_ps:
            before = int(self._sent[first + place])
            self._transmit(before, behind=bool(log.flow[before] != log.flow[row]))
            return before
        return self._cross(arrival) if came >= 0 else -1

    def _wait(self, row: int, node: int) -> str:
        """Return the kind of a wait before a packet that nothing in the log has caused."""
        if not self._log.is_host[node]:
            return SWITCHES  # it passed the pipeline again
        if int(self._log.kind[row]) & KIND == PROBE:
            return RESENDS
        if self._overhead_ps:
            return PROCESSORS
        return RATE if self._is_paced else OTHER


def _kind_of(kind: int) -> str:
    return ANSWERS if kind & KIND == CONTROL else RESENDS
