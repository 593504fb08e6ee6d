"""Steps in words, for the terminal and the page alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ringleaf.core.units import format_count
from ringleaf.switches.engine.layout import AGAIN_PORT, ROUND_PORT
from ringleaf.switches.walk import steps
from ringleaf.switches.walk.formats import show
from ringleaf.switches.walk.steps import Copy, PacketWalk, Step, StepWrite, WalkValue

FEW = 4  # values of a run of lanes that are shown
LONGEST_LIST = 16  # fields that are shown one by one

T = TypeVar("T", WalkValue, StepWrite)

_NUMBERED = re.compile(r"(.*?)(\d+)((?:\[\d+\])?)")


@dataclass(frozen=True, slots=True)
class ShownField:
    """A line under a step: a name, its old and new value; `old` is empty if it does not matter."""

    name: str
    old: str
    new: str
    changed: bool


Words = tuple[Any, ...]
"""A kind and a title; then optionally the rows looked at, and a tone."""


@dataclass(frozen=True, slots=True)
class Said:
    """A step in words: a kind, a line, the rows it looked at, and the rows it wrote."""

    kind: str
    title: str
    looked_at: tuple[ShownField, ...]
    wrote: tuple[ShownField, ...]
    source: str  # the line of P4, if it is known
    tone: str = ""  # good, bad or nothing


def say(walk: PacketWalk, step: Step) -> Said:
    """Return a step in words: its kind, title, operands, writes, and its source line."""
    kind, title, *more = _WORDS[type(step)](step)
    looked_at = more[0] if more else ()
    tone = more[1] if len(more) > 1 else ""
    return Said(
        kind, title, tuple(looked_at), tuple(_writes(step.writes)), _source(walk, step), tone
    )


def _received(step: steps.Received) -> Words:
    return "packet", f"{format_count(len(step.data), 'byte')} in on port {step.port}: {step.why}"


def _entered(step: steps.StateEntered) -> Words:
    return "state", step.state


def _extracted(step: steps.Extracted) -> Words:
    where = f"{format_count(step.size_bytes, 'byte')} from byte {step.offset_bytes}"
    return "extract", f"{step.header}: {where}", _values(step.fields, True)


def _selected(step: steps.StateSelected) -> Words:
    return "select", f"next state: {step.target}", _values(step.keys)


def _failed(step: steps.ParserFailed) -> Words:
    return "parser", f"error {step.error}: parsing ends here", (), "bad"


def _skipped(step: steps.StatesSkipped) -> Words:
    takes, is_not = ("takes", "is") if step.count == 1 else ("take", "are")
    return (
        "parser",
        f"{format_count(step.count, 'more state', ',')} {takes} nothing of the packet and "
        f"{is_not} not shown; a parser's loop ends after "
        f"{format_count(step.most, 'round', ',')}, where BMv2's would not",
        (),
        "bad",
    )


def _turned(step: steps.TurnsSkipped) -> Words:
    is_not = "is" if step.count == 1 else "are"
    end = (
        ""
        if step.ended
        else f"; a packet is dropped after {format_count(step.most, 'turn', ',')} of a loop, which "
        "BMv2 would never leave"
    )
    turns = format_count(step.count, "more turn", ",")
    return "loop", f"{turns} {is_not} not shown{end}", (), "" if step.ended else "bad"


def _verified(step: steps.ChecksumVerified) -> Words:
    skipped = "not checked: its header is not there, or its condition is false"
    outcome = skipped if step.outcome == "skipped" else step.outcome
    tone = {"right": "good", "wrong": "bad"}.get(step.outcome, "")
    return "verify", f"{step.target}: {outcome}", (), tone


def _updated(step: steps.ChecksumUpdated) -> Words:
    done = "computed anew" if step.outcome == "updated" else "left alone: its condition is false"
    return "update", f"{step.target}: {done}"


def _tested(step: steps.Tested) -> Words:
    answer, tone = ("true", "good") if step.outcome else ("false", "")
    return "if", f"{step.condition}: {answer}", _values(step.operands), tone


def _executed(step: steps.Executed) -> Words:
    return "do", step.statement


def _looped(step: steps.Looped) -> Words:
    return "lanes", f"for {format_count(step.count, 'lane')}: {'; '.join(step.statements)}"


def _logged(step: steps.Logged) -> Words:
    return "log", step.message


def _managed(step: steps.Managed) -> Words:
    rows = [ShownField("", "", _copy(copy), False) for copy in step.copies]
    title = f"{format_count(len(rows), 'packet')} to egress" if rows else "dropped"
    return "manager", f"{step.reason}: {title}", rows, "" if rows else "bad"


def _started(step: steps.EgressStarted) -> Words:
    return "egress", _copy(step.copy)


def _dropped(step: steps.EgressDropped) -> Words:
    return "drop", f"not sent to port {step.port}: egress dropped it", (), "bad"


def _deparsed(step: steps.Deparsed) -> Words:
    names = ", ".join(f"{name} ({size})" for name, size in step.headers)
    return "emit", f"{names or 'no header'}, then the rest of the packet"


def _truncated(step: steps.Truncated) -> Words:
    return "cut", f"truncated: {format_count(step.size_bytes, 'byte')} of headers are left"


def _sent(step: steps.PacketLeaves) -> Words:
    changed = format_count(len(step.changed), "byte")
    title = f"{format_count(len(step.data), 'byte')} out on port {step.port}, {changed} changed"
    return "packet", title, (), "good"


def _looked_up(step: steps.LookedUp) -> Words:
    arguments = ", ".join(f"{v.name} = {_shown(v)}" for v in step.arguments)
    action = f"{step.action.rsplit('.', 1)[-1]}({arguments})"
    if step.hit:
        outcome = "hit"
        if step.entry is not None:
            priority = "" if step.entry.priority is None else f", priority {step.entry.priority}"
            outcome = f"hit: entry {step.entry.index} [{', '.join(step.entry.match)}]{priority}"
    else:
        outcome = "miss, so the default" if step.keys else "no key, so the default"
    rows = (*_values(step.keys), ShownField("", "", f"{outcome} -> {action}", False))
    return "table", step.table, rows, "good" if step.hit else ""


_WORDS: dict[type[Step], Callable[[Any], Words]] = {
    steps.Received: _received,
    steps.StateEntered: _entered,
    steps.Extracted: _extracted,
    steps.StateSelected: _selected,
    steps.ParserFailed: _failed,
    steps.StatesSkipped: _skipped,
    steps.TurnsSkipped: _turned,
    steps.ChecksumVerified: _verified,
    steps.ChecksumUpdated: _updated,
    steps.LookedUp: _looked_up,
    steps.Tested: _tested,
    steps.Executed: _executed,
    steps.Looped: _looped,
    steps.Logged: _logged,
    steps.Managed: _managed,
    steps.EgressStarted: _started,
    steps.EgressDropped: _dropped,
    steps.Deparsed: _deparsed,
    steps.Truncated: _truncated,
    steps.PacketLeaves: _sent,
}


def _copy(copy: Copy) -> str:
    if copy.port == AGAIN_PORT:
        return f"{copy.kind}: to ingress again"
    if copy.port == ROUND_PORT:
        return f"{copy.kind} to the port of recirculation"
    rid = f", rid {copy.rid}" if copy.rid else ""
    return f"{copy.kind} to port {copy.port}{rid}" + ("" if copy.has_port else ": no such port")


def _source(walk: PacketWalk, step: Step) -> str:
    """Return the line of P4, except for steps whose line says no more than their title."""
    if isinstance(step, steps.StateEntered | steps.StateSelected | steps.LookedUp | steps.Deparsed):
        return ""
    if step.place is None or step.place.file not in walk.sources:
        return ""
    lines = walk.sources[step.place.file]
    return lines[step.place.line - 1].strip() if step.place.line <= len(lines) else ""


def _values(values: Sequence[WalkValue], cut: bool = False) -> Iterator[ShownField]:
    """Yield a row per value; where there are many, runs of numbered names share one."""
    for run in _runs(values) if cut and len(values) > LONGEST_LIST else ([v] for v in values):
        if len(run) == 1:
            yield ShownField(run[0].name, "", _shown(run[0]), False)
        else:
            yield ShownField(_range(run), "", _some([value.value for value in run]), False)


def _writes(writes: Sequence[StepWrite]) -> Iterator[ShownField]:
    for run in _runs(writes):
        if len(run) == 1:
            write = run[0]
            old, new = (show(value, write.width, write.name) for value in (write.old, write.new))
            yield ShownField(write.name, old, new, write.old != write.new)
        else:
            old, new = _some([w.old for w in run]), _some([w.new for w in run])
            yield ShownField(_range(run), old, new, True)


def _runs(items: Iterable[T]) -> list[list[T]]:
    """Split items where their names are no longer `x7`, `x8`, ... of one family."""
    runs: list[list[T]] = []
    family = ""
    for item in items:
        parts = _NUMBERED.fullmatch(item.name)
        name = parts[1] + parts[3] if parts else ""
        if parts and name == family:
            runs[-1].append(item)
        else:
            runs.append([item])
        family = name
    return [part for run in runs for part in ([run] if len(run) > FEW else [[i] for i in run])]


def _range(run: Sequence[WalkValue | StepWrite]) -> str:
    first, last = _NUMBERED.fullmatch(run[0].name), _NUMBERED.fullmatch(run[-1].name)
    assert first is not None
    assert last is not None
    family = first[1].rsplit(".", 1)[-1]
    return f"{first[1]}{first[2]}..{family}{last[2]}{first[3]} ({len(run)})"


def _some(values: list[int]) -> str:
    text = ", ".join(str(value) for value in values[:FEW])
    return f"{text}, ..." if len(values) > FEW else text


def _shown(value: WalkValue) -> str:
    return show(value.value, value.width, value.name)
