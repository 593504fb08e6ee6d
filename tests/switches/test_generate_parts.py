"""Parts of the generator by themselves, with small programs by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hand_json import A, B, do, program, table, value, write
from program_cases import PROGRAMS

from ringleaf.errors import ConfigError
from ringleaf.switches.generate import generate, jumps
from ringleaf.switches.generate.code import Code
from ringleaf.switches.generate.flow import Apply, Loop
from ringleaf.switches.generate.inputs import longest_input
from ringleaf.switches.generate.lanes import Pattern, Roller
from ringleaf.switches.generate.loops import LoopWriter
from ringleaf.switches.generate.state import State
from ringleaf.switches.generate.storage import Storage
from ringleaf.switches.generate.text import Constants, TooLargeError
from ringleaf.switches.generate.usage import Usage, body_usage
from ringleaf.switches.json.program import load_source
from ringleaf.switches.source import (
    Action,
    Calculation,
    Constant,
    Field,
    Named,
    Operation,
    Primitive,
    Source,
)
from ringleaf.switches.source import Constants as ConstantBits

TABLES = load_source(PROGRAMS / "tables.json")
EXTERNS = load_source(PROGRAMS / "externs.json")
VARBITS = load_source(PROGRAMS / "varbits.json")
LANES = load_source(PROGRAMS / "lanes.json")


def code_of(source: Source) -> Code:
    return Code(source, Storage(source), State(source), Constants(), {})


def test_what_turns_have_in_common_is_written_once_before_them() -> None:
    written: list[Any] = []
    writer = LoopWriter(code_of(LANES), written.append)
    before = (Primitive("assign", (Field("scalars", "index_0"), Constant(1))),)
    turn = (Primitive("assign", (Field("scalars", "index_0"), Constant(2))),)
    writer.write(Loop(16, turn, 0), Pattern(prefix=before))
    assert written == [before, turn]


@pytest.mark.parametrize(("widths", "size"), [((), 0), ((8,), 1), ((13, 3), 2), ((13, 4), 3)])
def test_the_longest_input_is_of_whole_bytes(widths: tuple[int, ...], size: int) -> None:
    """Beside it, there is one of 7 bits."""
    made = {
        name: Calculation(name, "crc32", tuple(ConstantBits(0, width) for width in own), False)
        for name, own in (("long", widths), ("short", (7,) if widths else ()))
    }
    assert longest_input(replace(EXTERNS, calculations=made)) == size
    assert longest_input(replace(EXTERNS, calculations={})) == 0


def test_a_table_reads_what_its_selector_hashes_and_writes_its_meters_color() -> None:
    tables = {each.name: each for each in EXTERNS.ingress.tables}
    (spread,) = (t for t in tables.values() if t.name == "I.spread")
    selector = EXTERNS.profiles[spread.profile].selector
    inputs = {each for each in EXTERNS.calculations[selector].inputs if isinstance(each, Field)}
    found = body_usage(EXTERNS, (Apply(spread, (), (), ()),))
    assert inputs
    assert inputs < found.reads
    assert {key.target for key in spread.keys} < found.reads
    for each in tables.values():
        touched = body_usage(EXTERNS, (Apply(each, (), (), ()),))
        meter = EXTERNS.meters[each.meter].target if each.meter else None
        assert touched.writes == ({meter} if meter else set())


def test_a_parser_reads_the_lengths_of_what_it_extracts() -> None:
    """Those of varbit fields are expressions of other fields."""
    lengths = [
        op.parameters[2]
        for state in VARBITS.states.values()
        for op in state.ops
        if op.op == "extract" and len(op.parameters) > 2
    ]
    plain = replace(
        VARBITS,
        states={
            name: replace(
                state,
                keys=(),
                ops=tuple(op for op in state.ops if op.op == "extract"),
            )
            for name, state in VARBITS.states.items()
        },
    )
    read = {field for length in lengths for field in fields_of(length)}
    assert read
    assert read <= Usage(plain, (), ()).parser.reads


def fields_of(expression: Any) -> set[Field]:
    if isinstance(expression, Field):
        return {expression}
    parts = [getattr(expression, name, None) for name in ("left", "right", "condition")]
    return set().union(*(fields_of(part) for part in parts if part is not None))


@pytest.mark.parametrize("more", [0, 1])
def test_an_action_has_so_many_primitives_written_out(
    more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What two ways share after a jump is written for each of them where they do not meet."""
    monkeypatch.setattr(jumps, "MOST_PRIMITIVES", 5)
    step = Primitive("assign", (Field("key", "kind"), Constant(1)))
    made = Action(0, "a", (), (5 + more) * (step,))
    if more:
        with pytest.raises(TooLargeError, match="at most 5 primitives"):
            jumps.action_body(TABLES, made)
    else:
        assert len(jumps.action_body(TABLES, made)) == 5


@pytest.mark.parametrize("swapped", [False, True])
def test_a_header_is_compared_with_headers_only(swapped: bool) -> None:
    code = code_of(TABLES)
    header, number = Named("header", "key"), Constant(5)
    sides = (number, header) if swapped else (header, number)
    with pytest.raises(ConfigError, match="unsupported operation"):
        code.expressions.condition(Operation("==", *sides))


@pytest.mark.parametrize("entry", [None, {"action_id": 2, "action_data": []}])
def test_an_action_of_a_table_without_a_default_is_for_hits_alone(
    tmp_path: Path, entry: dict[str, Any] | None
) -> None:
    """Its only action is taken whatever happens, if it is also that of a miss."""
    data = program()
    data["actions"].append(
        {"name": "only", "id": 2, "runtime_data": [], "primitives": [do("assign", B, value(7))]}
    )
    members = {} if entry is None else {"default_entry": entry}
    key = [{"match_type": "exact", "target": A["value"]}]
    table(data, "t", [2], key=key, base_default_next="do_in", **members)
    text = generate(load_source(write(tmp_path, data))).text
    assert text.count("if action == ") == (1 if entry is None else 0)


@pytest.mark.parametrize(("width", "lanes"), [(32, 16), (33, 0)])
def test_temporaries_of_up_to_32_bits_become_lanes(width: int, lanes: int) -> None:
    """Of a loop that writes them, and another that reads them after it."""
    source = LANES
    kept = [Field("scalars", f"kept{lane}_0") for lane in range(16)]
    storage = Storage(source)
    shape = storage.shape(kept[0])
    plain = storage.shape
    storage.shape = (  # type: ignore[method-assign]
        lambda field: replace(shape, width=width) if field in kept else plain(field)
    )
    index = Field("scalars", "index_0")
    body = (
        *(
            Primitive("register_read", (field, Named("register_array", f"I.r{lane}"), index))
            for lane, field in enumerate(kept)
        ),
        *(
            Primitive("assign", (Field("lanes", f"d{lane}"), field))
            for lane, field in enumerate(kept)
        ),
    )
    Roller(source, storage, State(source)).roll([body], elsewhere=[])
    assert sum(storage.lane(field) is not None for field in kept) == lanes
