"""Reads STF text.

The grammar is that of p4c's `tools/stf/stf_parser.py` and `backends/bmv2/bmv2stf.py`: a statement
per line, which starts with a keyword. Unlike there, a comment may follow a packet, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from ringleaf.core.inputs import read_input
from ringleaf.errors import ConfigError, choose
from ringleaf.switches.stf.statements import (
    AddEntry,
    Arguments,
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

MOST_BYTES = 16 << 20

COMMANDS = {
    # number of arguments of each; None: one or more
    "mirroring_add": 2,
    "mirroring_add_mc": 2,
    "mirroring_delete": 1,
    "mirroring_get": 1,
    "mc_mgrp_create": 1,
    "mc_node_create": None,
    "mc_node_update": None,
    "mc_node_associate": 2,
    "counter_read": 2,
    "counter_write": 4,
    "register_read": 2,
    "register_write": 3,
    "register_reset": 1,
    "meter_get_rates": 2,
    "meter_set_rates": None,
    "meter_array_set_rates": None,
}

_NAME = r"[A-Za-z_$][\w$]*"
_TOKEN = re.compile(
    rf"""\s*(?:
      (?P<name>"[^"]+"|{_NAME}(?:\[\d+\])?(?:\.{_NAME}(?:\[\d+\])?)*)
    | (?P<number>0[xX][0-9A-Fa-f*]+|0[bB][01*]+|0[oO][0-7*]+|\d+(?:\.\d+)?)
    | (?P<sign>==|!=|<=|>=|[<>=:,/()])
    )""",
    re.VERBOSE,
)


def read_stf(path: Path) -> list[Statement]:
    """Return a file's statements.

    Raises:
        ConfigError: If it can't be read, or a line is not STF.
    """
    try:
        text = read_input(path, MOST_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path}: can't be read: {exc}") from exc
    return parse(text, str(path))


def parse(text: str, where: str = "STF") -> list[Statement]:
    """Return the statements of a text; errors name lines as `where:number`."""
    out = []
    for number, line in enumerate(text.splitlines(), 1):
        code = line.partition("#")[0].strip()
        if code:
            out.append(_Line(f"{where}:{number}", number, code).statement())
    return out


class _Line:
    """One statement's tokens, taken from left to right."""

    def __init__(self, where: str, number: int, code: str) -> None:
        self._where = where
        self._number = number
        self._keyword, _, self._rest = code.partition(" ")
        self._keyword, _, more = self._keyword.partition("\t")
        self._rest = f"{more} {self._rest}".strip()
        self._tokens: list[tuple[str, str]] = []

    def statement(self) -> Statement:
        """Return the line's statement, which must take all of its tokens."""
        keyword = self._keyword.lower()
        readers: dict[str, Callable[[], Statement]] = {
            "add": self._add,
            "setdefault": self._set_default,
            "remove": self._remove,
            "packet": self._packet,
            "expect": self._expect,
            "no_packet": lambda: self._bare(ExpectNothing(self._number)),
            "wait": lambda: self._bare(Wait(self._number)),
            "check_counter": self._check_counter,
        }
        choose(self._where, "STF statement", keyword, [*readers, *COMMANDS])
        if keyword in ("packet", "expect"):
            return readers[keyword]()
        self._tokens = list(self._scan())
        statement = readers[keyword]() if keyword in readers else self._command(keyword)
        if self._tokens:
            raise self._wrong("the end of the line")
        return statement

    def _scan(self) -> Iterator[tuple[str, str]]:
        at = 0
        while at < len(self._rest):
            match = _TOKEN.match(self._rest, at)
            if match is None:
                raise ConfigError(f"{self._where}: not STF, got {self._rest[at:].strip()!r}")
            at = match.end()
            kind = match.lastgroup
            assert kind is not None
            yield kind, match[kind].strip('"')

    # Tokens.

    def _peek(self, ahead: int = 0) -> tuple[str, str]:
        return self._tokens[ahead] if ahead < len(self._tokens) else ("end", "")

    def _take(self, kind: str, what: str, *texts: str) -> str:
        got_kind, text = self._peek()
        if got_kind != kind or (texts and text not in texts):
            raise self._wrong(what)
        del self._tokens[0]
        return text

    def _takes(self, sign: str) -> bool:
        """Take a sign if it comes next; return whether it did."""
        there = self._peek() == ("sign", sign)
        if there:
            del self._tokens[0]
        return there

    def _wrong(self, what: str) -> ConfigError:
        text = self._peek()[1]
        got = repr(text) if text else "the end of the line"
        return ConfigError(f"{self._where}: {self._keyword}: {what} is expected, got {got}")

    # Statements.

    def _bare(self, statement: Statement) -> Statement:
        return statement

    def _add(self) -> Statement:
        table = self._take("name", "a table")
        priority = None
        if self._is_priority():
            priority = self._whole("a priority", self._take("number", "a priority"))
        keys = []
        while self._peek(1) == ("sign", ":"):
            name = self._take("name", "a key")
            self._takes(":")
            value = self._take("number", "a value")
            if self._takes("/"):
                value += "/" + self._take("number", "a prefix length")
            keys.append((name, value))
        action, arguments = self._call()
        handle = self._take("name", "a name for the entry") if self._takes("=") else ""
        return AddEntry(self._number, table, priority, tuple(keys), action, arguments, handle)

    def _is_priority(self) -> bool:
        kind, text = self._peek()
        return kind == "number" and text.isdecimal()

    def _set_default(self) -> Statement:
        table = self._take("name", "a table")
        return SetDefault(self._number, table, *self._call())

    def _call(self) -> tuple[str, Arguments]:
        action = self._take("name", "a key or an action")
        self._take("sign", "'('", "(")
        arguments = []
        while self._peek() != ("sign", ")"):
            name = self._take("name", "a parameter")
            self._take("sign", "':'", ":")
            arguments.append((name, self._take("number", "a value")))
            if not self._takes(","):
                break
        self._take("sign", "')'", ")")
        return action, tuple(arguments)

    def _remove(self) -> Statement:
        if self._peek()[0] == "name":
            self._take("name", "'all'", "all", "ALL")
        return RemoveAll(self._number)

    def _check_counter(self) -> Statement:
        counter = self._take("name", "a counter")
        self._take("sign", "'('", "(")
        kind = "name" if self._peek()[0] == "name" else "number"
        index = self._take(kind, "an index")
        self._take("sign", "')'", ")")
        if not self._tokens:
            return CheckCounter(self._number, counter, index, "packets", "==", 0)
        unit = self._take("name", "'packets' or 'bytes'", "packets", "bytes")
        comparison = self._take("sign", "a comparison", "==", "!=", "<", "<=", ">", ">=")
        value = self._take("number", "a number")
        return CheckCounter(
            self._number, counter, index, unit, comparison, self._whole("a number", value)
        )

    def _command(self, name: str) -> Statement:
        arguments: list[str] = []
        while self._tokens:
            kind, text = self._tokens.pop(0)
            if text == ":" and arguments and self._tokens:  # a meter's RATE:BURST
                arguments[-1] += f":{self._take('number', 'a burst size')}"
            elif kind == "sign":
                raise ConfigError(f"{self._where}: {name}: not an argument, got {text!r}")
            else:
                arguments.append(text)
        arity = COMMANDS[name]
        if len(arguments) != arity if arity is not None else not arguments:
            raise ConfigError(
                f"{self._where}: {name}: takes {arity or 'one or more'} arguments,"
                f" got {len(arguments)}"
            )
        return Command(self._number, name, tuple(arguments))

    # Packets.

    def _packet(self) -> Statement:
        port, digits = self._port_and_data()
        if not re.fullmatch(r"([0-9A-F]{2})+", digits):
            raise ConfigError(f"{self._where}: packet: must be hex, whole bytes, got {digits!r}")
        return SendPacket(self._number, port, bytes.fromhex(digits))

    def _expect(self) -> Statement:
        port, digits = self._port_and_data()
        if not digits:
            return ExpectPacket(self._number, port, None)
        match = re.fullmatch(r"([0-9A-F*]*)(\$?)", digits)
        if match is None:
            raise ConfigError(
                f"{self._where}: expect: must be hex with * for any digit and $ for the end,"
                f" got {digits!r}"
            )
        return ExpectPacket(self._number, port, match[1], match[2] == "$")

    def _port_and_data(self) -> tuple[int, str]:
        port, *data = self._rest.split() or [""]
        return self._whole("a port", port), "".join(data).upper()

    def _whole(self, what: str, text: str) -> int:
        try:
            return int(text, 0) if not text.isdecimal() else int(text)
        except ValueError:
            raise ConfigError(
                f"{self._where}: {self._keyword}: {what} is expected, got {text!r}"
            ) from None
