"""Parts of ATP's servers, workers and packets' reader, a step at a time, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from atp_network import job_on
from lossy_network import Network, tree_of
from start import start_tensor

from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import AGENT_WORDS, TIMER_AT_PS
from ringleaf.hosts.fifo import FIFO_COUNT
from ringleaf.ina.atp import ledger, reading, state, worker
from ringleaf.ina.atp.control import AtpJob
from ringleaf.ina.atp.moving import AggregatorMover
from ringleaf.ina.atp.rebuilding import DeliveryRebuilder, has_results
from ringleaf.ina.atp.server import find_entry
from ringleaf.ina.atp.window import send_more
from ringleaf.ina.atp.wire import SEQUENCE_AT, VALUES_AT
from ringleaf.ina.flight import has_waiting, link_slot, pop_slot
from ringleaf.ina.holdings import Holding
from ringleaf.ina.rebuilding import Rounds
from ringleaf.ina.tensors import INT32
from ringleaf.ina.vote import reading as vote

WINDOW, ENTRIES = 8, 16


def network() -> Network:
    """One switch, two workers, and a parameter server."""
    graph = tree_of((3,))
    return Network(graph, [job_on(graph, window=WINDOW)])


def gradient(sequence: int) -> np.ndarray:
    head = np.zeros(VALUES_AT, np.uint8)
    head[SEQUENCE_AT : SEQUENCE_AT + 4] = list((sequence % 2**32).to_bytes(4))
    return head


@pytest.mark.parametrize(
    ("there", "sequence", "is_newer"),
    [
        (-1, 0, True),
        (-1, 2**32 - ENTRIES, True),  # nothing is there yet
        (0, ENTRIES, True),
        (0, -ENTRIES, False),
        (ENTRIES, 0, False),
        (2**32 - ENTRIES, 0, True),  # numbers wrap around
        (0, 3 << 29, True),
        (0, 2**31 - ENTRIES, True),
        (0, 2**31 + ENTRIES, False),  # less than half of all numbers behind
    ],
)
@pytest.mark.parametrize("entry", [0, 3])
def test_a_block_takes_its_entry_from_older_ones_alone(
    there: int, sequence: int, is_newer: bool, entry: int
) -> None:
    sequence += entry
    there = there + entry if there >= 0 else there
    used = network()
    (at,) = (agent.block for agent in used.parties[0].agents[2:])
    server = ledger.open_server(used.store.arena, at)
    assert server.state[ledger.ENTRIES] == ENTRIES
    rows = server.rows.reshape(ENTRIES, -1)
    rows[entry, ledger.SEQUENCE], rows[entry, ledger.IS_DONE] = there, 1

    found = find_entry(server, gradient(sequence))

    assert found == (entry if is_newer else -1)
    kept = sequence % 2**32 if is_newer else there
    assert rows[entry, [ledger.SEQUENCE, ledger.IS_DONE]].tolist() == [kept, not is_newer]
    assert find_entry(server, gradient(kept)) == entry  # the block itself changes nothing
    assert rows[entry, ledger.IS_DONE] == (not is_newer)


def test_blocks_take_their_positions_anew() -> None:
    """Nothing is left of the blocks that had them: they were raw, and of other tensors."""
    used = network()
    arena = used.store.arena
    at = used.parties[0].agents[0].block
    mine = state.open_worker(arena, at)
    mine.state[state.ALLOWED] = 3
    assert start_tensor(worker, arena, at, 0, 64, INT32, 1, now_ps=0)
    assert start_tensor(worker, arena, at, 0, 64 * 9, INT32, 2, now_ps=0)
    rows = mine.rows.reshape(WINDOW, -1)
    columns = [state.SEQUENCE, state.IS_RAW, state.TENSOR]
    second = rows[1, state.TENSOR]
    assert list(mine.flight.fifo.rows[:3]) == [0, 1, 2]  # they wait to be sent
    assert rows[:3, columns].tolist() == [[0, 0, 0], [1, 0, second], [2, 0, second]]

    mine.state[state.BASE] = mine.state[state.NEXT] = 8
    mine.state[state.ALLOWED] = 5
    rows[:, [state.IS_RAW, state.TENSOR]] = 1, 99
    send_more(mine)
    assert rows[:2, columns].tolist() == [[8, 0, second], [9, 0, second]]
    assert rows[2:, state.IS_RAW].tolist() == 6 * [1]  # the tensors end with block 9
    assert mine.state[state.NEXT] == 10


def test_a_server_proposes_from_the_first_of_other_aggregators_on() -> None:
    used = network()
    blocks = [agent.block for agent in used.parties[0].agents]
    (job,) = used.jobs
    assert isinstance(job, AtpJob)
    words = used.words
    own = blocks[2] + AGENT_WORDS
    words[own + ledger.PROPOSED] = 5
    mover = AggregatorMover(job, blocks[:2], blocks[2:], lambda _job: {}, Holding(0, 8), 8, 16, 1)
    mover.move(used.store.arena, Holding(3, 4))
    assert (words[own + ledger.AGGREGATORS], words[own + ledger.PROPOSED]) == (4, 0)
    proposals = words[words[own + ledger.PROPOSALS_AT] :][:4]
    assert sorted(proposals.tolist()) == [3, 4, 5, 6]
    for at in blocks[:2]:
        taken = state.open_worker(used.store.arena, at).rows.reshape(WINDOW, -1)
        assert set(taken[:, state.AGGREGATOR]) == {3, 4, 5, 6}


def has_result(used: Network, block: int) -> None:
    """Have the server have a block's result."""
    server = ledger.open_server(used.store.arena, used.parties[0].agents[2].block)
    row = server.rows.reshape(ENTRIES, -1)[block % ENTRIES]
    row[[ledger.SEQUENCE, ledger.IS_DONE]] = block % 2**32, 1


def rebuilder_of(used: Network) -> DeliveryRebuilder:
    *workers, server = (agent.block for agent in used.parties[0].agents)
    return DeliveryRebuilder([], lambda _: [], lambda _: {}, [*workers, server], [server])


def told_all(used: Network, rebuilder: DeliveryRebuilder) -> Rounds:
    rounds = [rebuilder.rounds(used.store.arena, at) for at in rebuilder.workers]
    least: Rounds = np.min(rounds, axis=0)
    return least


def test_a_server_repeats_the_results_that_some_worker_lacks() -> None:
    """By hand: one worker waits for block 2, which is lost, and has none behind it."""
    used = network()
    arena, rebuilder = used.store.arena, rebuilder_of(used)
    for at, base in zip(rebuilder.workers[:2], (5, 2), strict=True):
        state.open_worker(arena, at).state[[state.BASE, state.NEXT]] = base, 10
    for block in (1, 3, 4, 9):
        has_result(used, block)
    (at,) = rebuilder.servers
    rebuilder.go_on(arena, at, told_all(used, rebuilder), 70)
    server = ledger.open_server(arena, at)
    assert server.answers.rows[: server.answers.state[FIFO_COUNT]].tolist() == [3, 4, 9]
    rows = server.rows.reshape(ENTRIES, -1)
    assert rows[:10, ledger.ANSWERED_PS].tolist() == [0, 0, 0, 70, 70, 0, 0, 0, 0, 70]
    assert rebuilder.resumed_ps(arena, at) == arena.words[at + TIMER_AT_PS] == 70


@pytest.mark.parametrize("first", [0, 2**32 - 2])
def test_a_worker_asks_for_blocks_that_are_due_and_that_no_server_has(first: int) -> None:
    """By hand: of blocks 0 to 3 there is the third's result; the last one was sent just before."""
    used = network()
    arena, rebuilder = used.store.arena, rebuilder_of(used)
    for at in rebuilder.workers[:2]:
        mine = state.open_worker(arena, at)
        mine.state[[state.BASE, state.NEXT, state.END]] = first
        mine.state[state.ALLOWED] = 4
        assert start_tensor(worker, arena, at, 0, 64 * 4, INT32, 1, now_ps=0)
    round_trip_ps = int(mine.state[state.BASE_PS])
    for sent_ps in (0, 1, 2, 3):
        link_slot(mine.flight, pop_slot(mine.flight), 0, 0, sent_ps)
    has_result(used, first + 2)
    rebuilder.go_on(arena, at, told_all(used, rebuilder), 2 + round_trip_ps)
    assert [pop_slot(mine.flight), pop_slot(mine.flight)] == [first % WINDOW, (first + 1) % WINDOW]
    assert not has_waiting(mine.flight)
    assert rebuilder.resumed_ps(arena, at) == FOREVER_PS


def test_a_bit_for_each_block_of_a_server_says_whether_it_has_the_result() -> None:
    """By hand: of two servers' last blocks, 132 and 7, and those before, which are every other."""
    results = np.array([[132, 0b11, 0b10], [7, 1, 0]])
    blocks = {132: 1, 130: 1, 128: 0, 68: 0, 66: 1, 64: 0, 134: 0, 4: 0, 7: 1, 5: 0, 9: 0}
    assert has_results(results, np.array(list(blocks))).tolist() == [*map(bool, blocks.values())]


def test_a_worker_that_waits_for_nothing_has_gone_on_at_once() -> None:
    used = network()
    arena, rebuilder = used.store.arena, rebuilder_of(used)
    at = rebuilder.workers[0]
    rebuilder.go_on(arena, at, told_all(used, rebuilder), 70)
    assert rebuilder.resumed_ps(arena, at) == 70


@pytest.mark.parametrize(
    ("port", "is_ours"),
    [(0xA6FF, False), (0xA700, True), (0xA71F, True), (0xA720, False)],
)
def test_packets_are_read_at_16_ports_of_either_direction(port: int, is_ours: bool) -> None:
    packet = bytearray(VALUES_AT) + bytes.fromhex("00000001 ffffffff")
    packet[36:38] = port.to_bytes(2)
    packet[42] = 0x18  # a gradient, sent again
    packet[45] = 0x09  # integers, 64 lanes
    packet[46:50], packet[50:52] = (70_000).to_bytes(4), (300).to_bytes(2)
    told = "gradient of block 70000, aggregator 300, sent again"
    assert reading.read_packet(bytes(packet)) == (told if is_ours else "")
    assert reading.read_values(bytes(packet)) == ((1, -1) if is_ours else ())
    packet[42] = 0x24  # parameters, collided
    told = "parameters of block 70000, aggregator 300, collided"
    assert reading.read_packet(bytes(packet)) == (told if is_ours else "")
    for size in (0x0F, 0x01):  # no lanes; not integers
        packet[45] = size
        assert reading.read_values(bytes(packet)) == ()


@pytest.mark.parametrize(
    ("port", "is_ours"),
    [(0xBEFF, False), (0xBF00, True), (0xBF0F, True), (0xBF10, False)],
)
def test_votes_are_read_at_16_ports(port: int, is_ours: bool) -> None:
    packet = bytearray(52)
    packet[36:38] = port.to_bytes(2)
    packet[42:50] = bytes.fromhex("2701 00000005 8003")
    told = "result (exponent only) of block 5, slot 3 version 1"
    assert vote.read_packet(bytes(packet)) == (told if is_ours else "")
