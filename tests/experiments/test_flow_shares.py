"""Flows of a permutation, whose queues do not come to fit its links, take as long as packets."""

from __future__ import annotations

from studies.flow_errors import PacketTimes, measure_workload


def test_where_queues_do_not_fit_flows_have_max_min_shares() -> None:
    """With queues as the last round leaves them, they would take 13 % longer than packets."""
    given = {"workload": "permutation", "ranks": "16", "flow_sizes": "1M", "flows": "200"}

    [case] = measure_workload("leafspine,leaves=4,spines=1,hosts=4", given, PacketTimes(), "one")

    assert abs(case.percent) < 2
