"""Loading of compiled code, or compiling it first, which takes a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ringleaf.shipped import built_program

if TYPE_CHECKING:
    from ringleaf.experiments.spec.collective import Spec

LOADING = "loading compiled code"
COMPILING = "compiling the per-packet code (once; takes about a minute)"


def stage() -> str:
    """Return the stage before the first measurement: loading compiled code, or compiling it."""
    import numba

    import ringleaf.compiled  # noqa: F401  # says where compiled code is kept

    folder = Path(numba.config.CACHE_DIR)
    return LOADING if folder.is_dir() and any(folder.iterdir()) else COMPILING


def load(spec: Spec) -> None:
    """Load or compile all code that a virtual run needs, so that no measurement waits for it."""
    from ringleaf.collectives.registry import ALGORITHMS
    from ringleaf.ina.registry import find_system, program_of
    from ringleaf.networks.virtual.network import load_program

    for name in spec.algos:
        systems = [find_system(name)] if ALGORITHMS[name].in_network else []
        for system in systems:
            system.prepare()
        load_program(built_program(program_of(systems, spec.lanes, spec.program)))
