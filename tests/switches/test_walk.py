"""A walk says what the switch does: no more, no less, and nothing else.

Walks need uncompiled handlers; the last test runs the others so.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest
from hand_json import (
    A,
    B,
    do,
    expression,
    field,
    metadata,
    operand,
    program,
    standard,
    state,
    value,
    write,
)
from program_cases import CASES, PSA, Case, entry, make_switch
from uncompiled import run_uncompiled, starts_uncompiled

from ringleaf.core import compiled
from ringleaf.errors import ConfigError
from ringleaf.switches.engine.updates import INSERT, CloneUpdate, MeterRates, MeterUpdate
from ringleaf.switches.generate.parser import LONGEST_WAY
from ringleaf.switches.generate.statements import MOST_TURNS
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch
from ringleaf.switches.walk import PacketWalk, Step, walk
from ringleaf.switches.walk import steps as kinds
from ringleaf.switches.walk.recorder import MOST_IDLE
from ringleaf.switches.walk.steps import (
    Deparsed,
    EgressDropped,
    EgressStarted,
    Extracted,
    LookedUp,
    Managed,
    PacketLeaves,
    SourceLine,
    StateEntered,
)
from ringleaf.switches.walk.turns import MOST_SHOWN

PACKETS = 8

S = TypeVar("S", bound=Step)

uncompiled = pytest.mark.skipif(not compiled.UNCOMPILED, reason="walks run uncompiled")
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@cache
def walks(case: Case) -> list[PacketWalk]:
    switch = make_switch(case)
    return [walk(switch, port, data) for port, data in case.packets(PACKETS, seed=3)]


def of_kind(steps: tuple[Step, ...], kind: type[S]) -> list[S]:
    return [step for step in steps if isinstance(step, kind)]


@uncompiled
@each_case
def test_a_walk_does_as_the_switch(case: Case) -> None:
    plain = make_switch(case)
    packets = case.packets(PACKETS, seed=3)

    for (port, data), seen in zip(packets, walks(case), strict=True):
        assert list(seen.out) == plain.process(port, data)
        assert [(step.port, step.data) for step in of_kind(seen.steps, PacketLeaves)] == list(
            seen.out
        )


@uncompiled
@each_case
def test_values_follow_from_what_was_extracted_and_written(case: Case) -> None:
    """Each write begins with the value that the one before left, and the packet has the last."""
    switch = make_switch(case)
    for port, data in case.packets(PACKETS, seed=4):
        check_values(switch, walk(switch, port, data))


def check_values(switch: Switch, seen: PacketWalk) -> None:
    known: dict[str, int] = {}
    after_ingress: dict[str, int] = {}
    emitted: tuple[tuple[str, int], ...] = ()
    for step in seen.steps:
        match step:
            case EgressStarted():
                again = step.copy.kind == "ingress clone"  # is parsed again
                known = {} if again else dict(after_ingress)
            case Managed():
                after_ingress = {name: value for name, value in known.items() if "." in name}
            case Extracted():
                known |= {field.name: field.value for field in step.fields}
            case Deparsed():
                emitted = step.headers
            case PacketLeaves():
                check_headers(switch, step.data, emitted, known)
        for change in step.writes:
            expected = known.get(change.name, change.old)
            assert change.old == expected or change.name.startswith("standard_metadata"), change
            known[change.name] = change.new


def check_headers(
    switch: Switch, data: bytes, emitted: tuple[tuple[str, int], ...], known: dict[str, int]
) -> None:
    at = 0
    for name, size in emitted:
        header = switch.program.source.headers[name.removeprefix("hdr.")]
        number = int.from_bytes(data[at : at + size], "big")
        if len(data) < at + size:
            return  # truncated
        for item in header.fields if header.varbit is None else ():
            value = number >> (8 * size - item.offset - item.width) & ((1 << item.width) - 1)
            assert known.get(f"{name}.{item.name}", value) == value, f"{name}.{item.name}"
        at += size


@uncompiled
@each_case
def test_places_are_lines_of_the_source(case: Case) -> None:
    for seen in walks(case):
        assert seen.sources
        for step in seen.steps:
            if isinstance(step.place, SourceLine):
                line = seen.sources[step.place.file][step.place.line - 1]
                assert line.strip()
            if isinstance(step, StateEntered):
                assert step.place is not None
                assert f"state {step.state}" in line


@uncompiled
@each_case
def test_every_copy_ends_somewhere(case: Case) -> None:
    for seen in walks(case):
        ends = Counter(type(step) for step in seen.steps)
        going = [copy for step in of_kind(seen.steps, Managed) for copy in step.copies]

        assert ends[Managed] >= 1
        assert ends[EgressStarted] == sum(copy.has_port for copy in going)
        assert ends[EgressStarted] == ends[PacketLeaves] + ends[EgressDropped]


@uncompiled
def test_a_hit_names_the_prefix_that_is_short_of_its_length() -> None:
    """10 of the 13 bits of 0x0103/13 decide, as in BMv2, so 0x0105 is of it."""
    case = next(case for case in CASES if case.name == "prefixes")
    switch = make_switch(case)
    switch.write(entry("alone", {"hdr.key.odd": (0x0103, 13)}, "set", 9))
    seen = walk(switch, 1, (0x0105 << 19).to_bytes(4, "big") + b"\xff")
    [lookup] = of_kind(seen.steps, LookedUp)
    assert lookup.entry is not None
    assert (lookup.entry.index, lookup.entry.match) == (5, ("259 (0x103)/13",))


@uncompiled
def test_a_hit_names_the_entry_that_matched() -> None:
    case = next(case for case in CASES if case.name == "tables")
    switch = make_switch(case)
    found = 0
    for port, data in case.packets(50, seed=5):
        for step in of_kind(walk(switch, port, data).steps, LookedUp):
            if step.entry is None:
                assert not step.hit
                continue
            entry = switch.entries(step.table)[step.entry.index]
            action = switch.program.source.actions[entry.action]
            assert (action.name, entry.arguments) == (
                step.action,
                tuple(argument.value for argument in step.arguments),
            )
            keys = [key.value for key in step.keys]
            kinds = [key.kind for key in table(switch, step.table).keys]
            assert all(map(matches, kinds, keys, entry.match))
            found += 1
    assert found > 25


def table(switch: Switch, name: str):  # type: ignore[no-untyped-def]
    shapes = switch.program.module.shapes
    return next(shape.table for shape in shapes if shape.table.name == name)


def matches(kind: str, key: int, pair: tuple[int, int]) -> bool:
    first, second = pair
    return first <= key <= second if kind == "range" else key & second == first & second


@uncompiled
def test_conditions_lead_where_they_say() -> None:
    """What forward.p4 checks first decides whether it looks for a route."""
    case = next(case for case in CASES if case.name == "forward")
    outcomes = set()
    for seen in walks(case):
        first = of_kind(seen.steps, kinds.Tested)[0]
        tables = [step.table for step in of_kind(seen.steps, LookedUp)]
        assert ("Forwarding.ipv4_lpm" in tables) != first.outcome
        outcomes.add(first.outcome)
    assert outcomes == {True, False}


@uncompiled
def test_a_walk_through_psa_says_why_a_packet_comes_again() -> None:
    """The packet is resubmitted and then recirculated, and a clone is made on the first pass."""
    switch = Switch.alone(Program.load(PSA / "ways.json"), 8)
    switch.apply([CloneUpdate(INSERT, 5, ((6, 1),))])
    asks = bytes([0b11110000, 0, 0, 5]) + bytes(6) + (3).to_bytes(4, "big")
    seen = walk(switch, 2, asks + bytes(15))

    received = of_kind(seen.steps, kinds.Received)
    assert [step.why for step in received] == [
        *("arrived", "resubmitted", "recirculated", "resubmitted")
    ]
    managed = of_kind(seen.steps, Managed)
    assert [step.reason for step in managed] == [
        *("resubmit is true", "egress_port is 4294967290"),
        *("resubmit is true", "egress_port is 3"),
    ]
    assert [(c.kind, c.port, c.rid) for c in managed[1].copies] == [
        *(("ingress clone", 6, 1), ("unicast", 0xFFFFFFFA, 0))
    ]
    assert [port for port, _ in seen.out].count(3) == 1
    assert list(seen.out) == switch.process(2, asks + bytes(15))
    last = of_kind(seen.steps, PacketLeaves)[-1]
    assert {14 <= at < 29 for at in last.changed} == {True}  # of the header `seen` alone


@uncompiled
def test_a_tracer_that_was_there_stays() -> None:
    before = sys.gettrace()
    walk(make_switch(CASES[0]), 1, bytes(60))
    assert sys.gettrace() is before


@pytest.mark.skipif(compiled.UNCOMPILED, reason="needs compiled handlers")
def test_compiled_handlers_are_refused() -> None:
    with pytest.raises(ConfigError, match="handlers must run uncompiled"):
        walks(CASES[0])


@uncompiled
def test_a_parser_that_never_ends_is_followed_for_a_while(tmp_path: Path) -> None:
    """BMv2 goes on for ever; the engine ends it with an error, and the walk says so."""
    data = program(do("assign", B, field("standard_metadata", "parser_error")))
    standard(data, ["parser_error", 32, False])
    state(data)["transitions"] = [{"type": "default", "value": None, "next_state": "start"}]
    state(data)["parser_ops"] = []
    program_ = Program.load(write(tmp_path, data))

    seen = walk(Switch.alone(program_, 4, "s0", first_port=0), 1, b"\1\2")

    assert len(of_kind(seen.steps, StateEntered)) == MOST_IDLE
    assert of_kind(seen.steps, kinds.StatesSkipped) == [
        kinds.StatesSkipped(count=LONGEST_WAY - MOST_IDLE, most=LONGEST_WAY)
    ]
    assert [step.error for step in of_kind(seen.steps, kinds.ParserFailed)] == ["ParserTimeout"]
    assert [port for port, _ in seen.out] == [1]


@uncompiled
def test_a_walk_says_what_an_assertion_and_a_meter_have_counted(tmp_path: Path) -> None:
    """Both buckets of the meter hold 2 tokens, of which the packet takes one."""
    meter = do("execute_meter", {"type": "meter_array", "value": "ingress.police"}, value(1), A)
    claim = expression("b2d", None, expression("==", B, value(9)))
    data = program(meter, do("assert", operand(claim)))
    data["meter_arrays"] = [
        {
            **{"name": "ingress.police", "id": 0, "is_direct": False, "size": 2},
            **{"rate_count": 2, "type": "packets"},
        }
    ]
    switch = Switch.alone(Program.load(write(tmp_path, data)), 4, "s0", first_port=0)
    switch.apply([MeterUpdate("ingress.police", 1, MeterRates(5, 2, 5, 2))])

    seen = walk(switch, 1, b"\1\2")

    writes = {each.name: (each.old, each.new) for step in seen.steps for each in step.writes}
    assert writes["packets dropped by assert"] == (0, 1)
    assert writes["police[1].peak tokens"] == writes["police[1].committed tokens"] == (2, 1)


LEFT = field("meta", "left")


def looping(folder: Path, *, turns: int) -> Switch:
    """Return a switch whose action has a loop of so many turns; 0: without an end.

    Primitive 0 has the packet go back to its port.
    """
    goes_on = operand(expression("^", LEFT, value(turns))) if turns else value(1)
    more = operand(expression("+", LEFT, value(1)))
    head = do("_jump_if_zero", goes_on, value(4))
    place = {"filename": "x.p4", "line": 3, "column": 8}
    head["source_info"] = {**place, "source_fragment": "for (left = 0; left ^ 99; left = left + 1)"}
    data = program(head, do("assign", LEFT, more), do("_jump", value(1)))
    metadata(data, "meta", ["left", 8])
    return Switch.alone(Program.load(write(folder, data)), 4, "s0", first_port=0)


@uncompiled
def test_a_loop_that_never_ends_is_followed_for_a_while_and_drops(tmp_path: Path) -> None:
    """BMv2 goes on for ever; the engine counts a violated assertion, and the walk says so."""
    switch = looping(tmp_path, turns=0)

    seen = walk(switch, 1, b"\1\2")

    skipped = kinds.TurnsSkipped(count=MOST_TURNS - MOST_SHOWN, most=MOST_TURNS, ended=False)
    assert of_kind(seen.steps, kinds.TurnsSkipped) == [skipped]
    assert len(of_kind(seen.steps, kinds.Executed)) == 1 + MOST_SHOWN
    assert list(seen.out) == []
    assert switch.failed_assertions() == {"endless loop (x.p4 line 3)": 1}


@uncompiled
def test_a_loop_that_comes_to_its_end_is_followed_to_it(tmp_path: Path) -> None:
    """Of 99 turns the first 64 are shown; what comes behind the loop is, too."""
    switch = looping(tmp_path, turns=99)

    for _ in range(2):
        seen = walk(switch, 1, b"\1\2")
        skipped = [(each.count, each.ended) for each in of_kind(seen.steps, kinds.TurnsSkipped)]
        assert skipped == [(35, True)]
        tests = of_kind(seen.steps, kinds.Tested)
        assert {step.condition for step in tests} == {"meta.left ^ 99"}
        assert [data for _, data in seen.out] == [b"\1\2"]
    assert switch.failed_assertions() == {}


@uncompiled
def test_a_parser_that_comes_to_its_end_is_followed_to_it(tmp_path: Path) -> None:
    data = program()
    metadata(data, "meta", ["left", 8])
    left = field("meta", "left")
    step = {"type": "expression", "value": expression("+", left, value(1))}
    state(data).update(
        parser_ops=[do("set", left, step)],
        transition_key=[left],
        transitions=[
            {"type": "hexstr", "value": "0x63", "mask": None, "next_state": "end"},  # 99
            {"type": "default", "value": None, "next_state": "start"},
        ],
    )
    extract = do("extract", {"type": "regular", "value": "op"})
    data["parsers"][0]["parse_states"].append({"name": "end", "id": 1, "parser_ops": [extract]})

    seen = walk(Switch.alone(Program.load(write(tmp_path, data)), 4, "s0"), 1, b"\1\2")

    # 99 rounds, of which the first 64 are shown; then the state that extracts
    assert [step.count for step in of_kind(seen.steps, kinds.StatesSkipped)] == [35]
    assert [step.state for step in of_kind(seen.steps, StateEntered)] == ["start"] * 64 + ["end"]
    assert len(of_kind(seen.steps, Extracted)) == 1
    assert not of_kind(seen.steps, kinds.ParserFailed)
    assert [data for _, data in seen.out] == [b"\1\2"]


@starts_uncompiled
def test_walks() -> None:
    assert " passed" in run_uncompiled(__file__)
