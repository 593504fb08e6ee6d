"""ATP's agents a packet at a time: whole frames, and what state each leaves, by hand."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from frames import group_mac, udp_frame
from stepping import UNWRITTEN, SteppedAgent

from ringleaf.core.packets import write_packet
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
from ringleaf.ina import flight
from ringleaf.ina.atp import ledger, server, state, worker
from ringleaf.ina.atp.roster import Roster, WorkerPlace, flat_roster
from ringleaf.ina.atp.state import AtpAddress
from ringleaf.ina.congestion import ON_LOSS, ON_ROUND, Window
from ringleaf.ina.tensors import LEFT, REDUCED, TENSOR_WORDS, raise_priority

JOB, LANES, POSITIONS, RTT_PS = 5, 64, 2, 100
OWN = AtpAddress(0x020000000009, 0x0A000009)
PEERS = [AtpAddress(0x020000000001 + i, 0x0A000001 + i) for i in range(3)]
GROUP = 239 << 24 | 0xA7 << 16 | JOB << 8 | 1  # of server 1
TO_SERVERS, TO_WORKERS = 0xA700 + JOB, 0xA710 + JOB
RESEND, COLLISION, RAW, CONGESTED = 8, 4, 2, 1
GRADIENT, PARAMETER, REQUEST = 1, 2, 3
NO_PROPOSAL = 0xFFFF
INTEGERS, NONE = 8, 7


def header(
    message: int,
    sequence: int,
    *,
    flags: int = 0,
    size: int = 1,
    job: int = JOB,
    number: int = 1,
    aggregator: int = 0,
    proposal: int = 0,
    workers: int = 0,
    sender: int = 0,
    rack: int = 0,
) -> bytes:
    """Return ATP's header, as `wire` describes it."""
    size |= sender >> 8 << 4
    return struct.pack(
        ">BBBBIHHQBB", message << 4 | flags, job, number, size, sequence, aggregator, proposal,
        workers, sender & 255, rack,
    )  # fmt: skip


def lanes(*values: float, kind: str = ">i4") -> bytes:
    return np.array([*values, *[0] * (LANES - len(values))]).astype(kind).tobytes()


class Server(SteppedAgent):
    """The second of a job's servers, with entries for four blocks."""

    protocol = server

    def __init__(self, *, ecmp: bool = False, roster: Roster | None = None) -> None:
        super().__init__(head_bytes=320)
        self.at = ledger.make_server(
            self.store, host=0, ring=self.ring, job=JOB, number=1, own=OWN, workers=PEERS,
            roster=roster or flat_roster({}, "s0", 3), positions=POSITIONS, aggregators=8,
            lanes=LANES, rtt_ps=RTT_PS, ecmp=ecmp,
        )  # fmt: skip

    def gradient(
        self, sequence: int, sender: int, values: bytes, now_ps: int = 0, tos: int = 2, **more: int
    ) -> None:
        told = {"workers": 1 << sender, "sender": sender, "aggregator": 7, **more}
        self.take(header(GRADIENT, sequence, **told) + values, now_ps, tos)

    def entry(self, entry: int, *columns: int) -> list[int]:
        rows = ledger.open_server(self.store.arena, self.at).rows.reshape(-1, ledger.ENTRY_WORDS)
        return [int(rows[entry, column]) for column in columns]


def parameter(target: int, payload: bytes, tos: int = 2) -> bytes:
    """Return a server's frame to all workers, or to one from 1 on."""
    peer = PEERS[target - 1] if target else AtpAddress(group_mac(GROUP), GROUP)
    macs, addresses = (OWN.mac, peer.mac), (OWN.ipv4, peer.ipv4)
    return udp_frame(macs, addresses, (TO_SERVERS, TO_WORKERS), payload, tos)


def test_a_server_adds_three_gradients_and_answers_all() -> None:
    """Fixed point has 20 bits of fraction; the DSCP is that of the block's first gradient."""
    mine = Server()
    for sender, value in enumerate((1.5, -0.25, 2.0)):
        assert mine.word(READY) == 0
        mine.gradient(6, sender, lanes(value * 2**20, 3), tos=0xB8 if sender == 0 else 2)

    result = header(PARAMETER, 6, aggregator=7, proposal=NO_PROPOSAL, workers=7)
    values = lanes(3.25, 9 * 2.0**-20, kind=">f4")
    assert mine.word(READY) == 1
    assert mine.send() == parameter(0, result + values, tos=0xBA)
    assert (mine.word(READY), mine.send()) == (0, b"")
    assert mine.entry(2, ledger.SEQUENCE, ledger.IS_DONE) == [6, 1]


def test_integers_wrap_around() -> None:
    mine = Server()
    for sender, value in enumerate((2**31 - 2, 5, -1)):
        mine.gradient(3, sender, lanes(value, -7), size=1 | INTEGERS)
    told = {"aggregator": 7, "proposal": NO_PROPOSAL, "workers": 7}
    expected = header(PARAMETER, 3, size=1 | INTEGERS, **told) + lanes(2 - 2**31, -21)
    assert mine.send() == parameter(0, expected)


@pytest.mark.parametrize(
    ("more", "tos", "answer"),
    [
        ({"flags": COLLISION}, 2, {"proposal": None}),
        ({}, 3, {"flags": CONGESTED}),
        ({}, 1, {}),
        ({"rack": 0x80}, 2, {"rack": 0x80}),
        ({"proposal": 1}, 2, {"flags": COLLISION}),  # late, in a parameter
        ({"flags": CONGESTED}, 2, {}),  # a sum that a switch had sent before
    ],
)
def test_marks_of_gradients_come_back_in_the_result(
    more: dict[str, int], tos: int, answer: dict[str, Any]
) -> None:
    mine = Server()
    words = mine.store.arena.words
    own = mine.at + AGENT_WORDS
    words[own + ledger.PROPOSED] = 9
    for sender in (0, 2, 1):
        marked = sender == 2
        mine.gradient(0, sender, lanes(1), tos=tos if marked else 2, **(more if marked else {}))
    proposal = int(words[words[own + ledger.PROPOSALS_AT] + 1])  # the second of eight
    told = {"aggregator": 7, "proposal": NO_PROPOSAL, "workers": 7} | answer
    if told["proposal"] is None:
        told["proposal"] = proposal
    result = header(PARAMETER, 0, **told) + lanes(3 * 2.0**-20, kind=">f4")
    assert mine.send() == parameter(0, result)
    assert words[own + ledger.PROPOSED] == (10 if "proposal" in answer else 9)
    assert mine.entry(0, ledger.COLLIDED) == ["proposal" in answer]


def test_proposals_are_all_aggregators_shuffled_by_job_and_server() -> None:
    assert sorted(ledger.shuffled(5, 1, 8)) == list(range(8))
    orders = {tuple(ledger.shuffled(*told, 8)) for told in ((5, 1), (5, 2), (6, 1))}
    assert len(orders) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"message": PARAMETER},
        {"job": JOB + 1},
        {"number": 0},
        {"size": 3},
        {"sender": 3},
        {"sender": 256},
        {"rack": 1},
    ],
)
def test_gradients_for_others_change_nothing(wrong: dict[str, int]) -> None:
    mine = Server()
    told = {"message": GRADIENT, "workers": 1, **wrong}
    before = mine.store.arena.words[mine.at :].copy()
    mine.take(header(told.pop("message"), 0, **told) + lanes(1))
    assert (mine.store.arena.words[mine.at :] == before).all()


def test_a_gradient_must_be_whole() -> None:
    mine = Server()
    before = mine.store.arena.words[mine.at :].copy()
    mine.take(header(GRADIENT, 0, workers=1) + lanes(1)[:-1])
    assert (mine.store.arena.words[mine.at :] == before).all()
    mine.take(header(GRADIENT, 0, workers=1, sender=2) + lanes(1))
    assert mine.entry(0, ledger.SEQUENCE) == [0]


def test_a_sum_that_overflows_is_asked_for_as_it_is() -> None:
    """All are asked once; then raw values are added as float64, and those of a late one, too."""
    mine = Server()
    mine.gradient(1, 0, lanes(5))
    mine.gradient(1, 1, lanes(0, 2**31 - 1))  # as a switch leaves a saturated sum
    ask = {"size": NONE, "flags": RAW, "aggregator": 7, "proposal": NO_PROPOSAL}
    assert mine.send() == parameter(0, header(PARAMETER, 1, **ask))
    mine.gradient(1, 2, lanes(9))  # not raw, and no resend: it has the question before it
    assert mine.word(READY) == 0
    mine.gradient(1, 2, lanes(9), flags=RESEND)
    for message in (PARAMETER, REQUEST):
        assert mine.send() == parameter(3, header(message, 1, **_mended(ask)))
    values = [2.0**60, 1.0, -(2.0**60)]
    for sender, value in enumerate(values):
        mine.gradient(1, sender, lanes(value, kind=">f4"), flags=RAW)
    done = _mended({**ask, "size": 1, "workers": 7})
    result = header(PARAMETER, 1, **done) + lanes(0.0, kind=">f4")
    assert mine.send() == parameter(0, result)  # 2^60 + 1 is 2^60 in float64


def _mended(told: dict[str, int]) -> dict[str, int]:
    return {**told, "flags": told["flags"] | RESEND}


def test_a_raw_gradient_gives_up_the_sum_of_others() -> None:
    mine = Server()
    mine.gradient(0, 0, lanes(2**20))
    mine.gradient(0, 1, lanes(1e9, kind=">f4"), flags=RAW)
    told = {"aggregator": 7, "proposal": NO_PROPOSAL, "flags": RAW, "workers": 2}
    assert mine.send() == parameter(0, header(PARAMETER, 0, size=NONE, **told))
    mine.gradient(0, 2, lanes(0.5, kind=">f4"), flags=RAW)
    mine.gradient(0, 0, lanes(1.0, kind=">f4"), flags=RAW | RESEND)
    values = lanes(float(np.float32(1e9)) + 1.5, kind=">f4")
    result = header(PARAMETER, 0, **{**told, "workers": 7}) + values
    assert mine.send() == parameter(0, result)


def test_raw_integers_wrap_around_too() -> None:
    mine = Server()
    for sender in range(3):
        mine.gradient(0, sender, lanes(-(2**31)), flags=RAW, size=1 | INTEGERS)
    frames = mine.send_all()
    told = {"aggregator": 7, "proposal": NO_PROPOSAL, "flags": RAW, "workers": 7}
    values = lanes(-(2**31))  # three times -2^31 is -2^31 modulo 2^32
    expected = header(PARAMETER, 0, size=1 | INTEGERS, **told) + values
    assert frames == [parameter(0, expected)]  # the question is obsolete by now


@pytest.mark.parametrize("ecmp", [False, True])
def test_a_probe_asks_for_what_has_not_come(ecmp: bool) -> None:
    """With flows on several paths the second probe decides."""
    mine = Server(ecmp=ecmp)
    mine.gradient(2, 1, lanes(1))
    mine.gradient(2, 1, bytes(4 * LANES), flags=RESEND, workers=0)
    assert mine.word(READY) == 0  # its values are there
    for probe in range(1 + ecmp):
        assert (mine.word(READY), probe) == (0, probe)
        mine.gradient(2, 2, bytes(4 * LANES), flags=RESEND, workers=0)
    told = {"size": NONE, "aggregator": 7, "proposal": NO_PROPOSAL, "workers": 2}
    assert mine.send() == parameter(3, header(REQUEST, 2, flags=RESEND, **told))
    assert mine.entry(2, ledger.IS_MENDED) == [1]
    for sender in (0, 2):
        mine.gradient(2, sender, lanes(1))
    told |= {"size": 1, "workers": 7, "flags": RESEND}
    result = header(PARAMETER, 2, **told) + lanes(3 * 2.0**-20, kind=">f4")
    assert mine.send() == parameter(0, result)


@pytest.mark.parametrize(
    ("after_ps", "flags", "is_answered"),
    [(RTT_PS, RESEND, True), (RTT_PS - 1, RESEND, False), (RTT_PS, 0, False)],
)
def test_a_worker_that_asks_late_enough_gets_the_result_again(
    after_ps: int, flags: int, is_answered: bool
) -> None:
    mine = Server()
    for sender in range(3):
        mine.gradient(1, sender, lanes(1), now_ps=1000)
    mine.send()
    mine.gradient(1, 1, lanes(1), now_ps=1000 + after_ps, flags=flags)
    told = {"aggregator": 7, "proposal": NO_PROPOSAL, "workers": 7, "flags": RESEND}
    result = header(PARAMETER, 1, **told) + lanes(3 * 2.0**-20, kind=">f4")
    assert mine.send() == (parameter(2, result) if is_answered else b"")
    assert mine.entry(1, ledger.IS_MENDED) == [is_answered]


def test_answers_that_are_obsolete_are_skipped_and_those_without_room_forgotten() -> None:
    """Four entries and three workers: room for 19 answers."""
    mine = Server()
    for _ in range(30):
        mine.gradient(0, 1, bytes(4 * LANES), flags=RESEND, workers=0)
    told = {"size": NONE, "aggregator": 7, "proposal": NO_PROPOSAL, "flags": RESEND}
    assert mine.send_all() == [parameter(2, header(REQUEST, 0, **told))] * 19

    mine.gradient(0, 1, bytes(4 * LANES), flags=RESEND, workers=0)
    for sender in range(3):
        mine.gradient(0, sender, lanes(1))
    told |= {"size": 1, "workers": 7}
    result = header(PARAMETER, 0, **told) + lanes(3 * 2.0**-20, kind=">f4")
    assert mine.send() == parameter(0, result)

    mine.gradient(0, 1, lanes(1), now_ps=RTT_PS, flags=RESEND)
    mine.gradient(4, 0, lanes(1))  # the entry's next block
    assert (mine.send(), mine.word(READY)) == (b"", 0)


def test_a_block_begins_with_nothing_of_the_entrys_last_one() -> None:
    mine = Server()
    dirty = {"rack": 0x80, "proposal": 1, "flags": COLLISION | RESEND}
    mine.gradient(1, 1, lanes(100), tos=0xFF, **dirty)
    mine.gradient(1, 0, lanes(2**31 - 1), tos=0xFF, **dirty)
    mine.gradient(5, 1, lanes(3), aggregator=2, size=1 | INTEGERS)
    columns = [column for column in range(ledger.ENTRY_WORDS) if column != ledger.TOUCHED]
    expected = dict.fromkeys(columns, 0)
    expected |= {ledger.SEQUENCE: 5, ledger.INTEGERS: 8, ledger.AGGREGATOR: 2}
    expected[ledger.PROPOSAL] = NO_PROPOSAL
    assert mine.entry(1, *columns) == list(expected.values())
    mine.send_all()
    mine.gradient(5, 0, lanes(4), size=1 | INTEGERS)
    mine.gradient(5, 2, lanes(5), size=1 | INTEGERS)
    told = {"aggregator": 2, "proposal": NO_PROPOSAL, "workers": 7}
    assert mine.send() == parameter(0, header(PARAMETER, 5, size=9, **told) + lanes(12))


def test_a_probe_for_the_last_block_does_not_count_for_the_next_one() -> None:
    mine = Server(ecmp=True)
    for sequence in (1, 5, 9):
        for sender in (0, 2):
            mine.gradient(sequence, sender, bytes(4 * LANES), flags=RESEND, workers=0)
        assert mine.word(READY) == 0


class Worker(SteppedAgent):
    """Worker 258 of a job, with a window of four blocks and two servers."""

    protocol = worker
    servers = PEERS[:2]
    timeout_ps = 4000

    def __init__(self, first: int = 0, servers: int = 2) -> None:
        super().__init__(head_bytes=320)
        self.at = state.make_worker(
            self.store, host=0, ring=self.ring, job=JOB, number=258, own=OWN,
            servers=self.servers[:servers], places=[WorkerPlace(0, 63), WorkerPlace(2, 1)],
            aggregators=[40, 41, 42, 43], lanes=LANES, min_timeout_ps=1000,
            window=Window("still"), base_ps=500, first_sequence=first,
        )  # fmt: skip
        self.open().state[state.ALLOWED] = 4

    def open(self) -> state.AtpWorker:
        return state.open_worker(self.store.arena, self.at)

    def rows(self, *columns: int) -> list[list[int]]:
        rows = self.open().rows.reshape(-1, state.POSITION_WORDS)
        return [[int(row[column]) for column in columns] for row in rows]

    def words(self, *columns: int) -> list[int]:
        return [int(self.open().state[column]) for column in columns]

    def result(self, sequence: int, values: bytes, now_ps: int = 0, **more: Any) -> None:
        tos = more.pop("tos", 2)
        told = {"proposal": NO_PROPOSAL, "number": sequence % 2, **more}
        kind = told.pop("message", PARAMETER)
        self.take(header(kind, sequence, **told) + values, now_ps, tos)

    def gradient(self, sequence: int, values: bytes, tos: int = 2, **more: int) -> bytes:
        """Return the frame of a block as it must be."""
        server = sequence % 2
        told: dict[str, int] = {"number": server, "sender": 258, "aggregator": 40 + sequence % 4}
        told |= {"workers": (1 << 63, 2)[server], "rack": (0, 2)[server], **more}
        to = self.servers[server]
        macs, addresses = (OWN.mac, to.mac), (OWN.ipv4, to.ipv4)
        payload = header(GRADIENT, sequence % 2**32, **told) + values
        return udp_frame(macs, addresses, (TO_WORKERS, TO_SERVERS), payload, tos)


def test_a_workers_gradients_go_to_servers_in_turn() -> None:
    """Two and a half blocks: fixed point, zeros behind the end; then integers, more urgent."""
    mine = Worker()
    mine.start(np.arange(1, 161, dtype=np.float32))
    mine.start(np.array([-3], np.int32), priority=1)
    fixed = [
        lanes(*(v * 2**20 for v in range(1 + 64 * b, min(65 + 64 * b, 161)))) for b in range(3)
    ]
    assert mine.send_all(7) == [
        mine.gradient(0, fixed[0]),
        mine.gradient(1, fixed[1]),
        mine.gradient(2, fixed[2]),
        mine.gradient(3, lanes(-3), size=1 | INTEGERS, tos=0x22),
    ]
    assert mine.word(TIMER_AT_PS) == 7 + mine.timeout_ps
    assert mine.words(state.BASE, state.NEXT, state.END) == [0, 4, 4]
    assert mine.send() == b""


def test_the_first_block_may_have_any_number() -> None:
    first = 2**32 - 1
    mine = Worker(first=first)
    place = mine.start(np.array([7] * 65, np.int32))
    assert mine.send_all() == [
        mine.gradient(first, lanes(*[7] * 64), size=9),
        mine.gradient(first + 1, lanes(7), size=9),
    ]
    mine.result(0, lanes(14), now_ps=300)
    mine.result(first, lanes(*range(64)), now_ps=300)
    assert mine.read(place, np.zeros(65, np.int32)) == [*range(64), 14]
    assert mine.words(state.BASE, state.NEXT, state.ROUND_END) == [first + 2] * 3
    assert take_completions(mine.store.arena, mine.ring) == [
        Completion(mine.at, REDUCED, 65, 0, 300)
    ]


@pytest.mark.parametrize("fit", [2047.999, -2047.999])
def test_values_that_do_not_fit_go_as_they_are(fit: float) -> None:
    mine = Worker()
    values = np.array([fit] * 64 + [2048.0, 1.5], np.float32)
    mine.start(values)
    fixed = round(float(np.float32(fit)) * 2**20)
    assert mine.send_all() == [
        mine.gradient(0, lanes(*[fixed] * 64)),
        mine.gradient(1, lanes(2048.0, 1.5, kind=">f4"), flags=RAW),
    ]
    assert [row[0] for row in mine.rows(state.IS_RAW)] == [0, 1, 0, 0]


def test_a_probe_goes_before_a_resend_as_urgent_as_the_packet() -> None:
    """After a timeout the first asks for both; the server requests it, and it is sent again."""
    mine = Worker()
    mine.start(np.array([5] * 65, np.int32), priority=2)
    assert len(mine.send_all()) == 2
    raise_priority(mine.open().tensors, 6)
    worker.fire_timer(mine.store.arena, mine.at, 0, 3999)
    assert mine.word(READY) == 0
    worker.fire_timer(mine.store.arena, mine.at, 0, 4000)
    assert mine.word(READY) == 1
    probe = mine.gradient(0, bytes(256), size=9, flags=RESEND, workers=0, tos=0x42)
    assert mine.send_all(4000) == [probe]
    assert mine.word(RETRANSMISSIONS) == 0
    assert mine.word(TIMER_AT_PS) == 4000 + 8000  # doubled

    mine.result(0, b"", now_ps=8000, message=REQUEST, size=NONE)
    again = mine.gradient(0, lanes(*[5] * 64), size=9, flags=RESEND, tos=0xC2)
    asked = mine.gradient(1, bytes(256), size=9, flags=RESEND, workers=0, tos=0x42)
    assert mine.send_all(8000) == [again, asked]  # the other is overdue by now, too
    assert mine.word(RETRANSMISSIONS) == 1


def test_a_question_makes_a_block_raw_once() -> None:
    mine = Worker()
    mine.start(np.array([0.5], np.float32))
    mine.send_all()
    for _ in range(2):
        mine.result(0, b"", size=NONE, flags=RAW)
    raw = mine.gradient(0, lanes(0.5, kind=">f4"), flags=RAW | RESEND)
    assert mine.send_all() == [raw]
    mine.result(0, b"", size=NONE, flags=RAW)
    assert mine.send_all() == []
    mine.result(0, b"", size=NONE, message=REQUEST)
    assert mine.send_all() == [raw]


def test_a_request_for_raw_values_says_so() -> None:
    mine = Worker()
    mine.start(np.array([0.5], np.float32))
    mine.send_all()
    mine.result(0, b"", size=NONE, message=REQUEST, flags=RAW)
    assert mine.send_all() == [mine.gradient(0, lanes(0.5, kind=">f4"), flags=RAW | RESEND)]
    assert mine.word(RETRANSMISSIONS) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"job": JOB + 1},
        {"message": GRADIENT},
        {"sequence": 2},
        {"sequence": 2**32 - 1},
        {"values": lanes(1)[:-4]},
        {"size": 3, "values": b""},
    ],
)
def test_results_that_nobody_awaits_change_nothing(wrong: dict[str, Any]) -> None:
    mine = Worker()
    mine.start(np.ones(128, np.float32))
    mine.send_all()
    before = mine.store.arena.words[mine.at :].copy()
    told = {"sequence": 0, "values": lanes(1), **wrong}
    mine.result(told.pop("sequence"), told.pop("values"), now_ps=900, **told)
    assert (mine.store.arena.words[mine.at :] == before).all()
    payload = np.frombuffer(bytes(42) + header(PARAMETER, 2) + lanes(1), np.uint8)
    for size in (320, 63):
        assert worker.awaited_position(mine.open(), payload, size) == -1
    assert worker.awaited_position(mine.open(), payload[:64], 64) == -1


def test_an_empty_tensor_is_done_at_once() -> None:
    mine = Worker()
    mine.start(np.zeros(0, np.int32), tag=8)
    assert take_completions(mine.store.arena, mine.ring) == [Completion(mine.at, REDUCED, 0, 8, 0)]
    assert mine.words(state.END) == [0]
    assert mine.word(READY) == 0


def test_results_are_written_up_to_a_tensors_end() -> None:
    """Tensors of two blocks and of one: each is done when all of its blocks have results."""
    mine = Worker()
    places = [mine.start(np.ones(count, np.int32), tag=count) for count in (67, 2)]
    mine.send_all()
    mine.result(2, lanes(8, 9, 10), now_ps=70)
    assert take_completions(mine.store.arena, mine.ring) == [Completion(mine.at, REDUCED, 2, 2, 70)]
    mine.result(1, lanes(*range(64)))
    assert mine.open().tensors.rows[[LEFT, TENSOR_WORDS + LEFT]].tolist() == [1, 0]
    mine.result(0, lanes(*range(64)), now_ps=80)
    assert take_completions(mine.store.arena, mine.ring) == [
        Completion(mine.at, REDUCED, 67, 67, 80)
    ]
    assert mine.read(places[0], np.zeros(68, np.int32)) == [*range(64), 0, 1, 2, UNWRITTEN]
    assert mine.read(places[1], np.zeros(3, np.int32)) == [8, 9, UNWRITTEN]


def test_results_set_the_timeout_and_pass_what_was_sent_before() -> None:
    """By hand: a round trip of 600 ps, so 600 + 4 x 300 ps; three results pass block 0.

    The second of four in a round trip leaves a deviation of 300 - 300 / 16 ps, 281.
    """
    mine = Worker(servers=1)
    mine.start(np.ones(4 * 64, np.float32))
    mine.send_all()
    for sequence, timer_ps in ((3, 1800), (1, 1724), (2, FOREVER_PS)):
        mine.result(sequence, lanes(1), now_ps=600)
        assert mine.word(READY) == (sequence == 2)
        assert mine.word(TIMER_AT_PS) == timer_ps
    (probe,) = mine.send_all(600)
    assert probe[42] == GRADIENT << 4 | RESEND
    assert mine.word(TIMER_AT_PS) == 600 + 2 * 600
    mine.result(0, lanes(1), now_ps=700)
    assert (mine.word(TIMER_AT_PS), mine.word(READY)) == (FOREVER_PS, 0)


def plain(handler: Any) -> Any:
    """Return a handler as plain Python."""
    return getattr(handler, "function", handler)


def test_what_is_written_of_a_result_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of the tensor, of which a worker may have only some in memory."""
    noted: list[tuple[int, ...]] = []
    monkeypatch.setattr(worker, "note_written", lambda *told: noted.append(told[2:]))
    monkeypatch.setattr("ringleaf.ina.atp.window.tell_window", lambda *_: None)
    mine = Worker()
    mine.start(np.ones(67, np.int32))
    mine.send_all()
    for sequence in (1, 0):
        payload = header(PARAMETER, sequence, proposal=NO_PROPOSAL) + lanes(*range(64))
        packet = write_packet(mine.store.arena, udp_frame((1, 2), (3, 4), (5, 6), payload))
        plain(worker.receive)(mine.store.arena, mine.at, packet, 50)
    assert noted == [(0, 256, 12), (0, 0, 256)]


def test_a_window_is_told_of_requests_and_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, ...]] = []
    monkeypatch.setattr(worker, "tell_window", lambda _arena, *each: told.append(each))
    mine = Worker()
    mine.start(np.ones(64, np.float32))
    mine.send_all()
    control = mine.at + AGENT_WORDS + state.CONTROL
    fire = plain(worker.fire_timer)
    fire(mine.store.arena, mine.at, 0, 3999)
    assert told == []
    fire(mine.store.arena, mine.at, 0, 4000)
    assert told == [(control, ON_LOSS, 1, 4000)]
    assert mine.word(TIMER_AT_PS) == FOREVER_PS
    mine.send_all(4000)
    frame = udp_frame((1, 2), (3, 4), (5, 6), header(REQUEST, 0, size=NONE))
    packet = write_packet(mine.store.arena, frame)
    plain(worker.receive)(mine.store.arena, mine.at, packet, 4100)
    assert told[1:] == [(control, ON_LOSS, 0, 4100)]


def test_results_move_the_window_and_propose_aggregators() -> None:
    """Six blocks, a window of four: the result of block 1 says nothing before that of block 0."""
    mine = Worker()
    mine.start(np.ones(6 * 64, np.float32), tag=3)
    assert len(mine.send_all()) == 4
    mine.result(1, lanes(2.0, kind=">f4"), now_ps=500, proposal=9)
    assert mine.words(state.BASE, state.NEXT, state.ROUND_END) == [0, 4, 4]
    assert mine.word(PROGRESS) == 1
    assert mine.send_all() == []
    mine.result(1, lanes(7.0, kind=">f4"), now_ps=600)  # a duplicate
    assert mine.word(PROGRESS) == 1
    mine.result(0, lanes(4.0, kind=">f4"), now_ps=600, tos=3)
    assert mine.words(state.BASE, state.NEXT, state.ROUND_END) == [2, 6, 4]
    columns = state.SEQUENCE, state.AGGREGATOR
    assert mine.rows(*columns) == [[4, 40], [5, 9], [2, 42], [3, 43]]
    ones = lanes(*[2**20] * 64)
    assert mine.send_all(700) == [mine.gradient(4, ones), mine.gradient(5, ones, aggregator=9)]
    assert mine.open().state[flight.SMOOTHED_PS + state.FLIGHT] == 500 + 100 // 32


def test_a_round_ends_when_the_window_it_began_with_has_results(monkeypatch: Any) -> None:
    """Of four blocks the first result ends a round, and the next one ends with all four."""
    told = []

    def tell(arena: Any, at: int, event: int, argument: int, now_ps: int) -> None:
        told.append((at, event, argument, now_ps, *mine.words(state.MARKED)))

    monkeypatch.setattr("ringleaf.ina.atp.window.tell_window", tell)
    mine = Worker()
    mine.start(np.ones(4 * 64, np.float32))
    mine.open().state[state.ALLOWED] = 4
    mine.send_all()
    run = worker.take_result
    views = mine.open()
    for sequence, flags, tos in ((0, CONGESTED, 2), (2, 0, 3), (1, 0, 3), (3, 0, 2)):
        payload = header(PARAMETER, sequence, flags=flags, proposal=NO_PROPOSAL) + lanes(1)
        frame = udp_frame((1, 2), (3, 4), (5, 6), payload, tos)
        head = np.frombuffer(frame, np.uint8)
        run(mine.store.arena, mine.at, views, sequence, head, 50)
    control = mine.at + AGENT_WORDS + state.CONTROL
    assert told == [(control, ON_ROUND, 1, 50, 1), (control, ON_ROUND, 3, 50, 2)]
    assert mine.words(state.RESULTS, state.MARKED, state.ROUND_END) == [0, 0, 4]


def test_a_result_after_a_loss_is_no_round_trip() -> None:
    mine = Worker()
    mine.start(np.ones(128, np.float32))
    mine.send_all()
    mine.result(0, lanes(1), now_ps=300, flags=RESEND)
    assert mine.open().flight.state[flight.SMOOTHED_PS] == 0
    mine.result(1, lanes(1), now_ps=400)
    assert mine.open().flight.state[flight.SMOOTHED_PS] == 400
