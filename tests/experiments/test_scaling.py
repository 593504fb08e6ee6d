"""The study of growth: small programs stand for `ringleaf run`, so nothing heavy runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.peers.process import Used
from ringleaf.errors import BackendError
from ringleaf.experiments.commands.cli import perform_alone
from studies import scaling
from studies.scaling import ScalingCase, ScalingRow, cases, growth, powers, scaling_command

PNG = b"\x89PNG\r\n\x1a\n"


def main(*words: str) -> int:
    """Run the study of one workload."""
    command = "python -m studies.scaling", scaling_command
    return perform_alone(*command, ["--workload", "ring", *words])


def leaves(summary: object) -> str:
    """A program that writes a summary, as a run does."""
    return (
        "import json, pathlib; out = pathlib.Path('out'); out.mkdir(); "
        f"(out / 'summary.json').write_text(json.dumps({summary!r}))"
    )


def hops(*counts: int) -> str:
    return leaves({"rows": [{"packet_hops": count} for count in counts]})


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if not line.startswith("#")]


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    """Programs by a network's k; small runs before them, which have a size of their own, do."""
    by_k: dict[int, str] = {}

    def command(case: ScalingCase) -> list[str]:
        is_warm_up = case.options["size"] == "64KiB"
        program = hops(1) if is_warm_up else by_k[case.k]
        return [sys.executable, "-I", "-S", "-c", program]

    monkeypatch.setattr(scaling, "command", command)
    return by_k


def test_a_row_per_case_has_what_the_command_took_and_the_sum_of_its_hops(
    programs: dict[int, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    programs |= {4: hops(1000, 200), 6: "x = b'1' * (90 << 20); " + hops(5000)}
    figure = tmp_path / "scaling.png"

    assert main("--k", "6", "--k", "4", "--figure", str(figure)) == 0

    said = capsys.readouterr().out
    small, large = rows(said)
    assert small[:3] == ["ring", "16", "1200"]  # sorted, and of both rows
    assert large[:3] == ["ring", "54", "5000"]
    assert 54 * int(large[-1]) > 90 << 20 > 16 * int(small[-1])
    assert 5000 / float(large[5]) == pytest.approx(float(large[3]), abs=0.051)  # to 0.1 s
    assert "ring, 16 to 54 hosts: as powers of packet-hops, wall clock" in said
    assert figure.read_bytes().startswith(PNG)


def test_a_failing_command_is_named_and_the_others_go_on(
    programs: dict[int, str], capsys: pytest.CaptureFixture[str]
) -> None:
    programs |= {4: hops(7), 6: "import sys; sys.exit('no more memory')", 8: hops(9)}

    assert main("--k", "4", "--k", "6", "--k", "8") == 1

    said = capsys.readouterr().out
    assert [row[2] for row in rows(said)] == ["7", "9"]
    assert (
        "# failed: ring among 54 hosts: must end with exit code 0, got 1: no more memory\n" in said
    )


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("", "ring among 16 hosts: must leave summary.json with rows, got FileNotFoundError"),
        (leaves([]), "must leave summary.json with rows, got TypeError"),
        (leaves({"rows": [{}]}), "must leave summary.json with rows, got KeyError"),
        (leaves({"rows": []}), "ring among 16 hosts: must count packet-hops, got 0"),
    ],
)
def test_a_command_that_leaves_no_count_has_failed(
    program: str, message: str, programs: dict[int, str]
) -> None:
    programs[4] = program
    (case,) = cases(["ring"], [4], None)
    with pytest.raises(BackendError, match=message):
        scaling.measure(case)


def test_ctrl_c_keeps_the_rows_so_far(
    programs: dict[int, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    programs[4] = hops(7)
    measure = scaling.measure

    def interrupted(case: ScalingCase) -> ScalingRow:
        if case.k == 6:
            raise KeyboardInterrupt
        return measure(case)

    monkeypatch.setattr(scaling, "measure", interrupted)
    figure = tmp_path / "scaling.png"

    assert main("--k", "4", "--k", "6", "--k", "8", "--figure", str(figure)) == 130

    said = capsys.readouterr()
    assert [row[:3] for row in rows(said.out)] == [["ring", "16", "7"]]
    assert said.err == "ringleaf: interrupted; the rows so far are kept\n"
    assert figure.read_bytes().startswith(PNG)


def test_a_network_that_there_is_not_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("--k", "5") == 2
    assert "fattree,k=5: k must be even, got 5" in capsys.readouterr().err


def scaled(
    k: int, packet_hops: int, wall_s: float, peak_bytes: int, name: str = "ring"
) -> ScalingRow:
    (case,) = cases([name], [k], None)
    return ScalingRow(case, packet_hops, Used(wall_s, wall_s**1.5, peak_bytes))


def test_powers_are_of_the_two_largest_networks_of_a_workload() -> None:
    found = [
        scaled(4, 1, 1.0, 1),
        scaled(6, 100, 1.0, 1 << 20),
        scaled(4, 50, 1.0, 1, "halvingdoubling"),
        scaled(8, 400, 4.0, 2 << 20),  # four times the packets: four times as long, memory twice
    ]
    assert powers(found[1], found[3]) == pytest.approx((1.0, 1.5, 0.5))
    (line,) = growth(found)
    assert "54 to 128 hosts" in line
    assert "wall clock 1.00, CPU 1.50, memory 0.50" in line


def test_commands_differ_in_the_network_alone() -> None:
    small, large = cases(["ring"], [16, 4], "1")
    assert (small.hosts, large.hosts) == (16, 1024)
    assert small.given == {**large.given, "topo": "fattree,k=4"}
    words = scaling.command(large)
    assert words[words.index("--topo") + 1] == "fattree,k=16"
    assert words[words.index("--data") + 1] == "none"
    assert words[words.index("--threads") + 1] == "1"


def test_a_row_says_hops_per_second_and_bytes_per_host() -> None:
    line = scaled(4, 3_000, 2.0, 16 << 20).line.split()
    assert line == ["ring", "16", "3000", "2.0", "2.8", "1500", "16", "MiB", str(1 << 20)]
