"""Code of a parser state's `select`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from itertools import accumulate

from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.doubts import note_decision
from ringleaf.switches.generate.lookahead import look
from ringleaf.switches.generate.marks import SELECT, LineMark, ValueMark
from ringleaf.switches.generate.observing import TRANSITION
from ringleaf.switches.generate.text import tuple_of
from ringleaf.switches.source import (
    Expression,
    FieldSource,
    LookAhead,
    ParserState,
    Transition,
)

DONE = -1  # number of the state after the last


class SelectWriter:
    """Writes transitions, as the next state's number in `step`."""

    def __init__(self, code: FunctionCode, numbers: dict[str, int]) -> None:
        self._code = code
        self._numbers = numbers

    def write(self, state: ParserState, at: int | None) -> None:
        """Write a state's transitions; `at` is the byte where the state ends, if known."""
        code = self._code
        keyword = "if"
        for key in state.keys:
            note_decision(code, key)
        keys = [self._key(*key, at) for key in zip(state.keys, state.widths, strict=True)]
        values = tuple(_shown(state, keys))
        for transition in _in_order(state):
            mark = LineMark(SELECT, transition, values=values)
            goal = DONE if transition.target is None else self._numbers[transition.target]
            if transition.is_default:
                with nullcontext() if keyword == "if" else code.block("else:"):
                    code.add(f"step = {goal}", mark)
                    code.note(TRANSITION, _label(state, transition))
                return
            with code.block(f"{keyword} {self._test(state, transition, keys)}:"):
                code.add(f"step = {goal}", mark)
                code.note(TRANSITION, _label(state, transition))
            keyword = "elif"

    def _key(self, key: Expression, width: int, at: int | None) -> list[str]:
        code = self._code
        if isinstance(key, LookAhead):
            return look(code, key, at)
        if not isinstance(key, FieldSource):
            return code.expressions.fitted(key, width, False)
        return code.bits_of(key)

    def _test(self, state: ParserState, transition: Transition, keys: list[list[str]]) -> str:
        if transition.value_set is not None:
            return self._membership(state, transition, keys)
        code = self._code
        tests = []
        for width, words, value, mask in zip(
            state.widths, keys, transition.values, transition.masks, strict=True
        ):
            for i, word in enumerate(words):
                full = (1 << min(64, width - 64 * i)) - 1
                part = mask >> 64 * i & full
                if part == 0:
                    continue
                masked = word if part == full else f"({word} & {code.u(part)})"
                tests.append(f"{masked} == {code.u((value & mask) >> 64 * i & full)}")
        return " and ".join(tests) or "True"

    def _membership(self, state: ParserState, transition: Transition, keys: list[list[str]]) -> str:
        """Return code that tests whether the key is in a value set; all masks of p4c are full."""
        code = self._code
        assert transition.value_set is not None
        start = code.state.value_sets[transition.value_set]
        widths = code.source.value_sets[transition.value_set].widths
        words = [word for words in keys for word in words]
        if widths != state.widths:
            words = self._cut_again(words, state.widths, widths)
        return f"is_member(state, state_at + {code.u(start)}, {tuple_of(words)})"

    def _cut_again(
        self, words: list[str], widths: tuple[int, ...], new_widths: tuple[int, ...]
    ) -> list[str]:
        """Return the words of a key of at most 64 bits in all, cut into parts of other widths."""
        code = self._code
        ends = accumulate(reversed(widths[1:]), initial=0)
        whole = " | ".join(
            f"({word} << {code.u(end)})" for word, end in zip(reversed(words), ends, strict=True)
        )
        ends = accumulate(reversed(new_widths[1:]), initial=0)
        parts = [
            f"((({whole}) >> {code.u(end)}) & {code.u((1 << width) - 1)})"
            for width, end in zip(reversed(new_widths), ends, strict=True)
        ]
        return parts[::-1]


def _label(state: ParserState, transition: Transition) -> str:
    """Return a transition's name in reports."""
    target = transition.target or "accept"
    if transition.value_set is not None:
        return f"{state.name}, {transition.value_set} to {target}"
    if transition.is_default:
        return f"{state.name}, default to {target}"
    parts = [
        f"{value:#x}" if mask & (full := (1 << width) - 1) == full else f"{value:#x}&&&{mask:#x}"
        for value, mask, width in zip(
            transition.values, transition.masks, state.widths, strict=True
        )
    ]
    return f"{state.name}, ({', '.join(parts)}) to {target}"


def _in_order(state: ParserState) -> Iterator[Transition]:
    """Return the transitions as BMv2 tries them: the last default comes after all others."""
    yield from (transition for transition in state.transitions if not transition.is_default)
    defaults = [transition for transition in state.transitions if transition.is_default]
    yield from defaults[-1:]


def _shown(state: ParserState, keys: list[list[str]]) -> Iterator[ValueMark]:
    """Return the key's parts as a packet walk shows them."""
    for key, width, words in zip(state.keys, state.widths, keys, strict=True):
        name = "key"
        if isinstance(key, LookAhead):
            name = f"lookahead<bit<{width}>>()"
        elif isinstance(key, FieldSource):
            name = f"{key.header}.{key.name}"
        yield ValueMark(name, tuple(words), width)
