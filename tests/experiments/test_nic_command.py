"""`ringleaf nic`: tables, files, figures, reports, and refusals."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typed import ROOT, typed

from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.drawing import read_results
from ringleaf.experiments.runs.spec_file import read_cases
from ringleaf.experiments.workloads.nic.kind import KIND
from ringleaf.experiments.workloads.nic.reference import check_exact, zipf
from ringleaf.experiments.workloads.nic.workload import workload_of
from ringleaf.hosts.nic.registry import OFFLOADS

SMALL = ("--topo", "leafspine,leaves=1,spines=1,hosts=3")
GUO_WORDS = ("--rows", "64", "--dim", "4", "--bags", "3", "--per-bag", "4", "--cache", "0,8")
FCSN_WORDS = ("--widths", "24,40,30,8", "--samples", "8", "--tile", "2,8", "--host-latency", "5us")


def test_an_exchange_from_the_command_line(tmp_path: Path) -> None:
    done = typed("nic", "guo", *SMALL, *GUO_WORDS, "--iterations", "2", "--wide", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if not line.startswith("#")]
    assert [row[:4] for row in rows] == [
        ["host", "-", "no", "0"],
        *(["nic", *each] for each in (
            ["lru", "no", "0"], ["lru", "no", "8"], ["lfu", "no", "0"], ["lfu", "no", "8"],
            ["lru", "yes", "0"], ["lru", "yes", "8"], ["lfu", "yes", "0"], ["lfu", "yes", "8"],
        )),
    ]  # fmt: skip
    assert "# wrong values: 0 OK" in done.stdout
    assert rows[0][5:9] == rows[1][5:9]  # without a cache, a NIC sends what a host does
    with (tmp_path / "results.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["cache"] for row in found] == [row[3] for row in rows]
    for name in ("cache.png", "cache.pdf", "time.png"):
        assert (tmp_path / "figures" / name).stat().st_size > 1000
    page = (tmp_path / "report.html").read_text()
    assert "0 wrong" in page
    assert page.count("<tr>") == 1 + len(rows)
    assert typed("plot", tmp_path).returncode == 0
    assert (tmp_path / "report.html").read_text() == page


def test_a_pipeline_from_the_command_line(tmp_path: Path) -> None:
    words = ("--products", "1T,64T", "--json")
    done = typed("nic", "fcsn", *SMALL, *FCSN_WORDS, *words, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["complete"]
    assert [(row["system"], row["tile"], row["products"]) for row in summary["rows"]] == [
        (system, tile, rate) for rate in (1e12, 64e12) for system in ("nic", "host")
        for tile in (2, 8)
    ]  # fmt: skip
    assert read_results(tmp_path).wrong == 0
    names = {path.stem for path in (tmp_path / "figures").iterdir()}
    assert names == {"time", "first", "turn"}


def test_a_wrong_result_ends_with_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "ringleaf.experiments.workloads.nic.pipeline.infer", lambda layers, samples: samples[:, :8]
    )
    done = typed("nic", "fcsn", *SMALL, *FCSN_WORDS, "--figures", "no", "--out", tmp_path)
    assert done.returncode == 1
    assert "FAILED" in done.stdout


@pytest.mark.parametrize("name", ["embedding", "pipeline"])
def test_specs_that_come_along_are_understood(name: str) -> None:
    offload = {"embedding": "guo", "pipeline": "fcsn"}[name]
    path = ROOT / "experiments" / "specs" / "nic" / f"{name}.yaml"
    [case] = read_cases(path, {"offload": offload, "out": "x"})
    workload_of(offload).check(KIND.resolve(case), 8)
    command = path.read_text().splitlines()[0].removeprefix("# ringleaf ").split()
    done = typed(*command, "--dry-run", "--seed", "7")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["seed"] == 7


def test_each_offload_has_a_command_and_a_title() -> None:
    done = typed("nic", "--help")
    for name in OFFLOADS:
        assert name in done.stdout
        assert OFFLOADS[name].title in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["guo", "--policy", "fifo"], "policy: unknown policy, got 'fifo'"),
        (["guo", "--cache", "8,x"], "cache: must be a whole number, got 'x'"),
        (["guo", "--cache", ","], "cache: must be one number at least, got ','"),
        (["guo", "--zipf", "-1"], "zipf: must be a number from 0 to 10, got '-1'"),
        (["guo", "--topo", "leafspine,leaves=1,spines=1,hosts=1"], "NICs need two hosts"),
        (["guo", "--bags", "60000", "--iterations", "900"], "could be rounded, got 902"),
        (["guo", "--rows", "16000000", "--dim", "4096"], "NICs' memory must be at most 4 GiB"),
        (["guo", "--pcap"], "pcap: not with NICs yet, got 'True'"),
        (["fcsn", "--tile", "0"], "tile: must be 1 to 64 samples, got 0"),
        (["fcsn", "--tile", "65"], "tile: must be 1 to 64 samples, got 65"),
        (["fcsn", "--tile", "1", "--samples", "9000"], "must make 8192 messages at most, got 1"),
        (["fcsn", "--widths", "8,8"], "must be of 8 layers at least, one for each host, got 1"),
        (["fcsn", "--widths", "16384," * 8 + "16384"], "may have 268435456 weights together"),
        (["fcsn", "--widths", "4096," * 8 + "4096", "--samples", "65536", "--tile", "64"],
         "all runs may take 6.9e+10 multiplications, got 3.5e+13"),
        (["fcsn", "--products", ","], "products: must be one rate at least, got ','"),
        (["fcsn", "--host-latency", ","], "host_latency: must be one time at least, got ','"),
        (["guo", "--spec", "nowhere.yaml"], "nowhere.yaml"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(words: list[str], message: str, tmp_path: Path) -> None:
    done = typed("nic", *words, "--out", tmp_path / "x")
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "x").exists()


def test_a_spec_must_be_a_mapping(tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text("- rows\n")
    with pytest.raises(ConfigError, match="must be a mapping like 'topo: fattree', got list"):
        read_cases(tmp_path / "list.yaml", {"offload": "guo"})


def test_zipf_by_hand() -> None:
    """1, 1/2, 1/4 for exponent 1 and ranks 1, 2, 4: together 1 + 1/2 + 1/3 + 1/4 = 25/12."""
    assert zipf(4, 1.0).tolist() == pytest.approx([12 / 25, 6 / 25, 4 / 25, 3 / 25])
    assert zipf(4, 0.0).tolist() == pytest.approx([0.25] * 4)


def test_sums_that_could_be_rounded_are_refused() -> None:
    """By hand: 512 + 3 * 5592234 = 16777214 is below 2^24 = 16777216, with one more it is not."""
    check_exact(5_592_234, 1, 1)
    with pytest.raises(ConfigError, match="could be rounded"):
        check_exact(5_592_235, 1, 1)
