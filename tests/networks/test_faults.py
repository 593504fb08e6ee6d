"""Faults as people write them: read, carried out, led around, and over when a run is."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from networkx import has_path, shortest_path

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.compiled import UNCOMPILED
from ringleaf.core.faults import CORRUPT, DOWN, LOSS, RATE, SLOW, NetworkFault, parse_faults
from ringleaf.core.units import PS_PER_US
from ringleaf.errors import BackendError, ConfigError, TopologyError
from ringleaf.networks.faults import (
    LinkDamage,
    LinkLoss,
    LinkRate,
    Reroute,
    Restart,
    disturbances_of,
    left_of,
    links_of,
)
from ringleaf.networks.forwarding import forwarding_rows, route_updates
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.switches.p4runtime.table_rows import entities_of
from ringleaf.topologies.graph import directions, switches, with_links
from ringleaf.topologies.k_shortest import with_k_shortest
from ringleaf.topologies.registry import build

CLOS = "leafspine,leaves=2,spines=2,hosts=2"  # leaves s0 and s1, spines s2 and s3
US = PS_PER_US
FEW = settings(max_examples=4 if UNCOMPILED else 25, deadline=None)


def read(text: str) -> tuple[NetworkFault, ...]:
    return parse_faults(text, "faults")


def network(text: str, topo: str = CLOS, **options: int) -> VirtualNetwork:
    return VirtualNetwork(build(topo), NetworkOptions(faults=read(text), **options))  # type: ignore[arg-type]


def run(on: VirtualNetwork, elements: int = 3000, algo: str = "ring") -> RunResult:
    """Run a collective of whole numbers, whose sums must be exact."""
    ranks = 4
    values = (np.arange(elements) % 1000).astype(np.int32)
    arrays = [values + np.int32(rank) for rank in range(ranks)]
    result = on.run(ALGORITHMS[algo].build(ranks), arrays)
    for array in arrays:
        assert (array == 4 * values + 6).all()
    return result


@st.composite
def network_faults(draw: st.DrawFn) -> NetworkFault:
    kind, value = draw(
        st.sampled_from([(DOWN, 0.0), (LOSS, 0.25), (LOSS, 1.0), (CORRUPT, 0.5), (RATE, 10**10)])
        | st.tuples(st.sampled_from([LOSS, CORRUPT]), st.floats(0, 1))
        | st.tuples(st.just(SLOW), st.floats(1, 1e6, exclude_min=True))
    )
    fault = NetworkFault(
        draw(st.sampled_from(["s0-s2", "h3", "leaf-1-spine-2"])),
        kind,
        value,
        draw(st.integers(0, 10**12)),
        draw(st.none() | st.integers(1, 10**10)),
    )
    times = draw(st.integers(1, 50))
    if fault.lasting_ps is None or times == 1:
        return fault
    every_ps = fault.lasting_ps + draw(st.integers(1, 10**10))
    return replace(fault, every_ps=every_ps, times=times)


FAULTS = network_faults()


@given(st.lists(FAULTS, max_size=4))
@example([NetworkFault("h3", SLOW, 1.0000001), NetworkFault("h3", LOSS, 0.123456789)])
def test_what_a_fault_says_of_itself_is_read_as_the_same(faults: list[NetworkFault]) -> None:
    assert read(", ".join(map(str, faults))) == tuple(faults)


def test_words_mean_what_they_say() -> None:
    """By hand."""
    assert read("") == ()
    assert read("s0-s8 down at 50us for 200us, h3 down") == (
        NetworkFault("s0-s8", DOWN, 0, 50 * US, 200 * US),
        NetworkFault("h3", DOWN),
    )
    assert read("h3-s1 loss 10% at 0 for 1ms") == (NetworkFault("h3-s1", LOSS, 0.1, 0, 1000 * US),)
    assert read("h3-s1 corrupt 1% for 1ms, h3 corrupt 1") == (
        NetworkFault("h3-s1", CORRUPT, 0.01, 0, 1000 * US),
        NetworkFault("h3", CORRUPT, 1.0),
    )
    assert read("h3-s1 loss 100%") == (NetworkFault("h3-s1", LOSS, 1.0),)
    [flap] = read("s0-s8 rate 10G at 1us for 5us every 20us times 3")
    assert flap == NetworkFault("s0-s8", RATE, 10**10, US, 5 * US, 20 * US, 3)
    assert flap.spans() == [(at * US, (at + 5) * US) for at in (1, 21, 41)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "s0-s8 broken",
            "must be PLACE down, loss SHARE, corrupt SHARE, rate RATE or slow .*got 's0-s8 broken'",
        ),
        ("down at 5us", "got 'down at 5us'"),
        ("s0 down for 5us at 5us", "got 's0 down for 5us at 5us'"),
        ("s0 loss 120%", r"must be in \[0, 1\), got '120%'"),
        ("s0 rate fast", "got 'fast'"),
        ("s0 down at 5", "got '5'"),
        ("s0 down for 0", "must last, got for 0 at s0"),
        ("s0 down for 9us every 5us times 2", "must be over before, got for 9us every 5us"),
        ("s0 down every 5us times 2", "got for ever every 5us"),
        ("s0 down for 1us every 5us times 0", "times must be 1 to 10000, got 0"),
    ],
)
def test_what_is_no_fault_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read(text)


def test_a_place_is_a_link_or_all_of_a_nodes() -> None:
    graph = build(CLOS)
    assert links_of(graph, "s2-s0") == [("s2", "s0")]
    assert sorted(links_of(graph, "s0")) == [("s0", each) for each in ("h0", "h1", "s2", "s3")]
    dashed = nx.relabel_nodes(graph, {"s0": "leaf-0", "s2": "spine-2"})
    assert links_of(dashed, "leaf-0-spine-2") == [("leaf-0", "spine-2")]
    for place in ("s9", "s0-s1", "s0-", "-"):
        with pytest.raises(ConfigError, match=f"no such node or link, got '{place}'; like "):
            links_of(graph, place)


def test_faults_become_disturbances_in_both_directions() -> None:
    """By hand: a link, then a switch that comes back, with routes 7 us after each."""
    graph = build(CLOS)
    both = [("s0", "s2"), ("s2", "s0")]
    assert disturbances_of(read("s0-s2 loss 50% at 1us for 2us"), graph) == [
        *(LinkLoss(1 * US, each, 0.5) for each in both),
        *(LinkLoss(3 * US, each, None) for each in both),
    ]
    assert disturbances_of(read("s0-s2 corrupt 50% at 1us for 2us"), graph) == [
        *(LinkDamage(1 * US, each, 0.5) for each in both),
        *(LinkDamage(3 * US, each, None) for each in both),
    ]
    assert disturbances_of(read("h0 rate 1G"), graph, 7 * US) == [
        LinkRate(0, ("h0", "s0"), 10**9),
        LinkRate(0, ("s0", "h0"), 10**9),
    ]
    changes = disturbances_of(read("s2 down at 1us for 9us, s0-s3 down at 5us"), graph, 7 * US)
    spine = {("s2", "s0"), ("s2", "s1")}
    assert Restart(10 * US, "s2") in changes
    assert [each for each in changes if isinstance(each, Reroute)] == [
        Reroute(8 * US, frozenset(spine)),
        Reroute(12 * US, frozenset(spine | {("s0", "s3")})),
        Reroute(17 * US, frozenset({("s0", "s3")})),
    ]


def test_two_faults_are_not_at_one_link_together() -> None:
    graph = build(CLOS)
    apart = read(
        "s0-s2 down at 1us for 2us, s2-s0 loss 1% at 3us, s0-s2 rate 1G at 2us, s0 corrupt 1%"
    )
    assert disturbances_of(apart, graph)
    with pytest.raises(ConfigError, match="two must not be at one link together, got 's0 corr"):
        disturbances_of(read("s2-s0 corrupt 1% at 2us, s0 corrupt 2% for 3us"), graph)
    with pytest.raises(ConfigError, match="two must not be at one link together, got 's0 down at"):
        disturbances_of(read("s2-s0 loss 1% at 2us, s0 down at 1us for 2us"), graph)


@pytest.mark.parametrize("what", [("down", "loss 5%"), ("rate 1G", "rate 2G")])
def test_a_fault_that_follows_another_at_once_counts_wherever_it_is_listed(
    what: tuple[str, str],
) -> None:
    """The link is itself again at 15 us, and has its next fault from then on."""
    first, second = f"s0-s2 {what[0]} at 5us for 10us", f"s2-s0 {what[1]} at 15us for 40us"
    in_order = disturbances_of(read(f"{first}, {second}"), build(CLOS))
    assert disturbances_of(read(f"{second}, {first}"), build(CLOS)) == in_order
    assert [each.after_ps // US for each in in_order] == [5, 5, 15, 15, 15, 15, 55, 55]
    assert [getattr(each, "rate_bps", getattr(each, "loss", 0)) is None for each in in_order] == [
        *([False] * 2),
        *([True] * 2),
        *([False] * 2),
        *([True] * 2),
    ]


def test_new_routes_are_refused_where_routes_cannot_change() -> None:
    down = read("s0-s1 down")
    with pytest.raises(ConfigError, match=r"reroute: routes by a rule .*got dimension_order of"):
        disturbances_of(down, build("torus2d,x=3,y=3"), US)
    with pytest.raises(ConfigError, match="reroute: is for routes dealt and ecmp, got routes of "):
        disturbances_of(read("s0-s2 down"), with_k_shortest(build(CLOS), 2), US)
    assert disturbances_of(down, build("torus2d,x=3,y=3"))


def test_a_place_that_is_not_there_is_refused_before_anything_runs() -> None:
    with pytest.raises(ConfigError, match="faults: no such node or link, got 's7'; like h0-s0"):
        network("s7 down")


def test_a_link_is_down_for_a_while_in_each_run_and_up_after_it() -> None:
    """Packets for 1 ms are lost, so each run takes longer than that."""
    usual = run(network(""))
    on = network("s0-s2 down for 1ms, s0-s3 down for 1ms")
    first, second = run(on), run(on)
    assert first.lost > 0
    assert first.time_ps > 1000 * US > usual.time_ps
    assert second.lost > 0
    assert second.time_ps > 1000 * US
    assert on.drain() == 0


def test_routes_lead_around_a_link_that_stays_down() -> None:
    """With the only other spine, all goes that way once switches know of it."""
    remedy = "; let what is down come back, like 's0 down for 1ms', or add --reroute$"
    with pytest.raises(BackendError, match=f"nothing has got through .*{remedy}"):
        run(network("s0-s2 down"))
    on = network("s0-s2 down", reroute_ps=20 * US)
    outcome = run(on)
    assert outcome.lost > 0
    assert outcome.time_ps > 20 * US
    usual = run(network(""))
    assert outcome.link_bytes["s0", "s2"] < usual.link_bytes["s0", "s2"]
    assert outcome.link_bytes["s0", "s3"] > usual.link_bytes["s0", "s3"]
    early = run(network("s0-s2 down", reroute_ps=0))
    assert early.lost == early.retransmissions == 0
    assert early.link_bytes["s0", "s2"] == 0


@pytest.mark.parametrize("spine", ["s2", "s3"])
def test_routes_lead_around_a_switch_that_stays_down(spine: str) -> None:
    """Though it has no routes itself."""
    outcome = run(network(f"{spine} down", reroute_ps=20 * US))
    assert outcome.time_ps > 20 * US
    early = run(network(f"{spine} down", reroute_ps=0))
    assert early.lost == early.retransmissions == 0


def test_what_is_left_without_a_switch_has_routes_for_all_others() -> None:
    """By hand: the lost spine keeps one link, and nobody takes it."""
    graph = build(CLOS)
    left = left_of(graph, [("s2", "s0"), ("s2", "s1"), ("s0", "s2")])
    assert set(graph.edges) - set(left.edges) in ({("s0", "s2")}, {("s1", "s2")})
    assert shortest_path(left, "h0", "h3") == ["h0", "s0", "s3", "s1", "h3"]
    assert set(left_of(graph, [("s2", "s0")]).edges) == set(graph.edges) - {("s0", "s2")}
    apart = left_of(graph, [("s2", "s0"), ("s3", "s0")])
    assert not has_path(apart, "h0", "h3")


def test_hosts_whose_only_way_is_down_wait_for_it() -> None:
    """There is no way around, so routes stay, and serve again when the link is back."""
    outcome = run(
        network("s0-s2 down for 300us", "leafspine,leaves=2,spines=1,hosts=2", reroute_ps=US)
    )
    assert outcome.time_ps > 300 * US


def test_a_rate_is_that_of_the_link_while_it_lasts() -> None:
    """From the start to the end, it is as if the link had been made so; with equal windows."""
    slow = {frozenset(("h0", "s0"))}
    graph = build(CLOS)
    made = with_links(graph, lambda each: each)
    for a, b, _ in directions(graph):
        if frozenset((a, b)) in slow:
            made.edges[a, b]["link"] = replace(made.edges[a, b]["link"], rate_bps=10**9)
    changed = run(network("h0-s0 rate 1G", window=16))
    assert changed.time_ps == run(VirtualNetwork(made, NetworkOptions(window=16))).time_ps
    assert run(network("h0-s0 rate 1G for 1us", window=16)).time_ps < changed.time_ps


def places(topo: str) -> st.SearchStrategy[str]:
    graph = build(topo)
    return st.sampled_from([*graph, *("-".join(edge) for edge in graph.edges)])


@FEW
@given(
    place=places(CLOS),
    kind=st.sampled_from(["down", "loss 30%", "corrupt 30%", "rate 1G"]),
    at=st.integers(0, 60),
    lasting=st.integers(1, 400),
    times=st.integers(1, 3),
    reroute=st.none() | st.integers(0, 50),
    algo=st.sampled_from(["ring", "halvingdoubling", "tree"]),
)
def test_sums_are_exact_and_the_same_on_threads(
    place: str, kind: str, at: int, lasting: int, times: int, reroute: int | None, algo: str
) -> None:
    text = f"{place} {kind} at {at}us for {lasting}us every 500us times {times}"
    delay = None if reroute is None else reroute * US
    results = [
        run(network(text, reroute_ps=delay, threads=threads), algo=algo)  # type: ignore[arg-type]
        for threads in (1, 2)
    ]
    one, other = (replace(each, wall_s=0, owner_series={}, link_series={}) for each in results)
    assert (one.time_ps, one.lost, one.link_bytes) == (other.time_ps, other.lost, other.link_bytes)


@given(st.data(), st.booleans())
def test_updates_make_routes_what_others_are(data: st.DataObject, ecmp: bool) -> None:
    """Applied to the entries of one topology, they give those of the other."""
    graph = build("fattree,k=4")
    inner = [edge for edge in graph.edges if set(edge) <= set(switches(graph))]
    some = data.draw(st.lists(st.sampled_from(inner), max_size=4))
    left = graph.copy()
    left.remove_edges_from(some)
    try:
        after = forwarding_rows(left, ecmp=ecmp)
    except TopologyError:
        return
    before = forwarding_rows(graph, ecmp=ecmp)
    for name in switches(graph):
        entries = {_key(each): each for each in entities_of(before[name])}
        for update in route_updates(before[name], after[name]):
            verb = update._update_type.name
            assert (verb == "INSERT") == (_key(update) not in entries)
            if verb == "DELETE":
                del entries[_key(update)]
            else:
                entries[_key(update)] = replace(update)
        assert {key: str(each.action) for key, each in entries.items()} == {
            _key(each): str(each.action) for each in entities_of(after[name])
        }


def _key(entry: object) -> str:
    return f"{entry.table_id} {entry.match}"  # type: ignore[attr-defined]


def test_traces_take_no_new_routes_and_rates(tmp_path: pytest.TempPathFactory) -> None:
    with pytest.raises(ConfigError, match="reroute: traces have a switch's routes at the begin"):
        NetworkOptions(record=tmp_path, reroute_ps=1)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="faults: traces have ports' rates at the beginning"):
        NetworkOptions(record=tmp_path, faults=read("s0 rate 1G"))  # type: ignore[arg-type]
    assert NetworkOptions(record=tmp_path, faults=read("s0 down for 1us"))  # type: ignore[arg-type]
