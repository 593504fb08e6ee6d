"""Kinds of values that options take: texts with units, as people write them, and their numbers.

A kind is an annotated type: the number or name that a spec holds, a parser of texts, and a JSON
Schema by which editors check it. Pydantic calls the parser, which refuses a text by a
`ConfigError`; Pydantic passes that on as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, core_schema

from ringleaf.core.disciplines import parse_discipline
from ringleaf.core.faults import SLOW, NetworkFault, parse_faults
from ringleaf.core.file_names import in_home
from ringleaf.core.marking import Marking, parse_marking
from ringleaf.core.pausing import Pausing, parse_pausing
from ringleaf.core.plausible import link_delay, link_rate, parse_column, room
from ringleaf.core.units import parse_fraction, parse_size, parse_time
from ringleaf.errors import ConfigError, choose
from ringleaf.topologies.files.node_names import NodeNames
from ringleaf.topologies.registry import names_of
from ringleaf.topologies.registry import parse as parse_topology
from ringleaf.topologies.switching.settings import CircuitSettings, parse_circuits

SCALAR = ("string", "number", "boolean")
"""The JSON types that YAML may give to a text: `100G`, `100`, `yes`."""

LARGEST_FACTOR = 1e6
"""The largest weight, and factor of sizes and compute times, so that products don't overflow."""

DTYPES = {"float32": 4, "int32": 4}
"""Element types and their bytes."""

RANDOM, NONE = DATA = ("random", "none")
"""What tensors hold; none: they have sizes only."""

GIVEN, TOPOLOGY, SHUFFLED = RANK_ORDERS = ("given", "topology", "random")
"""The orders in which ranks take the parts of a schedule."""

_YES = ("yes", "true", "1", "on", "y")
_NO = ("no", "false", "0", "off", "n")


@dataclass(frozen=True, slots=True)
class ValueReader:
    """The reader of a kind of value, as typed or from a file.

    Args:
        parse: Function of the text and its place, for messages, that returns the value.
        shape: JSON Schema of the value.
        listed: Whether a file may have a list, which is read as if typed with commas.
        empty: Whether the value may be missing, which is None.
        renamed: Function of the text, the names in the topology's file, and the place, that returns
            the text with Ringleaf's names of nodes; None: it names no nodes.
    """

    parse: Callable[[str, str], Any]
    shape: Mapping[str, Any] = field(default_factory=lambda: {"type": list(SCALAR)})
    listed: bool = False
    empty: bool = False
    renamed: Callable[[str, NodeNames, str], str] | None = None

    def read(self, value: Any, where: str, topo: str = "") -> Any:
        """Return the value of a given text, number or list; nodes may be named as in the topology.

        Raises:
            ConfigError: If it is not understood.
        """
        if value is None or value == "":
            if self.empty:
                return None
            value = ""
        text = in_home(",".join(map(str, value)) if isinstance(value, list) else str(value))
        if self.renamed is not None and text and topo:
            text = self.renamed(text, names_of(topo), where)
        try:
            return self.parse(text, where)
        except ConfigError:
            if not self.listed and self._are_several(text, where):
                raise ConfigError(
                    f"{where}: one run has one value, got {text!r}; a spec file with a list "
                    "makes a run of each, and so does ringleaf.sweep in Python"
                ) from None
            raise

    def _are_several(self, text: str, where: str) -> bool:
        """Return whether a text is several values with commas between them."""
        parts = text.split(",")
        try:
            for part in parts:
                self.parse(part.strip(), where)
        except ConfigError:
            return False
        return len(parts) > 1 and "=" not in text  # a list of settings is one value

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        def read(value: Any, info: ValidationInfo) -> Any:
            return self.read(value, label(info), info.data.get("topo", ""))

        return core_schema.with_info_before_validator_function(read, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        shape = dict(self.shape)
        return {"anyOf": [shape, {"type": "array", "items": shape}]} if self.listed else shape


def label(info: ValidationInfo, field: str | None = None) -> str:
    """Return the name of a field in messages; by default, of the field being validated."""
    context: Mapping[str, str] = info.context or {}
    return context.get(field or info.field_name or "", "")


def option(
    default: str, help: str, *, flags: str = "", variable: str = "", name: str | None = None
) -> Any:
    """Return a field of a spec that people meet as an option.

    Args:
        default: The default as typed; "" if it is worked out.
        help: A line that explains the option.
        flags: Its flags on the command line: `--min -b`; "": it is for files only.
        variable: Its variable of make; by default the name in capitals.
        name: Its name in files and in messages; by default the field's.
    """
    extra: Any = {"flags": flags, "variable": variable}
    return Field(
        default, alias=name, description=help, validate_default=True, json_schema_extra=extra
    )


def whole_number(where: str, text: str, least: int, most: int | None = None) -> int:
    """Return the integer of a text.

    Raises:
        ConfigError: If it is no integer, below `least` or above `most`.
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


def whole(least: int, most: int | None = None, *, empty: bool = False) -> ValueReader:
    """Return the reader of a whole number within limits."""
    limits = {"minimum": least} | ({} if most is None else {"maximum": most})
    shape = {"anyOf": [{"type": "integer", **limits}, {"type": "string"}]}
    return ValueReader(
        lambda text, where: whole_number(where, text, least, most), shape, empty=empty
    )


def one_of(
    what: str, names: Collection[str], *, shown: bool = True, empty: bool = False
) -> ValueReader:
    """Return the reader of one of these names; editors complete them if they are `shown`."""
    shape: dict[str, Any] = {"type": "string"}
    if shown:
        shape["enum"] = list(names)
    return ValueReader(lambda text, where: choose(where, what, text, names), shape, empty=empty)


def one_with_number(what: str, names: Collection[str], counted: str, most: int) -> ValueReader:
    """Return the reader of one of these names; `counted` may have a number: `name:4`."""

    def parse(text: str, where: str) -> str:
        name, colon, number = text.partition(":")
        choose(where, what, name if name == counted else text, names)
        if colon:
            whole_number(f"{where}: {counted}", number, 1, most)
        return text

    return ValueReader(parse, {"type": "string", "examples": [*names, f"{counted}:4"]})


def one_number_of(numbers: Collection[int]) -> ValueReader:
    """Return the reader of one of these numbers."""
    texts = [str(number) for number in numbers]
    shape = {"enum": [*numbers, *texts]}
    return ValueReader(lambda text, where: int(choose(where, "value", text, texts)), shape)


def several_of(
    what: str, names: Collection[str], *, shown: bool = True, files: str = ""
) -> ValueReader:
    """Return the reader of names separated by commas: each once, in order.

    Args:
        what: What the names are of, for messages.
        names: The valid ones.
        shown: Whether editors offer them.
        files: The files that may stand for one, for messages.
    """
    shape: dict[str, Any] = {"type": "string"}
    if shown:
        shape["examples"] = list(names)
    return ValueReader(
        lambda text, where: several(where, what, text, names, files), shape, listed=True
    )


def several(
    where: str, what: str, text: str, names: Collection[str], files: str = ""
) -> tuple[str, ...]:
    """Return the names of a text, which are separated by commas: each once, in order.

    Raises:
        ConfigError: If there is none, or one is not among `names`.
    """
    chosen = _names(text)
    if not chosen:
        valid = ", ".join(names)
        raise ConfigError(f"{where}: nothing to run, got {text!r}; valid: {valid}")
    apart = (each for name in chosen for each in _words(name, names))
    return tuple(dict.fromkeys(choose(where, what, name, names, files) for name in apart))


def _words(text: str, names: Collection[str]) -> list[str]:
    """Return the names that have only spaces between them; a file's name may have some, too."""
    words = text.split()
    return words if text not in names and all(word in names for word in words) else [text]


def _names(text: str) -> list[str]:
    """Return the names of a text; `a:1%,b=no,c` has two, as `b=no` is a setting of the first."""
    names: list[str] = []
    for part in (part.strip() for part in text.split(",") if part.strip()):
        if "=" in part and names and ":" in names[-1]:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return names


def _whole_numbers(least: int) -> ValueReader:
    """Return the reader of numbers separated by commas: each once, in order."""

    def parse(text: str, where: str) -> tuple[int, ...]:
        parts = text.split(",") if text else []
        return tuple(dict.fromkeys(whole_number(where, part.strip(), least) for part in parts))

    return ValueReader(parse, listed=True)


def _some_time(text: str, where: str) -> int:
    time_ps = parse_time(text, where)
    if not time_ps:
        raise ConfigError(f"{where}: must be more than 0, got {text!r}")
    return time_ps


def _pausing(text: str, where: str) -> Pausing | None:
    if text.strip().lower() in _NO:  # YAML has False for off
        return None
    pausing = parse_pausing(text, where)
    if pausing is not None and pausing.xoff_bytes > 1:  # 1:1 pauses after each packet
        room(text.split(":")[0], f"{where}: XOFF")
        if pausing.headroom_bytes:
            room(text.split(":")[2], f"{where}: headroom")
    return pausing


def _share(text: str, where: str) -> float:
    return 1.0 if text.strip() in ("100%", "1") else parse_fraction(text, where)


def _factor(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value <= LARGEST_FACTOR:  # NaN is refused, too
        raise ConfigError(f"{where}: must be a number from 0 to {LARGEST_FACTOR:g}, got {text!r}")
    return value


def _faults_here(text: str, names: NodeNames, where: str) -> str:
    """Return faults at the nodes and links that a topology's file calls so; hosts are slow."""
    hosts_alone = names._replace(ends=names.hosts)
    here = []
    for fault in parse_faults(text, where):
        way = (hosts_alone if fault.kind == SLOW else names).way(fault.place)
        if way is None:
            return text
        here.append(str(replace(fault, place="-".join(way))))
    return ",".join(here)


def _ways_here(text: str, names: NodeNames, where: str) -> str:
    """Return ways among the nodes that a topology's file calls so."""
    del where
    ways = [names.way(way.strip()) for way in text.split(",") if way.strip()]
    here = ["-".join(way) for way in ways if way is not None]
    return ",".join(here) if len(here) == len(ways) else text


def files_here(text: str, names: NodeNames, where: str) -> str:
    """Return files of the switches that a topology's file calls so: `s1=my.p4,s2=other.p4`."""
    del where
    here = []
    for name, equals, path in (part.partition("=") for part in text.split(",")):
        way = names.way(name)
        if not equals or way is None:
            return text
        here.append(f"{'-'.join(way)}={path}")
    return ",".join(here)


def _ways(text: str, where: str) -> tuple[tuple[str, ...], ...]:
    ways = [way.strip() for way in text.split(",") if way.strip()]
    for way in ways:
        if not re.fullmatch(r"h\d+(-s\d+)+-h\d+", way):
            raise ConfigError(
                f"{where}: must be a host, switches and a host, got {way!r}; like h3-s1-h8"
            )
    return tuple(tuple(way.split("-")) for way in ways)


def checked(check: Callable[[str, str], object], example: str = "") -> ValueReader:
    """Return the reader of a text that is kept as it is, if it passes a check."""

    def parse(text: str, where: str) -> str:
        check(text, where)
        return text

    return ValueReader(parse, _example(example) if example else {"type": list(SCALAR)})


def _example(text: str) -> dict[str, Any]:
    return {"type": list(SCALAR), "examples": [text]}


Topology = Annotated[str, checked(lambda text, where: parse_topology(text), "fattree,k=8")]
Rate = Annotated[int, ValueReader(link_rate, _example("100G"))]  # bit/s
AnyRate = Annotated[int | None, ValueReader(link_rate, _example("100G"), empty=True)]
Time = Annotated[int, ValueReader(parse_time, _example("500ns"))]  # ps
Delay = Annotated[int, ValueReader(link_delay, _example("500ns"))]  # ps
SomeTime = Annotated[int, ValueReader(_some_time, _example("30s"))]  # ps, above 0
AnyTime = Annotated[int | None, ValueReader(parse_time, _example("100us"), empty=True)]  # ps
AnySize = Annotated[int | None, ValueReader(parse_size, _example("64K"), empty=True)]  # bytes
AnyRoom = Annotated[int | None, ValueReader(room, _example("4MiB"), empty=True)]  # bytes
Probability = Annotated[float, ValueReader(parse_fraction, _example("0.1%"))]  # [0, 1)
Share = Annotated[float, ValueReader(_share, _example("50%"))]  # [0, 1]
AnyShare = Annotated[float | None, ValueReader(_share, _example("0.1%"), empty=True)]
Factor = Annotated[float, ValueReader(_factor, {"type": "number", "minimum": 0, "maximum": 1e6})]
AnyFactor = Annotated[
    float | None, ValueReader(_factor, {"type": "number", "minimum": 0, "maximum": 1e6}, empty=True)
]
Yes = Annotated[bool, ValueReader(lambda text, where: parse_yes(where, text))]
Discipline = Annotated[str, checked(parse_discipline, "drr")]
AnyMarking = Annotated[Marking | None, ValueReader(parse_marking, _example("65"), empty=True)]
Faults = Annotated[
    tuple[NetworkFault, ...],
    ValueReader(parse_faults, _example("s0-s8 down at 50us"), listed=True, renamed=_faults_here),
]
AnyPausing = Annotated[Pausing | None, ValueReader(_pausing, _example("64K:48K"), empty=True)]
AnyCircuits = Annotated[
    CircuitSettings | None,
    ValueReader(parse_circuits, _example("helios,dead=25us"), empty=True),
]
Ways = Annotated[
    tuple[tuple[str, ...], ...],
    ValueReader(_ways, _example("h3-s1-h8"), listed=True, renamed=_ways_here),
]
AnyColumn = Annotated[
    float | None, ValueReader(parse_column, _example("3.3in"), empty=True)
]  # inches
AnyPath = Annotated[Path | None, ValueReader(lambda text, where: Path(text), empty=True)]
AnyCount = Annotated[int | None, whole(1, empty=True)]
Counts = Annotated[tuple[int, ...], _whole_numbers(1)]
