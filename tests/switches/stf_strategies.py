"""Statements of STF, and how they are written."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from ringleaf.switches.stf.parser import COMMANDS
from ringleaf.switches.stf.statements import (
    AddEntry,
    CheckCounter,
    Command,
    ExpectNothing,
    ExpectPacket,
    RemoveAll,
    SendPacket,
    SetDefault,
    Statement,
    Wait,
)

identifiers = st.from_regex(r"[a-z_$][A-Za-z0-9_$]{0,6}", fullmatch=True)
names = st.lists(
    st.one_of(identifiers, st.builds("{}[{}]".format, identifiers, st.integers(0, 9))),
    min_size=1,
    max_size=3,
).map(".".join)
numbers = st.one_of(
    st.integers(0, 1 << 70).map(str),
    st.integers(0, 1 << 70).map(hex),
    st.from_regex(r"0b[01*]{1,9}", fullmatch=True),
    st.from_regex(r"0x[0-9a-f*]{1,9}", fullmatch=True),
)
values = st.one_of(numbers, st.builds("{}/{}".format, numbers, st.integers(0, 128)))
arguments = st.lists(st.tuples(identifiers, numbers), max_size=3).map(tuple)
keys = st.lists(st.tuples(names, values), max_size=3).map(tuple)
ports = st.integers(0, 511)
whole = st.integers(0, 1 << 40)
commands = st.sampled_from(sorted(COMMANDS)).flatmap(
    lambda name: st.builds(
        Command,
        st.just(1),
        st.just(name),
        st.lists(numbers, min_size=COMMANDS[name] or 1, max_size=COMMANDS[name] or 5).map(tuple),
    )
)
statements: st.SearchStrategy[Statement] = st.one_of(
    st.builds(
        AddEntry,
        st.just(1),
        names,
        st.none() | whole,
        keys,
        names,
        arguments,
        st.just("") | identifiers,
    ),
    st.builds(SetDefault, st.just(1), names, names, arguments),
    st.builds(SendPacket, st.just(1), ports, st.binary(min_size=1, max_size=40)),
    st.builds(
        ExpectPacket,
        st.just(1),
        ports,
        st.none() | st.text("0123456789ABCDEF*", min_size=1, max_size=60),
    ),
    st.builds(ExpectPacket, st.just(1), ports, st.text("09AF*", max_size=60), st.just(True)),
    st.builds(
        CheckCounter,
        st.just(1),
        names,
        whole.map(str) | identifiers,
        st.sampled_from(["packets", "bytes"]),
        st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
        whole,
    ),
    st.sampled_from([Wait(1), ExpectNothing(1), RemoveAll(1)]),
    commands,
)


def write(statement: Statement, rng: random.Random) -> str:
    """Return a line for it, with spaces and a comment where they may be."""
    words = _packet(statement, rng) or _table(statement) or _other(statement)
    if rng.random() < 0.3:
        words[0] = words[0].upper()
    text = "".join(word + rng.choice([" ", "\t", "  "]) for word in words)
    return text + rng.choice(["", "# with a comment: 1 $ ( *"])


def _packet(statement: Statement, rng: random.Random) -> list[str]:
    match statement:
        case SendPacket():
            return ["packet", str(statement.port), *_pieces(statement.data.hex(), rng)]
        case ExpectPacket():
            end = ["$"] if statement.exact else []
            return ["expect", str(statement.port), *_pieces(statement.pattern or "", rng), *end]
    return []


def _table(statement: Statement) -> list[str]:
    match statement:
        case AddEntry():
            priority = [] if statement.priority is None else [str(statement.priority)]
            written = [f"{name}:{value}" for name, value in statement.keys]
            call = _call(statement.action, statement.arguments)
            handle = ["=", statement.handle] if statement.handle else []
            return ["add", statement.table, *priority, *written, call, *handle]
        case SetDefault():
            return ["setdefault", statement.table, _call(statement.action, statement.arguments)]
    return []


def _other(statement: Statement) -> list[str]:
    match statement:
        case CheckCounter():
            place = f"{statement.counter}({statement.index})"
            condition = [statement.unit, statement.comparison, str(statement.value)]
            return ["check_counter", place, *condition]
        case Command():
            return [statement.name, *statement.arguments]
        case RemoveAll():
            return ["remove", "all"]
    return ["wait"] if isinstance(statement, Wait) else ["no_packet"]


def _call(action: str, given: tuple[tuple[str, str], ...]) -> str:
    return f"{action}({', '.join(f'{name}:{value}' for name, value in given)})"


def _pieces(digits: str, rng: random.Random) -> list[str]:
    out = []
    while digits:
        size = rng.randrange(1, len(digits) + 1)
        out.append(digits[:size])
        digits = digits[size:]
    return out
