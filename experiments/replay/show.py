"""The first difference for people: two packets, field by field and byte by byte."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from itertools import zip_longest

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ringleaf.core.units import format_count
from ringleaf.experiments.replay.dissect import FieldView, dissect
from ringleaf.networks.replay.compare import ComparedPacket, Deviation, PacketDifference, PortResult

DIFFERS = "bold red"
SAME = "dim"
MARK = "≠"
_ROWS_AROUND = 1  # equal rows of the dump that are shown beside those that differ
_WIDE = 144  # columns that two dumps of 16 bytes a row need


def describe(result: PortResult) -> str:
    """Return one line on a port's first difference, without a packet's bytes."""
    first = result.first
    assert first is not None
    packet = first.expected or first.got
    assert packet is not None
    numbers = f"{result.expected} expected, {result.got} sent"
    where = f"port {result.port}: packet {packet.number + 1} {_kind(first)}{_at(packet)}"
    if first.kind is Deviation.CHANGED and first.expected and first.got:
        names = changed_fields(first.expected, first.got)
        if names:
            where += f": {', '.join(names[:4])}{', ...' if len(names) > 4 else ''}"
    return f"{where} ({numbers})"


def _kind(first: PacketDifference) -> str:
    if first.kind is Deviation.LATE and first.expected and first.got:
        late_ns = (first.got.time_ns or 0) - (first.expected.time_ns or 0)
        return f"is {abs(late_ns)} ns {'late' if late_ns > 0 else 'early'}"
    return first.kind.value


def _at(packet: ComparedPacket) -> str:
    return "" if packet.time_ns is None else f" (at {packet.time_ns} ns)"


def changed_fields(expected: ComparedPacket, got: ComparedPacket) -> list[str]:
    """Return the names of the fields that differ."""
    return [
        name
        for name, left, right in _rows(expected.data, got.data)
        if _value(left) != _value(right)
    ]


def _value(field: FieldView | None) -> str | None:
    return None if field is None else field.value


def _rows(left: bytes, right: bytes) -> Iterator[tuple[str, FieldView | None, FieldView | None]]:
    """Yield both packets' fields by name, side by side, in the order of the first that has them."""
    fields = [{field.full_name: field for field in dissect(data)} for data in (left, right)]
    for name in dict.fromkeys([*fields[0], *fields[1]]):
        yield name, fields[0].get(name), fields[1].get(name)


def render(difference: PacketDifference, *, width: int) -> RenderableType:
    """Return a view of the two packets, or of the one that there is."""
    left, right = difference.expected, difference.got
    if left is None or right is None:
        packet = left or right
        assert packet is not None
        heading = "expected, but missing" if left else "sent, but not expected"
        return Group(
            Text(_title(heading, packet)),
            _one(packet),
            _dump(packet.data, None, "", "", per_row=16),
        )
    per_row = 16 if width >= _WIDE else 8
    titles = _title("expected", left), _title("sent", right)
    return Group(
        _both(left, right, titles), "", _dump(left.data, right.data, *titles, per_row=per_row)
    )


def _title(what: str, packet: ComparedPacket) -> str:
    return f"{what}, {format_count(len(packet.data), 'byte')}"


def _one(packet: ComparedPacket) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("field", style="cyan", no_wrap=True)
    table.add_column("value", overflow="fold")
    for field in dissect(packet.data):
        table.add_row(field.full_name, field.value)
    return table


def _both(left: ComparedPacket, right: ComparedPacket, titles: tuple[str, str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("", width=1)
    table.add_column("field", style="cyan", no_wrap=True)
    for title in titles:
        table.add_column(title, overflow="fold")
    for name, a, b in _rows(left.data, right.data):
        differs = _value(a) != _value(b)
        style = DIFFERS if differs else SAME
        cells = (Text(field.value if field else "-", style) for field in (a, b))
        table.add_row(Text(MARK if differs else "", DIFFERS), name, *cells)
    return table


def _dump(left: bytes, right: bytes | None, *titles: str, per_row: int) -> Table:
    """Return the hexdump's rows that differ, and some around them; one packet is shown whole."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=right is not None)
    table.add_column("byte", style="cyan", justify="right")
    for title in titles if right is not None else ("",):
        table.add_column(title, no_wrap=True)
    chunks = list(
        zip_longest(_chunks(left, per_row), _chunks(right or b"", per_row), fillvalue=b"")
    )
    shown = range(len(chunks)) if right is None else _worth_showing([a != b for a, b in chunks])
    before = -1
    for number in shown:
        if number > before + 1:
            table.add_row("...")
        before = number
        a, b = chunks[number]
        cells = [_hex_row(a, b, per_row), _hex_row(b, a, per_row)]
        if right is None:
            cells = [_hex_row(a, a, per_row)]
        table.add_row(f"{number * per_row:04x}", *cells)
    if right is not None and chunks and before + 1 < len(chunks):
        table.add_row("...")
    return table


def _chunks(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def _worth_showing(differs: list[bool]) -> list[int]:
    around = range(-_ROWS_AROUND, _ROWS_AROUND + 1)
    rows = {i + k for i, is_so in enumerate(differs) if is_so for k in around}
    return sorted(rows & set(range(len(differs))))[:64]


def _hex_row(mine: bytes, other: bytes, per_row: int) -> Text:
    """Return a row: `45 00[03]00  E...`; marks show bytes that differ, also without colours."""
    text, letters = Text(), Text()
    marked = False
    for i in range(per_row):
        differs = mine[i : i + 1] != other[i : i + 1]
        style = DIFFERS if differs else SAME
        text.append(
            "[" if differs and not marked else "]" if marked and not differs else " ", DIFFERS
        )
        text.append(f"{mine[i]:02x}" if i < len(mine) else "  ", style)
        letter = chr(mine[i]) if i < len(mine) and 32 <= mine[i] < 127 else "."
        letters.append(letter if i < len(mine) else " ", style)
        marked = differs
    return text.append("] " if marked else "  ", DIFFERS).append_text(letters)


def as_text(difference: PacketDifference, *, width: int = 140) -> str:
    """Return the view of a difference as text without colours, for JUnit."""
    console = Console(width=width, color_system=None, record=True, file=StringIO())
    console.print(render(difference, width=width))
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())
