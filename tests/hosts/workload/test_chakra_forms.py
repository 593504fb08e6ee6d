"""Chakra traces as people's tools write them: JSON with texts, older metadata, files and groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import perform
from ringleaf.experiments.workloads.graph.names import named
from ringleaf.hosts.workload.formats import schema
from ringleaf.hosts.workload.formats.files import read_trace
from ringleaf.hosts.workload.formats.framing import frame
from ringleaf.hosts.workload.graph import CallGroup, NodeKind, WorkNode

ours = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

FORWARD = {"Id": 1, "Name": "fwd", "NodeType": 4, "data_deps": [], "runtime": 10}
REDUCE = {"Id": 2, "Name": "ar", "NodeType": 7, "data_deps": [1], "comm_type": 2, "comm_size": 64}


def read_json(folder: Path, *nodes: dict[str, Any], flops: float | None = None) -> Any:
    (folder / "t.0.json").write_text(json.dumps({"workload_graph": nodes}))
    return read_trace(str(folder / "t.*.json"), flops=flops)


def spelled(number: int) -> st.SearchStrategy[Any]:
    """A number as JSON of some tool has it."""
    return st.sampled_from([number, str(number), float(number)])


@ours
@given(st.data())
def test_numbers_may_be_texts_or_have_a_point(tmp_path: Path, data: st.DataObject) -> None:
    plain = read_json(tmp_path, FORWARD, REDUCE)

    def rewrite(value: Any) -> Any:
        if isinstance(value, list):
            return [data.draw(spelled(each)) for each in value]
        return data.draw(spelled(value)) if isinstance(value, int) else value

    nodes = [{key: rewrite(value) for key, value in node.items()} for node in (FORWARD, REDUCE)]

    assert read_json(tmp_path, *nodes) == plain


@pytest.mark.parametrize("kind", ["COMM_COLL_NODE", 7])
@pytest.mark.parametrize("call", ["ALL_GATHER", "all_gather", 2])
def test_types_may_have_the_names_of_the_schema(tmp_path: Path, kind: object, call: object) -> None:
    as_numbers = read_json(tmp_path, FORWARD, REDUCE)

    assert (
        read_json(tmp_path, FORWARD, {**REDUCE, "NodeType": kind, "comm_type": call}) == as_numbers
    )


def test_fields_may_have_the_names_of_the_schema(tmp_path: Path) -> None:
    node = {"id": 1, "name": "fwd", "type": "COMP_NODE", "dataDeps": [], "duration_micros": 10}

    assert read_json(tmp_path, node) == read_json(tmp_path, FORWARD)


@pytest.mark.parametrize("value", [None, {"shape": [1]}, [1, 2], [None], 1 << 70])
def test_other_attributes_have_no_effect(tmp_path: Path, value: object) -> None:
    assert read_json(tmp_path, {**FORWARD, "tensor": value}) == read_json(tmp_path, FORWARD)


def test_dimensions_may_be_numbers(tmp_path: Path) -> None:
    read_json(tmp_path, FORWARD, {**REDUCE, "involved_dim": [1, 1]})

    with pytest.raises(ConfigError, match=r"must name its group .*got involved_dim \[True, False"):
        read_json(tmp_path, FORWARD, {**REDUCE, "involved_dim": [1, 0]})


def test_parts_of_microseconds_count(tmp_path: Path) -> None:
    [node] = read_json(tmp_path, {**FORWARD, "runtime": 10.123456}).ranks[0].nodes

    assert node.duration_ps == 10_123_456


@pytest.mark.parametrize(("text", "stream"), [("false", 0), ("0", 0), ("True", -1), ("1", -1)])
def test_texts_say_whether_a_node_is_the_host_s(tmp_path: Path, text: str, stream: int) -> None:
    [node] = read_json(tmp_path, {**FORWARD, "is_cpu_op": text}).ranks[0].nodes

    assert node.stream == stream


def test_operations_may_be_a_text(tmp_path: Path) -> None:
    """2 million at a million million per second take 2 us."""
    node = {"Id": 1, "Name": "c", "NodeType": 4, "num_ops": "2000000"}

    assert read_json(tmp_path, node, flops=1e12).ranks[0].nodes[0].duration_ps == 2_000_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"runtime": "soon"}, "runtime must be a whole number, got 'soon'"),
        ({"runtime": True}, "runtime must be a whole number, got True"),
        ({"runtime": float("nan")}, "runtime must be a whole number, got nan"),
        ({"Id": -1}, "Id must be a whole number, got -1"),
        ({"Id": None}, "must be a node with Id and NodeType"),
        ({"NodeType": "COMPUTE"}, "NodeType must be a whole number, got 'COMPUTE'"),
        ({"data_deps": "12"}, "data_deps must be a list of whole numbers, got '12'"),
        ({"data_deps": [0.5]}, r"data_deps must be a list of whole numbers, got \[0.5\]"),
        ({"NodeType": 5, "comm_dst": 1 << 70}, "must have a whole number comm_dst"),
        ({"NodeType": 7, "comm_type": "SUM"}, "must have a whole number comm_type, got 'SUM'"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_json(tmp_path, {**FORWARD, **change})


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"id": 2}, "workload_graph 0: Id and id are one field, got 1 and 2; leave one out"),
        ({"duration_micros": 20}, "runtime and duration_micros are one field, got 10 and 20"),
        ({"type": "COMM_COLL_NODE"}, "NodeType and type are one field, got 4 and 'COMM_COLL_NODE'"),
        ({"dataDeps": [7]}, r"data_deps and dataDeps are one field, got \[\] and \[7\]"),
    ],
)
def test_a_field_with_two_values_is_refused(
    tmp_path: Path, other: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        read_json(tmp_path, {**FORWARD, **other})


def test_a_field_may_be_there_in_two_ways_with_one_value(tmp_path: Path) -> None:
    both = {**FORWARD, "id": 1, "duration_micros": "10", "type": None, "dataDeps": []}

    assert read_json(tmp_path, both) == read_json(tmp_path, FORWARD)


def test_a_key_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    """Python's reader of JSON takes the last one."""
    (tmp_path / "t.0.json").write_text(
        '{"workload_graph": [{"Id": 1, "NodeType": 4, "runtime": 10, "runtime": 20}]}'
    )
    with pytest.raises(ConfigError, match="must be JSON, got \"'runtime' twice, of which one"):
        read_trace(str(tmp_path / "t.*.json"))


def write_et(folder: Path, names: list[str], metadata: bytes = b"") -> None:
    node = schema.Node(id=1, name="c", type=4, duration_micros=5)
    for name in names:
        (folder / name).write_bytes(frame(metadata) + frame(node.SerializeToString()))


def test_metadata_from_before_versions_are_read(tmp_path: Path) -> None:
    """Attributes in field 1, as PyTorch's converter of 2024 wrote them: the trace's schema."""
    attribute = b"\x0a\x06schema\xea\x01\x05" + b"1.0.2"  # name; string_val, field 29
    write_et(tmp_path, ["t.0.et"], b"\x0a" + bytes([len(attribute)]) + attribute)

    assert read_trace(str(tmp_path / "t.0.et")).ranks[0].nodes[0].duration_ps == 5_000_000


def test_traces_without_metadata_are_read(tmp_path: Path) -> None:
    """Chakra's text2chakra of November 2023 wrote nodes alone; the first one's number is 0."""
    data = b"\x0f\x12\x09COMP_NODE\x18\x04\x38\x05" + b"\x04\x08\x01\x18\x04"
    (tmp_path / "t.0.et").write_bytes(data)

    nodes = read_trace(str(tmp_path / "t.0.et")).ranks[0].nodes
    assert nodes == (
        WorkNode(0, NodeKind.COMPUTE, "COMP_NODE", 5_000_000),
        WorkNode(1, NodeKind.COMPUTE),
    )


def test_nodes_of_the_schema_before_are_told(tmp_path: Path) -> None:
    """Their attributes are in field 11: name, type UINT, and u (field 6), 5."""
    attribute = b"\x0a\x07runtime\x10\x02\x30\x05"
    node = b"\x08\x01\x12\x01a\x18\x04\x5a" + bytes([len(attribute)]) + attribute
    (tmp_path / "t.0.et").write_bytes(bytes([len(node)]) + node)

    with pytest.raises(ConfigError, match=r"nodes of before October 2023; convert it again"):
        read_trace(str(tmp_path / "t.0.et"))


def test_ranks_may_have_leading_zeros(tmp_path: Path) -> None:
    write_et(tmp_path, [f"t.{rank:02}.et" for rank in range(11)])

    sources = [work.source for work in read_trace(str(tmp_path / "t.*.et")).ranks]

    assert sources == [str(tmp_path / f"t.{rank:02}.et") for rank in range(11)]


def test_a_rank_has_one_file(tmp_path: Path) -> None:
    write_et(tmp_path, ["t.0.et", "t.00.et"])

    with pytest.raises(ConfigError, match=r"must have one file, got t\.0\.et and t\.00\.et"):
        read_trace(str(tmp_path / "t.*.et"))


def test_one_rank_s_file_is_not_the_trace(tmp_path: Path) -> None:
    write_et(tmp_path, ["t.0.et", "t.1.et", "other.0.et"])

    assert len(read_trace(str(tmp_path / "other.0.et")).ranks) == 1
    with pytest.raises(ConfigError, match=r"files of all ranks, got one of 2; write '.*t\.\*\.et'"):
        read_trace(str(tmp_path / "t.1.et"))


def test_files_may_be_told_by_their_beginning(tmp_path: Path) -> None:
    write_et(tmp_path, ["t.0.et", "t.1.et"])

    assert named(f"{tmp_path}/t") == {"workload": "trace", "files": f"{tmp_path}/t.*.et"}


@pytest.mark.parametrize(
    ("names", "begin", "pattern"),
    [
        (["t.000.et", "t.001.et"], "t", "t.*.et"),
        (["t.0.et.gz", "t.1.et.gz"], "t", "t.*.et.gz"),
        (["t.0.json", "t.1.json"], "t", "t.*.json"),
        (["t.0.et", "t.1.et", "t.0.json", "u.0.et"], "t", "t.*.et"),
        (["rank0.et", "rank1.et"], "rank", "rank*.et"),
        (["trace_rank_0.et", "trace_rank_1.et", "other.0.et"], "trace_rank", "trace_rank_*.et"),
    ],
)
def test_a_beginning_is_all_before_the_rank(
    tmp_path: Path, names: list[str], begin: str, pattern: str
) -> None:
    write_et(tmp_path, names)

    assert named(f"{tmp_path}/{begin}")["files"] == f"{tmp_path}/{pattern}"
    with pytest.raises(ConfigError, match="no such file"):
        named(f"{tmp_path}/{begin[:-1]}x")


@pytest.mark.parametrize("name", ["rank{}.et", "{}.et", "trace_rank_{}.et", "t-{}.et"])
def test_ranks_may_be_named_in_many_ways(tmp_path: Path, name: str) -> None:
    write_et(tmp_path, [name.format(0), name.format(1), "gpt2.et", "gpt3.et"])
    pattern = str(tmp_path / name.format("*"))

    assert named(str(tmp_path)) == {"workload": "trace", "files": pattern}
    assert len(read_trace(pattern).ranks) == 2
    with pytest.raises(ConfigError, match=r"files of all ranks, got one of 2; write '.*\*\.et'"):
        read_trace(str(tmp_path / name.format(0)))
    assert len(read_trace(str(tmp_path / "gpt2.et")).ranks) == 1


@pytest.mark.parametrize("name", ["t.%d.et", "t.%02d.et", "t.{rank}.et", "t.{}.et"])
def test_a_place_for_the_rank_is_written_as_a_star(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"\* must stand for the rank, got .*write '.*t\.\*\.et'"):
        read_trace(str(tmp_path / name))


def test_a_trace_is_called_as_its_files_or_their_folder(tmp_path: Path) -> None:
    write_et(tmp_path, ["rank0.et", "1.et", "0.et"])

    assert read_trace(str(tmp_path / "rank*.et")).name == "rank"
    assert read_trace(str(tmp_path / "*.et")).name == tmp_path.name


def test_a_folder_is_the_one_trace_that_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two", "none/inner", "gpt13b", "goal", "goals"):
        (tmp_path / name).mkdir(parents=True)
    write_et(tmp_path / "one", ["t.0.et", "t.1.et"])
    write_et(tmp_path / "two", ["t.0.et", "u.0.et"])
    write_et(tmp_path / "gpt13b", ["t.0.et"])
    for name in ("goal/t.goal", "goal/notes.txt", "goals/t.goal", "goals/u.goal.gz"):
        (tmp_path / name).touch()

    for typed in (f"{tmp_path}/one", f"{tmp_path}/one/"):
        assert named(typed) == {"workload": "trace", "files": f"{tmp_path}/one/t.*.et"}
    assert named(f"{tmp_path}/goal") == {"workload": "trace", "files": f"{tmp_path}/goal/t.goal"}
    for name, both in (("two", r"t\.\*\.et, .*u\.\*"), ("goals", r"t\.goal, .*u\.goal\.gz")):
        with pytest.raises(ConfigError, match=rf"one trace, got the folder .* with .*{both}"):
            named(f"{tmp_path}/{name}")
    with pytest.raises(ConfigError, match=r"can't be the workload, got the folder '.*none'"):
        named(f"{tmp_path}/none")
    monkeypatch.chdir(tmp_path)
    assert named("gpt13b") == {"workload": "llm", "preset": "gpt13b"}, "a name counts first"


def test_a_pattern_without_quotes_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_et(tmp_path, ["t.0.et", "t.1.et"])

    assert perform(["workload", "show", f"{tmp_path}/t.0.et", f"{tmp_path}/t.1.et"]) == 2
    assert "a pattern with * must be in quotes" in capsys.readouterr().err
    assert perform(["workload", "show", f"{tmp_path}/t.0.et", "more"]) == 2
    assert "quotes" not in capsys.readouterr().err


def test_ranks_of_groups_may_be_texts(tmp_path: Path) -> None:
    (tmp_path / "comm_group.json").write_text('{"1": ["1", "0"]}')
    write_et(tmp_path, ["t.0.et", "t.1.et"])

    assert read_trace(str(tmp_path / "t.*.et")).groups == (CallGroup("1", (1, 0)),)


@pytest.mark.parametrize("ranks", ["[1, 2]", "[0, 0]"])
def test_a_group_that_does_not_fit_is_told_by_its_file(tmp_path: Path, ranks: str) -> None:
    (tmp_path / "comm_group.json").write_text(f'{{"1": {ranks}}}')
    write_et(tmp_path, ["t.0.et", "t.1.et"])

    with pytest.raises(ConfigError, match=r"comm_group\.json: group '1': ranks must differ and be"):
        read_trace(str(tmp_path / "t.*.et"))


def test_messages_may_name_their_ranks_as_texts(tmp_path: Path) -> None:
    node = {"Id": 1, "NodeType": "COMM_SEND_NODE", "comm_src": "0", "comm_dst": "1",
            "comm_tag": "3", "comm_size": "8"}  # fmt: skip

    [sent] = read_json(tmp_path, node).ranks[0].nodes

    assert (sent.kind, sent.peer, sent.tag, sent.size_bytes) == (NodeKind.SEND, 1, 3, 8)
