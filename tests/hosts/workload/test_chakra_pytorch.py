"""Chakra traces as PyTorch and other tools leave them; expectations are by hand.

ASTRA-sim 2 and Chakra's feeder are the sources of what nodes mean.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToJson  # type: ignore[import-untyped]
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.formats import chakra, schema
from ringleaf.hosts.workload.formats.files import read_trace
from ringleaf.hosts.workload.formats.framing import frame
from ringleaf.hosts.workload.graph import CalledCollective, CallGroup, Graph, NodeKind, WorkNode
from ringleaf.hosts.workload.meetings import match

US = 10**6  # ps
MISSING = "on nodes that the trace lacks"
CIRCLES = "by which nodes wait for themselves"
CALLS = "of collectives or messages by hosts"


def node(number: int, kind: int, micros: int = 0, **more: Any) -> Any:
    """A message; what is no field of it is an attribute."""
    fields = {name: more.pop(name) for name in ("data_deps", "ctrl_deps") if name in more}
    made = schema.Node(id=number, name=f"n{number}", type=kind, duration_micros=micros, **fields)
    for name, value in more.items():
        which = {bool: "bool_val", str: "string_val"}.get(type(value), "int64_val")
        made.attr.append(schema.AttributeProto(name=name, **{which: value}))
    return made


def group_node(number: int, *groups: dict[str, Any]) -> Any:
    made = node(number, chakra.METADATA)
    made.inputs.values = str([json.dumps(list(groups))])  # as PyTorch prints a list of a text
    return made


def trace(*nodes: Any) -> bytes:
    metadata = schema.GlobalMetadata(version="0.0.4")
    return b"".join(frame(each.SerializeToString()) for each in (metadata, *nodes))


def read(folder: Path, *ranks: bytes, suffix: str = "et", groups: str = "") -> Graph:
    for rank, data in enumerate(ranks):
        (folder / f"t.{rank}.{suffix}").write_bytes(data)
    return read_trace(str(folder / f"t.*.{suffix}"), groups)


HOST_CALL = node(1, chakra.COLLECTIVE, 85, is_cpu_op=True)
KERNEL = node(
    2, chakra.COLLECTIVE, 28, data_deps=[1], is_cpu_op=False, comm_type=0, comm_size=65536
)
KERNEL_ALONE = node(2, chakra.COLLECTIVE, is_cpu_op=False, comm_type=0, comm_size=65536)


def test_the_host_s_call_of_a_collective_is_a_computation(tmp_path: Path) -> None:
    both = trace(HOST_CALL, KERNEL)
    found = read(tmp_path, both, both)

    assert found.ranks[0].nodes == (
        WorkNode(1, NodeKind.COMPUTE, "n1", 85 * US, stream=chakra.CPU_STREAM),
        WorkNode(2, NodeKind.COLLECTIVE, "n2", 0, 65536, CalledCollective.ALLREDUCE, 0, after=(1,)),
    )
    assert found.notes == (f"computations of hosts: 2 calls {CALLS}",)
    assert len(match(found).meetings) == 1


def test_start_times_are_named(tmp_path: Path) -> None:
    """A node begins when nothing keeps it, whenever it did where the trace is from."""
    late = node(1, chakra.COMPUTE, 2)
    late.start_time_micros = 700
    found = read(tmp_path, trace(late), trace(late))

    assert found.ranks[1].nodes == (WorkNode(1, NodeKind.COMPUTE, "n1", 2 * US),)
    assert found.notes == ("not used: 2 start times (nodes begin when nothing keeps them)",)


@pytest.mark.parametrize("kind", [chakra.SEND, chakra.RECEIVE])
def test_so_is_its_call_of_a_message(tmp_path: Path, kind: int) -> None:
    found = read(tmp_path, trace(node(1, kind, 3, is_cpu_op=True)))

    assert found.ranks[0].nodes == (WorkNode(1, NodeKind.COMPUTE, "n1", 3 * US, stream=-1),)


def test_a_collective_of_hosts_that_has_a_type_stays_one(tmp_path: Path) -> None:
    alone = trace(node(1, chakra.COLLECTIVE, is_cpu_op=True, comm_type=0, comm_size=8))

    assert read(tmp_path, alone).ranks[0].nodes[0].kind is NodeKind.COLLECTIVE


def test_control_dependencies_hold_where_they_can(tmp_path: Path) -> None:
    """Node 3 is not in the trace; node 2 names itself; node 4's caller is there."""
    nodes = [
        node(1, chakra.COMPUTE, 1, ctrl_deps=[3]),
        node(2, chakra.COMPUTE, 1, ctrl_deps=[2, 3], data_deps=[1]),
        node(4, chakra.COMPUTE, 1, ctrl_deps=[2]),
    ]
    found = read(tmp_path, trace(*nodes))

    assert [each.after for each in found.ranks[0].nodes] == [(), (1,), (2,)]
    assert found.notes == (
        f"left out: 2 ctrl_deps {MISSING}",
        f"left out: 1 ctrl_dep {CIRCLES}",
    )


def test_data_alone_counts_where_callers_wait_for_what_they_call(tmp_path: Path) -> None:
    nodes = [
        node(1, chakra.COMPUTE, 1, ctrl_deps=[2]),
        node(2, chakra.COMPUTE, 1, data_deps=[1]),
        node(3, chakra.COMPUTE, 1, ctrl_deps=[1], data_deps=[2]),
    ]
    found = read(tmp_path, trace(*nodes))

    assert [each.after for each in found.ranks[0].nodes] == [(), (1,), (2,)]
    assert found.notes == (f"left out: 2 ctrl_deps {CIRCLES}",)
    match(found)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node(1, chakra.COMPUTE, data_deps=[7])], "depends on a node that is not there, got 7"),
        (
            [node(1, chakra.COMPUTE, data_deps=[2]), node(2, chakra.COMPUTE, data_deps=[1])],
            "nodes must not wait for each other in a circle",
        ),
    ],
)
def test_data_dependencies_are_never_passed_over(
    tmp_path: Path, nodes: list[Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        match(read(tmp_path, trace(*nodes)))


ours = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@ours
@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 14), st.booleans()), max_size=30))
def test_callers_add_waits_and_take_none_away(
    tmp_path: Path, waits: list[tuple[int, int, bool]]
) -> None:
    """Whatever callers are drawn, data dependencies (on earlier nodes) hold, and all can run."""
    nodes = [node(number, chakra.COMPUTE, 1) for number in range(12)]
    for at, on, is_data in waits:
        if not is_data:
            nodes[at].ctrl_deps.append(on)
        elif on < at:
            nodes[at].data_deps.append(on)
    found = read(tmp_path, trace(*nodes))

    for given_node, made in zip(nodes, found.ranks[0].nodes, strict=True):
        assert set(given_node.data_deps) <= set(made.after)
        assert set(made.after) <= {*given_node.data_deps, *given_node.ctrl_deps} - {made.id}
    match(found)


def test_a_node_without_a_type_takes_no_time(tmp_path: Path) -> None:
    busy, nothing = node(1, chakra.COMPUTE, 9), node(2, chakra.INVALID, 5, data_deps=[1])
    found = read(tmp_path, trace(busy, nothing))

    assert found.ranks[0].nodes[1] == WorkNode(
        2, NodeKind.COMPUTE, "n2", stream=chakra.NOTHING_STREAM, after=(1,)
    )


def call_of(name: str) -> Any:
    return node(9, chakra.COLLECTIVE, comm_type=0, comm_size=8, pg_name=name)


def test_groups_are_those_that_pytorch_tells_of(tmp_path: Path) -> None:
    groups = group_node(
        *(1, {"pg_name": "0", "ranks": [], "group_size": 4}, {"pg_name": "3", "ranks": [0, 2]}),
        {"pg_name": "9", "ranks": [0, 64]},  # nobody calls it
    )
    first = trace(groups, call_of("3"))
    found = read(tmp_path, first, trace(call_of("0")), first, trace(call_of("")))

    known = {group.name: group.ranks for group in found.groups}
    assert known == {"0": (0, 1, 2, 3), "3": (0, 2), "world": (0, 1, 2, 3)}
    called = [found.groups[work.nodes[-1].group].name for work in found.ranks]
    assert called == ["3", "0", "3", "world"]


@pytest.mark.parametrize(
    "group",
    [
        {"pg_name": "7", "ranks": [], "group_size": 4},
        {"pg_name": "7", "ranks": [0, 1, 2, 3]},
        {"pg_name": "7", "ranks": ["0", "3"], "group_size": 2},
        {"pg_name": "7", "ranks": [], "group_size": 10**15},
    ],
)
def test_ranks_whose_files_are_missing_are_named(tmp_path: Path, group: dict[str, Any]) -> None:
    """A collective of four ranks must not become one of two, unless a file of groups says so."""
    data = trace(group_node(1, group), call_of("7"))

    with pytest.raises(
        ConfigError, match=r"t\.0\.et: group '7' has rank \d+, got 2 files; give the"
    ):
        read(tmp_path, data, data)
    (tmp_path / "comm_group.json").write_text('{"7": [0, 1]}')
    assert read(tmp_path, data, data).groups == (CallGroup("7", (0, 1)),)


def test_collectives_of_one_rank_and_loads_that_take_no_time_are_named(tmp_path: Path) -> None:
    load, store = (
        node(3, chakra.LOAD, tensor_size=1 << 20, is_cpu_op=False),
        node(4, chakra.STORE, 5, tensor_size=1 << 20, is_cpu_op=False),
    )

    assert read(tmp_path, trace(KERNEL_ALONE, load, store)).notes == (
        "in no time: 1 load/store node without a duration, of whatever size",
        "1 collective of one rank alone, which sends nothing: give the files of all ranks",
    )


def test_a_file_of_groups_counts_more_than_metadata(tmp_path: Path) -> None:
    (tmp_path / "comm_group.json").write_text('{"3": [1, 0]}')
    one = trace(group_node(1, {"pg_name": "3", "ranks": [0, 1]}), call_of("3"))

    assert read(tmp_path, one, one).groups == (CallGroup("3", (1, 0)),)


def test_files_that_differ_in_a_group_are_refused(tmp_path: Path) -> None:
    texts = [
        trace(group_node(1, {"pg_name": "3", "ranks": [0, rank]}), call_of("3")) for rank in (1, 2)
    ]

    with pytest.raises(ConfigError, match=r"t\.1\.et: group '3' must have the same ranks in all"):
        read(tmp_path, *texts)


def test_groups_of_one_name_may_share_no_rank(tmp_path: Path) -> None:
    """As DeviceMesh of older PyTorch numbers them; 1_2 is the name of another group."""
    pairs = [
        trace(group_node(1, {"pg_name": "1", "ranks": ranks}), call_of("1"))
        for ranks in ([0, 1], [0, 1], [2, 3], [2, 3])
    ]
    found = read(tmp_path, *pairs)

    assert found.groups == (CallGroup("1_0", (0, 1)), CallGroup("1_2", (2, 3)))
    assert [work.nodes[-1].group for work in found.ranks] == [0, 0, 1, 1]
    assert {found.label_of(work.nodes[-1]) for work in found.ranks} == {"group"}
    (tmp_path / "comm_group.json").write_text('{"1_2": [0]}')
    assert [group.name for group in read(tmp_path, *pairs).groups] == ["1_0", "1_2_", "1_2"]


def test_a_file_must_not_tell_of_another_group_of_a_name(tmp_path: Path) -> None:
    texts = [
        trace(group_node(1, {"pg_name": "3", "ranks": ranks}), call_of("3"))
        for ranks in ([0, 1], [2, 3], [2, 3], [2, 3])
    ]

    with pytest.raises(ConfigError, match=r"t\.1\.et: group '3' must have the same ranks in all"):
        read(tmp_path, *texts)


@pytest.mark.parametrize("values", ["", "[]", "['no JSON']", '[\'[{"pg_name": "1"}]\']', "[7, 8]"])
def test_other_metadata_is_no_group(tmp_path: Path, values: str) -> None:
    made = node(1, chakra.METADATA)
    made.inputs.values = values

    assert read(tmp_path, trace(made)).groups == ()


def test_the_group_0_is_everybody_unless_a_file_names_it(tmp_path: Path) -> None:
    one = trace(call_of("0"))
    found = read(tmp_path, one, one)
    assert found.groups == (CallGroup("world", (0, 1)),)


@pytest.mark.parametrize("suffix", ["et", "et.gz"])
def test_gzip_is_taken_off(tmp_path: Path, suffix: str) -> None:
    packed = gzip.compress(trace(HOST_CALL, KERNEL))

    found = read(tmp_path, packed, packed, suffix=suffix)
    assert (found.name, len(found.ranks[1].nodes)) == ("t", 2)
    with pytest.raises(ConfigError, match=r"must be a whole gzip file, got .* it is cut off"):
        read(tmp_path, packed[:-9], packed, suffix=suffix)
    with pytest.raises(ConfigError, match="must be compressed by gzip, got Error -3"):
        read(tmp_path, packed[:10] + b"\xff" * 9, packed, suffix=suffix)
    parts = gzip.compress(trace(HOST_CALL, KERNEL)[:50]) + gzip.compress(
        trace(HOST_CALL, KERNEL)[50:]
    )
    assert len(read(tmp_path, parts, packed, suffix=suffix).ranks[0].nodes) == 2


FEEDER = """{"workload_graph":[
  {"Id":1,"Name":"n1","NodeType":4,"ctrlDeps":[],"data_deps":[],"runtime":10,"is_cpu_op":false},
  {"Id":2,"Name":"n2","NodeType":7,"ctrlDeps":[9],"data_deps":[1],"comm_type":0,
   "comm_size":65536,"is_cpu_op":false}],"workload_name":"w","ngpus":1}"""


def test_json_of_the_feeder_is_read(tmp_path: Path) -> None:
    found = read(tmp_path, FEEDER.encode(), FEEDER.encode(), suffix="json")

    assert found.name == "t"
    assert found.notes == (f"left out: 2 ctrl_deps {MISSING}",)
    assert found.ranks[1].nodes == (
        WorkNode(1, NodeKind.COMPUTE, "n1", 10 * US),
        WorkNode(2, NodeKind.COLLECTIVE, "n2", 0, 65536, CalledCollective.ALLREDUCE, 0, after=(1,)),
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"num_ranks 2\nrank 0 {", "must be a Chakra trace, got a GOAL schedule"),
        (b'{"traceEvents": [', "must be a Chakra trace, got a Chrome trace"),
    ],
)
def test_a_sound_file_of_another_kind_is_not_called_damaged(
    tmp_path: Path, data: bytes, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, trace(HOST_CALL), data)


def test_json_in_a_file_with_the_other_suffix_is_read(tmp_path: Path) -> None:
    assert len(read(tmp_path, FEEDER.encode()).ranks[0].nodes) == 2


def test_json_of_the_jsonizer_is_read_as_the_trace_itself(tmp_path: Path) -> None:
    nodes = [
        node(0, chakra.COMPUTE, 7),
        node(3, chakra.SEND, comm_dst=1, comm_size=64, data_deps=[0]),
        group_node(4, {"pg_name": "5", "ranks": [0, 1]}),
    ]
    printed = "".join(map(MessageToJson, (schema.GlobalMetadata(version="0.0.4"), *nodes)))
    for name in ("COMP_NODE", "COMM_SEND_NODE", "METADATA_NODE"):
        number = {"COMP_NODE": 4, "COMM_SEND_NODE": 5, "METADATA_NODE": 1}[name]
        printed = printed.replace(f'"type": {number},', f'"type": "{name}",')
    assert '"COMM_SEND_NODE"' in printed

    plain = read(tmp_path, trace(*nodes))
    found = read(tmp_path, printed.encode(), suffix="json")
    assert found.ranks[0].nodes == plain.ranks[0].nodes
    assert found.groups == plain.groups


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"traceEvents": []}', "list workload_graph, got a Chrome trace"),
        ('{"schema": "1.0.2", "nodes": [1]}', "got an execution trace of PyTorch's host"),
        ('{"a": 1}', "list workload_graph, got something else"),
        ("[1", "must be JSON, got "),
        ("", "must be JSON, got "),
        ("[" * 99_999, "must be JSON, got "),
        ('{"workload_graph": []}', "must have work to do, got no nodes"),
        ('{"workload_graph": [7]}', "workload_graph 0: must be a node with Id and NodeType, got 7"),
        ('{"workload_graph": [{"Id": 1}]}', "must be a node with Id and NodeType"),
        ('{"workload_graph": [{"Id": -1, "NodeType": 4}]}', "Id must be a whole number, got -1"),
        ('{"workload_graph": [{"Id": "a", "NodeType": 4}]}', "Id must be a whole number, got 'a'"),
        (FEEDER.replace('"comm_type":0,', ""), "node 2 'n2': must have a whole number comm_type"),
        ('{"version": "1"}{"id": "1", "type": "NODE"}', "object 2: must have a type of a node"),
        ('{"version": "1"}{"id": "x", "type": "COMP_NODE"}', "object 2: must be a node of the sc"),
    ],
)
def test_other_json_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, text.encode(), suffix="json")
