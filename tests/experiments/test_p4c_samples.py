"""p4c's own tests of v1model and PSA, from a checkout that `--p4c-samples` names."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleaf.switches.source import PSA
from ringleaf.switches.stf.compiling import architecture
from ringleaf.switches.stf.outcome import StfVerdict
from ringleaf.switches.stf.parser import read_stf
from ringleaf.switches.stf.suite import compare_compiled, find_jobs, run_jobs, sample

KNOWN = {
    # An extern of its own, that p4c's testbed loads into BMv2 as a C++ module.
    "extern-funcs-bmv2": StfVerdict.FAILED,
}


@pytest.fixture
def samples(request: pytest.FixtureRequest) -> Path:
    folder = request.config.getoption("--p4c-samples")
    if folder is None:
        pytest.skip("needs a checkout of p4c, named by --p4c-samples DIR")
    return Path(folder)


@pytest.mark.p4c
def test_every_line_of_every_test_is_read(samples: Path) -> None:
    files = sorted(samples.rglob("*.stf"))

    read = [read_stf(path) for path in files]
    assert sum(bool(lines) for lines in read) > 200  # a few have none


@pytest.mark.p4c
@pytest.mark.slow
def test_p4cs_own_tests_pass_uncompiled_and_a_sample_of_them_compiled(samples: Path) -> None:
    jobs = find_jobs(samples)
    outcomes = run_jobs(jobs, compiled=False)
    chosen = sample(jobs, outcomes, 3)
    again = dict(zip(chosen, run_jobs(chosen, compiled=True), strict=True))
    outcomes = compare_compiled(jobs, outcomes, again)

    fine = (StfVerdict.PASSED, StfVerdict.SKIPPED)
    wrong = {outcome.name: outcome for outcome in outcomes if outcome.verdict not in fine}
    assert {name: outcome.verdict for name, outcome in wrong.items()} == KNOWN, wrong
    assert sum(outcome.verdict is StfVerdict.PASSED for outcome in outcomes) > 210
    psa = [
        outcome
        for job, outcome in zip(jobs, outcomes, strict=True)
        if architecture(job.program) == PSA.include
    ]
    assert [outcome.verdict for outcome in psa] == [StfVerdict.PASSED] * 26
    assert len(again) == 3
