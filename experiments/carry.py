"""Carry a collective over a network: every packet of it, or with steps that repeat skipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ringleaf.collectives.schedule import Schedule
from ringleaf.experiments.data import Inputs, fill_all
from ringleaf.experiments.estimate import EACH_END, pays_to_lease
from ringleaf.experiments.network import Network
from ringleaf.experiments.spec.collective import CollectiveSpec
from ringleaf.tensors import Array
from ringleaf.threads import spread
from ringleaf.topologies.kinds import link_kinds
from ringleaf.units import serialize_ps

if TYPE_CHECKING:
    from ringleaf.networks.endpoints.leases import Leases
    from ringleaf.networks.outcome import RunResult

Tell = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Carried:
    """A collective that has run.

    Attributes:
        network: The network that carried it, not yet closed.
        arrays: The ranks' results.
        outcome: Times, bytes and the like.
        skipped: Share of its steps that were not simulated.
        error: What the time may be wrong by, because of that, as a share of it.
        how: In words, what was skipped, or why nothing was; empty if it was not asked for.
        leases: The leases that say where the results are; None: in `arrays`.
    """

    network: Network
    arrays: list[Array]
    outcome: RunResult
    skipped: float = 0.0
    error: float = 0.0
    how: str = ""
    leases: Leases | None = None


def carry(
    spec: CollectiveSpec,
    schedule: Schedule,
    inputs: Inputs,
    make: Callable[[], Network],
    tell: Tell | None,
) -> Carried:
    """Run a collective once; steps are skipped if that was asked for, and if they repeat.

    Args:
        spec: The experiment, which says whether there is data, and the tolerance.
        schedule: The collective's schedule.
        inputs: The ranks' inputs.
        make: Makes a network; called again if steps turn out not to take the same time.
        tell: Called with the packet-hops so far.
    """
    how = ""
    if spec.skip:
        found = _carry_ends(spec, schedule, inputs, make, tell)
        if isinstance(found, Carried):
            return found
        how = f"in full, as {found}"
    network = make()
    leased = _lease(spec, network, schedule, inputs, tell)
    if leased is not None:
        return replace(leased, how=how)
    arrays = _arrays(spec, network, schedule, inputs)
    return Carried(network, arrays, network.run(schedule, arrays, tell), how=how)


def _lease(
    spec: CollectiveSpec, network: Network, schedule: Schedule, inputs: Inputs, tell: Tell | None
) -> Carried | None:
    """Run a collective whose tensors are only in memory while they are needed, if that pays."""
    from ringleaf.networks.virtual import VirtualNetwork  # loads what simulates

    size_bytes = inputs.elements * inputs.dtype.itemsize
    if inputs.is_kept or not pays_to_lease(spec, schedule.ranks, schedule.chunks, size_bytes):
        return None
    if not isinstance(network, VirtualNetwork) or not network.can_lease(schedule):
        return None
    arrays = network.arrays(inputs.elements, inputs.dtype, schedule)
    outcome = network.run(schedule, arrays, tell, fill=inputs.fill)
    return Carried(network, arrays, outcome, leases=network.leases)


def _arrays(
    spec: CollectiveSpec, network: Network, schedule: Schedule, inputs: Inputs
) -> list[Array]:
    arrays = network.arrays(inputs.elements, inputs.dtype, schedule)
    if spec.has_data:
        fill_all(inputs, arrays)
    return arrays


def _carry_ends(
    spec: CollectiveSpec,
    schedule: Schedule,
    inputs: Inputs,
    make: Callable[[], Network],
    tell: Tell | None,
) -> Carried | str:
    """Simulate the first and the last steps; return why that can't be done, if so."""
    from ringleaf.networks import skipping  # loads what simulates
    from ringleaf.networks.virtual import VirtualNetwork

    if why := skipping.obstacle(schedule, inputs.elements, EACH_END):
        return why
    network = make()
    assert isinstance(network, VirtualNetwork), "only virtual time can skip"
    kinds = link_kinds(network.graph)
    if any(kind.loss for kind in kinds):
        return "links lose packets"
    slowest_bps = min(kind.rate_bps for kind in kinds)
    arrays = _arrays(spec, network, skipping.part(schedule, 0, EACH_END), inputs)

    def simulate(part: Schedule) -> RunResult:
        return network.run(part, arrays, tell, notes=2 * len(part.columns))

    found = skipping.run(
        schedule,
        arrays,
        spec.skip,
        simulate,
        spread,
        each_end=EACH_END,
        packet_ps=serialize_ps(spec.mtu_bytes, slowest_bps),
        has_data=spec.has_data,
    )
    if isinstance(found, str):
        network.close()
        return found
    outcome, skip = found
    return Carried(network, arrays, outcome, skip.steps / skip.of, skip.error, str(skip))
