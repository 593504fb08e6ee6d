"""Files with the entries of switches' tables, in the forms in which people have them.

| file | form |
|---|---|
| `NAME.py` | Python: a function `entities(graph, switch)`, which returns finsy's entities |
| `NAME.txtpb` | P4Runtime (v1): a `WriteRequest` in protobuf's text format |
| `NAME.json` | the P4 tutorials' `sX-runtime.json` |
| `NAME.txt` | commands of BMv2's `simple_switch_CLI` |
| a folder | files of these forms, for switches by name: `s0.txt`, `s1-runtime.json` |
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import networkx as nx
from finsy import P4Schema
from finsy.p4entity import decode_entity
from finsy.proto import p4r
from google.protobuf import text_format  # type: ignore[import-untyped]

from ringleaf.core.inputs import read_input
from ringleaf.errors import ConfigError, RingleafError
from ringleaf.experiments.programs import commands, runtime_json
from ringleaf.experiments.programs.folder import files_of_switches
from ringleaf.experiments.programs.replicas import PortedEntities, check_ports, on_ports
from ringleaf.networks.traces.entries import load_schema
from ringleaf.switches.p4runtime.finsy_entities import UNREADABLE
from ringleaf.topologies.graph import neighbors

_PYTHON = ".py"

MOST_BYTES = 64 << 20
"""The longest file."""

Entities = Sequence[Any]


class Control(Protocol):
    """The entries of a program's tables."""

    def entities(self, graph: nx.Graph[str], switch: str) -> Entities:
        """Return the P4Runtime entities to write to a switch, as finsy's objects."""


class _Same:
    """The same entities for all switches."""

    def __init__(self, entities: Entities) -> None:
        self._entities = entities

    def entities(self, graph: nx.Graph[str], switch: str) -> Entities:
        """Return the entities, whatever the switch."""
        return self._entities


class _Ported:
    """The entities of a file, for switches that have the ports that it names."""

    def __init__(self, ported: PortedEntities) -> None:
        self._ported = ported

    def entities(self, graph: nx.Graph[str], switch: str) -> Entities:
        """Return the entities, without clones for ports that the switch has not.

        Raises:
            ConfigError: If groups of the file have a port that the switch has not.
        """
        count = len(neighbors(graph, switch))
        check_ports(self._ported.ports, switch, count)
        return on_ports(self._ported, count)


class _Python:
    """A user's function of topology and switch."""

    def __init__(self, path: Path) -> None:
        spec = importlib.util.spec_from_file_location("ringleaf_control", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
            self._function: Callable[..., Any] = module.entities
        except RingleafError:
            raise
        except Exception as exc:  # the user's own code
            raise ConfigError(
                f"{path}: must define entities(graph, switch), got {type(exc).__name__}: {exc}"
            ) from exc
        self._path = path

    def entities(self, graph: nx.Graph[str], switch: str) -> Entities:
        """Return what the user's function returns for a switch.

        Raises:
            ConfigError: If the function fails.
        """
        try:
            return list(self._function(graph, switch))
        except RingleafError:
            raise
        except Exception as exc:  # the user's own code
            raise ConfigError(
                f"{self._path}: entities(graph, {switch!r}) failed, got {type(exc).__name__}: {exc}"
            ) from exc


class _Folder:
    """A folder with a file for each switch; switches without one get no entries."""

    def __init__(self, folder: Path, program: Path) -> None:
        self._folder, self._program = folder, program

    def entities(self, graph: nx.Graph[str], switch: str) -> Entities:
        """Return the entities of the file whose name begins with the switch's.

        Raises:
            ConfigError: If there are several such files, or one is for no switch.
        """
        file = files_of_switches(graph, self._folder, (_PYTHON, *READERS)).get(switch)
        return () if file is None else open_control(file, self._program).entities(graph, switch)


def open_control(path: Path, program: Path) -> Control:
    """Return the entries of a file, or of a folder's files, for a program (BMv2 JSON).

    Raises:
        ConfigError: If a file is of another form, or does not fit the program.
    """
    if path.is_dir():
        return _Folder(path, program)
    if path.suffix == _PYTHON:
        return _Python(path)
    if path.suffix not in READERS:
        raise ConfigError(
            f"control: must be a folder or end with .py, {', '.join(READERS)}, got {str(path)!r}"
        )
    try:
        text = read_input(path, MOST_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path}: can't be read, got {exc}") from exc
    entities = READERS[path.suffix](text, str(path), load_schema(program, None))
    return _Ported(entities) if isinstance(entities, PortedEntities) else _Same(entities)


def read_write_request(text: str, where: str, schema: P4Schema) -> Entities:
    """Return the entities of a P4Runtime `WriteRequest` as text (P4Runtime 1.4, section 11).

    Raises:
        ConfigError: If it is no such text, deletes something, or does not fit the program.
    """
    try:
        request = text_format.Parse(text, p4r.WriteRequest())
    except UNREADABLE as exc:
        raise ConfigError(f"{where}: not a WriteRequest of P4Runtime as text, got {exc}") from exc
    entities = []
    for number, update in enumerate(request.updates):
        if update.type not in (p4r.Update.INSERT, p4r.Update.MODIFY):
            kind = p4r.Update.Type.Name(update.type)
            raise ConfigError(f"{where}: update {number}: must be INSERT or MODIFY, got {kind!r}")
        try:
            entity = decode_entity(update.entity, schema)
        except (ValueError, KeyError, TypeError) as exc:
            raise ConfigError(f"{where}: update {number}: {exc}, got {update.entity}") from exc
        entities.append(entity)
    return entities


READERS: Mapping[str, Callable[[str, str, P4Schema], Entities]] = {
    ".txtpb": read_write_request,
    ".json": runtime_json.read,
    ".txt": commands.read,
}
"""Readers of text, by the ending of the file's name: of text, its place and the P4Info."""
