"""NetReduce's worker a step at a time: messages, credits, buffers and what the NIC sees, by hand.

A packet has four lanes and a full message two packets, so 32 bytes. All runs as plain Python.
"""

from __future__ import annotations

import numpy as np
import pytest

from ringleaf.core.arena import Store
from ringleaf.core.packets import free_packet, make_pool, read_packet
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts import rc
from ringleaf.hosts.agent import (
    PROGRESS,
    READY,
    REFUSALS,
    RETRANSMISSIONS,
    TIMER_AT_PS,
    Completion,
    complete,
    make_ring,
    take_completions,
)
from ringleaf.hosts.rc import state as q
from ringleaf.hosts.rc.wire import HEAD_BYTES
from ringleaf.ina.netreduce import state as n
from ringleaf.ina.netreduce import worker as w
from ringleaf.ina.tensors import FLOAT32, INT32, LEFT, REDUCED, lay_out, post_tensor

BUFFER = 32


class Ring:
    """A worker whose queue pairs are connected to nobody."""

    def __init__(self) -> None:
        self.store = Store(1 << 18)
        make_pool(self.store, size=32, head_bytes=128, field_count=0, lane_count=0)
        self.ring = make_ring(self.store, 8)
        self.at = n.make_worker(
            self.store, host=0, ring=self.ring, job=18, lanes=4, window=4, min_timeout_ps=1000,
            rnr_wait_ps=500,
        )  # fmt: skip
        self.block = int(self.open().state[n.RC])
        ends = [
            rc.QpEnd(self.block, number, 1 - number, (1, 2), (3, 4), 0xC000) for number in (0, 1)
        ]
        n.join_ring(self.store, 18, ends)

    def open(self) -> n.NetReduceWorker:
        return n.open_worker(self.store.arena, self.at)

    def words(self, *columns: int) -> list[int]:
        return [int(self.open().state[column]) for column in columns]

    def memory(self, at: int, size: int) -> bytes:
        return bytes(self.store.arena.memory[at : at + size])

    def post(self, values: np.ndarray, target_at: int = -1, tag: int = 0) -> int:
        """Put a tensor behind the others, without sending anything; return where it is."""
        place = self.store.register_memory(values.nbytes)
        self.store.arena.memory[place : place + values.nbytes] = values.view(np.uint8)
        row = post_tensor(
            self.open().tensors, source_at=place, target_at=target_at if target_at >= 0 else place,
            count=values.size, dtype=INT32 if values.dtype == np.int32 else FLOAT32, tag=tag,
        )  # fmt: skip
        messages = -(-values.size // 8)
        lay_out(self.open().tensors, row, 0, messages, messages)
        return place

    def requests(self, number: int) -> list[list[int]]:
        """Return what a queue pair has been given to send, or to receive."""
        qp = q.open_qp(self.store.arena, self.block, number)
        rows, count = (qp.sends, q.SENDS_END) if number == 0 else (qp.receives, q.RECEIVES_END)
        found: list[list[int]] = rows.reshape(-1, q.REQUEST_WORDS)[: qp.state[count]].tolist()
        return found

    def report(self, kind: int, place: int) -> None:
        """Have the queue pairs report a message."""
        complete(self.store.arena, self.block, kind, 0, place, 0)


def test_a_worker_begins_without_messages() -> None:
    mine = Ring()
    assert mine.words(n.LANES, n.PACKETS, n.POSTED, n.SENT, n.RECEIVED) == [4, 2, 0, 0, 0]
    words = mine.store.arena.words
    assert words[mine.block + q.MTU] == 16
    assert words[mine.block + q.WINDOW] == 4
    for number in (0, 1):
        template = int(q.open_qp(mine.store.arena, mine.block, number).state[q.TEMPLATE_AT])
        head = bytes(mine.store.arena.bytes[template : template + HEAD_BYTES])
        assert head[36:38] == (0xBED2).to_bytes(2)  # of job 18
    assert w.buffer_bytes(mine.open()) == BUFFER


def test_the_next_element_is_looked_for_through_all_tensors() -> None:
    mine = Ring()
    for count in (0, 3, 0, 2):
        mine.post(np.zeros(count, np.int32))
    for offset, current, found in ((0, 1, [1, 0]), (2, 1, [1, 2]), (3, 1, [3, 0]), (2, 3, [4, 0])):
        mine.open().state[n.OFFSET], mine.open().state[n.CURRENT] = offset, current
        assert w.has_next(mine.open()) == (found[0] < 4)
        assert mine.words(n.CURRENT, n.OFFSET) == found
    assert not w.has_next(mine.open())


@pytest.mark.parametrize(
    ("values", "first", "count", "lanes"),
    [
        (np.array([1, -2, 3, 4, 5, 6], np.int32), 1, 5, [-2, 3, 4, 5, 6, 0, 0, 0]),
        (np.array([1, -2, 3, 4], np.int32), 0, 4, [1, -2, 3, 4]),
        (np.array([9, 1.5, -(2.0**-20)], np.float32), 1, 2, [3 << 19, -1, 0, 0]),
    ],
)
def test_a_buffer_is_filled_up_to_a_packets_end(
    values: np.ndarray, first: int, count: int, lanes: list[int]
) -> None:
    mine = Ring()
    mine.post(values)
    at = mine.store.register_memory(40)
    mine.store.arena.memory[at : at + 40] = 0x55
    size = w.fill(mine.store.arena, mine.open(), 0, first, count, at)
    assert size == 4 * len(lanes)
    assert mine.memory(at, size) == np.array(lanes, ">i4").tobytes()
    assert mine.memory(at + size, 8) == b"\x55" * 8


def test_messages_go_as_long_as_there_are_credits() -> None:
    """Tensors of 19 and 20 elements are messages of 8, 8 and 3, and of 8, 8 and 4."""
    mine = Ring()
    mine.post(np.arange(19, dtype=np.int32))
    mine.post(np.arange(20, dtype=np.int32))
    second = 10  # the second tensor's row
    w.post_messages(mine.store.arena, mine.open(), 70)

    assert mine.words(n.POSTED, n.CURRENT, n.OFFSET) == [4, 1, 8]
    messages = mine.open().messages.reshape(-1, n.MESSAGE_WORDS)
    assert messages.tolist() == [[0, 0, 8], [0, 8, 8], [0, 16, 3], [second, 0, 8]]
    sends_at, receives_at = mine.words(n.SENDS_AT, n.RECEIVES_AT)
    sizes = [BUFFER, BUFFER, 16, BUFFER]
    assert mine.requests(0) == [
        [sends_at + BUFFER * place, size, place, 2 * place if place < 3 else 5]
        for place, size in enumerate(sizes)
    ]
    assert mine.requests(1) == [
        [receives_at + BUFFER * place, size, place, rc.COPY] for place, size in enumerate(sizes)
    ]
    sent = np.frombuffer(mine.memory(sends_at, 3 * BUFFER), ">i4")
    assert sent[:20].tolist() == [*range(19), 0]

    for sent_count, received, posted in ((1, 0, 4), (0, 1, 4), (1, 1, 5), (2, 3, 6), (6, 6, 6)):
        mine.open().state[n.SENT], mine.open().state[n.RECEIVED] = sent_count, received
        w.post_messages(mine.store.arena, mine.open(), 80)
        assert mine.words(n.POSTED) == [posted]
    assert messages.tolist()[:2] == [[second, 8, 8], [second, 16, 4]]
    assert mine.requests(0)[4][:3] == [sends_at, BUFFER, 0]
    assert mine.requests(1)[5][:3] == [receives_at + BUFFER, 16, 1]


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_sums_are_written_to_their_place_in_the_target(kind: type) -> None:
    """The third message of 19 elements: three of them, in fixed point if they are floats."""
    mine = Ring()
    target = mine.store.register_memory(80)
    mine.store.arena.memory[target : target + 80] = 0
    mine.post(np.zeros(19, kind), target_at=target, tag=6)
    w.post_messages(mine.store.arena, mine.open(), 0)
    mine.open().tensors.rows[LEFT] = 2
    unit = 1 if kind is np.int32 else 2**20
    sums = np.array([5 * unit, -6 * unit, 7 * unit, 99], ">i4").view(np.uint8)
    buffer = mine.words(n.RECEIVES_AT)[0] + 2 * BUFFER
    mine.store.arena.memory[buffer : buffer + 16] = sums

    w.keep_sums(mine.store.arena, mine.at, mine.open(), 2, 30)
    found: np.ndarray = np.frombuffer(mine.memory(target, 80), kind)
    assert found.tolist() == [0] * 16 + [5, -6, 7, 0]
    assert take_completions(mine.store.arena, mine.ring) == []
    w.keep_sums(mine.store.arena, mine.at, mine.open(), 2, 40)
    assert take_completions(mine.store.arena, mine.ring) == [
        Completion(mine.at, REDUCED, 19, 6, 40)
    ]


def test_the_timeout_stays_that_of_a_card_and_doubles_twice_at_most() -> None:
    mine = Ring()
    sender, receiver = (q.open_qp(mine.store.arena, mine.block, number) for number in (0, 1))
    for unanswered, kept in ((0, 0), (1, 1), (2, 2), (3, 2)):
        for qp in (sender, receiver):
            qp.state[q.TIMEOUT_PS], qp.state[q.UNANSWERED] = 77, unanswered
        w.keep_timeout(mine.store.arena, mine.block)
        assert (sender.state[q.TIMEOUT_PS], sender.state[q.UNANSWERED]) == (2000, kept)
        assert (receiver.state[q.TIMEOUT_PS], receiver.state[q.UNANSWERED]) == (77, unanswered)


def test_reports_of_the_queue_pairs_are_taken_and_their_words_shown() -> None:
    """Of three messages two sums have come, and one has been acknowledged; others say nothing."""
    mine = Ring()
    place = mine.post(np.zeros(17, np.int32), tag=4)
    w.post_messages(mine.store.arena, mine.open(), 0)
    for row, value in ((1, 11), (2, 22)):
        at = mine.words(n.RECEIVES_AT)[0] + BUFFER * row
        mine.store.arena.memory[at : at + 4] = list(value.to_bytes(4))
    words = mine.store.arena.words
    for word, value in ((TIMER_AT_PS, 5), (PROGRESS, 6), (RETRANSMISSIONS, 7), (REFUSALS, 8)):
        words[mine.block + word] = value
    words[mine.block + READY] = 1
    sender = q.open_qp(mine.store.arena, mine.block, 0)
    sender.state[q.TIMEOUT_PS] = 77
    for kind, row in (
        (rc.RECEIVED, 1),
        (rc.SENT, 0),
        (rc.RECEIVED, 2),
        (rc.OVERRUN, 1),
        (rc.LEFT, 1),
    ):
        mine.report(kind, row)

    w.follow(mine.store.arena, mine.at, mine.open(), 90)

    assert mine.words(n.RECEIVED, n.SENT) == [2, 1]
    assert sender.state[q.TIMEOUT_PS] == 2000
    assert mine.open().tensors.rows[LEFT] == 1
    assert mine.memory(place + 32, 4) == (11).to_bytes(4, "little")
    assert mine.memory(place + 64, 4) == (22).to_bytes(4, "little")
    shown = READY, TIMER_AT_PS, PROGRESS, RETRANSMISSIONS, REFUSALS
    assert [int(words[mine.at + word]) for word in shown] == [1, 5, 6, 7, 8]
    w.follow(mine.store.arena, mine.at, mine.open(), 95)
    assert mine.words(n.RECEIVED, n.SENT) == [2, 1]  # each report is taken once
    words[mine.block + READY] = 0
    w.follow(mine.store.arena, mine.at, mine.open(), 95)
    assert words[mine.at + READY] == 0


@pytest.mark.parametrize(("count", "messages"), [(0, 0), (1, 1), (8, 1), (9, 2), (16, 2)])
def test_a_tensor_is_as_many_messages_as_it_fills(count: int, messages: int) -> None:
    mine = Ring()
    mine.post(np.zeros(count, np.int32), tag=2)
    mine.open().tensors.rows[LEFT] = 99
    w.begin_tensor(mine.store.arena, mine.at, 0, 60)
    assert mine.open().tensors.rows[LEFT] == messages
    assert mine.words(n.POSTED) == [messages]
    done = [] if messages else [Completion(mine.at, REDUCED, 0, 2, 60)]
    assert take_completions(mine.store.arena, mine.ring) == done


class Loop(Ring):
    """A ring of one worker: its packets come back to it after 100 ps, as those before it sent."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ps = 0
        self.sent: list[bytes] = []

    def shown(self, block: int) -> list[int]:
        words = READY, TIMER_AT_PS, PROGRESS, RETRANSMISSIONS, REFUSALS
        return [int(self.store.arena.words[block + word]) for word in words]

    def data(self) -> list[bytes]:
        """Return the packets with values that have been sent."""
        return [frame for frame in self.sent if len(frame) == 42 + 12 + 16 + 4]

    def step(self, lost: int = -1) -> None:
        """Send all that may be sent, and give it back but for the values of this number."""
        arena, flying = self.store.arena, []
        while arena.words[self.at + READY]:
            packet = w.transmit(arena, self.at, 0, self.now_ps)
            assert self.shown(self.at) == self.shown(self.block)
            if packet >= 0:
                flying.append(packet)
        self.now_ps += 100
        for packet in flying:
            before = len(self.data())
            self.sent.append(read_packet(arena, packet))
            if before == len(self.data()) or before != lost:
                w.receive(arena, self.at, packet, self.now_ps)
                assert self.shown(self.at) == self.shown(self.block)
            free_packet(arena, packet)


@pytest.mark.parametrize("lost", [-1, 0, 3])
def test_a_ring_of_one_gets_its_own_values(lost: int) -> None:
    """19 elements are three messages of 2, 2 and 1 packets; a lost one goes by timeout."""
    mine = Loop()
    tensor = np.arange(1, 20, dtype=np.int32)
    place = mine.post(tensor, tag=5)
    w.begin_tensor(mine.store.arena, mine.at, 0, 0)
    while not (done := take_completions(mine.store.arena, mine.ring)):
        mine.step(lost)
        if not mine.store.arena.words[mine.at + READY] and mine.words(n.RECEIVED) != [3]:
            timer_ps = mine.shown(mine.at)[1]
            assert timer_ps < FOREVER_PS
            mine.now_ps = timer_ps
            w.fire_timer(mine.store.arena, mine.at, 0, timer_ps)
            assert mine.shown(mine.at) == mine.shown(mine.block)
    assert [(each.kind, each.a, each.b) for each in done] == [(REDUCED, 19, 5)]
    assert mine.memory(place, 76) == tensor.tobytes()
    while mine.store.arena.words[mine.at + READY]:
        mine.step()
    assert mine.words(n.POSTED, n.SENT, n.RECEIVED) == [3, 3, 3]
    assert (len(mine.data()) > 5) == (lost >= 0)
    assert {frame[36:38] for frame in mine.sent} == {(0xBED2).to_bytes(2)}
