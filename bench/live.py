"""`make bench-live`: the fidelity of live networks, and the speed of our switch beside BMv2.

Without options: fidelity on some topologies, then packets per second through one switch.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from bench import fidelity as bench_fidelity
from bench import pps as bench_pps
from ringleaf.errors import RingleafError, choose
from ringleaf.experiments.spec.network import MININET

Emit = Callable[[str], None]

TOPOS = ("fattree", "leafspine")
SCALES = ("1000", "10000")  # live networks' default, and slow enough to leave processors idle
_PASSED_ON = ("algo", "size", "switch", "loss", "hosts", "lanes")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the sections asked for; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        figures = {
            name: SECTIONS[choose("bench-live", "section", name, SECTIONS)](options, say)
            for name in options.only or SECTIONS
        }
    except RingleafError as error:
        sys.stderr.write(f"bench-live: {error}\n")
        return 1
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(figures, indent=2) + "\n")
    say(f"# {options.out}")
    return 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench-live", description=__doc__)
    parser.add_argument("--only", nargs="+", help=f"sections: {', '.join(SECTIONS)}")
    parser.add_argument("--topo", nargs="+", default=list(TOPOS))
    parser.add_argument("--scale", nargs="+", default=list(SCALES))
    for name in _PASSED_ON:
        parser.add_argument(f"--{name}", help=f"{name} as in `make exp`")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/bench-live.json"))
    return parser


def _fidelity(options: argparse.Namespace, emit: Emit) -> dict[str, Any]:
    given = {name: getattr(options, name) for name in _PASSED_ON if getattr(options, name)}
    given = {"algo": "ring,tree,blueconnect,switchml", "size": "1MiB", "net": MININET, **given}
    figures = {}
    for line in bench_fidelity.NOTES:
        emit(line)
    for topo, scale in product(options.topo, options.scale):
        with tempfile.TemporaryDirectory(prefix="ringleaf-") as folder:
            asked = {**given, "topo": topo, "scale": scale, "out": folder}
            rows = bench_fidelity.compare(asked, repeats=options.repeats, emit=emit)
        figures[f"{topo}/{scale}"] = [bench_fidelity.as_plain(row) for row in rows]
    return figures


SECTIONS: dict[str, Callable[[argparse.Namespace, Emit], dict[str, Any]]] = {
    "fidelity": _fidelity,
    "pps": lambda _, emit: bench_pps.run(emit),
}


if __name__ == "__main__":
    raise SystemExit(main())
