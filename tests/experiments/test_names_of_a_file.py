"""Nodes in options by the names that the topology's file has for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleaf.experiments.workloads.collective.spec import CollectiveSpec
from ringleaf.experiments.workloads.graph.spec import WorkloadSpec

# P4's tutorials begin with h1 and s1, which are our h0 and s0.
LINE = "h1 s1\nh2 s2\ns1 s2\n"
ZOO = """graph [
node [ id 7 label "New York" ] node [ id 8 label "a-b" ] node [ id 9 label "a" ]
node [ id 5 label "twin" ] node [ id 6 label "twin" ]
edge [ source 7 target 8 ] edge [ source 7 target 9 ] edge [ source 8 target 9 ]
edge [ source 5 target 7 ] edge [ source 6 target 9 ] ]"""
# Servers a and b are h0 with s0 and h1 with s1; c is h2, s is s2 and t is s3.
SERVERS = "a role=server\nb role=host\nc role=host\na s\nb s\nc s\na t\nb t\n"


def write(folder: Path, text: str, ending: str = "edges") -> str:
    path = folder / f"net.{ending}"
    path.write_text(text)
    return str(path)


def faults(topo: str, text: str) -> str:
    return ", ".join(map(str, CollectiveSpec.read({"topo": topo, "faults": text}).faults))


@pytest.mark.parametrize(
    ("typed", "ours"),
    [
        ("s1-s2 down", "s0-s1 down at 0"),
        ("s1 down, h2-s2 loss 1%", "s0 down at 0, h1-s1 loss 1% at 0"),
        ("s0 down, s1 down", "s0 down at 0, s1 down at 0"),  # s0 is Ringleaf's alone
    ],
)
def test_names_are_the_files_or_else_ringleafs(tmp_path: Path, typed: str, ours: str) -> None:
    assert faults(write(tmp_path, LINE), typed) == ours


def test_names_are_labels_or_ids(tmp_path: Path) -> None:
    topo = write(tmp_path, ZOO, "gml")
    assert faults(topo, "New York-a-b rate 1G, 7-9 down") == "s0-s1 rate 1G at 0, s0-s2 down at 0"
    assert faults(topo, "a-b down") == "s1 down at 0"  # a node, and no link to b
    assert faults(topo, "twin down") == "twin down at 0"  # either of two: there is no such node


def test_a_server_is_its_switch_and_computes_as_its_host(tmp_path: Path) -> None:
    topo = write(tmp_path, SERVERS)
    assert faults(topo, "a-t down") == "s0-s3 down at 0"
    spec = WorkloadSpec.read({"topo": topo, "faults": ["b slow 2", "a down"], "preset": "gpt13b"})
    assert [each.place for each in spec.faults] == ["h1", "s0"]


def test_ways_and_files_of_switches_have_names_of_the_file(tmp_path: Path) -> None:
    topo, own = write(tmp_path, SERVERS), tmp_path / "own.json"
    own.write_text("")
    spec = CollectiveSpec.read(
        {
            "topo": topo,
            "detours": "b-t-a-s-c",
            "program": f"t={own},s={own}",
            "control": f"s0={own}",
        }
    )
    assert spec.detours == (("h1", "s3", "s0", "s2", "h2"),)
    assert (spec.program, spec.control) == (f"s3={own},s2={own}", f"s0={own}")
