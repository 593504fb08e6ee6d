"""Summaries of replays: what their results are made of."""

from __future__ import annotations

import networkx as nx
import numpy as np

from ringleaf.experiments.work.accounts import end_ps, spend, tabulate
from ringleaf.experiments.work.ledger import NoData, RandomData
from ringleaf.experiments.work.messages import messages_of
from ringleaf.experiments.work.results import WorkResults
from ringleaf.experiments.work.timeline import Timeline
from ringleaf.hosts.workload.graph import Call
from ringleaf.hosts.workload.replay import Replay
from ringleaf.networks.outcome import RunResult
from ringleaf.topologies.graph import link


def summarise(
    graph: nx.Graph[str],
    replay: Replay,
    outcome: RunResult,
    ledger: NoData | RandomData,
    algos: dict[Call | None, str],
    owners: dict[int, str],
) -> WorkResults:
    """Return the results of a replay.

    Args:
        graph: The topology.
        replay: The replay, which is over.
        outcome: The network's counters.
        ledger: Has checked the results.
        algos: The algorithm of each call.
        owners: The label of each group number.
    """
    found = WorkResults(
        iteration_ps=end_ps(replay),
        wrong=ledger.wrong,
        reason=ledger.reason,
        retransmissions=outcome.retransmissions,
        drops=outcome.drops,
        packet_hops=outcome.packet_hops,
        peak_queue_bytes=outcome.peak_queue_bytes,
        rows=tabulate(replay, algos),
        spending=spend(replay),
        timeline=Timeline.of_replay(replay),
        bin_ps=outcome.bin_ps,
        drop_counts=outcome.drop_counts,
        messages=messages_of(replay),
        times=replay.times,
    )
    sizes = outcome.link_bytes
    if owners and any(sizes.values()):
        busiest = max(sizes, key=lambda ends: sizes[ends] / link(graph, *ends).rate_bps)
        series = outcome.owner_series[busiest]
        found.link = " to ".join(busiest)
        found.link_rate_bps = link(graph, *busiest).rate_bps
        found.labels = list(dict.fromkeys(owners.values()))
        rows = len(series) > 1
        found.link_series = np.array(
            [
                sum(
                    (series[number if rows else 0] for number in owners if owners[number] == label),
                    np.zeros(series.shape[1], np.int64),
                )
                for label in found.labels
            ]
        )
    return found
