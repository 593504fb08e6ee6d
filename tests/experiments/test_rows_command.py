"""The table of all rows: complete, with sources, and with findings about rows that there are."""

from __future__ import annotations

import json
import shlex
from importlib.util import find_spec
from pathlib import Path

from typed import typed

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.experiments.published.rows import KINDS, reasons, rows, shapes
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.topologies.graph import switches
from ringleaf.topologies.registry import build

ROOT = Path(__file__).resolve().parents[2]

FOLKLORE = {
    *("algorithm allgather", "algorithm alltoall", "algorithm binomial", "algorithm biring"),
    *("algorithm broadcast", "algorithm chain", "algorithm reduce", "algorithm reducescatter"),
    *("algorithm tree", "compressor randomk", "compressor topk", "controller fixed"),
    *("scheduler fifo", "scheduler shares", "topology leafspine", "topology torus2d"),
    *("topology torus3d", "machine dgx1", "machine h100", "machine pcie"),
    *("algorithm auto", "algorithm allgather-auto", "algorithm alltoall-auto"),
    *("algorithm broadcast-auto", "algorithm reduce-auto", "algorithm reducescatter-auto"),
    *("allocator equal", "controller dcqcn-hpcc", "controller dcqcn-mellanox"),
}
"""Rows that nobody has to be named for, and those whose title names whom their numbers are of."""


def test_every_member_is_a_row_and_names_its_source() -> None:
    found = list(rows())
    assert {row.name for row in found if row.kind == "algorithm"} == set(ALGORITHMS.shipped())
    assert len(found) == sum(len(kind.members.shipped()) for kind in KINDS)
    without = {f"{row.kind} {row.name}" for row in found if not row.source}
    assert without <= FOLKLORE
    assert all(row.title for row in found)


def test_findings_are_of_rows_that_there_are() -> None:
    known = {f"{row.kind} {row.name}" for row in rows()}
    for each in shapes():
        assert set(each.rows) <= known
        assert (ROOT / each.docs).is_file()
        words = shlex.split(each.command)
        if words[0] == "python":
            assert find_spec(words[2]) is not None
            continue
        if words[0] == "pytest":
            assert (ROOT / words[1]).is_file()
            continue
        if words[:3] == ["ringleaf", "topo", "show"]:
            assert len(switches(build(words[3]))) > 0
            continue
        assert words[:2] == ["ringleaf", "run"] or words[1:3] == ["nic", each.rows[0].split()[1]]
        if "--spec" in words:
            assert (ROOT / words[words.index("--spec") + 1]).is_file()
        else:
            names = [word.removeprefix("--") for word in words[2::2]]
            resolve(dict(zip(names, words[3::2], strict=True)))


def test_a_row_has_shapes_or_a_reason_for_none() -> None:
    found = list(rows())
    assert {f"{row.kind} {row.name}" for row in found if not row.shapes} == set(reasons())
    assert all(bool(row.shapes) != bool(row.why_none) for row in found)


def test_the_command_prints_them() -> None:
    done = typed("rows", "algorithm", "--json")
    assert done.returncode == 0
    told = {row["name"]: row for row in json.loads(done.stdout)}
    assert "Patarasuk" in told["ring"]["source"]
    assert told["bucket"]["shapes"][0]["figures"] == [{"value": 49, "published": 50}]

    done = typed("rows", "topology")
    assert done.returncode == 0
    assert "# topology: 14; virtual, live; ringleaf run --topo NAME; 10 with a shape" in done.stdout
    assert "no shape: a baseline" in done.stdout
    assert "none: 1096 us" in done.stdout + done.stderr


def test_an_unknown_kind_is_named() -> None:
    done = typed("rows", "schedulers")
    assert done.returncode == 2
    assert (
        "unknown kind, got 'schedulers'; did you mean 'scheduler'? valid: system"
        in done.stdout + done.stderr
    )
