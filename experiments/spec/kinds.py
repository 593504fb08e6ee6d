"""Kinds of values that options take: texts with units, as people write them, and their numbers.

A kind is an annotated type: the number or name that a spec holds, a parser of texts, and how an
editor shall check it (JSON Schema). Pydantic calls the parser; what a parser refuses is a
`ConfigError`, which Pydantic passes on as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, core_schema

from ringleaf.disciplines import parse_scheduler
from ringleaf.errors import ConfigError, choose
from ringleaf.marking import Marking, parse_marking
from ringleaf.topologies.registry import parse as parse_topology
from ringleaf.units import parse_fraction, parse_rate, parse_size, parse_time

SCALAR = ("string", "number", "boolean")
"""What YAML may make of a text: `100G`, `100`, `yes`."""

LARGEST_FACTOR = 1e6
"""The largest weight, and factor of sizes and compute times: products don't overflow."""

_YES = ("yes", "true", "1", "on")
_NO = ("no", "false", "0", "off")


@dataclass(frozen=True, slots=True)
class Text:
    """How a value is read from what was typed, or stands in a file.

    Args:
        parse: Takes the text and where it stands, and returns the value.
        shape: Of the value in JSON Schema.
        listed: Whether a file may have a list, which is read as if typed with commas.
        empty: Whether nothing may be given, which is None.
    """

    parse: Callable[[str, str], Any]
    shape: Mapping[str, Any] = field(default_factory=lambda: {"type": list(SCALAR)})
    listed: bool = False
    empty: bool = False

    def read(self, value: Any, where: str) -> Any:
        """Return the value of what was given.

        Raises:
            ConfigError: If it is not understood.
        """
        if value is None or value == "":
            if self.empty:
                return None
            value = ""
        if isinstance(value, list) and self.listed:
            value = ",".join(map(str, value))
        return self.parse(str(value), where)

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        def read(value: Any, info: ValidationInfo) -> Any:
            return self.read(value, label(info))

        return core_schema.with_info_before_validator_function(read, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        shape = dict(self.shape)
        return {"anyOf": [shape, {"type": "array", "items": shape}]} if self.listed else shape


def label(info: ValidationInfo, field: str | None = None) -> str:
    """Return what messages call a field, that which is validated if none is named."""
    context: dict[str | None, str] = info.context or {}
    return context.get(field or info.field_name, "")


def option(
    default: str, help: str, *, flags: str = "", variable: str = "", name: str | None = None
) -> Any:
    """Return a field of a spec that people meet as an option.

    Args:
        default: As one would write it; "" where the default is worked out.
        help: What it is, in a line.
        flags: On the command line: `--min -b`; "": it stands in files only.
        variable: Of make; the name in capitals, if nothing is said.
        name: In files, and between `--` and the value; the field's, if nothing is said.
    """
    told: Any = {"flags": flags, "variable": variable}
    return Field(
        default, alias=name, description=help, validate_default=True, json_schema_extra=told
    )


def whole_number(where: str, text: str, least: int, most: int | None = None) -> int:
    """Return the integer of a text.

    Raises:
        ConfigError: If it is none, below `least` or above `most`.
    """
    try:
        value = int(text)
    except ValueError:
        raise ConfigError(f"{where}: must be a whole number, got {text!r}") from None
    if value < least:
        raise ConfigError(f"{where}: must be at least {least}, got {text!r}")
    if most is not None and value > most:
        raise ConfigError(f"{where}: must be at most {most}, got {text!r}")
    return value


def parse_yes(where: str, text: str) -> bool:
    """Return whether a text says yes: `yes`, `true`, `1`, `on`, in any letters.

    Raises:
        ConfigError: If it says neither yes nor no.
    """
    return choose(where, "answer", text.lower(), (*_YES, *_NO)) in _YES


def whole(least: int, most: int | None = None, *, empty: bool = False) -> Text:
    """Return how a whole number within limits is read."""
    limits = {"minimum": least} | ({} if most is None else {"maximum": most})
    shape = {"anyOf": [{"type": "integer", **limits}, {"type": "string"}]}
    return Text(lambda text, where: whole_number(where, text, least, most), shape, empty=empty)


def one_of(what: str, names: Collection[str], *, shown: bool = True) -> Text:
    """Return how one of these names is read; editors complete them if they are `shown`."""
    shape: dict[str, Any] = {"type": "string"}
    if shown:
        shape["enum"] = list(names)
    return Text(lambda text, where: choose(where, what, text, names), shape)


def one_number_of(numbers: Collection[int]) -> Text:
    """Return how one of these numbers is read."""
    texts = [str(number) for number in numbers]
    shape = {"enum": [*numbers, *texts]}
    return Text(lambda text, where: int(choose(where, "value", text, texts)), shape)


def several_of(what: str, names: Collection[str], *, shown: bool = True) -> Text:
    """Return how names, by comma, are read: each once, in order."""

    def parse(text: str, where: str) -> tuple[str, ...]:
        given = [name.strip() for name in text.split(",") if name.strip()]
        if not given:
            valid = ", ".join(names)
            raise ConfigError(f"{where}: nothing to run, got {text!r}; valid: {valid}")
        return tuple(dict.fromkeys(choose(where, what, name, names) for name in given))

    shape: dict[str, Any] = {"type": "string"}
    if shown:
        shape["examples"] = list(names)
    return Text(parse, shape, listed=True)


def _whole_numbers(least: int) -> Text:
    def parse(text: str, where: str) -> tuple[int, ...]:
        parts = text.split(",") if text else []
        return tuple(whole_number(where, part.strip(), least) for part in parts)

    return Text(parse, listed=True)


def _some_time(text: str, where: str) -> int:
    time_ps = parse_time(text, where)
    if not time_ps:
        raise ConfigError(f"{where}: must be more than 0, got {text!r}")
    return time_ps


def _share(text: str, where: str) -> float:
    return 1.0 if text.strip() in ("100%", "1") else parse_fraction(text, where)


def _factor(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value <= LARGEST_FACTOR:  # nor is it not a number
        raise ConfigError(f"{where}: must be a number from 0 to {LARGEST_FACTOR:g}, got {text!r}")
    return value


def _ways(text: str, where: str) -> tuple[tuple[str, ...], ...]:
    ways = [way.strip() for way in text.split(",") if way.strip()]
    for way in ways:
        if not re.fullmatch(r"h\d+(-s\d+)+-h\d+", way):
            raise ConfigError(
                f"{where}: must be a host, switches and a host, got {way!r}; like h3-s1-h8"
            )
    return tuple(tuple(way.split("-")) for way in ways)


def _checked(check: Callable[[str, str], object]) -> Callable[[str, str], str]:
    """Return a parser that leaves a text as it is, if a check takes it."""

    def parse(text: str, where: str) -> str:
        check(text, where)
        return text

    return parse


def _topology(text: str, where: str) -> str:
    parse_topology(text)
    return text


def _example(text: str) -> dict[str, Any]:
    return {"type": list(SCALAR), "examples": [text]}


Topology = Annotated[str, Text(_topology, _example("fattree,k=8"))]
Rate = Annotated[int, Text(parse_rate, _example("100G"))]  # bit/s
AnyRate = Annotated[int | None, Text(parse_rate, _example("100G"), empty=True)]
Time = Annotated[int, Text(parse_time, _example("500ns"))]  # ps
SomeTime = Annotated[int, Text(_some_time, _example("30s"))]  # ps, above 0
Size = Annotated[int, Text(parse_size, _example("4MiB"))]  # bytes
AnySize = Annotated[int | None, Text(parse_size, _example("4MiB"), empty=True)]
Probability = Annotated[float, Text(parse_fraction, _example("0.1%"))]  # [0, 1)
Share = Annotated[float, Text(_share, _example("50%"))]  # [0, 1]
Factor = Annotated[float, Text(_factor, {"type": "number", "minimum": 0, "maximum": 1e6})]
AnyFactor = Annotated[
    float | None, Text(_factor, {"type": "number", "minimum": 0, "maximum": 1e6}, empty=True)
]
Yes = Annotated[bool, Text(lambda text, where: parse_yes(where, text))]
Scheduler = Annotated[str, Text(_checked(parse_scheduler), _example("drr"))]
AnyMarking = Annotated[Marking | None, Text(parse_marking, _example("65"), empty=True)]
Ways = Annotated[tuple[tuple[str, ...], ...], Text(_ways, _example("h3-s1-h8"), listed=True)]
AnyFolder = Annotated[Path | None, Text(lambda text, where: Path(text), empty=True)]
AnyCount = Annotated[int | None, whole(1, empty=True)]
Counts = Annotated[tuple[int, ...], _whole_numbers(1)]
