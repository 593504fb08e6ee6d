"""Estimates of memory beside the peaks of processes, as the committed command measures them."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest

from bench.estimates import JOBS, WORKLOADS
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs import checks
from ringleaf.experiments.runs.checks import check
from ringleaf.experiments.runs.request import resolve

DRAWN = Random(1).sample(
    sorted(name for name, each in ALGORITHMS.items() if not each.in_network), 2
)


def test_drawn_runs_take_what_was_foretold_within_a_factor_of_two() -> None:
    """Recursive doubling once took five times as much; a codec's runs have the oracle besides."""
    names = ["recursivedoubling", "ssar-double", "jobs: vgg16", *WORKLOADS, "2 ranks", *DRAWN]
    done = subprocess.run(
        [sys.executable, "-m", "bench.estimates", *names],
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    )
    lines = [line for line in done.stdout.splitlines() if not line.lstrip().startswith("#")]
    rows = [line.rsplit(maxsplit=6) for line in lines]

    assert {"train: 2 ranks", *names} - {"2 ranks"} <= {row[0].strip() for row in rows}
    assert {row[0].strip(): row for row in rows if float(row[3]) > 2} == {}


@pytest.mark.parametrize("name", sorted(JOBS))
def test_jobs_that_cannot_fit_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "free_bytes", lambda: 100 << 20)
    request = resolve({"topo": "fattree", **JOBS[name]})

    with pytest.raises(ConfigError, match=r"fattree: needs [\d.]+ MiB .* 100 MiB are free"):
        check(request, live=False)
