"""The study of PANAMA's trees: sums are right, and the busiest link has less with more trees."""

from __future__ import annotations

import pytest

from ringleaf.errors import ConfigError
from ringleaf.topologies.graph import attachment, hosts
from ringleaf.topologies.registry import build
from studies.trees import line, measure, pairs_of

SMALL = "leafspine,leaves=2,spines=2,hosts=4"


def test_the_busiest_link_has_less_with_more_trees() -> None:
    """A job alone, but for flows that it leaves little time for: half of the bytes by each tree."""
    one, two = (
        measure(case, size_bytes=256 << 10, topology=SMALL, lanes=64)
        for case in ("panama-1", "panama")
    )

    assert one.wrong == two.wrong == 0
    assert min(len(one.flows_us), len(two.flows_us)) > 5
    assert two.busiest_bytes < 0.75 * one.busiest_bytes
    assert one.job_ps >= two.job_ps
    assert line("x", [two]).split()[0] == "x"


def test_flows_go_to_other_racks() -> None:
    graph = build(SMALL)
    for here, there in pairs_of(graph, hosts(graph)):
        assert attachment(graph, here) != attachment(graph, there)


def test_unknown_cases_are_named() -> None:
    with pytest.raises(ConfigError, match="unknown case, got 'panam'"):
        measure("panam", size_bytes=1024)
