"""Options of all kinds of experiment, as people meet them, and their resolution into specs.

The same names serve the command line (`--loss`), make (`LOSS=`) and YAML (`loss:`).
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringleaf.errors import ConfigError
from ringleaf.experiments.spec.collective import CollectiveSpec
from ringleaf.experiments.spec.jobs import JobsSpec
from ringleaf.experiments.spec.named import named
from ringleaf.experiments.spec.network import LOOKS, NetworkSpec
from ringleaf.experiments.spec.workload import WorkloadSpec

JOBS = "jobs"
"""The key that makes an experiment one of jobs."""

WORKLOAD = "workload"
"""The key that makes an experiment one of a graph of work."""

ASIDE = ("record", "out", "threads", *LOOKS)
"""Options that results do not depend on: where they lie, who works on them, and how they look."""

MOST_LETTERS = 120  # of a run directory's name; some file systems end at 255 bytes


@dataclass(frozen=True, slots=True)
class Option:
    """One option as people meet it."""

    flags: str  # on the command line; "": it is for files only
    variable: str  # of make
    default: str  # as typed; "" if the default is worked out
    help: str

    @property
    def is_flag(self) -> bool:
        """Whether it is typed without a value."""
        return self.default == "no"


def options_of(model: type[NetworkSpec]) -> dict[str, Option]:
    """Return a kind of experiment's options by name."""
    found = {}
    for field, name in model.names().items():
        info = model.model_fields[field]
        told: Any = info.json_schema_extra
        default, variable = str(info.default), told["variable"] or name.upper()
        found[name] = Option(told["flags"], variable, default, info.description or "")
    return found


OPTIONS = options_of(CollectiveSpec)
"""The options of experiments with a collective."""

OPTIONS_OF_JOBS = options_of(JobsSpec)

OPTIONS_OF_WORKLOADS = options_of(WorkloadSpec)
"""The options of experiments with a graph of work."""

TYPED = OPTIONS | {
    name: option for name, option in OPTIONS_OF_JOBS.items() if option.flags and name not in OPTIONS
}
"""All options that can be typed: those of collectives, then those that only jobs have."""


def resolve(given: Mapping[str, Any]) -> CollectiveSpec:
    """Check the options of an experiment with a collective, and fill in the rest.

    Raises:
        ConfigError: If one is wrong; the message names it, its value and the valid ones.
    """
    if only := [name for name in given if name in OPTIONS_OF_JOBS and name not in OPTIONS]:
        raise ConfigError(
            f"{only[0]}: is an option of training jobs, got {given[only[0]]!r}; "
            "give a spec that has jobs"
        )
    return CollectiveSpec.read({"out": str(Path("runs") / run_name(given)), **given})


def resolve_jobs(given: Mapping[str, Any], where: str = "") -> JobsSpec:
    """Check the options of an experiment with training jobs, and fill in the rest.

    Args:
        given: Its options, as typed or as YAML has them.
        where: The beginning of messages: `spec jobs.yaml: `.

    Raises:
        ConfigError: If one is wrong; the message names it, its value and the valid ones.
    """
    return JobsSpec.read({"out": "runs/jobs", **given}, where)


def resolve_workload(given: Mapping[str, Any], where: str = "") -> WorkloadSpec:
    """Check the options of an experiment with a graph of work, and fill in the rest.

    Args:
        given: Its options, as typed or as YAML has them.
        where: The beginning of messages: `spec gpt.yaml: `.

    Raises:
        ConfigError: If one is wrong; the message names it, its value and the valid ones.
    """
    name = given.get("preset") or given[WORKLOAD]
    meant = named(str(given[WORKLOAD]), where)
    out = str(Path("runs") / file_name(str(name)))
    return WorkloadSpec.read({"out": out, **given, **meant}, where)


def resolve_any(
    given: Mapping[str, Any], where: str = ""
) -> CollectiveSpec | JobsSpec | WorkloadSpec:
    """Check the options of an experiment of any kind, and fill in the rest."""
    if JOBS in given:
        return resolve_jobs(given, where)
    return resolve_workload(given, where) if WORKLOAD in given else resolve(given)


def options_for(given: Mapping[str, Any]) -> dict[str, Option]:
    """Return the options that an experiment of the kind of these may have."""
    if JOBS in given:
        return OPTIONS_OF_JOBS
    return OPTIONS_OF_WORKLOADS if WORKLOAD in given else OPTIONS


def run_name(given: Mapping[str, str]) -> str:
    """Return a folder name made of the options that are not defaults: `fattree-loss=0.1%-seed=3`.

    The same options give the same name, so that running them again replaces equal files.
    """
    parts = [given.get("topo", OPTIONS["topo"].default)]
    parts += [
        f"{name}={given[name].replace(' ', '')}"
        for name in OPTIONS
        if name not in ("topo", *ASIDE)
        and given.get(name, OPTIONS[name].default) != OPTIONS[name].default
    ]
    return folder_name("-".join(parts))


def folder_name(text: str) -> str:
    """Return a text as the name of a folder; a long one is cut, and stays apart from others."""
    name = file_name(text)
    if len(name) > MOST_LETTERS:
        name = f"{name[:MOST_LETTERS]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return name


def file_name(text: str) -> str:
    """Return a text as the name of a file or folder, which can't be a path elsewhere."""
    name = re.sub(r"[^A-Za-z0-9,=.%+_-]", "_", text)
    return name if name.strip(".") else "run"


def make_command(given: Mapping[str, str]) -> str:
    """Return the command that runs these options again, without the places of results."""
    values = (f"{OPTIONS[k].variable}={shlex.quote(v)}" for k, v in given.items() if k not in ASIDE)
    return " ".join(("make exp", *values))
