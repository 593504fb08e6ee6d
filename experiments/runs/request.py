"""Requests: the options of one run, resolved and checked once, and then passed on as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.kind import WorkloadKind
from ringleaf.experiments.runs.registry import WORKLOADS
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.experiments.spec.options import Option, options_of
from ringleaf.experiments.spec.renamed import RENAMED


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run that is asked for.

    Attributes:
        kind: Its kind of workload.
        spec: Its options, every value checked and every default filled in.
        typed: The same as typed, or as a file has them.
    """

    kind: WorkloadKind[Any]
    spec: NetworkSpec
    typed: Mapping[str, Any]


def resolve(options: Mapping[str, Any], where: str = "") -> RunRequest:
    """Check the options of a run of any kind, and fill in the rest.

    Args:
        options: Options as typed, or as YAML has them.
        where: The beginning of messages: `spec jobs.yaml: `.

    Raises:
        ConfigError: If one is wrong; the message names it, its value and the valid ones.
    """
    kind = kind_of(options)
    if kind is usual():
        _refuse_others(options, where)
    return RunRequest(kind, kind.resolve(options, where), options)


def _refuse_others(options: Mapping[str, Any], where: str) -> None:
    """Refuse options that can be typed, but are of another kind than the usual one."""
    own = options_of(usual().spec).keys()
    unknown = options.keys() - own
    for kind in WORKLOADS.values() if unknown else ():
        for name in unknown & options_of(kind.spec).keys() if kind.is_typed else ():
            new = RENAMED.get(name)
            hint = f"; what was {name} before 0.2.0 is {new}" if new in own else ""
            raise ConfigError(
                f"{where}{name}: is an option of {kind.title}, got {options[name]!r}; give a spec "
                f"that has {kind.key}{hint}"
            )


@cache
def usual() -> WorkloadKind[Any]:
    """Return the kind of experiments whose options name none."""
    return next(each for each in WORKLOADS.values() if not each.key)


def kind_of(options: Mapping[str, Any]) -> WorkloadKind[Any]:
    """Return the kind of workload that options are of.

    If they have the keys of several, it is the kind whose options extend those of the others.
    """
    kinds = [each for each in WORKLOADS.values() if each.key and each.key in options]
    return max(kinds, key=lambda each: len(each.spec.__mro__), default=usual())


def kind_named(name: str) -> WorkloadKind[Any]:
    """Return the kind of a run, by its name in `summary.json`.

    Raises:
        ConfigError: If there is none.
    """
    if name in WORKLOADS and WORKLOADS[name].name == name:  # the others need not be imported
        return WORKLOADS[name]
    kind = next((each for each in WORKLOADS.values() if each.name == name), None)
    if kind is None:
        known = ", ".join(each.name for each in WORKLOADS.values())
        raise ConfigError(
            f"run directory: unknown kind of workload, got {name!r}; valid: {known}; install the "
            "package that has it"
        )
    return kind


def kind_of_run(summary: Mapping[str, Any]) -> WorkloadKind[Any]:
    """Return the kind of a run by its summary; those of 0.1.0 name none that is a collective.

    Raises:
        ConfigError: If there is no such kind.
    """
    return kind_named(summary.get("kind", "collective"))


def options_for(options: Mapping[str, Any]) -> dict[str, Option]:
    """Return the options that an experiment of the kind of these may have."""
    return options_of(kind_of(options).spec_for(options))


@cache
def typed() -> dict[str, Option]:
    """Return all options that `ringleaf run` takes: the usual kind's, then what others add."""
    options = options_of(usual().spec)
    for kind in WORKLOADS.values():
        if kind.is_typed:
            added = options_of(kind.spec).items()
            options |= {name: each for name, each in added if each.flags and name not in options}
    return options
