"""`trace.yaml`: the manifest of a trace, which describes its switch and names its files.

    format: ringleaf-trace
    version: 1
    switch: s0                      # its name
    program: program.json           # BMv2 JSON in the trace's folder, or ringleaf:forward, which
                                    # is what `p4/build/forward.json` is now
    p4info: program.p4info.txtpb    # if it does not lie beside the program
    entries: entries.txtpb          # p4.v1.WriteRequest as text, written before the first packet
    later: [{at: 10us, entries: more.txtpb}]      # written at a time, after all packets before it
    ports: {1: {rate: 100G, queue: 4MiB}}         # or a number of ports, all with that; besides,
                                    # `discipline: wrr` (as DISCIPLINE=), if not strict
    delay: 400ns                    # from a packet's last bit until it is in a queue; else 0
    seed: 1                         # of the program's random numbers
    origin_ns: 0                    # stamp of time 0; else that of the first packet received
    until_ps: 1000                  # stop there; else when nothing is left to happen
    arrivals: arrivals.npy          # exact times and order, see `ringleaf.networks.traces.trace`
    compare: {mask: [IP.ttl], window: 8, ignore_order: false}  # as the options of these names
    unknown: [times of leaving]     # facts that the recorder could not know

All but the first two, `program` and `ports` may be left out. Packets are in `in/port1.pcap` and so
on, those expected in `out/port1.pcap`; a port without a file has none. Files in
pcapng are called `port1.pcapng`.

A trace may come from anywhere, so all its files are in its folder: a path that leaves it, by `..`
or a link, is refused, unless it is one of our own programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ringleaf.core.disciplines import parse_discipline
from ringleaf.core.shipped import P4INFO_SUFFIXES, built_program, built_programs
from ringleaf.core.units import FOREVER_PS, PS_PER_S, parse_rate, parse_size, parse_time
from ringleaf.core.yaml_file import read_yaml
from ringleaf.errors import ConfigError, choose
from ringleaf.networks.traces.find import MANIFEST

FORMAT = "ringleaf-trace"
VERSION = 1
PROGRAM = "program.json"
P4INFO = "program.p4info.txtpb"
ENTRIES = "entries.txtpb"
ARRIVALS = "arrivals.npy"
DEFAULT_RATE = "100G"
DEFAULT_QUEUE = "4MiB"
DEFAULT_DISCIPLINE = "strict"
OLDER = "scheduler"  # the discipline's name in traces that were recorded before 0.2.0
# Ports have 9 bits in v1model, and 511 is the drop port.
MAX_PORTS = 510
MAX_RATE_BPS = 10**15
MAX_QUEUE_BYTES = 1 << 40
MAX_NS = 1 << 62
MAX_DELAY_PS = PS_PER_S

LONGEST_NAME = 200  # letters of a file's
OWN = "ringleaf:"  # a program of ours, in place of a file

_KEYS = (
    *("format", "version", "switch", "program", "p4info", "entries", "later", "ports", "seed"),
    *("origin_ns", "until_ps", "arrivals", "compare", "unknown", "delay"),
)
_COMPARE_KEYS = ("mask", "window", "ignore_order")


@dataclass(frozen=True, slots=True)
class Port:
    """A port of the trace's switch: its line's rate, its queue, and how its classes take turns."""

    rate_bps: int
    queue_bytes: int
    discipline: str = DEFAULT_DISCIPLINE


@dataclass(frozen=True, slots=True)
class TimedEntries:
    """Entries, and the time at which they are written."""

    at_ps: int
    path: Path


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a trace's `trace.yaml`, with the defaults of what it leaves out."""

    folder: Path
    switch: str
    program: Path
    p4info: Path | None
    writes: tuple[TimedEntries, ...]  # in order of their times
    ports: tuple[Port, ...]  # port 1 first
    seed: int = 0
    origin_ns: int | None = None
    until_ps: int = FOREVER_PS
    arrivals: Path | None = None
    mask: tuple[str, ...] = ()
    window: str | None = None
    ignore_order: bool = False
    unknown: tuple[str, ...] = ()
    delay_ps: int = 0  # of each pass through the ingress pipeline

    def input(self, port: int) -> Path:
        """Return the path of the capture with the packets that a port, from 1, receives."""
        return _capture(self.folder / "in", port)

    def expected(self, port: int) -> Path:
        """Return the path of the capture with the packets that a port, from 1, should send."""
        return _capture(self.folder / "out", port)


def _capture(folder: Path, port: int) -> Path:
    """Return a port's capture: pcapng if there is one, else pcap, which need not be there."""
    other = folder / f"port{port}.pcapng"
    return other if other.exists() else other.with_suffix(".pcap")


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a trace.

    Raises:
        ConfigError: If there is none, or it does not have the form above.
    """
    path = folder / MANIFEST
    if not path.is_file() or not is_inside(folder, MANIFEST):
        raise ConfigError(
            f"{path}: can't be read: no such file; a trace is a folder with a {MANIFEST}"
        )
    data = read_yaml(path, "trace")
    return _Reader(path, _mapping(str(path), data)).manifest()


def is_inside(folder: Path, name: str) -> bool:
    """Return whether a file, named relative to a folder, lies in it after following links."""
    path = Path(name)
    if len(name) > LONGEST_NAME:
        return False
    if path.is_absolute() or ".." in path.parts:
        return False
    try:
        return (folder / path).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # links that go round; no name of a file
        return False


def _port_as_plain(port: Port) -> dict[str, Any]:
    row: dict[str, Any] = {"rate": port.rate_bps, "queue": port.queue_bytes}
    return row if port.discipline == DEFAULT_DISCIPLINE else {**row, "discipline": port.discipline}


def write_manifest(manifest: Manifest) -> None:
    """Write a manifest for `read_manifest`; its paths are relative to the trace's folder."""
    first, later = _split_writes(manifest)
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "switch": manifest.switch,
        "program": str(manifest.program),
        **({"p4info": str(manifest.p4info)} if manifest.p4info else {}),
        **({"entries": str(first)} if first else {}),
        **({"later": later} if later else {}),
        **({"delay": f"{manifest.delay_ps}ps"} if manifest.delay_ps else {}),
        "seed": manifest.seed,
        "ports": {
            number: _port_as_plain(port) for number, port in enumerate(manifest.ports, start=1)
        },
        **({"origin_ns": manifest.origin_ns} if manifest.origin_ns is not None else {}),
        "until_ps": manifest.until_ps,
        **({"arrivals": str(manifest.arrivals)} if manifest.arrivals else {}),
        **({"compare": _compare(manifest)} if _compare(manifest) else {}),
        **({"unknown": list(manifest.unknown)} if manifest.unknown else {}),
    }
    (manifest.folder / MANIFEST).write_text(yaml.safe_dump(data, sort_keys=False))


def _split_writes(manifest: Manifest) -> tuple[Path | None, list[dict[str, str]]]:
    """Return the entries written before the first packet, and those written later."""
    first = [write.path for write in manifest.writes if write.at_ps == 0]
    later = [
        {"at": f"{write.at_ps}ps", "entries": str(write.path)}
        for write in manifest.writes
        if write.at_ps > 0
    ]
    return first[0] if first else None, later


def _compare(manifest: Manifest) -> dict[str, Any]:
    """Return the settings of `compare` that differ from their defaults."""
    known: dict[str, Any] = {}
    if manifest.mask:
        known["mask"] = list(manifest.mask)
    if manifest.window is not None:
        known["window"] = manifest.window
    if manifest.ignore_order:
        known["ignore_order"] = True
    return known


def _mapping(where: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: must be a mapping, got {value!r:.60}")
    return {str(key): item for key, item in value.items()}


class _Reader:
    """A parser of manifests, which refuses unknown keys."""

    def __init__(self, path: Path, data: Mapping[str, Any]) -> None:
        self._path = path
        self._data = data

    def manifest(self) -> Manifest:
        """Return the manifest, with the defaults of all that it leaves out.

        Raises:
            ConfigError: If a key is unknown, or a value is wrong.
        """
        self._check_format()
        compare = _mapping(f"{self._path}: compare", self._data.get("compare", {}))
        for key in compare:
            choose(f"{self._path}: compare", "key", key, _COMPARE_KEYS)
        window = compare.get("window")
        return Manifest(
            folder=self._path.parent,
            switch=str(self._data.get("switch", self._path.parent.name)),
            program=self._file("program"),
            p4info=self._file("p4info") if "p4info" in self._data else None,
            writes=self._writes(),
            ports=self._ports(),
            seed=self._number("seed", 0, 0, (1 << 64) - 1) or 0,
            origin_ns=self._number("origin_ns", None, 0, MAX_NS),
            until_ps=self._number("until_ps", FOREVER_PS, 0, FOREVER_PS) or 0,
            arrivals=self._file("arrivals") if "arrivals" in self._data else None,
            mask=tuple(str(field) for field in self._list("compare: mask", compare.get("mask"))),
            window=None if window is None else str(window),
            ignore_order=self._bool("compare: ignore_order", compare.get("ignore_order", False)),
            unknown=tuple(str(each) for each in self._list("unknown", self._data.get("unknown"))),
            delay_ps=self._parse(parse_time, self._data.get("delay", "0"), "delay", MAX_DELAY_PS),
        )

    def _check_format(self) -> None:
        if self._data.get("format") != FORMAT:
            raise ConfigError(
                f"{self._path}: format must be {FORMAT!r}, got {self._data.get('format')!r}"
            )
        if self._data.get("version") != VERSION:
            raise ConfigError(
                f"{self._path}: version must be {VERSION}, got {self._data.get('version')!r}; "
                "record it anew, or replay it with the Ringleaf that wrote it"
            )
        for key in self._data:
            choose(str(self._path), "key", key, _KEYS)

    def _file(self, key: str, where: str = "", value: object = None) -> Path:
        name = self._data.get(key) if value is None else value
        if not isinstance(name, str) or not name or "\0" in name:
            raise ConfigError(f"{self._path}: {where or key} must be a file's name, got {name!r}")
        own = name.removeprefix(OWN) if key == "program" else name
        if own != name:
            return self._own_program(own)
        path = self._path.parent / name
        folder = self._path.parent
        beside = [f"{name.removesuffix('.json')}{each}" for each in P4INFO_SUFFIXES]
        read = [name, *(beside if key == "program" else ())]
        if not all(is_inside(folder, each) for each in read):
            raise ConfigError(
                f"{self._path}: {where or key} must be in the trace's folder, got {name!r}"
            )
        if len(name) > LONGEST_NAME or not path.is_file():
            raise ConfigError(f"{self._path}: {where or key}: no such file, got {name!r:.80}")
        return path

    def _own_program(self, name: str) -> Path:
        return built_program(choose(f"{self._path}: program", "program", name, built_programs()))

    def _number(self, key: str, default: int | None, least: int, most: int) -> int | None:
        value = self._data.get(key, default)
        if value is default:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ConfigError(
                f"{self._path}: {key} must be a whole number, {least} to {most}, got {value!r}"
            )
        return value

    def _list(self, where: str, value: object) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, list):
            raise ConfigError(f"{self._path}: {where} must be a list, got {value!r}")
        return value

    def _bool(self, where: str, value: object) -> bool:
        if not isinstance(value, bool):
            raise ConfigError(f"{self._path}: {where} must be true or false, got {value!r}")
        return value

    def _writes(self) -> tuple[TimedEntries, ...]:
        writes = [TimedEntries(0, self._file("entries"))] if "entries" in self._data else []
        for number, item in enumerate(self._list("later", self._data.get("later"))):
            where = f"later[{number}]"
            row = _mapping(f"{self._path}: {where}", item)
            for key in row:
                choose(f"{self._path}: {where}", "key", key, ("at", "entries"))
            at_ps = self._parse(parse_time, row.get("at"), f"{where}: at", FOREVER_PS)
            path = self._file("entries", f"{where}: entries", row.get("entries", ""))
            writes.append(TimedEntries(at_ps, path))
        return tuple(sorted(writes, key=lambda write: write.at_ps))

    def _ports(self) -> tuple[Port, ...]:
        value = self._data.get("ports")
        if isinstance(value, int) and not isinstance(value, bool):
            value = {} if not 1 <= value <= MAX_PORTS else {i + 1: {} for i in range(value)}
        rows = value if isinstance(value, dict) else {}
        if not rows or sorted(map(str, rows)) != sorted(str(i + 1) for i in range(len(rows))):
            raise ConfigError(
                f"{self._path}: ports must be numbered from 1, or their number (at most "
                f"{MAX_PORTS}), got {self._data.get('ports')!r:.60}"
            )
        by_number = {str(number): row for number, row in rows.items()}
        return tuple(self._port(str(i + 1), by_number[str(i + 1)]) for i in range(len(rows)))

    def _port(self, number: str, value: object) -> Port:
        where = f"ports: {number}"
        row = _mapping(f"{self._path}: {where}", value)
        for key in row:
            choose(f"{self._path}: {where}", "key", key, ("rate", "queue", "discipline", OLDER))
        rate = row.get("rate", DEFAULT_RATE)
        queue = row.get("queue", DEFAULT_QUEUE)
        discipline = str(row.get("discipline", row.get(OLDER, DEFAULT_DISCIPLINE)))
        parse_discipline(discipline, f"{self._path}: {where}: discipline")
        return Port(
            self._parse(parse_rate, rate, f"{where}: rate", MAX_RATE_BPS),
            self._parse(parse_size, queue, f"{where}: queue", MAX_QUEUE_BYTES),
            discipline,
        )

    def _parse(self, parse: Callable[[str, str], int], value: object, where: str, most: int) -> int:
        number = parse(str(value), f"{self._path}: {where}")
        if number > most:
            raise ConfigError(f"{self._path}: {where} must be at most {most}, got {value!r}")
        return number
