"""Jobs whose passes take longer by chance: not in lockstep, and the same for a seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ringleaf

MODEL = """\
name: small
layers:
  - {elements: 4000, forward: 20us, backward: 40us}
  - {elements: 4000, forward: 20us, backward: 40us}
"""


def times_ps(folder: Path, **options: Any) -> list[int]:
    """Return the completion times of two alike jobs, which have leaves of their own."""
    model = folder / "small.yaml"
    model.write_text(MODEL)
    job = {"model": str(model), "ranks": 2, "iterations": 4}
    given: dict[str, Any] = {
        "topo": "leafspine,leaves=2,spines=1,hosts=2",
        "servers": 0,
        "placement": "packed",
    }
    rows = ringleaf.run(jobs=[job, job], **{**given, **options}).rows
    assert not any(row.wrong for row in rows)
    return [row.jct_ps for row in rows]


def test_alike_jobs_are_in_lockstep_without_jitter_and_not_with_it(tmp_path: Path) -> None:
    alike = times_ps(tmp_path)
    apart = times_ps(tmp_path, jitter="10%")

    assert alike[0] == alike[1]
    assert apart[0] != apart[1]
    for one, other in zip(alike, apart, strict=True):
        assert one < other <= 1.1 * one


@pytest.mark.parametrize("threads", [1, 2])
def test_jitter_is_the_seeds(threads: int, tmp_path: Path) -> None:
    first = times_ps(tmp_path, jitter="10%", threads=threads)

    assert first == times_ps(tmp_path, jitter="10%")
    assert first != times_ps(tmp_path, jitter="10%", seed=2)
