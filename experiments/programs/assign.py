"""The user's programs for a network's switches, compiled, with the entries of their tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import networkx as nx

from ringleaf.core.shipped import P4
from ringleaf.errors import ConfigError
from ringleaf.experiments.programs.control import Control, open_control
from ringleaf.experiments.programs.names import of_switches, read_paths
from ringleaf.networks.forwarding import FORWARDING_TABLES
from ringleaf.networks.options import Assigned
from ringleaf.networks.traces.entries import load_schema
from ringleaf.switches.stf.compiling import compile_program
from ringleaf.topologies.graph import switches


def assign(
    graph: nx.Graph[str], programs: str, control: str, *, lanes: int
) -> Mapping[str, Assigned]:
    """Return the user's programs and their entries, by switch.

    Args:
        graph: The topology.
        programs: The option `program`, of files.
        control: The option `control`; "": the forwarding entries of Ringleaf's own programs.
        lanes: Values in packets that switches add up, which programs get as `LANES`.

    Raises:
        ConfigError: If a file is not understood, does not fit its program, or is for a switch that
            has no program.
        BackendError: If a P4 program is to be compiled, and there is no compiler.
    """
    names = switches(graph)
    paths = of_switches(read_paths(programs, "program"), names)
    _check_known(paths, names, "program")
    built = {path: built_json(path, lanes) for path in dict.fromkeys(paths.values())}
    if not control:
        for path, json in built.items():
            _check_forwards(path, json)
        return {switch: Assigned(built[path]) for switch, path in paths.items()}
    controls = of_switches(read_paths(control, "control"), list(paths))
    _check_known(controls, names, "control")
    if missing := controls.keys() - paths.keys():
        raise ConfigError(
            f"control: only switches that have a program of yours can have entries, "
            f"got {min(missing)!r}; name its program, too"
        )
    opened: dict[tuple[Path, Path], Control] = {}
    assigned = {}
    for switch, path in paths.items():
        entities = None
        if switch in controls:
            key = controls[switch], built[path]
            if key not in opened:
                opened[key] = open_control(*key)
            entities = opened[key].entities(graph, switch)
        assigned[switch] = Assigned(built[path], entities)
    return assigned


def built_json(path: Path, lanes: int) -> Path:
    """Return a program's BMv2 JSON; P4 is compiled, with Ringleaf's own headers at hand.

    Raises:
        ConfigError: If p4c does not accept it.
        BackendError: If there is no p4c.
    """
    if path.suffix == ".json":
        return path
    return compile_program(path, (f"-DLANES={lanes}", "-I", str(P4)))


def _check_forwards(path: Path, json: Path) -> None:
    """Check that a program has the tables to which Ringleaf writes routes."""
    tables = {table.alias for table in load_schema(json, None).tables}
    if missing := set(FORWARDING_TABLES) - tables:
        raise ConfigError(
            f"program: {path} has no table {min(missing)!r} for routes, as p4/forward.p4 has, "
            f"got {sorted(tables)}; say by CONTROL=FILE what its tables have"
        )


def _check_known(paths: Iterable[str], names: Iterable[str], what: str) -> None:
    if unknown := set(paths) - set(names):
        raise ConfigError(f"{what}: no such switch, got {min(unknown)!r}; see ringleaf topo show")
