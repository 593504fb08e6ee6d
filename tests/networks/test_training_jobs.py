"""Training jobs that share a network in virtual time, under each scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from ringleaf.collectives.oracle import execute
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Op, Schedule
from ringleaf.core.tensors import INT32, Array, as_arrays, as_tensors
from ringleaf.core.units import PS_PER_S, PS_PER_US
from ringleaf.hosts.congestion.control import GAIN, ONE_GAIN
from ringleaf.hosts.plan import PeerMessages
from ringleaf.hosts.rc.state import CONTROL_AT, RATE_BPS, open_qp
from ringleaf.hosts.schedulers.common.interface import Scheduler
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS
from ringleaf.hosts.training.job import TrainingJob
from ringleaf.hosts.training.model import Layer, Model
from ringleaf.hosts.training.pieces import GradientPiece, cut
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.endpoints.assignment import JobAssignment
from ringleaf.networks.endpoints.credit import credit_bytes, partition_bytes
from ringleaf.networks.endpoints.training import PieceTimes, TrainingDirector
from ringleaf.networks.groups import Group
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies import registry

LINE_BPS = 100 * 10**9
ELEMENTS = (500, 2000, 0, 30_000, 400, 10_000)
MODEL = Model(
    "small",
    "",
    "int32",
    tuple(
        Layer(f"layer{i}", elements, 2 * PS_PER_US, 4 * PS_PER_US)
        for i, elements in enumerate(ELEMENTS)
    ),
)


def value(rank: int, count: int) -> Array:
    return np.arange(count, dtype=np.int32) % 97 * np.int32(rank + 1)


class Ledger:
    """Compares each sum with the oracle's."""

    def __init__(self) -> None:
        self.checked: list[tuple[int, int]] = []

    def fill(self, job: int, piece: GradientPiece, arrays: Sequence[Array]) -> None:
        for rank, array in enumerate(arrays):
            array[:] = value(rank, array.size)

    def check(
        self, job: int, piece: GradientPiece, schedule: Schedule, arrays: Sequence[Array]
    ) -> None:
        given = as_tensors(value(rank, array.size) for rank, array in enumerate(arrays))
        wanted = as_arrays(execute(schedule, given))
        assert all(np.array_equal(a, b) for a, b in zip(arrays, wanted, strict=True))
        self.checked.append((job, piece.number))


def schedule_for(algorithm: str, elements: int) -> Schedule:
    return ALGORITHMS[algorithm].build(2, size_bytes=4 * elements)


def partition(network: VirtualNetwork, job: int, scheduler: Scheduler) -> int | None:
    """As it would be, but small beside the model's layers."""
    wanted = partition_bytes(network.endpoints.aggregators.get(job), scheduler)
    return wanted and min(wanted, 16_384)


def train(scheduler: str, algorithms: Sequence[str]) -> tuple[list[TrainingJob], Ledger]:
    director, ledger = direct(scheduler, algorithms)
    return [each.job for each in director.assignments], ledger


def direct(
    scheduler: str,
    algorithms: Sequence[str],
    slots: int | None = None,
    weights: Sequence[float] = (1.0, 1.0),
    *,
    spines: int = 2,
    rate_bps: int = LINE_BPS,
    iterations: int = 2,
    second_ps: int = PS_PER_US,
) -> tuple[TrainingDirector, Ledger]:
    """Two jobs, of which the second starts at `second_ps`, on two hosts each."""
    topo = f"leafspine,leaves=2,spines={spines},hosts=2"
    graph = registry.build(topo, rate_bps=rate_bps, delay_ps=10**6, hosts=None)
    found = SCHEDULERS[scheduler]
    groups = [
        Group(i + 1, tuple(f"h{2 * place + i}" for place in range(2)), (), SYSTEMS.get(algorithm))
        for i, algorithm in enumerate(algorithms)
    ]
    network = VirtualNetwork(graph, NetworkOptions(lanes=64, slots=slots), groups=groups)
    assignments = [
        JobAssignment(
            TrainingJob(
                MODEL,
                cut(MODEL, partition_bytes=partition(network, i, found)),
                iterations=iterations,
                start_ps=i * second_ps,
            ),
            partial(schedule_for, algorithm),
            INT32,
            weight=weights[i],
        )
        for i, algorithm in enumerate(algorithms)
    ]
    ledger = Ledger()
    director = TrainingDirector(network.endpoints, assignments, found, ledger)
    network.play(director)
    return director, ledger


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_two_jobs_reduce_all_their_gradients(scheduler: str) -> None:
    jobs, ledger = train(scheduler, ("ring", "switchml"))
    assert all(job.done for job in jobs)
    for number, job in enumerate(jobs):
        pieces = [piece for of, piece in ledger.checked if of == number]
        assert sorted(pieces) == sorted(2 * [piece.number for piece in job.pieces])


def test_the_same_jobs_take_the_same_time_again() -> None:
    histories = [train("tensorexpress", ("ring", "ring"))[0] for _ in range(2)]
    assert [job.history for job in histories[0]] == [job.history for job in histories[1]]


@pytest.mark.parametrize("algorithm", ["ring", "switchml", "atp", "omnireduce"])
def test_urgent_layers_wait_less_when_packets_carry_their_priority(algorithm: str) -> None:
    waits = {
        name: sum(direct(name, (algorithm,) * 2, 8)[0].assignments[0].job.history[1].waits_ps)
        for name in ("fifo", "tensorexpress")
    }
    assert waits["tensorexpress"] < waits["fifo"]


@pytest.mark.parametrize("algorithm", ["switchml", "atp", "omnireduce"])
def test_an_urgent_piece_waits_for_no_more_than_what_is_in_flight(algorithm: str) -> None:
    director, _ = direct("tensorexpress", (algorithm, algorithm), 8)
    credit = credit_bytes(director.endpoints.aggregators[0])
    assert credit is not None
    pieces = sorted(
        (each for each in director.stretches if each.job == 0), key=lambda each: each.start_ps
    )
    for place, piece in enumerate(pieces):
        under_way = [each for each in pieces[:place] if each.end_ps > piece.start_ps]
        assert not under_way or sum(map(size_of, [*under_way, piece])) <= credit
        for later in pieces[place + 1 :]:
            waited = later.ready_ps < piece.start_ps
            assert not waited or later.priority <= piece.priority, "a less urgent one went first"


def test_jpas_shortens_the_early_stage_at_the_cost_of_jobs_that_are_over_it() -> None:
    """What it promises, and all: the bytes are the same, so the mean of both stays as it is."""
    early, ended = {}, {}
    for name in ("fifo", "jpas"):
        director, _ = direct(
            name, ("ring", "ring"), spines=1, rate_bps=10**10, iterations=6, second_ps=10**9
        )
        old, new = (each.job for each in director.assignments)
        assert 2 <= sum(each.end_ps < new.start_ps for each in old.history) < 6
        early[name] = new.history[2].end_ps - new.start_ps
        ended[name] = [job.history[-1].end_ps - job.start_ps for job in (old, new)]
    assert early["jpas"] < 0.95 * early["fifo"]
    assert ended["jpas"][0] > ended["fifo"][0]
    assert sum(ended["jpas"]) == pytest.approx(sum(ended["fifo"]), rel=0.05)


@pytest.mark.parametrize("algorithm", ["ring", "ps"])
def test_weighted_shares_are_what_hosts_send_at(algorithm: str) -> None:
    """What a job takes more than another one is what its bytes take more at its rate."""
    director, _ = direct("shares", (algorithm, algorithm), weights=(3.0, 1.0))
    took_ps = []
    for job in range(2):
        largest = max((s for s in director.stretches if s.job == job), key=size_of)
        took_ps.append(largest.end_ps - largest.start_ps)
    at_line_rate_ps = size_of(largest) * 8 * PS_PER_S / LINE_BPS  # each host sends all once
    wanted_ps = at_line_rate_ps * (4 - 4 / 3)
    assert 0.9 * wanted_ps < took_ps[1] - took_ps[0] < 1.1 * wanted_ps  # headers; a last gap


def size_of(stretch: PieceTimes) -> int:
    return 4 * stretch.piece.elements


def test_rates_that_are_lifted_are_lifted_on_every_queue_pair() -> None:
    """Of a collective with two peers first, and then with one of them."""
    graph = registry.build("leafspine,leaves=1,spines=1,hosts=3", hosts=None)
    network = VirtualNetwork(graph, NetworkOptions())
    connections = network.endpoints.connections
    streams = [PeerMessages(peer, Op.REDUCE) for peer in (1, 2)]
    connections.connect(0, 0, [(0, stream) for stream in streams])

    connections.pace(0, 0, 0, streams, rate_bps=10**9)
    connections.pace(0, 0, 0, streams[:1], rate_bps=0)

    arena, at = network.store.arena, connections.agents[0]
    assert [int(open_qp(arena, at, number).state[RATE_BPS]) for number in range(2)] == [0, 0]


def test_a_gain_holds_for_the_channel_until_the_next() -> None:
    graph = registry.build("leafspine,leaves=1,spines=1,hosts=2", hosts=None)
    network = VirtualNetwork(graph, NetworkOptions(cc="dctcp"))
    connections = network.endpoints.connections
    for channel in range(2):
        connections.connect(0, channel, [(0, PeerMessages(1, Op.REDUCE))])
    arena, at = network.store.arena, connections.agents[0]
    blocks = [int(open_qp(arena, at, number).state[CONTROL_AT]) for number in range(2)]

    connections.encourage(0, 1, 0, 1.5)
    assert [int(arena.words[block + GAIN]) / ONE_GAIN for block in blocks] == [1.0, 1.5]
    connections.encourage(0, 1, 0, 1.0)
    assert [int(arena.words[block + GAIN]) / ONE_GAIN for block in blocks] == [1.0, 1.0]
