"""Tables of flows' errors have each case in its rows, by what ran, where and with what messages."""

from __future__ import annotations

from studies.flow_error_tables import tables
from studies.flow_errors import ErrorCase


def case(what: str, topo: str, message_bytes: int, flow_ps: int, ranks: int = 128) -> ErrorCase:
    """A case whose packets take 1,000 ps, on a network without oversubscription."""
    return ErrorCase(what, topo, 1.0, ranks, "1M", message_bytes, 1000, flow_ps)


CASES = [
    case("ring", "fattree,k=8", 65536, 1010),
    case("ring", "fattree,k=8", 65535, 1500),
    case("tree", "fattree,k=4", 1 << 20, 970, ranks=16),
    case("tree", "fattree,k=6", 65536, 900, ranks=54),
    case("jobs by ring and fifo", "fattree,k=4", 65536, 1100, ranks=16),
    case("jobs by tree and p3", "fattree,k=4", 4096, 1200, ranks=16),
    case("tree, links fail", "fattree,k=4", 65536, 1300, ranks=16),
]


def row(name: str) -> list[str]:
    """What a row has, but for its name."""
    [line] = [line for line in tables(CASES) if line.startswith(f"| {name} |")]
    return [part.strip() for part in line.strip("|").split("|")[1:]]


def test_rows_have_the_cases_that_they_name() -> None:
    assert row("collectives, 4 KiB to 64 KiB")[:2] == ["1", "+50.00 %"]
    assert row("collectives, 64 KiB to 1 MiB")[:3] == ["2", "-4.50 %", "5.50 %"]
    assert row("`tree`")[:3] == ["2", "-6.50 %", "6.50 %"]
    assert row("four algorithms, three networks") == [
        *("2", "-1.00 %", "2.00 %", "-1.00 %", "3.0 %", "3.0 %")
    ]
    assert row("fat-tree of 128 hosts")[:2] == ["1", "+1.00 %"]
    assert row("jobs but by a tree, `fifo`, 64 KiB and more")[:2] == ["1", "+10.00 %"]
    assert row("jobs by a tree")[:2] == ["1", "+20.00 %"]
    assert row("is down; tree")[:2] == ["1", "+30.00 %"]


def test_rows_without_a_case_are_left_out() -> None:
    assert not [line for line in tables(CASES) if "BCube" in line]
