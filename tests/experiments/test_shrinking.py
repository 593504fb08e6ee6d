"""Communicators that shrink: hosts are lost for good, and the others begin again without them.

On one switch, ranks that are left are where ranks of a smaller star are: so their time is that of
a network which never had the lost ones, and the time at which they began again.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import running
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.faults import parse_faults
from ringleaf.core.tensors import INT32
from ringleaf.errors import BackendError, ConfigError
from ringleaf.experiments.checking.data import Noise
from ringleaf.experiments.workloads.collective.communicator import Communicator, Shrinking
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.measuring import Measurement
from ringleaf.networks.faults import lost_hosts
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.registry import build

US = 1_000_000  # ps
STAR = "leafspine,leaves=1,spines=1,hosts={}"
SIZE = 1 << 18


def measure(*inputs: np.ndarray[Any, Any], **options: str) -> Measurement:
    spec = resolve({"topo": STAR.format(4), "algo": "ring", "size": str(SIZE), **options})
    (found,) = CollectiveExperiment(spec, inputs or None).run()
    return found


@pytest.mark.parametrize("net", ["virtual", "flow"])
@pytest.mark.parametrize("algo", ["ring", "tree", "halvingdoubling", "alltoall", "allgather"])
def test_the_time_is_that_of_the_loss_and_of_those_who_are_left(algo: str, net: str) -> None:
    smaller = measure(algo=algo, net=net, topo=STAR.format(3)).row
    row = measure(algo=algo, net=net, faults="h3 down at 7us", shrink="90us").row
    assert (row.lost_hosts, row.ranks_left, row.again_ps) == ("h3", 3, 97 * US)
    assert row.time_ps == 97 * US + smaller.time_ps
    assert row.bound_ps == 97 * US + smaller.bound_ps
    assert row.floor_ps == 97 * US
    assert row.algbw_gb_s == pytest.approx(SIZE / (97e-6 + smaller.time_ps * 1e-12) / 1e9)
    assert row.busbw_gb_s / row.algbw_gb_s == pytest.approx(smaller.busbw_gb_s / smaller.algbw_gb_s)
    assert row.wrong == 0
    assert row.wire_bytes >= smaller.wire_bytes


@pytest.mark.parametrize("algo", ["switchml", "atp", "sharp"])
def test_trees_are_of_those_who_are_left(algo: str) -> None:
    smaller = measure(algo=algo, topo=STAR.format(3)).row
    row = measure(algo=algo, faults="h3 down at 7us", shrink="90us").row
    assert row.time_ps == 97 * US + smaller.time_ps
    assert row.bound_ps == 97 * US + smaller.bound_ps
    assert (row.wrong, row.ranks_left) == (0, 3)


@pytest.mark.parametrize("algo", ["ring", "switchml"])
def test_bounds_are_of_the_hosts_that_are_left(algo: str) -> None:
    """One is left on each of two switches: the first two hosts would be on one."""
    racks = "leafspine,leaves=2,spines=1,hosts={}"
    smaller = measure(algo=algo, topo=racks.format(1)).row
    faults = "h1 down at 7us, h3 down at 7us"
    row = measure(algo=algo, topo=racks.format(2), faults=faults, shrink="90us").row
    assert row.time_ps == 97 * US + smaller.time_ps
    assert row.bound_ps == 97 * US + smaller.bound_ps


def test_sums_are_of_what_those_who_are_left_brought() -> None:
    """Rank r brings 2^r, as often as it has begun: had it been added twice, it would show."""
    inputs = [np.full(SIZE // 4, 2**rank, np.int32) for rank in range(4)]
    found = measure(*inputs, dtype="int32", faults="h1 down at 7us", shrink="90us")
    assert found.tensors is not None
    assert len(found.tensors) == 3
    for tensor in found.tensors:
        assert np.array_equal(np.asarray(tensor), np.full(SIZE // 4, 1 + 4 + 8))
    assert [int(each[0]) for each in inputs] == [1, 2, 4, 8]


def test_inputs_that_are_made_are_those_that_they_brought() -> None:
    made = Noise(5, 4, 100, INT32)
    left = made.of([0, 2, 3])
    assert left.ranks == 3
    for place, rank in enumerate([0, 2, 3]):
        assert np.array_equal(left.part(place, 10, 90), made.part(rank, 10, 90))
    assert made.ranks == 4


def test_who_is_lost_later_is_left_out_later() -> None:
    """The second loss is in the second attempt; the third host goes when the run is over."""
    smaller = measure(topo=STAR.format(2)).row
    faults = "h1 down at 7us, h2 down at 99us, h0 down at 5ms"
    row = measure(faults=faults, shrink="90us").row
    assert (row.lost_hosts, row.ranks_left, row.again_ps) == ("h1 h2", 2, 189 * US)
    assert row.time_ps == 189 * US + smaller.time_ps
    assert row.wrong == 0


def test_who_is_lost_before_the_others_begin_again_is_left_out_at_once() -> None:
    row = measure(faults="h1 down at 7us, h2 down at 97us", shrink="90us").row
    assert (row.lost_hosts, row.ranks_left, row.again_ps) == ("h1 h2", 2, 97 * US)


def test_other_faults_go_on_where_they_were() -> None:
    """A link is slow from the start; and another comes back after those who are left have begun."""
    slow = measure(topo=STAR.format(3), faults="h0 rate 10G")
    again = measure(faults="h0 rate 10G, h3 down at 7us", shrink="90us")
    assert again.row.time_ps == 97 * US + slow.row.time_ps
    late = measure(topo=STAR.format(3), faults="h0 down at 0 for 13us")
    again = measure(faults="h0 down at 100us for 10us, h3 down at 7us", shrink="90us")
    usual = measure(faults="h3 down at 7us", shrink="90us")
    assert again.row.wrong == late.row.wrong == 0
    assert again.row.time_ps > usual.row.time_ps


def test_a_run_that_is_over_before_is_as_without_it() -> None:
    plain = measure()
    row = measure(faults="h3 down at 9ms", shrink="90us").row
    assert row.time_ps == plain.row.time_ps
    assert (row.lost_hosts, row.ranks_left, row.again_ps) == ("", None, None)
    assert row.bound_ps == plain.row.bound_ps


def test_the_last_results_may_come_after_a_loss() -> None:
    """The root has sent all, and knows it: nobody needs it any more."""
    plain = measure(algo="broadcast")
    at_ps = (plain.outcome.finish_ps[0] + plain.row.time_ps) // 2
    row = measure(algo="broadcast", faults=f"h0 down at {at_ps}ps", shrink="1ms").row
    assert (row.time_ps, row.ranks_left, row.wrong) == (plain.row.time_ps, None, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"faults": "h3 down at 7us"}, "nothing has got through .* or go on without h3: --shrink"),
        (
            {"faults": "h0 down at 1us", "algo": "reduce"},
            "shrink: reduce needs its root, rank 0, got its host h0 lost; let another host fail",
        ),
        (
            {"faults": "h3 down at 1us", "algo": "ps", "servers": "1"},
            "shrink: ps needs its servers, got h3 lost; leave a server alone",
        ),
        (
            {"faults": "h0 down at 1us, h1 down at 2us, h2 down at 3us"},
            "shrink: ring needs 2 ranks, got 1 left at 91us without h0, h1, h2; let fewer hosts",
        ),
    ],
)
def test_who_can_not_go_on_says_why(options: dict[str, str], message: str) -> None:
    given = options if "without h3" in message else {"shrink": "90us", **options}
    with pytest.raises(BackendError, match=message):
        measure(**given)


def test_an_algorithm_of_one_number_of_ranks_ends(tmp_path: Path) -> None:
    path = tmp_path / "mine.xml"
    path.write_text(
        '<algo name="mine" nchannels="1" nchunksperloop="2" ngpus="2" proto="Simple" '
        'coll="allgather" inplace="1">'
        + "".join(
            f'<gpu id="{me}" i_chunks="1" o_chunks="2" s_chunks="0">'
            f'<tb id="0" send="{1 - me}" recv="{1 - me}" chan="0">'
            f'<step s="0" type="s" srcbuf="o" srcoff="{me}" dstbuf="o" dstoff="{me}" cnt="1" '
            'depid="-1" deps="-1" hasdep="0"/>'
            f'<step s="1" type="r" srcbuf="o" srcoff="{1 - me}" dstbuf="o" dstoff="{1 - me}" '
            'cnt="1" depid="-1" deps="-1" hasdep="0"/></tb></gpu>'
            for me in range(2)
        )
        + "</algo>"
    )
    lost = {"faults": "h1 down at 0", "shrink": "90us", "size": "64K"}
    with pytest.raises(BackendError, match="shrink: "):
        measure(algo=str(path), topo=STAR.format(2), **lost)


def test_a_server_that_nobody_asks_may_go() -> None:
    row = measure(faults="h3 down at 1us", servers="1", shrink="1us").row
    assert (row.lost_hosts, row.wrong) == ("", 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"explain": "yes"}, "shrink: explain has one communicator from start to end, got .*90us"),
        (
            {"topo": "circuits", "circuits": "helios"},
            "shrink: circuits has one communicator from start to end, got shrink=90us",
        ),
        ({"algo": "gtopk:1%"}, "shrink: algo=gtopk:1% has several exchanges, whose ranks stay"),
        ({"shrink": "soon"}, "shrink: "),
    ],
)
def test_what_can_not_shrink_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve({"algo": "ring", "size": "1K", "shrink": "90us", **options})


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["ring", "biring", "tree", "doubletree", "recursivedoubling", "blueconnect"]),
    st.sets(st.integers(0, 7), min_size=1, max_size=6),
    st.integers(0, 60),
    st.sampled_from(["0", "1us", "40us"]),
    st.sampled_from(["given", "topology", "random"]),
)
def test_whoever_is_lost_sums_of_the_others_are_right(
    algo: str, lost: set[int], at_us: int, shrink: str, order: str
) -> None:
    """All go within some microseconds, so that some are lost in later attempts."""
    faults = ", ".join(f"h{host} down at {at_us + 7 * host}us" for host in lost)
    row = measure(
        topo="leafspine,leaves=2,spines=2,hosts=4",
        algo=algo,
        size="20000",
        dtype="int32",
        faults=faults,
        shrink=shrink,
        rank_order=order,
    ).row
    assert row.wrong == 0
    if row.ranks_left is not None:
        assert row.ranks_left == 8 - len(row.lost_hosts.split())
        assert row.time_ps >= row.bound_ps > (row.again_ps or 0)
    assert {int(each[1:]) for each in row.lost_hosts.split()} <= lost


@pytest.mark.parametrize(
    ("faults", "lost"),
    [
        ("h3 down at 7us", {"h3": 7}),
        ("h3-s1 down at 7us", {"h3": 7}),
        ("s0 down at 7us, h0 slow 2", {"h0": 7, "h1": 7}),
        ("h3 down at 7us for 1ms", {}),
        ("h3 loss 100% at 7us", {}),
        ("s0-s2 down at 7us", {}),
    ],
)
def test_a_host_is_lost_with_its_last_link(faults: str, lost: dict[str, int]) -> None:
    graph = build("leafspine,leaves=2,spines=2,hosts=2")
    found = lost_hosts(parse_faults(faults, "faults"), graph)
    assert found == {host: at * US for host, at in lost.items()}


def test_a_server_is_lost_with_its_last_port() -> None:
    graph = build("bcube,n=2,k=1")
    (server,) = graph["h0"]
    first, second = (f"{server}-{peer}" for peer in sorted(graph[server]) if peer != "h0")
    one = parse_faults(f"{first} down at 7us", "faults")
    assert lost_hosts(one, graph) == {}
    both = parse_faults(f"{first} down at 7us, {second} down at 9us", "faults")
    assert lost_hosts(both, graph) == {"h0": 9 * US}


def test_of_a_network_in_two_halves_the_first_one_stays() -> None:
    graph = build("leafspine,leaves=2,spines=2,hosts=2")
    halves = parse_faults("s2 down at 7us, s3 down at 9us, h0 down at 11us", "faults")
    assert lost_hosts(halves, graph) == {"h2": 9 * US, "h3": 9 * US, "h0": 11 * US}
    others = parse_faults("h0 down at 1us, s2 down at 7us, s3 down at 9us", "faults")
    assert lost_hosts(others, graph) == {"h0": US, "h1": 9 * US}


def test_communicators_by_hand() -> None:
    """Hosts 1 and 4 go at 10 and 30 us, host 5 is a server; others know 15 us later."""
    first = Communicator.of_all(build("leafspine,leaves=3,spines=1,hosts=2"), 1)
    shrinking = Shrinking({"h1": 10 * US, "h4": 30 * US, "h5": 12 * US}, 15 * US)
    assert shrinking.until_ps(first, served=False) == 25 * US
    second = shrinking.without_lost(first, where="ring", root=None, served=False)
    assert second.hosts == ("h0", "h2", "h3", "h4")
    assert (second.numbers, second.begins_ps) == ((0, 2, 3, 4), 25 * US)
    assert shrinking.until_ps(second, served=False) == 20 * US
    third = shrinking.without_lost(second, where="ring", root=None, served=False)
    assert third.hosts == ("h0", "h2", "h3")
    assert (third.numbers, third.begins_ps) == ((0, 2, 3), 45 * US)
    assert (third.lost, third.hierarchy) == (("h1", "h4"), (3,))
    assert shrinking.until_ps(third, served=False) is None
    assert shrinking.until_ps(third, served=True) == 0  # its server should have been known to go


def test_cycles_pass_by_who_is_lost() -> None:
    graph = build("torus2d,x=2,y=2")
    first = Communicator.of_all(graph, 0)
    (cycle, *_) = first.embedding.cycles
    second = Shrinking({"h1": 0}, 0).without_lost(first, where="ring", root=None, served=False)
    left = [second.numbers[place] for place in second.embedding.cycles[0]]
    assert left == [rank for rank in cycle if rank != 1]


def test_threads_give_up_with_the_same_counts() -> None:
    """Groups of several threads end at the time that is set, wherever their windows were."""
    found = set()
    for threads in (1, 2):
        options = NetworkOptions(faults=parse_faults("h5 down at 3us", "faults"), threads=threads)
        network = VirtualNetwork(build("leafspine,leaves=4,spines=2,hosts=4"), options)
        assert network.threads == threads
        schedule = ALGORITHMS["ring"].build(16, size_bytes=1 << 20)
        result = network.run(schedule, network.arrays(1 << 18, INT32, schedule), until_ps=33 * US)
        assert result.gave_up
        assert result.time_ps == 33 * US
        links = tuple(sorted(result.link_bytes.items()))
        found.add((links, result.retransmissions, result.lost, result.packet_hops))
    assert len(found) == 1


def test_results_say_who_is_left_and_when(tmp_path: Path) -> None:
    """A bar for each communicator in the timeline; captures of both are kept apart."""
    options: dict[str, Any] = {"topo": STAR.format(4), "algo": "ring", "size": "64K"}
    options |= {"faults": "h1 down at 7us", "shrink": "90us", "pcap": "yes"}
    results = running.run({**options, "out": str(tmp_path)})
    assert "ring at 64 KiB: 3 ranks began again at 97 us, without h1" in list(results.foot())
    assert any("ranks go on without lost hosts 90 us later" in line for line in results.about)
    page = (tmp_path / "report.html").read_text()
    assert "Hosts that were lost" in page
    assert "ring at 64 KiB: 3 ranks began again at 97 us, without h1." in page
    with (tmp_path / "results.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["lost_hosts"], row["ranks_left"], row["again_ps"]) == ("h1", "3", str(97 * US))
    events = json.loads((tmp_path / "timelines" / "ring-65536.json").read_text())["traceEvents"]
    bars = [each for each in events if each.get("cat") == "communicator"]
    assert [(each["name"], each["ts"]) for each in bars] == [("4 ranks", 0.0), ("3 ranks", 97.0)]
    assert sum(each["dur"] for each in bars) == pytest.approx(int(row["time_ps"]) / US)
    names = {each["args"]["name"] for each in events if each["name"] == "process_name"}
    assert names == {"network", "rank 0 on h0", "rank 1 on h2", "rank 2 on h3"}
    messages = [each for each in events if each.get("cat") in ("send", "receive")]
    assert min(each["ts"] for each in messages) >= 97
    folders = sorted(each.name for each in (tmp_path / "pcap").iterdir())
    assert folders == ["ring-65536", "ring-65536-without-h1"]
