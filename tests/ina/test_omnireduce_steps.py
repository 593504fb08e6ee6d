"""OmniReduce's worker and aggregator a packet at a time: whole frames, and what state they leave.

Slots have two columns of blocks of 32 values: block k is in column k mod 2 of slot k / 2 mod slots.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from frames import udp_frame
from stepping import SteppedAgent

from ringleaf.core.arena import Store
from ringleaf.core.packets import (
    HEAD_LEN,
    PAYLOAD_AT,
    PAYLOAD_LEN,
    make_pool,
    open_packet,
    write_packet,
)
from ringleaf.hosts.agent import (
    PROGRESS,
    READY,
    RETRANSMISSIONS,
    TIMER_AT_PS,
    Completion,
    take_completions,
)
from ringleaf.ina import flight
from ringleaf.ina.omnireduce import aggregator, ledger, state, values, worker
from ringleaf.ina.tensors import FLOAT32, INT32, REDUCED

JOB, ROUND, NONE = 18, 7, 0xFFFFFFFF
OWN = state.OmniReduceAddress(0x020000000009, 0x0A000009)
PEERS = [state.OmniReduceAddress(0x020000000001 + i, 0x0A000001 + i) for i in range(3)]
TO_AGGREGATORS, TO_WORKERS = 0xB700 + 2, 0xB710 + 2
UPDATE, RESULT = 1, 2


def message(
    kind: int,
    slot: int,
    blocks: dict[int, np.ndarray],
    after: tuple[int, int],
    *,
    dtype: int = INT32,
    job: int = JOB,
    rank: int = 0,
    number: int = ROUND,
    columns: int = 2,
) -> bytes:
    """Return a payload, as `wire` describes it: the blocks by column, and the next positions."""
    present = sum(1 << column for column in blocks)
    head = struct.pack(
        ">BBHIHBBII", kind << 4 | dtype, job, slot, number, rank, present, columns, *after
    )
    return head + b"".join(blocks[column].tobytes() for column in sorted(blocks))


def block(*numbers: float, kind: type = np.int32) -> np.ndarray:
    """Return a block that begins with these values."""
    return np.array([*numbers, *[0] * (32 - len(numbers))], kind)


class Worker(SteppedAgent):
    """Rank 3 of a job with two aggregators and three slots."""

    protocol = worker

    def __init__(self) -> None:
        super().__init__(head_bytes=318)
        self.at = state.make_worker(
            self.store, host=0, ring=self.ring, job=JOB, rank=3, own=OWN, aggregators=PEERS[:2],
            slots=3, lanes=64, min_timeout_ps=1000, first_round=ROUND,
        )  # fmt: skip

    def open(self) -> state.OmniReduceWorker:
        return state.open_worker(self.store.arena, self.at)

    def slot(self, slot: int, *columns: int) -> list[int]:
        return [int(self.open().rows[slot * state.ROW_WORDS + column]) for column in columns]

    def update(
        self, slot: int, *blocks: dict[int, np.ndarray] | tuple[int, int], tos: int = 2, **told: int
    ) -> bytes:
        """Return the frame of a slot's round as it must be."""
        to = PEERS[slot % 2]
        payload = message(UPDATE, slot, *blocks, rank=3, **told)  # type: ignore[arg-type]
        macs, addresses = (OWN.mac, to.mac), (OWN.ip, to.ip)
        return udp_frame(macs, addresses, (TO_WORKERS, TO_AGGREGATORS), payload, tos)

    def result(self, slot: int, blocks: Any, after: Any, now_ps: int = 0, **told: int) -> None:
        self.take(message(RESULT, slot, blocks, after, **{"rank": 3, **told}), now_ps)


TENSOR = np.zeros(14 * 32 + 5, np.int32)
"""Blocks 0, 3, 7, 12 and 14, which is the last one and has five elements; the others are zero."""
for _block, _first in ((0, 10), (3, 20), (7, 30), (12, 40), (14, 50)):
    TENSOR[32 * _block] = _first
    TENSOR[min(32 * _block + 31, TENSOR.size - 1)] = _first + 1


def own(number: int) -> np.ndarray:
    """Return a block of the tensor, with zeros behind its end."""
    values_there = TENSOR[32 * number : 32 * number + 32]
    return np.pad(values_there, (0, 32 - values_there.size))


def test_a_worker_sends_its_blocks_and_names_its_next_ones() -> None:
    """Slot 0 has blocks 0, 1, 6, 7, 12 and 13, slot 1 has 2, 3, 8, 9 and 14, slot 2 the others."""
    mine = Worker()
    place = mine.start(TENSOR, tag=4, priority=3)
    assert mine.send_all(10) == [
        mine.update(0, {0: own(0)}, (2, 1), tos=0x62),
        mine.update(1, {1: own(3)}, (2, NONE), tos=0x62),
        mine.update(2, {}, (NONE, NONE), tos=0x62),
    ]
    assert (mine.word(TIMER_AT_PS), mine.word(RETRANSMISSIONS)) == (4010, 0)

    mine.result(0, {0: block(11), 1: block(7)}, (2, 1))
    mine.result(1, {1: block(21)}, (2, NONE))
    assert mine.word(PROGRESS) == 2
    assert mine.send_all(20) == [
        mine.update(0, {0: own(12), 1: own(7)}, (NONE, NONE), tos=0x62, number=ROUND + 1),
        mine.update(1, {0: own(14)}, (NONE, NONE), tos=0x62, number=ROUND + 1),
    ]
    mine.result(2, {}, (NONE, 1))  # another rank has block 11
    assert mine.send_all(20) == [
        mine.update(2, {}, (NONE, NONE), tos=0x62, number=ROUND + 1),
    ]
    mine.result(2, {1: block(9)}, (NONE, NONE), number=ROUND + 1)
    assert mine.slot(2, state.IS_BUSY, state.ROUND, state.TENSOR) == [0, ROUND + 2, 1]
    mine.result(1, {0: block(*range(1, 33))}, (NONE, NONE), number=ROUND + 1)
    assert take_completions(mine.store.arena, mine.ring) == []
    mine.result(0, {0: block(41), 1: block(31)}, (NONE, NONE), 90, number=ROUND + 1)
    assert take_completions(mine.store.arena, mine.ring) == [
        Completion(mine.at, REDUCED, TENSOR.size, 4, 90)
    ]
    sums = TENSOR.copy()
    for number, first in ((0, 11), (1, 7), (3, 21), (12, 41), (7, 31), (11, 9)):
        sums[32 * number : 32 * number + 32] = block(first)
    sums[14 * 32 :] = range(1, 6)
    assert mine.read(place, sums) == sums.tolist()
    assert mine.send_all() == []


def test_a_slot_goes_on_to_the_next_tensor_with_a_block_for_it() -> None:
    """Tensors of 4, 0 and 2 blocks: two slots, none, and then the third slot."""
    mine = Worker()
    ones = np.ones(128, np.float32)
    mine.start(ones, tag=1)
    mine.start(ones[:0], tag=2)
    mine.start(ones[:64], tag=3)
    assert take_completions(mine.store.arena, mine.ring) == [Completion(mine.at, REDUCED, 0, 2, 0)]
    mine.start(ones[:64], tag=4)  # it begins in slot 0, which is busy
    full = {column: np.ones(32, np.float32) for column in range(2)}
    ends = NONE, NONE
    assert mine.send_all() == [mine.update(slot, full, ends, dtype=FLOAT32) for slot in range(3)]
    strays = mine.open().flight.slots.reshape(-1, flight.SLOT_WORDS)[:3, flight.STRAYS]
    assert strays.tolist() == [0, 0, 1]  # other workers' third slots may begin later
    mine.result(0, full, ends, dtype=FLOAT32)
    assert mine.slot(0, state.TENSOR, state.IS_BUSY) == [3, 1]
    assert mine.send_all() == [mine.update(0, full, ends, dtype=FLOAT32, number=ROUND + 1)]
    mine.result(1, full, ends, dtype=FLOAT32)
    assert mine.slot(1, state.TENSOR, state.IS_BUSY) == [4, 0]
    assert [each.b for each in take_completions(mine.store.arena, mine.ring)] == [1]


def test_an_update_is_sent_again_after_its_timeout() -> None:
    mine = Worker()
    mine.start(np.ones(64, np.int32))
    full, ends = {column: np.ones(32, np.int32) for column in range(2)}, (NONE, NONE)
    first = mine.send_all(100)
    for now_ps, is_due in ((4099, False), (4100, True)):
        worker.fire_timer(mine.store.arena, mine.at, 0, now_ps)
        assert mine.word(READY) == is_due
    assert mine.word(TIMER_AT_PS) == 2**62 or mine.word(TIMER_AT_PS) > 10**15  # none is in flight
    assert mine.send_all(4200) == first == [mine.update(0, full, ends)]
    assert (mine.word(RETRANSMISSIONS), mine.word(TIMER_AT_PS)) == (1, 4200 + 8000)
    worker.fire_timer(mine.store.arena, mine.at, 0, 12_200)
    mine.result(0, full, ends, 12_300)
    assert (mine.send_all(), mine.word(RETRANSMISSIONS)) == ([], 1)  # its result came before that


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": UPDATE},
        {"job": JOB + 16},
        {"slot": 3},
        {"slot": 2},
        {"number": ROUND - 1},
        {"rank": 2},
        {"columns": 1},
        {"size": 42 + 12 + 8 + 127},
        {"size": 42 + 12 + 7},
    ],
)
def test_results_that_no_slot_awaits_change_nothing(wrong: dict[str, int]) -> None:
    mine = Worker()
    mine.start(np.ones(128, np.int32))
    mine.send_all()
    before = mine.store.arena.words[mine.at :].copy()
    told = {"kind": RESULT, "slot": 0, "rank": 3, "size": 2000, **wrong}
    size = told.pop("size")
    mine.take(message(blocks={0: block(1)}, after=(1, 1), **told), 900, size=size)
    assert (mine.store.arena.words[mine.at :] == before).all()


def test_a_result_sets_timers_and_has_what_was_passed_sent_again() -> None:
    """Of five slots three have results after 1,000 ps, so the first is lost; the second may be."""
    mine = Worker()
    mine.at = state.make_worker(
        mine.store, host=0, ring=mine.ring, job=JOB, rank=3, own=OWN, aggregators=PEERS[:1],
        slots=5, lanes=64, min_timeout_ps=1000, first_round=ROUND,
    )  # fmt: skip
    mine.start(np.ones(10 * 32, np.int32))
    assert len(mine.send_all(0)) == 5
    for slot in (4, 2, 3):
        mine.result(slot, {}, (NONE, NONE), 1000)
        assert mine.word(READY) == (slot == 3)
    assert mine.word(TIMER_AT_PS) > 10**15  # both are queued
    assert [frame[44:46] for frame in mine.send_all(1000)] == [bytes(2), b"\0\1"]
    assert mine.word(TIMER_AT_PS) == 1000 + 2 * 1000


class Aggregator(SteppedAgent):
    """The second of two aggregators for three workers and five slots: it has slots 1 and 3."""

    protocol = aggregator

    def __init__(self) -> None:
        super().__init__(head_bytes=318)
        self.at = ledger.make_aggregator(
            self.store, host=0, ring=self.ring, job=JOB, number=1, aggregators=2, own=OWN,
            workers=PEERS, slots=5, lanes=64, first_round=ROUND,
        )  # fmt: skip

    def update(
        self,
        slot: int,
        rank: int,
        blocks: dict[int, np.ndarray],
        after: tuple[int, int] = (NONE, NONE),
        tos: int = 2,
        **told: int,
    ) -> None:
        payload = message(UPDATE, slot, blocks, after, rank=rank, **told)
        self.take(payload, tos=tos)

    def results(
        self,
        slot: int,
        blocks: dict[int, np.ndarray],
        after: tuple[int, int] = (NONE, NONE),
        tos: int = 2,
        ranks: tuple[int, ...] = (0, 1, 2),
        **told: int,
    ) -> list[bytes]:
        """Return the frames to these ranks as they must be."""
        return [
            udp_frame(
                (OWN.mac, PEERS[rank].mac),
                (OWN.ip, PEERS[rank].ip),
                (TO_AGGREGATORS, TO_WORKERS),
                message(RESULT, slot, blocks, after, rank=rank, **told),
                tos,
            )
            for rank in ranks
        ]


def test_a_round_is_added_up_in_the_order_of_ranks_and_answered() -> None:
    """10^8 + 1 - 10^8 is 0 in float32, and in another order 1; next positions are the least."""
    mine = Aggregator()
    large, one = block(1e8, 2, kind=np.float32), block(1, kind=np.float32)
    mine.update(3, 2, {0: -large}, (4, 9), dtype=FLOAT32)
    mine.update(3, 0, {0: large, 1: one}, (6, 8), dtype=FLOAT32)
    assert mine.word(READY) == 0
    mine.update(3, 1, {0: one}, (NONE, 10), dtype=FLOAT32, tos=0xA3)
    assert mine.word(READY) == 1
    sums = {0: block(0, kind=np.float32), 1: one}
    assert mine.send_all() == mine.results(3, sums, (4, 8), tos=0xA2, dtype=FLOAT32)
    assert mine.word(RETRANSMISSIONS) == 0

    for rank in range(3):  # and the next round begins with nothing of it
        mine.update(3, rank, {1: block(2**31 - 1)} if rank else {}, number=ROUND + 1)
    assert mine.send_all() == mine.results(3, {1: block(-2)}, number=ROUND + 1)


def test_slots_are_added_up_by_themselves() -> None:
    mine = Aggregator()
    for rank in range(3):
        for slot in (1, 3):
            mine.update(slot, rank, {1: block(slot * 10**rank)})
    assert mine.send_all() == [
        *mine.results(1, {1: block(111)}),
        *mine.results(3, {1: block(333)}),
    ]


def test_an_update_counts_once_and_one_of_the_round_before_gets_its_result_again() -> None:
    mine = Aggregator()
    for rank in (0, 0, 1):
        mine.update(1, rank, {0: block(1)})
    assert mine.send_all() == []
    mine.update(1, 2, {0: block(1)})
    assert len(mine.send_all()) == 3
    for _ in range(2):
        mine.update(1, 1, {0: block(1)})  # it is still in the queue of answers
    assert mine.word(RETRANSMISSIONS) == 2
    assert mine.send_all() == mine.results(1, {0: block(3)}, ranks=(1,))
    mine.update(1, 1, {0: block(5)}, number=ROUND + 1)
    mine.update(1, 1, {0: block(1)})  # late: its worker has the result
    mine.update(1, 2, {0: block(1)}, number=ROUND - 1)
    mine.update(1, 2, {0: block(1)}, number=ROUND + 2)
    assert mine.send_all() == []
    assert mine.word(RETRANSMISSIONS) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": RESULT},
        {"job": JOB + 16},
        {"slot": 0},
        {"slot": 5},
        {"slot": 7},
        {"rank": 3},
        {"columns": 1},
        {"size": 42 + 12 + 8 + 127},
        {"size": 42 + 12 + 7},
    ],
)
def test_updates_for_others_change_nothing(wrong: dict[str, int]) -> None:
    mine = Aggregator()
    mine.update(1, 0, {})
    mine.update(1, 1, {})
    before = mine.store.arena.words[mine.at :].copy()
    told = {"kind": UPDATE, "slot": 1, "rank": 2, "size": 2000, **wrong}
    size = told.pop("size")
    mine.take(message(blocks={0: block(1)}, after=(1, 1), **told), size=size)
    assert (mine.store.arena.words[mine.at :] == before).all()
    mine.update(1, 2, {})
    assert mine.send_all() == mine.results(1, {})


@pytest.mark.parametrize("in_head", [0, 3, 8, 20])
@pytest.mark.parametrize(("offset", "count"), [(0, 20), (4, 8), (8, 12), (12, 0)])
def test_values_are_copied_from_head_and_payload(in_head: int, offset: int, count: int) -> None:
    """A packet's 20 bytes behind 60 bytes of headers: so many in its head, the rest elsewhere."""
    store = Store(1 << 14)
    make_pool(store, size=2, head_bytes=128, field_count=0, lane_count=0)
    place, target = store.register_memory(64), store.register_memory(64)
    store.arena.memory[: target + 64] = 0x55
    data = np.arange(1, 21, dtype=np.uint8)
    packet = write_packet(store.arena, bytes(60) + data[:in_head].tobytes())
    view = open_packet(store.arena, packet)
    store.arena.memory[place : place + 20 - in_head] = data[in_head:]
    view.row[PAYLOAD_AT], view.row[PAYLOAD_LEN] = place, 20 - in_head
    assert view.row[HEAD_LEN] == 60 + in_head
    assert values.bytes_from(view, 60) == 20
    values.copy_values(store.arena, view, 60, offset, target, count)
    wanted = np.full(64, 0x55, np.uint8)
    wanted[:count] = data[offset : offset + count]
    assert store.arena.memory[target : target + 64].tolist() == wanted.tolist()


def test_a_block_is_zero_if_no_bit_is_set() -> None:
    memory = np.zeros(24, np.uint8)
    for bad in (4, 7, 11):
        memory[:] = 0
        memory[bad] = 0x80
        assert not values.is_zero(memory, 4, 12)
        assert values.is_zero(memory, 12, 24)
    memory[:] = 0
    memory[[3, 12]] = 1
    assert values.is_zero(memory, 4, 12)


@pytest.mark.parametrize("aggregators", [1, 2, 3, 7])
@pytest.mark.parametrize("slots", [1, 2, 6, 9])
def test_slots_are_dealt_to_aggregators_in_turn(slots: int, aggregators: int) -> None:
    dealt = [ledger.own_slots(number, aggregators, slots) for number in range(aggregators)]
    assert dealt == [len(range(number, slots, aggregators)) for number in range(aggregators)]
