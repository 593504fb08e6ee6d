"""The cases of a convergence experiment: a committed file of parts, expanded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.compression.program import (
    Compressed,
    CompressedProgram,
    TwoSided,
    changes_elements_only,
)
from ringleaf.collectives.compression.registry import COMPRESSORS, parse_compressor
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.sparse.registry import SPARSE, Maker, parse_sparse
from ringleaf.core.units import parse_time
from ringleaf.core.yaml_file import read_yaml
from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.workloads.converge.curve import TrainingCase
from ringleaf.experiments.workloads.converge.models import MODELS
from ringleaf.experiments.workloads.converge.scheme import SCHEMES, ByMessages
from ringleaf.ina.registry import SYSTEMS

SPEC = Path(__file__).parent / "convergence.yaml"
"""The plan that comes along."""

NONE, BOTH_WAYS = "none", "2x-"
"""The method that sends gradients as they are, and what stands before a compressor of sums, too."""


_Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Part(BaseModel):
    """A part as the file has it."""

    model_config = ConfigDict(strict=True, extra="forbid")

    name: str
    model: list[str]
    method: list[str]
    algo: list[str]
    workload: list[str]
    steps: Annotated[int, Field(ge=1)]


class _PlanFile(BaseModel):
    """A plan as the file has it; rates and settings go by the names of models and methods."""

    model_config = ConfigDict(strict=True, extra="forbid")

    topo: str
    compute: str
    batch: Annotated[int, Field(ge=1)]
    seed: Annotated[int, Field(ge=0, lt=1 << 63)]
    rate: dict[str, _Rate]
    rates: dict[str, _Rate] = {}
    settings: dict[str, str | int | float] = {}
    parts: list[_Part]


@dataclass(frozen=True, slots=True)
class ConvergencePlan:
    """An experiment: all cases, and what they have in common."""

    topo: str
    compute_ps: int
    batch: int
    seed: int
    cases: tuple[TrainingCase, ...]


def read_plan(path: Path = SPEC) -> ConvergencePlan:
    """Return the plan that a file describes.

    Raises:
        ConfigError: If the file can't be read, lacks a key, has an unknown one or another type of
            value, or a part names something that there is not.
    """
    where = f"convergence {path}"
    plain = read_yaml(path, "convergence")
    try:
        plan = _PlanFile.model_validate(plain)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigError(f"{where}: {at}: {first['msg']}, got {first['input']!r:.80}") from error
    _check_names(plan, where)
    cases = dict.fromkeys(case for part in plan.parts for case in _expand(plan, part, where))
    _check_steps(cases, where)
    compute_ps = parse_time(plan.compute, f"{where}: compute")
    return ConvergencePlan(plan.topo, compute_ps, plan.batch, plan.seed, tuple(cases))


def _check_steps(cases: Iterable[TrainingCase], where: str) -> None:
    """Check that no training of a part is there with two numbers of steps: results have one."""
    steps: dict[tuple[str, str], int] = {}
    for case in cases:
        first = steps.setdefault((case.part, case.name), case.steps)
        if first != case.steps:
            raise ConfigError(
                f"{where}: part {case.part}: {case.name} must have one number of steps, got "
                f"{first} and {case.steps}; call one of the parts otherwise"
            )


def chosen(plan: ConvergencePlan, parts: Sequence[str], steps: int | None) -> ConvergencePlan:
    """Return a plan with some parts only, or other numbers of steps.

    Raises:
        ConfigError: If it has no such part.
    """
    names = list(dict.fromkeys(case.part for case in plan.cases))
    for part in parts:
        choose("convergence", "part", part, names)
    cases = [case for case in plan.cases if not parts or case.part in parts]
    if steps is not None:
        cases = [replace(case, steps=steps) for case in cases]
    return replace(plan, cases=tuple(cases))


def _expand(plan: _PlanFile, part: _Part, where: str) -> Iterator[TrainingCase]:
    methods = [each for name in part.method for each in _methods(name)]
    workloads = [each for name in part.workload for each in _all(name, list(SCHEMES))]
    algos = [each for name in part.algo for each in _all(name, for_any_elements())]
    for model, algo, workload, method in product(part.model, algos, workloads, methods):
        choose(where, "model", model, list(MODELS))
        choose(where, "algorithm", algo, allreduces())
        choose(where, "workload", workload, list(SCHEMES))
        text = _with_setting(method, plan.settings)
        maker_of(text, f"{where}: part {part.name}: method")  # refuses what there is not
        if text != NONE and isinstance(SCHEMES[workload], ByMessages):
            raise ConfigError(
                f"{where}: part {part.name}: ranks of {workload} send messages as they are, got "
                f"method {text!r}; take {NONE}"
            )
        rate = plan.rates.get(_plain_name(method), plan.rate.get(model))
        if rate is None:
            raise ConfigError(f"{where}: rate: must have {model}, got {', '.join(plan.rate)}")
        yield TrainingCase(part.name, model, text, algo, workload, part.steps, rate)


def is_by_messages(case: TrainingCase) -> bool:
    """Return whether a training's ranks send messages as they are."""
    return isinstance(SCHEMES[case.workload], ByMessages)


def has_allreduces(case: TrainingCase) -> bool:
    """Return whether a training's algorithm has a part in it: sums of both ways are scattered."""
    if is_by_messages(case) or case.method.startswith(BOTH_WAYS):
        return False
    name = _plain_name(case.method)
    return name not in SPARSE or SPARSE[name].reduces


def _plain_name(method: str) -> str:
    """Return a method's name without its settings, and without what says that it is used twice."""
    return method.removeprefix(BOTH_WAYS).partition(":")[0]


def _with_setting(method: str, settings: Mapping[str, str | int | float]) -> str:
    """Return a method with the plan's setting of it, if it has none of its own."""
    setting = None if ":" in method else settings.get(_plain_name(method))
    return method if setting is None else f"{method}:{setting}"


def _check_names(plan: _PlanFile, where: str) -> None:
    """Check that rates and settings are of models and methods that there are."""
    methods = [*COMPRESSORS, *SPARSE]
    for what, names, known in (
        ("rate", plan.rate, list(MODELS)),
        ("rates", plan.rates, [NONE, *methods]),
        ("settings", plan.settings, methods),
    ):
        for name in names:
            choose(f"{where}: {what}", "model" if what == "rate" else "method", name, known)


def allreduces() -> list[str]:
    """Return the names of all algorithms of allreduces, systems included."""
    return [name for name in ALGORITHMS if ALGORITHMS[name].collective is Collective.ALLREDUCE]


def for_any_elements() -> list[str]:
    """Return those allreduces that add up any elements: not the systems made for a compressor's."""
    return [name for name in allreduces() if name not in SYSTEMS or not SYSTEMS[name].compress]


def _all(name: str, known: list[str]) -> list[str]:
    return known if name == "all" else [name]


def _methods(name: str) -> list[str]:
    if name == "all-compressors":
        return [*COMPRESSORS.shipped(), *(f"{BOTH_WAYS}{each}" for each in ("onebit", "efsign"))]
    return SPARSE.shipped() if name == "all-sparse" else [name]


def make_program(method: str, rank: int, ranks: int) -> CompressedProgram:
    """Return a rank's side of a method, with a compressor of its own.

    Raises:
        ConfigError: If there is no such method, or it does not work on so many ranks.
    """
    return maker_of(method)(rank, ranks)


def maker_of(method: str, where: str = "method") -> Maker:
    """Return the function that makes a rank's side of a method.

    Raises:
        ConfigError: If there is no such method; `where` begins the message.
    """
    name, _, setting = method.partition(":")
    if name == NONE:
        if setting:
            raise ConfigError(f"{where}: {NONE} has no settings, got {method!r}; take {NONE}")
        return partial(Compressed, None)
    if name in SPARSE:
        return parse_sparse(method, where).make
    if not name.startswith(BOTH_WAYS):
        return partial(Compressed, parse_compressor(method, where))
    compressor = parse_compressor(method.removeprefix(BOTH_WAYS), where)
    if not changes_elements_only(compressor):
        raise ConfigError(f"{where}: {name}: sums can't be compressed by it, got {method!r}")
    return partial(TwoSided, compressor)
