"""Counts of pauses and trims, in tables, summaries and reports of every workload."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from running import run_any
from scapy.utils import RawPcapNgReader

from ringleaf.experiments.records.pauses import as_html, tell
from ringleaf.experiments.runs.python import Result

NETWORK = {"topo": "leafspine,leaves=1,spines=0,hosts=4", "delay": "100ns", "figures": "no"}
MODEL = "name: small\nlayers: [{elements: 60000, forward: 2us, backward: 2us}]\n"

PFC = {"pfc": "16K:8K", "pcap": "yes"}
TRIM = {"queue": "32K", "trim": "16K", "cc": "dctcp"}


def workload(name: str, folder: Path) -> dict[str, Any]:
    """Return the options of an incast of three hosts, by a workload of each kind."""
    if name == "collective":
        return {**NETWORK, "algo": "ps", "servers": "1", "size": "240K"}
    if name == "flows":
        flows = {"workload": "flows", "pattern": "incast", "ranks": "4", "flow_sizes": "240KiB"}
        return {**NETWORK, **flows, "data": "random"}
    (folder / "small.yaml").write_text(MODEL)
    job = {"model": str(folder / "small.yaml"), "ranks": "3", "iterations": "2"}
    return {**NETWORK, "jobs": [job], "algo": "ps", "servers": "1"}


def perform(name: str, more: dict[str, str], folder: Path) -> tuple[dict[str, Any], list[str], str]:
    """Run a workload; return its counts as in `summary.json`, the table's lines and the report."""
    lines: list[str] = []
    given = {**workload(name, folder), **more, "out": str(folder / "run")}
    assert not run_any(given, lines.append).wrong
    summary = json.loads((folder / "run" / "summary.json").read_text())
    counted = summary if name == "flows" else summary["rows"][0]
    return counted, lines, (folder / "run" / "report.html").read_text()


def asked(folder: Path) -> int:
    """Return the number of pause frames in a run's capture that name a time."""
    (path,) = folder.rglob("*.pcapng")
    seen = 0
    with RawPcapNgReader(str(path)) as reader:
        for frame, _ in reader:
            if frame[12:16] == bytes.fromhex("88080101"):
                seen += any(frame[18:34])
    return seen


@pytest.mark.parametrize("name", ["collective", "jobs", "flows"])
def test_pauses_are_the_pause_frames_of_the_run(name: str, tmp_path: Path) -> None:
    counted, lines, page = perform(name, PFC, tmp_path)
    assert counted["pauses"] == asked(tmp_path / "run") > 0
    assert counted["trims"] == 0
    told = f"ports asked {counted['pauses']} times for a pause"
    assert sum(told in line for line in lines) == page.count(told) == 1
    assert not any("trimmed" in line for line in lines)


@pytest.mark.parametrize("name", ["collective", "jobs", "flows"])
def test_trims_are_told_and_nothing_where_there_are_none(name: str, tmp_path: Path) -> None:
    counted, lines, page = perform(name, TRIM, tmp_path)
    assert counted["trims"] > 0
    assert counted["pauses"] == counted["drops"] == 0
    told = f"{counted['trims']} packets were trimmed"
    assert sum(told in line for line in lines) == page.count(told) == 1

    without, lines, page = perform(name, {}, tmp_path)
    assert (without["pauses"], without["trims"]) == (0, 0)
    assert not any("trimmed" in line or "pause" in line for line in [*lines, page])


def test_rows_in_python_have_both(tmp_path: Path) -> None:
    perform("jobs", PFC, tmp_path)
    (row,) = Result(tmp_path / "run").rows
    assert row.pauses > 0
    assert [*tell("a", row)] == [f"a: ports asked {row.pauses} times for a pause"]
    assert [*as_html("<a>", row)] == [
        f'<p class="soft">&lt;a&gt;: ports asked {row.pauses} times for a pause.</p>'
    ]
