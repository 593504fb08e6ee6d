"""Messages of a replay: how long they took, in percentiles, and how fairly they shared links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ringleaf.experiments.workloads.jobs.results import jain
from ringleaf.hosts.workload.replay import WorkReplay

PERCENTILES = (50.0, 99.0, 99.9)

COLUMNS = ("source", "target", "size_bytes", "start_ps", "end_ps")

Table = npt.NDArray[np.int64]


MOST_BINS = 10
"""The most bins of sizes; if there are more sizes, each bin has as many messages."""


def bin_edges(sizes_bytes: Table) -> Table:
    """Return the largest size of each bin."""
    edges: Table = np.unique(sizes_bytes)
    if len(edges) > MOST_BINS:
        shares = np.linspace(0, 100, MOST_BINS + 1)[1:]
        edges = np.unique(np.percentile(sizes_bytes, shares, method="inverted_cdf"))
    return edges


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages between two ranks, a row each with `COLUMNS`, in the order of the graph.

    A message starts when its sender is ready for it, and ends when it is acknowledged.
    """

    table: Table  # (messages, 5)

    @property
    def sizes_bytes(self) -> Table:
        """The sizes of all messages."""
        return self.table[:, 2]

    @property
    def times_ps(self) -> Table:
        """The times that all messages took."""
        return self.table[:, 4] - self.table[:, 3]

    def percentiles_ps(self) -> list[int]:
        """Return the `PERCENTILES` of the times, each a time of some message; none without any.

        A percentile p is the least time that p % of the messages, or more, don't exceed.
        """
        if not len(self.table):
            return []
        return [
            int(each) for each in np.percentile(self.times_ps, PERCENTILES, method="inverted_cdf")
        ]

    def fairness(self) -> float | None:
        """Return Jain's index of the throughputs of the messages of the largest size.

        None: there is one of these at most, which shares with none of its size.
        """
        largest = self.times_ps[self.sizes_bytes == self.sizes_bytes.max(initial=0)]
        return jain((1 / np.maximum(largest, 1)).tolist()) if len(largest) > 1 else None


def messages_of(replay: WorkReplay) -> Messages:
    """Return the messages of a replay that is over."""
    rows = []
    for meeting, over_ps in zip(replay.matched.meetings, replay.over_ps, strict=True):
        if meeting.call is None:
            times = replay.times[meeting.ranks[0]][meeting.places[0]]
            rows.append((*meeting.ranks, meeting.size_bytes, times.ready_ps, over_ps))
    return Messages(np.array(rows, np.int64).reshape(-1, len(COLUMNS)))
