"""Compares the packets that came out with those that a test expects, as p4c's testbed does.

Per port, packets must come in the order of their `expect` lines and be as many; the order of
ports does not matter. Only ports that the test names have an interface: a packet that leaves by
another is lost. A pattern may be shorter than the packet, unless it ends with `$`.

Source: p4c `backends/bmv2/bmv2stf.py`, `checkOutputs`; `tools/testutils.py`, `compare_pkt`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ringleaf.core.units import format_count
from ringleaf.switches.stf.statements import ExpectPacket, SendPacket, Statement

ROW = 32  # hex digits on a line of a report


@dataclass(frozen=True, slots=True)
class Output:
    """A packet that has left; `cause` is the line of the sent packet that led to it, if known."""

    port: int
    data: bytes
    cause: int = 0


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A difference from the expectations: the reason in one line, and the lines that show it."""

    reason: str
    detail: tuple[str, ...] = ()


def compare(statements: Sequence[Statement], outputs: Iterable[Output]) -> list[Mismatch]:
    """Return the differences from the expectations, at most one per port."""
    expected: dict[int, list[ExpectPacket]] = {}
    for statement in statements:
        if isinstance(statement, ExpectPacket):
            expected.setdefault(statement.port, []).append(statement)
        elif isinstance(statement, SendPacket):
            expected.setdefault(statement.port, [])
    got: dict[int, list[Output]] = {port: [] for port in expected}
    for output in outputs:
        if output.port in got:
            got[output.port].append(output)
    mismatches = (_compare_port(port, expected[port], got[port]) for port in sorted(expected))
    return [mismatch for mismatch in mismatches if mismatch]


def _compare_port(port: int, expected: list[ExpectPacket], got: list[Output]) -> Mismatch | None:
    for number, (expectation, output) in enumerate(zip(expected, got, strict=False), 1):
        digits = output.data.hex().upper()
        at = first_difference(expectation, digits)
        if at is not None:
            return _difference(port, number, expectation, output, digits, at)
    if len(expected) == len(got):
        return None
    reason = f"port {port}: {_packets(len(expected))} expected, got {len(got)}"
    if len(expected) > len(got):
        missing = expected[len(got)]
        return Mismatch(reason, (f"line {missing.line} expects {missing.pattern or 'any packet'}",))
    extra = got[len(expected)]
    return Mismatch(reason, (f"nobody expects, {_cause(extra)}:", f"  {extra.data.hex()}"))


def first_difference(expectation: ExpectPacket, digits: str) -> int | None:
    """Return the position of the first hex digit that differs, None if none does."""
    pattern = expectation.pattern
    if not pattern and not expectation.exact:
        return None
    assert pattern is not None
    for at, digit in enumerate(pattern):
        if at == len(digits) or digit not in ("*", digits[at]):
            return at
    return len(pattern) if expectation.exact and len(digits) > len(pattern) else None


def _difference(
    port: int, number: int, expectation: ExpectPacket, output: Output, digits: str, at: int
) -> Mismatch:
    pattern = (expectation.pattern or "") + ("$" if expectation.exact else "")
    reason = f"port {port}: packet {number} differs at byte {at // 2}"
    if at == len(digits):
        reason += (
            f": {format_count(len(pattern.rstrip('$')) // 2, 'byte')} expected, got "
            f"{len(digits) // 2}"
        )
    elif at == len(pattern.rstrip("$")):
        reason += f": its end expected, got {format_count(len(digits) // 2, 'byte')}"
    else:
        start = at // 2 * 2
        reason += f": {pattern[start : start + 2]} expected, got {digits[start : start + 2]}"
    lines = [
        f"line {expectation.line} expects, {_cause(output)}:",
        *side_by_side(pattern, digits, at),
    ]
    return Mismatch(reason, tuple(lines))


def _cause(output: Output) -> str:
    return f"line {output.cause} led to" if output.cause else "got"


def _packets(count: int) -> str:
    return "1 packet" if count == 1 else f"{format_count(count, 'packet')}"


def side_by_side(pattern: str, digits: str, at: int) -> list[str]:
    """Return pattern and packet one below the other, 16 bytes a row, with digit `at` marked."""
    lines = []
    for start in range(0, max(len(pattern), len(digits)), ROW):
        lines.append(f"  {start // 2:5d}  expected  {_spaced(pattern[start : start + ROW])}")
        lines.append(f"         got       {_spaced(digits[start : start + ROW])}")
        if start <= at < start + ROW:
            column = len(_spaced("0" * (at - start + 1))) - 1
            lines.append(" " * (19 + column) + "^")
            break
    rest = max(len(pattern), len(digits)) - start - ROW
    return [*lines, f"  ... and {format_count(-(-rest // 2), 'byte')} more"] if rest > 0 else lines


def _spaced(digits: str) -> str:
    return " ".join(digits[at : at + 2] for at in range(0, len(digits), 2))
