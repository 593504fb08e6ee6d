"""TACCL: sketches, trees, orders and messages, each against what must hold of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from drawn_wires import GBPS, connected, grid
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective
from ringleaf.collectives.synthesis.contiguity import scheduled
from ringleaf.collectives.synthesis.integers import IntegerProgram
from ringleaf.collectives.synthesis.methods.taccl import SYNTHESISER, solve
from ringleaf.collectives.synthesis.ordering import ordered
from ringleaf.collectives.synthesis.problem import Problem, SynthesisPlan
from ringleaf.collectives.synthesis.routing import candidates, greedy_routes, route
from ringleaf.collectives.synthesis.sketch import Sketch, read_sketch
from ringleaf.collectives.synthesis.timed import end_of, to_rows
from ringleaf.collectives.verify import verify
from ringleaf.collectives.wires import RankNetwork
from ringleaf.errors import ConfigError

pytest.importorskip("scipy")

TORUS = grid((3, 3), (12, 12), 1.0, wrap=True)


def line(*rates: int) -> RankNetwork:
    """Return ranks in a row, joined by links of so many Gbit/s and 1 us, both ways."""
    return RankNetwork.direct(
        len(rates) + 1,
        [
            (a, b, rate * GBPS, 1_000_000)
            for i, rate in enumerate(rates)
            for a, b in ((i, i + 1), (i + 1, i))
        ],
    )


def test_a_program_in_whole_numbers_is_solved() -> None:
    """Least 3 x + 2 y with x + y >= 2.5 and x <= 1: y is 3, as 2 are too few without x."""
    program = IntegerProgram()
    x, y = program.add(3.0, 1.0, is_whole=True), program.add(2.0, is_whole=True)
    program.demand({x: 1.0, y: 1.0}, 2.5)
    found = program.solve(10.0)
    assert found is not None
    assert [round(each) for each in found.values] == [0, 3]
    assert found.objective == pytest.approx(6.0)
    assert found.gap == pytest.approx(0.0)


def test_chunks_of_a_torus_take_two_hops_and_all_links_alike() -> None:
    """9 ranks, 8 chunks to each by 4 links: each link carries two, so two times of a chunk."""
    times = dict.fromkeys(TORUS.ways, 1.0)
    found = route(TORUS, 1, times, Sketch(), 10.0)
    assert found is not None
    assert found.gap == pytest.approx(0.0, abs=1e-3)
    load = dict.fromkeys(TORUS.ways, 0)
    for chunk, tree in found.routes.items():
        assert set(tree) == set(range(9)) - {chunk}
        for dst, src in tree.items():
            load[src, dst] += 1
            assert src == chunk or tree[src] == chunk, "two hops reach all"
    assert set(load.values()) == {2}
    plan = solve(Problem(TORUS, Collective.ALL_GATHER, 9 << 20, 1))
    message_ps = TORUS.time_ps((0, 1), 1 << 20)
    assert plan.expected_ps == 2 * message_ps


@given(connected(5), st.sampled_from(SYNTHESISER.collectives), st.integers(1, 2))
@settings(max_examples=12, deadline=None)
def test_plans_are_right_on_any_network(wires: RankNetwork, what: Collective, chunks: int) -> None:
    offered: list[SynthesisPlan] = []
    problem = Problem(wires, what, 1 << 16, chunks, limit_s=5.0, listener=offered.append)
    plan = solve(problem)
    verify(plan.schedule)
    for each in offered:
        verify(each.schedule)
    assert plan.expected_ps == min(each.expected_ps for each in offered)
    assert plan.expected_ps >= plan.bound_ps
    assert plan.schedule.chunks == wires.ranks * chunks


@given(connected(6), st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_a_link_carries_one_message_at_a_time_and_only_what_is_there(
    wires: RankNetwork, chunks: int
) -> None:
    times = {pair: wires.time_ps(pair, 1 << 12) / 1e6 for pair in wires.ways}
    moves = ordered(wires, greedy_routes(wires, chunks, times), chunks, 1 << 12)
    better = scheduled(wires, moves, 1 << 12, 5.0)
    for found in (moves, better[0] if better else moves):
        came = {(move.dst, move.chunk): move.end_ps for move in found}
        assert len(came) == len(found) == wires.ranks * chunks * (wires.ranks - 1)
        free: dict[tuple[int, int], tuple[int, int]] = {}
        for move in sorted(found):
            owner = move.chunk // chunks
            assert move.src == owner or came[move.src, move.chunk] <= move.start_ps
            begun, free_ps = free.get((move.src, move.dst), (-1, 0))
            assert move.start_ps in (begun,) or move.start_ps >= free_ps
            free[move.src, move.dst] = move.start_ps, move.end_ps
    if better:
        assert end_of(better[0]) <= end_of(moves) * 1.001


def test_neighbours_go_as_one_message_if_that_saves_a_delay() -> None:
    """Two ranks, two chunks each of 1 us at 8 Gbit/s: 3 us together, where two messages take 4."""
    wires = line(8)
    plan = solve(Problem(wires, Collective.ALL_GATHER, 4000, 2))
    assert plan.expected_ps == 3_000_000
    assert len(plan.schedule.columns.coalesced()) == 2
    assert ("messages", "2 of 4 chunks, gap 0.0 %") in plan.notes


def test_only_short_ways_are_tried_unless_a_sketch_has_longer_ones() -> None:
    wires = grid((4,), (12,), 1.0, wrap=True)
    assert (0, 3) in candidates(wires, 1, 0)[0]
    assert len(candidates(wires, 1, 0)[0]) == 4  # two ways to the opposite rank
    assert len(candidates(wires, 1, 2)[0]) == 6  # all but those back to the owner


def test_symmetries_move_all_ranks() -> None:
    """A torus of 4 x 4 turns in its rows and columns; mirrors, which keep ranks, are left out."""
    wires = grid((4, 4), (12, 12), 1.0, wrap=True)
    turns = Sketch().turns(wires)
    assert [1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12] in turns
    assert [(r + 4) % 16 for r in range(16)] in turns
    images = {0}
    for _ in range(16):
        images |= {turn[rank] for turn in turns for rank in images}
    assert len(images) == 16
    assert Sketch().turns(line(1, 2, 3)) == []


def test_rows_of_a_message_share_a_step() -> None:
    wires = line(8)
    moves = ordered(wires, greedy_routes(wires, 2, dict.fromkeys(wires.ways, 1.0)), 2, 1000)
    better = scheduled(wires, moves, 1000, 5.0)
    assert better is not None
    assert {row.step for row in to_rows(better[0], together=True)} == {0}
    assert {row.step for row in to_rows(better[0])} == {0, 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("link: all", "unknown key, got 'link'"),
        ("[1]", "must be keys and values"),
        ("links: some", "links: unknown value, got 'some'"),
        ("links: [[0, 0]]", r"links: must be pairs of different ranks, \[0, 1\], got"),
        ("links: []", "links: must be all, near, direct or pairs of ranks"),
        ("switches: s1", "switches: must be numbers of switches"),
        ("symmetry: [[4, 2]]", r"symmetry: must be auto, none or \[offset, size\]"),
        ("chunks: 0", "chunks: must be a whole number from 1 to 64, got 0"),
        ("prefer: none", "prefer: unknown value, got 'none'"),
        ("weight: 2", "weight: must be a number from 0 to 1, got 2"),
    ],
)
def test_what_is_wrong_with_a_sketch_is_said(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "sketch.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=f"sketch {path}: .*{message}"):
        read_sketch(path)


@pytest.mark.parametrize(
    ("sketch", "message"),
    [
        (Sketch(more=((0, 8),)), r"have a way of their own, got \[0, 8\] among 4 ranks"),
        (Sketch(without=((1, 2),)), "ways between all ranks, got none between rank 0 and rank 2"),
        (Sketch(switches=(7,)), "no way passes switch 7"),
        (Sketch(symmetry=((1, 3),)), "blocks must divide 4 ranks, got 3"),
        (Sketch(symmetry=((1, 4),)), r"must be the same with all ranks moved, got \[1, 4\]"),
    ],
)
def test_a_sketch_must_fit_its_network(sketch: Sketch, message: str) -> None:
    problem = Problem(line(1, 1, 2), Collective.ALL_GATHER, 1 << 12, sketch=sketch)
    with pytest.raises(ConfigError, match=message):
        solve(problem)


def test_a_sketch_says_which_links_are_used(tmp_path: Path) -> None:
    path = tmp_path / "sketch.yaml"
    path.write_text("links: [[0, 1], [1, 2], [2, 3], [3, 0]]\nchunks: 3\nsymmetry: auto\n")
    pairs = [(a, b, 8 * GBPS, 1000) for a in range(4) for b in range(4) if a != b]
    wires = RankNetwork.direct(4, pairs)
    plan = solve(Problem(wires, Collective.ALL_GATHER, 1 << 12, sketch=read_sketch(path)))
    verify(plan.schedule)
    columns = plan.schedule.columns
    used = {*zip(columns.src.tolist(), columns.dst.tolist(), strict=True)}
    assert used == {(0, 1), (1, 2), (2, 3), (3, 0)}
    assert plan.schedule.chunks == 12


def test_a_sketch_that_has_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "sketch.yaml"
    path.write_text("chunks: 1\n")
    first = ALGORITHMS[f"taccl:{path}"]
    assert ALGORITHMS[f"taccl:{path}"] is first
    path.write_text("chunks: many\n")
    with pytest.raises(ConfigError, match="chunks"):
        ALGORITHMS[f"taccl:{path}"]
