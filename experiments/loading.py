"""Loading of compiled code, or compiling it first, which takes half a minute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ringleaf.experiments.programs.names import is_for_all, is_path
from ringleaf.ina.systems import FORWARD
from ringleaf.shipped import built_program

if TYPE_CHECKING:
    from ringleaf.experiments.spec.collective import CollectiveSpec

LOADING = "loading compiled code"
COMPILING = "compiling the per-packet code (once; takes about half a minute)"


def stage() -> str:
    """Return the stage before the first measurement: loading compiled code, or compiling it."""
    import numba

    import ringleaf.compiled  # noqa: F401  # says where compiled code is kept

    folder = Path(numba.config.CACHE_DIR)
    return LOADING if folder.is_dir() and any(folder.iterdir()) else COMPILING


def load(spec: CollectiveSpec) -> None:
    """Load or compile all code that a virtual run needs, so that no measurement waits for it."""
    from ringleaf.experiments.network import assigned_programs

    arguments = _arguments(spec)
    with _compiling_beside(arguments):
        from ringleaf.networks.virtual.network import load_program
    own = dict.fromkeys(each.program for each in assigned_programs(spec).values())
    for path in (*_programs(*json.loads(arguments)), *own):
        load_program(path).prepare()


def _arguments(spec: CollectiveSpec) -> str:
    """Return the arguments of `_programs` for a spec, as JSON."""
    from ringleaf.collectives.registry import ALGORITHMS

    served: list[list[str]] = [[name] if ALGORITHMS[name].in_network else [] for name in spec.algos]
    if is_path(spec.program):
        return json.dumps([[] if is_for_all(spec.program) else served, spec.lanes, FORWARD])
    return json.dumps([served, spec.lanes, spec.program])


def _programs(served: Sequence[Sequence[str]], lanes: int, plain: str) -> list[Path]:
    """Load or compile the agents of aggregation systems; return their switches' programs.

    Args:
        served: Names of the systems that each program serves together.
        lanes: Values in their packets.
        plain: Name of the program that serves none.
    """
    from ringleaf.ina.registry import find_system, program_of

    systems = [[find_system(name) for name in names] for names in served]
    for system in chain.from_iterable(systems):
        system.prepare()
    names = dict.fromkeys(program_of(each, lanes, plain) for each in systems)
    return [built_program(name) for name in names]


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
    command = [sys.executable, "-P", "-m", "ringleaf.experiments.loading", arguments]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as helper:
        try:
            yield
        except BaseException:
            helper.terminate()
            raise


def compile_programs(arguments: str) -> None:
    """Compile the programs that are told as JSON, and the agents of the systems they serve."""
    from ringleaf.switches.program import Program

    for path in _programs(*json.loads(arguments)):
        Program.load(path).prepare()


if __name__ == "__main__":
    compile_programs(sys.argv[1])
