"""The difference that a run made to the network's counters."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.core.disciplines import CLASSES
from ringleaf.core.units import PS_PER_NS
from ringleaf.hosts.agent import CORRUPTED, REFUSALS, REPATHS, RETRANSMISSIONS
from ringleaf.networks.outcome import Direction, Drop, RunResult
from ringleaf.networks.virtual.drops import clear_drops, read_drops
from ringleaf.networks.virtual.state import NetworkState, open_network
from ringleaf.switches.engine.queues import CLASS_PEAKS, DROPPED, PEAK_BYTES, QUEUE_WORDS, TRIMMED

FIRST_BIN_PS = 100 * PS_PER_NS
FIRST_QUEUE_BIN_PS = 10 * FIRST_BIN_PS  # a busy port sends in each of them


class Meter:
    """The counters at the start of a run, for their differences at its end."""

    def __init__(
        self,
        store: Store,
        networks: Sequence[int],
        links: list[Direction],
        hosts: int,
        now_ps: int,
        sources: Mapping[int, str],
        count_pauses: Callable[[], int],
    ) -> None:
        self._store = store
        self._networks = networks  # blocks of the regions
        self._links = links
        self._hosts = hosts
        self._sources = sources  # IPv4 address -> host
        self._count_pauses = count_pauses  # that ports have asked for so far
        self._start_ps = now_ps
        self._wall_s = time.perf_counter()
        nets = self._nets()
        for net in nets:
            if net.state[s.BIN_PS]:  # else nobody has touched their many pages yet
                net.bins[:] = 0
                net.queue_bins[:] = 0
            net.state[s.BIN_PS], net.state[s.BINS_FROM_PS] = FIRST_BIN_PS, now_ps
            net.state[s.QUEUE_BIN_PS] = FIRST_QUEUE_BIN_PS
            clear_drops(net)
        self._before = self._counters(nets)
        self._bytes_before = nets[0].ports[:, s.TX_BYTES].copy()

    def _nets(self) -> list[NetworkState]:
        return [open_network(self._store.arena, at) for at in self._networks]

    def _queues(self, net: NetworkState) -> npt.NDArray[np.int64]:
        """Return the state of all switch ports' queues, a row each."""
        queued = net.ports[net.ports[:, s.QUEUES_AT] > 0, s.QUEUES_AT]
        return self._store.arena.words[queued[:, None] + np.arange(QUEUE_WORDS)]

    def _counters(self, nets: Sequence[NetworkState]) -> dict[str, int]:
        words, net = self._store.arena.words, nets[0]
        return {
            "retransmissions": int(words[net.agents[:, s.AGENT_AT] + RETRANSMISSIONS].sum()),
            "refusals": int(words[net.agents[:, s.AGENT_AT] + REFUSALS].sum()),
            "repaths": int(words[net.agents[:, s.AGENT_AT] + REPATHS].sum()),
            "corrupted": int(words[net.agents[:, s.AGENT_AT] + CORRUPTED].sum()),
            "drops": int(self._queues(net)[:, DROPPED].sum()),
            "trims": int(self._queues(net)[:, TRIMMED].sum()),
            "pauses": self._count_pauses(),
            "lost": int(net.ports[:, s.LOST].sum()),
            "packet_hops": sum(int(each.state[s.HOPS]) for each in nets),
            "events": sum(int(each.state[s.EVENTS]) for each in nets),
        }

    def _queue_series(
        self, net: NetworkState, bins: npt.NDArray[np.int64]
    ) -> dict[Direction, npt.NDArray[np.int64]]:
        """Return each switch port's series up to the last bin in which any queue held packets."""
        if not len(bins):
            return {}
        used = int(np.flatnonzero(bins.any(axis=0)).max(initial=0)) + 1
        series = bins.reshape(len(self._links), CLASSES, -1)[:, :, :used]
        return {
            name: series[i].copy()
            for i, name in enumerate(self._links)
            if net.ports[i, s.QUEUES_AT] > 0
        }

    def _queue_peaks(self, net: NetworkState) -> dict[Direction, int]:
        ports = np.flatnonzero(net.ports[:, s.QUEUES_AT] > 0).tolist()
        peaks = self._queues(net)[:, PEAK_BYTES].tolist()
        return {self._links[port]: peak for port, peak in zip(ports, peaks, strict=True)}

    def _drops(self, nets: Sequence[NetworkState]) -> list[Drop]:
        """Return the drops of queues since the start, with the names of nodes."""
        drops, net = [], nets[0]
        for count in read_drops(nets):
            is_one = count.port >= 0
            node, peer = self._links[count.port] if is_one else ("", "")
            drops.append(
                Drop(
                    switch=node,
                    port=int(net.ports[count.port, s.LOCAL_PORT]) if is_one else 0,
                    peer=peer,
                    level=count.level if is_one else None,
                    source=self._sources.get(count.source, ""),
                    packets=count.packets,
                    size_bytes=count.size_bytes,
                    first_ps=count.first_ps - self._start_ps,
                    last_ps=count.last_ps - self._start_ps,
                )
            )
        return drops

    def result(self, finish_ps: list[int]) -> RunResult:
        """Return the result of the run, given the times at which ranks were done."""
        nets = self._nets()
        net, now = nets[0], self._counters(nets)
        bins, bin_ps = join_bins([(each.bins, int(each.state[s.BIN_PS])) for each in nets], np.add)
        queue_bins, queue_bin_ps = join_bins(
            [(each.queue_bins, int(each.state[s.QUEUE_BIN_PS])) for each in nets], fuller
        )
        sent = net.ports[:, s.TX_BYTES] - self._bytes_before
        hosts = net.nodes[-self._hosts :, s.FIRST_PORT]
        finish = [done - self._start_ps for done in finish_ps]
        used = int(np.flatnonzero(bins.any(axis=0)).max(initial=0)) + 1  # last acks come later
        loads = bins.reshape(len(self._links), -1, bins.shape[1])[:, :, :used]
        moved: dict[str, Any] = {name: now[name] - old for name, old in self._before.items()}
        return RunResult(
            time_ps=max(finish),
            finish_ps=finish,
            wire_bytes=sent[hosts].tolist(),
            link_bytes=dict(zip(self._links, sent.tolist(), strict=True)),
            bin_ps=bin_ps,
            link_series={name: loads[i].sum(axis=0) for i, name in enumerate(self._links)},
            owner_series={name: loads[i].copy() for i, name in enumerate(self._links)},
            peak_queue_bytes=int(self._queues(net)[:, PEAK_BYTES].max(initial=0)),
            wall_s=time.perf_counter() - self._wall_s,
            peak_class_bytes=self._queues(net)[:, CLASS_PEAKS : CLASS_PEAKS + CLASSES]
            .max(axis=0, initial=0)
            .tolist(),
            queue_peaks=self._queue_peaks(net),
            queue_bin_ps=queue_bin_ps,
            queue_series=self._queue_series(net, queue_bins),
            drop_counts=self._drops(nets),
            **moved,
        )


Table = npt.NDArray[np.int64]


def fuller(one: Table, other: Table) -> Table:
    """Return of each port and bin the classes of the table in which they hold more together."""
    both = [each.reshape(-1, CLASSES, each.shape[1]) for each in (one, other)]
    less = both[0].sum(axis=1) < both[1].sum(axis=1)
    return np.where(less[:, None], both[1], both[0]).reshape(one.shape)


def join_bins(
    regions: Sequence[tuple[Table, int]], join: Callable[[Table, Table], Table]
) -> tuple[Table, int]:
    """Return all regions' bins as one table, with the width of the widest.

    Args:
        regions: By region, its bins (rows, bins) and their width.
        join: How two tables become one: those of neighbouring bins, or of two regions.
    """
    widest = max(width for _, width in regions)
    whole: Table | None = None
    for bins, width in regions:
        while width < widest:
            width *= 2
            pairs = join(bins[:, ::2], bins[:, 1::2])
            bins = np.concatenate((pairs, np.zeros_like(pairs)), axis=1)
        whole = bins if whole is None else join(whole, bins)
    assert whole is not None
    return whole, widest
