"""Hypothesis strategies: schedules of every registered algorithm, and mere nonsense."""

from hypothesis import strategies as st

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Aggregate, Collective, Op, Row, Schedule, Transfer


@st.composite
def hierarchies(draw: st.DrawFn, ranks: int) -> tuple[int, ...]:
    """Some factorisation of `ranks`, in any order, with a level of one now and then."""
    sizes = [1] if draw(st.booleans()) else []
    while ranks > 1:
        divisors = [size for size in range(2, ranks + 1) if ranks % size == 0]
        sizes.append(draw(st.sampled_from(divisors)))
        ranks //= sizes[-1]
    return tuple(draw(st.permutations(sizes)))


@st.composite
def schedules(
    draw: st.DrawFn, least: int = 1, most: int = 40, most_bytes: int = 200_000
) -> Schedule:
    """Any algorithm of the registry, with arguments that fit."""
    ranks = draw(st.integers(least, most))
    return draw(st.sampled_from(list(ALGORITHMS.values()))).build(
        ranks,
        size_bytes=draw(st.integers(0, most_bytes)),
        hierarchy=draw(hierarchies(ranks)),
        segments=draw(st.none() | st.integers(1, 5)),
        root=draw(st.integers(0, ranks - 1)),
    )


@st.composite
def nonsense(draw: st.DrawFn) -> Schedule:
    """Rows at random, full of conflicts; they mean something, but nothing useful."""
    ranks, chunks = draw(st.integers(2, 4)), draw(st.integers(1, 2))
    some_ranks = st.lists(st.integers(0, ranks - 1), min_size=2, max_size=ranks, unique=True)
    rows: list[Row] = []
    for step in range(draw(st.integers(0, 4))):
        for members in draw(st.lists(some_ranks, max_size=4)):
            chunk = draw(st.integers(0, chunks - 1))
            if len(members) > 2:
                rows.append(Aggregate(step, tuple(members), chunk))
            else:
                op = draw(st.sampled_from(Op))
                rows.append(Transfer(step, members[0], members[1], chunk, op))
    return Schedule(Collective.ALLREDUCE, "nonsense", ranks, chunks, tuple(rows))
