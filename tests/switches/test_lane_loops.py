"""Repetition is found, and only repetition; that loops mean the same is for the traces to say."""

from __future__ import annotations

import re
from functools import cache

import pytest
from program_cases import BUILT, PROGRAMS

from ringleaf.switches.generate.flow import Body, If, Loop
from ringleaf.switches.generate.lanes import Roller
from ringleaf.switches.generate.module import generate
from ringleaf.switches.generate.repetition import fields
from ringleaf.switches.generate.state import StateLayout
from ringleaf.switches.generate.storage import Storage
from ringleaf.switches.json.program import load_source
from ringleaf.switches.program import Program
from ringleaf.switches.source import Constant, FieldSource, Named, OperationSource, Primitive

SOURCE = load_source(PROGRAMS / "lanes.json")
INDEX = FieldSource("scalars", "index_0")


@cache
def action_text(action: str) -> str:
    """Return the code of one action of lanes.p4."""
    module = generate(SOURCE)
    text = module.text
    labels = {name: label for label, name in module.names.items()}
    start = text.index(f"# {labels[f'I.{action}']}\n")
    end = re.compile(rf"\n +(elif action|if \({labels['op.op']} )").search(text, start)
    assert end is not None
    return text[start : end.start()]


def read(lane: int, target: FieldSource, index: FieldSource = INDEX) -> Primitive:
    return Primitive("register_read", (target, Named("register_array", f"I.r{lane}"), index))


def add(lane: int, value: FieldSource) -> Primitive:
    field = FieldSource("lanes", f"d{lane}")
    total = OperationSource("&", OperationSource("+", field, value), Constant(0xFFFFFFFF))
    return Primitive("assign", (field, total))


def roll(body: Body, storage: Storage | None = None) -> tuple[Body, Roller]:
    roller = Roller(SOURCE, storage or Storage(SOURCE), StateLayout(SOURCE))
    (rolled,) = roller.roll([body], elsewhere=[])
    return rolled, roller


@pytest.mark.parametrize(
    ("action", "loops"),
    [
        ("store", 1),
        ("load", 1),
        ("choose", 4),  # fresh or not, index inside or not
        ("branch", 3),  # storing outside is nothing
        ("phases", 4),
        ("largest", 2),
        ("saturate", 1),
        ("halve", 1),
        ("small", 2),
        ("mix", 2),  # setValid() clears the lanes first
        ("copy", 1),
        ("swap_two", 0),
    ],
)
def test_actions_become_loops(action: str, loops: int) -> None:
    text = action_text(action)
    assert len(re.findall(r"for lane in range", text)) == loops
    assert "lanes.d7" not in generate(SOURCE).names.values()


def test_statements_of_the_apply_block_become_a_loop() -> None:
    module = generate(SOURCE)
    labels = {name: label for label, name in module.names.items()}
    text = module.text
    inline = text[text.index(f"{labels['op.op']} == u_14") : text.index("fields[0] =")]
    assert inline.count("for lane in range(16)") == 4  # two indices, each inside or not
    temporaries = [label for name, label in labels.items() if name.startswith("scalars.tmp")]
    assert any(f"{label} = " in inline for label in temporaries)


def test_code_does_not_grow_with_lanes() -> None:
    texts = [Program.load(BUILT / f"switchml-{lanes}.json").module.text for lanes in (64, 256)]
    handlers = [text[text.index("@handler") :].splitlines() for text in texts]
    assert len(handlers[0]) == len(handlers[1])


def test_one_statement_per_lane() -> None:
    rolled, roller = roll(tuple(read(lane, FieldSource("lanes", f"d{lane}")) for lane in range(16)))

    assert rolled == (Loop(16, (read(0, FieldSource("lanes", "d0")),), 0),)
    assert roller.patterns[0].registers["I.r0"].step == 1


def test_fewer_than_eight_stay_as_they_are() -> None:
    body = tuple(read(lane, FieldSource("lanes", f"d{lane}")) for lane in range(7))
    assert roll(body)[0] == body


def test_lanes_that_skip_are_no_run() -> None:
    order = [0, 1, 2, 3, 5, 4, 6, 7]
    body = tuple(read(lane, FieldSource("lanes", f"d{lane}")) for lane in order)
    assert roll(body)[0] == body


def test_lanes_backwards_and_by_twos_are_runs() -> None:
    backwards = tuple(read(lane, FieldSource("lanes", f"d{15 - lane}")) for lane in range(16))
    (loop,), roller = roll(backwards)
    assert isinstance(loop, Loop)
    assert roller.patterns[0].lanes[FieldSource("lanes", "d15")].step == -1

    evens = tuple(add(lane, INDEX) for lane in range(0, 16, 2))
    (loop,), roller = roll(evens)
    assert isinstance(loop, Loop)
    assert roller.patterns[0].lanes[FieldSource("lanes", "d0")].step == 2


def test_temporary_of_one_turn_is_a_variable_of_the_loop() -> None:
    body = tuple(
        statement
        for lane in range(16)
        for kept in [FieldSource("scalars", f"kept{lane}_0")]
        for statement in (read(lane, kept), add(lane, kept))
    )
    storage = Storage(SOURCE)
    (loop,), _ = roll(body, storage)

    assert isinstance(loop, Loop)
    assert storage.lane(FieldSource("scalars", "kept0_0")) is None


def test_temporary_that_outlives_its_turn_becomes_a_lane() -> None:
    kept = [FieldSource("scalars", f"kept{lane}_0") for lane in range(16)]
    body = tuple(read(lane, kept[lane]) for lane in range(16))
    body += tuple(add(lane, kept[lane]) for lane in range(16))
    storage = Storage(SOURCE)
    rolled, _ = roll(body, storage)

    assert [type(statement) for statement in rolled] == [Loop, Loop]
    places = [storage.lane(field) for field in kept]
    assert places[0] is not None
    assert [place.index - places[0].index for place in places if place] == list(range(16))


def test_what_every_turn_does_alike_is_done_once() -> None:
    body = tuple(
        statement
        for lane in range(16)
        for statement in (
            Primitive(
                "assign", (FieldSource("scalars", f"kept{lane}_0"), FieldSource("op", "index"))
            ),
            read(lane, FieldSource("lanes", f"d{lane}"), FieldSource("scalars", f"kept{lane}_0")),
        )
    )
    (loop,), roller = roll(body)

    assert isinstance(loop, Loop)
    assert loop.body == body[1:2]
    assert roller.patterns[0].prefix == body[:1]


@pytest.mark.parametrize("is_read_first", [True, False])
def test_what_a_turn_reads_before_or_writes_twice_stays_in_it(is_read_first: bool) -> None:
    """The first turn reads the value from before the loop, and each sum has its own value."""
    given = [FieldSource("op", "index"), FieldSource("op", "operand")]
    writes = [Primitive("assign", (INDEX, value)) for value in given]
    body = tuple(
        statement
        for lane in range(0, 16, 1 if is_read_first else 2)
        for statement in (
            (add(lane, INDEX), writes[0])
            if is_read_first
            else (writes[0], add(lane, INDEX), writes[1], add(lane + 1, INDEX))
        )
    )
    (loop,), roller = roll(body)

    assert isinstance(loop, Loop)
    assert loop.body == body[: 2 if is_read_first else 4]
    assert roller.patterns[0].prefix == ()


def test_index_that_changes_from_turn_to_turn_is_no_loop() -> None:
    body = tuple(read(lane, INDEX) for lane in range(16))  # each read's index is the last's value
    assert roll(body)[0] == body


def test_order_of_turns_is_kept_where_one_reads_what_another_wrote() -> None:
    """`d[i+1] = d[i]` copies the first lane to all, in a loop as without."""
    body = tuple(
        Primitive(
            "assign", (FieldSource("lanes", f"d{lane + 1}"), FieldSource("lanes", f"d{lane}"))
        )
        for lane in range(15)
    )
    (loop,), _ = roll(body)
    assert isinstance(loop, Loop)
    assert loop.count == 15


def test_repetition_inside_a_branch_is_found() -> None:
    inner = tuple(read(lane, FieldSource("lanes", f"d{lane}")) for lane in range(16))
    condition = OperationSource("==", INDEX, Constant(3))
    (branch,), _ = roll((If(condition, inner, ()),))

    assert isinstance(branch, If)
    assert [type(statement) for statement in branch.then] == [Loop]


def test_repeated_branches_are_found() -> None:
    body = tuple(
        If(
            OperationSource("==", FieldSource("lanes", f"d{lane}"), Constant(3)),
            (add(lane, INDEX),),
            (),
        )
        for lane in range(16)
    )
    (loop,), _ = roll(body)
    assert isinstance(loop, Loop)
    assert fields(loop.body)[0] == FieldSource("lanes", "d0")
