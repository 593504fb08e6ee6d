"""The one way to use synthesisers: search, prove, keep."""

from __future__ import annotations

from ringleaf.collectives.synthesis import plan_cache
from ringleaf.collectives.synthesis.names import SYNTHESISERS
from ringleaf.collectives.synthesis.problem import Problem, SynthesisPlan
from ringleaf.collectives.verify import verify
from ringleaf.core.extras import require
from ringleaf.errors import ScheduleError


def find_kept(name: str, problem: Problem) -> SynthesisPlan | None:
    """Return the plan that is kept of an earlier search, proved again; None: there is none.

    Raises:
        ConfigError: If there is no such synthesiser.
    """
    return plan_cache.load(SYNTHESISERS.find(name), problem)


def synthesise(name: str, problem: Problem, *, fresh: bool = False) -> SynthesisPlan:
    """Return a synthesiser's plan; one that is kept is not searched for again, unless `fresh`.

    Raises:
        ConfigError: If there is no such synthesiser, or the package that it needs.
        ScheduleError: If it can't solve the problem, or its schedule is wrong.
    """
    synthesiser = SYNTHESISERS.find(name)
    if problem.collective not in synthesiser.collectives:
        known = ", ".join(each.value for each in synthesiser.collectives)
        raise ScheduleError(
            f"{name}: can't synthesise this collective, got {problem.collective.value!r}; "
            f"valid: {known}"
        )
    plan = None if fresh else plan_cache.load(synthesiser, problem)
    if plan is None:
        if synthesiser.package:
            require(synthesiser.package, name)
        plan = synthesiser.solve(problem)
        verify(plan.schedule)
        plan_cache.save(synthesiser, problem, plan)
    return plan
