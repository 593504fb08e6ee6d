"""Loading of compiled code, or compiling it first, which takes half a minute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ringleaf.core.shipped import built_program
from ringleaf.experiments.programs.names import is_for_all, is_path
from ringleaf.experiments.spec.network import FLOW
from ringleaf.ina.systems import FORWARD

if TYPE_CHECKING:
    from ringleaf.experiments.spec.network import NetworkSpec
    from ringleaf.experiments.workloads.collective.spec import CollectiveSpec

LOADING = "loading compiled code"
COMPILING = "compiling the per-packet code (once; takes about half a minute)"


def stage() -> str:
    """Return the stage before the first measurement: loading compiled code, or compiling it."""
    import numba

    import ringleaf.core.compiled  # noqa: F401  # says where compiled code is kept

    with suppress(OSError):
        return LOADING if any(Path(numba.config.CACHE_DIR).iterdir()) else COMPILING
    return COMPILING


def load(spec: CollectiveSpec) -> None:
    """Load or compile all code that a simulated run needs, so that no measurement waits for it."""
    if spec.net == FLOW:
        import ringleaf.networks.flow.network  # noqa: F401

        return
    from ringleaf.experiments.setup.network import assigned_programs

    arguments = _arguments(spec, _served(spec.algos))
    with _compiling_beside(arguments):
        from ringleaf.networks.virtual.switch_set import load_program
    served, lanes, plain = json.loads(arguments)
    _prepare_agents(served)
    own = dict.fromkeys(each.program for each in assigned_programs(spec).values())
    for path in (*_programs(served, lanes, plain), *own):
        load_program(path).prepare()


def load_networks(spec: NetworkSpec, algorithms: Sequence[str]) -> None:
    """Load or compile networks for a run whose programs and agents depend on what it meets.

    Another process compiles those for these algorithms meanwhile, together and for none of them.
    """
    together = list(chain.from_iterable(_served(algorithms)))
    with _compiling_beside(_arguments(spec, [[], together])):
        import ringleaf.networks.virtual.network  # noqa: F401


def _served(algorithms: Sequence[str]) -> list[list[str]]:
    """Return the systems that each algorithm needs: itself, or none."""
    from ringleaf.collectives.registry import ALGORITHMS

    return [[name] if ALGORITHMS[name].in_network else [] for name in algorithms]


def _arguments(spec: NetworkSpec, served: Sequence[Sequence[str]]) -> str:
    """Return the arguments of `_programs` for a spec, as JSON."""
    if is_path(spec.program):
        return json.dumps([[] if is_for_all(spec.program) else served, spec.lanes, FORWARD])
    return json.dumps([served, spec.lanes, spec.program])


def _programs(served: Sequence[Sequence[str]], lanes: int, plain: str) -> list[Path]:
    """Return the P4 programs of switches.

    Args:
        served: Names of the systems that each program serves together.
        lanes: Values in their packets.
        plain: Name of the program that serves none.
    """
    from ringleaf.ina.registry import find_system, program_of

    systems = [[find_system(name) for name in names] for names in served]
    names = dict.fromkeys(program_of(each, lanes, plain) for each in systems)
    return [built_program(name) for name in names]


def _prepare_agents(served: Sequence[Sequence[str]]) -> None:
    """Load or compile the agents of systems."""
    from ringleaf.ina.registry import find_system

    for name in dict.fromkeys(chain.from_iterable(served)):
        find_system(name).prepare()


@contextmanager
def _compiling_beside(arguments: str) -> Iterator[None]:
    """Have another process compile programs meanwhile, if that and a second core are needed.

    It leaves machine code in the cache. If it fails, the caller finds none, compiles for itself
    and meets the same error.
    """
    import numba

    if stage() is LOADING or numba.config.DISABLE_JIT or (os.cpu_count() or 1) < 2:
        yield
        return
    command = [sys.executable, "-P", "-m", "ringleaf.experiments.runs.loading", arguments]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as helper:
        try:
            yield
        except BaseException:
            helper.terminate()
            raise


def compile_programs(arguments: str) -> None:
    """Compile the programs that are told as JSON, and the agents of the systems they serve.

    Agents come last: a part of them is the hosts' transport, which the run compiles first.
    """
    from ringleaf.switches.program import Program

    served, lanes, plain = json.loads(arguments)
    for path in _programs(served, lanes, plain):
        Program.load(path).prepare()
    _prepare_agents(served)


if __name__ == "__main__":
    compile_programs(sys.argv[1])
