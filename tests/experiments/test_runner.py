"""What the runner makes of a spec: schedules that fit the topology, links that lose enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Transfer
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve


def make(folder: Path, **given: str) -> CollectiveExperiment:
    return CollectiveExperiment(resolve({"out": str(folder), **given}))


def test_blueconnect_begins_within_each_leaf(tmp_path: Path) -> None:
    """Three leaves of two hosts: the first, largest exchange is between neighbours 2i and 2i + 1.

    Cho et al., MLSys 2019, section 3: the innermost level, where links are fastest, goes first.
    """
    experiment = make(tmp_path, topo="leafspine,leaves=3,spines=1,hosts=2", algo="blueconnect")

    rows = experiment.schedule(ALGORITHMS["blueconnect"], 6 << 10).rows

    first = [row for row in rows if row.step == 0]
    assert {(row.src, row.dst) for row in first if isinstance(row, Transfer)} == {
        (0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (5, 4),
    }  # fmt: skip


def test_links_lose_as_many_packets_as_asked(tmp_path: Path) -> None:
    """Of some 13,000 packets a tenth, give or take five standard deviations of 0.26 %."""
    experiment = make(
        tmp_path, topo="leafspine,leaves=2,spines=1,hosts=2", algo="ring", size="4M", mtu="1024",
        loss="10%",
    )  # fmt: skip

    (measurement,) = experiment.run()

    row = measurement.row
    sent = row.packet_hops + row.lost
    assert sent > 13_000
    assert row.lost / sent == pytest.approx(0.10, abs=0.013)
