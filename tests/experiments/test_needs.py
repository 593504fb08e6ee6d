"""What a run of any kind needs is told before, and what can't fit is refused in the same words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.estimates import ON, WORKLOADS, cases
from bench.soak.__main__ import try_plain
from bench.soak.any_case import draw_any
from bench.soak.job_cases import draw_jobs
from bench.soak.nic_cases import draw_nics
from bench.soak.recovery_cases import draw_recoveries
from ringleaf.errors import ConfigError
from ringleaf.experiments.commands import cli
from ringleaf.experiments.estimates import needs
from ringleaf.experiments.runs import checks
from ringleaf.experiments.runs.checks import check
from ringleaf.experiments.runs.request import resolve
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.workloads.collective import kind as collective
from ringleaf.experiments.workloads.graph.kind import KIND

ROOT = Path(__file__).parents[2]
JOBS = str(ROOT / "experiments" / "specs" / "live_jobs.yaml")
SCRIPT = str(ROOT / "examples" / "training" / "ddp.py")
WORDS = r"needs [\d.]+ [KMG]iB of memory, 50 MiB are free; take fewer hosts or smaller sizes"


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave 50 MiB free."""
    for module in (needs, checks):
        monkeypatch.setattr(module, "free_bytes", lambda: 50 << 20)


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[Any, str, str]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.argv", ["ringleaf", *words])
        with pytest.raises(SystemExit) as exited:
            cli.main()
    said = capsys.readouterr()
    return exited.value.code, said.out, said.err


def _with(words: tuple[str, ...], *options: str) -> list[str]:
    """Return a command with more options, in front of a script."""
    at = 2 if words[0] == "nic" else 1
    return [*words[:at], *options, *words[at:]]


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--topo", "fattree", "--size", "4K"),
        ("run", "--spec", str(ROOT / "experiments" / "specs" / "live_jobs.yaml")),
        ("train", "--topo", "fattree", SCRIPT),
        ("nic", "guo"),
    ],
    ids=["run", "jobs", "train", "nic"],
)
def test_every_command_refuses_what_cannot_fit(
    words: tuple[str, ...], little: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, err = call(capsys, *_with(words, "--out", str(tmp_path / "out")))
    assert code != 0
    assert not out
    assert " ".join(err.split()).count("of memory, 50 MiB are free; take fewer hosts") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_workloads_that_cannot_fit_are_refused(name: str, little: None) -> None:
    workloads = {each: given for each, given in cases() if each in WORKLOADS}
    with pytest.raises(ConfigError, match=f"leafspine.*: {WORDS}"):
        check(resolve(workloads[name]), live=False)


@pytest.mark.parametrize("draw", [draw_any, draw_jobs, draw_nics, draw_recoveries])
def test_cases_of_a_soak_that_cannot_fit_are_refused(draw: Any, little: None) -> None:
    found = try_plain(draw(1, 1))
    assert {what for what, _, _ in found} == {"refused"}  # by packets, and by flows
    assert "of memory, 50 MiB are free" in found[0][2]


@pytest.mark.parametrize(
    ("words", "has_time"),
    [
        (("run", "--topo", "fattree", "--size", "4K"), True),
        (("run", "--spec", JOBS, "--net", "virtual"), True),
        (("train", "--topo", "fattree", SCRIPT), False),
        (("nic", "guo"), False),
    ],
    ids=["run", "jobs", "train", "nic"],
)
def test_every_dry_run_has_an_estimate(
    words: tuple[str, ...], has_time: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, err = call(capsys, *_with(words, "--dry-run"))

    assert code == 0, err
    said = json.loads(out)["estimate"]
    assert 100 << 20 < said["memory_bytes"] < 4 << 30
    assert said["free_bytes"] > 0
    assert (said["time_s"] is not None) == has_time


def test_twice_the_data_of_a_workload_takes_twice_the_tensors() -> None:
    def tensors(size: str) -> int:
        flows = {"workload": "flows", "pattern": "permutation", "ranks": "8", "flow_sizes": size}
        spec, without = (
            KIND.fitted(KIND.resolve(ON | flows | {"data": data})) for data in ("random", "none")
        )
        counts = count_nodes(spec)
        bytes_of = [KIND.need(each, counts).memory_bytes for each in (spec, without)]
        return bytes_of[0] - bytes_of[1]

    assert 8 * 2 * (8 << 20) <= tensors("8M") <= 1.25 * 8 * 2 * (8 << 20)
    assert tensors("16M") == pytest.approx(2 * tensors("8M"), rel=0.01)


@pytest.mark.parametrize("pattern", ["permutation", "incast"])
def test_flows_take_as_long_whatever_they_carry(pattern: str) -> None:
    def seconds(net: str, **own: str) -> float:
        flows = {"workload": "flows", "pattern": pattern, "ranks": "8", "data": "none"}
        spec = KIND.fitted(KIND.resolve(ON | flows | {"net": net} | own))
        return KIND.need(spec, count_nodes(spec)).known_s

    assert seconds("flow", flow_sizes="8M") == seconds("flow", flow_sizes="800M")
    assert seconds("virtual", flow_sizes="800M") > 2 + seconds("virtual", flow_sizes="8M")


def test_a_model_by_flows_is_not_foretold_the_minutes_of_its_packets() -> None:
    def seconds(net: str) -> float:
        spec = KIND.fitted(KIND.resolve({"workload": "gpt13b", "topo": "fattree,k=8", "net": net}))
        return KIND.need(spec, count_nodes(spec)).known_s

    by_packets = 12.6e9 * 2 * 2 / 1024 / 1e7  # each parameter's gradient to and fro: seconds
    assert seconds("virtual") > 5 * by_packets
    assert seconds("flow") < seconds("virtual") / 10


def test_each_rank_of_a_script_takes_its_processes_memory() -> None:
    from ringleaf.experiments.workloads.train.need import need_of_script
    from ringleaf.experiments.workloads.train.spec import TrainSpec

    def memory(ranks: int) -> int:
        spec = TrainSpec.read({"topo": "fattree", "ranks": str(ranks)})
        return need_of_script(spec, count_nodes(spec)).memory_bytes

    assert 50 << 20 < (memory(16) - memory(2)) / 14 < 110 << 20


@pytest.mark.parametrize(
    ("options", "is_offered"),
    [
        ({}, True),
        ({"size": "1MiB"}, False),  # it takes seconds
        ({"algo": "tree"}, False),  # its steps differ
        ({"loss": "1%"}, False),
        ({"faults": "h0 down at 1ms"}, False),
        ({"skip": "0.2%"}, False),  # it was asked for
    ],
)
def test_a_long_run_says_what_skipping_would_take(
    options: dict[str, str], is_offered: bool
) -> None:
    ring = {"topo": "fattree,k=16", "algo": "ring", "size": "1GiB", "data": "none"}
    _, needed = collective.KIND.plan(collective.resolve(ring | options))
    assert ("with --skip 0.1%" in str(needed)) is is_offered
    if is_offered:
        assert needed.skipping_s is not None
        assert 2 * needed.skipping_s < needed.known_s
