"""The fuzzer's way through a program: what it says was reached, and how it gets further."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from program_cases import PROGRAMS
from uncompiled import run_uncompiled, starts_uncompiled

from ringleaf.core import compiled
from ringleaf.experiments.commands.fuzz import _say_course
from ringleaf.switches.engine.updates import TableUpdate
from ringleaf.switches.fuzz.campaign import draw_round
from ringleaf.switches.fuzz.contest import Contest
from ringleaf.switches.fuzz.course import FuzzCourse
from ringleaf.switches.fuzz.entries import EntryMaker
from ringleaf.switches.fuzz.numbers import NumberDraw, definitions
from ringleaf.switches.fuzz.packets import PacketMaker
from ringleaf.switches.fuzz.sides import EngineSide
from ringleaf.switches.generate.observing import ACTION, FALSE, HIT, STATE, TRUE, Variant
from ringleaf.switches.program import Program
from ringleaf.switches.source import Constant, FieldSource

Json = dict[str, Any]

uncompiled = pytest.mark.skipif(not compiled.UNCOMPILED, reason="runs uncompiled only")


def changed(tmp_path: Path, name: str, change: Callable[[Json], None]) -> Program:
    data = json.loads((PROGRAMS / f"{name}.json").read_text())
    change(data)
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(data))
    return Program.load(path)


def travel(program: Program, packets: int, rounds: int = 1) -> FuzzCourse:
    """Return where a campaign gets without BMv2, which has no say in it."""
    contest = Contest(program)
    for number in range(rounds):
        updates, maker = draw_round(program, contest.shadows, contest.course, 1, number)
        sieve = contest._sieve(EngineSide(program, updates).accepted)
        contest._kept(sieve, (maker.draw() for _ in range(2 * packets)), packets)
    return contest.course


def missing(course: FuzzCourse, kind: str) -> set[str]:
    return {point.name for point in course.missing() if point.kind == kind}


# A parser that looks ahead for a header's first fields, in p4c's form: the whole stretch goes into
# a temporary, and each field is a slice of it.


def expression(op: str, left: Json, right: str) -> Json:
    value = {"op": op, "left": left, "right": {"type": "hexstr", "value": right}}
    return {"type": "expression", "value": {"type": "expression", "value": value}}


def scalar(name: str) -> Json:
    return {"type": "field", "value": ["scalars", name]}


def look_ahead(data: Json) -> None:
    """After an option of kind 0x12, parse what begins with 'P', '4' and version 1."""
    scalars = data["header_types"][0]["fields"]
    scalars += [["ahead", 24, False], *([name, 8, False] for name in ("p", "four", "version"))]
    ops: list[Json] = [
        {"op": "set", "parameters": [scalar("ahead"), {"type": "lookahead", "value": [0, 24]}]}
    ]
    for name, shift in (("p", "0x10"), ("four", "0x08"), ("version", "0x00")):
        shifted = expression(">>", scalar("ahead"), shift)["value"]
        whole = expression("&", shifted, "0xffffff")["value"]
        value = expression("&", whole, "0xff")
        ops.append({"op": "set", "parameters": [scalar(name), value]})
    start, _, option, _ = data["parsers"][0]["parse_states"]
    default = {"type": "default", "value": None, "mask": None, "next_state": None}
    start["parser_ops"] = option["parser_ops"]
    start["transition_key"] = [{"type": "field", "value": ["option", "kind"]}]
    kind = {"type": "hexstr", "value": "0x12", "mask": None, "next_state": "option"}
    start["transitions"] = [kind, default]
    option["parser_ops"] = ops
    option["transition_key"] = [scalar(name) for name in ("p", "four", "version")]
    header = {"type": "hexstr", "value": "0x503401", "mask": None, "next_state": "rest"}
    option["transitions"] = [header, default]


@uncompiled
def test_header_that_is_looked_ahead_for_is_reached(tmp_path: Path) -> None:
    """It begins one in 2^32 random packets."""
    program = changed(tmp_path, "padding", look_ahead)
    rng = random.Random(1)
    maker = PacketMaker(program, [], NumberDraw(program.source, rng), rng)
    drawn = [maker.draw()[1] for _ in range(100)]
    assert sum(data[:1] == b"\x12" and data[2:5] == b"P4\1" for data in drawn) > 5

    course = travel(program, 60)
    assert missing(course, STATE) == set()
    assert missing(course, TRUE) == missing(course, FALSE) == set()


@uncompiled
def test_what_no_packet_can_reach_is_listed(tmp_path: Path) -> None:
    """`drop_with` is in no entry any more; and `search` returns before its outer loop ends."""

    def change(data: Json) -> None:
        tables = [table for pipeline in data["pipelines"] for table in pipeline["tables"]]
        table = next(table for table in tables if table["name"] == "I.unwanted")
        nothing = table["action_ids"][table["actions"].index("NoAction")]
        table["entries"][0]["action_entry"] = {"action_id": nothing, "action_data": []}

    course = travel(changed(tmp_path, "flows", change), 100, rounds=2)
    assert "drop_with by I.unwanted" in missing(course, ACTION)
    assert "for (bit<8> i = 1; i < 4; i = i + 1)" in missing(course, FALSE)
    assert "for (bit<8> i = 1; i < 4; i = i + 1)" not in missing(course, TRUE)
    lines: list[str] = []
    _say_course(course, lines.append)
    assert lines[0].startswith("# reached: 1 of 1 parser states, 1 of 1 transitions, ")
    assert any("never reached: action drop_with by I.unwanted (flows.p4 line 2" in x for x in lines)


@uncompiled
def test_tables_behind_tables_are_hit() -> None:
    """`deep` is asked only after hits of `masked` and `again` and a switch's default."""
    course = travel(Program.load(PROGRAMS / "flows.json"), 100, rounds=2)
    assert missing(course, HIT) == set()


@uncompiled
def test_seeds_are_the_packets_that_reached_something_first() -> None:
    program = Program.load(PROGRAMS / "padding.json", variant=Variant(observed=True))
    assert program.module.observer is not None
    course = FuzzCourse(program.module.observer)
    side = EngineSide(program, [])
    padding, same, option = (1, b"\0\x0a\1\2\3"), (1, b"\0\x0b\1\2\3"), (1, b"\3\1\x0a\1\2\3")
    for packet in (padding, same, option):
        before = side.counts()
        side.process(packet)
        course.note(packet, before, side)
    assert course.seeds == [padding, option]
    reached = {kind: (count, whole) for kind, count, whole in course.by_kind()}
    assert reached[STATE] == (4, 4)
    assert reached[TRUE] == (2, 2)
    assert reached[FALSE] == (1, 2)  # `rest` is always there
    assert [wanted for _, wanted in course.conditions()] == [False]


@uncompiled
def test_a_seed_is_drawn_again() -> None:
    program = Program.load(PROGRAMS / "padding.json")

    class Aims:
        seeds = ((3, bytes(range(200, 240))),)

        def conditions(self) -> list[Any]:
            return []

    rng = random.Random(1)
    maker = PacketMaker(program, [], NumberDraw(program.source, rng), rng, Aims())
    drawn = [maker.draw() for _ in range(100)]
    like = [port for port, data in drawn if data[:4] == bytes(range(200, 204))]
    assert len(like) > 10
    assert like.count(3) > len(like) / 2


@pytest.mark.parametrize("seed", range(5))
def test_entries_match_the_keys_that_tables_were_asked_for(seed: int) -> None:
    program = Program.load(PROGRAMS / "tables.json")
    rng = random.Random(seed)
    maker = EntryMaker(program, NumberDraw(program.source, rng), rng)
    shapes = {shape.table.name: shape for shape in program.module.shapes if shape.table.keys}
    asked = {
        name: [tuple(rng.getrandbits(width) for width in shape.widths)]
        for name, shape in shapes.items()
    }
    updates = [update for _ in range(5) for update in maker.answers(asked)]
    tables = set()
    for update in updates:
        assert isinstance(update, TableUpdate)
        assert update.entry is not None
        tables.add(update.table)
        [keys] = asked[update.table]
        columns = zip(shapes[update.table].table.keys, keys, update.entry.match, strict=True)
        for key, value, (first, second) in columns:
            if key.kind == "range":
                assert first <= value <= second
            else:
                assert value & second == first
    assert tables == {name for name, shape in shapes.items() if not shape.table.entries}


def test_fields_that_are_given_one_value_are_known_by_it() -> None:
    """`lost` is given one value in flows.p4, `way` many; in stateful.p4 `level` is read."""
    found = definitions(Program.load(PROGRAMS / "flows.json").source)
    assert found[FieldSource("scalars", "metadata.lost")] == FieldSource("work", "count")
    assert FieldSource("work", "way") not in found
    found = definitions(Program.load(PROGRAMS / "stateful.json").source)
    assert found[FieldSource("scalars", "metadata.lost")] == Constant(0xFF)
    assert FieldSource("result", "crc32") not in found  # which a hash gives


@starts_uncompiled
def test_all_of_this_uncompiled() -> None:
    assert "1 skipped" in run_uncompiled(__file__)
