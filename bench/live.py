"""`make bench-live`: the fidelity of live networks, and the speed of our switch beside BMv2.

Without options: fidelity on some topologies, then packets per second through one switch.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from bench import fidelity as bench_fidelity
from bench import pps as bench_pps
from bench.options import Topologies, several
from ringleaf.errors import choose
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.experiments.spec.choices import MININET
from ringleaf.experiments.spec.typed import with_options
from ringleaf.experiments.workloads.collective.kind import OPTIONS

TOPOS = ("fattree", "leafspine")
SCALES = ("1000", "10000")  # live networks' default, and slow enough to leave processors idle
SECTIONS = ("fidelity", "pps")
DEFAULTS = {"algo": "ring,tree,blueconnect,switchml", "size": "1MiB"}
PASSED_ON = {
    name: replace(OPTIONS[name], default=DEFAULTS.get(name, OPTIONS[name].default))
    for name in ("algo", "size", "switch", "loss", "hosts", "lanes")
}
"""Options of `ringleaf run` with which live networks are compared."""


def live_command(
    given: Mapping[str, str],
    only: Annotated[list[str] | None, several(", ".join(SECTIONS))] = None,
    topo: Topologies = None,
    scale: Annotated[list[str] | None, several("Slow-down: 1000")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Live runs, of which medians count.")] = 3,
    out: Annotated[Path, typer.Option(help="JSON file for the measurements.")] = Path(
        "runs/bench-live.json"
    ),
    debug: Debug = False,
) -> None:
    """Measure the sections asked for."""
    figures: dict[str, Any] = {}
    for name in [choose("bench-live", "section", each, SECTIONS) for each in only or SECTIONS]:
        if name == "pps":
            figures[name] = bench_pps.run(say)
        else:
            figures[name] = _fidelity(given, topo or TOPOS, scale or SCALES, repeats)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(figures, indent=2) + "\n")
    say(f"# {out}")


def _fidelity(
    given: Mapping[str, str], topos: Sequence[str], scales: Sequence[str], repeats: int
) -> dict[str, Any]:
    figures = {}
    for line in bench_fidelity.NOTES:
        say(line)
    for topo, scale in product(topos, scales):
        with tempfile.TemporaryDirectory(prefix="ringleaf-") as folder:
            of_case = {"net": MININET, "topo": topo, "scale": scale, "out": folder}
            rows = bench_fidelity.compare(
                {**DEFAULTS, **given, **of_case}, repeats=repeats, emit=say
            )
        figures[f"{topo}/{scale}"] = [bench_fidelity.as_plain(row) for row in rows]
    return figures


command: Callable[..., None] = with_options(live_command, PASSED_ON)

if __name__ == "__main__":
    alone("python -m bench.live", command)
