"""Try a case of trainings that lose hosts: all sums are judged, and every end has a name."""

from __future__ import annotations

from collections.abc import Iterator

from bench.soak.recovery_cases import RecoveryCase
from bench.soak.trial import Finding, may_deadlock
from ringleaf.errors import BackendError, DeadlockError, RingleafError
from ringleaf.experiments.runs.checks import check_fits
from ringleaf.experiments.setup.network import make_graph
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.workloads.recovery.experiment import RecoveryExperiment
from ringleaf.experiments.workloads.recovery.kind import KIND
from ringleaf.hosts.recoveries.common.interface import NoPlanError


def try_recoveries(case: RecoveryCase) -> list[Finding]:
    """Run a case; return how each of its recoveries ended."""
    found: list[Finding] = []
    where = case.given["recovery"]
    try:
        found += _rows(case)
    except NoPlanError as error:
        found.append(Finding("ended", where, str(error)))
    except BackendError as error:
        spec = KIND.resolve(case.given)
        is_deadlock = isinstance(error, DeadlockError) and may_deadlock(spec, make_graph(spec))
        found.append(Finding("ended" if is_deadlock else "stuck", where, str(error)))
    except RingleafError as error:
        found.append(Finding("refused", where, str(error)))
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is what a soak looks for
        found.append(Finding("error", where, f"{type(error).__name__}: {error}"))
    return found


def _rows(case: RecoveryCase) -> Iterator[Finding]:
    spec = KIND.fitted(KIND.resolve(case.given))
    check_fits(KIND, spec, count_nodes(spec))
    experiment = RecoveryExperiment(spec)
    for _ in experiment.compare():
        row = experiment.results.rows[-1]
        if row.wrong:
            yield Finding(
                "wrong", row.recovery, f"{row.wrong} elements: {experiment.results.reason}"
            )
        elif row.iterations < spec.iterations:
            yield Finding("ended", row.recovery, experiment.results.ended[-1])
        else:
            yield Finding("ok", row.recovery)
