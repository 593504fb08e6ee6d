"""Rank executors among themselves: any order of arrival gives the oracle's bits."""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from circulant_schedules import circulants
from hypothesis import given
from hypothesis import strategies as st
from layered_schedules import layered

import ringleaf.hosts.executor.layout as x
from ringleaf.collectives.oracle import execute, message_bytes
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core.arena import Store
from ringleaf.core.tensors import as_array, as_tensors
from ringleaf.hosts.executor import walk
from ringleaf.hosts.executor.build import Executors
from ringleaf.hosts.executor.claims import choose
from ringleaf.hosts.executor.parts import address_of, executor_of, flags_of, kind_of
from ringleaf.hosts.plan import RECEIVE, SEND, plans
from ringleaf.hosts.rc.landing import ASKED, COPY, FLOAT32, TARGET, land
from ringleaf.hosts.staging import lay_out
from ringleaf.networks.endpoints.memory import RegisteredMemory, aligned
from ringleaf.networks.endpoints.operation import CollectiveOperation

HOST_TO_HOST = [name for name, algorithm in ALGORITHMS.items() if not algorithm.in_network]

AHEAD = 100  # bytes of receives posted ahead: some wait, some don't


@dataclass(frozen=True, slots=True)
class Request:
    """A send or a receive that an executor asks for."""

    part: int
    address: int
    size_bytes: int
    message: int  # its number in the schedule


Pair = tuple[int, int, Op, int]  # sender, receiver, operation, channel


class Mesh:
    """Delivers messages between executors at once but in random order, in order per pair."""

    def __init__(self, schedule: Schedule, tensors: list[torch.Tensor], seed: int) -> None:
        self.rng = random.Random(seed)
        self.store = Store()
        memory = RegisteredMemory(self.store)
        elements, dtype = tensors[0].numel(), as_array(tensors[0]).dtype
        parts = plans(schedule, elements)
        staging = lay_out(parts, 4, ahead_bytes=AHEAD)
        sizes = staging.nodes.tolist()
        memory.make_room(len(tensors) * aligned(4 * elements) + sum(map(aligned, sizes)))
        arrays = [memory.take(elements, dtype) for _ in tensors]
        for array, values in zip(arrays, tensors, strict=True):
            array[:] = as_array(values)
        self.tensors = as_tensors(arrays)
        buffers = [memory.take_bytes(size) for size in sizes]
        self.executors = Executors(self.store, parts, staging, dtype)
        self.executors.prepare([memory.address(array) for array in arrays], buffers)
        self.operation = CollectiveOperation(
            self.store, memory, self.executors, arrays, group=0, channel=0, ranks=len(tensors)
        )
        self.sends: dict[Pair, deque[Request]] = defaultdict(deque)
        self.receives: dict[Pair, deque[Request]] = defaultdict(deque)
        self.acks: list[Request] = []
        self.sizes: dict[int, int] = {}  # of messages, by number
        self.landed: Counter[int] = Counter()  # messages by how they landed
        self.buffers = self.free_buffers()
        self.streams = {
            (stream.peer, rank, stream.op, stream.channel)
            for rank in range(parts.nodes)
            for stream in parts.streams_of(rank, RECEIVE)
        }
        self.channels = schedule.columns.channel
        self.encodes = schedule.codec is not None

    def free_buffers(self) -> set[int]:
        """The buffers that no message has; none is free twice."""
        words = self.store.arena.words
        found: list[int] = []
        for rank in range(self.executors.nodes):
            executor = self.executors.executor(rank)
            for number in range(words[executor + x.SENDS] + words[executor + x.RECEIVES]):
                stream = words[executor + x.STREAMS_AT] + number * x.STREAM_WORDS
                slots = np.arange(words[stream + x.FREE_BUFFERS]) * x.SLOT_WORDS
                found += words[words[stream + x.SLOTS_AT] + slots + x.FREE_BUFFER].tolist()
        assert len(set(found)) == len(found)
        return set(found)

    def _collect(self, rank: int) -> None:
        words = self.store.arena.words
        while part := walk.take_request(words, self.executors.executor(rank)):
            peer = int(words[words[part + x.STREAM] + x.PEER])
            op = Op.REDUCE if flags_of(words, part) & x.IS_REDUCED else Op.COPY
            channel = int(self.channels[words[part + x.MESSAGE]])
            size, message = int(words[part + x.SIZE_BYTES]), int(words[part + x.MESSAGE])
            request = Request(part, int(address_of(words, part)), size, message)
            if kind_of(words, part) == SEND:
                self.sends[rank, peer, op, channel].append(request)
            else:
                self.receives[peer, rank, op, channel].append(request)
        self.operation.check()

    def _deliver(self, pair: Pair) -> None:
        send, receive = self.sends[pair].popleft(), self.receives[pair].popleft()
        size, arena = send.size_bytes, self.store.arena
        assert send.message == receive.message
        assert size <= receive.size_bytes if self.encodes else size == receive.size_bytes
        how, address = int(walk.landing_of(arena.words, receive.part)), receive.address
        if how == ASKED:
            claim = int(arena.words[receive.part + x.HELD]) + x.CLAIM
            how = choose(arena, claim, 0, 0)
            address = int(arena.words[claim + TARGET])
        self.landed[how] += 1
        land(arena, how, address, arena.memory, send.address, size)
        self.sizes[send.message] = size
        self.acks.append(send)
        walk.received(self.store.arena, receive.part, size)
        self._collect(pair[1])

    def _acknowledge(self, send: Request) -> None:
        walk.sent(self.store.arena, send.part)
        words = self.store.arena.words
        self._collect(int(words[executor_of(words, send.part) + x.NODE]))

    @property
    def done(self) -> bool:
        return not any(map(self.operation.left_of, range(self.executors.nodes)))

    def run(self) -> None:
        for rank in range(self.executors.nodes):
            walk.start(self.store.arena, self.executors.executor(rank))
            self._collect(rank)
        posted = {pair for pair, receives in self.receives.items() if receives}
        assert posted == self.streams, "a first message needs no credit"
        while True:
            ready = [pair for pair in self.sends if self.sends[pair] and self.receives[pair]]
            if self.acks and (not ready or self.rng.random() < 0.5):
                self._acknowledge(self.acks.pop(self.rng.randrange(len(self.acks))))
            elif ready:
                self._deliver(self.rng.choice(ready))
            else:
                return


def check(schedule: Schedule, elements: int, seed: int, density: float = 1.0) -> None:
    generator = torch.Generator().manual_seed(seed)
    tensors = [torch.randn(elements, generator=generator) for _ in range(schedule.ranks)]
    for tensor in tensors:
        tensor[torch.rand(elements, generator=generator) >= density] = 0
    mesh = Mesh(schedule, tensors, seed)
    mesh.run()

    assert mesh.done, f"{schedule} got stuck"
    assert mesh.free_buffers() == mesh.buffers
    bits = [tensor.view(torch.int32) for tensor in mesh.tensors]
    wanted = [tensor.view(torch.int32) for tensor in execute(schedule, tensors)]
    assert all(map(torch.equal, bits, wanted))
    sizes = message_bytes(schedule, tensors)
    assert mesh.sizes == {number: sizes[number] for number in mesh.sizes}


@pytest.mark.parametrize("name", HOST_TO_HOST)
@given(
    ranks=st.integers(1, 12),
    elements=st.integers(0, 60),
    seed=st.integers(0, 1 << 20),
    density=st.sampled_from((1.0, 0.3, 0.0)),
)
def test_any_order_of_arrival_gives_the_oracle_s_bits(
    name: str, ranks: int, elements: int, seed: int, density: float
) -> None:
    check(ALGORITHMS[name].build(ranks, size_bytes=4 * elements), elements, seed, density)


@given(layered(), st.integers(0, 20), st.integers(0, 1 << 20))
def test_scratch_memory_and_channels_give_the_oracle_s_bits(
    schedule: Schedule, elements: int, seed: int
) -> None:
    check(schedule, elements, seed)


@given(circulants(), st.integers(0, 20), st.integers(0, 1 << 20))
def test_parts_that_are_one_node_s_turned_give_the_oracle_s_bits(
    schedule: Schedule, elements: int, seed: int
) -> None:
    check(schedule, elements, seed)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_in_scratch_memory_stays_while_messages_wait(seed: int) -> None:
    """Rank 0 keeps what it had, adds the others' to it in turn, and then what it had once more.

    Rank 1's second message may come before rank 2's. Scratch memory is as large as all buffers.
    """
    kept = 3  # rank 0's scratch memory
    rows = (
        *(Transfer(chunk, 0, kept, chunk, Op.COPY) for chunk in range(2)),
        *(Transfer(2 + turn, 1 + turn % 2, 0, turn == 0, Op.REDUCE) for turn in range(3)),
        *(Transfer(5 + chunk, kept, 0, chunk, Op.REDUCE) for chunk in range(2)),
    )
    check(Schedule(Collective.REDUCE, "twice", 3, 2, rows, scratch=1), 64, seed)


def test_swap_within_a_step_reads_what_was_there_before() -> None:
    rows = (Transfer(0, 0, 1, 0, Op.COPY), Transfer(0, 1, 0, 0, Op.COPY))
    check(Schedule(Collective.ALLREDUCE, "swap", 2, 1, rows), 5, seed=1)


def test_exchange_within_a_step_adds_what_was_there_before() -> None:
    rows = (Transfer(0, 0, 1, 0, Op.REDUCE), Transfer(0, 1, 0, 0, Op.REDUCE))
    check(Schedule(Collective.ALLREDUCE, "recursive doubling", 2, 1, rows), 5, seed=1)


def test_a_ring_s_sums_need_no_buffer() -> None:
    """A chunk's turn has come when its receive is posted: nothing writes to it before.

    Each of four ranks receives three chunks to add, and three to copy.
    """
    schedule = ALGORITHMS["ring"].build(4, size_bytes=160)
    mesh = Mesh(schedule, [torch.ones(40) for _ in range(4)], seed=1)
    mesh.run()
    assert mesh.landed == {FLOAT32: 12, COPY: 12}
    assert all(torch.equal(tensor, torch.full((40,), 4.0)) for tensor in mesh.tensors)


@pytest.mark.parametrize("ready", [True, False])
def test_a_message_whose_turn_has_come_when_it_begins_needs_no_buffer(ready: bool) -> None:
    """Rank 0 adds rank 1's message after rank 2's, which may come after that has begun."""
    rows = tuple(Transfer(step, 2 - step, 0, 0, Op.REDUCE) for step in range(2))
    mesh = Mesh(Schedule(Collective.REDUCE, "line", 3, 1, rows), [torch.ones(3)] * 3, seed=1)
    for rank in range(3):
        walk.start(mesh.store.arena, mesh.executors.executor(rank))
        mesh._collect(rank)
    for src in (2, 1) if ready else (1, 2):
        mesh._deliver((src, 0, Op.REDUCE, 0))
    assert mesh.landed == ({FLOAT32: 2} if ready else {COPY: 1, FLOAT32: 1})
    assert torch.equal(mesh.tensors[0], torch.full((3,), 3.0))


def test_sums_keep_the_order_of_rows() -> None:
    """Three reductions into one chunk: float addition tells one order from another."""
    rows = tuple(Transfer(0, src, 0, 0, Op.REDUCE) for src in (1, 2, 3))
    schedule = Schedule(Collective.REDUCE, "star", 4, 1, rows)
    for seed in range(20):
        check(schedule, 50, seed)


def test_an_operation_that_starts_again_begins_as_a_new_one() -> None:
    """Whatever it has left behind, and wherever its tensors and buffers are now."""
    parts = plans(ALGORITHMS["ring"].build(4), 64)
    staging = lay_out(parts, 4, ahead_bytes=0)
    places = [([4096 * node for node in range(4)], [0] * 4), ([64] * 4, [65536] * 4)]
    expected = []
    for place in places:
        store = Store()
        Executors(store, parts, staging, np.dtype(np.float32)).prepare(*place)
        expected.append(store.arena.words.tolist())
    store = Store()
    again = Executors(store, parts, staging, np.dtype(np.float32))

    for turn in (0, 0, 1, 1, 0):
        again.prepare(*places[turn])
        assert store.arena.words.tolist() == expected[turn]
        words = store.arena.words
        table = words[again.executor(0) : again.executor(4)].reshape(4, x.EXECUTOR_WORDS)
        table[:, [x.LEFT, x.FIRST_REQUEST, x.NOW_PS]] = -7
        for stream in table[:, x.STREAMS_AT].tolist():
            words[stream + np.array([x.UNDER_WAY, x.NEXT_PLANNED, x.FREE])] = -7
        words[again.at + x.LEFT_NODES] = 7
