"""A run's header says what hardware does otherwise, as long as no option says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleaf.experiments.records.conditions import about_capture, faults_of, unlike_hardware
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.jobs.kind import resolve_jobs
from ringleaf.networks.traces.pcap_write import HEADER, record


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


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("s0-s8 rate 10G at 1us", ["routes stay"]),
        (
            "s0-s8 down at 1us",
            ["new routes 2 us later", "ranks go on without lost hosts 3 us later"],
        ),
    ],
)
def test_routes_and_ranks_change_for_what_goes_down(fault: str, said: list[str]) -> None:
    given = {"faults": fault, "reroute": "2us", "shrink": "3us", "out": "runs/none"}
    assert faults_of(resolve(given)) == [fault, *said]


def test_jobs_with_jitter_are_not_in_lockstep() -> None:
    given = {"jobs": [{"model": "resnet50"}], "jitter": "5%", "routes": "ecmp", "out": "runs/none"}
    said = "unlike hardware (docs/limits.md): queues of 4 MiB (QUEUE)"
    assert list(unlike_hardware(vars(resolve_jobs(given)))) == [said]


def test_live_networks_have_queues_and_times_of_their_own() -> None:
    assert lines(net="mininet") == []


def test_a_capture_that_ends_within_a_packet_is_said(tmp_path: Path) -> None:
    path = tmp_path / "in.pcap"
    path.write_bytes(HEADER + record(1, bytes(60)) + record(2, bytes(60)))
    first = f"hosts also send the packets of {path}: "
    assert [*about_capture(path), *about_capture(None)] == [f"{first}2 packets in 1 ns"]
    path.write_bytes(path.read_bytes()[:-5])
    said = "packet 2 is truncated, got 55 of its 60 bytes; 1 packet sent"
    assert list(about_capture(path)) == [f"{first}1 packet", f"{path}: {said}"]


def test_that_several_interfaces_have_a_packet_is_said(tmp_path: Path) -> None:
    """A capture of all interfaces has a packet as often as it passed one; it is sent so often."""
    path = tmp_path / "in.pcap"
    packets = (record(i, bytes(4) + bytes([0, 0, 0, i]) + bytes(52)) for i in (1, 2))
    path.write_bytes(HEADER[:20] + b"\x14\x01\0\0" + b"".join(packets))
    assert list(about_capture(path))[1:] == [
        f"{path}: packets of 2 interfaces: one that passed several is sent as often; take one "
        "interface, or leave out copies"
    ]
