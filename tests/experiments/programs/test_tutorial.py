"""A folder of P4's tutorials: its topology, program and tables run as they are."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from running import foot, page, run

from ringleaf.errors import BackendError

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "examples" / "p4" / "triangle"
PROGRAM = ROOT / "examples" / "p4" / "build" / "basic.json"


def options(folder: Path, topology: Path) -> dict[str, object]:
    program = str(folder / "program.json")
    return {
        **{"topo": str(topology), "program": program, "control": str(folder)},
        **{"algo": "ring", "size": "4K", "figures": "no", "out": str(folder / "out")},
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(FOLDER, tmp_path / "triangle")
    return Path(shutil.copy(PROGRAM, tmp_path / "triangle" / "program.json")).parent


def test_an_exercise_runs_as_it_is(folder: Path) -> None:
    (row,) = run(options(folder, folder / "topology.json")).rows
    assert row.wrong == 0


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [("s1-p2", "s1-p4", "so packets go round in circles, got"), ("10.0.3.3/24", "10.0.4.4/24", "")],
    ids=["ports", "addresses"],  # a gap in ports; another host
)
def test_other_ports_and_addresses_lead_nowhere(folder: Path, old: str, new: str, why: str) -> None:
    """So the run above says that both are the file's."""
    text = (folder / "topology.json").read_text()
    assert json.loads(text)["links"][3] == ["s1-p2", "s2-p3"]
    other = folder / "other-topology.json"
    other.write_text(text.replace(old, new))
    with pytest.raises(BackendError, match=f"nothing has got through.*{why}"):
        run(options(folder, other))


def forward_with(folder: Path, op: str, parameter: dict[str, Any]) -> None:
    """Have the program do something more, at line 7, with each packet that it forwards."""
    program = folder / "program.json"
    data = json.loads(program.read_text())
    place = {"filename": "basic.p4", "line": 7}
    for action in data["actions"]:
        if action["name"].endswith("ipv4_forward"):
            more = {"op": op, "parameters": [parameter], "source_info": place}
            action["primitives"].append(more)
            assert len(action["primitives"]) == 5, "so it is number 4"
    program.write_text(json.dumps(data))


def expression(op: str, left: Any, right: Any) -> dict[str, Any]:
    return {"type": "expression", "value": {"op": op, "left": left, "right": right}}


def test_what_a_program_forbids_is_named_if_nothing_gets_through(folder: Path) -> None:
    """A packet in a loop without an end is dropped, as BMv2 would have it for ever."""
    forward_with(folder, "_jump", {"type": "hexstr", "value": hex(4)})

    why = r"s0 dropped \d+ packets by endless loop \(basic.p4 line 7\); s1 dropped .*; --pcap"
    with pytest.raises(BackendError, match=why):
        run(options(folder, folder / "topology.json"))


def test_what_a_program_forbids_is_told_of_a_run_that_gets_through(folder: Path) -> None:
    """Until 3 us all packets are dropped, so each host sends its first ones again."""
    clock = {"type": "field", "value": ["standard_metadata", "ingress_global_timestamp"]}
    late = expression(">", clock, {"type": "hexstr", "value": "0x3"})
    forward_with(folder, "assert", {"type": "expression", "value": expression("b2d", None, late)})

    results = run(options(folder, folder / "topology.json"), drawn=False)

    (row,) = results.rows
    assert (row.wrong, row.retransmissions > 0) == (0, True)
    each = r"dropped \d+ packets? by assert \(basic.p4 line 7\)"
    assert re.fullmatch(f"s0 {each}; s1 {each}; s2 {each}", row.forbidden)
    line = f"ring at 4 KiB: {row.forbidden}"
    assert f"# {line}" in foot(results)
    assert f"{line}." in page(results)
