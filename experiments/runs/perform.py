"""Runs as commands do them: one, or a sweep of several."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from ringleaf.experiments.records.config import ask_git
from ringleaf.experiments.records.folder import check_own
from ringleaf.experiments.runs.checks import check
from ringleaf.experiments.runs.drawer import drawer
from ringleaf.experiments.runs.request import RunRequest, resolve
from ringleaf.experiments.runs.spec_file import Case

if TYPE_CHECKING:
    from ringleaf.experiments.records.results import Results
    from ringleaf.experiments.runs.session import Emit


def requests_of(cases: Sequence[Case], where: str = "") -> list[RunRequest]:
    """Return runs that can be done here, given their options.

    Raises:
        RingleafError: If an option, the topology or this machine does not allow one.
    """
    requests = [resolve(case, where) for case in cases]
    for each in requests:
        check(each)
    if len(requests) == 1:
        check_own(requests[0].spec.out)
    return requests


def perform_one(request: RunRequest, emit: Emit, **own: Any) -> Results:
    """Perform one run, which has been checked; figures are drawn by a process beside it.

    A live run has all cores for itself, and draws when it is done.

    Args:
        request: The run.
        emit: Called with each line of the table.
        own: What only its kind of workload knows.

    Raises:
        RingleafError: If an option, the topology or the network does not allow it.
    """
    ask_git()
    has_drawer = not request.spec.is_live and request.spec.figures
    with (drawer(request.kind.name) if has_drawer else None) or nullcontext() as beside:
        from ringleaf.experiments.runs import session  # imports the networks meanwhile

        return session.run(request, emit=emit, beside=beside, **own)
