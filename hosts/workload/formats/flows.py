"""Flows from files: our CSV files, and text files of other simulators (`flow_text`).

    source,target,size,start
    0,1,64KiB,0
    2,1,1MiB,10us

Ranks are counted from 0, or hosts are named as in the topology's file. Sizes and times have units,
as options have them, or their columns' names have one: `size_bytes`, `start_us`, `Start (us)`. The
columns may be in any order, and be separated by semicolons or tabs, as spreadsheets write tables.
Lines that begin with `#` are comments.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path

from ringleaf.core.files import HTSIM, NS3_FLOWS, kind_of, separator
from ringleaf.core.units import format_count, parse_size, parse_time
from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.flows import FlowFile, TimedFlow
from ringleaf.hosts.workload.formats.flow_text import read_htsim_flows, read_ns3_flows
from ringleaf.hosts.workload.formats.framing import read_text
from ringleaf.hosts.workload.graph import check_ranks

COLUMNS = ("source", "target", "size", "start")
_ALIASES = {"src": "source", "dst": "target", "destination": "target", "bytes": "size"}
"""Other names of columns, such as those of tables of schedules."""
_WITH_UNIT = re.compile(r"(size|start)[_ ]\(?(bytes|ps|ns|us|ms|s)\)?")
_UNITS = {"size": ("bytes",), "start": ("ps", "ns", "us", "ms", "s")}


def read_flows(path: Path, ranks: Mapping[str, int] | None = None) -> FlowFile:
    """Return the flows of a file.

    Args:
        path: The file.
        ranks: Ranks of hosts by their names in the topology's file, if it is one.

    Raises:
        ConfigError: If it can't be read or a line is wrong; the message names the line.
    """
    kind = kind_of(path)
    if kind == NS3_FLOWS:
        return read_ns3_flows(path, ranks)
    if kind == HTSIM:
        return read_htsim_flows(path)
    if kind:
        raise ConfigError(f"{path}: must be flows, got {kind}")
    return FlowFile(_read_csv(path, ranks or {}))


def _read_csv(path: Path, ranks: Mapping[str, int]) -> list[TimedFlow]:
    """Return the flows of a CSV file with a header and the columns `COLUMNS`, in any order."""
    lines = [
        "" if line.lstrip('"').startswith("#") else line for line in read_text(path).splitlines()
    ]
    between = separator(next((line for line in lines if line), ""))
    reader = csv.reader(lines, strict=True, skipinitialspace=True, delimiter=between)
    names: list[str] = []
    units: dict[str, str] = {}
    flows = []
    try:
        for cells in reader:
            where = f"{path}: line {reader.line_num}"
            texts = _without_end([each.strip() for each in cells])
            if texts and names:
                flows.append(_read_row(where, names, units, texts, ranks))
            elif texts:
                names, units = _read_header(where, texts)
    except csv.Error as error:
        raise ConfigError(f"{path}: line {reader.line_num}: {error}") from error
    if not names:
        _read_header(f"{path}: line 1", [])
    if not flows:
        raise ConfigError(f"{path}: must have a flow at least, got none")
    return flows


def _without_end(cells: list[str]) -> list[str]:
    """Return the cells of a line without the empty ones after them, as spreadsheets write."""
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _read_header(where: str, cells: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the columns, and the units that their names have."""
    names: list[str] = []
    units: dict[str, str] = {}
    for each in cells:
        name = each.lower()
        match = _WITH_UNIT.fullmatch(name)
        if match and match[2] in _UNITS[match[1]]:
            name = match[1]
            units[name] = match[2].replace("bytes", "B")
        names.append(_ALIASES.get(name, name))
    if sorted(names) != sorted(COLUMNS):
        raise ConfigError(f"{where}: must be {','.join(COLUMNS)}, got {','.join(cells)!r:.80}")
    return names, units


def _read_row(
    where: str,
    names: list[str],
    units: dict[str, str],
    cells: list[str],
    ranks: Mapping[str, int],
) -> TimedFlow:
    if len(cells) != len(COLUMNS):
        raise ConfigError(
            f"{where}: must have {format_count(len(COLUMNS), 'cell')}, got {cells!r:.80}"
        )
    texts = dict(zip(names, cells, strict=True))
    for name, unit in units.items():
        if texts[name][-1:].isdigit():  # others have a unit of their own
            texts[name] += unit
    source, target = (_read_rank(f"{where}: {name}", texts[name], ranks) for name in COLUMNS[:2])
    if source == target:
        raise ConfigError(f"{where}: target must be another rank than source, got {target}")
    size = parse_size(texts["size"], f"{where}: size")
    if size < 1:
        raise ConfigError(f"{where}: size must be 1 B or more, got {texts['size']!r}")
    return TimedFlow(source, target, size, parse_time(texts["start"], f"{where}: start"))


def _read_rank(where: str, text: str, ranks: Mapping[str, int]) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        if text in ranks:
            return ranks[text]
        named = ", or a host of the topology's file" if ranks else ""
        raise ConfigError(
            f"{where}: must be a rank, a whole number from 0 on{named}, got {text!r:.40}"
        )
    return check_ranks(where, int(text) + 1) - 1
