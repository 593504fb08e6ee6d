"""All ways through a parser: where headers lie, and how far it looks, by hand and by walking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.switches.generate.paths import LONGEST_PACKET, Paths
from ringleaf.switches.source import (
    Constant,
    Expression,
    FieldSource,
    HeaderField,
    HeaderSource,
    LookAhead,
    Named,
    ParserState,
    Primitive,
    Transition,
)

SIZES = {"a": 1, "b": 2, "c": 4, "d0": 3, "d1": 3}
STACK = ("d0", "d1")
LENGTH = FieldSource("scalars", "length")


def extract(name: str, *bits: Expression) -> Primitive:
    kind = "header_stack" if name == "d" else "header"
    return Primitive("extract", (Named(kind, name), Named("member", ""), *bits))


def advance(amount: Expression | int, op: str = "advance") -> Primitive:
    return Primitive(op, (Constant(amount) if isinstance(amount, int) else amount,))


def look(offset: int, width: int) -> Primitive:
    return Primitive("assign", (LENGTH, LookAhead(offset, width)))


def source_of(
    states: dict[str, tuple[Sequence[Primitive], Sequence[str | None]]],
    emitted: Sequence[str],
    first: str | None = "s0",
    **instances: Any,
) -> Any:
    """Return a program with a parser of these states: what each does, and where it leads."""
    made = {
        name: ParserState(
            name, tuple(ops), (), (), tuple(Transition((), (), target) for target in targets)
        )
        for name, (ops, targets) in states.items()
    }
    headers = {
        name: HeaderSource(name, (HeaderField("f", 8 * size, False, 0),), False)
        for name, size in SIZES.items()
    }
    headers["meta"] = HeaderSource("meta", (HeaderField("f", 800, False, 0),), True)
    known = {"stacks": {"d": STACK}, "unions": {}, "union_stacks": {}} | instances
    return SimpleNamespace(
        states=made,
        headers=headers,
        emitted=tuple(emitted),
        first_state=first,
        instances=SimpleNamespace(**known),
    )


@dataclass
class Found:
    """What is found by walking each way by itself, bytes by bytes."""

    offsets: dict[str, set[int | None]] = field(
        default_factory=lambda: {name: set() for name in (*SIZES, "meta")}
    )
    entries: dict[str, set[int | None]] = field(default_factory=dict)
    deepest: int = 0
    in_order: bool = True


def walk(source: Any, found: Found, name: str, offset: int | None, seen: tuple[str, ...]) -> None:
    """Go on with a way at a state; `seen` are the headers extracted, "?" for bytes skipped."""
    found.entries[name].add(offset)
    for op in source.states[name].ops:
        if op.op == "assign":
            continue
        header = header_of(op, seen) if op.op == "extract" else "?"
        size = SIZES[header] if op.op == "extract" and header else skipped(op)
        if header is None or size is None:
            return
        if header != "?":
            found.offsets[header].add(offset)
        is_known = offset is not None and LENGTH not in op.parameters
        offset = offset + size if is_known and offset is not None else None
        seen = (*seen, header)
        found.in_order &= is_part_in_order(seen, source.emitted)
    for transition in source.states[name].transitions:
        if transition.target is not None:
            walk(source, found, transition.target, offset, seen)


def header_of(op: Primitive, seen: Sequence[str]) -> str | None:
    """Return the header that is extracted; None if the stack is full."""
    into = op.parameters[0]
    assert isinstance(into, Named)
    if into.name != "d":
        return into.name
    count = sum(each in STACK for each in seen)
    return STACK[count] if count < len(STACK) else None


def skipped(op: Primitive) -> int | None:
    """Return the bytes that an operation skips, as far as that is known; None for parts of one."""
    amount = op.parameters[0]
    if not isinstance(amount, Constant):
        return 0
    whole, rest = divmod(amount.value * (8 if op.op == "shift" else 1), 8)
    return None if rest else whole


def is_part_in_order(seen: Sequence[str], emitted: Sequence[str]) -> bool:
    left: Iterator[str] = iter(emitted)
    return all(each in left for each in seen)


OPS = st.one_of(
    st.sampled_from([extract(name) for name in ("a", "b", "c", "d")]),
    st.sampled_from([extract("c", LENGTH), advance(LENGTH), advance(8), advance(3, "shift")]),
    st.sampled_from([advance(12), look(4, 9)]),
)


@st.composite
def parsers(draw: st.DrawFn) -> Any:
    """Parsers of up to five states, each of which leads to later ones."""
    count = draw(st.integers(1, 5))
    states = {}
    for number in range(count):
        later = [None, *(f"s{after}" for after in range(number + 1, count))]
        targets = draw(st.lists(st.sampled_from(later), max_size=3))
        states[f"s{number}"] = draw(st.lists(OPS, max_size=3)), targets
    names = draw(st.permutations(list(states)))
    emitted = draw(st.lists(st.sampled_from(list(SIZES)), max_size=6, unique=True))
    return source_of({name: states[name] for name in names}, emitted)


@given(parsers())
def test_paths_are_those_that_one_finds_by_going_each(source: Any) -> None:
    found = Found(entries={name: set() for name in source.states})
    walk(source, found, "s0", 0, ())
    paths = Paths(source)
    assert paths.known
    assert not paths.cyclic
    assert paths.offsets == found.offsets
    assert paths.entries == found.entries
    assert paths.in_order == found.in_order
    moving = {name for name, at in found.offsets.items() if at - {None} != at or len(at) > 1}
    assert paths.moving() == moving
    for name, at in found.offsets.items():
        assert paths.offset(name) == (None if name in moving else next(iter(at), 0))
    for name, at in found.entries.items():
        assert paths.entry(name) == (next(iter(at)) if len(at) == 1 else None)


@pytest.mark.parametrize(
    ("ops", "deepest", "room"),
    [
        ((), 0, 0),
        ((extract("a"), extract("c")), 5, 5),
        ((extract("a"), look(0, 8)), 2, 2),
        ((extract("a"), look(1, 8)), 3, 3),
        ((look(0, 80), extract("a")), 10, 10),
        ((look(0, 8), extract("c")), 4, 4),
        ((extract("d"), extract("d"), extract("d")), 9, 9),
        ((extract("c", LENGTH), advance(16)), 6, 6),
        ((advance(3, "shift"), extract("a")), 4, 4),
        ((advance(LENGTH), extract("a")), 1, LONGEST_PACKET),
    ],
)
def test_a_parser_reads_so_deep(ops: tuple[Primitive, ...], deepest: int, room: int) -> None:
    paths = Paths(source_of({"s0": (ops, [None])}, ()))
    assert (paths.deepest, paths.room()) == (deepest, room)


def test_the_deepest_way_counts_and_what_its_states_look_at() -> None:
    """By s1 10 bytes are taken, and by s2 3; s3 looks 20 bits ahead, and its key 30."""
    source = source_of(
        {
            "s0": ([extract("b")], ["s1", "s2", None]),
            "s2": ([extract("a")], ["s3"]),
            "s3": ([look(4, 16)], [None]),
            "s1": ([extract("c"), extract("c")], ["s3"]),
        },
        ("b", "c"),
    )
    assert Paths(source).deepest == 13
    source.states["s3"] = ParserState("s3", (), (LENGTH, LookAhead(10, 20)), (8, 20), ())
    assert Paths(source).deepest == 14


def test_of_a_parser_with_a_cycle_all_headers_may_lie_anywhere() -> None:
    """As a guess, it takes each header once."""
    source = source_of({"s0": ([extract("a")], ["s1"]), "s1": ([], ["s0", None])}, ("a",))
    paths = Paths(source)
    assert (paths.cyclic, paths.known, paths.in_order) == (True, False, False)
    assert paths.deepest == sum(SIZES.values())
    assert paths.room() == LONGEST_PACKET == 10_000
    assert paths.moving() == set(SIZES)
    assert paths.offset("a") is None
    assert paths.entry("s0") is None
    assert paths.order == ["s0", "s1"]


def test_a_state_that_leads_to_itself_is_a_cycle() -> None:
    assert Paths(source_of({"s0": ([extract("d")], ["s0", None])}, STACK)).cyclic


def test_more_ways_than_the_limit_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ways into the last state, which differ in their offsets; at the limit all is known."""
    states: Any = {
        "s0": ([], ["s1", "s2"]),
        "s1": ([extract("a")], ["s3"]),
        "s2": ([extract("b")], ["s3"]),
        "s3": ([extract("c")], [None]),
    }
    for limit, is_known in ((2, True), (1, False)):
        monkeypatch.setattr(Paths, "LIMIT", limit)
        paths = Paths(source_of(states, ("a", "b", "c")))
        assert paths.known == is_known
        assert paths.in_order == is_known
        assert paths.offsets["c"] == ({1, 2} if is_known else set())
        assert paths.entry("s1") == (0 if is_known else None)
        assert paths.offset("a") == (0 if is_known else None)


def test_headers_that_are_emitted_twice_or_are_of_a_union_are_never_in_order() -> None:
    states: Any = {"s0": ([extract("a")], [None])}
    assert Paths(source_of(states, ("a", "b"))).in_order
    assert not Paths(source_of(states, ("a", "b", "a"))).in_order
    assert not Paths(source_of(states, ("a",), unions={"u": ("b", "c")})).in_order


def test_elements_of_a_stack_are_known_by_operation() -> None:
    """s1 extracts the first element, or the second one if s0 has extracted one before."""
    source = source_of(
        {
            "s0": ([], ["s1", "s2"]),
            "s2": ([extract("a"), extract("d")], ["s1"]),
            "s1": ([extract("d"), extract("d")], [None]),
        },
        ("a", *STACK),
    )
    paths = Paths(source)
    assert paths.elements == {("s2", 1): {0}, ("s1", 0): {0, 1}, ("s1", 1): {1}}
    assert paths.offsets["d1"] == {3, 4}


def test_without_a_first_state_nothing_is_parsed() -> None:
    paths = Paths(source_of({}, ("a",), first=None))
    assert (paths.known, paths.deepest, paths.order) == (True, 0, [])
    assert paths.offset("a") == 0
