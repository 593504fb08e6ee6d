"""Plans that were found before: files in the user's cache, by a digest of the problem."""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from ringleaf.collectives.interchange import from_json, to_json
from ringleaf.collectives.synthesis.problem import Problem, Synthesiser, SynthesisPlan
from ringleaf.collectives.verify import verify
from ringleaf.core.private import cache_folder
from ringleaf.core.sealed import read_sealed, write_sealed
from ringleaf.errors import ScheduleError


def path_of(synthesiser: Synthesiser, problem: Problem) -> Path:
    """Return the file for a plan."""
    parts = (
        synthesiser.name,
        synthesiser.revision,
        problem.wires.digest,
        problem.collective.value,
        problem.size_bytes,
        problem.chunks,
        problem.root,
        problem.limit_s,
        problem.seed,
        *(() if problem.sketch is None else (problem.sketch,)),
    )
    name = blake2b(repr(parts).encode(), digest_size=16).hexdigest()
    return cache_folder() / "synthesis" / f"{synthesiser.name}-{name}.plan"


def load(synthesiser: Synthesiser, problem: Problem) -> SynthesisPlan | None:
    """Return the plan that was kept, proved again; None: there is none, or none that is right."""
    path = path_of(synthesiser, problem)
    text = read_sealed(path, path.name)
    if text is None:
        return None
    try:
        head, rows = text.decode().split("\n", 1)
        facts = json.loads(head)
        notes = tuple((str(name), str(value)) for name, value in facts["notes"])
        plan = SynthesisPlan(
            from_json(rows), int(facts["expected_ps"]), int(facts["bound_ps"]), notes
        )
        verify(plan.schedule)
    except (ScheduleError, ValueError, KeyError, TypeError):
        return None
    schedule = plan.schedule
    fits = schedule.ranks == problem.ranks and schedule.collective is problem.collective
    return plan if fits and schedule.root == problem.root else None


def save(synthesiser: Synthesiser, problem: Problem, plan: SynthesisPlan) -> None:
    """Keep a plan; where that can't be done, it is searched again next time."""
    path = path_of(synthesiser, problem)
    facts = {
        "expected_ps": plan.expected_ps,
        "bound_ps": plan.bound_ps,
        "notes": [list(note) for note in plan.notes],
    }
    text = f"{json.dumps(facts)}\n{to_json(plan.schedule)}"
    with suppress(OSError):
        write_sealed(path, text.encode(), path.name)
