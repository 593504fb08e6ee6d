"""Options of experiments, as texts."""

from __future__ import annotations

import json
import random
from pathlib import Path

from bench.soak.inputs.kind import InputKind
from bench.soak.inputs.mutators import mutate_json
from bench.soak.inputs.run_names import check_name


def _draw_options(rng: random.Random) -> bytes:
    from ringleaf.experiments.workloads.collective.kind import OPTIONS

    given = {name: option.default for name, option in OPTIONS.items() if rng.random() < 0.4}
    return mutate_json(rng, json.dumps(given | {"topo": "fattree,k=4"}).encode())


def _feed_options(data: bytes, folder: Path) -> None:
    from ringleaf.experiments.workloads.collective.kind import make_command, resolve, run_name
    from ringleaf.topologies.registry import parse

    try:
        given = json.loads(data)
    except (ValueError, RecursionError):
        return  # options come as texts
    if not isinstance(given, dict):
        return
    typed = {str(key): value for key, value in given.items() if isinstance(value, str)}
    spec = resolve(typed)
    make_command(typed)
    check_name(run_name(typed))
    parse(spec.topo)


KIND = InputKind(10, _draw_options, _feed_options)
