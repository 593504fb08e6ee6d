"""A run's header says what hardware does otherwise, as long as no option says the same."""

from __future__ import annotations

import pytest

from ringleaf.experiments.records.conditions import unlike_hardware
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.jobs.kind import resolve_jobs


def lines(**given: str) -> list[str]:
    return list(unlike_hardware(vars(resolve(given | {"out": "runs/none"}))))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "routes dealt (ROUTES), queues of 4 MiB (QUEUE), lockstep"),
        ({"routes": "ecmp"}, "queues of 4 MiB (QUEUE), lockstep"),
        ({"routes": "ksp:4"}, "queues of 4 MiB (QUEUE), lockstep"),
        ({"queue": "256K"}, "routes dealt (ROUTES), lockstep"),
        ({"pfc": "64K:48K"}, "routes dealt (ROUTES), lockstep"),
        ({"routes": "ecmp", "queue": "1MiB"}, "lockstep"),
    ],
)
def test_defaults_that_hardware_seldom_has_are_named(given: dict[str, str], said: str) -> None:
    assert lines(**given) == [f"unlike hardware (docs/limits.md): {said}"]


def test_jobs_with_jitter_are_not_in_lockstep() -> None:
    given = {"jobs": [{"model": "resnet50"}], "jitter": "5%", "routes": "ecmp", "out": "runs/none"}
    said = "unlike hardware (docs/limits.md): queues of 4 MiB (QUEUE)"
    assert list(unlike_hardware(vars(resolve_jobs(given)))) == [said]


def test_live_networks_have_queues_and_times_of_their_own() -> None:
    assert lines(net="mininet") == []
