"""Rank executors among themselves: any order of arrival gives the oracle's bits."""

from __future__ import annotations

import random
from collections import defaultdict, deque

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.oracle import execute, message_bytes
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer, chunk_ranges
from ringleaf.hosts.plan import plans
from ringleaf.hosts.rank import RankExecutor, Receive, Send
from ringleaf.hosts.staging import staging_bytes

HOST_TO_HOST = [name for name, algorithm in ALGORITHMS.items() if not algorithm.in_network]

AHEAD = 100  # bytes of receives posted ahead: some wait, some don't


class Mesh:
    """Delivers messages between executors at once but in random order, in order per pair.

    Memory is one flat tensor of bytes, as on the network.
    """

    def __init__(self, schedule: Schedule, tensors: list[torch.Tensor], seed: int) -> None:
        self.rng = random.Random(seed)
        elements = tensors[0].numel()
        parts = plans(schedule, elements)
        ranges = chunk_ranges(elements, schedule.chunks)
        staging = [staging_bytes(plan, ranges, 4, ahead_bytes=AHEAD) for plan in parts]
        stage = len(tensors) * elements * 4
        self.memory = torch.full((stage + sum(staging),), 0xFF, dtype=torch.uint8)
        self.executors = []
        at = 0
        for plan, tensor, room in zip(parts, tensors, staging, strict=True):
            view = self.view(at, elements, tensor.dtype)
            view.copy_(tensor)
            self.executors.append(
                RankExecutor(
                    plan,
                    view,
                    at,
                    schedule.chunks,
                    staging=stage,
                    view=self.view,
                    ahead_bytes=AHEAD,
                )
            )
            at += 4 * elements
            stage += room
        self.sends: dict[tuple[int, int, Op], deque[Send]] = defaultdict(deque)
        self.receives: dict[tuple[int, int, Op], deque[Receive]] = defaultdict(deque)
        self.acks: list[tuple[int, int]] = []
        self.sizes: dict[int, int] = {}  # of messages, by tag
        self.streams = {
            (stream.peer, rank, stream.op)
            for rank, plan in enumerate(parts)
            for stream in plan.receives
        }
        self.encodes = schedule.codec is not None

    def view(self, address: int, count: int, dtype: torch.dtype) -> torch.Tensor:
        return self.memory[address : address + count * dtype.itemsize].view(dtype)

    def _collect(self, rank: int) -> None:
        for request in self.executors[rank].take_requests():
            if isinstance(request, Send):
                self.sends[rank, *request.stream].append(request)
            elif isinstance(request, Receive):
                self.receives[request.stream.peer, rank, request.stream.op].append(request)

    def _deliver(self, src: int, dst: int, op: Op) -> None:
        send, receive = self.sends[src, dst, op].popleft(), self.receives[src, dst, op].popleft()
        size = send.size_bytes
        assert send.tag == receive.tag
        assert size <= receive.size_bytes if self.encodes else size == receive.size_bytes
        source, target = send.address, receive.address
        self.memory[target : target + size] = self.memory[source : source + size].clone()
        self.sizes[send.tag] = size
        self.acks.append((src, send.tag))
        self.executors[dst].received(receive.tag, size)
        self._collect(dst)

    def run(self) -> None:
        for rank, executor in enumerate(self.executors):
            executor.start()
            self._collect(rank)
        posted = {pair for pair, receives in self.receives.items() if receives}
        assert posted == self.streams, "a first message needs no credit"
        while True:
            ready = [pair for pair in self.sends if self.sends[pair] and self.receives[pair]]
            if self.acks and (not ready or self.rng.random() < 0.5):
                rank, tag = self.acks.pop(self.rng.randrange(len(self.acks)))
                self.executors[rank].sent(tag)
                self._collect(rank)
            elif ready:
                self._deliver(*self.rng.choice(ready))
            else:
                return


def check(schedule: Schedule, elements: int, seed: int, density: float = 1.0) -> None:
    generator = torch.Generator().manual_seed(seed)
    tensors = [torch.randn(elements, generator=generator) for _ in range(schedule.ranks)]
    for tensor in tensors:
        tensor[torch.rand(elements, generator=generator) >= density] = 0
    mesh = Mesh(schedule, tensors, seed)
    mesh.run()

    assert all(executor.done for executor in mesh.executors), f"{schedule} got stuck"
    results = mesh.view(0, schedule.ranks * elements, torch.int32).view(schedule.ranks, elements)
    wanted = torch.stack(execute(schedule, tensors))
    assert torch.equal(results, wanted.view(torch.int32))
    sizes = message_bytes(schedule, tensors)
    assert mesh.sizes == {tag: size for tag, size in enumerate(sizes) if tag in mesh.sizes}


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


def test_swap_within_a_step_reads_what_was_there_before() -> None:
    rows = (Transfer(0, 0, 1, 0, Op.COPY), Transfer(0, 1, 0, 0, Op.COPY))
    check(Schedule(Collective.ALLREDUCE, "swap", 2, 1, rows), 5, seed=1)


def test_exchange_within_a_step_adds_what_was_there_before() -> None:
    rows = (Transfer(0, 0, 1, 0, Op.REDUCE), Transfer(0, 1, 0, 0, Op.REDUCE))
    check(Schedule(Collective.ALLREDUCE, "recursive doubling", 2, 1, rows), 5, seed=1)


def test_sums_keep_the_order_of_rows() -> None:
    """Three reductions into one chunk: float addition tells one order from another."""
    rows = tuple(Transfer(0, src, 0, 0, Op.REDUCE) for src in (1, 2, 3))
    schedule = Schedule(Collective.REDUCE, "star", 4, 1, rows)
    for seed in range(20):
        check(schedule, 50, seed)
