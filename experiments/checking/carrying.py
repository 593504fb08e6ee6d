"""Carry a collective over a network: every packet of it, or with what repeats skipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Schedule
from ringleaf.core.tensors import Array
from ringleaf.core.threads import spread
from ringleaf.core.units import serialize_ps
from ringleaf.experiments.checking.data import Noise, RankInputs, fill_all
from ringleaf.experiments.estimates.estimate import EACH_END, ROUND, pays_to_lease, tolerance_of
from ringleaf.experiments.setup.network import Network
from ringleaf.experiments.spec.choices import FLOW
from ringleaf.ina.registry import find_system
from ringleaf.topologies.kinds import LinkKind, link_kinds

if TYPE_CHECKING:
    from ringleaf.experiments.workloads.collective.spec import CollectiveSpec
    from ringleaf.networks.endpoints.leases import Leases
    from ringleaf.networks.flow.network import FlowNetwork
    from ringleaf.networks.outcome import RunResult
    from ringleaf.networks.virtual import VirtualNetwork

    Simulated = VirtualNetwork | FlowNetwork

Tell = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class CarriedCollective:
    """A collective that has run.

    Attributes:
        network: The network that carried it, not yet closed.
        arrays: The ranks' results.
        outcome: Times, bytes and the like.
        skipped: Share of its steps, or of its tensors' elements, that were not simulated.
        error: What the time may be wrong by, because of that, as a share of it.
        how: In words, what was skipped, or why nothing was; empty if it was not asked for.
        leases: The leases that say where the results are; None: in `arrays`.
        inputs: The inputs, if smaller tensors ran; None: those that were asked for.
    """

    network: Network
    arrays: list[Array]
    outcome: RunResult
    skipped: float = 0.0
    error: float = 0.0
    how: str = ""
    leases: Leases | None = None
    inputs: RankInputs | None = None


def carry(
    spec: CollectiveSpec,
    schedule: Schedule,
    inputs: RankInputs,
    make: Callable[[], Network],
    tell: Tell | None,
    until_ps: int | None = None,
) -> CarriedCollective:
    """Run a collective once; what repeats is skipped if that was asked for: steps, or elements.

    Args:
        spec: The experiment, which says whether there is data, and the tolerance.
        schedule: The collective's schedule.
        inputs: The ranks' inputs.
        make: Makes a network; called again for smaller tensors, and if nothing can be skipped.
        tell: Called with the packet-hops so far.
        until_ps: When ranks that are not done give up, by the run's clock; None: never.
    """
    how = ""
    tolerance = _tolerance(spec, schedule, inputs)
    if tolerance:
        is_summed = schedule.groups and not inputs.is_kept
        skip = _carry_less if is_summed else _carry_ends
        carried = skip(spec, tolerance, schedule, inputs, make, tell)
        is_asked = spec.skip is not None
        if isinstance(carried, CarriedCollective):
            return carried if is_asked else replace(carried, how=f"{carried.how} ({_ALL})")
        how = f"in full, as {carried}" if is_asked else ""
    network = make()
    leased = _lease(spec, network, schedule, inputs, tell, until_ps)
    if leased is not None:
        return replace(leased, how=how)
    arrays = _arrays(spec, network, schedule, inputs)
    outcome = network.run(schedule, arrays, tell, until_ps=until_ps)
    return CarriedCollective(network, arrays, outcome, how=how)


_ALL = "--skip 0% carries all"


def _tolerance(spec: CollectiveSpec, schedule: Schedule, inputs: RankInputs) -> float:
    """Return what the time may be wrong by because of what is skipped, as a share."""
    if schedule.algorithm not in ROUND:
        return spec.skip or 0.0
    size_bytes = inputs.elements * inputs.dtype.itemsize
    return tolerance_of(spec, ALGORITHMS[schedule.algorithm], schedule.ranks, size_bytes)


def _lease(
    spec: CollectiveSpec,
    network: Network,
    schedule: Schedule,
    inputs: RankInputs,
    tell: Tell | None,
    until_ps: int | None,
) -> CarriedCollective | None:
    """Run a collective whose tensors are only in memory while they are needed, if that pays."""
    from ringleaf.networks.virtual import VirtualNetwork  # loads what simulates

    size_bytes = inputs.elements * inputs.dtype.itemsize
    if inputs.is_kept or not pays_to_lease(spec, schedule.ranks, schedule.chunks, size_bytes):
        return None
    if not isinstance(network, VirtualNetwork) or not network.can_lease(schedule):
        return None
    arrays = network.arrays(inputs.elements, inputs.dtype, schedule)
    outcome = network.run(schedule, arrays, tell, fill=inputs.fill, until_ps=until_ps)
    return CarriedCollective(network, arrays, outcome, leases=network.leases)


def _arrays(
    spec: CollectiveSpec, network: Network, schedule: Schedule, inputs: RankInputs
) -> list[Array]:
    arrays = network.arrays(inputs.elements, inputs.dtype, schedule)
    if spec.has_data:
        fill_all(inputs, arrays)
    return arrays


def _carry_ends(
    spec: CollectiveSpec,
    tolerance: float,
    schedule: Schedule,
    inputs: RankInputs,
    make: Callable[[], Network],
    tell: Tell | None,
) -> CarriedCollective | str:
    """Simulate the first and the last steps; return why that can't be done, if so."""
    from ringleaf.networks import skipping  # loads what simulates

    if why := skipping.obstacle(schedule, inputs.elements, EACH_END):
        return why
    network = cast("Simulated", make())
    kinds = link_kinds(network.graph)
    if why := _disturbed(network, kinds):
        return why
    arrays = _arrays(spec, network, skipping.part(schedule, 0, EACH_END), inputs)

    def simulate(part: Schedule) -> RunResult:
        return network.run(part, arrays, tell, notes=2 * part.as_rows.messages)

    attempt = skipping.run(
        schedule,
        arrays,
        tolerance,
        simulate,
        spread,
        each_end=EACH_END,
        packet_ps=_packet_ps(spec, kinds),
        has_data=spec.has_data,
    )
    if isinstance(attempt, str):
        network.close()
        return attempt
    outcome, skip = attempt
    return CarriedCollective(network, arrays, outcome, skip.steps / skip.of, skip.error, str(skip))


_LOSSES = "links lose packets or fail"


def _virtual(network: Network) -> VirtualNetwork:
    from ringleaf.networks.virtual import VirtualNetwork  # loads what simulates

    assert isinstance(network, VirtualNetwork), "only virtual time can skip"
    return network


def _disturbed(network: Simulated, kinds: Sequence[LinkKind]) -> str:
    """Return why what a network does need not recur; "": nothing disturbs it."""
    if network.options.circuits:
        return "circuits change"
    if network.options.faults or any(kind.loss for kind in kinds):
        return _LOSSES
    return ""


def _packet_ps(spec: CollectiveSpec, kinds: Sequence[LinkKind]) -> int:
    """Return the time of a packet on the slowest link."""
    return serialize_ps(spec.mtu_bytes, min(kind.rate_bps for kind in kinds))


def _carry_less(
    spec: CollectiveSpec,
    tolerance: float,
    schedule: Schedule,
    inputs: RankInputs,
    make: Callable[[], Network],
    tell: Tell | None,
) -> CarriedCollective | str:
    """Have switches add up smaller tensors; return why that can't be done, if so."""
    from ringleaf.networks import stretching  # loads what simulates

    if find_system(schedule.algorithm).has_windows:
        return "its workers' windows change with congestion"
    if spec.net == FLOW:
        return "a flow takes no longer to compute if it is larger"
    network = _virtual(make())
    kinds = link_kinds(network.graph)
    if why := _disturbed(network, kinds):
        return why
    last: CarriedCollective | None = None
    hops = 0

    def tell_all(more: int) -> None:
        if tell is not None:
            tell(hops + more)

    def simulate(elements: int) -> RunResult:
        nonlocal network, last, hops
        if last is not None:
            network.close()
            last = None  # its memory may be another network's
            network = _virtual(make())
        fewer = Noise(spec.seed, inputs.ranks, elements, inputs.dtype)
        arrays = _arrays(spec, network, schedule, fewer)
        outcome = network.run(schedule, arrays, tell_all)
        last = CarriedCollective(network, arrays, outcome, inputs=fewer)
        hops += outcome.packet_hops
        return outcome

    attempt = stretching.run(
        inputs.elements,
        tolerance,
        simulate,
        least=schedule.chunks * spec.lanes * (network.slots or 1),
        packet_ps=_packet_ps(spec, kinds),
    )
    if isinstance(attempt, str):
        network.close()
        return attempt
    assert last is not None
    outcome, stretch = attempt
    return replace(
        last,
        outcome=replace(outcome, packet_hops=hops),
        skipped=stretch.skipped,
        error=stretch.error,
        how=str(stretch),
    )
