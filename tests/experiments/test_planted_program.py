"""Mistakes planted in SwitchML's compiled program: the table must count what they spoil.

Uncompiled, in a process of its own: a changed program would be compiled for half a minute.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import running
from uncompiled import run_uncompiled, starts_uncompiled

from ringleaf.core import compiled
from ringleaf.core.shipped import P4_BUILD
from ringleaf.experiments.setup.network import Network
from ringleaf.experiments.workloads.collective import figures
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec
from ringleaf.networks.options import NetworkOptions

PROGRAM = "switchml-64"

uncompiled_only = pytest.mark.skipif(
    not compiled.UNCOMPILED, reason="runs uncompiled, which another test starts"
)

Node = dict[str, Any]


@starts_uncompiled
def test_wrong_programs_are_seen() -> None:
    assert f"{len(PLANTED)} passed" in run_uncompiled(__file__)


def nodes(value: Any) -> list[Node]:
    """All objects of a JSON, outer ones first."""
    if isinstance(value, list):
        return [node for each in value for node in nodes(each)]
    if not isinstance(value, dict):
        return []
    return [value, *(node for each in value.values() for node in nodes(each))]


def additions(program: Node) -> list[Node]:
    """The expressions that add a packet's values to a slot's, one per lane."""
    return [
        node for node in nodes(program) if node.get("op") == "+" and is_field_of_lanes(node["left"])
    ]


def is_field_of_lanes(operand: Node) -> bool:
    return bool(operand["type"] == "field" and operand["value"][0] == "lanes")


def right(program: Node) -> None:
    """Change nothing."""


def subtract(program: Node) -> None:
    for node in additions(program):
        node["op"] = "-"


def add_a_constant(program: Node) -> None:
    """Each sum is of the packet's values and 7, whatever was in the slot."""
    for node in additions(program):
        node["right"] = {"type": "hexstr", "value": "0x00000007"}


def subtract_in_lane_5(program: Node) -> None:
    additions(program)[5]["op"] = "-"


# (what is done to the program, elements that are wrong of 4 ranks' 64).
PLANTED: dict[str, tuple[Callable[[Node], None], int]] = {
    "right": (right, 0),
    "subtract": (subtract, 4 * 64),
    "add a constant": (add_a_constant, 4 * 64),
    "subtract in one lane": (subtract_in_lane_5, 4),
}


@uncompiled_only
@pytest.mark.parametrize("kind", PLANTED)
def test_a_wrong_adder_is_seen(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "tasks", lambda *_: {})
    change, expected = PLANTED[kind]
    program = json.loads((P4_BUILD / f"{PROGRAM}.json").read_text())
    assert len(additions(program)) == 64
    change(program)
    (tmp_path / f"{PROGRAM}.json").write_text(json.dumps(program))
    p4info = P4_BUILD / f"{PROGRAM}.p4info.txtpb"
    (tmp_path / p4info.name).write_bytes(p4info.read_bytes())

    def connect(
        spec: CollectiveSpec,
        graph: nx.Graph[str],
        *,
        in_network: str | None,
        capture: Path | None,
        record: Path | None = None,
    ) -> Network:
        from ringleaf.ina.registry import find_system
        from ringleaf.networks.virtual import VirtualNetwork

        assert (in_network, capture, record) == ("switchml", None, None)
        options = NetworkOptions(
            system=find_system("switchml"), lanes=spec.lanes, programs=tmp_path
        )
        return VirtualNetwork(graph, options, seed=spec.seed)

    lines: list[str] = []
    given = {
        "topo": "leafspine,leaves=2,spines=1,hosts=2", "algo": "switchml", "lanes": "64",
        "size": "256", "out": str(tmp_path / "run"),
    }  # fmt: skip
    done = running.run(given, emit=lines.append, connect=connect)

    assert [row.wrong for row in done.rows] == [expected]
    if expected:
        assert f"# wrong values: {expected} FAILED" in lines
        element = 5 if kind == "subtract in one lane" else 0
        assert any(
            line.startswith(f"# switchml at 256 B: rank 0, element {element}: got ")
            for line in lines
        )
