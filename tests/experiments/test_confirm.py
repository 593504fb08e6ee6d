"""The quick pass confirms right results, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.definition import demands
from ringleaf.collectives.oracle import execute
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective, Schedule
from ringleaf.core.tensors import (
    FLOAT32,
    INT32,
    Array,
    ElementType,
    as_arrays,
    as_tensors,
)
from ringleaf.errors import ScheduleError
from ringleaf.experiments.checking import confirm, scrutiny
from ringleaf.experiments.checking.confirm import confirms
from ringleaf.experiments.checking.data import TYPES, Given, Noise, RankInputs, make_tensors, whole
from ringleaf.experiments.checking.judge import Judge
from ringleaf.experiments.checking.verdict import Tolerance

NAMES = [name for name, algorithm in ALGORITHMS.items() if not algorithm.in_network]
WHOLE = (Collective.ALLREDUCE, Collective.REDUCE, Collective.BROADCAST)


def is_sure(
    schedule: Schedule, inputs: RankInputs, results: Sequence[torch.Tensor | Array]
) -> bool:
    blocks = 1 if schedule.collective in WHOLE else inputs.ranks
    wanted = demands(schedule.collective, inputs.ranks, blocks)
    return confirms(schedule, wanted, inputs, as_arrays(results))


def results_of(schedule: Schedule, inputs: RankInputs) -> list[torch.Tensor]:
    return [tensor.clone() for tensor in execute(schedule, as_tensors(whole(inputs)))]


@given(
    name=st.sampled_from(NAMES),
    ranks=st.integers(1, 9),
    elements=st.integers(0, 300),
    dtype=st.sampled_from(("float32", "int32")),
    width=st.sampled_from((1, 7, 64, 1000)),
    is_kept=st.booleans(),
)
def test_right_results_are_confirmed(
    name: str, ranks: int, elements: int, dtype: str, width: int, *, is_kept: bool
) -> None:
    schedule = ALGORITHMS[name].build(ranks, size_bytes=4 * elements, hierarchy=(ranks,))
    inputs: RankInputs = Noise(elements, ranks, elements, TYPES[dtype])
    if is_kept:
        inputs = Given(whole(inputs))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confirm, "_PIECE_BYTES", 4 * width * schedule.nodes)
        patch.setattr(confirm, "_LEAST", 1)
        patch.setattr(confirm, "_TOGETHER", 2)
        assert is_sure(schedule, inputs, results_of(schedule, inputs))


@given(
    name=st.sampled_from(NAMES),
    ranks=st.integers(2, 6),
    elements=st.integers(6, 200),
    dtype=st.sampled_from(("float32", "int32")),
    data=st.data(),
)
def test_one_flipped_bit_is_not(
    name: str, ranks: int, elements: int, dtype: str, data: st.DataObject
) -> None:
    schedule = ALGORITHMS[name].build(ranks, size_bytes=4 * elements, hierarchy=(ranks,))
    inputs = Noise(1, ranks, elements, TYPES[dtype])
    results = results_of(schedule, inputs)
    rank, place = data.draw(st.integers(0, ranks - 1)), data.draw(st.integers(0, elements - 1))
    results[rank].view(torch.int32)[place] ^= 1 << data.draw(st.integers(0, 30))

    assert not is_sure(schedule, inputs, results)
    assert Judge(schedule.collective).judge(schedule, inputs, results).wrong == 1


def test_the_last_element_of_many_pieces_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces for two threads and more, the last one short."""
    monkeypatch.setattr(confirm, "_PIECE_BYTES", 1 << 9)
    monkeypatch.setattr(confirm, "_TOGETHER", 4)
    schedule, elements = ALGORITHMS["ring"].build(2), 10_001
    inputs = Noise(1, 2, elements, FLOAT32)
    results = results_of(schedule, inputs)
    assert is_sure(schedule, inputs, results)

    results[1].view(torch.int32)[-1] ^= 1

    assert not is_sure(schedule, inputs, results)


def test_a_sum_that_is_no_number_is_left_to_the_judge() -> None:
    schedule = ALGORITHMS["ring"].build(2)
    for value in (math.nan, math.inf, -math.inf, 3e38):
        inputs = Given([torch.tensor([1.0, 2.0, value])] * 2)
        results = execute(schedule, as_tensors(whole(inputs)))
        assert not is_sure(schedule, inputs, results), value
        assert Judge(schedule.collective).judge(schedule, inputs, results).wrong == 0, value


@pytest.mark.parametrize("name", NAMES)
def test_results_of_a_wrong_schedule_are_not_the_promised_ones(name: str) -> None:
    """They have all bits of the replay, which does the same wrong additions."""
    schedule = ALGORITHMS[name].build(4, hierarchy=(4,))
    inputs = Noise(1, 4, 100, FLOAT32)
    for left_out in range(len(schedule.rows)):
        rows = (*schedule.rows[:left_out], *schedule.rows[left_out + 1 :])
        lacking = replace(schedule, rows=rows)
        try:
            results = results_of(lacking, inputs)
        except ScheduleError:  # it reads scratch memory that nobody has written
            continue
        assert not is_sure(lacking, inputs, results), left_out


def test_sums_far_off_are_refused_where_the_replay_makes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three ranks' sum may be off by 2 u / (1 - 2 u) of 3, with u = 2^-24, and little more."""
    schedule = ALGORITHMS["ring"].build(3)
    inputs = Given([torch.ones(6)] * 3)
    right = results_of(schedule, inputs)
    most = 3 * 2 * 2.0**-24
    for off, is_near in (
        (0.0, True),
        (0.9 * most, True),
        (1.1 * most, False),
        (-1.1 * most, False),
    ):
        exact = 3 + off
        monkeypatch.setattr(confirm, "_KERNELS", _summing_to(exact))
        assert is_sure(schedule, inputs, right) == is_near, off


def _summing_to(exact: float) -> dict[ElementType, Any]:
    """Return the check's kernels, with other sums than those of the inputs."""
    add_up, hold = confirm._KERNELS[FLOAT32]

    def spoilt(given: Any, sums: Any, magnitudes: Any) -> None:
        add_up(given, sums, magnitudes)
        sums[:] = exact

    return {FLOAT32: (spoilt, hold)}


def test_ranks_with_other_bits_are_checked_by_themselves() -> None:
    """After a reduction only the root matters; in an allreduce, each rank does."""
    inputs = Given([torch.ones(8), torch.full((8,), 2.0)])
    reduce = ALGORITHMS["reduce"].build(2)
    assert is_sure(reduce, inputs, results_of(reduce, inputs))
    nothing = replace(ALGORITHMS["ring"].build(2), rows=())
    threes = Given([torch.full((8,), 3.0), torch.zeros(8)])
    assert not is_sure(nothing, threes, whole(threes))  # rank 0 has the sum, rank 1 has not


def test_results_of_another_type_or_size_are_unknown() -> None:
    schedule = ALGORITHMS["ring"].build(2)
    inputs = Noise(1, 2, 10, FLOAT32)
    doubles = [array.astype(np.float64) for array in whole(inputs)]
    assert not is_sure(schedule, Given(doubles), execute(schedule, as_tensors(doubles)))
    assert not is_sure(schedule, inputs, [torch.zeros(9)] * 2)


def test_the_judge_takes_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object) -> object:
        raise AssertionError

    monkeypatch.setattr(scrutiny, "scrutinise", slow)
    for name in NAMES:
        schedule = ALGORITHMS[name].build(4, hierarchy=(4,))
        inputs = Noise(1, 4, 100, INT32)
        results = results_of(schedule, inputs)
        assert Judge(schedule.collective).judge(schedule, inputs, results).wrong == 0, name


def test_tensors_that_are_apart_or_strided_are_read() -> None:
    schedule = ALGORITHMS["ring"].build(2)
    long = torch.arange(40, dtype=torch.float32)
    inputs = Given([long[::2], make_tensors(1, 1, 20, "float32")[0]])
    assert is_sure(schedule, inputs, results_of(schedule, inputs))


def sums_are_sure(inputs: RankInputs, results: Sequence[Array], allowed: float = 0.5) -> bool:
    """Return whether a system's sums are confirmed, in blocks of 8 and off by `allowed` at most."""

    def bound(parts: Array) -> npt.NDArray[np.float64]:
        assert parts.shape[1] % 8 in (0, inputs.elements % 8)
        return np.full(parts.shape[1], allowed)

    schedule = ALGORITHMS["switchml"].build(inputs.ranks)
    wanted = demands(schedule.collective, inputs.ranks, 1)
    return confirms(schedule, wanted, inputs, results, Tolerance(bound, 8))


@given(
    ranks=st.integers(1, 5),
    elements=st.integers(1, 100),
    width=st.integers(1, 40),
    data=st.data(),
)
def test_sums_of_switches_are_confirmed_within_their_error(
    ranks: int, elements: int, width: int, data: st.DataObject
) -> None:
    """Whole numbers, whose sums are exact, and half of one is allowed."""
    given_ = [np.full(elements, rank + 1, np.float32) for rank in range(ranks)]
    total = ranks * (ranks + 1) / 2
    offs = st.lists(st.floats(-0.5, 0.5, width=16), min_size=elements, max_size=elements)
    result = np.array(data.draw(offs), np.float32) + np.float32(total)
    place, beyond = data.draw(st.integers(0, elements - 1)), result.copy()
    beyond[place] = total + data.draw(st.sampled_from((0.5625, -0.5625, math.nan, math.inf)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confirm, "_PIECE_BYTES", 4 * width * ranks)
        patch.setattr(confirm, "_LEAST", 1)
        patch.setattr(confirm, "_TOGETHER", 2)
        assert sums_are_sure(Given(given_), [result] * ranks)
        assert not sums_are_sure(Given(given_), [beyond] * ranks)
        assert not sums_are_sure(Given(given_), [result] * (ranks - 1) + [beyond])


def test_integers_of_switches_must_be_exact_and_errors_finite() -> None:
    given_ = Given([np.full(20, 2**30, np.int32)] * 2)
    right = [np.full(20, -(2**31), np.int32)] * 2
    off = [each + np.int32(1) for each in right]
    assert sums_are_sure(given_, right)
    assert not sums_are_sure(given_, off)
    ones = Given([np.ones(20, np.float32)])
    assert not sums_are_sure(ones, ones.arrays, allowed=math.inf)
