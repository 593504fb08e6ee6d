"""Live links that fail, and routes that lead around them: sums stay exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ringleaf.errors import BackendError
from ringleaf.experiments.runs.python import run

pytestmark = pytest.mark.live

SMALL: dict[str, Any] = {
    "topo": "leafspine,leaves=2,spines=2,hosts=2",
    "net": "mininet",
    "figures": "no",
}


def row_of(tmp_path: Path, **options: str) -> Any:
    (row,) = run(**{**SMALL, "out": str(tmp_path), **options}).rows
    return row


@pytest.mark.parametrize("place", ["s0-s2", "h1"])
def test_packets_of_a_link_that_was_down_are_sent_again(tmp_path: Path, place: str) -> None:
    """It is down for the first second, in which hosts begin however busy the machine is."""
    down = f"{place} down at 0 for 1ms"
    row = row_of(tmp_path, algo="ring", size="64K", faults=down, routes="ecmp")

    assert row.wrong == 0
    assert row.lost > 0
    assert row.retransmissions > 0


@pytest.mark.parametrize("damage", ["s0 corrupt 5%", "h1 corrupt 10%"])
def test_receivers_discard_what_a_switch_or_host_damages(tmp_path: Path, damage: str) -> None:
    row = row_of(tmp_path, algo="ring", size="64K", faults=damage, routes="ecmp")

    assert row.wrong == row.lost == 0
    assert row.corrupted > 0
    assert row.retransmissions > 0


def test_a_job_in_switches_and_one_on_hosts_outlast_a_link_that_flaps(tmp_path: Path) -> None:
    job = {"model": "resnet50", "ranks": 2, "iterations": 1}
    options: dict[str, Any] = {"jobs": [job, job], "size": "0.001", "compute": "0.01"}
    faults = "h0 down at 1us for 2us every 10us times 5"

    result = run(**{**SMALL, "out": str(tmp_path), **options, "servers": "0", "faults": faults})

    assert [row.wrong for row in result.rows] == [0, 0]


def test_routes_lead_around_a_link_that_stays_down(tmp_path: Path) -> None:
    down = {"algo": "alltoall", "size": "64K", "faults": "s0-s2 down at 0, s1-s3 down at 0"}
    down |= {"topo": "leafspine,leaves=2,spines=3,hosts=2", "stall": "3s"}

    with pytest.raises(BackendError, match="waits for"):
        row_of(tmp_path / "stay", **down)
    assert row_of(tmp_path / "change", **down, reroute="10us").wrong == 0


def test_the_next_run_has_the_usual_routes_and_links(tmp_path: Path) -> None:
    """The second size starts with links up and the routes that lead over them."""
    down: dict[str, Any] = {
        "faults": "s0-s2 down at 50us",
        "reroute": "10us",
        "algo": "ring",
        "size": "32K,64K",
    }

    rows = run(**SMALL, **down, out=str(tmp_path)).rows

    assert [row.wrong for row in rows] == [0, 0]


@pytest.mark.parametrize("algo", ["switchml", "omnireduce-switch", "atp"])
def test_trees_lead_around_a_spine_that_stays_down(tmp_path: Path, algo: str) -> None:
    """The spine is the tree's root."""
    row = row_of(tmp_path, algo=algo, size="128K", faults="s2 down at 4us", reroute="5us")

    assert row.wrong == 0
    assert (row.rebuilt, row.resume_ps is not None) == (1, True)


@pytest.mark.parametrize(
    ("switch", "algo"), [("s0", "switchml"), ("s0", "omnireduce-switch"), ("s2", "ring")]
)
def test_sums_that_a_restarted_switch_has_lost_are_added_up_anew(
    tmp_path: Path, switch: str, algo: str
) -> None:
    """The leaf is in each tree, so that the only mend is to begin anew what it had added up."""
    down = f"{switch} down at 4us for 6us"
    row = row_of(tmp_path, algo=algo, size="128K", faults=down, reroute="5us")

    assert row.wrong == 0
    assert row.rebuilt == (0 if algo == "ring" else 1)


@pytest.mark.parametrize("algo", ["ring", "switchml"])
def test_hosts_go_on_without_one_that_is_lost(tmp_path: Path, algo: str) -> None:
    """It is never there: the others give up after half a second, and begin again."""
    row = row_of(tmp_path, algo=algo, size="64K", faults="h1 down at 0", shrink="500us")

    assert (row.lost_hosts, row.ranks_left, row.wrong) == ("h1", 3, 0)
    assert row.again_ps == 500_000_000_000  # by the run's clock, which is 1000 times as slow
    assert row.time_ps > row.again_ps
