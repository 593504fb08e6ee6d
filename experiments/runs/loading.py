"""Loading of compiled code, or compiling it first, which takes half a minute."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ringleaf.core import compiling
from ringleaf.core.faults import CORRUPT
from ringleaf.core.shipped import built_program
from ringleaf.experiments.programs.names import is_for_all, is_path
from ringleaf.experiments.spec.choices import FLOW

if TYPE_CHECKING:
    from ringleaf.experiments.spec.network import NetworkSpec
    from ringleaf.experiments.workloads.collective.spec import CollectiveSpec

LOADING = "loading compiled code"
COMPILING = compiling.NOTICE


def stage() -> str:
    """Return the stage before the first measurement: loading compiled code, or compiling it."""
    from ringleaf.core.machine_code import is_empty

    return COMPILING if is_empty() else LOADING


def load(spec: CollectiveSpec) -> None:
    """Load or compile all code that a simulated run needs, so that no measurement waits for it."""
    if spec.net == FLOW:
        import ringleaf.networks.flow.network  # noqa: F401
        from ringleaf.core import compiled

        compiled.prepare()
        return
    from ringleaf.experiments.setup.network import assigned_programs

    own = dict.fromkeys(each.program for each in assigned_programs(spec).values())
    _load(_served(spec.algos), spec, *own)


def load_networks(spec: NetworkSpec, algorithms: Sequence[str]) -> None:
    """Load or compile code for a run whose programs and agents depend on what it meets.

    Those are included that serve these algorithms together, and none of them.
    """
    _load([[], list(chain.from_iterable(_served(algorithms)))], spec)


def _load(served: Sequence[Sequence[str]], spec: NetworkSpec, *own: Path) -> None:
    """Load networks, the agents of systems, and programs that serve some of them together each."""
    import ringleaf.networks.virtual.network
    from ringleaf.core import compiled
    from ringleaf.ina.registry import find_system
    from ringleaf.networks.virtual.switch_set import load_program

    if any(each.kind == CORRUPT for each in spec.network_faults):
        import ringleaf.networks.virtual.damage  # noqa: F401
    for path in (*_programs(served, spec), *own):
        load_program(path).declare()
    for name in dict.fromkeys(chain.from_iterable(served)):
        find_system(name).prepare()
    compiled.prepare()


def _served(algorithms: Sequence[str]) -> list[list[str]]:
    """Return the systems that each algorithm needs: itself, or none."""
    from ringleaf.collectives.registry import ALGORITHMS

    return [[name] if ALGORITHMS[name].in_network else [] for name in algorithms]


def _programs(served: Sequence[Sequence[str]], spec: NetworkSpec) -> list[Path]:
    """Return the P4 programs of switches.

    Args:
        served: Names of the systems that each program serves together.
        spec: The run, which may have a program of its own for switches that serve none.
    """
    from ringleaf.ina.registry import find_system, program_of

    if is_path(spec.program):
        served = [[]] if is_for_all(spec.program) else served
    systems = [[find_system(name) for name in names] for names in served]
    names = dict.fromkeys(program_of(each, spec.lanes, spec.plain_program) for each in systems)
    return [built_program(name) for name in names]
