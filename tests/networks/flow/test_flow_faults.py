"""Faults of the flow network: times by hand, what packets take, exact sums, and all as before."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.aggregate import in_network_allreduce
from ringleaf.collectives.algorithms.halvingdoubling import halving_doubling_allreduce
from ringleaf.collectives.algorithms.ring import ring_allreduce
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core.compiled import UNCOMPILED
from ringleaf.core.faults import parse_faults
from ringleaf.core.units import PS_PER_US
from ringleaf.errors import BackendError, ConfigError
from ringleaf.experiments.estimates.flow_errors import bound_of
from ringleaf.experiments.runs.python import run
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.hosts import rc
from ringleaf.ina.registry import find_system
from ringleaf.networks.flow.network import FlowNetwork
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.registry import build

RATE_BPS, DELAY_PS = 100_000_000_000, 1_000_000
HEADERS = 14 + 20 + 8 + 12 + 4 + 24  # Ethernet, IPv4, UDP, BTH, ICRC; preamble, FCS and gap
FRAME = 4096 + HEADERS
ANSWER = 86  # an acknowledgement, with all headers
BYTE_PS = 80
US = PS_PER_US
STAR = build("leafspine,leaves=1,spines=1,hosts=2", rate_bps=RATE_BPS, delay_ps=DELAY_PS)
SMALL = build("leafspine,leaves=2,spines=3,hosts=2", rate_bps=RATE_BPS, delay_ps=DELAY_PS)
ONE = Schedule(Collective.BROADCAST, "one", 2, 1, [Transfer(0, 0, 1, 0, Op.COPY)])
PACKETS = 1000
ALONE_PS = BYTE_PS * FRAME * (PACKETS + 1) + 2 * DELAY_PS
FEW = settings(max_examples=4 if UNCOMPILED else 15, deadline=None)


def options(faults: str, **more: Any) -> NetworkOptions:
    return NetworkOptions(faults=parse_faults(faults, "faults"), **more)


def send(faults: str, **more: Any) -> RunResult:
    """Send one message of a thousand packets from h0 to h1, by way of one switch."""
    network = FlowNetwork(STAR, options(faults, **more))
    return network.run(ONE, network.arrays(PACKETS * 1024, schedule=ONE))


def test_a_slower_link_carries_what_is_left_at_its_rate() -> None:
    """From 100 us on at a quarter of the rate, for 40 us: that costs three quarters of these."""
    assert send("").finish_ps[1] == ALONE_PS
    slowed = send("h0-s0 rate 25G at 100us for 40us").finish_ps[1]

    assert slowed == pytest.approx(ALONE_PS + 30 * US, abs=10)


def test_a_slower_link_has_fewer_bytes_while_it_is_slow() -> None:
    """Until 100 us there are 12,500 bytes in a microsecond, then 3,125, and 12,500 again."""
    result = send("h0-s0 rate 25G at 100us for 40us")

    edges = [0, *(at_us * US // result.bin_ps for at_us in (100, 140, 300))]
    series = result.link_series["h0", "s0"]
    spans = [int(series[start:stop].sum()) for start, stop in pairwise(edges)]
    assert spans == pytest.approx([1_250_000, 125_000, 2_000_000], abs=50)
    assert series.sum() == result.link_bytes["h0", "s0"] == PACKETS * FRAME


def test_a_sum_of_switches_has_fewer_bytes_while_a_link_is_slow() -> None:
    """1024 packets of 1100 bytes; until 40 us 12,500 bytes in a microsecond, then 3,125."""
    slowed = options("h0-s0 rate 25G at 40us for 40us", system=find_system("switchml"))
    network, schedule = FlowNetwork(STAR, slowed), in_network_allreduce(2, "switchml")
    arrays = network.arrays(1 << 18, np.dtype(np.int32), schedule)
    result = network.run(schedule, arrays)

    edges = [0, *(at_us * US // result.bin_ps for at_us in (40, 80, 200))]
    series = result.link_series["h0", "s0"]
    spans = [int(series[start:stop].sum()) for start, stop in pairwise(edges)]
    assert spans == pytest.approx([500_000, 125_000, 1024 * 1100 - 625_000], abs=50)


def test_acknowledgements_take_their_share_of_a_slower_link() -> None:
    """Both hosts send at once, and a quarter of the rate takes four times as long."""
    both = [Transfer(0, 0, 1, 0, Op.COPY), Transfer(0, 1, 0, 1, Op.COPY)]
    schedule = Schedule(Collective.ALL_GATHER, "both", 2, 2, both)

    def time_ps(faults: str) -> int:
        network = FlowNetwork(STAR, options(faults))
        return network.run(schedule, network.arrays(2 * PACKETS * 1024, schedule=schedule)).time_ps

    slow_ps, usual_ps = time_ps("h0-s0 rate 25G at 0"), time_ps("")
    alone_ps = BYTE_PS * FRAME * PACKETS
    assert usual_ps - alone_ps > 0.0005 * alone_ps  # acknowledgements
    assert (slow_ps - 2 * DELAY_PS) / (usual_ps - 2 * DELAY_PS) == pytest.approx(4, rel=0.001)


def test_a_sender_whose_window_is_not_full_goes_on_when_the_link_is_back() -> None:
    """It has lost what was in flight, and hears of it after a round trip."""
    round_ps = 4 * DELAY_PS + BYTE_PS * (FRAME + 2 * ANSWER)
    before = send("h0-s0 down at 100us for 20us", window=900).finish_ps[1]

    late = before - ALONE_PS - 20 * US
    assert late == pytest.approx(2 * round_ps, rel=0.2)


@pytest.mark.parametrize(("down_us", "timeouts"), [(30, 1), (80, 3), (250, 7), (500, 15)])
def test_a_sender_asks_after_a_timeout_then_after_twice_as_long(
    down_us: int, timeouts: int
) -> None:
    """With a window of 32 packets, and a least timeout of 20 to 40 us."""
    network = FlowNetwork(STAR, options(f"h0-s0 down at 100us for {down_us}us", window=32))
    [timeout_ps] = {
        int(network.store.arena.words[agent + rc.MIN_TIMEOUT_PS])
        for agent in network.endpoints.connections.agents
    }
    finish_ps = network.run(ONE, network.arrays(PACKETS * 1024, schedule=ONE)).finish_ps[1]

    asked_ps = finish_ps - ALONE_PS
    before = (timeouts - 1) / 2
    assert before * timeout_ps < down_us * US <= timeouts * timeout_ps
    assert asked_ps == pytest.approx(timeouts * timeout_ps, abs=20 * US)


def take(kind: type, faults: str, schedule: Schedule, **more: Any) -> int:
    network = kind(SMALL, options(faults, **more))
    arrays = network.arrays(100_000, np.dtype(np.int32), schedule)
    for rank, array in enumerate(arrays):
        array[:] = np.arange(array.size) % 89 + rank
    time_ps: int = network.run(schedule, arrays).time_ps
    for array in arrays:
        np.testing.assert_array_equal(array, 4 * (np.arange(array.size) % 89) + 6)
    return time_ps


@pytest.mark.parametrize(
    ("faults", "more", "percent"),
    [
        ("s0-s2 rate 20G at 10us", {}, 3),
        ("s0-s2 down at 5us", {"reroute_ps": 0}, 3),
        ("s0-s2 down at 5us for 40us", {"reroute_ps": 10 * US}, 8),
    ],
)
def test_rings_take_about_as_long_as_by_packets(
    faults: str, more: dict[str, Any], percent: float
) -> None:
    by_flows, by_packets = (
        take(kind, faults, ring_allreduce(4), **more) for kind in (FlowNetwork, VirtualNetwork)
    )

    assert by_flows >= take(FlowNetwork, "", ring_allreduce(4))
    assert by_flows == pytest.approx(by_packets, rel=percent / 100)


def test_without_new_routes_what_stays_down_stops_the_run() -> None:
    down = "s0-s2 down at 5us, s0-s3 down at 5us, s0-s4 down at 5us"

    with pytest.raises(BackendError, match="waits for"):
        take(FlowNetwork, down, ring_allreduce(4))
    with pytest.raises(BackendError, match="waits for"):
        take(FlowNetwork, down, ring_allreduce(4), reroute_ps=US)  # there is no way
    few = "s0-s2 down at 5us, s0-s3 down at 5us"
    assert take(FlowNetwork, few, ring_allreduce(4), reroute_ps=US) > 0


def test_bytes_stay_on_the_links_that_carried_them() -> None:
    """The messages before a link goes down for good; no others, which take new ways."""
    schedule = ring_allreduce(4)

    def carried(faults: str) -> int:
        network = FlowNetwork(SMALL, options(faults, reroute_ps=0, has_data=False))
        result = network.run(schedule, network.arrays(400_000, schedule=schedule))
        assert sum(result.link_bytes.values()) == pytest.approx(usual_bytes, rel=0.01)
        return result.link_bytes["s0", "s2"]

    usual = FlowNetwork(SMALL, options("", has_data=False))
    outcome = usual.run(schedule, usual.arrays(400_000, schedule=schedule))
    usual_bytes, middle_us = sum(outcome.link_bytes.values()), outcome.time_ps // 2 // US
    part = carried(f"s0-s2 down at {middle_us}us") / outcome.link_bytes["s0", "s2"]

    assert part == pytest.approx(0.5, abs=0.2)  # of six steps two or three are over


@FEW
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["s0-s2", "s1-s3", "s4", "h2-s1", "h0"]),  # none has a link of another
            st.sampled_from(["down", "rate 30G"]),
            st.integers(0, 60),
            st.integers(1, 80),
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda fault: fault[0],
    ),
    st.sampled_from([None, 0, 15 * US]),
)
def test_sums_are_exact_and_all_is_as_before_in_the_next_run(
    drawn: list[tuple[str, str, int, int]], reroute_ps: int | None
) -> None:
    text = ", ".join(f"{place} {what} at {at}us for {us}us" for place, what, at, us in drawn)
    schedule = halving_doubling_allreduce(4)

    def time_ps(network: FlowNetwork) -> int:
        arrays = network.arrays(50_000, np.dtype(np.int32), schedule)
        for rank, array in enumerate(arrays):
            array[:] = rank + 1
        outcome = network.run(schedule, arrays)
        assert all((array == 10).all() for array in arrays)
        return outcome.time_ps

    network, healthy = (
        FlowNetwork(SMALL, options(each, reroute_ps=reroute_ps)) for each in (text, "")
    )
    for each in (network, network, healthy):
        time_ps(each)  # the first has new queue pairs
    # Timers know the round trips of earlier runs, so runs with faults may differ.
    assert network._machine.troubles is not None
    network._machine.troubles._usual = []
    assert time_ps(network) == time_ps(healthy)


@pytest.mark.parametrize(
    ("faults", "more", "reason"),
    [
        ("s0-s2 loss 1% at 0", {}, "faults: no fluid model covers loss, got 's0-s2 loss 1%"),
        ("s0-s2 rate 400G at 0", {}, "faults: a link can't get faster than 100G"),
        ("s0-s2 down at 0", {"system": "switchml"}, "aggregation by switches on links that fail"),
    ],
)
def test_faults_without_a_fluid_form_are_refused(
    faults: str, more: dict[str, Any], reason: str
) -> None:
    system = {"system": find_system("switchml")} if more else {}

    with pytest.raises(ConfigError, match=reason):
        FlowNetwork(SMALL, options(faults, **system))


@pytest.mark.parametrize(
    ("faults", "known"),
    [("s0-s4 rate 10G at 0", "links slow down"), ("s0-s4 down at 0", "links fail")],
)
def test_times_with_faults_have_errors_of_their_own(faults: str, known: str) -> None:
    topo = "leafspine,leaves=4,spines=4,hosts=4"
    spec = resolve({"topo": topo, "faults": faults, "net": "flow"})
    graph = build(topo)

    usual = bound_of(resolve({"topo": topo, "net": "flow"}), graph, "ring", 16, 1 << 16)
    here = bound_of(spec, graph, "ring", 16, 1 << 16)

    assert usual.percent is not None
    assert here.percent is not None
    assert here.percent > usual.percent
    outside = bound_of(spec, graph, "swing", 16, 1 << 16).outside
    assert outside.startswith(f"swing, {known}")


@pytest.mark.parametrize(
    ("faults", "outside"),
    [
        ("s0-s4 rate 10G, s1-s4 rate 80G", "several faults"),
        ("s0-s4 rate 10G for 1us every 2us times 2", "several faults"),
        ("s0-s4 rate 1G", "s0-s4 rate 1G at 0"),
        ("s0-s4 rate 90G", "s0-s4 rate 90G at 0"),
        ("h0-s0 rate 10G", "h0-s0 rate 10G at 0"),
        ("s4 down for 1us", "s4 down at 0 for 1us"),
    ],
)
def test_faults_that_nobody_has_measured_are_said(faults: str, outside: str) -> None:
    """The table has one fault, of one link between switches, at a tenth to 80 % of its rate."""
    topo = "leafspine,leaves=4,spines=4,hosts=4"
    spec = resolve({"topo": topo, "faults": faults, "net": "flow"})

    bound = bound_of(spec, build(topo), "ring", 16, 1 << 16)

    assert (bound.percent, bound.outside) == (None, outside)


@pytest.mark.parametrize("options", [{"slots": "4"}, {"lanes": "64"}])
def test_slots_and_packets_that_nobody_has_measured_are_said(options: dict[str, str]) -> None:
    """Runs of the table have as many slots as links need: few make flows a third too slow."""
    topo = "leafspine,leaves=4,spines=4,hosts=4"
    spec = resolve({"topo": topo, "net": "flow", "algo": "switchml", **options})

    bound = bound_of(spec, build(topo), "switchml", 16, 1 << 16)

    assert bound.percent is None
    assert bound.outside == "; ".join(f"{name}={value}" for name, value in options.items())


@pytest.mark.parametrize("algo", ["ring", "tree"])
def test_a_link_that_slows_down_for_good_is_within_its_error(tmp_path: Path, algo: str) -> None:
    """To a tenth of its rate, early in the run: the worst of what is drawn for the table."""
    options: dict[str, Any] = {"algo": algo, "topo": "fattree,k=4", "size": "1M", "net": "flow"}
    options |= {"faults": "s0-s8 rate 10G at 20us", "data": "none", "check_packets": "yes"}
    (row,) = run(**options, figures="no", out=str(tmp_path / "run")).rows

    assert 5 < abs(row.found_percent) <= row.within_percent
