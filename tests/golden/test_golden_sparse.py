"""Sparse allreduces: sums and what is left, worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
import pytest

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.compression.program import Ask, CompressedProgram, Post, drive
from ringleaf.collectives.sparse.bloom import filter_size
from ringleaf.collectives.sparse.registry import parse_sparse
from ringleaf.collectives.sparse_allreduces.oktopk import _adapted
from ringleaf.core.tensors import Array


def exchange(asks: Sequence[Ask | Post]) -> list[Array | dict[int, Array]]:
    """Exchange in memory."""
    if isinstance(asks[0], Post):
        found: list[Array | dict[int, Array]] = [{} for _ in asks]
        for src, ask in enumerate(asks):
            assert isinstance(ask, Post)
            for dst, message in ask.messages.items():
                found[dst][src] = message
        return found
    values = [ask.values for ask in asks if isinstance(ask, Ask)]
    if asks[0].collective is Collective.ALLREDUCE:
        return [np.add.reduce(values).astype(np.float32)] * len(asks)
    if asks[0].collective is Collective.BROADCAST:
        return [values[asks[0].root]] * len(asks)
    blocks = [value.reshape(len(asks), -1)[rank] for rank, value in enumerate(values)]
    return [np.concatenate(blocks)] * len(asks)


def made(text: str, ranks: int) -> list[CompressedProgram]:
    return [parse_sparse(text).make(rank, ranks) for rank in range(ranks)]


def step(
    programs: list[CompressedProgram], values: Sequence[Sequence[float]], seed: int = 0
) -> list[float]:
    """Return the result, which must be the same everywhere."""
    arrays = [np.array(each, np.float32) for each in values]
    results = drive([p.step(v, seed) for p, v in zip(programs, arrays, strict=True)], exchange)
    assert all(each.tobytes() == results[0].tobytes() for each in results)
    return [float(value) for value in results[0]]


def left(programs: list[CompressedProgram]) -> list[list[float]]:
    return [program.left.tolist() for program in programs]  # type: ignore[attr-defined]


def test_gtopk() -> None:
    """Ranks 2 and 3 keep -9, which is larger than 4 + 4; with -6 the sum of 8 is."""
    for last, total in ((-9, [0, 0, 0, -9]), (-6, [8, 0, 0, 0])):
        programs = made("gtopk:1", 4)
        values = [[4, 0, 0, 0], [4, 0, 0, 0], [0, 0, 5, 0], [0, 0, 0, last]]
        assert step(programs, values) == total
    assert left(programs) == [[0] * 4, [0] * 4, [0, 0, 5, 0], [0, 0, 0, -6]]


def test_hitopk() -> None:
    """Nodes' sums are 2 4 0 6 and 9 1 1 0; each rank sends the largest of its half.

    Left are 2 of rank 0's half and 1 of rank 2's, which go next.
    """
    programs = made("hitopk:2,node=2", 4)
    values = [[1, 2, 0, 5], [1, 2, 0, 1], [9, 1, 1, 0], [0, 0, 0, 0]]
    assert step(programs, values) == [9, 4, 1, 6]
    assert step(programs, [[0] * 4] * 4) == [2, 1, 0, 0]


def test_oktopk() -> None:
    """The largest sum of both ranks' largest; thresholds move by 2 % outside of 2/3 and 4/3 k."""
    assert step(made("oktopk:1", 2), [[4, 1, 0, -2], [3, -5, 1, 2]]) == [0, -5, 0, 0]
    assert _adapted(10, 5, 6, 12) == pytest.approx(10 / 1.02)
    assert _adapted(10, 13, 6, 12) == pytest.approx(10.2)
    assert _adapted(10, 12, 6, 12) == 10


def test_scalecom() -> None:
    """Rank 0 leads, with place 0; half of the rest is kept: 0 1/2 1/2 and 0 1 2.

    Then rank 1 leads: 1 3 6, so place 2 has 1.5 and 6.
    """
    programs = made("scalecom:1,beta=0.5", 2)
    values = [[3, 1, 1], [1, 2, 4]]
    assert step(programs, values) == [4, 0, 0]
    assert step(programs, values) == [0, 0, 7.5]


def test_sparcml_q() -> None:
    """With two bits there is one level, the owner's largest sum: 2 is 8 with probability 1/4."""
    draws = 800
    found = np.array(
        [
            step(made("sparcml-q:100%,bits=2", 2), [[8, 2, 0, 0], [0, 0, 3, 0]], seed)
            for seed in range(draws)
        ]
    )
    assert np.unique(found[:, 1]).tolist() == [0, 8]
    assert (found[:, [0, 2, 3]] == [8, 3, 0]).all()
    assert abs((found[:, 1] == 8).mean() - 0.25) < 5 * sqrt(0.25 * 0.75 / draws)


def test_deepreduce() -> None:
    """Both ranks' 20 largest are at the first places, which are in both filters, and first."""
    programs = made("deepreduce:20", 2)
    values = np.full((2, 2000), 0.5)
    values[0, :20], values[1, :20] = np.arange(1, 21), -100
    assert step(programs, values.tolist()) == [*(np.arange(1, 21) - 100.0), *[0] * 1980]
    assert left(programs) == [[0] * 20 + [0.5] * 1980] * 2


def test_deepreduce_s_filter() -> None:
    """1000 of 100 000 with as many false positives: 1.44 log2(1000) bits each, 10 functions."""
    assert filter_size(100_000, 1000) == (14_378, 10)
