"""The claims that `schedule.py` makes about executing a schedule without barriers."""

import random
from collections.abc import Hashable

from hypothesis import given
from hypothesis import strategies as st
from schedule_strategies import nonsense, schedules

from ringleaf.collectives.schedule import Aggregate, Collective, Op, Row, Schedule, Transfer
from ringleaf.collectives.verify import verify

Place = tuple[int, int]  # rank, chunk


class Algebra:
    """Numbers for sums: equal ones were added up in the same order."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def number(self, *term: Hashable) -> int:
        return self._numbers.setdefault(term, len(self._numbers))

    def inputs(self, schedule: Schedule) -> dict[Place, int]:
        places = [(r, c) for r in range(schedule.ranks) for c in range(schedule.chunks)]
        return {place: self.number("input", *place) for place in places}

    def bring(self, row: Row, contents: dict[Place, int]) -> int:
        """What a row brings to where it writes."""
        if isinstance(row, Aggregate):
            return self.number("network", *(contents[place] for place in reads(row)))
        return contents[row.src, row.chunk]

    def write(self, row: Row, place: Place, value: int, contents: dict[Place, int]) -> None:
        if isinstance(row, Transfer) and row.op is Op.REDUCE:
            value = self.number("sum", contents[place], value)
        contents[place] = value


def reads(row: Row) -> list[Place]:
    ranks = row.ranks if isinstance(row, Aggregate) else (row.src,)
    return [(rank, row.chunk) for rank in ranks]


def writes(row: Row) -> list[Place]:
    ranks = row.ranks if isinstance(row, Aggregate) else (row.dst,)
    return [(rank, row.chunk) for rank in ranks]


def run_step_by_step(schedule: Schedule, algebra: Algebra) -> dict[Place, int]:
    """The meaning of a schedule, word by word."""
    contents = algebra.inputs(schedule)
    for step in range(schedule.steps):
        before = dict(contents)
        for row in schedule.rows:
            if row.step == step:
                value = algebra.bring(row, before)
                for place in writes(row):
                    algebra.write(row, place, value, contents)
    return contents


class Executor:
    """Knows the two rules, and is as whimsical as a network is otherwise.

    Any message may land next, and any that has landed may be applied next. What it brings is
    read at the last moment, when it lands, as it is by a retransmission.
    """

    def __init__(self, schedule: Schedule, algebra: Algebra, *, acknowledge: bool = True):
        self.rows, self.algebra, self.acknowledge = schedule.rows, algebra, acknowledge
        self.contents = algebra.inputs(schedule)
        self.landed: dict[int, int] = {}
        self.applied: set[tuple[int, Place]] = set()
        self.readers: dict[Place, list[int]] = {place: [] for place in self.contents}
        self.writers: dict[Place, list[int]] = {place: [] for place in self.contents}
        for number, row in enumerate(self.rows):
            for place in reads(row):
                self.readers[place].append(number)
            for place in writes(row):
                self.writers[place].append(number)

    def run(self, rng: random.Random) -> dict[Place, int]:
        to_land = list(range(len(self.rows)))
        to_apply = [(n, place) for n in to_land for place in writes(self.rows[n])]
        while to_apply:
            may_land = [n for n in to_land if self.may_land(n)]
            may_apply = [(n, place) for n, place in to_apply if self.may_apply(n, place)]
            assert may_land or may_apply, "deadlock"
            choice = rng.randrange(len(may_land) + len(may_apply))
            if choice < len(may_land):
                number = may_land[choice]
                self.landed[number] = self.algebra.bring(self.rows[number], self.contents)
                to_land.remove(number)
            else:
                number, place = may_apply[choice - len(may_land)]
                row = self.rows[number]
                self.algebra.write(row, place, self.landed[number], self.contents)
                self.applied.add((number, place))
                to_apply.remove((number, place))
        return self.contents

    def may_land(self, number: int) -> bool:
        row = self.rows[number]
        return all(
            (n, place) in self.applied
            for place in reads(row)
            for n in self.writers[place]
            if self.rows[n].step < row.step
        )

    def may_apply(self, number: int, place: Place) -> bool:
        if number not in self.landed:
            return False
        earlier = all((n, place) in self.applied for n in self.writers[place] if n < number)
        return earlier and (
            not self.acknowledge
            or all(
                n in self.landed
                for n in self.readers[place]
                if self.rows[n].step <= self.rows[number].step
            )
        )


@given(nonsense(), st.randoms(use_true_random=False))
def test_data_flow_means_the_same_as_steps(schedule: Schedule, rng: random.Random) -> None:
    algebra = Algebra()
    by_data_flow = Executor(schedule, algebra).run(rng)
    assert by_data_flow == run_step_by_step(schedule, algebra)


@given(schedules(least=2, most=5, most_bytes=8192), st.randoms(use_true_random=False))
def test_without_waits_acknowledgements_do_not_matter(
    schedule: Schedule, rng: random.Random
) -> None:
    if verify(schedule).waits:
        return
    algebra = Algebra()
    by_data_flow = Executor(schedule, algebra, acknowledge=False).run(rng)
    assert by_data_flow == run_step_by_step(schedule, algebra)


def test_where_the_proof_says_wait_not_waiting_goes_wrong() -> None:
    # The last row may overwrite what the first one still has to read.
    rows = (
        Transfer(0, 0, 1, 0, Op.REDUCE),
        Transfer(0, 2, 1, 0, Op.REDUCE),
        Transfer(1, 2, 0, 0, Op.COPY),
    )
    schedule = Schedule(Collective.REDUCE, "by hand", 3, 1, rows, root=1)
    assert verify(schedule).waits == (2,)
    outcomes = set()
    for seed in range(20):
        algebra = Algebra()
        by_data_flow = Executor(schedule, algebra, acknowledge=False).run(random.Random(seed))
        outcomes.add(by_data_flow == run_step_by_step(schedule, algebra))
    assert outcomes == {True, False}
