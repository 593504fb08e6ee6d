"""Messages as flows take the times of packets where these are exact, and carry the same data."""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ringleaf
import ringleaf.networks.flow.layout as layout
from ringleaf.collectives.aggregate import in_network_allreduce
from ringleaf.collectives.algorithms.halvingdoubling import halving_doubling_allreduce
from ringleaf.collectives.algorithms.ring import ring_allreduce
from ringleaf.collectives.algorithms.tree import tree_allreduce
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core.units import FOREVER_PS
from ringleaf.errors import BackendError, ConfigError
from ringleaf.ina.registry import find_system
from ringleaf.networks.flow.network import FlowNetwork
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.delays import with_delays
from ringleaf.topologies.registry import build

RATE_BPS, DELAY_PS = 100_000_000_000, 1_000_000
HEADERS = 14 + 20 + 8 + 12 + 4 + 24  # Ethernet, IPv4, UDP, BTH, ICRC; preamble, FCS and gap
BYTE_PS = 80  # at 100 Gbit/s


def star(hosts: int) -> nx.Graph[str]:
    return build(f"leafspine,leaves=1,spines=1,hosts={hosts}", rate_bps=RATE_BPS, delay_ps=DELAY_PS)


def leafspine(leaves: int, spines: int, hosts: int) -> nx.Graph[str]:
    text = f"leafspine,leaves={leaves},spines={spines},hosts={hosts}"
    return build(text, rate_bps=RATE_BPS, delay_ps=DELAY_PS)


def copies(ranks: int, *ends: tuple[int, int]) -> Schedule:
    """One step in which ranks send the whole tensor, each a chunk of its own."""
    rows = [Transfer(0, src, dst, chunk, Op.COPY) for chunk, (src, dst) in enumerate(ends)]
    return Schedule(Collective.BROADCAST, "copies", ranks, len(ends), rows)


def run(
    graph: nx.Graph[str],
    schedule: Schedule,
    size_bytes: int,
    *,
    packets: bool = False,
    **options: object,
) -> RunResult:
    network_options = NetworkOptions(**options)  # type: ignore[arg-type]
    network = (VirtualNetwork if packets else FlowNetwork)(graph, network_options)
    arrays = network.arrays(size_bytes // 4, schedule=schedule)
    for array in arrays if network_options.has_data else ():
        array[:] = 1
    return network.run(schedule, arrays)


def test_a_message_alone_takes_what_its_packets_take() -> None:
    """Two links: all packets go by one, and the first full one by the other; then the delays."""
    line_bytes = 10_000 + 3 * HEADERS
    by_hand = BYTE_PS * (line_bytes + 4096 + HEADERS) + 2 * DELAY_PS

    for packets in (False, True):
        result = run(star(2), copies(2, (0, 1)), 10_000, packets=packets)
        assert result.finish_ps[1] == by_hand


@pytest.mark.parametrize("size_bytes", [4, 60, 4096, 4100, 100_000])
@pytest.mark.parametrize(
    "options",
    [{}, {"mtu_bytes": 256}, {"message_overhead_ps": 700_000}, {"window": 64}],
    ids=["usual", "mtu", "overhead", "window"],
)
def test_a_message_alone_takes_as_long_as_by_packets(
    size_bytes: int, options: Mapping[str, object]
) -> None:
    graph = with_delays(leafspine(2, 2, 2), switch_delay_ps=300_000, host_delay_ps=200_000)
    schedule = copies(4, (0, 3))

    flows, packets = (
        run(graph, schedule, size_bytes, packets=each, **options).time_ps for each in (False, True)
    )

    assert flows == pytest.approx(packets, abs=10)


def test_flows_to_one_host_share_its_link() -> None:
    """Both have half of the link that leads to host 2."""
    line_bytes = 500_000 + 123 * HEADERS
    by_hand = BYTE_PS * (2 * line_bytes + 4096 + HEADERS) + 2 * DELAY_PS

    assert run(star(3), copies(3, (0, 2), (1, 2)), 1_000_000).finish_ps[2] == by_hand


def test_an_end_that_is_put_off_comes() -> None:
    """Rank 1 begins when it has a chunk; from then on both have half of the link to host 2."""
    rows = [
        Transfer(0, 3, 1, 0, Op.COPY),
        *(Transfer(0, 0, 2, chunk, Op.COPY) for chunk in range(1, 11)),
        *(Transfer(1, 1, 2, chunk, Op.COPY) for chunk in (0, *range(11, 30))),
    ]
    schedule = Schedule(Collective.BROADCAST, "one later", 4, 30, rows)
    bytes_of = [chunks * 40_960 + chunks * 10 * HEADERS for chunks in (1, 10, 20)]
    by_hand = BYTE_PS * sum(bytes_of[1:]) + 2 * DELAY_PS + BYTE_PS * (4096 + HEADERS)

    assert run(star(4), schedule, 30 * 40_960).finish_ps[2] == pytest.approx(by_hand, rel=1e-3)


def test_a_rate_that_changes_often_brings_few_events() -> None:
    """A short message goes to and fro a hundred times, and shares a link with a long one."""
    short = [Transfer(i, *((1, 2), (2, 1))[i % 2], 400, Op.COPY) for i in range(100)]
    long = [Transfer(0, 0, 2, chunk, Op.COPY) for chunk in range(400)]

    one, both = (
        run(star(3), Schedule(Collective.BROADCAST, "to and fro", 3, 401, rows), 401 * 40_000)
        for rows in (short, [*long, *short])
    )

    assert both.time_ps > 1.2 * one.time_ps
    assert both.events < one.events + 20


def test_acknowledgements_take_their_part_of_the_way_back() -> None:
    """A window is 32 packets here, of which every eighth is acknowledged by 86 bytes."""
    both = run(star(2), copies(2, (0, 1), (1, 0)), 2 << 20).finish_ps[1]
    one = run(star(2), copies(2, (0, 1)), 1 << 20).finish_ps[1]

    assert both / one == pytest.approx(1 + 86 / (8 * 4178), rel=1e-3)


def test_acknowledgements_leave_half_of_a_link_that_is_much_slower() -> None:
    """3.6 Tbit/s forth by NVLink need 900 Gbit/s of answers, and PCIe leads back with 512."""
    assert layout.beside_answers(512e9, 900e9) == 256e9
    assert layout.beside_answers(100e9, 7.5) == 100e9 - 8
    flows, packets = (
        ringleaf.run(
            topo="leafspine,leaves=1,spines=0,hosts=2,node=3xh100,gpudirect=no",
            algo="reduce-gather",
            size="20000",
            routes="ksp:2",
            mtu="256",
            window="1",
            data="none",
            net=net,
        ).rows[0]
        for net in ("flow", "virtual")
    )
    assert flows.time_ps == pytest.approx(packets.time_ps, rel=0.02)


def test_a_small_window_limits_a_message_in_the_long_run() -> None:
    """A round trip is two full packets' and two acknowledgements' time, and four delays."""
    round_ps = BYTE_PS * 2 * (4096 + HEADERS + 86) + 4 * DELAY_PS

    time_ps = run(star(2), copies(2, (0, 1)), 4096 * 1000, window=2).time_ps

    assert time_ps == pytest.approx(500 * round_ps, rel=1e-2)


@pytest.mark.parametrize("elements", [1, 7, 1000, 40_003])
@pytest.mark.parametrize("algorithm", ["ring", "tree", "halvingdoubling"])
def test_sums_are_right(algorithm: str, elements: int) -> None:
    schedule = {
        "ring": ring_allreduce(8),
        "tree": tree_allreduce(8, 5),
        "halvingdoubling": halving_doubling_allreduce(8),
    }[algorithm]
    network = FlowNetwork(leafspine(2, 1, 4), NetworkOptions())
    arrays = network.arrays(elements, np.dtype(np.int32), schedule)
    rng = np.random.default_rng(1)
    for array in arrays:
        array[:] = rng.integers(-1000, 1000, elements)
    total = np.sum(arrays, axis=0, dtype=np.int32)

    network.run(schedule, arrays)

    assert all((array == total).all() for array in arrays)


def test_runs_after_one_another_take_as_long_as_by_packets() -> None:
    """The first one's messages leave before there is credit, those of others wait for it."""
    schedule = ring_allreduce(8)
    times = []
    for kind in (FlowNetwork, VirtualNetwork):
        network = kind(leafspine(2, 1, 4), NetworkOptions(has_data=False))
        arrays = network.arrays(50_000, schedule=schedule)
        times.append([network.run(schedule, arrays).time_ps for _ in range(3)])

    assert times[0] == pytest.approx(times[1], rel=0.005)
    assert times[0][1] == times[0][2]


def test_links_carry_the_bytes_of_packets() -> None:
    """All data; and acknowledgements, of which packets have a few more, as each brings credit."""
    flows, packets = (
        run(leafspine(2, 2, 4), ring_allreduce(8), 4 << 20, packets=each) for each in (False, True)
    )

    assert flows.link_bytes.keys() == packets.link_bytes.keys()
    for link, size_bytes in packets.link_bytes.items():
        assert flows.link_bytes[link] == pytest.approx(size_bytes, rel=0.01, abs=4000)
    assert flows.packet_hops == pytest.approx(packets.packet_hops, rel=0.02)


def test_series_have_all_bytes() -> None:
    result = run(star(3), copies(3, (0, 2), (1, 2)), 1_000_000)

    for link, size_bytes in result.link_bytes.items():
        assert result.link_series[link].sum() == size_bytes


def test_a_run_s_series_have_nothing_of_the_run_before() -> None:
    """They have all its bytes, and in no bin more than a link carries in its time."""
    network = FlowNetwork(leafspine(2, 2, 2), NetworkOptions(has_data=False, bins=8))
    schedule = ring_allreduce(4)
    for elements in (400_000, 30_000, 500_000, 30_000):
        result = network.run(schedule, network.arrays(elements, schedule=schedule))
        most_bytes = result.bin_ps / BYTE_PS
        for ends, series in result.link_series.items():
            assert series.sum() == result.link_bytes[ends]
            assert series.max() <= 1.001 * most_bytes + 2


def test_a_message_of_64_gib_has_no_more_in_a_bin_than_a_link_carries() -> None:
    """Its bytes times the picoseconds of a bin are more than a word holds."""
    result = run(star(2), copies(2, (0, 1)), 1 << 34, has_data=False)

    for link, series in result.link_series.items():
        assert series.sum() == result.link_bytes[link]
        assert 0 <= series.min() <= series.max() <= 1.001 * result.bin_ps / BYTE_PS


def test_a_message_has_as_many_bytes_in_each_bin_as_of_its_time() -> None:
    """On all links of its way, and its acknowledgements on theirs: to a byte for each bin."""
    result = run(star(2), copies(2, (0, 1)), 1_000_000, has_data=False)
    data_ps = result.link_bytes["h0", "s0"] * BYTE_PS

    assert data_ps > 10 * result.bin_ps
    for link, series in result.link_series.items():
        until_ps = (1 + np.arange(len(series))) * result.bin_ps
        so_far = result.link_bytes[link] * np.minimum(until_ps / data_ps, 1)
        assert np.abs(np.cumsum(series) - so_far).max() <= len(series), link


SCHEDULES = {
    "ring": ring_allreduce(8),
    "tree": tree_allreduce(8, 12),
    "halvingdoubling": halving_doubling_allreduce(8),
    # A chunk of rank 2 comes first to rank 0, which adds it last, when the rest has been sent on.
    "late": Schedule(
        Collective.REDUCE,
        "late",
        8,
        6,
        [
            Transfer(step, src, dst, chunk, op)
            for step, (src, dst, op) in enumerate(
                [
                    *((5, 4, Op.COPY), (4, 1, Op.COPY), (1, 0, Op.REDUCE)),
                    *((0, 3, Op.COPY), (2, 0, Op.REDUCE)),
                ]
            )
            for chunk in range(6)
        ],
    ),
    # Sums of one chunk wait for one another at rank 0, and go back.
    "hub": Schedule(
        Collective.ALLREDUCE,
        "hub",
        8,
        6,
        [
            *(
                Transfer(0, 8 - src, 0, chunk, Op.REDUCE)
                for src in range(1, 8)
                for chunk in range(6)
            ),
            *(Transfer(1, 0, dst, chunk, Op.COPY) for dst in range(1, 8) for chunk in range(6)),
        ],
    ),
}


def folded(series: npt.NDArray[np.int64], width: int, bins: int) -> npt.NDArray[np.int64]:
    """Return a series in bins that are as wide as so many of its own."""
    wide = np.zeros((bins, width), np.int64)
    wide.reshape(-1)[: len(series)] = series
    return np.asarray(wide.sum(axis=1))


@settings(deadline=None, max_examples=20)
@given(
    name=st.sampled_from(sorted(SCHEDULES)),
    size=st.sampled_from((4, 900, 20_000)),
    window=st.sampled_from((2, 16)),
    bins=st.sampled_from((4, 16)),
)
def test_bytes_counted_together_are_those_of_each_message(
    name: str, size: int, window: int, bins: int
) -> None:
    """Messages of one bin are counted together, so fewer are where bins are narrow."""
    schedule = SCHEDULES[name]
    graph, elements = leafspine(2, 2, 4), size * schedule.chunks
    networks = [
        FlowNetwork(graph, NetworkOptions(has_data=False, window=window, bins=each))
        for each in (bins, 4 * bins)
    ]
    for _ in range(2):  # the second run's bins begin later
        wide, narrow = (
            each.run(schedule, each.arrays(elements, schedule=schedule)) for each in networks
        )
        assert (wide.time_ps, wide.link_bytes) == (narrow.time_ps, narrow.link_bytes)
        for ends, series in wide.link_series.items():
            assert series.sum() == wide.link_bytes[ends], ends
            parts = folded(narrow.link_series[ends], wide.bin_ps // narrow.bin_ps, len(series))
            # A message's part of a bin is rounded down, that of k bins together by k / e at most.
            most = schedule.as_rows.messages * len(narrow.link_series[ends]) // 2
            assert np.abs(np.cumsum(series) - np.cumsum(parts)).max() <= most, ends


def both_ways(name: str, size: int, ahead: int | None, *, packets: bool) -> list[list[object]]:
    """Return what is counted with contents, and without."""
    schedule = SCHEDULES[name]
    results = (
        run(
            *(leafspine(2, 2, 4), schedule, 4 * size * schedule.chunks),
            packets=packets,
            has_data=has_data,
            ahead_bytes=ahead,
        )
        for has_data in (True, False)
    )
    names = ("finish_ps", "events", "refusals", "link_bytes", "peak_queue_bytes")
    return [[getattr(each, name) for name in names] for each in results]


@settings(deadline=None, max_examples=20)
@given(
    name=st.sampled_from(sorted(SCHEDULES)),
    size=st.sampled_from((4, 900, 20_000)),
    ahead=st.sampled_from((1, 10_000, None)),
)
def test_messages_without_contents_go_as_those_with_some(
    name: str, size: int, ahead: int | None
) -> None:
    with_data, without = both_ways(name, size, ahead, packets=False)

    assert with_data == without


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_packets_without_data_go_as_those_with_some(name: str) -> None:
    with_data, without = both_ways(name, 900, 1, packets=True)

    assert with_data == without


def test_flows_are_hashed_to_the_ports_that_packets_take() -> None:
    graph = build("fattree,k=4", rate_bps=RATE_BPS, delay_ps=DELAY_PS)
    schedule = copies(16, *((src, (src + 5) % 16) for src in range(16)))

    flows, packets = (
        run(graph, schedule, 16 * 8192, packets=each, ecmp=True).link_bytes
        for each in (False, True)
    )

    used = [{link for link, size in each.items() if size > 4000} for each in (flows, packets)]
    assert used[0] == used[1]


def test_messages_wait_for_receives_that_come_late() -> None:
    """Nothing is lost: rank 2 gets what it waits for only after rank 1 has had its own."""
    rows = [
        Transfer(0, 0, 1, 0, Op.COPY),
        Transfer(1, 1, 2, 0, Op.COPY),
        *(Transfer(2, 2, 0, chunk, Op.COPY) for chunk in range(1, 300)),
    ]
    schedule = Schedule(Collective.BROADCAST, "late", 3, 300, rows)

    flows, packets = (
        run(star(3), schedule, 300 * 64, packets=each).time_ps for each in (False, True)
    )

    assert flows == pytest.approx(packets, rel=0.05)


def test_a_run_in_which_nothing_happens_any_more_says_so() -> None:
    network, schedule = FlowNetwork(star(2), NetworkOptions()), copies(2, (0, 1))
    arrays = network.arrays(64, schedule=schedule)
    with network.endpoints.operation(schedule, arrays) as operation:
        network._machine.tables.update()

        with pytest.raises(BackendError, match="run: nothing is under way any more, got nobody"):
            network._machine.advance(FOREVER_PS, [operation])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"loss": 0.01}, "loss: no fluid model covers loss, got 0.01; take net=virtual"),
        ({"cc": "dctcp"}, "cc: no fluid model covers windows that change, got 'dctcp'"),
        ({"trim_bytes": 4096}, "trim: no fluid model covers trimming"),
        ({"discipline": "drr"}, "discipline: no fluid model covers this queueing"),
        ({"reorder": 0.1}, "reorder: no fluid model covers packets that come late"),
        ({"program": "tensorexpress"}, "program: flows run no P4 programs"),
    ],
)
def test_options_that_packets_alone_carry_out_are_refused(
    options: Mapping[str, object], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        FlowNetwork(star(2), NetworkOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("slots", [None, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_switchml_takes_as_long_and_sends_as_much_as_by_packets(
    slots: int | None, dtype: type
) -> None:
    schedule, elements = in_network_allreduce(8, "switchml"), 50_000
    options = NetworkOptions(system=find_system("switchml"), slots=slots)
    times, counts = [], []
    for kind in (FlowNetwork, VirtualNetwork):
        network = kind(leafspine(2, 1, 4), options)
        arrays = network.arrays(elements, np.dtype(dtype), schedule)
        for rank, array in enumerate(arrays):
            array[:] = rank
        result = network.run(schedule, arrays)
        times.append(result.time_ps)
        counts.append((result.wire_bytes, result.link_bytes, result.packet_hops))
        assert all(array == pytest.approx(28, rel=1e-4) for array in arrays)

    assert times[0] == pytest.approx(times[1], rel=0.005)
    assert counts[0] == counts[1]


def test_systems_without_a_fluid_form_are_refused() -> None:
    options = NetworkOptions(system=find_system("atp"), servers=1)

    with pytest.raises(ConfigError, match="algo: atp has no fluid form, got net=flow"):
        FlowNetwork(star(4), options)


def to_one(size_bytes: int, queue_bytes: int) -> RunResult:
    """Eleven hosts send to the twelfth: windows of 26 packets of 4178 bytes, if so much is sent."""
    ends = [(src, 11) for src in range(11)]
    return run(star(12), copies(12, *ends), 11 * size_bytes, queue_bytes=queue_bytes)


def test_queues_of_packets_are_foretold() -> None:
    """Ten of eleven bits that come are queued, until the windows or the messages are sent."""
    small, large = (max(to_one(size, 4 << 20).queue_peaks.values()) for size in (4096, 1 << 20))

    assert small == pytest.approx(10 * 4178, rel=0.01)
    window = NetworkOptions().mtu_bytes + HEADERS
    assert large / window == pytest.approx(10 * 26, rel=0.25)


def test_a_queue_that_might_overflow_ends_the_run() -> None:
    with pytest.raises(BackendError, match="run: the queue from s0 to h11 must hold all that"):
        to_one(1 << 20, 100_000)


def test_flows_of_one_host_wait_in_the_host() -> None:
    """Each host sends to all others, and none of them gets more at a time than its link has."""
    ends = [(src, dst) for src in range(6) for dst in range(6) if src != dst]

    result = run(star(6), copies(6, *ends), 30 << 16)

    assert result.peak_queue_bytes == 0
