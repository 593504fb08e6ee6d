"""Specs of experiments and models, in YAML."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path

import yaml

from bench.soak.inputs.kind import InputKind
from bench.soak.inputs.mutators import mutate_json, mutate_text
from bench.soak.inputs.run_names import check_name
from ringleaf.core.shipped import SPECS
from ringleaf.hosts.training.model import MODELS

LONGEST_SPEC = 12_000  # bytes, with few exceptions: YAML takes a second for 200,000


@cache
def _specs() -> list[bytes]:
    paths = [*SPECS.glob("*.yaml"), *sorted(MODELS.glob("*.yaml"))[:2]]
    return [path.read_bytes()[:3000].rpartition(b"\n")[0] for path in paths]


def _draw_spec(rng: random.Random) -> bytes:
    changed = _changed_spec(rng)
    return (
        changed if len(changed) <= LONGEST_SPEC or rng.random() < 0.01 else changed[:LONGEST_SPEC]
    )


def _changed_spec(rng: random.Random) -> bytes:
    data = rng.choice(_specs())
    if rng.random() < 0.3:
        document = json.dumps(yaml.safe_load(data)).encode()
        return mutate_json(rng, document)  # JSON is YAML, too
    if rng.random() < 0.05:
        return b"a0: &a0 [x, x]\n" + b"".join(
            b"a%d: &a%d [*a%d, *a%d]\n" % (i, i, i - 1, i - 1) for i in range(1, 40)
        )
    return mutate_text(rng, data)


def _feed_spec(data: bytes, folder: Path) -> None:
    from ringleaf.experiments.runs.spec_file import read_cases
    from ringleaf.experiments.workloads.collective.kind import resolve, run_name
    from ringleaf.experiments.workloads.jobs.kind import JOBS, resolve_jobs
    from ringleaf.hosts.training.model import read_model

    path = folder / "spec.yaml"
    path.write_bytes(data)
    if b"layers:" in data:
        read_model(path)
    else:
        for case in read_cases(path)[:20]:
            if JOBS in case:
                resolve_jobs(case)
            else:
                resolve(case)
                check_name(run_name(case))


KIND = InputKind(12, _draw_spec, _feed_spec)
