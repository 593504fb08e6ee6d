"""Summaries of replays: what their results are made of."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np

from ringleaf.experiments.records import circuit_counts
from ringleaf.experiments.records.link_use import time_busy_ps, uses_of
from ringleaf.experiments.workloads.graph.accounts import end_ps, spend, tabulate
from ringleaf.experiments.workloads.graph.messages import messages_of
from ringleaf.experiments.workloads.graph.results import WorkResults
from ringleaf.experiments.workloads.graph.timeline import Timeline
from ringleaf.hosts.workload.graph import CalledCollective
from ringleaf.hosts.workload.replay import WorkReplay
from ringleaf.networks.live.coordinator import Lateness
from ringleaf.networks.outcome import RunResult, tell_forbidden
from ringleaf.topologies.graph import link


@dataclass(frozen=True, slots=True)
class GraphPerformance:
    """The result of a replay: ranks' times, checks, and the network's account.

    `wrong`, `reason`: as the ledger has them. `lateness` is of live hosts.
    """

    replay: WorkReplay
    wrong: int | None
    reason: str
    outcome: RunResult
    lateness: Lateness | None = None


def summarise(
    graph: nx.Graph[str],
    done: GraphPerformance,
    algos: dict[CalledCollective | None, str],
    owners: dict[int, str],
) -> WorkResults:
    """Return the results of a replay.

    Args:
        graph: The topology.
        done: The replay, which is over.
        algos: The algorithm of each call.
        owners: The label of each group number.
    """
    replay, outcome, late = done.replay, done.outcome, done.lateness
    results = WorkResults(
        iteration_ps=end_ps(replay),
        wrong=done.wrong,
        reason=done.reason,
        retransmissions=outcome.retransmissions,
        drops=outcome.drops,
        pauses=outcome.pauses,
        trims=outcome.trims,
        lost=outcome.lost,
        corrupted=outcome.corrupted,
        repaths=outcome.repaths,
        forbidden=tell_forbidden(outcome.forbidden),
        **circuit_counts.counts_of(outcome),
        packet_hops=outcome.packet_hops,
        peak_queue_bytes=outcome.peak_queue_bytes,
        rows=tabulate(replay, algos),
        spending=spend(replay),
        timeline=Timeline.of_replay(replay),
        bin_ps=outcome.bin_ps,
        drop_counts=outcome.drop_counts,
        uses=uses_of(graph, outcome),
        messages=messages_of(replay),
        times=replay.times,
        late_ps=late.mean_ps if late else None,
        most_late_ps=late.most_ps if late else None,
    )
    sizes = outcome.link_bytes
    if owners and any(sizes.values()):
        busiest = max(sizes, key=lambda ends: time_busy_ps(graph, outcome, ends))
        series = outcome.owner_series.get(busiest)
        results.link = " to ".join(busiest)
        results.link_rate_bps = link(graph, *busiest).rate_bps
        if series is None:
            return results  # live: not known over time
        results.labels = list(dict.fromkeys(owners.values()))
        rows = len(series) > 1
        results.link_series = np.array(
            [
                sum(
                    (series[number if rows else 0] for number in owners if owners[number] == label),
                    np.zeros(series.shape[1], np.int64),
                )
                for label in results.labels
            ]
        )
    return results
