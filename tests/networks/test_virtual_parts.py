"""The parts of a virtual network that Python does: its tables, stops, restarts and watches."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_virtual_tiny import FRAME_PS, LINE_BYTES, MESSAGE, STAR
from timed_messages import TimedMessages

import ringleaf.networks.virtual.loop as loop
import ringleaf.networks.virtual.state as s
from ringleaf.collectives.registry import find_algorithm
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core import compiled, packets
from ringleaf.core.heap import push_event
from ringleaf.core.packets import write_packet
from ringleaf.core.tensors import INT32
from ringleaf.core.units import FOREVER_PS
from ringleaf.errors import BackendError
from ringleaf.ina.occupancy import Usage
from ringleaf.ina.registry import find_system
from ringleaf.networks.endpoints import connections
from ringleaf.networks.faults import Disturbance, LinkLoss, LinkRate, Restart
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import VirtualNetwork, occupancy
from ringleaf.networks.virtual import network as network_module
from ringleaf.networks.virtual.capture import CaptureBuffer
from ringleaf.networks.virtual.events import IDLE
from ringleaf.networks.virtual.occupancy import Occupancy
from ringleaf.networks.virtual.passage import Passage
from ringleaf.networks.virtual.regions import Regions
from ringleaf.networks.virtual.watch import Sight
from ringleaf.switches.engine.queues import PACKETS, push
from ringleaf.topologies.delays import with_delays
from ringleaf.topologies.registry import build
from ringleaf.topologies.route_table import RouteTable
from ringleaf.topologies.routing import routes

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")
GRID_PS = 10**6 + 67_200
"""The shortest time to the next node: 1 us, and 84 bytes at 10 Gbit/s."""


def star(**options: Any) -> VirtualNetwork:
    """Return two hosts and a switch, 10 Gbit/s and 1 us a link."""
    return VirtualNetwork(build(STAR.format(2)), NetworkOptions(mtu_bytes=256, **options))


def send(network: VirtualNetwork, elements: int = MESSAGE, **more: Any) -> RunResult:
    """Send a message from h1 to h0, of 4 packets unless told otherwise."""
    moves = (Transfer(0, 1, 0, 0, Op.REDUCE),)
    schedule = Schedule(Collective.REDUCE, "incast", 2, 1, moves)
    return network.run(schedule, network.arrays(elements, INT32, schedule), **more)


def reduction(network: VirtualNetwork) -> tuple[Schedule, Any]:
    """Return an allreduce of both hosts by the switch, and its tensors."""
    schedule = find_algorithm("switchml").build(2, size_bytes=4 * 64)
    return schedule, network.arrays(64, INT32, schedule)


# Tables.


def test_delays_in_nodes_belong_to_what_they_send_or_receive() -> None:
    """1 us of link, 300 ps in the switch, 500 ps in hosts on each way; a packet's pass has 300."""
    graph = with_delays(build(STAR.format(2)), switch_delay_ps=300, host_delay_ps=500)
    net = VirtualNetwork(graph, NetworkOptions())._net()
    assert net.ports[:, s.PEER].tolist() == [2, 3, 0, 1]
    assert net.ports[:, s.NODE].tolist() == [0, 0, 1, 2]
    assert net.ports[:, s.LOCAL_PORT].tolist() == [1, 2, *net.ports[2:, s.LOCAL_PORT]]
    assert net.ports[:, s.INWARD_PS].tolist() == [300, 300, 500, 500]
    assert net.ports[:, s.OUTWARD_PS].tolist() == [0, 0, 500, 500]
    assert net.ports[:, s.DELAY_PS].tolist() == [10**6 + 500] * 2 + [10**6 + 800] * 2
    assert net.ports[:, s.RATE_BPS].tolist() == 4 * [10**10]
    assert (net.ports[:, s.QUEUES_AT] > 0).tolist() == [True, True, False, False]
    assert net.nodes[:, s.PASS_PS].tolist() == [300, 0, 0]
    assert net.nodes[:, s.KIND].tolist() == [s.SWITCH, s.HOST, s.HOST]
    assert net.nodes[:, s.FIRST_PORT].tolist() == [0, 2, 3]
    assert net.nodes[1:, s.FIRST_AGENT].tolist() == [0, int(net.nodes[1, s.AGENT_COUNT])]


def test_hosts_whose_agents_fetch_ahead_are_marked() -> None:
    """SwitchML's workers do, and the transport's agents beside them do not."""
    alone, aggregating = star(), star(system=find_system("switchml"), lanes=64)
    aggregating.run(*reduction(aggregating))
    assert alone._net().nodes[:, s.FETCHES_AHEAD].tolist() == [0, 0, 0]
    assert aggregating._net().nodes[:, s.FETCHES_AHEAD].tolist() == [0, 1, 1]


def test_recorded_packets_have_room_for_their_payload(tmp_path: Path) -> None:
    """256 lanes are 1,024 bytes, also where the transport's packets have 256."""
    system = find_system("switchml")
    plain = star(system=system, lanes=256)
    recorded = star(system=system, lanes=256, record=tmp_path / "trace")
    rooms = [int(each.store.arena.words[packets.HEAD_BYTES]) for each in (plain, recorded)]
    assert rooms[1] - rooms[0] == 4 * 256


@pytest.mark.parametrize("hops", [[3, 4], [3, 3]])  # before and after the second wait
def test_packets_that_go_on_after_a_collective_are_an_error(
    hops: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Timers may go on: controllers raise their rates."""
    network = star()
    reasons = iter([loop.REPORTED, loop.EMPTY, loop.REPORTED, loop.UNTIL, loop.UNTIL])
    monkeypatch.setattr(Passage, "run", lambda self, until_ps: next(reasons))
    monkeypatch.setattr(Passage, "_go_on", lambda self, reason: None)
    assert network.drain() == 0
    left = iter(hops)
    monkeypatch.setattr(Passage, "hops", property(lambda _: next(left)))
    if hops[1] == hops[0]:
        assert network.drain() == 0
        return
    with pytest.raises(BackendError, match="drain: nothing may happen any more"):
        network.drain()


def test_probabilities_and_jitter_are_those_of_the_options() -> None:
    options = NetworkOptions(loss=0.25, duplicate=0.5, reorder=0.125, jitter_ps=77)
    net = VirtualNetwork(build(STAR.format(2)), options)._net()
    assert net.ports[:, s.LOSS].tolist() == 4 * [s.PROBABILITY_ONE // 4]
    assert net.state[[s.DUPLICATE, s.REORDER]].tolist() == [
        s.PROBABILITY_ONE // 2, s.PROBABILITY_ONE // 8,
    ]  # fmt: skip
    assert net.state[s.JITTER_PS] == 77


def test_what_is_not_counted_has_empty_tables() -> None:
    network = star()
    assert network._net().queue_bins.size == 0
    network._net().state[s.DROPS_AT] = 0
    assert network._net().drops.size == 0


# Stops.


def later(network: VirtualNetwork, time_ps: int) -> None:
    """Have something happen at a time: an idle port of a host falls idle."""
    heap = int(network._net().state[s.HEAP_AT])
    push_event(network.store.arena.words, heap, time_ps, IDLE | 2 << 3, 1)


@pytest.mark.parametrize("is_busy", [False, True])
def test_links_are_disturbed_and_restored_in_time(is_busy: bool) -> None:
    """At 100 and 300 ps, after events of that instant, and whether events follow or not."""
    network = star(loss=0.25)
    if is_busy:
        later(network, 10**6)
    changes = [LinkLoss(100, ("h0", "s0"), 0.5), LinkLoss(300, ("h0", "s0"), None)]
    network._troubles.begin(changes, 0)
    found, stops = [], []
    for until_ps in (99, 100, 101, 300, 301):
        assert network._passage.run(until_ps) == (loop.UNTIL if is_busy else loop.EMPTY)
        found.append(network._net().ports[:, s.LOSS].tolist())
        stops.append(network.now_ps)
    usual = s.PROBABILITY_ONE // 4
    changed = [usual, usual, 2 * usual, usual]
    assert found == [4 * [usual], 4 * [usual], changed, changed, 4 * [usual]]
    assert stops == ([0, 0, 100, 100, 300] if is_busy else 5 * [0])


def test_a_run_that_ends_early_restores_its_links() -> None:
    network = star()
    down: list[Disturbance] = [
        LinkLoss(0, ("h0", "s0"), 1.0),
        LinkRate(0, ("s0", "h1"), 10**9),
        LinkLoss(2 * 10**9, ("h0", "s0"), None),
    ]
    rates = network._net().ports[:, s.RATE_BPS].tolist()
    network._troubles.begin(down, 0)
    assert sorted(network._net().ports[:, s.LOSS].tolist()) == [0, 0, 0, s.PROBABILITY_ONE]
    assert sorted(network._net().ports[:, s.RATE_BPS].tolist()) == [10**9, *rates[1:]]
    network._troubles.settle(0)
    assert network._net().ports[:, s.LOSS].tolist() == 4 * [0]
    assert network._net().ports[:, s.RATE_BPS].tolist() == rates
    assert network._troubles.next_ps == FOREVER_PS


def test_one_hears_how_far_a_run_is() -> None:
    """After 50 us of simulated time, later as little happens, of packet-hops, which only grow."""
    told: list[int] = []
    stops: list[int] = []
    network = star()

    def tell(hops: int) -> None:
        assert hops == network._net().state[s.HOPS]
        told.append(hops)
        stops.append(network.now_ps)

    result = send(network, 256 * MESSAGE, tell=tell)
    assert stops[:3] == [0, 50 * 10**6, 150 * 10**6]
    assert told == sorted(told)
    assert 0 < told[-1] <= result.packet_hops


def test_time_stands_at_the_end_of_a_window_after_a_run() -> None:
    """So what has been counted by then does not depend on the number of threads."""
    network = star()
    result = send(network)
    assert network.now_ps == result.time_ps - result.time_ps % GRID_PS + GRID_PS - 1
    start_ps = network.now_ps
    again = send(network)
    assert (network.now_ps + 1) % GRID_PS == 0
    assert 0 <= network.now_ps - start_ps - again.time_ps < GRID_PS
    assert (again.packet_hops, again.link_bytes) == (result.packet_hops, result.link_bytes)


def test_messages_are_noted_if_that_is_wanted() -> None:
    assert send(star()).notes == []
    result = send(star(watch_messages=9))
    assert len(result.notes) == 2  # its sender's end of it, and its receiver's
    assert result.left_out == 0
    few = send(star(), notes=1)  # of the last time for which there is room, all are left out
    assert (few.notes, few.left_out) == ([], 2)


def test_reports_that_are_left_do_not_keep_a_capture_from_its_end(tmp_path: Any) -> None:
    network = star(capture=tmp_path)
    later(network, 0)
    network.store.arena.words[network.endpoints.ring] = 1
    network.close()
    assert network._net().state[s.EVENTS] == 1


def messages(network: VirtualNetwork, *starts_ps: int) -> TimedMessages:
    """Return a director that has a message sent at each of some times."""
    schedule = Schedule(Collective.REDUCE, "incast", 2, 1, (Transfer(0, 1, 0, 0, Op.REDUCE),))
    return TimedMessages(network, (schedule, network.arrays(MESSAGE, INT32, schedule)), *starts_ps)


def test_a_director_is_called_when_it_wants_and_hears_of_ends_at_the_end_of_a_window() -> None:
    """A message is done when its answer is back: 4 frames and one, the answer's two, 4 us of links.

    Of an answer, 62 bytes and 24 are on the line. The second message is sent in an empty network.
    """
    network = star()
    director = messages(network, 1000, 20 * 10**6)
    result = network.play(director)
    assert director.reached == [1000, 20 * 10**6]
    first, second = director.finished
    end_ps = 1000 + 5 * FRAME_PS + 2 * 800 * (62 + 24) + 4 * 10**6
    assert first == (end_ps, end_ps - end_ps % GRID_PS + GRID_PS - 1)
    assert second[0] > 20 * 10**6
    assert (second[1] + 1) % GRID_PS == 0
    assert 0 <= second[1] - second[0] < GRID_PS
    assert result.time_ps == second[0]


def test_a_director_may_want_something_in_the_window_in_which_something_ends() -> None:
    network = star()
    director = messages(network, 0)
    network.play(director)
    ((end_ps, told_ps),) = director.finished
    for wanted_ps in (end_ps + 1, told_ps, told_ps + 1):
        director = messages(star(), 0, wanted_ps)
        director.network.play(director)
        assert director.reached == [0, wanted_ps]
        assert director.finished[0] == (end_ps, min(told_ps, wanted_ps))


def test_links_are_disturbed_while_a_director_plays_and_one_hears_how_far_it_is() -> None:
    network = star()
    changes: list[Disturbance] = [
        LinkLoss(FRAME_PS - 1, ("h1", "s0"), 1.0), LinkLoss(10**12, ("h1", "s0"), None),
        LinkLoss(FRAME_PS + 1, ("h1", "s0"), 0.0), LinkLoss(10**12 - 1, ("h1", "s0"), 1.0),
    ]  # fmt: skip
    told: list[int] = []
    result = network.play(messages(network, 0), told.append, disturbances=changes)
    assert result.lost == 1
    assert result.retransmissions > 0
    assert told[-1] > 0
    assert not network._net().ports[:, s.LOSS].any()


@pytest.mark.parametrize("plays", [False, True])
def test_memory_of_switches_is_sampled_in_the_course_of_a_sum(plays: bool) -> None:
    """At equal intervals, until the end: nothing is in use at first, something then, and nothing.

    A slot is in use from when one host's packet has come until both have; some of h1's are lost.
    """
    options = NetworkOptions(system=find_system("switchml"), lanes=64, watch_memory=True, slots=4)
    network = VirtualNetwork(build(STAR.format(2)), options)
    schedule = find_algorithm("switchml").build(2, size_bytes=4 * 64 * 8)
    arrays = network.arrays(64 * 8, INT32, schedule)
    changes = [LinkLoss(1, ("h1", "s0"), 1.0), LinkLoss(10**6, ("h1", "s0"), None)]
    if plays:
        director = messages(network, 0)
        director.message = schedule, arrays
        result = network.play(director, disturbances=changes)
    else:
        result = network.run(schedule, arrays, disturbances=changes)
    (series,) = result.memory_series.values()
    samples = series.sum(axis=0)
    assert len(samples) == network.now_ps // result.memory_interval_ps + 1
    assert samples[0] == samples[-1] == 0
    assert 0 < samples.max() <= 4


def test_switches_are_watched_while_a_director_plays() -> None:
    network = star(watch_memory=True)
    network.play(messages(network, 0))
    assert network._passage.occupancy is None  # none of them adds anything


# Restarts.


def test_a_switch_that_restarts_has_its_tables_and_nothing_else() -> None:
    network = VirtualNetwork(build("torus2d,x=3,y=1"), NetworkOptions())
    words, net = network.store.arena.words, network._net()
    queues = net.ports[net.ports[:, s.QUEUES_AT] > 0, s.QUEUES_AT]
    for each in queues:
        assert push(words, int(each), write_packet(network.store.arena, bytes(60)), 0)
    before = net.nodes[:3, s.BLOCK_AT].tolist()
    network.restart("s1")
    net, words = network._net(), network.store.arena.words
    after = net.nodes[:3, s.BLOCK_AT].tolist()
    assert [one != other for one, other in zip(before, after, strict=True)] == [False, True, False]
    assert network.switches["s1"].at == after[1]
    assert words[queues + PACKETS].tolist() == 3 * [1] + 3 * [0] + 3 * [1]


def test_a_switch_forwards_after_its_restart_as_before() -> None:
    plain, restarted = star(), star()
    assert send(plain).finish_ps == send(restarted, disturbances=[Restart(0, "s0")]).finish_ps
    restarted.restart("s0")
    assert send(plain).finish_ps == send(restarted).finish_ps


# Watches.


def test_a_watch_sees_each_packet_at_each_port_with_its_time() -> None:
    """Each of four frames leaves h1, comes to s0, leaves it, and comes to h0."""
    network = star()
    seen: list[Sight] = []
    network.watch(seen.extend)
    send(network)
    frames = [
        (each.place.node, each.place.peer, each.sent, each.time_ps)
        for each in seen
        if len(each.data) == LINE_BYTES - 24
    ]
    gone = [n * FRAME_PS for n in range(4)]
    there = [(n + 1) * FRAME_PS + 10**6 for n in range(4)]
    come = [(n + 2) * FRAME_PS + 2 * 10**6 for n in range(4)]
    assert sorted(frames) == sorted(
        [
            *(("h1", "s0", True, time_ps) for time_ps in gone),
            *(("s0", "h1", False, time_ps) for time_ps in there),
            *(("s0", "h0", True, time_ps) for time_ps in there),
            *(("h0", "s0", False, time_ps) for time_ps in come),
        ]
    )
    assert [each.time_ps for each in seen] == sorted(each.time_ps for each in seen)
    assert not any(each.lost for each in seen)


def test_a_watch_says_what_a_link_loses() -> None:
    """Both of the first, and another one of the last instant, are lost."""
    network = star()
    seen: list[list[Sight]] = []
    network.watch(lambda sights: seen.append([*sights]))
    changes: list[Disturbance] = [
        LinkLoss(0, ("h1", "s0"), 1.0), LinkLoss(FRAME_PS, ("h1", "s0"), None),
    ]  # fmt: skip
    result = send(network, disturbances=changes)
    lost = [each for sights in seen for each in sights if each.lost]
    assert [(each.place.node, each.sent, each.time_ps) for each in lost] == [
        *(("h1", True, time_ps) for time_ps in (0, FRAME_PS)),
    ]
    assert result.lost == 2


@pytest.mark.parametrize(("hosts", "each_event", "rows"), [(3, False, 4), (3, True, 8)])
def test_a_buffer_has_room_for_what_one_event_may_capture(
    hosts: int, each_event: bool, rows: int
) -> None:
    """A packet per port of a switch, and one; after an event all hosts may send one each."""
    network = VirtualNetwork(build(STAR.format(hosts)), NetworkOptions())
    CaptureBuffer(network.store, network._network, longest_bytes=100, each_event=each_event)
    state = network._net().state
    for kind, at, size in (
        ("words", s.CAPTURE_AT, s.CAPTURE_ROW_WORDS * int(state[s.CAPTURE_ROWS])),
        ("bytes", s.CAPTURE_BYTES_AT, int(state[s.CAPTURE_ROOM])),
    ):
        assert network.store.allocate(kind, 1) >= network._net().state[at] + size
    state = network._net().state
    assert state[[s.CAPTURE_RESERVE, s.CAPTURE_RESERVE_ROWS]].tolist() == [100 * rows, rows]
    assert state[s.CAPTURE_ROWS] == (rows if each_event else 1 << 14)
    assert state[s.CAPTURE_ROOM] == 8 << 20
    CaptureBuffer(network.store, network._network, each_event=each_event)
    assert network._net().state[s.CAPTURE_RESERVE] == 10_240 * rows
    CaptureBuffer(network.store, network._network, longest_bytes=2 << 20, each_event=each_event)
    assert network._net().state[s.CAPTURE_ROOM] == 2 * rows * (2 << 20)


# Threads.


def test_every_region_has_a_thread_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait for each other, so none can be left out, and none can have two regions."""
    regions = VirtualNetwork(build(STAR.format(4)), NetworkOptions(threads=4))._regions
    assert len(regions.blocks) == 4
    together = threading.Barrier(4, timeout=60)
    went: list[tuple[int, int]] = []

    def run(_self: Regions, region: int, until_ps: int) -> int:
        went.append((region, until_ps))
        together.wait()
        return loop.UNTIL

    monkeypatch.setattr(Regions, "_run_region", run)
    monkeypatch.setattr(compiled, "UNCOMPILED", False)
    assert regions.run(77) == loop.UNTIL
    assert sorted(went) == [(region, 77) for region in range(4)]


@pytest.mark.parametrize(("delay_ps", "threads"), [(132_799, 1), (132_800, 2)])
def test_windows_of_less_than_200_ns_are_not_worth_threads(delay_ps: int, threads: int) -> None:
    """84 bytes take 67.2 ns."""
    graph = build(STAR.format(2).partition(",delay")[0], delay_ps=delay_ps)
    assert VirtualNetwork(graph, NetworkOptions(threads=2)).threads == threads


def test_windows_lie_on_a_grid_from_0() -> None:
    regions = star()._regions
    assert regions.grid_ps == GRID_PS
    times = (0, 1, GRID_PS - 1, GRID_PS, GRID_PS + 1)
    ends = [regions.end_of_window(time_ps) for time_ps in times]
    assert ends == 3 * [GRID_PS - 1] + 2 * [2 * GRID_PS - 1]


# Memory of switches.


class Reader:
    """Reads the jobs of the entries in use of a switch, which here are all that it is."""

    def usage(self, switches: Any, jobs: int) -> Usage:
        return lambda: np.array(
            [np.bincount(np.array(each, np.int64), minlength=jobs) for each in switches]
        )


def watched(
    switches: dict[str, list[int]], most: int = occupancy.SAMPLES, start_ps: int = 0
) -> Occupancy:
    reader = Reader()
    system = SimpleNamespace(reader=lambda: reader)
    groups: Any = [SimpleNamespace(system=system, number=number) for number in (1, 3)]
    groups.append(SimpleNamespace(system=None, number=2))
    return Occupancy(switches, groups, start_ps, most)  # type: ignore[arg-type]


def test_entries_are_counted_by_switch_and_job() -> None:
    """Two groups of one system are read once; the interval is 1 us at first."""
    switches = {"s0": [1, 1, 3], "s1": []}
    memory = watched(switches, 4, start_ps=500)
    assert memory.next_ps == 500
    memory.sample(499)
    memory.sample(500)
    switches["s0"][:] = [3]
    switches["s1"][:] = [1, 2, 1]
    memory.sample(2_000_499)
    assert memory.next_ps == 2_000_500
    series = memory.series()
    assert series["s0"].tolist() == [[0, 0], [2, 0], [0, 0], [1, 1]]
    assert series["s1"].tolist() == [[0, 0], [0, 2], [0, 1], [0, 0]]


def test_there_are_512_samples_at_most_and_an_even_number() -> None:
    """The 513th, at 512 us, is the first of an interval of 2 us."""
    memory = watched({"s0": []})
    memory.sample(511 * 10**6)
    assert (memory.interval_ps, memory.series()["s0"].shape[1]) == (10**6, 512)
    memory.sample(512 * 10**6)
    assert (memory.interval_ps, memory.series()["s0"].shape[1]) == (2 * 10**6, 257)


@given(st.lists(st.integers(0, 5 * 10**6), max_size=12), st.sampled_from((2, 4, 8)))
def test_samples_are_those_of_equal_intervals(steps_ps: list[int], most: int) -> None:
    """Of a use that grows by one with each step: what it was at the sample's time."""
    switches: dict[str, list[int]] = {"s0": []}
    memory = watched(switches, most)
    uses, now_ps = [0], 0
    changes = [0]
    for step_ps in steps_ps:
        now_ps += step_ps
        memory.sample(now_ps)
        switches["s0"].append(1)
        changes.append(now_ps)
        uses.append(uses[-1] + 1)
    found = memory.series()["s0"][1].tolist()
    assert len(found) <= most
    assert memory.interval_ps % occupancy.FIRST_INTERVAL_PS == 0
    for number, use in enumerate(found):
        time_ps = number * memory.interval_ps
        before = [u for u, at in zip(uses, changes, strict=True) if at < time_ps or u == 0]
        assert use == before[-1]
    if steps_ps:
        assert len(found) == now_ps // memory.interval_ps + 1
        assert memory.interval_ps == occupancy.FIRST_INTERVAL_PS or len(found) > most // 2


def test_switches_and_hosts_have_the_same_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are computed once, as they take long in large networks."""
    made: list[object] = []

    def count(graph: Any) -> RouteTable:
        made.append(graph)
        return routes(graph)

    for module in (network_module, connections):
        monkeypatch.setattr(module, "routes", count)
    star()
    assert len(made) == 1
