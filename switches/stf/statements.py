"""An STF file as types; `parser.py` reads them, a testbed carries them out.

Values stay as they are written (`0x0a**`, `0b1*`, `10/8`): their meaning depends on the key's
match kind. `line` is the statement's line in its file.
"""

from __future__ import annotations

from dataclasses import dataclass

Arguments = tuple[tuple[str, str], ...]
"""(parameter, value), as written."""


@dataclass(frozen=True, slots=True)
class AddEntry:
    """`add`: insert an entry; `keys` are pairs of a key's name and its value."""

    line: int
    table: str
    priority: int | None  # the greatest number wins
    keys: tuple[tuple[str, str], ...]
    action: str
    arguments: Arguments
    handle: str = ""  # the entry's name in `check_counter`


@dataclass(frozen=True, slots=True)
class SetDefault:
    """`setdefault`: set a table's default action."""

    line: int
    table: str
    action: str
    arguments: Arguments


@dataclass(frozen=True, slots=True)
class RemoveAll:
    """Remove the entries that the test has added."""

    line: int


@dataclass(frozen=True, slots=True)
class SendPacket:
    """`packet`: send a packet to a port of the switch."""

    line: int
    port: int
    data: bytes


@dataclass(frozen=True, slots=True)
class ExpectPacket:
    """A packet must leave by a port; its bytes may go on beyond the pattern unless `exact`."""

    line: int
    port: int
    pattern: str | None  # upper-case hex digits and `*`; None: any bytes
    exact: bool = False


@dataclass(frozen=True, slots=True)
class ExpectNothing:
    """No packet is expected; has no effect, as an unexpected packet is an error anyway."""

    line: int


@dataclass(frozen=True, slots=True)
class Wait:
    """`wait`: nothing to do, as each packet has left before the next statement."""

    line: int


@dataclass(frozen=True, slots=True)
class CheckCounter:
    """`check_counter`: compare a counter's packets or bytes with a number."""

    line: int
    counter: str
    index: str  # a number, or the handle of an entry that has the direct counter
    unit: str  # packets or bytes
    comparison: str
    value: int


@dataclass(frozen=True, slots=True)
class Command:
    """A command of BMv2's own `simple_switch_CLI`."""

    line: int
    name: str
    arguments: tuple[str, ...]


Statement = (
    AddEntry
    | SetDefault
    | RemoveAll
    | SendPacket
    | ExpectPacket
    | ExpectNothing
    | Wait
    | CheckCounter
    | Command
)
