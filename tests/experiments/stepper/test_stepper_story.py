"""Every collective tells a right story, and one can walk it both ways."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.oracle import execute
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import chunk_ranges
from ringleaf.errors import ConfigError, TopologyError
from ringleaf.experiments.stepper.plain import lines
from ringleaf.experiments.stepper.request import step_request
from ringleaf.experiments.stepper.story import Cursor, FrameAction, Story, show_who
from ringleaf.experiments.stepper.story_maker import tell
from ringleaf.topologies.routing import dealt, path, routes

BETWEEN_RANKS = sorted(name for name, each in ALGORITHMS.items() if not each.in_network)

PLURAL_OF_ONE = re.compile(
    r"\b1 (slot|rank|number|chunk|transfer|step|packet|link|message|cell)s\b"
)

PIPELINED = {
    *("chain", "tree", "doubletree", "strides", "ps", "rings", "auto"),
    *("broadcast", "broadcast-rings", "broadcast-auto"),
    *("reduce", "reduce-rings", "reduce-auto"),
    *("allgather-rings", "allgather-auto", "reducescatter-rings", "reducescatter-auto"),
}
"""Algorithms that cut tensors into pieces; the others refuse to be asked for a number of them."""


def story_of(algo: str, ranks: int, segments: int | None) -> Story:
    pieces = segments if algo in PIPELINED else None
    return tell(step_request(algo, ranks=ranks, segments=pieces))


stories = st.builds(
    story_of,
    st.sampled_from(BETWEEN_RANKS),
    st.integers(2, 9),
    st.none() | st.integers(1, 3),
)


def state(cursor: Cursor) -> tuple[object, ...]:
    carried = {way: size for way, size in cursor.carried.items() if size}
    return cursor.position, cursor.buffers, cursor.entries, carried


def fresh(story: Story, position: int) -> Cursor:
    cursor = Cursor(story)
    cursor.go(position)
    return cursor


@settings(max_examples=40, deadline=None)
@given(stories)
def test_a_story_ends_with_what_the_oracle_says(story: Story) -> None:
    cursor = fresh(story, len(story.frames))

    right, asked = cursor.right()
    assert right == asked > 0
    assert cursor.at_end


@pytest.mark.parametrize("name", BETWEEN_RANKS)
def test_numbers_are_the_oracles_at_the_end(name: str) -> None:
    story = tell(step_request(name, ranks=5, elements=31))
    schedule = ALGORITHMS[name].build(5, size_bytes=124, hierarchy=(5,))
    inputs = [np.array([n for cell in row for n in cell.numbers]) for row in story.first[:5]]

    cursor = fresh(story, len(story.frames))

    ranges = chunk_ranges(31, schedule.chunks)
    for rank, result in enumerate(execute(schedule, inputs)):
        assert [cell.numbers for cell in cursor.buffers[rank]] == [
            tuple(result[start:stop].tolist()) for start, stop in ranges
        ]


@settings(max_examples=30, deadline=None)
@given(stories, st.data())
def test_a_walk_to_and_fro_ends_where_a_direct_one_does(story: Story, data: st.DataObject) -> None:
    cursor = Cursor(story)
    for _ in range(4):
        if data.draw(st.booleans()):
            cursor.go_step(data.draw(st.sampled_from([-1, 1])))
        else:
            cursor.go(data.draw(st.integers(-2, len(story.frames) + 2)))
        assert state(cursor) == state(fresh(story, cursor.position))


@settings(max_examples=20, deadline=None)
@given(stories)
def test_what_is_sent_is_what_was_there_before_the_step(story: Story) -> None:
    """Transfers of one step are concurrent, in whatever order they are told."""
    for start, stop in zip(story.starts, story.starts[1:], strict=False):
        before = fresh(story, start).buffers
        for frame in story.frames[start:stop]:
            if frame.carries is None:
                continue
            if frame.path:
                sender = int(frame.path[0][1:])
            else:  # a copy within a rank
                sender = frame.buffers[0].rank % (story.nodes or len(before))
            places = before[sender :: story.nodes or len(before)]  # its tensor, and its scratch
            sources = [[place[change.cell] for change in frame.buffers] for place in places]
            assert any(
                {cell.who for cell in cells} == {frame.carries.who}
                and sum((cell.numbers for cell in cells), ()) == frame.carries.numbers
                for cells in sources
            )


def test_transfers_take_the_networks_routes_and_links_carry_them() -> None:
    story = tell(step_request("ring", topo="fattree,k=4"))
    table = dealt(story.graph, routes(story.graph))

    for frame in story.frames:
        assert list(frame.path) == path(story.graph, frame.path[0], frame.path[-1], table=table)
    assert all(
        load.messages == 1 for load in story.loads[0].values()
    )  # suffix routing: no contention
    sent = sum(load.size_bytes for (a, _), load in story.loads[0].items() if a.startswith("h"))
    assert sent == 16 * 8


def test_servers_hold_nothing_of_their_own() -> None:
    story = tell(step_request("ps", ranks=3, servers=2))

    assert [cell.who for row in story.first for cell in row[:1]] == [(0,), (1,), (2,), (), ()]
    assert story.frames[0].title == "rank 0 sends chunk 0 to server 0, which adds it"
    assert story.frames[0].path == ("h0", "s0", "h3")
    assert "server 1: chunk 0 ∅ = 0 0" in "\n".join(lines(story))


def test_messages_have_their_encoded_size() -> None:
    frames = tell(step_request("ssar-double", ranks=2, elements=8)).frames

    assert [frame.size_bytes for frame in frames] != [32] * len(frames)


def test_steps_stop_at_their_ends() -> None:
    cursor = Cursor(tell(step_request("ring", ranks=3)))
    seen = []
    while not cursor.at_end:
        cursor.go_step(1)
        seen.append(cursor.position)
    assert seen == [3, 6, 9, 12]
    cursor.go(7)
    cursor.go_step(-1)
    assert cursor.position == 6


@pytest.mark.parametrize(
    ("who", "ranks", "text"),
    [
        ((2,), 4, "{2}"),
        ((0, 1, 3), 4, "Σ{0,1,3}"),
        ((0, 1, 2, 3), 4, "Σ all"),
        ((0, 1), 2, "Σ{0,1}"),
        ((0, 1, 2, 3, 4, 7), 9, "Σ{0-4,7}"),
        ((1, 1), 4, "Σ{1,1}"),
    ],
)
def test_contributions_are_written_as_sets(who: tuple[int, ...], ranks: int, text: str) -> None:
    assert show_who(who, ranks) == text


def test_the_text_tells_everything() -> None:
    told = "\n".join(lines(tell(step_request("ring", ranks=4, elements=8))))

    assert "4 ranks with 8 numbers each, in 4 chunks; 24 transfers in 6 steps" in told
    assert "rank 2 sends chunk 1 to rank 3, which adds it" in told
    assert "rank 3, chunk 1: {3} = 8 9 -> Σ{1,2,3} = 14 21" in told
    assert told.endswith("16 of 16 cells hold what they must: all right")


@pytest.mark.parametrize(
    ("algo", "options", "parts"),
    [
        ("switchml", {"ranks": 3, "slots": 1}, ["in 1 slot of the switches; 24 packets"]),
        ("switchml", {"ranks": 2, "elements": 1}, ["2 ranks with 1 number each, 64 to a packet"]),
        (
            "broadcast",
            {"ranks": 2, "elements": 1},
            [
                "2 ranks with 1 number each, in 1 chunk; 1 transfer in 1 step\n",
                "\n2 of 2 cells hold",
            ],
        ),
        ("reduce", {"ranks": 2, "elements": 1}, ["\n1 of 1 cell holds what it must: all right"]),
    ],
)
def test_one_of_a_thing_is_no_plural(algo: str, options: dict[str, int], parts: list[str]) -> None:
    told = "\n".join(lines(tell(step_request(algo, **options))))

    for part in parts:
        assert part in told
    assert PLURAL_OF_ONE.search(told) is None


@pytest.mark.parametrize(
    ("algo", "options", "told"),
    [
        ("switchml", {}, "in 2 slots of the switches"),
        ("panama", {}, "in 2 slots of the switches"),
        ("omnireduce-switch", {}, "in 2 slots of the switches"),
        ("omnireduce", {"servers": 1}, "in 2 slots of the aggregators"),
        ("omnireduce", {"servers": 1, "slots": 1}, "in 1 slot of the aggregators"),
        ("sharp", {}, "with at most 2 transactions outstanding"),
        ("sharp-quantum2", {"slots": 1}, "with at most 1 transaction outstanding"),
        ("atp", {"servers": 1, "slots": 1}, "with at most 1 packet in flight from each rank"),
        ("atp", {"servers": 1, "slots": 3}, "with at most 4 packets in flight from each rank"),
        ("esa", {"servers": 1}, "with at most 2 packets in flight from each rank"),
        ("a2tp", {"servers": 1}, "with at most 2 packets in flight from each rank"),
        ("netreduce", {"slots": 3}, "with at most 2 packets in flight from each rank"),
    ],
)
def test_slots_are_called_what_they_are_in_a_system(
    algo: str, options: dict[str, int], told: str
) -> None:
    """ATP's window is rounded up to a power of two, and NetReduce's down."""
    story = tell(step_request(algo, ranks=2, elements=64, **options))

    assert f", 64 to a packet, {told}; " in story.summary


def test_packets_and_registers_of_all_systems_are_told_in_words() -> None:
    """Without a reader, they are names of scapy's layers, and of registers."""
    for name, algorithm in ALGORITHMS.items():
        if not algorithm.in_network:
            continue
        story = tell(step_request(name, ranks=2, loss="1%"))
        told = "\n".join(lines(story))
        assert re.search(r"\b(Raw|Padding|ICRC|owners|[A-Z]\w+Header|SwitchML\w+)\b", told) is None
        assert re.search(r": (update|result|data|gradient|parameters)\b", told) is not None, name


def test_reduces_and_copies_are_told_apart() -> None:
    story = tell(step_request("ring", ranks=3))

    assert [frame.action for frame in story.frames] == [FrameAction.REDUCE] * 6 + [
        FrameAction.COPY
    ] * 6


@pytest.mark.parametrize(
    ("algo", "options", "message"),
    [
        ("ring", {"ranks": 1}, "step: ranks must be 2 to 64, got 1"),
        ("ring", {"ranks": 0}, "ranks: must be at least 1, got '0'"),
        ("ring", {"ranks": 65}, "step: ranks must be 2 to 64, got 65"),
        ("ring", {"elements": 3}, "elements must be 4 or more, one for each chunk of ring"),
        ("ring", {"elements": 0}, "elements: must be at least 1, got '0'"),
        ("ring", {"elements": "x"}, "elements: must be a whole number, got 'x'"),
        ("ringz", {}, "did you mean 'ring'"),
        ("ring", {"loss": "5%"}, "only packets can be lost, got loss '5%'"),
        ("switchml", {"loss": "1"}, "loss: must be in"),
        ("switchml", {"lanes": 8}, "lanes: unknown value, got '8'; valid: 64, 256"),
        (
            *("switchml", {"elements": 100_000}),
            "elements must be 1 to 4096, 64 packets from each rank, got",
        ),
        ("ps", {"servers": -1}, "servers: must be at least 0, got '-1'"),
        ("broadcast", {"root": -1}, "root: must be at least 0, got '-1'"),
        ("ring", {"topo": "fatree"}, "did you mean 'fattree'"),
        ("switchml", {"inject": "1G", "rate": "2G"}, "inject: can't go with rate, got 1G"),
        ("ring", {"cc": "dctcp"}, "options: unknown option, got 'cc'"),
        ("alltoall", {"ranks": 64, "segments": 0}, "segments: must be at least 1, got '0'"),
    ],
)
def test_what_does_not_fit_is_refused(algo: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tell(step_request(algo, **options))


def test_a_detour_is_the_way_that_is_drawn() -> None:
    """Two spines, s2 and s3; without a detour, another pair's way stays as it is."""
    topo = "leafspine,leaves=2,spines=2,hosts=2"
    for spine in ("s2", "s3"):
        story = tell(step_request("ring", topo=topo, detours=f"h1-{spine}-h2"))
        ways = {(frame.path[0], frame.path[-1]): frame.path for frame in story.frames}
        assert ways["h1", "h2"] == ("h1", "s0", spine, "s1", "h2")


def test_the_command_that_is_shown_tells_the_same_story_again() -> None:
    options = {"topo": "fattree,k=4", "ranks": "4", "slots": "2", "rate": "50G", "duplicate": "20%"}
    story = tell(step_request("switchml", **options, seed=3))

    assert story.command == (
        "ringleaf step switchml --ranks 4 --elements 256 --topo fattree,k=4 --rate 50G "
        "--duplicate 20% --seed 3"
    )
    words = shlex.split(story.command)[3:]
    again = {
        flag.removeprefix("--"): value for flag, value in zip(words[::2], words[1::2], strict=True)
    }
    assert tell(step_request("switchml", **again)).frames == story.frames


def test_too_small_a_topology_is_refused() -> None:
    with pytest.raises(TopologyError, match="16 hosts, 17 are wanted"):
        tell(step_request("ring", topo="fattree,k=4", ranks=17))
