"""Whether BMv2 was built with its checks: asked of stand-ins that answer, die, or do neither."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ringleaf.errors import BackendError
from ringleaf.switches.bmv2 import build as bmv2_build
from ringleaf.switches.bmv2.binaries import BINARY
from ringleaf.switches.bmv2.build import beside, build_name, has_checks, kept_away_line

ANSWER = """#!/bin/sh
# like BMv2, but that it sends back any packet as it came
while [ $# -gt 0 ]; do [ "$1" = -i ] && stem="${2#*@}"; shift; done
echo asked >> "$(dirname "$0")/log"
%s
exec sleep 100
"""
ECHO = 'cp "${stem}_in.pcap" "${stem}_out.pcap"'
FIRST_CELL = (
    'case "$(od -An -tx1 -j40 -N4 "${stem}_in.pcap")" in'
    ' " 00 00 00 00") ;; *) kill -SEGV $$;; esac\n'
)
ZEROED = """(head -c 44 "${stem}_in.pcap"; printf '\\0\\0\\0\\0') > "${stem}_out.pcap" """


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where to write what is found as BMv2."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path / BINARY


def write(path: Path, script: str) -> None:
    path.write_text(ANSWER % script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_switch_that_answers_has_its_checks(stand_in: Path) -> None:
    write(stand_in, ECHO)
    assert has_checks()
    assert build_name() == "built with its checks"


def test_a_switch_that_dies_of_the_far_read_only_has_none(stand_in: Path) -> None:
    write(stand_in, FIRST_CELL + ZEROED)
    assert not has_checks()
    assert build_name() == "a Release build, without its checks"


def test_a_switch_that_reads_something_there_has_none(stand_in: Path) -> None:
    write(stand_in, ZEROED)
    assert not has_checks()


def test_a_binary_is_asked_once_until_it_changes(stand_in: Path) -> None:
    write(stand_in, ECHO)
    assert has_checks()
    assert has_checks()
    log = stand_in.with_name("log")
    assert log.read_text() == "asked\n"
    os.utime(stand_in, (1, 1))
    assert has_checks()
    assert log.read_text() == "asked\n" * 2


def test_a_switch_that_dies_of_any_packet_says_nothing(stand_in: Path) -> None:
    write(stand_in, "exit 1")
    with pytest.raises(BackendError, match="must read a register that is there, got no answer"):
        has_checks()


def test_a_switch_that_is_silent_is_not_waited_for(
    stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bmv2_build, "PATIENCE_S", 0.1)
    write(stand_in, "")
    with pytest.raises(BackendError, match=r"must answer or end, got 0\.1 s of silence"):
        has_checks()


def test_no_switch_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BackendError, match=f"{BINARY} must be on the PATH, got none"):
        has_checks()


@pytest.mark.bmv2
def test_the_switch_that_is_here_can_be_asked() -> None:
    assert has_checks() in (True, False)


def test_packets_that_were_kept_away_are_told() -> None:
    line = kept_away_line(7)
    assert "built without its checks (Release): 7 packets" in line
    assert "out of range" in line


def test_tables_of_speeds_name_the_build(stand_in: Path) -> None:
    assert (
        beside(BINARY, is_there=False) == f"{BINARY} is not installed, so there is none beside it"
    )
    write(stand_in, FIRST_CELL + ZEROED)
    line = beside(BINARY, is_there=True)
    assert line == f"BMv2 is {BINARY}, a Release build, without its checks"
