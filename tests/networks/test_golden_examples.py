"""Figures that papers compute by hand for ATP, measured on networks built as they draw them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from ringleaf.topologies.gradients import goat, grid
from studies.gradients import (
    ADDS_BPS,
    GOAT_SERVERS,
    GOAT_WORKERS,
    GRID_WORKERS,
    LANES,
    LINE_BYTES,
    goat_figure_2,
    grid_figure_1,
    run_geryon,
    run_goat,
    run_grid,
    run_limited,
)
from studies.sharing import share


@pytest.mark.parametrize(
    ("ways", "adds", "rate", "processed"),
    [
        ([], 9, 2.4375, [9, 4.875, 4.875]),  # ATP, as in the paper
        ([], 6, 1.875, [6, 3.75, 3.75]),  # 1.5 of each, and 1.5 left for 0.375 of each
        ([], 12.5, 3, [12, 6, 6]),  # the first switch can add up all
        (["h3-s1-h8"], 9, 3, [9, 9, 6]),  # GRID
        (None, 9, 3, [9, 9, 6]),  # GRID, as it is solved
    ],
)
def test_grid_figure_1(
    ways: list[str] | None, adds: float, rate: float, processed: list[float]
) -> None:
    """Fang et al., "GRID", 2023, section 3.1: a switch can add up 9 Gbit/s.

    That is 2.25 of each worker in the first rack, which leaves 0.75 of its link to the server's for
    gradients as they are, 0.19 of each: 2.43 in all with ATP. GRID sends one worker's to the next
    rack, to be added up there, and all have 3. Without the detour, or with other switches, they
    have other rates.
    """
    if ways is None:
        pytest.importorskip("scipy")
        graph = grid_figure_1()
        solved = grid.route(graph, GRID_WORKERS, "h8", adds_bps=ADDS_BPS, rng=Random(1))
        given = list(solved.ways)
    else:
        given = [tuple(way.split("-")) for way in ways]

    found = run_limited(round(adds * 10**9), given)

    assert found.wrong == 0
    assert max(found.added) <= adds
    assert found.of_one == pytest.approx(rate, rel=0.03)
    assert found.added == pytest.approx(processed, rel=0.03)


def test_grid_figure_1_where_nothing_is_added_up_in_the_crowded_rack() -> None:
    """Each of its workers has a quarter of the link between racks."""
    found = run_grid(0)

    assert found.wrong == 0
    assert found.of_one == pytest.approx(0.75, rel=0.08)
    assert found.added == pytest.approx([0, 1.5, 1.5], rel=0.08, abs=0.02)


@pytest.mark.parametrize(("ways", "rate"), [([], 0.75), (["h3-s1-h8", "h8-s1-h3"], 1)])
def test_grid_figure_1_geryon(ways: list[str], rate: float) -> None:
    """Nothing is added up on the way: the slowest have a third of their link, with a detour.

    Without one it is a quarter. The server's link is no limit.
    """
    found = run_geryon([way.split("-") for way in ways])

    assert found.wrong == 0
    assert found.of_one == pytest.approx(rate, rel=0.04)


def test_goat_figure_2() -> None:
    """Fang et al., "GOAT", 2023, figure 2: three parts, and a switch has memory for one each.

    The first two switches send five packets each, and the third sends three to the servers.
    """
    pytest.importorskip("scipy")
    solved = goat.route(goat_figure_2(), GOAT_WORKERS, GOAT_SERVERS, rng=Random(1))

    assert run_goat(solved.ways) == ({"s0": 5, "s1": 5, "s2": 3}, 0)


def test_fewer_aggregators_degrade_atp_down_to_the_parameter_server() -> None:
    plenty, some, few = (
        share(("atp", "atp"), entries, elements=1 << 15) for entries in (1024, 96, 2)
    )
    assert plenty.wrong == some.wrong == few.wrong == 0
    slowest = [min(found.goodputs_bps) for found in (plenty, some, few)]
    assert slowest[0] > slowest[1] > slowest[2]
    assert slowest[2] > 0.6 * 100e9 / 4 * (4 * LANES / LINE_BYTES)


def test_jobs_of_two_systems_share_a_switch() -> None:
    """One program has both; each system has entries of its own.

    Not compiled: that would take this program ten times as long as the run.
    """
    code = (
        "from studies.sharing import share\n"
        "found = share(('atp', 'switchml'), 256, elements=1 << 10)\n"
        "print(found.wrong, found.resent, *found.goodputs_bps)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    wrong, resent, *goodputs = map(float, done.stdout.split())
    assert wrong == resent == 0
    assert min(goodputs) > 0.8 * max(goodputs)
