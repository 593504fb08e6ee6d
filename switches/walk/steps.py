"""The steps that a packet took, in order. Names are as in the P4 source, where that is at hand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of P4 source."""

    file: str
    line: int  # from 1
    column: int = 0
    fragment: str = ""  # the source text there as p4c quotes it, maybe cut short


@dataclass(frozen=True, slots=True)
class WalkValue:
    """A key, operand or argument, with its value."""

    name: str
    value: int
    width: int  # bits


@dataclass(frozen=True, slots=True)
class StepWrite:
    """A field or register cell that a step wrote, maybe with the value that it had."""

    name: str
    old: int
    new: int
    width: int  # bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step: its place in the P4 source, and the writes that it made."""

    place: SourceLine | None = None
    writes: tuple[StepWrite, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Received(Step):
    """Ingress begins: `why` is `arrived`, or the way that brought the packet round again."""

    port: int
    data: bytes
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEntered(Step):
    """The parser entered a state."""

    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted(Step):
    """`fields` are all fields of the header; `writes`, those that the program uses."""

    header: str
    offset_bytes: int
    size_bytes: int
    fields: tuple[WalkValue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSelected(Step):
    """The parser chose its next state; `target` is `accept` where none follows."""

    keys: tuple[WalkValue, ...]
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserFailed(Step):
    """The parser ended with an error, by P4's name of it."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatesSkipped(Step):
    """The parser went on through `count` states without a byte of the packet; none is shown."""

    count: int
    most: int  # rounds of a parser's loop; then it ends


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsSkipped(Step):
    """A loop of the program's own went on for `count` turns that are not shown."""

    count: int
    most: int  # turns of a loop; at one more, its packet is dropped
    ended: bool  # whether the loop came to its end


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksumVerified(Step):
    """A checksum was verified; `target` is the field that has it."""

    target: str
    outcome: str  # right, wrong or skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksumUpdated(Step):
    """A checksum was updated; `target` is the field that has it."""

    target: str
    outcome: str  # updated or skipped


@dataclass(frozen=True, slots=True)
class MatchedEntry:
    """`index` counts a table's entries from 0, in the order in which they were inserted."""

    index: int
    match: tuple[str, ...]  # per key
    priority: int | None  # None where a table has none


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUp(Step):
    """A table was looked up; `entry` is None on a miss, and the action then is the default's."""

    table: str
    keys: tuple[WalkValue, ...]
    hit: bool
    entry: MatchedEntry | None
    action: str
    arguments: tuple[WalkValue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested(Step):
    """A condition, with the operands that it looked at."""

    condition: str
    operands: tuple[WalkValue, ...]
    outcome: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed(Step):
    """One primitive; `statement` is P4."""

    op: str
    statement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Looped(Step):
    """Like primitives for `count` lanes at once; `statements` are the first lane's."""

    count: int
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged(Step):
    """The program logged a message."""

    message: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A packet on its way to egress, of BMv2's kind; lost if the switch has no such port."""

    kind: str
    port: int
    rid: int
    has_port: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Managed(Step):
    """The copies that the traffic manager made of the packet; without any, it was dropped."""

    copies: tuple[Copy, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressStarted(Step):
    """Egress begins for one of the traffic manager's copies."""

    copy: Copy


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressDropped(Step):
    """Egress dropped the packet that was to leave by a port."""

    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deparsed(Step):
    """Headers that were emitted, in order, with their sizes; the rest of the packet follows."""

    headers: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated(Step):
    """The packet was cut to a size as it left."""

    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketLeaves(Step):
    """A packet that leaves; `changed` are offsets of bytes that differ from those that came in.

    Headers are compared with themselves wherever they lay, so that a header that is put in
    front does not mark all that follows.
    """

    port: int
    data: bytes
    changed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PacketWalk:
    """The steps of one packet, and the packets that left, as `Switch.process` returns them."""

    program: str
    steps: tuple[Step, ...]
    out: tuple[tuple[int, bytes], ...]
    sources: dict[str, tuple[str, ...]]  # lines of the P4 files that were found, by file
