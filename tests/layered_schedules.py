"""A Hypothesis strategy: rows at random, with scratch memory and channels."""

from hypothesis import strategies as st

from ringleaf.collectives.schedule import Collective, Op, Row, Schedule, Transfer


@st.composite
def layered(draw: st.DrawFn) -> Schedule:
    """Rows at random between ranks' tensors and scratch memory, on several channels.

    Rows within a node have steps of their own, as they may wait for others of theirs.
    """
    ranks, chunks, scratch = draw(st.integers(2, 3)), draw(st.integers(1, 2)), 2
    place = st.integers(0, ranks * (1 + scratch) - 1)
    ends = st.lists(place, min_size=2, max_size=2, unique=True)
    rows: list[Row] = []
    step, filled = 0, {(rank, chunk): -1 for rank in range(ranks) for chunk in range(chunks)}
    for src, dst in draw(st.lists(ends, max_size=16)):
        is_local = src % ranks == dst % ranks
        step += is_local or draw(st.booleans())
        chunk = draw(st.integers(0, chunks - 1))
        if filled.get((src, chunk), step) < step:
            op = draw(st.sampled_from(Op)) if (dst, chunk) in filled else Op.COPY
            rows.append(Transfer(step, src, dst, chunk, op, draw(st.integers(0, 1))))
            filled.setdefault((dst, chunk), step)
        step += is_local
    return Schedule(Collective.ALLREDUCE, "layered", ranks, chunks, tuple(rows), scratch=scratch)
