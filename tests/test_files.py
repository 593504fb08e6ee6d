"""Files are told by their contents, and never taken for names; contents are by hand."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pytest

from ringleaf.core.files import find_file, kind_of, tell_file
from ringleaf.errors import ConfigError, choose

KINDS = [
    (b'{"workload_graph":[{"Id":1}]}', "a Chakra trace as JSON"),
    (b'{"schema": "1.0.2-chakra.0.0.4", "pid": 1, "nodes": [', "an execution trace of PyTorch's"),
    (b'{\n "schemaVersion": 1, "traceEvents": [', "a Chrome trace"),
    (b'[{"name": "x", "ph": "X", "ts": 1}]', "a Chrome trace"),
    (b'{"name": "a", "collective": "allreduce", "gpus": [{"id": 0', "an execution plan of MSCCL++"),
    (b'{\n  "version": "0.0.4"\n}{\n  "id": "1"\n}', "a Chakra trace as Chakra's jsonizer"),
    (b'<?xml version="1.0"?>\n<!-- made -->\n<algo name="a">', "an MSCCL program"),
    (b'<system version="1">', "a topology of NCCL"),
    (b"<!-- a > b --><!DOCTYPE graphs>\n<graphs>", "graphs of NCCL"),
    (b"/* two */ /* parts */num_ranks 2", "a GOAL schedule"),
    (b"0 init\n0 compute 1e6\n", "a time-independent trace of SimGrid"),
    (b"p1 send p0 1e6\n", "a time-independent trace of SimGrid"),
    (b"// made\n\nnum_ranks 2\nrank 0 {", "a GOAL schedule"),
    (b"# made\r\nnum_ranks 2\nrank 0 {", "a GOAL schedule"),
    (b"\x7f\x10" + bytes(14), "a GOAL schedule in LogGOPSim's binary form"),
    (b"MICRO\n19\nmicro_test", "a workload of ASTRA-sim 1.0 or SimAI"),
    (b"HYBRID_DLRM 3\r\n8\r\n", "a workload of ASTRA-sim 1.0 or SimAI"),
    (b"# made\r\rMICRO # kind\r1\r", "a workload of ASTRA-sim 1.0 or SimAI"),
    (b"MICRO 1\nmicro_test", ""),
    (b"# made\nNodes 16\nConnections 2\n0->1 start 0", "a connection matrix of htsim"),
    (b"2\n0 1 3 100 4096 2.0\n1 0 3 100 1 2", "flows of HPCC's ns-3"),
    (b"1 \r\n0 1 3 4096 2.000000000\r\n", "flows of HPCC's ns-3"),
    (b"66 1 65\n0\n0 1 100Gbps 0.001ms 0\n", "a topology of HPCC's ns-3"),
    (b"0 0\n10000 0.15\n30000000 1\n", "a distribution of sizes, which --flow-sizes takes"),
    (b"# size, share\r\n64, 0\r\n1e3 50\r\n900, 100", ""),
    (b"6 0\n13 20.5\n900 100.0", "a distribution of sizes, which --flow-sizes takes"),
    (b"\xd4\xc3\xb2\xa1\x02\x00", "a capture of packets"),
    (gzip.compress(b"num_ranks 2\nrank 0 {", mtime=0), "a GOAL schedule"),
    (bz2.compress(b"MICRO\n19\nmicro_test"), "a workload of ASTRA-sim 1.0 or SimAI"),
    (b"\x1f\x8b\x08" + bytes(9), ""),
    (b"\xff\xfen\0u\0m\0", "text in UTF-16"),
    (b"\xef\xbb\xbfDATA\n1\n", "a workload of ASTRA-sim 1.0 or SimAI"),
    (b"step,src,dst,chunk,op\n", ""),
    (b"Nodes are many", ""),
    (b"2\n", ""),
    (b"", ""),
]


@pytest.mark.parametrize(("data", "kind"), KINDS)
def test_a_file_is_told_by_its_first_bytes(tmp_path: Path, data: bytes, kind: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)

    found = kind_of(path)
    assert found.startswith(kind)
    assert bool(found) == bool(kind)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (gzip.compress(b"num_ranks 2\n", mtime=0), "compressed by gzip, a GOAL schedule"),
        (gzip.compress(b"\0", mtime=0), "compressed by gzip"),
        (b"\x28\xb5\x2f\xfd" + bytes(9), "compressed by zstd"),
        (b"PK\x03\x04" + bytes(9), "compressed by zip"),
        (b"<algo name='a'>", "an MSCCL program"),
        (b"BZ", ""),
    ],
)
def test_messages_say_how_a_file_is_compressed(tmp_path: Path, data: bytes, kind: str) -> None:
    (tmp_path / "x.y").write_bytes(data)

    assert tell_file(str(tmp_path / "x.y")).partition("x.y'")[2].strip(", ") == kind


@pytest.mark.parametrize(
    "data",
    [
        b"/**/ " * 13_000 + b"x",
        b"<!a> " * 13_000 + b"x",
        b"<!---->" * 9000,
        b'{"schema": ' * 6000,
        b'{"version": 1} ' * 4000 + b"{",
        b"{}" * 30_000,
        b"#\n" * 30_000 + b"x",
        b" " * 65_000,
        b"0 0\n" + b"1 1\n" * 16_000 + b"x",
        b"[{" * 30_000,
    ],
)
def test_no_file_is_looked_at_for_long(tmp_path: Path, data: bytes) -> None:
    """Each would take years if all ways to divide it were tried."""
    path = tmp_path / "file"
    path.write_bytes(data)
    assert kind_of(path) == ""


def test_a_pattern_names_its_first_file(tmp_path: Path) -> None:
    for name in ("t.10.json", "t.2.json"):
        (tmp_path / name).write_text("{}")

    assert find_file(str(tmp_path / "t.*.json")) == tmp_path / "t.10.json"
    assert find_file(str(tmp_path / "t.2.json")) == tmp_path / "t.2.json"
    assert find_file(str(tmp_path / "u.*.json")) is None
    assert find_file(str(tmp_path)) is None
    assert tell_file("a\0b") == tell_file("x" * 9000) == tell_file("") == ""


def test_messages_have_the_whole_name_of_a_file_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 100) / "net.foo"
    path.parent.mkdir()
    path.write_text("")
    assert tell_file(str(path)) == f"the file '{path}'"


def test_an_existing_file_is_not_taken_for_a_name(tmp_path: Path) -> None:
    path = tmp_path / "rin"
    path.write_text('{"gpus": [], "protocol": "LL"}')

    with pytest.raises(ConfigError) as caught:
        choose("algo", "algorithm", str(path), ["ring", "tree"], "*.csv, *.xml")
    assert str(caught.value) == (
        f"algo: can't be the algorithm, got the file '{path}', an execution plan of MSCCL++; "
        "files that are read: *.csv, *.xml; names: ring, tree"
    )
    with pytest.raises(ConfigError, match=r"'.*rin', an execution plan of MSCCL\+\+; names: topk"):
        choose("compress", "compressor", str(path), ["topk"])


@pytest.mark.parametrize("typed", ["mine.txt", "no/mine", "no/mine.xml", "./ring"])
def test_a_name_like_a_files_is_taken_for_one_that_is_not_there(typed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        choose("algo", "algorithm", typed, ["ring"], "*.csv, *.xml")
    assert str(caught.value) == (
        f"algo: no such file, and no algorithm of that name, got '{typed}'; files that are read: "
        "*.csv, *.xml; names: ring"
    )
    with pytest.raises(ConfigError, match="algo: unknown algorithm, got "):
        choose("algo", "algorithm", typed, ["ring"])


def test_a_folder_is_told_where_files_stand_for_such_a_thing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"can't be the algorithm, got the folder '.*'; files"):
        choose("algo", "algorithm", str(tmp_path), ["ring"], "*.csv")
    with pytest.raises(ConfigError, match="unknown algorithm, got"):
        choose("algo", "algorithm", str(tmp_path), ["ring"])


def test_the_nearest_name_comes_before_all() -> None:
    with pytest.raises(ConfigError) as caught:
        choose("algo", "algorithm", "RNIG", ["ring", "tree"])
    assert str(caught.value) == (
        "algo: unknown algorithm, got 'RNIG'; did you mean 'ring'? valid: ring, tree"
    )
    with pytest.raises(ConfigError, match="got 'zzz'; valid: ring, tree"):
        choose("algo", "algorithm", "zzz", ["ring", "tree"])
