"""Chakra traces: bytes by hand, round trips, and damaged files."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hand_graphs import call, compute, graph, graphs, receive, send
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.formats import chakra, schema
from ringleaf.hosts.workload.formats.files import read_trace, write_trace
from ringleaf.hosts.workload.formats.framing import frame
from ringleaf.hosts.workload.graph import CalledCollective, CallGroup, Graph, NodeKind, WorkNode
from ringleaf.hosts.workload.meetings import match
from ringleaf.hosts.workload.replay import NodeTimes

ours = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def attribute(name: str, value: bytes) -> bytes:
    inner = b"\x0a" + bytes([len(name)]) + name.encode() + value
    return b"\x52" + bytes([len(inner)]) + inner


METADATA = b"\x07\x0a\x051.0.0"  # version, field 1, "1.0.0"
NOT_CPU = attribute("is_cpu_op", b"\xd8\x01\x00")  # bool_val, field 27
COMPUTE = b"\x08\x01\x12\x01a\x18\x04\x38\x05" + NOT_CPU  # id 1, "a", COMP_NODE, 5 us
REDUCE = (  # as the generator writes it: id 2, "AR", COMM_COLL_NODE, after node 1
    b"\x08\x02" b"\x12\x02AR" b"\x18\x07" b"\x2a\x01\x01"
    + NOT_CPU
    + attribute("comm_type", b"\x48\x00")  # int64_val, field 9: ALL_REDUCE
    + attribute("comm_size", b"\x48\x80\x80\x04")  # 65536
)  # fmt: skip


def framed(*messages: bytes) -> bytes:
    return METADATA + b"".join(bytes([len(each)]) + each for each in messages)


def write_ranks(folder: Path, *files: bytes) -> str:
    for rank, data in enumerate(files):
        (folder / f"t.{rank}.et").write_bytes(data)
    return str(folder / "t.*.et")


def test_bytes_of_other_tools_are_read(tmp_path: Path) -> None:
    both = framed(COMPUTE, REDUCE)

    found = read_trace(write_ranks(tmp_path, both, both))

    assert found.groups == (CallGroup("world", (0, 1)),)
    assert found.ranks[1].source == str(tmp_path / "t.1.et")
    for work in found.ranks:
        assert work.nodes == (
            WorkNode(1, NodeKind.COMPUTE, "a", 5_000_000),
            WorkNode(
                2, NodeKind.COLLECTIVE, "AR", 0, 65536, CalledCollective.ALLREDUCE, 0, after=(1,)
            ),
        )


def test_our_bytes_are_those_of_the_schema(tmp_path: Path) -> None:
    """Field by field: attributes that others pass over come last."""
    made = graph([compute(1, 5_000_000)])
    [path] = write_trace(made, "chakra", tmp_path, "t")

    exact = attribute("duration_ps", b"\x48\xc0\x96\xb1\x02")  # 5,000,000
    node = b"\x08\x01\x18\x04\x38\x05" + NOT_CPU + exact
    assert path.read_bytes() == METADATA + bytes([len(node)]) + node


def test_all_fields_have_the_schema_s_numbers() -> None:
    """30 typed values in pairs from field 3 on: double alone, its list, float, ... bytes, list."""
    fields = {field.name: field.number for field in schema.AttributeProto.DESCRIPTOR.fields}

    assert len(fields) == 32
    known = {"name": 1, "doc_string": 2, "double_val": 3, "float_list": 6, "int32_val": 7,
             "int64_val": 9, "uint64_val": 13, "sint64_list": 18, "fixed32_val": 19,
             "sfixed64_list": 26, "bool_val": 27, "string_val": 29, "bytes_list": 32}  # fmt: skip
    assert known.items() <= fields.items()
    node = {field.name: field.number for field in schema.Node.DESCRIPTOR.fields}
    assert node == {"id": 1, "name": 2, "type": 3, "ctrl_deps": 4, "data_deps": 5,
                    "start_time_micros": 6, "duration_micros": 7, "inputs": 8, "outputs": 9,
                    "attr": 10}  # fmt: skip


def bare(made: Graph) -> Graph:
    """A graph without the places of its files."""
    return replace(made, ranks=tuple(replace(work, source="") for work in made.ranks))


def as_read(made: Graph) -> Graph:
    """A graph as Chakra has it: nodes that load are the only ones of their stream."""
    return replace(bare(made), name="t")


@ours
@given(graphs())
def test_a_round_trip_changes_nothing(tmp_path: Path, made: Graph) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    write_trace(made, "chakra", tmp_path, "t")

    found = read_trace(str(tmp_path / "t.*.et")) if any(w.nodes for w in made.ranks) else made

    assert bare(found).ranks == as_read(made).ranks
    assert found.groups == made.groups
    match(found)


def test_times_of_a_replay_are_noted(tmp_path: Path) -> None:
    made = graph([compute(0, 3_000_000), send(1, 1, 8, 0)], [receive(0, 0, 8)])
    times = [
        [NodeTimes(0, 0, 3_000_000), NodeTimes(3_000_000, 4_000_000, 9_000_000)],
        [NodeTimes(0, 4_000_000, 9_000_000)],
    ]
    first, _ = write_trace(made, "chakra", tmp_path, "t", times)

    found = read_trace(str(tmp_path / "t.*.et"))
    data = first.read_bytes()
    last = schema.Node()
    last.ParseFromString(data[data.rindex(b"\x08\x01") :])
    assert (last.start_time_micros, last.duration_micros) == (4, 5)
    assert found.ranks[0].nodes[0].duration_ps == 3_000_000


@ours
@given(st.data())
def test_a_file_that_is_cut_off_says_where(tmp_path: Path, data: st.DataObject) -> None:
    whole = framed(COMPUTE, REDUCE)
    edges = [len(METADATA), len(METADATA) + 1 + len(COMPUTE), len(whole)]
    cut = data.draw(st.integers(1, len(whole) - 1).filter(lambda each: each not in edges))
    pattern = write_ranks(tmp_path, whole[:cut], whole)
    start = max([0, *(edge for edge in edges if edge < cut)])

    with pytest.raises(ConfigError, match=rf"t\.0\.et: byte {start}: .*the file is cut off"):
        read_trace(pattern)


def test_a_file_that_lost_its_last_node_is_noticed(tmp_path: Path) -> None:
    pattern = write_ranks(tmp_path, framed(COMPUTE, REDUCE), framed(COMPUTE))

    with pytest.raises(ConfigError, match=r"t\.0\.et: rank 0, node 2 'AR': call 1 in group "
                       r"'world' .* got 0 calls of rank 1 \(.*t\.1\.et\)"):  # fmt: skip
        match(read_trace(pattern))


@ours
@given(st.binary(min_size=1, max_size=60))
def test_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes) -> None:
    pattern = write_ranks(tmp_path, METADATA + data)

    with suppress(ConfigError):
        match(read_trace(pattern))


def node_with(kind: int, **attributes: object) -> bytes:
    node = schema.Node(id=9, name="x\x1b[2J", type=kind)
    for name, value in attributes.items():
        which = {bool: "bool_val", str: "string_val"}.get(type(value), "int64_val")
        if isinstance(value, list):
            listed = schema.AttributeProto(name=name)
            listed.bool_list.values.extend(value)
            node.attr.append(listed)
        else:
            node.attr.append(schema.AttributeProto(name=name, **{which: value}))
    return METADATA + frame(node.SerializeToString())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "must begin with its metadata, got an empty file"),
        (METADATA, r"t\.\*\.et: must have work to do, got no nodes"),
        (b"\x05\x0a\x032.0", "must be of schema 1.0, got '2.0'"),
        (b"\x02\x0a\x09", "byte 1: must be a GlobalMetadata of 2 bytes"),
        (METADATA + b"\x02\x08", "byte 8: a message has 2 bytes, got 1"),
        (METADATA + b"\xff" * 9, "byte 8: must be a message's length, got ff ff ff ff ff"),
        (METADATA + b"\x80", "byte 8: must be a message's length, got the file's end"),
        (METADATA + b"\x03\x08\x01\x0c", "byte 9: must be a Node of 3 bytes"),
        (node_with(8), r"rank 0, node 9 'x\\x1b\[2J': must have a type from 0 to 7, got 8"),
        (node_with(-1), "must have a type from 0 to 7, got -1"),
        (node_with(7, comm_size=8), "must have a whole number comm_type, got none"),
        (node_with(7, comm_type=0), "must have a whole number comm_size, got none"),
        (node_with(7, comm_type="x", comm_size=8), "whole number comm_type, got 'x'"),
        (node_with(7, comm_type=10, comm_size=8), "comm_type must be from 0 to 9, got 10"),
        (node_with(7, comm_type=0, comm_size=8, pg_name="tp"), "known group, got 'tp'; known: w"),
        (node_with(7, comm_type=0, comm_size=8, involved_dim=[True, False]),
         r"must name its group by pg_name, got involved_dim \[True, False\] alone"),
        (node_with(5, comm_size=8), "must have a whole number comm_dst, got none"),
        (node_with(6, comm_size=8, comm_src=True), "whole number comm_src, got True"),
        (node_with(5, comm_dst=1, comm_size=8, comm_src=3), "comm_src must be its rank, got 3"),
        (node_with(5, comm_dst=1), "must have a whole number tensor_size, got none"),
        (node_with(4, duration_ps=-1), "rank 0, node 9 .* none less than 0, got -1 ps"),
        (node_with(4, duration_ps=10**18 + 1), "computations must take .* at most"),
    ],
)  # fmt: skip
def test_damaged_files_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        match(read_trace(write_ranks(tmp_path, data)))


def test_loads_metadata_and_processors_have_streams_of_their_own(tmp_path: Path) -> None:
    kinds = [node_with(1), node_with(2), node_with(3), node_with(4, is_cpu_op=True)]
    kinds.append(node_with(4, is_cpu_op=False, stream=20))
    found = [read_trace(write_ranks(tmp_path, each)).ranks[0].nodes[0].stream for each in kinds]

    assert found == [0, chakra.MEMORY_STREAM, chakra.MEMORY_STREAM, chakra.CPU_STREAM, 20]


def test_operations_take_time_where_there_is_no_duration(tmp_path: Path) -> None:
    files = write_ranks(tmp_path, node_with(4, num_ops=2_000_000))

    timeless = read_trace(files)
    assert timeless.ranks[0].nodes[0].duration_ps == 0
    assert timeless.notes == (
        "in no time: 1 computation with num_ops and no duration: say the rate as flops",
    )
    timed = read_trace(files, flops=1e12)
    assert timed.ranks[0].nodes[0].duration_ps == 2_000_000
    assert timed.notes == ()


def test_a_rate_that_no_computation_takes_is_named(tmp_path: Path) -> None:
    """A computation has a duration of its own, or no operations."""
    for node in (node_with(4, duration_micros=2), node_with(4), node_with(4, num_ops=0)):
        assert read_trace(write_ranks(tmp_path, node), flops=1e12).notes == (
            "without effect here: flops (no computation has num_ops and no duration)",
        )


def test_operations_may_be_written_with_a_point(tmp_path: Path) -> None:
    """As Python's JSON writes 2e6; 10^6 operations at 10^12 in a second take 1 us."""
    node = {"Id": 1, "Name": "c", "NodeType": 4, "data_deps": [], "num_ops": 2e6}
    (tmp_path / "t.0.json").write_text(json.dumps({"workload_graph": [node]}))

    found = read_trace(str(tmp_path / "t.*.json"), flops=1e12)

    assert found.ranks[0].nodes[0].duration_ps == 2_000_000


@pytest.mark.parametrize("count", ["-5", '"-5"', '"many"', "100000000000000000000", "NaN"])
def test_numbers_of_operations_that_cannot_be_are_refused(tmp_path: Path, count: str) -> None:
    """They took no time, and nothing was said of it."""
    node = '{"Id": 1, "Name": "a", "NodeType": 4, "num_ops": %s, "is_cpu_op": false%s}'
    path = tmp_path / "t.0.json"
    path.write_text('{"workload_graph": [' + node % (count, "") + "]}")

    message = r"t\.0\.json: rank 0, node 1 'a': num_ops must be from 0 to below 2\^64, got"
    with pytest.raises(ConfigError, match=message):
        read_trace(str(path), flops=1e12)

    path.write_text('{"workload_graph": [' + node % (count, ', "runtime": 3') + "]}")
    assert read_trace(str(path), flops=1e12).ranks[0].nodes[0].duration_ps == 3_000_000


def test_groups_are_those_of_the_file_beside_the_trace(tmp_path: Path) -> None:
    """As ASTRA-sim has them: names, often numbers, and lists of ranks."""
    files = write_ranks(tmp_path, *[node_with(7, comm_type=0, comm_size=8, pg_name="1")] * 2)
    (tmp_path / "comm_group.json").write_text('{"1": [1, 0]}')

    found = read_trace(files)
    assert found.groups == (CallGroup("1", (1, 0)),)

    (tmp_path / "t.groups.json").write_text('{"1": [0, 1], "2": [0]}')
    assert [g.ranks for g in read_trace(files).groups] == [(0, 1), (0,)]
    other = tmp_path / "mine.json"
    other.write_text('{"1": [0]}')
    assert read_trace(files, str(other)).groups == (CallGroup("1", (0,)),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "must be JSON"),
        ("[" * 100_000, "must be JSON"),
        ('{"1": [0], "1": [0]}', "must be JSON, got .*'1' twice, of which one would be lost"),
        ("[]", "must be groups by name, got list"),
        ('{"1": 3}', "group '1': must be a list of ranks, got 3"),
        ('{"1": []}', r"group '1': must be a list of ranks, got \[\]"),
        ('{"1": [true]}', r"group '1': must be a list of ranks, got \[True\]"),
    ],
)
def test_wrong_groups_are_refused(tmp_path: Path, text: str, message: str) -> None:
    files = write_ranks(tmp_path, framed(COMPUTE))
    (tmp_path / "t.groups.json").write_text(text)

    with pytest.raises(ConfigError, match=rf"t\.groups\.json: {message}"):
        read_trace(files)


def test_each_rank_has_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"files: a number must stand for .*, got no such file"):
        read_trace(str(tmp_path / "t.*.et"))
    with pytest.raises(ConfigError, match=r"t\.et: can't read, got No such file"):
        read_trace(str(tmp_path / "t.et"))
    with pytest.raises(ConfigError, match="can't read, got No such file"):
        read_trace(str(tmp_path / "nowhere" / "t.*.et"))
    (tmp_path / "t.2.et").write_bytes(framed(COMPUTE))
    with pytest.raises(ConfigError, match="got none of rank 0 and one of rank 2"):
        read_trace(str(tmp_path / "t.*.et"))
    with pytest.raises(ConfigError, match=r"must be of a kind that is read, got 't.foo'"):
        read_trace("t.foo")


def test_a_wait_for_a_begin_has_no_word_in_chakra(tmp_path: Path) -> None:
    made = graph([compute(0, 1), replace(compute(1, 1), begun=(0,))])

    with pytest.raises(ConfigError, match=r"0\.et: rank 0, node 1: .* wait for ends"):
        write_trace(made, "chakra", tmp_path, "t")


def test_a_tag_of_more_than_32_bits_is_refused(tmp_path: Path) -> None:
    """It ended in a traceback. GOAL has tags of 15 digits."""
    made = graph([send(0, 1, 4, tag=1 << 31)], [receive(0, 0, 4, tag=1 << 31)])

    message = "rank 0, node 0: Chakra's tags are 2147483647 at most, got 2147483648"
    with pytest.raises(ConfigError, match=message):
        write_trace(made, "chakra", tmp_path, "t")


@pytest.mark.parametrize("stream", [chakra.NOTHING_STREAM, -4])
def test_streams_below_0_come_back(tmp_path: Path, stream: int) -> None:
    """Invalid nodes, which keep nobody from computing, came back as computations of stream 0."""
    made = graph([compute(0, 5), compute(1, 0, stream=stream)])
    write_trace(made, "chakra", tmp_path, "t")

    (work,) = read_trace(str(tmp_path / "t.*.et")).ranks

    assert work.nodes == made.ranks[0].nodes


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere/t.0.et: can't write, got No such file"):
        write_trace(graph([compute(0, 1)]), "chakra", tmp_path / "nowhere", "t")


def test_a_root_that_is_not_said_is_the_group_s_first(tmp_path: Path) -> None:
    """As collectives of Chakra's own converter are: a broadcast in a group without rank 0."""
    data = node_with(7, comm_type=5, comm_size=8, pg_name="b")
    pattern = write_ranks(tmp_path, node_with(4), node_with(4), data, data)
    (tmp_path / "comm_group.json").write_text('{"b": [3, 2]}')

    found = read_trace(pattern)
    assert [found.ranks[rank].nodes[0].root for rank in (2, 3)] == [3, 3]
    match(found)


def test_groups_are_written_beside_the_trace(tmp_path: Path) -> None:
    made = graph(
        [call(0, CalledCollective.BARRIER, 0)],
        [call(0, CalledCollective.BARRIER, 0)],
        groups=[(1, 0)],
    )

    files = write_trace(made, "chakra", tmp_path, "t")

    assert [path.name for path in files] == ["t.0.et", "t.1.et", "t.groups.json"]
    assert json.loads(files[-1].read_text()) == {"g0": [1, 0]}
