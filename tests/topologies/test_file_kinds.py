"""Which files are taken for topologies, by their names and texts, and what is said of others."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleaf.core.file_names import is_file_name
from ringleaf.errors import ConfigError, RingleafError
from ringleaf.topologies.files.describe import describe
from ringleaf.topologies.files.format import FORMATS, choose_format, find_format, written
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import build, is_file, parse

EXAMPLES = sorted(Path("examples/topologies").iterdir())
TEXTS = [path.read_text() for path in EXAMPLES]


@pytest.mark.parametrize("name", ["net", "net.topology", "net.dat", "fat tree.txt", "n.v2"])
@pytest.mark.parametrize(
    "path",
    [each for each in EXAMPLES if each.suffix != ".edges"],  # any words are an edge list
    ids=lambda path: path.name,
)
def test_a_file_is_known_by_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (
        path.read_text() if path.is_absolute() else (Path(__file__).parents[2] / path).read_text()
    )
    (tmp_path / name).write_text(text)
    assert find_format(name, text) is find_format(path.name, text)
    assert len(hosts(build(name))) > 1


def test_an_existing_file_is_never_taken_for_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert not is_file("hpn")
    (tmp_path / "hpn").write_text("some text\n")
    assert is_file("hpn")
    with pytest.raises(RingleafError, match="topology hpn: neither the text nor the ending"):
        parse("hpn")
    with pytest.raises(RingleafError, match="unknown topology, got 'hpm'"):
        parse("hpm")


def test_a_familys_name_is_the_family_whatever_lies_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fattree").write_text("a s\nb s\n")
    assert len(hosts(build("fattree,k=4"))) == 16
    (tmp_path / "torus2d").mkdir()
    assert not is_file("torus2d")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("ours", False), ("other", False), ("a/ours", True), ("x.end", True), ("x.END", True)),
        *(("there.txt", True), ("there", False), ("", False), ("\0", False), ("x" * 5000, False)),
    ],
)
def test_names_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, expected: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours").write_text("")
    (tmp_path / "there.txt").write_text("")
    (tmp_path / "there").mkdir()
    assert is_file_name(name, {"ours"}, (".end",)) is expected


OTHERS = {
    "MSCCL": '<algo name="x" nchannels="1"><gpu id="0"/></algo>',
    "rings and trees that NCCL chose": '<graphs version="1">\n <graph id="0"/></graphs>',
    "SNDlib": "?SNDlib native format; type: network; version: 1.0\nNODES (\n)",
    "Graphviz": "// a map\ndigraph G {\n  a -> b;\n}\n",
    "Pajek": '*Vertices 2\n1 "a"\n2 "b"\n*Edges\n1 2\n',
    "REPETITA": "NODES 2\nlabel x y\n0_a 1 2\n",
    "BRITE": "Topology: ( 2 Nodes, 1 Edges )\nModel (1 - RTWaxman)\n",
    "htsim's traffic": "Nodes 16\nConnections 2\n0->1 start 0 size 2000000\n",
    "flows of HPCC": "2\n0 1 3 100 200000 2.0\n1 0 3 100 5000 2.1\n",
    "a workload of ASTRA-sim": "HYBRID_TRANSFORMER model_parallel_NPU_group: 8\n3\nlayer 1\n",
    "first network file": '{"topology-name": "Hierarchical", "units-count": [8]}',
    "dimensions of ASTRA-sim's ns-3": '{"logical-dims": ["8", "2"]}',
    "system file": '{"scheduling-policy": "LIFO", "all-reduce-implementation": ["ring"]}',
    "SimGrid": '<?xml version="1.0"?>\n<platform version="4.1"><zone id="a"/></platform>',
    "trace of PyTorch": '{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": []}',
    "trace of events": '{"traceEvents": [{"ph": "X"}]}',
    "P4 program": '{"program": "x.p4", "header_types": [], "headers": []}',
    "Cytoscape": '{"elements": {"nodes": [{"data": {"id": "a"}}], "edges": []}}',
    "Containerlab": "name: x\ntopology:\n  nodes:\n    a: {kind: linux}\n",
    "nvidia-smi topo -m": "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\x1b[0m\nGPU0\t X \tNV12\t0-31\n",
    "Mininet": "#!/usr/bin/python\nfrom mininet.topo import Topo\n",
}
"""Files of others' forms, and a word of the message about each."""


@pytest.mark.parametrize("name", ["n", "n.txt", "n.topo", "n.json", "n.xml", "n.yml"])
@pytest.mark.parametrize(("what", "text"), OTHERS.items(), ids=OTHERS.keys())
def test_another_file_is_named(what: str, text: str, name: str) -> None:
    with pytest.raises(ConfigError, match=f"must be a topology, got .*{re.escape(what)}") as caught:
        find_format(name, text)
    assert "GraphML, of NetworkX, yEd and others (.graphml)" in str(caught.value)


def test_what_nobody_knows_is_answered_with_the_kinds() -> None:
    with pytest.raises(ConfigError, match=r"got '.dat'; these are read: .*\(\.topo\)"):
        find_format("n.dat", "1 2 3\n")


@pytest.mark.parametrize("name", sorted(set(FORMATS) - set(written())))
def test_a_format_that_is_only_read_is_not_written(name: str) -> None:
    with pytest.raises(ConfigError, match=r"are only read, got .*; valid: edgelist, graphml"):
        choose_format(name, None)


@pytest.mark.parametrize("ending", [".gml", ".topo"])
def test_nor_by_its_ending(ending: str) -> None:
    with pytest.raises(ConfigError, match="are only read, got 'n"):
        choose_format("", Path(f"n{ending}"))


JUNK = ("", "0", "-1", "{}", "[]", '"', "<", "nan", "1e999", "9" * 30, "\0", "GB/s", "null", "]")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([*zip(EXAMPLES, TEXTS, strict=True)]), st.integers(0, 2**32))
def test_a_damaged_file_is_read_or_refused(example: tuple[Path, str], seed: int) -> None:
    """Whatever a file has, the answer is about the file: our errors and no others."""
    path, text = example
    chance = random.Random(seed)
    words = re.findall(r"\w[\w.]*|\s+|.", text, re.DOTALL)
    for _ in range(chance.choice((1, 1, 2, 5))):
        place = chance.randrange(len(words))
        words[place] = chance.choice((*JUNK, *(chance.choice(words) for _ in JUNK)))
    damaged = "".join(words)
    message = "topology "
    try:
        describe(find_format(path.name, damaged).read(damaged, "topology x"), "x")
    except RingleafError as error:
        message = str(error)
    assert message.startswith("topology ")
