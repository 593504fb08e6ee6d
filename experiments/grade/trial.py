"""One case in a process of its own, which ends when its time is over, whatever a program does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import IO, Any

from ringleaf.errors import RingleafError


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What a case has come to.

    Attributes:
        collective: The collective that ran; "": none did.
        wrong: Elements that are wrong.
        time_ps: Virtual time.
        wire_bytes: Bytes that the busiest rank sent.
        problem: Why it did not run; "": it did.
        timed_out: Whether its time was over.
        seconds: By the clock.
    """

    collective: str = ""
    wrong: int = 0
    time_ps: int = 0
    wire_bytes: int = 0
    reason: str = ""  # of a wrong element
    problem: str = ""
    timed_out: bool = False
    seconds: float = 0.0


def attempt(options: Mapping[str, str], seconds: float) -> CaseOutcome:
    """Run a case; it is ended, with all processes that it has started, when its time is over."""
    began = time.monotonic()
    process = subprocess.Popen(
        (sys.executable, "-P", "-m", "ringleaf.experiments.grade.trial"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        answer, _ = process.communicate(json.dumps(dict(options)).encode(), timeout=seconds)
    except subprocess.TimeoutExpired:
        return CaseOutcome(timed_out=True, seconds=time.monotonic() - began)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    took_s = time.monotonic() - began
    try:
        fields: dict[str, Any] = json.loads(answer)
    except ValueError:
        return CaseOutcome(problem=f"ended with code {process.returncode}", seconds=took_s)
    return CaseOutcome(**fields | {"seconds": took_s})


def run(options: Mapping[str, str]) -> CaseOutcome:
    """Run a case in this process."""
    from ringleaf.experiments.runs.checks import check
    from ringleaf.experiments.runs.request import RunRequest
    from ringleaf.experiments.setup.network import connect
    from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
    from ringleaf.experiments.workloads.collective.kind import KIND

    spec = KIND.resolve(options)
    check(RunRequest(KIND, spec, options), live=False)
    experiment = CollectiveExperiment(spec)
    (measured,) = experiment.run(connect)
    row = measured.row
    return CaseOutcome(
        experiment.collective.value, row.wrong or 0, row.time_ps, row.wire_bytes, row.reason
    )


def serve(source: IO[bytes], sink: IO[str]) -> None:
    """Read a case's options, run it, and write its outcome, each as JSON."""
    options = json.loads(source.read())
    try:
        outcome = run(options)
    except RingleafError as error:
        outcome = CaseOutcome(problem=str(error))
    except MemoryError:
        outcome = CaseOutcome(problem="needs more memory than there is")
    json.dump(asdict(outcome), sink)


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout)
