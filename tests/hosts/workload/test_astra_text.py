"""Text workloads of ASTRA-sim 1.0 and SimAI; what each kind does is by its state machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.formats.files import read_trace
from ringleaf.hosts.workload.graph import CalledCollective, Graph, NodeKind, WorkNode
from ringleaf.hosts.workload.meetings import match

NS = 1000  # ps
SIMAI = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: "


def read(folder: Path, head: str, *layers: str, ranks: int | None = None) -> Graph:
    path = folder / "w.txt"
    path.write_text("\n".join([head, str(len(layers)), *layers]) + "\n")
    return read_trace(str(path), ranks=ranks)


def told(nodes: tuple[WorkNode, ...]) -> Iterator[str]:
    """Each node as text: its name, with a mark if it is a collective, and what it waits for."""
    names = {node.id: node.name + "!" * (node.call is not None) for node in nodes}
    for node in nodes:
        what = node.call.name if node.call else f"{node.duration_ps // NS}ns"
        size = f" {node.size_bytes}" if node.call else ""
        after = ", ".join(names[each] for each in node.after)
        yield f"{names[node.id]}: {what}{size} after {after or 'nothing'}"


ONE_LAYER = (
    SIMAI + "4 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0",
    "embedding_layer\t-1\t1000\tALLREDUCE\t1048576\t1\tNONE\t0\t1\tNONE\t0\t1",
)


def test_a_forward_pass_and_its_all_reduce(tmp_path: Path) -> None:
    """1 us of computing, then an all-reduce of 1 MiB among 4."""
    found = read(tmp_path, *ONE_LAYER)

    assert len(found.ranks) == 4
    assert found.notes == ()
    assert list(told(found.ranks[3].nodes)) == [
        "embedding_layer forward: 1000ns after nothing",
        "embedding_layer forward!: ALLREDUCE 1048576 after embedding_layer forward",
        "embedding_layer forward, update: 1ns after embedding_layer forward!",
        "embedding_layer inputs: 1ns after embedding_layer forward, update",
        "embedding_layer weights: 1ns after embedding_layer inputs",
    ]
    [reduction] = [node for node in found.ranks[3].nodes if node.call]
    assert found.groups[reduction.group].ranks == (0, 1, 2, 3)


TWO = ("a -1 1 ALLREDUCE 8 2 ALLTOALL 16 3 REDUCESCATTER 32 0",
       "b -1 4 ALLREDUCE 64 5 ALLTOALL 128 6 REDUCESCATTER 256 0")  # fmt: skip

STEPS = {
    "MICRO": ["a weights!: REDUCE_SCATTER 32 after nothing",
              "b weights!: REDUCE_SCATTER 256 after nothing"],
    "DATA": ["a forward: 1ns after nothing",
             "b forward: 4ns after a forward",
             "b weights: 6ns after b forward",
             "b weights!: REDUCE_SCATTER 256 after b weights",
             "b inputs: 5ns after b weights",
             "a weights: 3ns after b inputs",
             "a weights!: REDUCE_SCATTER 32 after a weights"],
    "DISTRIBUTED_INFERENCE": ["a forward: 1ns after nothing",
                              "a forward!: ALLREDUCE 8 after a forward",
                              "b forward: 4ns after a forward!",
                              "b forward!: ALLREDUCE 64 after b forward"],
    "MODEL": ["a forward: 1ns after nothing",
              "a forward!: ALLREDUCE 8 after a forward",
              "b forward: 4ns after a forward!",
              "b forward!: ALLREDUCE 64 after b forward",
              "b inputs: 5ns after b forward!",
              "b inputs!: ALL_TO_ALL 128 after b inputs",
              "b weights: 6ns after b inputs",
              "a inputs: 2ns after b weights, b inputs!",
              "a weights: 3ns after a inputs"],
    "HYBRID_TRANSFORMER": ["a forward: 1ns after nothing",
                           "a forward!: ALLREDUCE 8 after a forward",
                           "b forward: 4ns after a forward!",
                           "b forward!: ALLREDUCE 64 after b forward",
                           "b inputs: 5ns after b forward!",
                           "b inputs!: ALL_TO_ALL 128 after b inputs",
                           "b weights: 6ns after b inputs",
                           "b weights!: REDUCE_SCATTER 256 after b weights",
                           "a inputs: 2ns after b weights, b inputs!",
                           "a inputs!: ALL_TO_ALL 16 after a inputs",
                           "a weights: 3ns after a inputs",
                           "a weights!: REDUCE_SCATTER 32 after a weights"],
}  # fmt: skip


STEPS["HYBRID_TRANSFORMER ep: 1"] = [
    line.replace("weights: 6ns after b inputs", "weights: 6ns after b inputs!").replace(
        "weights: 3ns after a inputs", "weights: 3ns after a inputs!"
    )
    for line in STEPS["HYBRID_TRANSFORMER"]
]
"""SimAI's fork: the collective of inputs is a blocking one."""


@pytest.mark.parametrize("kind", STEPS)
def test_each_kind_has_steps_of_its_own(tmp_path: Path, kind: str) -> None:
    found = read(tmp_path, kind, *TWO, ranks=2)

    assert list(told(found.ranks[1].nodes)) == STEPS[kind]
    match(found)


@pytest.mark.parametrize(
    ("kind", "unused"),
    [
        ("MICRO", "forward and inputs"),
        ("DATA", "forward and inputs"),
        ("MODEL", "weights"),
        ("DISTRIBUTED_INFERENCE", "inputs and weights"),
    ],
)
def test_collectives_that_a_kind_lacks_are_named(tmp_path: Path, kind: str, unused: str) -> None:
    [note] = read(tmp_path, kind, *TWO, ranks=2).notes
    assert note.endswith(f"w.txt: collectives of {unused} are passed over, as {kind} has none")


def test_groups_are_simai_s(tmp_path: Path) -> None:
    """16 ranks, TP 2, EP 4: neighbours are a tensor's, 4 tensors of 8 share experts."""
    layers = ["m -1 0 ALLTOALL_EP 8 0 ALLREDUCE 8 0 ALLREDUCE_DP_EP 8 0",
              "n -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 8 0"]  # fmt: skip
    found = read(tmp_path, SIMAI + "2 ep: 4 all_gpus: 16", *layers)

    nodes = found.ranks[5].nodes
    called = {node.name: found.groups[node.group].ranks for node in nodes if node.call}
    assert called == {
        "m forward": (1, 3, 5, 7),
        "m inputs": (4, 5),
        "m weights": (5, 13),
        "n weights": (1, 3, 5, 7, 9, 11, 13, 15),
    }
    match(found)


@pytest.mark.parametrize(
    ("head", "size", "what"),
    [
        (SIMAI + "4 ep: 1", 256, "the whole result, as SimAI has it"),
        (SIMAI + "4 checkpoints: 0 checkpoint_initiates: 0", 1024, "each rank's share"),
        ("MICRO", 1024, "each rank's share"),
    ],
)
def test_the_size_of_an_all_gather_is_said(tmp_path: Path, head: str, size: int, what: str) -> None:
    """SimAI's is the size of all ranks' parts together, here of 4 ranks."""
    layer = "g -1 0 NONE 0 0 NONE 0 0 ALLGATHER 1024 1"
    found = read(tmp_path, head, layer, ranks=4 if head == "MICRO" else 16)

    assert [node.size_bytes for node in found.ranks[0].nodes if node.call] == [size]
    assert found.notes[-1].endswith(f"w.txt: sizes of ALLGATHER are those of {what}")


@pytest.mark.parametrize(("more", "count"), [(" ", 1), (" ga: 1", 0), (" checkpoints: 0", 1)])
def test_hybrid_files_are_astra_sim_s_or_simai_s(tmp_path: Path, more: str, count: int) -> None:
    layer = "g -1 0 NONE 0 0 ALLREDUCE 8 0 NONE 0 0"
    found = read(tmp_path, SIMAI + "2" + more, layer, ranks=4)

    assert sum("read as ASTRA-sim 1.0 does; with ep: 1 in" in note for note in found.notes) == count


def test_words_of_aicb_s_first_lines_are_known(tmp_path: Path) -> None:
    """AICB has a line for inference, and one for many all-reduces; others are passed over."""
    inference = "2 ep: 1 pp: 1 all_gpus: 4 mode: 1 vpp: 1 ga: 1 checkpoints: 0 pp_comm: 0.0"
    reduces = "2  expert_parallel_npu_group: 2  pp: 1  ga: 1 all_gpus: 4 sp: 2 cp: 1"
    layer = "m -1 0 ALLTOALL_EP 8 0 NONE 0 0 NONE 0 0"
    alone, pairs = (read(tmp_path, SIMAI + each, layer) for each in (inference, reduces))

    groups = [
        [each.groups[node.group].ranks for node in each.ranks[1].nodes] for each in (alone, pairs)
    ]
    assert groups == [[(1,)], [(1, 3)]]
    assert alone.notes == ()
    assert pairs.notes == (
        f"{tmp_path / 'w.txt'}: words of the first line are passed over: sp: cp:",
    )


def test_checkpoints_are_computed_again(tmp_path: Path) -> None:
    """Layer 2's backward pass needs what layers 0 and 1 compute; only layer 0's was kept."""
    layers = [f"{name} -1 1 NONE 0 1 NONE 0 1 NONE 0 0" for name in "abc"]
    head = SIMAI + "1 checkpoints: 1 0 checkpoint_initiates: 1 2 all_gpus: 1"
    names = [node.name for node in read(tmp_path, head, *layers).ranks[0].nodes]

    assert names == [
        *("a forward", "b forward", "c forward"),
        *("a forward", "b forward", "c inputs", "c weights"),
        *("b inputs", "b weights", "a inputs", "a weights"),
    ]


def test_lines_after_the_layers_are_named(tmp_path: Path) -> None:
    path = tmp_path / "w.txt"
    path.write_text("DATA\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n\nmore\n")

    [note] = read_trace(str(path), ranks=2).notes
    assert note == f"{path}: line 5 and what follows are passed over: no layers are left"


def test_work_is_bounded(tmp_path: Path) -> None:
    """1,025 layers of a node on each of 4,096 ranks are more than four million."""
    layers = ["a -1 1 NONE 0 0 NONE 0 0 NONE 0 0"] * 1025

    with pytest.raises(ConfigError, match="1025 layers must have 4000000 nodes at most"):
        read(tmp_path, "DATA", *layers, ranks=4096)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("sign", [":", " : ", "=", ": "])
def test_lines_may_be_spelled_otherwise(tmp_path: Path, end: str, sign: str) -> None:
    """Comments, empty lines, ends of lines, and signs after names, change nothing."""
    head, layer = ONE_LAYER
    path = tmp_path / "w.txt"
    other = ["# made", "", head.replace(": ", sign) + " # kind", "", "1", "# a layer", layer, ""]
    path.write_bytes(end.join(other).replace("ALLREDUCE", "AllReduce").encode())

    assert read_trace(str(path)) == read(tmp_path, *ONE_LAYER)


def test_lines_are_counted_with_comments(tmp_path: Path) -> None:
    path = tmp_path / "w.txt"
    path.write_text("# made\nMICRO\n\n1\n# a layer\na -1\n")

    with pytest.raises(ConfigError, match="line 6: must have 12 columns, got 2"):
        read_trace(str(path), ranks=2)


GOOD = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"HYBRID_DLRM 3\n1\n{GOOD}\n",
            "line 1: must be a kind of parallelism that is read, got '",
        ),
        (f"HYBRID_DATA_MODEL\n1\n{GOOD}\n", "these are MICRO, DATA, MODEL, "),
        (f"MICRO\n1\n{GOOD}\n", "line 1: says nothing of the number of ranks; give --ranks"),
        (f"{SIMAI}2 pp: 2 all_gpus: 8\n1\n{GOOD}\n", "pp: must be 1, got 2; the file has the lay"),
        (f"{SIMAI}3 all_gpus: 8\n1\n{GOOD}\n", "must divide 8 ranks by model_parallel_NPU_group x"),
        (f"{SIMAI}0 all_gpus: 8\n1\n{GOOD}\n", "groups must have 1 rank or more, got "),
        (f"{SIMAI}\n1\n{GOOD}\n", "model_parallel_NPU_group:: must be a whole number, got ''"),
        (f"{SIMAI}1 sp: x\n1\n{GOOD}\n", "line 1: must be one of .*, got 'sp: x'"),
        (f"{SIMAI}1 sp 2\n1\n{GOOD}\n", "line 1: must be one of .*, got 'sp 2'"),
        (f"{SIMAI}1 all_gpus: 9999\n1\n{GOOD}\n", "must have 1 to 4096 ranks, got 9999"),
        (f"DATA\n2\n{GOOD}\n", "line 2: must be the number of layers, 1, got 2"),
        ("DATA\n0\n", "line 2: must be the number of layers, got '0'"),
        ("DATA\n1\na -1 1 NONE 0\n", "line 3: must have 12 columns, got 5"),
        ("DATA\n1\n" + GOOD.replace(" 1 NONE", " x NONE", 1), "must be a whole number, got 'x'"),
        (
            "DATA\n1\n" + GOOD.replace("NONE 0", "SENDRECV 8", 1),
            "collective that is read, got 'SEN",
        ),
        ("DATA\n1\n" + GOOD.replace("NONE 0", "ALLREDUCEALLTOALL 8", 1), "ALLREDUCEALLTOALL'; the"),
    ],
)
def test_what_is_not_read_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "w.txt"
    path.write_text(text)

    with pytest.raises(ConfigError, match=message):
        read_trace(str(path), ranks=2 if text.startswith("DATA") else None)


part = st.tuples(
    st.integers(0, 9), st.sampled_from(["NONE", "ALLREDUCE", "ALLTOALL", "BROADCAST"]),
    st.integers(0, 99),
)  # fmt: skip
rows = st.lists(st.tuples(part, part, part, st.integers(0, 3)), min_size=1, max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows, st.sampled_from(["MICRO", "DATA", "MODEL", "HYBRID_TRANSFORMER"]), st.integers(1, 5))
def test_any_workload_can_run(
    tmp_path: Path, layers: list[tuple[tuple[int, str, int], ...]], kind: str, ranks: int
) -> None:
    """All ranks call alike, nothing waits in a circle, and all computing is in the graph."""
    lines = [
        " ".join(["l", "-1", *(str(cell) for each in layer[:3] for cell in each), str(layer[3])])
        for layer in layers
    ]
    lines.append("last -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 7 0")
    weights = [layer[2][1:] for layer in layers if layer[2][1] != "NONE" and layer[2][2]]
    weights.append(("ALLREDUCE", 7))
    found = read(tmp_path, kind, *lines, ranks=ranks)

    match(found)
    calls = [(node.call, node.size_bytes) for node in found.ranks[0].nodes if node.call]
    if kind == "MICRO":
        names = {CalledCollective.ALLREDUCE: "ALLREDUCE", CalledCollective.ALL_TO_ALL: "ALLTOALL"}
        names[CalledCollective.BROADCAST] = "BROADCAST"
        assert [(names[call], size) for call, size in calls] == weights
    updates = [node for node in found.ranks[0].nodes if node.name.endswith(", update")]
    assert len(found.ranks[0].nodes) >= len(calls) + len(updates)
    assert all(node.kind is NodeKind.COMPUTE for node in updates)


LAYER = "a -1 1 NONE 0 2 NONE 0 3 ALLREDUCE 32 0"


@pytest.mark.parametrize("kind", ["MICRO", "DATA", "MODEL", "DISTRIBUTED_INFERENCE"])
def test_sizes_of_groups_are_passed_over_where_ranks_are_not_divided(
    tmp_path: Path, kind: str
) -> None:
    """All ranks call together there; nothing was said of the file's groups of two."""
    head = f"{kind} model_parallel_NPU_group: 2 ep: 4"

    notes = read(tmp_path, head, LAYER, ranks=8).notes

    expected = f"model_parallel_NPU_group: 2 and ep: 4 are passed over, as {kind} has one group of"
    assert sum(expected in note for note in notes) == 1


@pytest.mark.parametrize("head", ["DATA", "DATA model_parallel_NPU_group: 1 ep: 1"])
def test_groups_of_one_are_no_matter(tmp_path: Path, head: str) -> None:
    assert read(tmp_path, head, LAYER, ranks=2).notes == ()


def test_checkpoints_beyond_the_layers_are_named(tmp_path: Path) -> None:
    head = "HYBRID_TRANSFORMER checkpoints: 2 0 2 checkpoint_initiates: 2 1 7"

    [note] = read(tmp_path, head, LAYER, LAYER, ranks=2).notes

    assert note.endswith(
        "w.txt: checkpoints at layers 2, 7 are passed over, as there are 2 layers, from 0 on"
    )
