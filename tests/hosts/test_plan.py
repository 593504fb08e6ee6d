"""Plans by hand: what each part of a small schedule waits for, and where messages land."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.schedule import (
    Aggregate,
    Collective,
    Op,
    Row,
    Schedule,
    Transfer,
)
from ringleaf.hosts.plan import RECEIVE, SEND, SUM, PeerMessages, Plans, _distinct, plans
from ringleaf.hosts.staging import lay_out


def planned(*rows: Row, ranks: int = 3, chunks: int = 1, elements: int = 4) -> Plans:
    return plans(Schedule(Collective.ALLREDUCE, "by hand", ranks, chunks, rows), elements)


def told(made: Plans) -> list[tuple[int, int, int, list[int], bool]]:
    """Return the node, kind, message, counts and staging of all parts."""
    width = [(2 if kind != SEND else 1) * int(made.stop[i] - made.start[i])
             for i, kind in enumerate(made.kind)]  # fmt: skip
    return [
        (
            int(made.node[i]),
            int(made.kind[i]),
            int(made.message[i]),
            made.after[made.after_at[i] : made.after_at[i] + width[i]].tolist(),
            bool(made.staged[i]),
        )
        for i in range(len(made.message))
    ]


def test_a_send_waits_for_writes_of_earlier_steps() -> None:
    """Rank 1 gets two chunks' sums in step 0, and passes the chunk on in step 1."""
    made = planned(
        Transfer(0, 0, 1, 0, Op.REDUCE), Transfer(0, 2, 1, 0, Op.REDUCE),
        Transfer(1, 1, 0, 0, Op.COPY),
    )  # fmt: skip

    assert told(made) == [
        (0, SEND, 0, [0], False),
        (0, RECEIVE, 2, [0, 1], True),  # its own send must have been acknowledged: first, so staged
        (1, SEND, 2, [2], False),
        (1, RECEIVE, 0, [0, 0], True),
        (1, RECEIVE, 1, [1, 0], True),  # after the first
        (2, SEND, 1, [0], False),
    ]


def test_a_swap_is_staged_and_waits_for_the_node_s_own_send() -> None:
    made = planned(Transfer(0, 0, 1, 0, Op.COPY), Transfer(0, 1, 0, 0, Op.COPY), ranks=2)

    assert told(made) == [
        (0, SEND, 0, [0], False),
        (0, RECEIVE, 1, [0, 1], True),
        (1, SEND, 1, [0], False),
        (1, RECEIVE, 0, [0, 1], True),
    ]


def test_a_message_of_two_chunks_counts_for_each() -> None:
    """The second message overwrites chunk 1 alone; chunk 0 goes on with it."""
    made = planned(
        Transfer(0, 0, 1, 0, Op.COPY), Transfer(0, 0, 1, 1, Op.COPY),
        Transfer(1, 0, 1, 1, Op.COPY), Transfer(1, 0, 1, 2, Op.COPY),
        ranks=2, chunks=3, elements=3,
    )  # fmt: skip

    assert told(made) == [
        (0, SEND, 0, [0, 0], False),
        (0, SEND, 1, [0, 0], False),
        (1, RECEIVE, 0, [0, 0, 0, 0], False),  # into the tensor: nothing was there before
        (1, RECEIVE, 1, [1, 0, 0, 0], False),
    ]


def test_sums_come_after_all_streams_and_wait_as_writes_do() -> None:
    made = planned(Transfer(0, 0, 1, 0, Op.REDUCE), Aggregate(1, (0, 1), 0), ranks=2)

    assert told(made) == [
        (0, SEND, 0, [0], False),
        (1, RECEIVE, 0, [0, 0], True),
        (0, SUM, 1, [0, 1], False),
        (1, SUM, 1, [1, 0], False),
    ]
    assert made.first_sum == 2


def test_messages_without_a_byte_are_left_out() -> None:
    rows = [Transfer(0, 0, 1, 0, Op.COPY), Transfer(1, 1, 0, 1, Op.COPY)]

    made = planned(*rows, ranks=2, chunks=2, elements=1)

    assert made.message.tolist() == [1, 1]  # chunk 0 is empty: 0 * 1 // 2 to 1 * 1 // 2


def test_a_node_s_streams_are_in_the_order_of_their_first_messages() -> None:
    made = planned(
        Transfer(0, 2, 0, 0, Op.REDUCE),
        Transfer(1, 0, 2, 0, Op.COPY),
        Transfer(2, 0, 1, 0, Op.COPY),
    )

    sent, got = [PeerMessages(2, Op.COPY), PeerMessages(1, Op.COPY)], [PeerMessages(2, Op.REDUCE)]
    assert made.streams_of(0) == sent + got
    assert made.streams_of(0, RECEIVE) == got


def test_channels_between_two_nodes_are_streams_of_their_own() -> None:
    made = planned(
        Transfer(0, 0, 1, 0, Op.COPY, channel=1),
        Transfer(1, 0, 1, 1, Op.COPY, channel=0),
        Transfer(2, 0, 1, 2, Op.COPY, channel=1),
        chunks=4,
    )

    assert made.streams_of(0) == [PeerMessages(1, Op.COPY, 1), PeerMessages(1, Op.COPY, 0)]
    assert made.message.tolist() == 2 * [0, 2, 1]


@pytest.mark.parametrize(("ahead", "slots"), [(0, 2), (100, 2), (129, 3), (10**6, 5)])
def test_staging_holds_what_is_let_in_ahead_and_two_messages_at_least(
    ahead: int, slots: int
) -> None:
    """Five messages of 40 bytes, in buffers of whole cache lines: 64."""
    made = planned(*(Transfer(step, 0, 1, 0, Op.REDUCE) for step in range(5)), elements=10)

    staging = lay_out(made, 4, ahead_bytes=ahead)

    assert staging.nodes.tolist() == [0, 64 * slots, 0]
    assert staging.slots.tolist() == [0, slots]


@given(st.lists(st.integers(0, 40), max_size=60), st.sampled_from([41, 10_000]))
def test_keys_are_numbered_in_their_order(keys: list[int], most: int) -> None:
    """By a table of all keys, and by sorting, if there are too many that do not occur."""
    first, number = _distinct(np.array(keys, np.int64), most)
    assert [keys[place] for place in first] == sorted(set(keys))
    assert first.tolist() == [keys.index(key) for key in sorted(set(keys))]
    assert [keys[first[each]] for each in number] == keys


def test_an_answer_may_come_before_the_acknowledgement_of_what_it_replaces() -> None:
    """Two ranks swap chunks by scratch memory, on one stream: first to it, and then to the tensor.

    A rank's second message replaces what the other's first one was read from.
    """
    there = [Transfer(0, src, 2 + (1 - src), src, Op.COPY) for src in (0, 1)]
    back = [Transfer(1, 2 + src, 1 - src, 1 - src, Op.COPY) for src in (0, 1)]
    made = plans(Schedule(Collective.ALLREDUCE, "by hand", 2, 2, [*there, *back], scratch=1), 4)
    receives = [(message, staged) for _, kind, message, _, staged in told(made) if kind == RECEIVE]
    assert sorted(receives) == [(0, False), (1, False), (2, True), (3, True)]
