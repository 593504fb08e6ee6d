"""`ringleaf fuzz`, as typed; where BMv2 is, programs of ours through both."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from doubt_programs import ARP, TO_4, T, assign, field, number, op, step, write

from ringleaf.switches.stf.outcome import StfVerdict
from ringleaf.switches.stf.runner import StfTest, run_test

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "switches" / "programs"


def fuzz(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ringleaf.experiments.commands.cli", "fuzz", *map(str, words)],
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "120"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_bmv2_must_be_there() -> None:
    done = fuzz("forward", PATH="/nowhere")
    assert done.returncode == 2
    assert "fuzz: needs simple_switch_grpc and simple_switch_CLI" in done.stderr


def test_amounts_must_be_positive() -> None:
    done = fuzz("forward", "--packets", "0")
    assert done.returncode == 2
    assert "packets and rounds must be at least 1, got 0, 3" in done.stderr


@pytest.mark.bmv2
def test_time_is_named_and_not_compared(tmp_path: Path) -> None:
    """BMv2 marks packets by the time that they wait, which is up to the machine."""
    late = tmp_path / "late.json"
    text = (ROOT / "p4" / "build" / "forward.json").read_text()
    data = json.loads(re.sub(r'("standard_metadata",\s*)"enq_qdepth"', r'\1"deq_timedelta"', text))
    late.write_text(json.dumps(data | {"field_aliases": json.loads(text)["field_aliases"]}))
    done = fuzz(late, "--packets", "60", "--rounds", "1", NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0, done.stdout + done.stderr
    named = "so what depends on it is not compared: standard_metadata.deq_timedelta (p4/include/"
    assert named in done.stdout
    assert "round 1: 60 packets compared" in done.stdout


@pytest.mark.bmv2
def test_stale_fields_are_no_difference(tmp_path: Path) -> None:
    """BMv2's header that is not there holds ARP's type, from an earlier packet."""
    path = write(tmp_path, condition=op("==", T, number(ARP)))
    done = fuzz(path, "--rounds", "2", "--seed", "7", NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search("not compared: [1-9][0-9]*, reads headers that are not there", done.stdout)


@pytest.mark.bmv2
@pytest.mark.parametrize(
    ("name", "packets"),
    [
        *[("router", 150), ("forward", 60), ("externs", 60), ("rounds", 20), ("unions", 60)],
    ],
)
def test_both_do_the_same(name: str, packets: int) -> None:
    """Only the first is compiled, which takes longer than all packets."""
    path = PROGRAMS / f"{name}.json"
    amounts = ("--packets", str(packets), "--rounds", "2", "--seed", "1")
    without = "0" if name == "router" else "1"
    done = fuzz(path if path.exists() else name, *amounts, NUMBA_DISABLE_JIT=without)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = [line.split() for line in done.stdout.splitlines() if line.startswith("round")]
    assert sum(int(words[2]) for words in counts) > packets
    assert sum(int(words[5]) for words in counts) > 0
    [reached] = [line for line in done.stdout.splitlines() if line.startswith("# reached: ")]
    assert re.search(r"([1-9]\d*) of \1 parser states, ", reached), reached


@pytest.mark.bmv2
def test_same_seed_prints_the_same() -> None:
    amounts = ("--packets", "50", "--rounds", "1")
    command = ("router", "--seed", "9", *amounts)
    first, second = (fuzz(*command, NUMBA_DISABLE_JIT="1").stdout for _ in range(2))
    assert first == second
    assert "round 1: 50 packets compared" in first


@pytest.mark.bmv2
def test_difference_is_shown_and_kept(tmp_path: Path) -> None:
    """An engine that spoils the last byte of each packet is found out."""
    kept = tmp_path / "kept.stf"
    done = subprocess.run(
        [sys.executable, "-c", SPOILT, str(PROGRAMS / "padding.json"), str(kept)],
        cwd=ROOT,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "sent, different" in done.stdout
    assert "# its walk: ringleaf trace" in done.stdout
    packet, expect = (line.split() for line in kept.read_text().splitlines()[-2:])
    assert packet[0] == "packet"
    assert expect[0] == "expect"
    assert not expect[2].endswith("21$")


@pytest.mark.bmv2
def test_kept_test_passes_on_bmv2_itself(tmp_path: Path) -> None:
    """Here each switch spoils its third packet, so a difference takes three; all tell the time."""
    add = step("add_header", {"type": "header", "value": "f"})
    clock = field("standard_metadata", "ingress_global_timestamp")
    path = write(tmp_path, before=(add, assign(field("f", "x"), clock), *TO_4), emitted=("e", "f"))
    kept = tmp_path / "kept.stf"
    done = subprocess.run(
        [sys.executable, "-c", SPOILT.replace("True", "counted(side) == 3"), str(path), str(kept)],
        cwd=ROOT,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    words = [line.split()[0] for line in kept.read_text().splitlines()]
    assert words == ["packet", "expect"] * 3
    assert kept.read_text().count("**") >= 3
    outcome = run_test(StfTest(path, kept, "bmv2"))
    assert (outcome.verdict, outcome.detail) == (StfVerdict.PASSED, ()), outcome


SPOILT = """
import sys
from pathlib import Path
from ringleaf.experiments.commands.fuzz import FuzzOptions, run
from ringleaf.switches.fuzz.sides import EngineSide

honest = EngineSide.process

def counted(side):
    side.seen = getattr(side, "seen", 0) + 1
    return side.seen

def process(side, packet):
    out = honest(side, packet)
    return [(port, data[:-1] + b"!") for port, data in out] if True else out

EngineSide.process = process
options = FuzzOptions(sys.argv[1], packets=30, rounds=1, tries=30, keep=Path(sys.argv[2]))
sys.exit(run(options, print))
"""
