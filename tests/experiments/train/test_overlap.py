"""Calls beside computing: iterations take the times that are worked out by hand here.

Three blocks compute 50 us each forward, and 100 us each backward. A collective takes less than
that, so what can be hidden is.
"""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
import torch
from commanding import SCRIPTS, by_gloo, train

BLOCKS, FORWARD_PS, BACKWARD_PS = 3, 50_000_000, 100_000_000
BLOCK_BYTES = 64 * 64 * 4
LINK_PS = 1_000_000  # a call that is made when another ends may begin this much later
ONE_SWITCH = "--topo leafspine,leaves=1,spines=1,hosts=2"


def iterations(folder: Path, way: str, times: str) -> tuple[float, dict[str, float]]:
    """Return the time of an iteration, and of calls by kind."""
    modules = folder / "modules.yaml"
    modules.write_text(times)
    options = f"{ONE_SWITCH} --compute {modules}"

    done = train(folder, SCRIPTS / "three_blocks.py", way, ranks=2, options=options)

    assert done.returncode == 0, done.stderr
    with (folder / "out" / "results.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["size_bytes"]) == BLOCK_BYTES]
        calls = {row["call"]: float(row["time_ps"]) for row in rows}
    with (folder / "out" / "iterations.csv").open(newline="") as file:
        ends = [int(row["end_ps"]) for row in csv.DictReader(file) if row["rank"] == "0"]
    return median(end - start for start, end in pairwise(ends[1:])), calls


def test_fsdp_shows_its_first_gather_and_its_last_reduce_scatter_only(tmp_path: Path) -> None:
    """Forward, gathers 2 and 3 run beside blocks 1 and 2; that of block 3's weights for its
    backward pass beside block 3. Backward, each block's next gather, and the reduce-scatter
    before, take less than its time."""
    times = "ReLU: {forward: 50us, backward: 100us}"

    found, calls = iterations(tmp_path, "fsdp", times)

    assert calls["all_gather"] < FORWARD_PS
    assert calls["all_gather"] + calls["reduce_scatter"] < BACKWARD_PS
    expected = calls["all_gather"] + calls["reduce_scatter"]
    expected += BLOCKS * (FORWARD_PS + BACKWARD_PS)
    assert expected <= found <= expected + LINK_PS


def test_fsdp_without_computing_shows_all_calls(tmp_path: Path) -> None:
    """They are of one group, so they go one after the other: two gathers and a reduce-scatter for
    each block."""
    found, calls = iterations(tmp_path, "fsdp", "ReLU: {forward: 0, backward: 0}")

    expected = BLOCKS * (2 * calls["all_gather"] + calls["reduce_scatter"])
    assert expected <= found <= expected + LINK_PS


def test_ddp_shows_the_allreduce_of_its_first_block_only(tmp_path: Path) -> None:
    times = "ReLU: {forward: 50us, backward: 100us}"

    found, calls = iterations(tmp_path, "ddp", times)

    assert calls["all_reduce"] < BACKWARD_PS
    expected = calls["all_reduce"] + BLOCKS * (FORWARD_PS + BACKWARD_PS)
    assert expected <= found <= expected + LINK_PS


def test_weights_of_all_kinds_of_fsdp_are_those_of_gloo(tmp_path: Path) -> None:
    """Gradients of two passes, lower precision, copies of shards, prefetching, and the old class:
    operations on other streams read results as soon as they are there, and no sooner."""
    script, theirs, ours = SCRIPTS / "fsdp_kinds.py", tmp_path / "theirs.pt", tmp_path / "ours.pt"
    by_gloo(script, str(theirs), ranks=4)

    done = train(tmp_path, script, str(ours), ranks=4)

    assert done.returncode == 0, done.stderr
    found, expected = torch.load(ours), torch.load(theirs)
    assert found.keys() == expected.keys()
    assert len(found) == 40
    for name, weights in expected.items():
        torch.testing.assert_close(found[name], weights, rtol=1e-4, atol=1e-5, msg=name)


@pytest.fixture(autouse=True)
def _quiet_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
