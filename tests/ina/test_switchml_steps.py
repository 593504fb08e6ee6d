"""Workers of SwitchML, and of systems made from it, a packet at a time: whole frames by hand.

Two workers, so float32 below 2^e are multiplied by 2^(30 - e). Slots are dealt blocks in turn, and
have five rounds behind them: a block's number is 4 x round + slot, and its version is that of the
round.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from frames import group_mac, udp_frame
from stepping import UNWRITTEN, SteppedAgent

from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import (
    AGENT_WORDS,
    PROGRESS,
    READY,
    RETRANSMISSIONS,
    TIMER_AT_PS,
    Completion,
    take_completions,
)
from ringleaf.ina.omnireduce_switch import worker as sparse
from ringleaf.ina.switchml import state as s
from ringleaf.ina.switchml import updates, worker
from ringleaf.ina.tensors import REDUCED
from ringleaf.ina.tern import worker as tern
from ringleaf.ina.vote.wire import SIGNS

JOB, SLOTS, FIRST_ROUND = 18, 4, 5
MAC, ADDRESS = 0x020000000009, 0x0A000009
GROUP = 239 << 24 | 0xBEE0 << 8 | JOB
UPDATE, RESULT = 1, 2
LANES_64, NO_LANES, SUMS = 1, 7, 4
NONE = 0xFFFFFFFF


def header(kind: int, block: int, slot: int, exponent: int = 0, **more: int) -> bytes:
    """Return SwitchML's header, as `wire` describes it."""
    told = {"size": LANES_64, "job": JOB, "tree": 0, "version": block // SLOTS % 2, **more}
    return struct.pack(
        ">BBIHBB", kind << 4 | told["size"], told["job"], block, told["version"] << 15 | slot,
        exponent, told["tree"],
    )  # fmt: skip


def lanes(*values: float) -> bytes:
    return np.array([*values, *[0] * (64 - len(values))]).astype(">i4").tobytes()


class Worker(SteppedAgent):
    """A worker of one of the systems."""

    def __init__(self, protocol: Any = worker, first_port: int = 0xBEE0, **more: Any) -> None:
        super().__init__(head_bytes=700)
        self.protocol, self.port = protocol, first_port + JOB % 16
        self.at = s.make_worker(
            self.store,
            **{
                "host": 0, "ring": self.ring, "job": JOB, "workers": 2, "slots": SLOTS,
                "lanes": 64, "mac": MAC, "address": ADDRESS, "min_timeout_ps": 1000,
                "first_round": FIRST_ROUND, "first_port": first_port, **more,
            },
        )  # fmt: skip

    def open(self) -> s.SwitchMLWorker:
        return s.open_worker(self.store.arena, self.at)

    def frame(self, payload: bytes, tos: int = 2) -> bytes:
        """Return an update's frame as it must be."""
        macs, addresses = (MAC, group_mac(GROUP)), (ADDRESS, GROUP)
        return udp_frame(macs, addresses, (self.port, self.port), payload, tos)

    def slot(self, slot: int, *columns: int) -> list[int]:
        return [int(self.open().slots[slot * s.SLOT_WORDS + column]) for column in columns]


def test_a_float_tensor_goes_exponents_first() -> None:
    """Blocks of 64, 64 and 2: the largest are 3, 0.25 and -1, below 2^2, 2^-1 and 2^1."""
    mine = Worker()
    tensor = np.zeros(130, np.float32)
    tensor[[5, 70, 71, 129]] = 3, 0.25, -0.125, -1
    place = mine.start(tensor, tag=6, priority=3)
    exponents = 128, 125, 127
    assert mine.send_all(10) == [
        mine.frame(header(UPDATE, 20 + slot, slot, exponent, size=NO_LANES), 0x62)
        for slot, exponent in enumerate(exponents)
    ]
    assert mine.word(TIMER_AT_PS) == 4010
    for slot, agreed in enumerate((128, 126, 127)):  # another worker's second block is larger
        mine.take(header(RESULT, 20 + slot, slot, agreed, size=NO_LANES), 50)
    first = [0] * 64
    first[5] = 3 << 28
    second = [0] * 64
    second[6:8] = 1 << 28, -(1 << 27)
    assert mine.send_all(60) == [
        mine.frame(header(UPDATE, 24, 0) + lanes(*first), 0x62),
        mine.frame(header(UPDATE, 25, 1) + lanes(*second), 0x62),
        mine.frame(header(UPDATE, 26, 2) + lanes(0, -(1 << 29)), 0x62),
    ]
    mine.take(header(RESULT, 26, 2) + lanes(1 << 29, -(1 << 30), 9, 9), 70)
    mine.take(header(RESULT, 24, 0) + lanes(*[1 << 28] * 64), 70)
    assert take_completions(mine.store.arena, mine.ring) == []
    mine.take(header(RESULT, 25, 1) + lanes(*[3] * 64), 80)
    assert take_completions(mine.store.arena, mine.ring) == [
        Completion(mine.at, REDUCED, 130, 6, 80)
    ]
    assert mine.read(place, tensor) == [1.0] * 64 + [3 * 2.0**-30] * 64 + [1.0, -2.0]
    assert mine.read(place + 520, np.zeros(1, np.int32)) == [UNWRITTEN]
    assert (mine.send_all(), mine.word(PROGRESS)) == ([], 6)


def test_integers_go_at_once_and_slots_go_on_with_every_fourth_block() -> None:
    mine = Worker()
    tensor = np.arange(5 * 64, dtype=np.int32)
    mine.start(tensor)
    assert mine.send_all() == [
        mine.frame(header(UPDATE, 20 + slot, slot) + lanes(*range(64 * slot, 64 * slot + 64)))
        for slot in range(4)
    ]
    mine.take(header(RESULT, 20, 0) + lanes(1))
    assert mine.send_all() == [mine.frame(header(UPDATE, 24, 0) + lanes(*range(256, 320)))]
    mine.start(tensor[:64])  # it begins behind the first tensor's last block, in slot 1
    assert mine.send_all() == []
    mine.take(header(RESULT, 21, 1) + lanes(1))
    assert mine.send_all() == [mine.frame(header(UPDATE, 25, 1) + lanes(*range(64)))]
    assert mine.slot(1, s.ROUND, s.POSITION, s.TENSOR) == [6, 0, 1]


def test_a_block_with_an_infinity_goes_as_zeros_and_comes_back_as_nan() -> None:
    mine = Worker()
    tensor = np.array([1.0, np.inf], np.float32)
    place = mine.start(tensor)
    assert mine.send_all() == [mine.frame(header(UPDATE, 20, 0, 255, size=NO_LANES))]
    mine.take(header(RESULT, 20, 0, 255, size=NO_LANES))
    assert mine.send_all() == [mine.frame(header(UPDATE, 24, 0) + lanes())]
    mine.take(header(RESULT, 24, 0) + lanes(7, 8))
    assert np.isnan(mine.read(place, tensor)).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"job": JOB + 16},
        {"kind": UPDATE},
        {"slot": 4},
        {"block": 24},
        {"slot": 3, "block": 23},
        {"size": NO_LANES},
    ],
)
def test_results_that_no_slot_awaits_change_nothing(wrong: dict[str, int]) -> None:
    """Two of four slots are busy; a result must be whole."""
    mine = Worker()
    mine.start(np.ones(100, np.int32))
    mine.send_all()
    before = mine.store.arena.words[mine.at :].copy()
    told = {"kind": RESULT, "block": 20, "slot": 0, **wrong}
    values = b"" if "size" in wrong else lanes(1)
    head = header(**told)
    mine.take(head + values, 900)
    mine.take(header(RESULT, 20, 0) + lanes(1)[:-1], 900)
    assert (mine.store.arena.words[mine.at :] == before).all()
    frame = np.frombuffer(bytes(42) + head + values, np.uint8)
    assert updates.awaited_slot(mine.store.arena, mine.open(), frame, len(frame)) == -1


def test_a_lost_update_goes_again_as_it_was() -> None:
    mine = Worker()
    mine.start(np.ones(1, np.int32))
    first = mine.send_all(100)
    worker.fire_timer(mine.store.arena, mine.at, 0, 4100)
    assert mine.word(TIMER_AT_PS) == FOREVER_PS
    assert mine.send_all(4200) == first
    assert (mine.word(RETRANSMISSIONS), mine.word(TIMER_AT_PS)) == (1, 4200 + 8000)
    worker.fire_timer(mine.store.arena, mine.at, 0, 12_200)
    mine.take(header(RESULT, 20, 0) + lanes(1), 12_300)
    assert (mine.word(READY), mine.word(TIMER_AT_PS)) == (1, FOREVER_PS)
    assert mine.send_all() == []  # the result came before it was sent
    assert mine.word(RETRANSMISSIONS) == 1


def test_votes_are_signs_in_fixed_blocks_of_768() -> None:
    """Bit i of byte j is element 8 j + i; what lies behind the tensor's end is against."""
    told = {"lanes": 24, "elements": SIGNS, "fraction_bits": 0}
    mine = Worker(worker, 0xBF00, **told)
    tensor = np.ones(770, np.float32)
    tensor[[0, 9, 768]] = -1
    place = mine.start(tensor)
    signs = bytes([0xFE, 0xFD]) + b"\xff" * 94
    fixed = 30 + 126  # a scale of one: exponents are not agreed on
    assert mine.send_all() == [
        mine.frame(header(UPDATE, 20, 0, fixed, size=0) + signs),
        mine.frame(header(UPDATE, 21, 1, fixed, size=0) + b"\x02" + bytes(95)),
    ]
    mine.take(header(RESULT, 20, 0, size=0) + b"\x01" + bytes(95))
    mine.take(header(RESULT, 21, 1, size=0) + b"\x03" + bytes(95))
    assert mine.read(place, tensor) == [1.0] + [-1.0] * 767 + [1.0, 1.0]


def test_ternary_levels_have_a_scale_and_come_back_as_counts() -> None:
    """Levels plus one, lower bits first; counts of two workers are two more than the sum."""
    told = {"lanes": 48, "elements": 768, "fraction_bits": 0, "header_bytes": 14}
    mine = Worker(tern, 0xBF10, **told)
    tern.make_extras(mine.store, mine.at, 2)
    assert mine.store.arena.words[mine.at + AGENT_WORDS + s.EXTRAS_AT] == 2
    tensor = np.array([0, 2.5, -2.5, 0] + [2.5] * 6, np.float32)
    place = mine.start(tensor, priority=1)
    planes = bytes([0b1001, 0]) + bytes(94) + bytes([0b11110010, 0b11]) + bytes(94)
    scale = struct.pack(">f", 2.5)
    update = header(UPDATE, 20, 0, size=2) + scale + planes
    assert mine.send_all(5) == [mine.frame(update, 0x22)]
    sums = bytearray(576)
    sums[0], sums[96], sums[192] = 0b00100001, 0b01000001, 0b10000010  # 3, 4, 0, 0, 0, 1, 2, 4
    mine.take(header(RESULT, 20, 0, size=2) + scale + bytes(sums), 9)  # no sums
    mine.take(header(RESULT, 20, 0, size=SUMS) + scale + bytes(sums)[:-1], 9)
    assert mine.word(PROGRESS) == 0
    mine.take(header(RESULT, 20, 0, size=SUMS) + scale + bytes(sums), 9)
    levels = [1, 2, -2, -2, -2, -1, 0, 2, -2, -2]
    assert mine.read(place, tensor) == [2.5 * level for level in levels]
    assert (mine.word(PROGRESS), mine.word(TIMER_AT_PS)) == (1, FOREVER_PS)
    assert [each.b for each in take_completions(mine.store.arena, mine.ring)] == [0]


class SparseWorker(Worker):
    """A worker of OmniReduce in switches."""

    def __init__(self) -> None:
        super().__init__(sparse, 0xBEF0, header_bytes=14)
        sparse.make_extras(self.store, self.at)

    def extras(self, slot: int) -> list[int]:
        at = sparse.extras_of(self.open(), slot)
        return [int(word) for word in self.store.arena.words[at : at + sparse.EXTRA_WORDS]]

    def update(
        self,
        block: int,
        slot: int,
        after: int,
        values: bytes = b"",
        exponent: int = 0,
        tos: int = 2,
    ) -> bytes:
        size = LANES_64 if values else NO_LANES
        head = header(UPDATE, block, slot, exponent, size=size) + after.to_bytes(4)
        return self.frame(head + values, tos)

    def result(
        self, block: int, slot: int, after: int, values: bytes = b"", exponent: int = 0,
        now_ps: int = 0,
    ) -> None:  # fmt: skip
        size = LANES_64 if values else NO_LANES
        head = header(RESULT, block, slot, exponent, size=size) + after.to_bytes(4)
        self.take(head + values, now_ps)


def test_a_worker_sends_its_blocks_that_are_not_zero_when_their_turn_comes() -> None:
    """Of ten blocks it has 4 and 8, in slot 0, and 5, in slot 1; others have more."""
    mine = SparseWorker()
    tensor = np.zeros(9 * 64 + 3, np.int32)
    tensor[[4 * 64, 5 * 64, 8 * 64 + 1]] = 1 << 30, 50, 80  # which as float32 has an exponent
    place = mine.start(tensor, tag=2, priority=2)
    assert mine.send_all(10) == [
        mine.update(20, 0, 4, tos=0x42),
        mine.update(21, 1, 5, tos=0x42),
        mine.update(22, 2, NONE, tos=0x42),
        mine.update(23, 3, NONE, tos=0x42),
    ]
    assert [mine.extras(slot) for slot in range(4)] == [[4, 0], [5, 0], [NONE, 0], [NONE, 0]]
    mine.result(20, 0, 0)  # somebody has block 0
    assert mine.send_all(20) == [mine.update(24, 0, 4, tos=0x42)]
    mine.result(24, 0, 4, lanes(1))
    assert mine.send_all(20) == [mine.update(28, 0, 8, lanes(1 << 30), tos=0x42)]
    mine.result(28, 0, 8, lanes(41))
    assert mine.extras(0) == [NONE, 1]
    assert mine.send_all(20) == [mine.update(32, 0, NONE, lanes(0, 80), tos=0x42)]
    for slot in (2, 3):
        mine.result(20 + slot, slot, NONE)
    mine.result(21, 1, 9)  # somebody has block 9, and nobody 5, which this worker has
    assert mine.slot(1, s.POSITION) == [9]
    assert mine.send_all(30) == [mine.update(25, 1, 5, tos=0x42)]
    mine.result(25, 1, NONE, lanes(7, 8, 9, 9), now_ps=40)
    assert take_completions(mine.store.arena, mine.ring) == []
    mine.result(32, 0, NONE, lanes(81), now_ps=50)
    assert take_completions(mine.store.arena, mine.ring) == [
        Completion(mine.at, REDUCED, tensor.size, 2, 50)
    ]
    found = mine.read(place, tensor)
    assert [found[64 * block] for block in (0, 4, 5, 8, 9)] == [1, 41, 50, 81, 7]
    assert found[9 * 64 :] == [7, 8, 9]
    assert mine.send_all() == []
    assert mine.word(PROGRESS) == 8

    mine.start(tensor[: 2 * 64])  # in slots 2 and 3, and it begins without values again
    mine.start(tensor[4 * 64 : 5 * 64])  # and in slot 0, which had a block at last
    zeros = [mine.update(24 + slot, slot, NONE) for slot in (2, 3)]
    assert mine.send_all() == [*zeros, mine.update(36, 0, 0)]
    mine.result(36, 0, 0)
    assert mine.send_all() == [mine.update(40, 0, NONE, lanes(1 << 30))]


@pytest.mark.parametrize("after", [1, 3, 10, 12, NONE - 1])
def test_a_result_that_names_a_block_of_another_slot_is_ignored(after: int) -> None:
    """Slot 0 of four has blocks 0, 4 and 8 of ten, and awaits the one behind block 0."""
    mine = SparseWorker()
    mine.start(np.zeros(10 * 64, np.int32))
    mine.send_all()
    mine.result(20, 0, 0)
    mine.send_all()
    before = mine.store.arena.words[mine.at :].copy()
    for wrong in (after, 0):
        mine.result(24, 0, wrong, lanes(1))
    assert (mine.store.arena.words[mine.at :] == before).all()
    mine.result(24, 0, 8, lanes(1))
    assert mine.slot(0, s.POSITION, s.ROUND) == [8, 7]


def test_exponents_are_of_the_next_block_that_a_worker_has() -> None:
    mine = SparseWorker()
    tensor = np.zeros(5 * 64, np.float32)
    tensor[[4 * 64, 64]] = 4.0, 0.5
    mine.start(tensor)
    assert mine.send_all() == [
        mine.update(20, 0, 4, exponent=129),
        mine.update(21, 1, 1, exponent=126),
        mine.update(22, 2, NONE),
        mine.update(23, 3, NONE),
    ]
    mine.result(20, 0, 4, exponent=130)  # another worker's is larger: below 2^4
    assert mine.send_all() == [mine.update(24, 0, NONE, lanes(1 << 28))]
