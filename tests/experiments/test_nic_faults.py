"""`ringleaf nic` with faults, and with options that it passes over: the run says what they did."""

from __future__ import annotations

from pathlib import Path

from typed import typed

from ringleaf.experiments.records.config import read_json
from ringleaf.experiments.records.folder import SUMMARY
from ringleaf.experiments.runs.drawing import read_results

PAIR = ("--topo", "leafspine,leaves=1,spines=0,hosts=2", "--figures", "no")
GUO_WORDS = ("--rows", "64", "--dim", "4", "--bags", "3", "--per-bag", "4", "--cache", "0")
FCSN_WORDS = ("--widths", "8,8,8", "--samples", "2", "--tile", "1,2", "--host-latency", "100us")


def below(out: Path, *words: str) -> list[str]:
    """Return the lines below the table of a run that ends well, read from its folder."""
    done = typed("nic", *words, *PAIR, "--out", out)
    assert done.returncode == 0, done.stderr
    return list(read_results(out).foot())[1:-1]  # without those on wrong values and speed


def test_an_exchange_says_which_faults_came_too_late(tmp_path: Path) -> None:
    """Hosts take more than their 50 us for a pass; NICs some 5 us, over two links of 1 us."""
    faults = "h0-s0 rate 50G at 30us, s0 down at 1s"
    words = ("guo", *GUO_WORDS, "--policy", "lru", "--pool", "no", "--host-latency", "50us")
    nic = "nic lru pool=no cache=0"
    assert below(tmp_path, *words, "--faults", faults) == [
        f"h0-s0 rate 50G at 30us: too late for {nic}",
        f"s0 down at 1s: too late for host, {nic}",
    ]


def test_a_pipeline_says_which_faults_came_too_late(tmp_path: Path) -> None:
    """Two layers are on two hosts: one message's way is 2 us, and 100 us for hosts."""
    nics = [f"nic products=4e+12 latency=0ps tile={tile}" for tile in (1, 2)]
    words = ("fcsn", *FCSN_WORDS, "--faults", "h0-s0 rate 50G at 50us")
    late = f"h0-s0 rate 50G at 50us: too late for {', '.join(nics)}"
    assert below(tmp_path, *words) == [late]


def test_rows_count_what_links_lost_and_damaged(tmp_path: Path) -> None:
    """Whatever goes over the link in the first 3 us has a wrong bit, or is lost."""
    words = ("fcsn", *FCSN_WORDS, "--faults", "h0-s0 {} 100% at 0 for 3us")
    for kind, other in (("corrupt", "lost"), ("loss", "corrupted")):
        lines = below(tmp_path, *(word.format(kind) for word in words))
        rows = read_json(tmp_path / SUMMARY)["rows"]
        counts = [row["lost" if kind == "loss" else "corrupted"] for row in rows]
        assert min(counts) >= 1
        assert not any(row[other] for row in rows)
        assert len([line for line in lines if "discarded by receivers" in line]) == (
            len(rows) if kind == "corrupt" else 0
        )


def test_a_pass_that_ends_nowhere_waits_for_nics_and_not_for_switches(tmp_path: Path) -> None:
    words = ("fcsn", *FCSN_WORDS, *PAIR, "--faults", "h1 down at 0")
    done = typed("nic", *words, "--out", tmp_path)
    assert done.returncode != 0
    assert "h1 waits for its NIC to do its task" in done.stderr
    assert "aggregate" not in done.stderr
