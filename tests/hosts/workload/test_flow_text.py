"""Flows in text files of HPCC's ns-3 and htsim, in the forms that these projects have and make."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.flows import FlowFile, TimedFlow
from ringleaf.hosts.workload.formats.flows import read_flows

S = 10**12  # ps


def read(folder: Path, text: str, name: str = "flow.txt") -> FlowFile:
    path = folder / name
    path.write_text(text)
    return read_flows(path)


@pytest.mark.parametrize(
    ("text", "flows"),
    [
        ("1\n2 1 3 100 200000000 2\n", [TimedFlow(2, 1, 200_000_000, 2 * S)]),
        (  # as HPCC's generator writes it: a space after the count, nine digits
            "2 \n0 1 3 100 1500 2.000001500\n1 0 3 100 7 2.000000001\n",
            [TimedFlow(0, 1, 1500, 2 * S + 1_500_000), TimedFlow(1, 0, 7, 2 * S + 1000)],
        ),
        ("1\r\n5 9 3 4096 2.5\r\n", [TimedFlow(5, 9, 4096, 5 * S // 2)]),  # without a port
        ("\n1\n\n0 1 3 100 8 .5\n".replace(" .5", " 0.5"), [TimedFlow(0, 1, 8, S // 2)]),
        ("1\n0 1 3 100 8 2.5e-05\n", [TimedFlow(0, 1, 8, 25 * 10**6)]),  # as Python writes it
    ],
)
def test_flows_of_ns3_are_read(tmp_path: Path, text: str, flows: list[TimedFlow]) -> None:
    assert read(tmp_path, text) == FlowFile(flows)


HOSTS = {"node4": 0, "node7": 1, "4": 0, "7": 1}  # 5 and 6 are switches


def test_nodes_of_ns3_are_those_of_its_topology(tmp_path: Path) -> None:
    path = tmp_path / "flow.txt"
    path.write_text("2\n4 7 3 100 1500 2\n7 4 3 100 8 2\n")
    flows = [TimedFlow(0, 1, 1500, 2 * S), TimedFlow(1, 0, 8, 2 * S)]
    assert read_flows(path, HOSTS) == FlowFile(flows)
    path.write_text("1\n4 5 3 100 1500 2\n")
    with pytest.raises(
        ConfigError, match=r"line 2: must have hosts of .*, got node 5; hosts are 4"
    ):
        read_flows(path, HOSTS)


def test_nodes_of_ns3_are_ranks_where_hosts_have_names(tmp_path: Path) -> None:
    path = tmp_path / "flow.txt"
    path.write_text("1\n1 0 3 100 1500 2\n")
    for named in ({"a": 0, "b": 1}, {"a": 0, "1": 1}, {}):
        assert read_flows(path, named) == FlowFile([TimedFlow(1, 0, 1500, 2 * S)])


def test_what_ns3_passes_over_is_named(tmp_path: Path) -> None:
    """HPCC's own example counts two of its flows, and explains itself below them."""
    text = "1\n2 1 3 100 200 2\n3 1 3 100 200 2\n\nFirst line: flow #\n"
    found = read(tmp_path, text)
    assert found.flows == [TimedFlow(2, 1, 200, 2 * S)]
    path = tmp_path / "flow.txt"
    assert found.notes == (f"{path}: line 3 and what follows are passed over, as line 1 counts 1 "
                           "flow",)  # fmt: skip

    [note] = read(tmp_path, "2\n2 1 3 100 200 2\n3 1 4 100 200 2\n").notes
    assert note == f"{path}: priority groups 3, 4 are one class here"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3\n0 1 3 100 8 2\n", "line 1: must be the number of flows, 1, got 3"),
        ("0\n0 1 3 100 8 2\n", "must have a flow at least, got none"),
        ("1\n0 1 3 100 8 2 9\n", "line 2: must be source, .*, got .*9'; files with sizes in pack"),
        ("1\n0 1 3 1000 2.0 2.5\n", "line 2: must be source, .*; files with sizes in packets"),
        ("1\n0 1 3 100 8 2.0 2.5\n", "line 2: must be source, .*; files with sizes in packets"),
        ("1\n0 1 3 10000000 2 9\n", "line 2: must be source, .*; files with sizes in packets"),
        ("2\n0 1 3 100 8 2\n0 1 8 2\n", "line 3: must be source, destination, group, maybe port"),
        ("2\n0 1 3 100 8 2\n0 1 3 100 8 2s\n", "line 3: start must be in seconds, got '2s'"),
        ("1\n1 1 3 100 8 2\n", "line 2: target must be another node than source, got 1"),
        ("1\n0 1 3 100 0 2\n", "line 2: size must be 1 byte or more, got 0; such a flow never en"),
        ("1\n0 99999 3 100 8 2\n", "line 2: must have 1 to 4096 ranks, got 100000"),
        ("66 1 65\n0\n", "flow.txt: must be flows, got a topology of HPCC's ns-3"),
        ("2\n0 1 3 100 8 2\n0 x 3 100 8 2\n", "line 3: must be a node, a whole number, got 'x'"),
    ],
)
def test_wrong_flows_of_ns3_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, text)


MATRIX = (
    "# made\nNodes 16\nConnections 2\n0->13 id 1 start 5000 size 2000000\n\n13->0 start 0 size 9\n"
)


def test_a_connection_matrix_is_read(tmp_path: Path) -> None:
    """Starts are in picoseconds; all nodes are ranks."""
    flows = [TimedFlow(0, 13, 2_000_000, 5000), TimedFlow(13, 0, 9, 0)]
    assert read(tmp_path, MATRIX, "a.cm") == FlowFile(flows, 16)

    old = "Nodes 4\nConnections 1\n3->0 start 0.000000 size 64\n"
    assert read(tmp_path, old, "a.cm") == FlowFile([TimedFlow(3, 0, 64, 0)], 4)
    ranked = read(tmp_path, MATRIX.replace("start 0", "prio 3 start 0"), "a.cm")
    assert ranked == FlowFile(
        flows, 16, (f"{tmp_path / 'a.cm'}: priorities of connections are not used",)
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("start 0 size 9", "trigger 1 size 9", "line 6: must be a flow that starts at a time, g"),
        ("start 0 size", "msg start 0 size", "got 'msg'; messages that share a connection are no"),
        ("size 9", "size 9 send_done_trigger 1", "got 'send_done_trigger'; triggers are not read"),
        ("\n\n", "\ntrigger id 1 oneshot\n", "line 5: must be a connection A->B, got 'trigger id"),
        ("\n\n", "\nfailure switch_type TOR\n", "failures of switches and links are not read"),
        ("\n\n", "\nfive\n", "line 5: .* what else there may be is unknown"),
        ("Connections 2", "Connections 3", "must have 3 connections, as it says, got 2"),
        ("Nodes 16", "Nodes 13", "all nodes must be below Nodes, got 13"),
        ("start 0 ", "start 1.5 ", "start must be whole picoseconds, got '1.5'; older files"),
        ("start 0 ", "", "start must be whole picoseconds, got ''"),
        ("size 9", "size", "line 6: must have start and size, got 'start 0 size'"),
        ("size 9", "size 0", "line 6: size must be 1 byte or more, got 0"),
        ("size 9", "", "line 6: must be a size, a whole number, got ''"),
        ("size 9", "speed 9 size 9", "line 6: must have start and size, got "),
        ("13->0", "0->0", "line 6: target must be another node than source, got 0"),
    ],
)
def test_wrong_connections_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, MATRIX.replace(old, new), "a.cm")


flows = st.builds(
    lambda source, step, size, start: TimedFlow(source, (source + step) % 50, size, start),
    *(st.integers(0, 49), st.integers(1, 49), st.integers(1, 1 << 34), st.integers(0, 10**15)),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(flows, min_size=1, max_size=12), st.booleans())
def test_both_forms_carry_the_same_flows(tmp_path: Path, made: list[TimedFlow], port: bool) -> None:
    matrix = [f"Nodes 50\nConnections {len(made)}"]
    lines = [str(len(made))]
    for number, flow in enumerate(made, 1):
        ends = f"{flow.source} {flow.target} 3" + (" 100" if port else "")
        seconds = f"{flow.start_ps // S}.{flow.start_ps % S:012}"
        lines.append(f"{ends} {flow.size_bytes} {seconds}")
        matrix.append(
            f"{flow.source}->{flow.target} id {number} start {flow.start_ps} size {flow.size_bytes}"
        )

    assert read(tmp_path, "\n".join(lines)).flows == made
    assert read(tmp_path, "\n".join(matrix), "a.cm") == FlowFile(made, 50)
