"""The parts of a machine, and the links between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from ringleaf.topologies.family import Counts
from ringleaf.topologies.graph import Link
from ringleaf.topologies.machine import Inside

Place = int | tuple[str, int]
"""A GPU's rank in its machine, or the kind and number of another part."""

GPU = "gpu"


@dataclass(frozen=True, slots=True)
class InnerSwitch:
    """A switch of a machine, besides those of its GPUs.

    Attributes:
        kind: The kind of part.
        number: Its number among those of its kind.
        gpus: The GPUs that are nearest to it, by rank, which tell its place in a drawing.
    """

    kind: str
    number: int
    gpus: tuple[int, ...]


def parts(inside: Inside) -> Iterator[InnerSwitch]:
    """Yield the parts besides GPUs, kind by kind."""
    gpus = range(inside.gpus)
    if inside.has_nvswitch:
        yield InnerSwitch("nvswitch", 0, tuple(gpus))
    counts = {"pcie": inside.pcie_switches, "cpu": inside.cpus, "nic": inside.nics}
    for kind, count in counts.items():
        for number in range(count):
            near = tuple(gpu for gpu in gpus if gpu * count // len(gpus) == number)
            yield InnerSwitch(kind, number, near)


def rows(inside: Inside) -> list[str]:
    """Return the kinds of switches from the lowest row of a drawing on."""
    kinds = list(dict.fromkeys(part.kind for part in parts(inside)))
    if not inside.has_nvlink:
        return kinds
    return [kinds[0], GPU, *kinds[1:]] if inside.has_nvswitch else [GPU, *kinds]


def tiers(inside: Inside) -> list[str]:
    """Return the kinds of switches by tier; GPUs are first, being next to hosts."""
    return sorted(rows(inside), key=lambda kind: kind != GPU)


def links(inside: Inside) -> Iterator[tuple[Place, Place, Link]]:
    """Yield all links but those of NICs to the network."""
    gpus, switches, cpus = inside.gpus, inside.pcie_switches, inside.cpus
    yield from _nvlinks(inside)
    for gpu in range(gpus):
        yield gpu, ("pcie", gpu * switches // gpus), inside.pcie()
    if cpus:
        for number in range(switches):
            yield ("pcie", number), ("cpu", number * cpus // switches), inside.pcie()
        for a, b in combinations(range(cpus), 2):
            yield ("cpu", a), ("cpu", b), inside.cpu()
    yield from _to_nics(inside)


def _nvlinks(inside: Inside) -> Iterator[tuple[Place, Place, Link]]:
    machine = inside.machine
    if inside.has_nvswitch:
        for gpu in range(inside.gpus):
            yield gpu, ("nvswitch", 0), inside.nvlink()
    rank = {gpu: number for number, gpu in enumerate(machine.order or range(inside.gpus))}
    for a, b, count in machine.mesh:
        yield rank[a], rank[b], inside.nvlink(count)


def _to_nics(inside: Inside) -> Iterator[tuple[Place, Place, Link]]:
    """Yield the links to NICs, which are at CPUs if data must go through the host's memory."""
    switches, cpus, nics = inside.pcie_switches, inside.cpus, inside.nics
    if not inside.gpudirect:
        for nic in range(nics):
            yield ("cpu", nic * cpus // nics), ("nic", nic), inside.pcie()
    elif cpus or nics > switches:
        for nic in range(nics):
            yield ("pcie", nic * switches // nics), ("nic", nic), inside.pcie()
    else:  # a NIC is at several switches, as nothing else joins these
        for number in range(switches):
            yield ("pcie", number), ("nic", number * nics // switches), inside.pcie()


def count_machines(counts: Counts, inside: Inside) -> Counts:
    """Return the size of a network in which each host of one of size `counts` is a machine."""
    own = inside.gpus if inside.has_nvlink else 0
    inner = own + sum(1 for _ in parts(inside))
    cables = own + sum(1 for _ in links(inside)) + inside.nics - 1
    rack, rest = divmod(inside.gpus, inside.pcie_switches)
    return Counts(
        counts.hosts * inside.gpus,
        counts.switches + counts.hosts * inner,
        counts.links + counts.hosts * cables,
        rack=1 if own else None if rest else rack,
    )
