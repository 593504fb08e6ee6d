"""Planted mistakes, run packet by packet: the table must count them and say what is wrong.

What is planted is what somebody may write: a collective of their own, or a codec. For programs see
`test_planted_program.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import running
import torch
from fake_network import FakeConnect

from ringleaf.collectives.algorithm import Request
from ringleaf.collectives.algorithms import ring
from ringleaf.collectives.algorithms.alltoall import pairwise_all_to_all
from ringleaf.collectives.algorithms.broadcast import broadcast
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Op, Schedule, Transfer
from ringleaf.collectives.sparse.stream import SparseStream
from ringleaf.errors import ScheduleError
from ringleaf.experiments.workloads.collective import figures

FOUR = {"topo": "leafspine,leaves=2,spines=1,hosts=2", "size": "1K"}

Plant = Callable[[Request], Schedule]


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the figures out: they take seconds."""
    monkeypatch.setattr(figures, "tasks", lambda *_: {})


def table(folder: Path, algo: str, **options: Any) -> tuple[int, list[str]]:
    """Run one algorithm; return #wrong and the commentary below the table."""
    lines: list[str] = []
    connect = options.pop("connect", None)
    given = FOUR | options | {"algo": algo, "out": str(folder), "wide": "yes"}
    running.run(given, emit=lines.append, connect=connect)
    [row] = [line.split() for line in lines if not line.startswith("#")]
    start = next(i for i, line in enumerate(lines) if line.startswith("# wrong values"))
    return int(row[12]), lines[start:]


def shifted_ring(request: Request) -> Schedule:
    """The all-gather begins with the chunk that is not complete, offset 0 in place of 1."""
    n = request.ranks
    right = ring.ring_allreduce(n)
    gathered = (replace(row, step=row.step + n - 1) for row in ring.ring_all_gather(n).rows)
    return replace(right, rows=(*right.rows[: n * (n - 1)], *gathered))


def without_row(number: int, request: Request) -> Schedule:
    right = ring.ring_allreduce(request.ranks)
    rows = list(right.rows)
    del rows[number]
    return replace(right, rows=tuple(rows))


def with_row_twice(request: Request) -> Schedule:
    right = ring.ring_allreduce(request.ranks)
    return replace(right, rows=(right.rows[0], *right.rows))


def from_rank_1(request: Request) -> Schedule:
    return broadcast(request.ranks, request.size_bytes, request.fabric, None, 1)


def permuted(request: Request) -> Schedule:
    """Every rank gets what is for its neighbour."""
    right = pairwise_all_to_all(request.ranks)
    rows = [row for row in right.rows if isinstance(row, Transfer)]
    turned = tuple(replace(row, dst=(row.dst + 1) % right.ranks) for row in rows)
    return replace(right, rows=tuple(row for row in turned if row.src != row.dst))


def to_the_next(request: Request) -> Schedule:
    """A reduce-scatter that leaves sums one rank too far."""
    right = ring.ring_reduce_scatter(request.ranks)
    rows = ring.ring_allreduce(request.ranks).rows
    return replace(right, rows=rows[: len(right.rows)])


def gathered_twice_from_one(request: Request) -> Schedule:
    """An all-gather whose second chunk is the first rank's."""
    right = ring.ring_all_gather(request.ranks)
    copy = Transfer(0, 0, 1, 1, Op.COPY)
    return replace(right, rows=(copy, *(replace(row, step=row.step + 1) for row in right.rows)))


def overwritten_sum(request: Request) -> Schedule:
    """A reduce whose last addition is a copy."""
    right = ALGORITHMS["reduce"].build(request.ranks, segments=1)
    *rows, last = right.rows
    assert isinstance(last, Transfer)
    return replace(right, rows=(*rows, replace(last, op=Op.COPY)))


# By hand: of 4 ranks with 256 elements, in 4 chunks of 64 where there are 4.
PLANTED: dict[str, tuple[str, Plant, int, str]] = {
    # Rank c holds its own part of chunk c only, and that is what goes round.
    "all-gather offset 0": (
        "ring", shifted_ring, 4 * 256,
        "rank 0 lacks contributions of ranks 1, 2, 3 to chunk 0",
    ),
    # Rank 0's chunk 0 never sets out, so rank 0's contribution is in no rank's result.
    "a missing reduction": (
        "ring", partial(without_row, 0), 4 * 64,
        "rank 0 lacks the contribution of rank 0 to chunk 0",
    ),
    # The last row gives rank 0 its chunk 2, of which it has three contributions.
    "a missing copy": (
        "ring", partial(without_row, -1), 64,
        "rank 0 lacks the contribution of rank 1 to chunk 2",
    ),
    "a doubled reduction": (
        "ring", with_row_twice, 4 * 64,
        "rank 0 has the contribution of rank 0 to chunk 0 more than once",
    ),
    "a broadcast from the wrong root": (
        "broadcast", from_rank_1, 4 * 256,
        "rank 0 lacks the contribution of rank 0 to chunk 0",
    ),
    # Chunk 0 stays; of the others, chunk 3 never leaves (its rows are from a rank to itself).
    "an all-to-all that is permuted": (
        "alltoall", permuted, 4 * 3 * 64,
        "rank 0 lacks the contribution of rank 3 to chunk 1",
    ),
    "a reduce-scatter to the next rank": (
        "reducescatter", to_the_next, 4 * 64,
        "rank 0 lacks contributions of ranks 1, 2, 3 to chunk 0",
    ),
    "an all-gather with one rank's chunk for another's": (
        "allgather", gathered_twice_from_one, 4 * 64,
        "rank 0 lacks the contribution of rank 1 to chunk 1",
    ),
    # A chain from rank 3 to rank 0, which keeps nothing of its own.
    "a reduce that overwrites": (
        "reduce", overwritten_sum, 256,
        "rank 0 lacks the contribution of rank 0 to chunk 0",
    ),
}  # fmt: skip


def never(tensors: list[torch.Tensor]) -> None:
    raise AssertionError("it ran")


def plant(monkeypatch: pytest.MonkeyPatch, like: str, schedule_for: Plant) -> None:
    """Register somebody's own collective under the name `mine`."""
    mine = replace(ALGORITHMS[like], name="mine", schedule_for=schedule_for)
    monkeypatch.setitem(ALGORITHMS.added, "mine", mine)


@pytest.mark.parametrize("kind", PLANTED)
def test_a_wrong_schedule_is_seen(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    like, schedule_for, expected, reason = PLANTED[kind]
    plant(monkeypatch, like, schedule_for)

    wrong, foot = table(tmp_path, "mine")

    assert foot[:2] == [
        f"# wrong values: {expected} FAILED",
        f"# mine at 1 KiB: the schedule is wrong: {reason}",
    ]
    assert wrong == expected
    assert (
        f"mine at 1 KiB: the schedule is wrong: {reason}" in (tmp_path / "report.html").read_text()
    )


def test_rows_without_sense_are_refused_before_they_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def backwards(request: Request) -> Schedule:
        right = ring.ring_allreduce(request.ranks)
        return replace(right, rows=right.rows[::-1])

    plant(monkeypatch, "ring", backwards)
    with pytest.raises(ScheduleError, match="ring allreduce: row 4: step must be 5 or more, got 4"):
        table(tmp_path, "mine", connect=FakeConnect(never))


def test_a_reason_is_given_once_for_all_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, "ring", shifted_ring)
    lines: list[str] = []
    given = FOUR | {"size": "64,128,256", "algo": "mine,ring", "out": str(tmp_path), "wide": "yes"}
    done = running.run(given, emit=lines.append)

    assert [row.wrong for row in done.rows] == [64, 0, 128, 0, 256, 0]
    assert [line for line in lines if "schedule is wrong" in line] == [
        "# mine at 64 B (and at 2 more): the schedule is wrong: "
        "rank 0 lacks contributions of ranks 1, 2, 3 to chunk 0"
    ]


@dataclass(frozen=True, slots=True)
class Forgetful(SparseStream):
    """A codec that calls itself lossless, and forgets the last element of what it decodes."""

    name: str = "forgetful"

    def decode(self, data: torch.Tensor, elements: int, dtype: torch.dtype) -> torch.Tensor:
        values = SparseStream.decode(self, data, elements, dtype)
        values[-1:] = 0
        return values


@dataclass(frozen=True, slots=True)
class Boastful(Forgetful):
    """One that admits a loss, but a smaller one; the replay has it lose the same."""

    name: str = "boastful"
    is_lossless: bool = False

    def error_bound(self, values: torch.Tensor) -> torch.Tensor:
        return values.double().abs() * 2.0**-12


@pytest.mark.parametrize(
    ("codec", "reason"),
    [(Forgetful(), "the sum is"), (Boastful(), "the sum is"), (SparseStream(), "")],
)
def test_a_wrong_codec_is_seen(
    codec: SparseStream, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, "ring", lambda r: replace(ring.ring_allreduce(r.ranks), codec=codec))

    wrong, foot = table(tmp_path, "mine")

    # The last element of each chunk, on all ranks; what the codec keeps is right.
    assert wrong == (4 * 4 if reason else 0)
    if reason:
        assert "element 63: got " in foot[1]
        assert reason in foot[1]


@pytest.mark.parametrize("planted", [shifted_ring, partial(without_row, 3)])
def test_a_wrong_schedule_is_seen_without_data(
    planted: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count is that of a run with data, as values are wrong where contributions are."""
    plant(monkeypatch, "ring", planted)

    wrong, foot = table(tmp_path, "mine", data="none")

    assert wrong == table(tmp_path / "with", "mine")[0] > 0
    assert foot[0] == f"# wrong values: {wrong} FAILED"
    assert "contribution" in foot[1]
