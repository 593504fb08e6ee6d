"""Circuits of networks in virtual time: what waits, what goes on, and what a run is told."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timed_messages import TimedMessages

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core.compiled import UNCOMPILED
from ringleaf.core.faults import parse_faults
from ringleaf.core.pausing import Pausing
from ringleaf.core.units import PS_PER_S, PS_PER_US
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.python import run as run_all
from ringleaf.hosts import rc
from ringleaf.ina.registry import find_system
from ringleaf.networks.faults import Disturbance, LinkRate, Reroute
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import CircuitChange, CircuitUse, RunResult
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.registry import build
from ringleaf.topologies.switching.plan import (
    CircuitDemand,
    Circuits,
    both_ways,
    from_links,
    ring,
)
from ringleaf.topologies.switching.settings import (
    CONTROLLERS,
    CircuitController,
    CircuitSettings,
    parse_circuits,
)
from ringleaf.topologies.switching.ways import CircuitWays

US = PS_PER_US
FEW = settings(max_examples=3 if UNCOMPILED else 8, deadline=None)
HYBRID = "circuits,racks=4,hosts=2,optical=1"
DIRECT = "circuits,racks=6,hosts=1,optical=2,core=0"


@pytest.fixture(autouse=True)
def _own_controllers() -> Iterator[None]:
    """Let tests add controllers."""
    yield
    CONTROLLERS.added.clear()


def add(decide: object, **more: object) -> None:
    """Add a controller called `mine`."""
    CONTROLLERS.added["mine"] = CircuitController("", decide, **more)  # type: ignore[arg-type]


def network(topo: str, text: str, **options: object) -> VirtualNetwork:
    circuits = parse_circuits(text, "circuits")
    return VirtualNetwork(build(topo), NetworkOptions(circuits=circuits, **options))  # type: ignore[arg-type]


def run(on: VirtualNetwork, elements: int = 20_000, algo: str = "ring") -> RunResult:
    """Add up what ranks have, which must be exact, and leave nothing behind."""
    ranks = len(on.groups[0].hosts)
    hierarchy = on.graph.graph["hierarchy"]
    schedule = ALGORITHMS[algo].build(ranks, size_bytes=4 * elements, hierarchy=hierarchy)
    arrays = on.arrays(elements, schedule=schedule)
    for rank, array in enumerate(arrays):
        array[:] = np.arange(elements) % 97 + rank
    result = on.run(schedule, arrays)
    want = ranks * (np.arange(elements) % 97) + ranks * (ranks - 1) // 2
    for array in arrays:
        np.testing.assert_array_equal(array, want)
    assert on.drain() == 0
    return result


def probes(on: VirtualNetwork) -> int:
    """Return how often hosts have asked, after a timeout, what has arrived."""
    words = on.store.arena.words
    return sum(int(words[at + rc.PROBES_SENT]) for at in on.endpoints.connections.agents)


def use_of(result: RunResult) -> CircuitUse:
    assert result.circuits is not None
    return result.circuits


def alternating(demand: CircuitDemand, now_ps: int) -> Circuits:
    """Join neighbours, then those after the next, in turn."""
    step = 1 + demand.cycle % 2
    return from_links((rack, (rack + step) % demand.racks) for rack in range(demand.racks))


def same(one: RunResult, other: RunResult) -> bool:
    """Return whether all that a run did is the same, but for the time it took here."""
    ours, theirs = (replace(each, wall_s=0) for each in (one, other))
    return (ours.finish_ps, ours.link_bytes, ours.circuits, ours.retransmissions) == (
        theirs.finish_ps,
        theirs.link_bytes,
        theirs.circuits,
        theirs.retransmissions,
    ) and (ours.packet_hops, ours.queue_peaks) == (theirs.packet_hops, theirs.queue_peaks)


# Times, by hand.


def one_message() -> Schedule:
    """Return a schedule in which rank 0 sends all that it has to rank 2, at the next rack."""
    return Schedule(Collective.BROADCAST, "mine", 8, 1, [Transfer(0, 0, 2, 0, Op.COPY)])


def test_a_change_takes_draining_and_the_dead_time() -> None:
    """Circuits that go are empty at once here, as none was up: dark from 30 to 37 us."""
    add(lambda demand, now_ps: from_links(ring(demand.racks)), needs_core=True)

    use = use_of(run(network(HYBRID, "mine,period=30us,dead=7us"), 100_000))

    pairs = (("s0", "s1"), ("s1", "s2"), ("s2", "s3"), ("s3", "s0"))
    assert use.changes == (CircuitChange(30 * US, 30 * US, 37 * US, pairs),)
    assert use.dark_ps == 7 * US


def test_packets_leave_a_circuit_before_it_is_dark() -> None:
    """With a full queue in front of it, draining takes as long as the queue."""
    add(alternating, needs_core=True)
    on = network(HYBRID, "mine,period=30us,dead=7us")

    changes = [each for each in use_of(run(on, 300_000)).changes if each.up_ps]

    assert len(changes) > 3
    assert changes[0].dark_ps == changes[0].at_ps == 30 * US
    for before, each in pairwise(changes):
        assert before.up_ps is not None
        assert before.dark_ps is not None
        assert before.up_ps == before.dark_ps + 7 * US
        assert each.at_ps == before.up_ps + 30 * US
    # A packet of 4 KiB is on the line, and arrives 1 us after its last bit.
    assert any(each.dark_ps and each.dark_ps > each.at_ps + US for each in changes[1:])


def test_draining_ends_at_its_limit_and_what_is_left_waits() -> None:
    """Nothing is lost: the packets go on when the circuit is up again, or when the run is over."""
    add(alternating, needs_core=True)
    on = network(HYBRID, "mine,period=30us,dead=7us,drain=1us")

    result = run(on, 100_000)

    assert result.lost == result.drops == 0
    for each in use_of(result).changes:
        assert each.dark_ps is None or each.dark_ps - each.at_ps <= US


def test_nothing_leaves_by_a_circuit_that_is_dark_before_its_limit_lets_it_drain() -> None:
    """Two hosts send by one circuit for 30 us, so it has a queue when it goes for good."""

    def decide(demand: CircuitDemand, now_ps: int) -> Circuits:
        return Circuits() if demand.cycle else both_ways([(0, 1), (2, 3)])

    add(decide, needs_core=True)
    on = network(HYBRID, "mine,period=30us,dead=7us,drain=0")

    rows = [Transfer(0, 0, 2, 0, Op.COPY), Transfer(0, 1, 3, 0, Op.COPY)]
    schedule = Schedule(Collective.BROADCAST, "mine", 8, 1, rows)
    arrays = on.arrays(400_000, schedule=schedule)
    for array in arrays:
        array[:] = 0
    sent = on.run(schedule, arrays).link_bytes["s0", "s1"]

    assert 25 * 12_500 < sent <= 30 * 12_500 + 5000  # and a packet that was on the line


def test_a_circuit_that_stays_stays_up() -> None:
    """The pair 0 to 1 is up all the time, as its bytes by the circuit alone show."""

    def decide(demand: CircuitDemand, now_ps: int) -> Circuits:
        return from_links([(0, 1), (2, 3)] if demand.cycle % 2 else [(0, 1), (3, 2)])

    add(decide, once=False, needs_core=True)
    on = network(HYBRID, "mine,period=10us,dead=10us")

    result = run(on, 200_000)

    changes = [each for each in use_of(result).changes if each.up_ps is not None]
    assert len(changes) > 4
    assert all(("s0", "s1") in each.pairs for each in changes)
    # A ring's rack sends all to the next one: by packets for the first 20 us, by the circuit later.
    by_packets = sum(result.link_bytes["s0", peer] for peer in ("s2", "s3", "s4"))
    assert by_packets < 0.3 * result.link_bytes["s0", "s1"]


@pytest.mark.parametrize(("period", "dead", "duty"), [(100_000, 25_000, 0.8), (300, 20, 0.9375)])
def test_duty_is_the_share_of_the_time_that_is_not_dark(
    period: int, dead: int, duty: float
) -> None:
    cycle = (period + dead) * US
    changes = tuple(
        CircuitChange(at, at, at + dead * US) for at in range(period * US, 10 * cycle, cycle)
    )

    assert CircuitUse(changes, 0, 0, 10 * cycle).duty == pytest.approx(duty, abs=1e-12)


def test_a_change_that_a_runs_end_cuts_off_is_dark_until_then() -> None:
    changes = (CircuitChange(10, 20, 30), CircuitChange(80, 90), CircuitChange(95))

    assert CircuitUse(changes, 0, 0, 100).dark_ps == 20
    assert CircuitUse((CircuitChange(10, 20, 130),), 0, 0, 100).dark_ps == 80
    assert CircuitUse((CircuitChange(10, 120, 130),), 0, 0, 100).dark_ps == 0


# Nothing is lost, whatever the controller does.


@FEW
@given(
    seed=st.integers(0, 99),
    period=st.integers(2, 40),
    dead=st.integers(0, 30),
    drain=st.sampled_from(["empty", "0", "2us"]),
    senders=st.sampled_from(["run", "pause"]),
    algo=st.sampled_from(["ring", "halvingdoubling", "switchml"]),
    trouble=st.sampled_from([{}, {"loss": 0.01}, {"reorder": 0.1, "duplicate": 0.02}]),
)
def test_sums_are_exact_and_the_same_for_all_threads(
    seed: int,
    period: int,
    dead: int,
    drain: str,
    senders: str,
    algo: str,
    trouble: dict[str, float],
) -> None:
    def decide(demand: CircuitDemand, now_ps: int) -> Circuits:
        rng = Random(f"{seed} {demand.cycle}")
        racks = [*range(demand.racks)]
        rng.shuffle(racks)
        return from_links((a, b) for a, b in enumerate(racks) if a != b and rng.random() < 0.8)

    text = f"mine,period={period}us,dead={dead}us,drain={drain},senders={senders}"
    system: dict[str, object] = {}
    if algo == "switchml":
        system = {"system": find_system("switchml"), "lanes": 64}
    results = []
    for threads in (1, 2, 8):
        add(decide, needs_core=True)
        options = {**trouble, **system, "threads": threads}
        results.append(
            run(network("circuits,racks=4,hosts=2,optical=1", text, **options), 8000, algo)
        )
    one, two, eight = results
    assert same(one, two)
    assert same(one, eight)
    assert one.drops == 0
    if not trouble:
        assert one.lost == 0


@FEW
@given(
    seed=st.integers(0, 99),
    period=st.integers(2, 40),
    dead=st.integers(0, 30),
    algo=st.sampled_from(["ring", "halvingdoubling"]),
)
def test_without_a_core_nothing_is_sent_twice(seed: int, period: int, dead: int, algo: str) -> None:
    """All ways lead over circuits, which change; senders pause meanwhile."""

    def decide(demand: CircuitDemand, now_ps: int) -> Circuits:
        order = [*range(demand.racks)]
        Random(f"{seed} {demand.cycle}").shuffle(order)
        follow = dict(zip(order, order[1:] + order[:1], strict=True))
        return from_links([*ring(demand.racks), *follow.items()])

    add(decide)
    on = network(DIRECT, f"mine,period={period}us,dead={dead}us,senders=pause")

    result = run(on, 8000, algo)

    assert result.retransmissions == result.lost == result.drops == 0
    assert use_of(result).packet_bytes == 0


@pytest.mark.parametrize("dead", ["5us", "27ms"])
@pytest.mark.parametrize(
    ("topo", "name", "most_us"), [(HYBRID, "cthrough", 15), (DIRECT, "osa", 150)]
)
def test_no_timeout_fires_while_senders_pause(
    topo: str, name: str, most_us: int, dead: str
) -> None:
    """27 ms is far more than any timeout of a network of this size.

    What is left soon arrives, as hosts send no more; OSA's slowest links have one wavelength of 16.
    """
    on = network(topo, f"{name},period=20us,dead={dead},senders=pause")

    result = run(on, 100_000, "halvingdoubling")

    assert use_of(result).changes
    for each in use_of(result).changes:
        assert each.dark_ps is None or each.dark_ps - each.at_ps < most_us * US
    assert result.retransmissions == 0
    assert probes(on) == 0


def test_aggregation_at_hosts_takes_no_silence_of_pausing_senders_for_a_loss() -> None:
    """27 ms is far more than any timeout of theirs, too."""
    add(alternating, needs_core=True)
    on = network(
        HYBRID,
        "mine,period=40us,dead=27ms,senders=pause",
        system=find_system("omnireduce"),
        lanes=64,
    )

    result = run(on, 40_000, "omnireduce")

    assert use_of(result).changes
    assert result.retransmissions == 0


def test_a_second_run_is_as_the_first() -> None:
    add(alternating, needs_core=True)
    on = network(HYBRID, "mine,period=30us,dead=7us,drain=1us")

    for _ in range(3):
        first, *_ = use_of(run(on, 30_000)).changes
        assert first.at_ps == first.dark_ps == 30 * US  # none is up in the beginning


def test_nobody_is_asked_while_nothing_is_under_way_with_any_threads() -> None:
    """4 KB take a few microseconds, and an answer; then hosts compute for a second."""
    asked: dict[int, list[int]] = {}
    for threads in (1, 2, 8):
        times = asked[threads] = []

        def decide(demand: CircuitDemand, now_ps: int, times: list[int] = times) -> Circuits:
            times.append(now_ps)
            return Circuits()

        add(decide, needs_core=True)
        on = network(HYBRID, "mine,period=3us,dead=0", threads=threads)
        message = one_message(), on.arrays(1000, schedule=one_message())
        on.play(TimedMessages(on, message, 11_400_000, PS_PER_S + 1_000_000))
    one, two, eight = asked.values()
    assert one == two == eight
    assert one[0] == 12 * US
    assert all(now_ps % (3 * US) == 0 for now_ps in one)
    assert [*one] == sorted(one)
    second = [now_ps for now_ps in one if now_ps > PS_PER_S // 2]
    assert second[0] == PS_PER_S + 2 * US  # of periods of 3 us, the first after it
    assert len(one) < 20


# Demand, as controllers are told it.


def test_demand_is_what_was_acknowledged_and_what_waits() -> None:
    """Rank 0 sends 4 MB to rank 2, of which 12.5 KB leave in a microsecond."""
    seen: list[CircuitDemand] = []

    def decide(demand: CircuitDemand, now_ps: int) -> Circuits:
        seen.append(demand)
        return Circuits()

    add(decide, needs_core=True)
    on = network(HYBRID, "mine,period=20us")
    elements = 1_000_000
    schedule = one_message()
    arrays = on.arrays(elements, schedule=schedule)
    for array in arrays:
        array[:] = 0
    arrays[0][:] = 3
    on.run(schedule, arrays)

    first, second = seen[0], seen[1]
    packets = -(-4 * elements // 4096)
    assert first.rack_of == [0, 0, 1, 1, 2, 2, 3, 3]
    assert first.flows == [(0, 2)]
    assert first.delivered[0, 1] + first.waiting[0, 1] == packets * 4096
    assert 0 < first.delivered[0, 1] < 12_500 * 20
    assert 0.8 * 12_500 * 20 < second.delivered[0, 1] < 12_500 * 20  # headers take some of it
    assert first.delivered.sum() == first.delivered[0, 1]
    assert second.done[0, 1] == first.delivered[0, 1] + second.delivered[0, 1]
    assert (first.cycle, second.cycle) == (0, 1)
    assert [int(step[0, 1]) for step in first.planned.steps] == [4 * elements]
    assert not first.planned.free


# All controllers.


@pytest.mark.parametrize("name", CONTROLLERS)
@pytest.mark.parametrize("topo", [HYBRID, DIRECT])
def test_every_controller_carries_a_collective(name: str, topo: str) -> None:
    if "core=0" in topo and CONTROLLERS[name].needs_core:
        with pytest.raises(ConfigError, match="racks without a circuit send by packet switches"):
            network(topo, name)
        return
    if "core=0" not in topo and name == "topoopt":
        topo = "circuits,racks=5,hosts=2,optical=2"

    result = run(network(topo, name), 60_000)

    assert result.lost == 0
    if CONTROLLERS[name].once:
        assert use_of(result).changes == ()
        assert use_of(result).duty == 1
        assert use_of(result).circuit_bytes > 0


def test_topoopt_takes_an_allreduce_over_all_its_strides() -> None:
    on = network("circuits,racks=12,hosts=1,optical=2,core=0", "topoopt")

    used = {pair for pair, size in run(on, 9000, "halvingdoubling").link_bytes.items() if size}

    between = {(int(a[1:]), int(b[1:])) for a, b in used if a[0] == b[0] == "s"}
    assert {(b - a) % 12 for a, b in between} == {1, 5}  # the strides of 12 by the paper


@pytest.mark.parametrize(
    ("controller", "strides"), [("topoopt", {1, 3, 5, 9}), ("topoopt-release", {1, 3, 7, 15})]
)
def test_strides_go_by_the_rings_that_their_controller_sets_up(
    controller: str, strides: set[int], tmp_path: Path
) -> None:
    """All of a rack's packets go to racks that an own circuit leads to."""
    topo = "circuits,racks=16,hosts=1,optical=4,core=0"
    given: dict[str, Any] = {"topo": topo, "circuits": controller, "algo": "strides"}

    [row] = run_all(**given, size="1M", figures="no", out=str(tmp_path)).rows

    with (tmp_path / "links.csv").open() as file:
        sent = [each for each in csv.DictReader(file) if int(each["sent_bytes"])]
    inner = [(int(e["from"][1:]), int(e["to"][1:])) for e in sent if e["from"][0] == e["to"][0]]
    assert row.wrong == 0
    assert {(b - a) % 16 for a, b in inner} == strides
    data = 2 * 15 / 16 * (1 << 20) * 16
    assert data < row.circuit_bytes < 1.2 * data  # acknowledgements go over several


def test_osas_shares_are_rates() -> None:
    """Two racks that send each other most get most wavelengths."""
    on = network("circuits,racks=4,hosts=1,optical=2,core=0", "osa")
    assert on.circuits is not None
    found = CONTROLLERS["osa"].decide(demand_of(4, 2, {(0, 1): 900, (1, 0): 900, (0, 2): 10}), 0)

    assert found.rate_of((0, 1)) > 1 > found.rate_of((0, 2)) or found.rate_of((0, 1)) > 1
    for rack in range(4):
        assert sum(found.rate_of(pair) for pair in found.ports if pair[0] == rack) <= 2


def demand_of(racks: int, optical: int, waiting: dict[tuple[int, int], int]) -> CircuitDemand:
    matrix = np.zeros((racks, racks), np.int64)
    for pair, size in waiting.items():
        matrix[pair] = size
    return CircuitDemand(racks, optical, np.zeros_like(matrix), matrix, has_core=False)


# Refusals.


def test_circuits_that_cannot_be_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"mine: at most 1 circuit may leave a rack, got 2 at rack 0"
    ):
        from_links([(0, 1), (0, 2)]).check(3, 1, "mine")
    with pytest.raises(
        ConfigError, match=r"mine: at most 1 circuit may reach a rack, got 2 at rack 2"
    ):
        from_links([(0, 2), (1, 2)]).check(3, 1, "mine")
    for pair in ((1, 1), (0, 3), (-1, 0)):
        with pytest.raises(ConfigError, match="mine: a circuit must join two of 3 racks, got"):
            from_links([pair]).check(3, 1, "mine")
    both_ways([(0, 1)]).check(3, 1, "mine")


def test_a_network_checks_what_its_controller_wants() -> None:
    add(lambda demand, now_ps: from_links([(0, 1), (0, 2)]), needs_core=True)
    with pytest.raises(
        ConfigError, match="circuits mine: at most 1 circuit may leave a rack, got 2"
    ):
        run(network(HYBRID, "mine,period=10us"))


def test_racks_must_reach_one_another() -> None:
    add(lambda demand, now_ps: from_links([(0, 1), (1, 0)]))
    with pytest.raises(ConfigError, match="circuits: no way from s0 to s2 over those that are up"):
        network(DIRECT, "mine,senders=pause")


@pytest.mark.parametrize(
    ("topo", "text", "options", "message"),
    [
        ("fattree", "helios", {}, "circuits: is for a topology with circuits, got fattree,k=4"),
        (DIRECT, "helios", {}, "helios: racks without a circuit send by packet switches"),
        (DIRECT, "sipring,senders=run", {}, "without a core, senders must pause while circuits"),
        (DIRECT, "osa,drain=5us", {}, "without a core, circuits must drain until they are empty"),
        (HYBRID, "helios", {"record": Path("x")}, "circuits: traces have a switch's routes at"),
        (HYBRID, "helios", {"pfc": Pausing(9, 9)}, "circuits: pause frames go back by the link"),
        (HYBRID, "helios", {"reroute_ps": 5}, "circuits: their controller sets routes, got rer"),
        ("circuits,node=2xh100", "helios", {}, "circuits: hosts can't be machines, got circuits"),
    ],
)
def test_what_circuits_do_not_suit_is_refused(
    topo: str, text: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        network(topo, text, **options)


def test_trees_of_switches_that_aggregate_are_of_packet_switches() -> None:
    options: dict[str, object] = {"system": find_system("switchml"), "lanes": 64}
    with pytest.raises(ConfigError, match="sipocs: switches aggregate on trees of packet switches"):
        network(DIRECT, "sipocs", **options)
    result = run(network(HYBRID, "sipocs", **options), 9000, "switchml")
    assert use_of(result).circuit_bytes == 0


def test_a_circuit_may_fail_like_any_link() -> None:
    on = network(HYBRID, "sipocs", faults=parse_faults("s0-s1 down at 5us for 20us", "faults"))
    assert run(on, 30_000).lost > 0


@pytest.mark.parametrize(
    ("disturbance", "message"),
    [
        (Reroute(5, frozenset()), "circuits: their controller sets routes, got new ones"),
        (LinkRate(5, ("s0", "s1"), 10**9), "controller sets their rates, got another of s0-s1; it"),
    ],
)
def test_disturbances_leave_rates_and_routes_to_the_controller(
    disturbance: Disturbance, message: str
) -> None:
    on = network(HYBRID, "helios")
    schedule = one_message()
    with pytest.raises(ConfigError, match=message):
        on.run(schedule, on.arrays(4, schedule=schedule), disturbances=[disturbance])


# The option as people write it.


def test_settings_are_read_and_written() -> None:
    given = parse_circuits("helios, period=300us, dead=0, drain=5us, senders=pause", "circuits")

    assert given == CircuitSettings("helios", 300 * US, 0, 5 * US, pauses=True)
    assert parse_circuits(str(given), "circuits") == given
    assert parse_circuits("helios", "") == CircuitSettings("helios", 100 * US, 25 * US)
    assert parse_circuits("osa", "") == CircuitSettings("osa", 100 * US, 25 * US, pauses=True)
    assert parse_circuits("", "circuits") is None


def test_who_pauses_and_drains_keeps_packets_in_order() -> None:
    texts = ("osa", "helios", "helios,senders=pause", "osa,drain=5us", "topoopt")
    found = [parse_circuits(text, "") for text in texts]
    assert [each.keeps_order for each in found if each] == [True, False, True, False, True]


@pytest.mark.parametrize(
    ("text", "silence_us"),
    [
        ("osa,dead=40us,drain=5us", 45),
        ("osa,dead=40us", 40),
        ("helios,dead=40us,senders=run", 0),
        ("sipocs,dead=40us,senders=pause", 0),  # which decides once
    ],
)
def test_hosts_wait_longer_for_changes_alone(text: str, silence_us: int) -> None:
    settings = parse_circuits(text, "circuits")

    assert settings is not None
    assert settings.quiet_ps == silence_us * US


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("heliox", "circuits: unknown controller of circuits, got 'heliox'; did you mean 'helios'"),
        ("helios,5us", "circuits helios: option must be key=value, got '5us'"),
        ("helios,deed=5us", "circuits helios: unknown key, got 'deed'; did you mean 'dead'"),
        ("helios,dead=5us,dead=6us", "circuits helios: dead is there twice, got"),
        ("helios,period=0", "circuits helios: period must be more than 0, got '0'"),
        ("helios,dead=soon", "circuits helios: dead: not understood, got 'soon'"),
        ("helios,senders=stop", "circuits helios: unknown senders, got 'stop'"),
    ],
)
def test_settings_that_are_not_understood_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_circuits(text, "circuits")


# Routes.


def test_with_a_core_a_circuit_carries_its_own_racks_alone() -> None:
    """Racks 0 and 2 have circuits to rack 1, but reach each other by the core, switch s4."""
    ways = CircuitWays(build("circuits,racks=4,hosts=1,optical=2"))
    table = ways.table(both_ways([(0, 1), (1, 2)]))
    graph = build("circuits,racks=4,hosts=1,optical=2")

    def next_of(rack: str, host: str) -> str:
        (port,) = table[rack][host]
        return next(
            peer for peer in graph.adj[rack] if graph.edges[rack, peer]["ports"][rack] == port
        )

    assert ways.has_core
    assert [next_of("s0", host) for host in ("h0", "h1", "h2", "h3")] == ["h0", "s1", "s4", "s4"]
    assert [next_of("s1", host) for host in ("h0", "h2", "h3")] == ["s0", "s2", "s4"]
    assert next_of("s4", "h2") == "s2"


def test_without_a_core_the_fewest_circuits_lead_to_a_rack() -> None:
    ways = CircuitWays(build("circuits,racks=4,hosts=1,optical=1,core=0"))

    assert ways.hops(from_links(ring(4))).tolist() == [
        [0, 1, 2, 3],
        [3, 0, 1, 2],
        [2, 3, 0, 1],
        [1, 2, 3, 0],
    ]
