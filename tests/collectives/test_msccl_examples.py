"""The example programs of msccl-tools, regenerated where that package is: all run, and are right.

Its last version (2.3.0, commit 030a750) has 23 in `examples/mscclang` that are no collectives of
their own. Of these, four call functions that the package no longer has; one is wrong, as its own
check says; and two are named allreduce, but hand data from one half of the ranks to the other.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ringleaf
from ringleaf.collectives.formats.xml import read, write
from ringleaf.collectives.schedule import Schedule
from ringleaf.errors import ScheduleError
from ringleaf.experiments.workloads.collective.rows import (
    CollectiveRow,
)

RIGHT = {
    "allgather_a100_pcie": "4 1",
    "allgather_allpairs": "4 1",
    "allgather_recursive_doubling": "8 1",
    "allgather_ring": "4 2 2",
    "allreduce_1step": "4 1",
    "allreduce_a100_allpairs": "4 2",
    "allreduce_a100_allpairs_v2": "8 1",
    "allreduce_a100_multinode_allpairs": "4 1",
    "allreduce_a100_ncv4": "4 1",
    "allreduce_a100_ncv4_v2": "4 1",
    "allreduce_a100_ring": "8 4 2",
    "allreduce_recursive_doubling_halving": "8 2",
    "alltoall_a100_three_step": "2 4 1",
    "alltoall_a100_two_step": "2 4",
    "alltoall_allpairs": "4 2",
    "hierarchical_allreduce": "4 2 2",
}
BROKEN = {
    "allreduce_a100_recursive_doubling_halving": "1 1",
    "allreduce_binomial_tree": "8 2 1",
    "allreduce_dgx1": "2 1",
    "allreduce_ndv2": "1",
}
WRONG = {
    "allreduce_a100_pcie_hierarchical": ("4 1", "adds chunk 3 of the data to chunk 7"),
    "pipeline_a100_allpairs": ("4 1", "lacks the contribution of rank 4, 5, 6, 7"),
    "pipeline_a100_ring": ("4 2 1", "lacks the contribution of rank 1, 2, 3, 4 and 3 more"),
}


def examples() -> Path | None:
    """Return the folder of the package's examples."""
    found = importlib.util.find_spec("msccl")
    if found is None or not found.submodule_search_locations:
        return None
    folder = Path(found.submodule_search_locations[0]).parent / "examples" / "mscclang"
    return folder if folder.is_dir() else None


EXAMPLES = examples()
needs_examples = pytest.mark.skipif(
    EXAMPLES is None, reason="msccl-tools is not installed from its repository, with its examples"
)


def generate(name: str, words: str) -> subprocess.CompletedProcess[str]:
    assert EXAMPLES is not None
    line = [sys.executable, str(EXAMPLES / f"{name}.py"), *words.split()]
    return subprocess.run(line, check=False, capture_output=True, text=True)


def xml_of(name: str, words: str) -> str:
    done = generate(name, words)
    assert done.returncode == 0, done.stderr
    found = re.search(r"<algo .*</algo>", done.stdout, re.DOTALL)
    assert found, done.stdout
    return found[0]


def load(text: str) -> Schedule:
    return read(text, "a.xml").load(0, None).schedule


def test_there_are_twenty_three() -> None:
    assert len({*RIGHT, *BROKEN, *WRONG}) == 23


@needs_examples
@pytest.mark.parametrize("name", RIGHT)
def test_an_example_runs_and_is_right(name: str, tmp_path: Path) -> None:
    """Every sum and copy is checked; and what we write of it is read again."""
    path = tmp_path / f"{name}.xml"
    path.write_text(xml_of(name, RIGHT[name]))
    schedule = load(path.read_text())
    topo = f"leafspine,leaves=1,spines=0,hosts={schedule.ranks}"

    result = ringleaf.run(topo=topo, algo=path, size=["4012", "300K"])

    assert result.wrong == 0
    for row in result.rows:
        assert isinstance(row, CollectiveRow)
        assert row.time_ps >= row.bound_ps
    assert load(write(schedule)).ranks == schedule.ranks


@needs_examples
@pytest.mark.parametrize("name", WRONG)
def test_wrong_examples_are_refused(name: str) -> None:
    words, complaint = WRONG[name]
    with pytest.raises(ScheduleError, match=complaint):
        load(xml_of(name, words))


@needs_examples
@pytest.mark.parametrize("name", BROKEN)
def test_some_examples_don_t_run_at_all(name: str) -> None:
    """If one does some day, it belongs among the others."""
    assert generate(name, BROKEN[name]).returncode != 0
