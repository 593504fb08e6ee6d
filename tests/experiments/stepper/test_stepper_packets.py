"""In-network aggregation: what is shown is what the P4 program and the hosts really hold."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.errors import ConfigError
from ringleaf.experiments.setup.network import build_topology
from ringleaf.experiments.stepper.observed import Observed, observe, split_lanes
from ringleaf.experiments.stepper.packets import packet_frames
from ringleaf.experiments.stepper.request import step_request
from ringleaf.experiments.stepper.story import Cursor, EntryChange, FrameAction, Story
from ringleaf.experiments.stepper.story_maker import tell
from ringleaf.ina.atp import reading as atp
from ringleaf.ina.registry import find_system
from ringleaf.ina.switchml import reading as switchml
from ringleaf.ina.switchml.system import SwitchML
from ringleaf.networks.options import NetworkOptions
from ringleaf.topologies.graph import hosts

ROOT = Path(__file__).resolve().parents[3]
TWO_LEVELS = "leafspine,leaves=2,spines=1,hosts=2"


@pytest.fixture(scope="module")
def calm() -> Story:
    return tell(step_request("switchml", ranks=3))


@pytest.fixture(scope="module")
def stormy() -> Story:
    """Two levels of switches, and losses of every kind."""
    return tell(step_request("switchml", topo=TWO_LEVELS, loss="10%", seed=4))


def changes(story: Story) -> list[EntryChange]:
    return [change for frame in story.frames for change in frame.entries]


def fact(change: EntryChange, name: str) -> str:
    assert change.after is not None
    return {each.name: each.text for each in change.after.facts}[name]


def test_all_ranks_end_with_the_sum(calm: Story, stormy: Story) -> None:
    for story in (calm, stormy):
        cursor = Cursor(story)
        cursor.go(len(story.frames))
        assert cursor.right() == (4 * story.ranks, 4 * story.ranks)


def test_copies_and_late_packets_come_and_change_no_sum() -> None:
    usual = tell(step_request("switchml", topo=TWO_LEVELS))
    story = tell(step_request("switchml", topo=TWO_LEVELS, duplicate="20%"))
    late = tell(step_request("switchml", topo=TWO_LEVELS, reorder="20%"))
    cursor = Cursor(story)
    cursor.go(len(story.frames))

    assert cursor.right() == (16, 16)
    assert len(story.frames) > len(usual.frames) == len(late.frames)
    assert (late.frames[-1].time_ps or 0) > (usual.frames[-1].time_ps or 0)


def test_as_many_spines_add_as_there_are_trees() -> None:
    topo = "leafspine,leaves=2,spines=3,hosts=2"
    for trees in (1, 2, 3):
        story = tell(step_request("panama", topo=topo, trees=trees, slots=6))
        assert len({change.switch for change in changes(story)} - {"s0", "s1"}) == trees


def test_slots_versions_and_bitmaps_go_as_in_the_paper(calm: Story) -> None:
    """Two slots with two versions each; a bitmap fills, and then it is the result."""
    seen = [
        (fact(c, "slot"), fact(c, "version"), fact(c, "block"), fact(c, "bitmap"), fact(c, "holds"))
        for c in changes(calm)
        if c.index == 1
    ]

    assert seen == [
        ("0", "1", "2", "001", "sum"),
        ("0", "1", "2", "011", "sum"),
        ("0", "1", "2", "111", "result"),
    ]
    assert sorted({c.index for c in changes(calm)}) == [0, 1, 2, 3]


def test_a_block_that_takes_a_slot_is_not_called_added() -> None:
    story = tell(step_request("switchml", ranks=2, slots=1))

    said = [frame.text for frame in story.frames if frame.entries and "waits" in frame.text]
    assert said == ["s0 keeps it, and waits for h1."] * 4


def test_a_sum_holds_whom_the_bitmap_names(stormy: Story) -> None:
    """Tracers went through the switch's adders; bitmaps are the program's own account."""
    below = {"s0": (0, 1), "s1": (2, 3)}
    for change in changes(stormy):
        assert change.after is not None
        assert change.after.total is not None
        (bits,) = [each.bits for each in change.after.facts if each.bits]
        if fact(change, "holds") == "result":
            assert change.after.total.who == (0, 1, 2, 3)
            continue
        named = [below.get(name) or (int(name[1:]),) for name, there in bits if there]
        assert change.after.total.who == tuple(sorted(sum(named, ())))


def test_losses_are_shown_and_nothing_is_added_twice(stormy: Story) -> None:
    lost = [frame for frame in stormy.frames if frame.action is FrameAction.LOST]

    assert len(lost) >= 3
    assert all(not frame.buffers and not frame.entries for frame in lost)
    times = [frame.time_ps or 0 for frame in stormy.frames]
    assert times == sorted(times), "a loss is told when the packet was due"
    held = [c.after.who for frame in stormy.frames for c in frame.buffers]
    assert all(len(set(who)) == len(who) for who in held)
    assert any("counted as" in frame.text for frame in stormy.frames)


def test_packets_and_hops_are_told_in_the_order_of_time(stormy: Story) -> None:
    times = [frame.time_ps for frame in stormy.frames]

    assert times == sorted(times, key=lambda time_ps: time_ps or 0)
    for frame in stormy.frames:
        assert stormy.graph.has_edge(*frame.path)
        assert frame.size_bytes == 308  # 52 of headers, 64 lanes
        assert frame.carries is not None


def watched(ranks: int, *, system: object = None) -> Observed:
    graph = build_topology(
        f"leafspine,leaves=1,spines=0,hosts={ranks}", rate_bps=10**11, delay_ps=10**6, hosts=None
    )
    options = NetworkOptions(system=find_system("switchml"), lanes=64, slots=1)
    if system is not None:
        options = replace(options, system=system)  # type: ignore[arg-type]
    inputs = [np.arange(64, dtype=np.int32) + rank for rank in range(ranks)]
    return observe(graph, options, ALGORITHMS["switchml"].build(len(hosts(graph))), inputs, 1)


def test_many_ranks_take_several_runs_of_tracers() -> None:
    observed = watched(17)
    told = packet_frames(observed, [list(range(rank, rank + 64)) for rank in range(17)])

    assert len(observed.traced) == 2
    last = told.frames[-1].buffers[0].after
    assert last.who == tuple(range(17))
    assert last.numbers[:2] == (136, 153)


class Mute(SwitchML):
    """SwitchML, but it explains nothing."""

    def reader(self) -> None:
        return None


def test_a_system_that_explains_nothing_is_shown_as_it_is() -> None:
    told = packet_frames(watched(2, system=Mute()), [list(range(64)), list(range(1, 65))])

    (change,) = told.frames[0].entries
    assert change.after is not None
    assert [each.name for each in change.after.facts] == [
        "index", "owners", "bitmaps", "published", "exponents",
    ]  # fmt: skip
    assert fact(change, "bitmaps") == "1"
    assert change.after.total is not None
    assert change.after.total.who == (0,)
    assert told.frames[0].title.startswith("h0 → s0: SwitchML")
    assert told.frames[-1].buffers[0].after.who == (0, 1)


def test_what_depends_on_the_numbers_is_not_traced_in_windows() -> None:
    with pytest.raises(ConfigError, match="more than 15 ranks can't be traced, got 16"):
        tell(step_request("omnireduce", ranks=16))


def test_lanes_are_told_from_scalars() -> None:
    assert split_lanes(["c.a", "c.r1", "c.r0", "c.r2", "c.r10", "c.x1"]) == (
        ["c.a", "c.x1"],
        ["c.r0", "c.r1", "c.r2", "c.r10"],
    )
    assert split_lanes(["r0", "r1"]) == (["r0", "r1"], [])


@pytest.mark.parametrize(
    ("program", "counter", "reader"),
    [("aggregation", "events", switchml), ("aggregators", "outcomes", atp)],
)
def test_counters_rows_are_numbered_as_in_the_program(
    program: str, counter: str, reader: ModuleType
) -> None:
    source = (ROOT / "p4" / "include" / f"{program}.p4").read_text()
    pairs = re.findall(r"const bit<32> (\w+) = (\d+);", source)
    found = {name: row for name, row in pairs if name != counter.upper()}
    sizes = [int(row) for name, row in pairs if name == counter.upper()]

    assert max(sizes) == len(found)  # some programs have no use for the last rows
    for name, row in found.items():
        assert reader.read_counter(counter, int(row)) == name.lower().replace("_", " ")
    assert reader.read_counter(counter, len(found)) == f"{counter}[{len(found)}]"
    assert reader.read_counter("others", 1) == "others[1]"


@pytest.mark.parametrize("servers", [0, 1])
def test_atps_aggregators_hold_whom_their_bitmaps_name(servers: int) -> None:
    story = tell(step_request("atp", ranks=3, servers=servers, loss="5%", seed=9))

    cursor = Cursor(story)
    cursor.go(len(story.frames))
    assert cursor.right() == (12, 12)
    seen = set()
    for change in changes(story):
        assert change.after is not None
        assert change.after.total is not None
        (bits,) = [each.bits for each in change.after.facts if each.bits]
        seen.add(fact(change, "holds"))
        if fact(change, "holds") != "free":
            assert change.after.total.who == tuple(int(n[1:]) for n, there in bits if there)
    assert seen == {"sum", "complete", "free"}
    assert {frame.title.split()[3] for frame in story.frames} == {"gradient", "parameters"}
    whole = [frame.carries for frame in story.frames if "parameters of" in frame.title]
    assert {cell.who for cell in whole if cell is not None} == {(0, 1, 2)}


def test_other_packets_are_nobodys() -> None:
    for reader in (switchml, atp):
        assert reader.read_packet(bytes(60)) == ""
        assert reader.read_values(bytes(60)) == ()


@pytest.mark.parametrize(
    ("options", "more_ns"),
    [
        ({"switch_delay": "1us"}, 2000),
        ({"host_delay": "300ns"}, 3 * 300),
        ({"message_overhead": "700ns"}, 700),
        ({"inject": "200G"}, -4 * 304 * 8 // 200),
        ({"rate": "200G"}, -4 * 304 * 8 // 200),
        ({"delay": "3us"}, 4 * 2000),
    ],
)
def test_packets_take_the_time_that_nodes_take(options: dict[str, str], more_ns: float) -> None:
    """Two ranks, four packets and two slots: two rounds, one after the other.

    A packet has 304 bytes on the line, and a round takes it there and back. The last frame is of
    a packet that comes to a host, whose delay is still to come then.
    """
    plain = tell(step_request("switchml", ranks=2))
    slower = tell(step_request("switchml", ranks=2, **options))
    took_ns = [(story.frames[-1].time_ps or 0) / 1000 for story in (plain, slower)]

    assert took_ns[1] - took_ns[0] == pytest.approx(more_ns, abs=60)


@pytest.mark.parametrize(
    ("name", "typed", "what"),
    [
        *(
            (name, "1us", "take time")
            for name in ("switch_delay", "host_delay", "message_overhead")
        ),
        *((name, "1G", "take time") for name in ("inject", "rate")),
        ("delay", "2us", "take time"),
        ("duplicate", "1%", "can be duplicated"),
        ("reorder", "1%", "can be late"),
        ("trees", "2", "go by several trees"),
    ],
)
def test_transfers_have_no_use_for_options_of_packets(name: str, typed: str, what: str) -> None:
    with pytest.raises(
        ConfigError, match=f"step: only packets {what}, got {name} '{typed}' for the transfers of"
    ):
        step_request("ring", **{name: typed})


def test_losses_that_are_due_at_one_time_are_told_one_after_another() -> None:
    """Seed 2 loses packets that would have arrived together."""
    story = tell(step_request("atp", ranks=3, servers=1, loss="30%", seed=2))
    lost = [frame.time_ps for frame in story.frames if frame.action is FrameAction.LOST]
    assert len(lost) > len(set(lost))


def test_an_answer_that_waits_for_a_busy_port_is_not_told_as_none() -> None:
    story = tell(step_request("switchml", ranks=3, loss="30%", seed=3))
    quiet = [frame.text for frame in story.frames if "sends nothing at once" in frame.text]
    assert {text.partition("counted as ")[2]: "its port is busy" in text for text in quiet} == {
        "'answered'.": True,
        "'waiting'.": False,
    }
