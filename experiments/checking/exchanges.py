"""Carry the exchanges of programs (`collectives/compression/program.py`), and judge every one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.codec import Codec
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.compression.program import Ask, Post
from ringleaf.collectives.encodings.trimmed import TRIMMED
from ringleaf.collectives.oracle import message_bytes
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import ChunkRows, Columns, Op, Schedule
from ringleaf.core.tensors import FLOAT32, Array
from ringleaf.core.units import format_count
from ringleaf.experiments.checking.judge import Judge
from ringleaf.experiments.checking.verdict import Tolerance, Verdict
from ringleaf.experiments.setup.network import Network
from ringleaf.ina.registry import find_system
from ringleaf.networks.outcome import RunResult

ALLREDUCE = "ring"
"""The algorithm of programs' own allreduces, unless another one is given."""

ALGORITHM = {
    Collective.REDUCE_SCATTER: "reducescatter",
    Collective.ALL_GATHER: "allgather",
    Collective.ALL_TO_ALL: "alltoall",
    Collective.BROADCAST: "broadcast",
    Collective.REDUCE: "reduce",
}
"""The algorithms of exchanges that are no allreduce."""


@dataclass(frozen=True, slots=True)
class CarriedExchange:
    """An exchange that a network has carried.

    Attributes:
        schedule: The schedule that ran.
        values: The ranks' inputs, flat float32.
        outcome: Times, bytes and the like.
        verdict: Whether all ranks got what the exchange's definition says.
        slots: Packets that a worker of its aggregation system has in flight; None without one.
    """

    schedule: Schedule
    values: Sequence[Array]
    outcome: RunResult
    verdict: Verdict
    slots: int | None

    def data_bytes(self, ranks: int) -> npt.NDArray[np.int64]:
        """Return the contents' bytes that each rank sends, as the oracle counts them."""
        schedule, values = self.schedule, self.values
        sent = np.zeros(schedule.places, np.int64)
        if schedule.codec is None:
            rows = schedule.columns
            goes = rows.op != 2
            edges = np.arange(schedule.chunks + 1) * values[0].size // schedule.chunks
            sizes = 4 * (edges[rows.stop] - edges[rows.start])
            np.add.at(sent, rows.src[goes], sizes[goes])
        else:
            sizes = np.array(message_bytes(schedule, values), np.int64)
            np.add.at(sent, schedule.columns.src, sizes)
        return sent[:ranks]


class Exchanges:
    """Carries exchanges of `ranks` ranks, one after the other.

    Args:
        ranks: The number of ranks.
        build: Returns the schedule of an algorithm, for a size in bytes and a root.
        network: Returns the network for a system that aggregates, or for none.
        note: Called with each exchange when it is done.
        allreduce: The algorithm of allreduces.
        lanes: Values in a packet, on which the error of systems' sums depends.
    """

    def __init__(
        self,
        ranks: int,
        build: Callable[[str, int, int], Schedule],
        network: Callable[[str | None], Network],
        note: Callable[[CarriedExchange], None],
        *,
        allreduce: str = ALLREDUCE,
        lanes: int = 0,
    ) -> None:
        self._ranks, self._build, self._network, self._note = ranks, build, network, note
        self._allreduce, self._lanes = allreduce, lanes
        self._schedules: dict[object, tuple[Schedule, Judge]] = {}

    def __call__(self, asks: Sequence[Ask | Post]) -> list[Array | dict[int, Array]]:
        """Carry one exchange of all ranks; return what comes back to each."""
        if isinstance(asks[0], Post):
            return self._post([ask.messages for ask in asks if isinstance(ask, Post)])
        answers: list[Array | dict[int, Array]] = []
        answers += self._collect([ask for ask in asks if isinstance(ask, Ask)])
        return answers

    def _collect(self, asks: Sequence[Ask]) -> list[Array]:
        first, values = asks[0], [np.ascontiguousarray(ask.values) for ask in asks]
        name = ALGORITHM.get(first.collective, self._allreduce)
        algorithm = ALGORITHMS[name]
        key = name, values[0].nbytes, first.codec, first.root
        if key not in self._schedules:
            judge = Judge(first.collective, first.root)
            built = self._build(name, values[0].nbytes, first.root)
            schedule = coded(built, first.codec)
            judge.examine(schedule)
            self._schedules[key] = schedule, judge
        schedule, judge = self._schedules[key]
        network = self._network(name if algorithm.in_network else None)
        arrays, outcome = _run(network, schedule, values)
        verdict = judge.judge(schedule, values, arrays, tolerance_of(algorithm, self._lanes))
        self._note(CarriedExchange(schedule, values, outcome, verdict, network.slots))
        return [array.copy() for array in arrays]

    def _post(self, messages: Sequence[Mapping[int, Array]]) -> list[Array | dict[int, Array]]:
        """Carry messages as a schedule of their own: a chunk for each distance between ranks."""
        ranks, sent = self._ranks, [_others(each, rank) for rank, each in enumerate(messages)]
        room = max((m.size for each in sent for m in each.values()), default=0)
        if not room:
            return [{} for _ in range(ranks)]
        pairs = sorted(
            ((dst - src) % ranks, src, dst) for src, each in enumerate(sent) for dst in each
        )
        distances = sorted({distance for distance, _, _ in pairs})
        values = [np.zeros((len(distances), room), np.float32) for _ in range(ranks)]
        chunks = [distances.index(distance) for distance, _, _ in pairs]
        for chunk, (_, src, dst) in zip(chunks, pairs, strict=True):
            values[src][chunk, : sent[src][dst].size] = sent[src][dst]
        _, sources, targets = (np.array(column) for column in zip(*pairs, strict=True))
        rows = ChunkRows(Columns.transfers(0, sources, targets, np.array(chunks), Op.COPY))
        schedule = Schedule(
            Collective.ALL_TO_ALL, "post", ranks, len(distances), rows, codec=TRIMMED
        )
        network, flat = self._network(None), [each.reshape(-1) for each in values]
        arrays, outcome = _run(network, schedule, flat)
        received: list[Array | dict[int, Array]] = [{} for _ in range(ranks)]
        wrong = 0
        for chunk, (_, a, b) in zip(chunks, pairs, strict=True):
            got = arrays[b].reshape(-1, room)[chunk].copy()
            wrong += int((got.view(np.uint32) != values[a][chunk].view(np.uint32)).sum())
            received[b][a] = got
        differ = "differs" if wrong == 1 else "differ"
        reason = (
            f"{format_count(wrong, 'word')} of messages {differ} from what was sent"
            if wrong
            else ""
        )
        self._note(CarriedExchange(schedule, flat, outcome, Verdict(wrong, reason), network.slots))
        return received


def _run(
    network: Network, schedule: Schedule, values: Sequence[Array]
) -> tuple[list[Array], RunResult]:
    arrays = network.arrays(values[0].size, FLOAT32, schedule)
    for array, value in zip(arrays, values, strict=True):
        array[:] = value
    return arrays, network.run(schedule, arrays)


def _others(messages: Mapping[int, Array], rank: int) -> dict[int, Array]:
    """Return the messages that are not to oneself."""
    return {to: message for to, message in messages.items() if to != rank}


def tolerance_of(algorithm: Algorithm, lanes: int) -> Tolerance | None:
    """Return the allowed error of an aggregation system; None if hosts add."""
    if not algorithm.in_network:
        return None
    system = find_system(algorithm.name)
    return Tolerance(lambda parts: system.allowed_error(parts, lanes), block=lanes)


def coded(schedule: Schedule, codec: Codec | None) -> Schedule:
    """Return a schedule whose messages a codec writes, unless it has one of its own."""
    if codec is None or schedule.codec is not None or schedule.scratch:
        return schedule
    return replace(schedule, codec=codec)
