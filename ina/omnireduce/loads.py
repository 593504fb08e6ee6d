"""The least bytes that OmniReduce sends over each link."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES
from ringleaf.ina.loads import Aggregation, Demand
from ringleaf.ina.omnireduce.wire import BLOCK, BLOCK_BYTES, values_at
from ringleaf.topologies.ways import Loads, PlannedFlows, TopologyRoutes


def demand(ways: TopologyRoutes, what: Aggregation) -> Demand:
    """Return OmniReduce's demand: workers send blocks to aggregators, and get all sums.

    A slot has a packet from and to each worker in every round, whether it holds blocks or not.
    """
    columns = what.lanes // BLOCK
    head_bytes = values_at(columns) + LINE_OVERHEAD_BYTES
    places = what.servers or what.members
    dealt = _dealt(what, columns, len(places))
    loads, chain_ps = Loads(ways.links), 0
    flows: list[tuple[int, int, int, int, int]] = []
    for number, place in enumerate(places):
        rounds = dealt.rounds[number]
        if not rounds:
            continue
        there_ps = {rank: _transit_ps(ways, rank, place, head_bytes) for rank in what.members}
        back_ps = {rank: _transit_ps(ways, place, rank, head_bytes) for rank in what.members}
        up_ps, down_ps = max(there_ps.values()), max(back_ps.values())
        chain_ps = max(chain_ps, up_ps + down_ps)
        size_bytes = rounds * head_bytes + dealt.summed[number] * BLOCK_BYTES
        for rank, blocks in zip(what.members, dealt.filled[number], strict=True):
            flows.append((rank, place, rounds * head_bytes + blocks * BLOCK_BYTES, 0, down_ps))
            flows.append((place, rank, size_bytes, up_ps, 0))
    ways.add_flows(loads, PlannedFlows.of(flows))
    return Demand(chain_ps, loads)


def _transit_ps(ways: TopologyRoutes, src: int, dst: int, packet_bytes: int) -> int:
    return ways.way(src, dst).alone_ps(packet_bytes, packet_bytes, packet_bytes)


@dataclass(frozen=True, slots=True)
class _Dealt:
    """The work of each of OmniReduce's aggregators."""

    rounds: list[int]  # of all its slots
    filled: list[list[int]]  # blocks from each worker that are not zero
    summed: list[int]  # blocks that any worker has


def _dealt(what: Aggregation, columns: int, aggregators: int) -> _Dealt:
    """Deal blocks to slots by columns, and slots to aggregators, as OmniReduce's workers do.

    A slot takes a round for each block of its fullest column; the first one of a column counts
    even if it is zero everywhere.
    """
    blocks = -(-what.elements // BLOCK)
    slots = what.slots or aggregators
    positions = max(-(-blocks // (slots * columns)), 1)
    places = np.arange(positions * slots * columns) // columns % slots % aggregators
    masks = [_filled(what, worker, blocks, places.size) for worker in range(len(what.members))]
    anywhere = np.logical_or.reduce(masks)
    counts = anywhere.reshape(positions, slots, columns).sum(axis=0)
    exists = np.arange(slots * columns).reshape(slots, columns) < blocks
    counts += exists & ~anywhere.reshape(positions, slots, columns)[0]
    rounds = np.zeros(aggregators, np.int64)
    np.add.at(rounds, np.arange(slots) % aggregators, counts.max(axis=1))
    by_worker = [np.bincount(places[filled], minlength=aggregators) for filled in masks]
    summed = np.bincount(places[anywhere], minlength=aggregators)
    return _Dealt(rounds.tolist(), np.transpose(by_worker).tolist(), summed.tolist())


def _filled(what: Aggregation, worker: int, blocks: int, room: int) -> npt.NDArray[np.bool_]:
    """Return a mask of a worker's blocks that are not zero, as long as there is room for."""
    filled = np.zeros(room, np.bool_)
    if what.inputs is None:
        filled[:blocks] = True
        return filled
    bits = np.zeros(blocks * BLOCK, np.int32)
    bits[: what.elements] = what.inputs[worker].view(np.int32)
    filled[:blocks] = bits.reshape(-1, BLOCK).any(axis=1)
    return filled
