"""A worker alone: its switch has one child, so an update's own values are the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from start import start_tensor

from ringleaf.core.arena import Arena, Store
from ringleaf.core.headers import IP_TOS_AT
from ringleaf.core.packets import (
    POOL_FREE,
    POOL_SIZE,
    free_packet,
    make_pool,
    read_packet,
    write_packet,
)
from ringleaf.core.units import FOREVER_PS
from ringleaf.errors import ConfigError
from ringleaf.hosts.agent import (
    READY,
    RETRANSMISSIONS,
    TIMER_AT_PS,
    Completion,
    make_ring,
    take_completions,
)
from ringleaf.ina.flight import MAX_BACKOFF
from ringleaf.ina.switchml import fetching, worker
from ringleaf.ina.switchml.state import make_worker, open_worker
from ringleaf.ina.switchml.wire import (
    BLOCK_AT,
    MESSAGE_AT,
    POOL_INDEX_AT,
    RESULT,
    SIZE_NONE,
    VALUES_AT,
)
from ringleaf.ina.switchml.worker import fire_timer, receive, transmit
from ringleaf.ina.tensors import FLOAT32, INT32, MOST_TENSORS, REDUCED, raise_priority

LANES = 64
SLOTS = 4
MIN_TIMEOUT_PS = 1000
DELAY_PS = 100

Lose = Callable[[bytes], bool]


def number(packet: bytes) -> tuple[int, int, int]:
    """Block, version and slot of a packet."""
    index = int.from_bytes(packet[POOL_INDEX_AT : POOL_INDEX_AT + 2], "big")
    block = int.from_bytes(packet[BLOCK_AT : BLOCK_AT + 4], "big")
    return block, index >> 15, index & 0x7FFF


def result_of(update: bytes) -> bytes:
    """The answer of a switch whose only child sent `update`."""
    message = RESULT << 4 | update[MESSAGE_AT] & 7
    return update[:MESSAGE_AT] + bytes([message]) + update[MESSAGE_AT + 1 :]


class Echo:
    """A worker, and the wire on which its updates come back as results after DELAY_PS."""

    def __init__(self, lose: Lose = lambda _: False, *, slots: int = SLOTS, first_round: int = 0):
        self.store = Store(1 << 16)
        make_pool(self.store, size=64, head_bytes=320, field_count=8, lane_count=0)
        self.ring = make_ring(self.store, 128)
        self.at = make_worker(
            self.store,
            host=0,
            ring=self.ring,
            job=5,
            workers=1,
            slots=slots,
            lanes=LANES,
            mac=1,
            address=2,
            min_timeout_ps=MIN_TIMEOUT_PS,
            first_round=first_round,
        )
        self.lose = lose
        self.now_ps = 0
        self.sent: list[bytes] = []
        self.completions: list[Completion] = []

    @property
    def arena(self) -> Arena:
        return self.store.arena

    def word(self, column: int) -> int:
        return int(self.arena.words[self.at + column])

    def put(self, values: np.ndarray) -> int:
        """Copy a tensor to registered memory."""
        at = self.store.register_memory(values.nbytes)
        self.arena.memory[at : at + values.nbytes] = values.view(np.uint8)
        return at

    def get(self, at: int, like: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.arena.memory[at : at + like.nbytes].view(like.dtype).copy()
        return found

    def start(self, at: int, count: int, dtype: int = FLOAT32, tag: int = 0) -> bool:
        return start_tensor(worker, self.arena, self.at, at, count, dtype, tag, self.now_ps)

    def take_updates(self) -> list[bytes]:
        updates = []
        while self.word(READY):
            packet = transmit(self.arena, self.at, 0, self.now_ps)
            if packet >= 0:
                updates.append(read_packet(self.arena, packet))
                free_packet(self.arena, packet)
        self.sent += updates
        return updates

    def deliver(self, data: bytes) -> None:
        packet = write_packet(self.arena, data)
        receive(self.arena, self.at, packet, self.now_ps)
        free_packet(self.arena, packet)

    def run(self) -> list[Completion]:
        """Run until nothing is left to do; return what was reported meanwhile."""
        for _ in range(10_000):
            updates = [each for each in self.take_updates() if not self.lose(each)]
            if updates:
                self.now_ps += DELAY_PS
                for update in updates:
                    self.deliver(result_of(update))
            elif self.word(TIMER_AT_PS) == FOREVER_PS:
                return self.finish()
            else:
                self.now_ps = self.word(TIMER_AT_PS)
                fire_timer(self.arena, self.at, 0, self.now_ps)
        raise AssertionError("the worker does not come to an end")

    def finish(self) -> list[Completion]:
        assert self.arena.own[POOL_FREE] == self.arena.words[POOL_SIZE], "a packet leaked"
        return take_completions(self.arena, self.ring)

    def reduce(self, values: np.ndarray, dtype: int = FLOAT32) -> np.ndarray:
        at = self.put(values)
        assert self.start(at, values.size, dtype, tag=9)
        assert self.run() == [Completion(self.at, REDUCED, values.size, 9, self.now_ps)]
        return self.get(at, values)


@given(st.integers(0, 12 * LANES), st.integers(1, 6))
def test_any_size_comes_back(count: int, slots: int) -> None:
    values = np.arange(count, dtype=np.float32) - 7
    echo = Echo(slots=slots)

    assert echo.reduce(values).tolist() == values.tolist()
    blocks = -(-count // LANES)
    assert len(echo.sent) == blocks + min(blocks, slots)
    assert echo.word(RETRANSMISSIONS) == 0


def test_integers_need_no_exponents() -> None:
    values = np.array([1, -2, 2**31 - 1, -(2**31)] * 40, np.int32)
    echo = Echo()

    assert echo.reduce(values, INT32).tolist() == values.tolist()
    assert [len(packet) for packet in echo.sent] == [VALUES_AT + 4 * LANES] * 3


def test_a_float_tensor_starts_with_exponents_and_fills_up_with_zeros() -> None:
    echo = Echo()
    echo.reduce(np.ones(LANES + 1, np.float32))

    assert [packet[MESSAGE_AT] & 7 == SIZE_NONE for packet in echo.sent] == [True] * 2 + [False] * 2
    assert [packet[MESSAGE_AT + 8] for packet in echo.sent] == [127, 127, 0, 0]
    last = np.frombuffer(echo.sent[-1][VALUES_AT:], ">i4")
    assert last.tolist() == [2**30] + [0] * (LANES - 1)


def test_versions_alternate_in_each_slot_through_all_tensors() -> None:
    echo = Echo()
    for count in (1, 3 * LANES, 9 * LANES, 2 * LANES):
        echo.reduce(np.ones(count, np.float32))

    rounds = Counter[int]()
    for packet in echo.sent:
        block, version, slot = number(packet)
        assert (block, version) == (rounds[slot] * SLOTS + slot, rounds[slot] % 2)
        rounds[slot] += 1
    assert rounds == {0: 2 + 4, 1: 2 + 3 + 2, 2: 2 + 3 + 2, 3: 2 + 3}


def test_block_numbers_wrap_around() -> None:
    echo = Echo(first_round=2**32 // SLOTS - 1)
    values = np.arange(6 * LANES, dtype=np.float32)

    assert echo.reduce(values).tolist() == values.tolist()
    assert sorted(number(packet)[0] for packet in echo.sent)[:6] == [0, 1, 2, 3, 4, 5]
    assert max(number(packet)[0] for packet in echo.sent) == 2**32 - 1


def test_a_lost_packet_is_sent_again_after_the_timeout_and_equal() -> None:
    lost = Counter[bytes]()

    def lose_third_once(packet: bytes) -> bool:
        lost[packet] += 1
        return number(packet)[0] == 2 and lost[packet] == 1

    echo = Echo(lose_third_once)
    values = np.arange(3 * LANES, dtype=np.float32)

    assert echo.reduce(values).tolist() == values.tolist()
    assert echo.word(RETRANSMISSIONS) == 1
    assert [count for packet, count in lost.items() if number(packet)[0] == 2] == [2]


@given(st.randoms(use_true_random=False), st.floats(0, 0.8))
def test_no_loss_is_too_much(rng: Random, loss: float) -> None:
    echo = Echo(lambda _: rng.random() < loss)
    for count in (5 * LANES + 1, 1, 9 * LANES):
        values = np.arange(count, dtype=np.float32)
        assert echo.reduce(values).tolist() == values.tolist()


def test_timeout_doubles_up_to_its_most() -> None:
    """Later ones are longer by a part of it, as hosts then hold slots back for unlike times."""
    echo = Echo(lambda _: True)
    echo.start(echo.put(np.ones(1, np.float32)), 1)
    waits = []
    for _ in range(9):
        assert len(echo.take_updates()) == 1
        waits.append(echo.word(TIMER_AT_PS) - echo.now_ps)
        echo.now_ps = echo.word(TIMER_AT_PS)
        fire_timer(echo.arena, echo.at, 0, echo.now_ps)

    most = MAX_BACKOFF * MIN_TIMEOUT_PS
    assert waits[:6] == [4000, 8000, 16000, 32000, most, most]
    assert all(most <= wait < 2 * most for wait in waits[6:])


def test_a_result_ends_the_backoff() -> None:
    echo = Echo()
    values = np.ones(2 * LANES, np.int32)
    echo.start(echo.put(values), values.size, INT32)
    first, _second = echo.take_updates()
    for _ in range(2):
        echo.now_ps = echo.word(TIMER_AT_PS)
        fire_timer(echo.arena, echo.at, 0, echo.now_ps)
        assert len(echo.take_updates()) == 2
    assert echo.word(TIMER_AT_PS) - echo.now_ps == 16 * MIN_TIMEOUT_PS

    echo.deliver(result_of(first))

    assert echo.word(TIMER_AT_PS) - echo.now_ps == 4 * MIN_TIMEOUT_PS


def test_what_later_answers_have_passed_is_sent_again_after_two_round_trips() -> None:
    """By hand: three slots have results after 1,000 ps, and again after 1,000 or 3,000 more.

    The fourth packet's age is then twice the round trip, or less than the latest and the average
    one together, which is above 1,000: it may wait in a queue that grows.
    """
    for second_ps, is_lost in ((3000, False), (1000, True)):
        echo = Echo()
        values = np.arange(8 * LANES, dtype=np.int32)
        echo.start(echo.put(values), values.size, INT32)
        lost, *others = echo.take_updates()
        echo.now_ps += 1000
        for update in others:
            echo.deliver(result_of(update))
        others = echo.take_updates()
        assert lost not in others
        echo.now_ps += second_ps
        for update in others:
            echo.deliver(result_of(update))

        assert (lost in echo.take_updates()) is is_lost
        assert echo.word(RETRANSMISSIONS) == is_lost


def test_a_tensor_behind_another_may_be_passed_while_it_begins() -> None:
    """Its slots become free in another order on other workers, so order tells nothing of a loss."""
    echo = Echo()
    values = np.arange(LANES, dtype=np.int32)
    echo.start(echo.put(values), values.size, INT32)
    echo.start(echo.put(np.arange(3 * LANES, dtype=np.int32)), 3 * LANES, INT32)
    for update in echo.take_updates()[1:]:
        echo.deliver(result_of(update))
    assert echo.take_updates() == []


def test_what_is_more_urgent_may_pass() -> None:
    echo = Echo()
    values = np.arange(8 * LANES, dtype=np.int32)
    echo.start(echo.put(values), values.size, INT32)
    _waits, *others = echo.take_updates()
    for update in others[:2]:
        echo.deliver(result_of(update))
    raise_priority(open_worker(echo.arena, echo.at).tensors, 6)
    for update in echo.take_updates():
        echo.deliver(result_of(update))
    assert echo.word(RETRANSMISSIONS) == 0


def test_timeout_follows_the_round_trip() -> None:
    echo = Echo()
    at = echo.put(np.ones(LANES, np.float32))
    echo.start(at, LANES)
    for wait_ps in (50, 2000):  # the exponent's round trip does not count
        (update,) = echo.take_updates()
        echo.now_ps += wait_ps
        echo.deliver(result_of(update))
    echo.start(at, LANES)
    echo.take_updates()

    assert echo.word(TIMER_AT_PS) - echo.now_ps == 2000 + 4 * (2000 // 2)  # RFC 6298, 2.2


def test_duplicates_and_foreign_packets_change_nothing() -> None:
    echo = Echo()
    values = np.arange(6 * LANES, dtype=np.float32)
    at = echo.put(values)
    echo.start(at, values.size)
    exponents = echo.take_updates()
    for update in exponents:
        echo.deliver(result_of(update))
    blocks = echo.take_updates()
    before = echo.arena.words.copy()

    good = result_of(blocks[0])
    other_job = good[: MESSAGE_AT + 1] + b"\x06" + good[MESSAGE_AT + 2 :]
    no_slot = good[:POOL_INDEX_AT] + (SLOTS).to_bytes(2, "big") + good[POOL_INDEX_AT + 2 :]
    for wrong in (
        *map(result_of, exponents),  # came before
        blocks[0],  # an update
        other_job,
        no_slot,
        good[:-1],  # truncated
        good[: VALUES_AT - 1],
    ):
        echo.deliver(wrong)

    assert (echo.arena.words[echo.at :] == before[echo.at :]).all()
    assert take_completions(echo.arena, echo.ring) == []
    echo.deliver(good)
    assert echo.arena.words[echo.at + READY] == 1


def test_a_result_that_comes_after_all_cancels_the_retransmission() -> None:
    echo = Echo()
    echo.start(echo.put(np.ones(1, np.int32)), 1, INT32)
    (update,) = echo.take_updates()
    echo.now_ps = echo.word(TIMER_AT_PS)
    fire_timer(echo.arena, echo.at, 0, echo.now_ps)
    assert echo.word(READY) == 1

    echo.deliver(result_of(update))

    assert echo.take_updates() == []
    assert echo.word(RETRANSMISSIONS) == 0
    assert len(echo.finish()) == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_infinities_and_nans_make_their_block_nan(bad: float) -> None:
    values = np.ones(3 * LANES, np.float32)
    values[LANES + 5] = bad

    result = Echo().reduce(values)

    assert np.isnan(result).tolist() == [False] * LANES + [True] * LANES + [False] * LANES


def test_a_tensor_does_not_wait_for_the_one_before() -> None:
    echo = Echo()
    places = [echo.put(np.full(count, count, np.int32)) for count in (LANES, LANES + 1, 1)]
    for at, count in zip(places, (LANES, LANES + 1, 1), strict=True):
        echo.start(at, count, INT32)

    assert [number(update)[2] for update in echo.take_updates()] == [0, 1, 2, 3]
    assert len(echo.run()) == 3


def test_what_is_left_of_tensors_goes_with_a_raised_priority() -> None:
    echo = Echo()
    for count in (LANES, SLOTS * LANES):
        echo.start(echo.put(np.ones(count, np.int32)), count, INT32)
    before = echo.take_updates()
    raise_priority(open_worker(echo.arena, echo.at).tensors, 5)
    echo.deliver(result_of(before[0]))

    (after,) = echo.take_updates()

    assert [packet[IP_TOS_AT] >> 5 for packet in (*before, after)] == [0, 0, 0, 0, 5]


def test_tensors_are_summed_in_turn() -> None:
    echo = Echo()
    tensors = [np.full(count, count, np.float32) for count in (100, 0, 1, 300)]
    places = [echo.put(values) for values in tensors]
    for tag, (at, values) in enumerate(zip(places, tensors, strict=True)):
        assert echo.start(at, values.size, tag=tag)

    done = echo.run()

    assert [(each.kind, each.a, each.b) for each in done] == [  # an empty one at once
        (REDUCED, 0, 1),
        (REDUCED, 100, 0),
        (REDUCED, 1, 2),
        (REDUCED, 300, 3),
    ]
    for at, values in zip(places, tensors, strict=True):
        assert echo.get(at, values).tolist() == values.tolist()


def test_an_empty_tensor_is_done_at_once() -> None:
    echo = Echo()

    assert echo.start(0, 0, tag=3)

    assert take_completions(echo.arena, echo.ring) == [Completion(echo.at, REDUCED, 0, 3, 0)]
    assert echo.word(READY) == 0


def test_only_so_many_tensors_are_under_way() -> None:
    echo = Echo()
    at = echo.put(np.ones(1, np.float32))

    accepted = [echo.start(at, 1) for _ in range(MOST_TENSORS + 1)]

    assert accepted == [True] * MOST_TENSORS + [False]
    assert len(echo.run()) == MOST_TENSORS
    assert echo.start(at, 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"job": 0}, "job must be 1 to 255, got 0"),
        ({"lanes": 65}, r"lanes must be one of \[64, 256\], got 65"),
        ({"slots": 0}, "slots must be 1 to 32768, got 0"),
        ({"slots": 40000}, "slots must be 1 to 32768, got 40000"),
        ({"workers": 0}, "workers must be 1 to 1073741823, got 0"),
        ({"min_timeout_ps": 0}, "min_timeout_ps must be above 0, got 0"),
    ],
)
def test_bad_options_are_refused(wrong: dict[str, int], message: str) -> None:
    options = {"job": 1, "workers": 2, "slots": 4, "lanes": 64, "min_timeout_ps": 1} | wrong

    with pytest.raises(ConfigError, match=message):
        make_worker(Store(), host=3, ring=0, mac=1, address=1, **options)


class Fetched:
    """Notes the places that `fetching` has the processor fetch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.addresses: set[int] = set()
        monkeypatch.setattr(fetching, "prefetch", self.note)

    def note(self, array: np.ndarray, at: int) -> None:
        self.addresses.add(array.ctypes.data + at * array.itemsize)

    def lines(self, memory: np.ndarray) -> set[int]:
        """Return the numbers of the cache lines of registered memory that were fetched."""
        offsets = [address - memory.ctypes.data for address in self.addresses]
        return {offset // 64 for offset in offsets if 0 <= offset < memory.nbytes}


def lines_of_blocks(at: int, *blocks: int) -> set[int]:
    """64 lanes of four bytes are four cache lines."""
    return {at // 64 + 4 * block + line for block in blocks for line in range(4)}


def test_the_blocks_of_the_slot_that_sends_next_are_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    echo = Echo()
    at = echo.put(np.ones(6 * LANES, np.int32))
    assert echo.start(at, 6 * LANES, INT32)
    fetched = Fetched(monkeypatch)
    fetching.fetch_next(echo.arena, open_worker(echo.arena, echo.at))
    assert fetched.lines(echo.arena.memory) == lines_of_blocks(at, 0, 4)


def test_room_for_a_result_is_fetched_and_what_its_slot_sends_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    echo = Echo()
    at = echo.put(np.ones(6 * LANES, np.int32))
    assert echo.start(at, 6 * LANES, INT32)
    updates = echo.take_updates()
    fetched = Fetched(monkeypatch)
    packet = write_packet(echo.arena, result_of(updates[1]))
    fetching.fetch_for_result(echo.arena, echo.at, packet)
    assert fetched.lines(echo.arena.memory) == lines_of_blocks(at, 1, 5)


@given(st.binary(max_size=100))
def test_anything_may_be_expected(data: bytes) -> None:
    echo = Echo()
    packet = write_packet(echo.arena, data)
    before = echo.arena.words.copy()
    worker.fetch_ahead(echo.arena, echo.at, packet, 0)
    assert (echo.arena.words == before).all()
