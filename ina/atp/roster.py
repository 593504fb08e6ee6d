"""The bits that name a job's workers in packets, and the switches that add those workers up.

A bitmap has 64 bits. In a job of up to 64 workers, worker w is bit w everywhere. In a larger one,
the workers that one switch adds up on their way to the parameter server's switch are a rack: each
of them is a bit of its rack, and the whole rack is a bit of the job. A worker that no switch adds
up before the server's does is itself a bit of the job. If there are not enough bits for all workers
of the server's own rack, those without form a rack that only the server adds up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import networkx as nx

from ringleaf.ina.atp.limits import BITS, check_racks
from ringleaf.topologies.detours import detours
from ringleaf.topologies.graph import attachment

OF_JOB = 0
"""The rack of bits that are of the job."""


class WorkerPlace(NamedTuple):
    """The bit of a worker, and the rack that it belongs to: `OF_JOB`, or from 1."""

    rack: int
    bit: int


@dataclass(frozen=True, slots=True)
class Adder:
    """One switch's part.

    Args:
        workers: Numbers of the workers whose gradients it adds up.
        rack: The rack that their bits belong to.
        complete: Their bits.
        whole: The same workers as bits of the job.
    """

    workers: tuple[int, ...]
    rack: int
    complete: int
    whole: int


@dataclass(frozen=True, slots=True)
class Roster:
    """The workers of a job as one parameter server, and the switches on the way to it, see them.

    Args:
        places: Each worker's bit, by its number.
        complete: All bits, by rack: those of the job first.
        adders: The switches that add up gradients, by name; not those that have only one worker.
        alone: Number of workers that only the server adds up.
    """

    places: tuple[WorkerPlace, ...]
    complete: tuple[int, ...]
    adders: dict[str, Adder]
    alone: int = 0


def flat_roster(racks: dict[str, list[int]], last: str, workers: int) -> Roster:
    """Return the roster of a job that has a bit for each worker.

    Args:
        racks: Switch -> the numbers of the workers that it adds up, before the server's does.
        last: The server's switch, which adds up all.
        workers: Number of workers.
    """
    adders = {}
    for switch, members in (racks | {last: list(range(workers))}).items():
        bits = sum(1 << number for number in members)
        adders[switch] = Adder(tuple(members), OF_JOB, bits, bits)
    places = tuple(WorkerPlace(OF_JOB, number) for number in range(workers))
    return Roster(places, (_bits(workers),), _of_several(adders))


def racks_roster(racks: dict[str, list[int]], last: str, workers: int, bits: int) -> Roster:
    """Return the roster of a job whose switches count racks; arguments as above.

    There are at most `bits` racks, and as many workers in each.
    """
    own = racks.get(last, [])
    others = {switch: members for switch, members in racks.items() if switch != last}
    large = {switch: members for switch, members in others.items() if len(members) > 1}
    single = [members[0] for members in others.values() if len(members) == 1]
    room = bits - len(others)
    alone = own[room - 1 :] if len(own) > room else []
    single += own[: len(own) - len(alone)]

    places: dict[int, WorkerPlace] = {}
    complete, adders = [0], {}
    for rack, (switch, members) in enumerate(large.items(), start=1):
        places |= {number: WorkerPlace(rack, bit) for bit, number in enumerate(members)}
        complete.append(_bits(len(members)))
        adders[switch] = Adder(tuple(members), rack, complete[rack], 1 << (rack - 1))
    if alone:
        places |= {number: WorkerPlace(len(complete), bit) for bit, number in enumerate(alone)}
        complete.append(_bits(len(alone)))
    places |= {
        number: WorkerPlace(OF_JOB, bit) for bit, number in enumerate(single, len(complete) - 1)
    }
    complete[OF_JOB] = _bits(len(complete) - 1 + len(single))
    added = complete[OF_JOB] & ~(1 << (len(large)) if alone else 0)
    adders[last] = Adder(tuple(sorted(set(range(workers)) - set(alone))), OF_JOB, added, added)
    return Roster(
        tuple(places[number] for number in range(workers)),
        tuple(complete),
        _of_several(adders),
        len(alone),
    )


def make_roster(
    graph: nx.Graph[str], workers: Sequence[str], server: str, bits: int = BITS
) -> Roster:
    """Return the roster of a job for one of its parameter servers.

    A worker's rack is that of its switch or, if its way to the server is a detour, of the detour's
    first switch.

    Args:
        graph: The topology.
        workers: The workers' hosts, by number.
        server: The server's host.
        bits: Bits of a bitmap that the job uses, at most 64.

    Raises:
        ConfigError: If a rack has more workers than bits, or if there are more racks.
    """
    ways, last = detours(graph), attachment(graph, server)
    racks: dict[str, list[int]] = {}
    for number, worker in enumerate(workers):
        detour = ways.get((worker, server))
        switch = detour.via[0] if detour and detour.via else attachment(graph, worker)
        racks.setdefault(switch, []).append(number)
    check_racks("atp", [len(members) for members in racks.values()], bits)
    if len(workers) <= bits:
        return flat_roster(racks, last, len(workers))
    return racks_roster(racks, last, len(workers), bits)


def _bits(count: int) -> int:
    return (1 << count) - 1


def _of_several(adders: dict[str, Adder]) -> dict[str, Adder]:
    return {switch: each for switch, each in adders.items() if len(each.workers) > 1}
