"""Parts of the generator by themselves, with small programs by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hand_json import A, B, do, program, table, value, write
from hypothesis import given, settings
from hypothesis import strategies as st
from program_cases import PROGRAMS

from ringleaf.core import views
from ringleaf.errors import ConfigError
from ringleaf.switches.engine import hashing
from ringleaf.switches.generate import calculations, doubts, jumps, parser_primitives
from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.endings import SET_BETWEEN
from ringleaf.switches.generate.flow import Apply, If, Loop, UnlessExited
from ringleaf.switches.generate.inputs import InputPiece, longest_input
from ringleaf.switches.generate.lanes import Pattern, Roller
from ringleaf.switches.generate.loops import LoopWriter
from ringleaf.switches.generate.lower import lower
from ringleaf.switches.generate.module import generate
from ringleaf.switches.generate.state import StateLayout
from ringleaf.switches.generate.storage import ENGINE, Storage, valid
from ringleaf.switches.generate.structure import pipeline_body
from ringleaf.switches.generate.text import ModuleConstants, TooLargeError
from ringleaf.switches.generate.usage import FieldUsage, Touched, body_usage
from ringleaf.switches.json.program import load_source
from ringleaf.switches.json.stacks import value_of
from ringleaf.switches.source import (
    STACKS,
    STANDARD,
    VALID,
    ActionSource,
    Boolean,
    Calculation,
    Constant,
    FieldSource,
    Named,
    OperationSource,
    Primitive,
    ProgramSource,
    SelectedSource,
)
from ringleaf.switches.source import ConstantInput as ConstantBits

TABLES = load_source(PROGRAMS / "tables.json")
EXTERNS = load_source(PROGRAMS / "externs.json")
VARBITS = load_source(PROGRAMS / "varbits.json")
LANES = load_source(PROGRAMS / "lanes.json")


def code_of(source: ProgramSource) -> FunctionCode:
    return FunctionCode(source, Storage(source), StateLayout(source), ModuleConstants(), {})


def test_what_turns_have_in_common_is_written_once_before_them() -> None:
    written: list[Any] = []
    writer = LoopWriter(code_of(LANES), written.append)
    before = (Primitive("assign", (FieldSource("scalars", "index_0"), Constant(1))),)
    turn = (Primitive("assign", (FieldSource("scalars", "index_0"), Constant(2))),)
    writer.write(Loop(16, turn, 0), Pattern(prefix=before))
    assert written == [before, turn]


def test_fields_set_between_ingress_and_egress_have_v1models_bits() -> None:
    """As `standard_metadata_t` of p4c's v1model.p4 has them."""
    assert {field.name: bits for field, bits in SET_BETWEEN.items()} == {
        "egress_port": 9, "instance_type": 32, "enq_timestamp": 32, "enq_qdepth": 19,
        "deq_timedelta": 32, "deq_qdepth": 19, "egress_rid": 16,
    }  # fmt: skip


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
    inputs = {
        each for each in EXTERNS.calculations[selector].inputs if isinstance(each, FieldSource)
    }
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
    assert read <= FieldUsage(plain, (), ()).parser.reads


def fields_of(expression: Any) -> set[FieldSource]:
    if isinstance(expression, FieldSource):
        return {expression}
    parts = [getattr(expression, name, None) for name in ("left", "right", "condition")]
    return set().union(*(fields_of(part) for part in parts if part is not None))


@pytest.mark.parametrize("more", [0, 1])
def test_an_action_has_so_many_primitives_written_out(
    more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What two ways share after a jump is written for each of them where they do not meet."""
    monkeypatch.setattr(jumps, "MOST_PRIMITIVES", 5)
    step = Primitive("assign", (FieldSource("key", "kind"), Constant(1)))
    made = ActionSource(0, "a", (), (5 + more) * (step,))
    if more:
        with pytest.raises(TooLargeError, match="at most 5 primitives"):
            jumps.action_body(TABLES, made)
    else:
        assert len(jumps.action_body(TABLES, made)) == 5


@given(
    st.lists(
        st.tuples(st.integers(1, 40), st.sampled_from((None, "key", "eth")), st.integers(0, 2**40)),
        min_size=1,
        max_size=6,
    ),
    st.sets(st.sampled_from(("key", "eth"))),
)
def test_a_sum_closes_ranks_where_headers_are_not_there(
    given_pieces: list[tuple[int, str | None, int]], there: set[str]
) -> None:
    """It is that of the words of the bits that are there, padded with zeros, modulo 65535."""
    code = code_of(TABLES)
    headers = [*TABLES.headers][:2]
    named = dict(zip(("key", "eth"), headers, strict=True))
    pieces, bits, offset = [], "", 0
    names: dict[str, Any] = {"np": np}
    for number, (width, header, number_of) in enumerate(given_pieces):
        value_of = number_of & (1 << width) - 1
        own = named.get(header) if header else None
        pieces.append(InputPiece(f"p{number}", offset, width, own))
        names[f"p{number}"] = np.uint64(value_of)
        offset += width
        if header is None or header in there:
            bits += f"{value_of:0{width}b}"
    for header, own in named.items():
        names[code.storage.names(valid(own))[0]] = np.uint64(header in there)
    code.add(f"total = {code.u(0)}")
    calculations._sum_of_some(code, pieces)
    exec("\n".join(code.constants.lines()), names)
    with np.errstate(over="ignore"):
        exec(dedent("\n".join(code.lines.lines)), names)
    padded = bits + "0" * (-len(bits) % 16)
    words = [int(padded[at : at + 16], 2) for at in range(0, len(padded), 16)]
    assert int(names["total"]) % 65535 == sum(words) % 65535


@pytest.mark.parametrize("algorithm", ["crc32", "crc64_custom"])
@pytest.mark.parametrize("unit", [1, 8])
@settings(max_examples=20)
@given(draw=st.data())
def test_a_crc_is_that_of_the_bytes_that_its_pieces_are(
    algorithm: str, unit: int, draw: st.DataObject
) -> None:
    """Pieces of whole bytes are looked up at once, others byte by byte, padded with zeros."""
    code = code_of(TABLES)
    sizes = draw.draw(st.lists(st.integers(1, 64 // unit), min_size=1, max_size=4))
    pieces, bits = [], ""
    names: dict[str, Any] = {"np": np} | vars(views) | vars(hashing)
    for number, size in enumerate(sizes):
        width = unit * size
        value_of = draw.draw(st.integers(0, (1 << width) - 1))
        pieces.append(InputPiece(f"p{number}", len(bits), width, None))
        names[f"p{number}"] = np.uint64(value_of)
        bits += f"{value_of:0{width}b}"
    calculation = Calculation("c", algorithm, (), False)
    result = calculations._crc(code, calculation, pieces, len(bits))
    constants = [*code.constants.lines(), *(f"{k} = {v}" for k, v in code.globals.items())]
    exec("\n".join(constants), names)
    exec(dedent("\n".join(code.lines.lines)), names)
    data = int(bits + "0" * (-len(bits) % 8), 2).to_bytes(-(-len(bits) // 8), "big")
    assert names[result] == hashing.crc(algorithm, data)


@pytest.mark.parametrize(
    ("actions", "may_exit"), [([2], True), ([3], False), ([2, 3], True), ([3, 2], True)]
)
def test_what_follows_a_hit_is_left_out_if_the_action_has_ended_the_packets_way(
    tmp_path: Path, actions: list[int], may_exit: bool
) -> None:
    data = program()
    for number, name, primitive in ((2, "quit", do("exit")), (3, "go_on", do("assign", B, A))):
        data["actions"].append(
            {"name": name, "id": number, "runtime_data": [], "primitives": [primitive]}
        )
    key = [{"match_type": "exact", "target": A["value"]}]
    ways = {"__HIT__": "do_in", "__MISS__": None}
    table(data, "t", actions, key=key, next_tables=ways)
    source = load_source(write(tmp_path, data))
    (apply, *_) = pipeline_body(source, source.ingress)
    assert isinstance(apply, Apply)
    following = apply.hit[0]
    assert isinstance(following, UnlessExited) == may_exit
    assert apply.miss == ()


def test_values_are_neither_the_engines_nor_whether_headers_are_there() -> None:
    value_of, register = FieldSource("key", "kind"), Named("register_array", "r")
    others = {
        FieldSource(ENGINE, "parsed"),
        FieldSource(STACKS, "s"),
        FieldSource("key", VALID),
        FieldSource(STACKS, VALID),
    }
    assert doubts._values({value_of, register, *others}) == {value_of, register}


@pytest.mark.parametrize("condition", [None, FieldSource("key", "kind")])
def test_a_checksum_decides_by_its_condition_if_it_has_one(
    condition: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[Any] = []
    monkeypatch.setattr(
        doubts, "note_decision", lambda _, decides, precondition: noted.append(decides)
    )
    code = code_of(TABLES)
    header = next(name for name, each in TABLES.headers.items() if not each.metadata)
    checksum: Any = SimpleNamespace(condition=condition, target=FieldSource(header, "any"))
    doubts.note_checksum(code, checksum)
    assert noted == ([] if condition is None else [condition])


@pytest.mark.parametrize(
    ("widths", "end", "is_whole"),
    [((16,), 99, True), ((8, 8), 99, True), ((8,), 99, False), ((8,), 8, True), ((17,), 99, False)],
)
def test_headers_of_whole_words_or_at_the_end_leave_others_in_their_places(
    widths: tuple[int, ...], end: int, is_whole: bool
) -> None:
    own, offset = [], 0
    for width in widths:
        own.append(InputPiece("p", offset, width, "h"))
        offset += width
    assert calculations._is_whole(own, end) == is_whole


@pytest.mark.parametrize("swapped", [False, True])
def test_a_header_is_compared_with_headers_only(swapped: bool) -> None:
    code = code_of(TABLES)
    header, number = Named("header", "key"), Constant(5)
    sides = (number, header) if swapped else (header, number)
    with pytest.raises(ConfigError, match="unsupported operation"):
        code.expressions.condition(OperationSource("==", *sides))


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
    kept = [FieldSource("scalars", f"kept{lane}_0") for lane in range(16)]
    storage = Storage(source)
    shape = storage.shape(kept[0])
    plain = storage.shape
    storage.shape = (  # type: ignore[method-assign]
        lambda field: replace(shape, width=width) if field in kept else plain(field)
    )
    index = FieldSource("scalars", "index_0")
    body = (
        *(
            Primitive("register_read", (field, Named("register_array", f"I.r{lane}"), index))
            for lane, field in enumerate(kept)
        ),
        *(
            Primitive("assign", (FieldSource("lanes", f"d{lane}"), field))
            for lane, field in enumerate(kept)
        ),
    )
    Roller(source, storage, StateLayout(source)).roll([body], elsewhere=[])
    assert sum(storage.lane(field) is not None for field in kept) == lanes


def test_primitives_outside_of_actions_note_what_they_read(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(
        parser_primitives, "note_operands", lambda _, made: told.append(("n", made))
    )
    monkeypatch.setattr(
        parser_primitives, "write_primitive", lambda _, made: told.append(("w", made))
    )
    first, second = (
        Primitive("assign", (FieldSource("key", "kind"), Constant(number))) for number in (1, 2)
    )
    parser_primitives.write_straight(code_of(TABLES), (first, second))
    assert told == [("n", first), ("w", first), ("n", second), ("w", second)]


def test_fields_named_elsewhere_are_those_of_every_part_but_the_pipelines() -> None:
    """Each of two fields is of one part alone: one that it reads, and one that it writes."""
    usage = object.__new__(FieldUsage)
    parts = ["parser", "verify", "update", "deparser"]
    for part in parts:
        setattr(usage, part, Touched({FieldSource(part, "read")}, {FieldSource(part, "written")}))
    nothing: dict[str, Any] = {}
    source = {"calculations": nothing, "field_lists": nothing, "digests": nothing}
    usage._source = SimpleNamespace(**source, meters=nothing)  # type: ignore[assignment]
    assert usage.elsewhere() == [
        FieldSource(part, name) for part in sorted(parts) for name in ("read", "written")
    ]


@pytest.mark.parametrize(
    ("hit", "miss", "count"), [("do_in", None, 1), (None, "do_in", 1), ("do_in", "do_in", 0)]
)
def test_a_hit_is_looked_at_where_anything_follows_it(
    tmp_path: Path, hit: str | None, miss: str | None, count: int
) -> None:
    data = program()
    data["actions"].append(
        {"name": "only", "id": 2, "runtime_data": [], "primitives": [do("assign", B, value(7))]}
    )
    key = [{"match_type": "exact", "target": A["value"]}]
    table(data, "t", [2], key=key, next_tables={"__HIT__": hit, "__MISS__": miss})
    text = generate(load_source(write(tmp_path, data))).text
    assert text.count("hit = entry != image") == count
    assert text.count("if hit:") == count


KIND, SPARE = FieldSource("key", "kind"), FieldSource("key", "spare")
CHOSEN = SelectedSource(((Boolean(False), KIND), (Boolean(True), SPARE)))
"""The second of two fields."""


def test_an_operand_that_is_read_becomes_a_choice_of_values() -> None:
    """So does one of a primitive that is not known, which is refused later."""
    target = FieldSource("eth", "type")
    chosen = value_of(CHOSEN)
    for op, operands in (("assign", (target, CHOSEN)), ("strange", (CHOSEN, target))):
        made = Primitive(op, operands)
        (lowered,) = lower(TABLES, made)
        expected = tuple(chosen if each is CHOSEN else each for each in operands)
        assert lowered == replace(made, parameters=expected)


def test_an_operand_that_is_written_becomes_a_chain_of_conditions() -> None:
    """BMv2 writes nothing where no element is selected."""
    made = Primitive("assign", (CHOSEN, Constant(3)))
    (chain,) = lower(TABLES, made)
    assert isinstance(chain, If)
    assert (chain.condition, chain.then) == (
        Boolean(False),
        (Primitive("assign", (KIND, Constant(3))),),
    )
    (rest,) = chain.otherwise
    assert isinstance(rest, If)
    assert (rest.condition, rest.then, rest.otherwise) == (
        Boolean(True),
        (Primitive("assign", (SPARE, Constant(3))),),
        (),
    )


def test_a_copy_of_the_standard_metadata_is_marked_to_drop() -> None:
    standard = Primitive("mark_to_drop", (Named("header", STANDARD),))
    assert lower(TABLES, standard) == (standard,)
    made = lower(TABLES, Primitive("mark_to_drop", (Named("header", "copy"),)))
    assert [each.parameters for each in made if isinstance(each, Primitive)] == [
        (FieldSource("copy", "egress_spec"), Constant(511)),
        (FieldSource("copy", "mcast_grp"), Constant(0)),
    ]
    assert {each.op for each in made if isinstance(each, Primitive)} == {"assign"}


def test_a_pipeline_may_be_empty_and_has_no_cycle(tmp_path: Path) -> None:
    data = program()
    empty = load_source(write(tmp_path, data)).ingress
    assert pipeline_body(TABLES, replace(empty, first=None)) == ()
    call: Any = empty.nodes[empty.first or ""]
    turning = replace(
        empty, nodes={**empty.nodes, str(empty.first): replace(call, next=empty.first)}
    )
    with pytest.raises(ConfigError, match="a pipeline with a cycle is not supported"):
        pipeline_body(load_source(write(tmp_path, data)), turning)


def test_psa_drops_what_ingress_leaves_alone() -> None:
    """PSA, 6.2: `drop` is true at first, so the field that ends ingress is set to one before."""
    text = generate(load_source(PROGRAMS.parent / "psa" / "ways.json")).text
    ingress = text[text.index("def ingress") :]
    found = re.search(r"^ if (f\d+) != u_0:\n  return 0$", ingress, re.MULTILINE)
    assert found is not None
    assert f" {found[1]} = u_1\n" in ingress
