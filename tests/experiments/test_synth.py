"""`ringleaf synth`, and synthesised names in jobs, workloads and training."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import typer

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.files.algorithm import read_algorithm
from ringleaf.collectives.synthesis import search
from ringleaf.collectives.synthesis.algorithm import about
from ringleaf.collectives.synthesis.methods import tacos
from ringleaf.collectives.synthesis.names import SYNTHESISERS, WithSynthesised
from ringleaf.collectives.synthesis.problem import Problem, Synthesiser, SynthesisPlan
from ringleaf.collectives.verify import verify
from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import make_app
from ringleaf.experiments.setup.cabling import Cabling
from ringleaf.experiments.setup.network import build_topology
from ringleaf.experiments.workloads.graph.schedules import Scheduling
from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment
from ringleaf.experiments.workloads.jobs.spec import JobsSpec
from ringleaf.hosts.workload.graph import CalledCollective
from ringleaf.hosts.workload.matched import MatchedWork
from ringleaf.topologies.graph import hosts

TORUS = "torus2d,x=3,y=3"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def typed(*words: str) -> int:
    """Run the command in this process; return its exit status."""
    try:
        made: object = make_app(["synth", "rows"])(["synth", *words], standalone_mode=False)
    except typer.Exit as end:
        return end.exit_code
    return made if isinstance(made, int) else 0


def test_a_plan_is_printed_written_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.xml"
    words = ("tacos", "--topo", TORUS, "--collective", "allgather", "--size", "9KiB")
    assert typed(*words, "--chunks", "2", "-o", str(path)) == 0
    first = capsys.readouterr().out
    assert "# TACOS, all_gather of 9 KiB on torus2d,x=3,y=3: 9 ranks" in first
    assert "us, gap " in first
    assert "searched for " in first
    assert "chunks for each rank: 2" in first
    schedule = read_algorithm(path).build(9)
    assert schedule.collective is Collective.ALL_GATHER
    verify(schedule)
    assert typed(*words, "--chunks", "2") == 0
    assert "kept from an earlier search" in capsys.readouterr().out


def test_a_plan_is_written_when_nobody_reads_what_is_said_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with `| head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    path = tmp_path / "plan.csv"
    with os.fdopen(writer, "w") as stdout:
        monkeypatch.setattr("sys.stdout", stdout)
        assert typed("plink", "--topo", "torus2d,x=2,y=2", "--size", "1K", "-o", str(path)) == 0
    assert read_algorithm(path).ranks == 4


def test_an_interrupted_search_gives_the_best_so_far(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plans: list[SynthesisPlan] = []

    def solve(problem: Problem) -> SynthesisPlan:
        for chunks in (1, 2, 4):
            plans.append(tacos._solve(problem, problem.wires, chunks, 1.0))
            problem.offer(plans[-1])
        raise KeyboardInterrupt

    usual = SYNTHESISERS["tacos"]
    slow = Synthesiser("slow", "Slow", usual.collectives, usual.look, solve)
    monkeypatch.setitem(SYNTHESISERS.added, "slow", slow)
    path = tmp_path / "best.csv"
    assert typed("slow", "--topo", TORUS, "--size", "4MiB", "-o", str(path)) == 130
    told = capsys.readouterr().out
    best = min(plans, key=lambda plan: plan.expected_ps)
    assert f"expected {best.expected_ps / 1e6:.2f} us" in told
    assert "the best so far, not kept" in told
    assert read_algorithm(path).build(9).chunks == best.schedule.chunks
    wires = Cabling(build_topology(TORUS, rate_bps=10**11, delay_ps=10**6, hosts=None)).wires
    assert search.find_kept("slow", Problem(wires, Collective.ALLREDUCE, 4 << 20)) is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("tacoz", "--topo", TORUS),
            "synth: unknown synthesiser, got 'tacoz'; did you mean 'tacos'? valid: blink",
        ),
        (("tacos", "--topo", TORUS, "--collective", "broadcast"), "unknown collective"),
        (("tacos", "--topo", TORUS, "--sketch", "a.yaml"), "tacos takes no sketch, got 'a.yaml'"),
        (("taccl", "--topo", TORUS, "--sketch", "no.yaml"), "sketch: can't read, got 'no.yaml'"),
        (("tacos", "--topo", TORUS, "--chunks", "0"), "chunks must be 1 to"),
        (("plink", "--topo", TORUS, "--chunks", "7"), "chunks must be left to plink, got 7"),
        (("tacos", "--topo", TORUS, "--root", "2"), "tacos takes no root, got 2; leave it out"),
        (("tacos", "--topo", TORUS, "--root", "0"), "tacos takes no root, got 0; leave it out"),
        (("tacos", "--topo", TORUS, "-o", "plan.pdf"), "out: "),
    ],
)
def test_wrong_usage_is_refused(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(*words) == 2
    assert message in capsys.readouterr().err


def test_wires_of_some_hosts_are_those_between_them() -> None:
    """Hosts 0, 2 and 8 of a torus: host 1 is no rank, so the way from 0 to 2 by it is one.

    Host 2's way to 8 goes along the row first, by host 0, which may as well receive.
    """
    graph = build_topology("torus2d,x=4,y=4", rate_bps=10**11, delay_ps=10**6, hosts=None)
    some = Cabling(graph, ["h0", "h2", "h8"]).wires
    assert some.ranks == 3
    assert set(some.ways) == {(0, 1), (1, 0), (0, 2), (2, 0), (2, 1)}
    all_wires = Cabling(graph).wires
    assert (0, 2) not in all_wires.ways
    neighbours = Cabling(graph, ["h0", "h1", "h2"]).wires
    assert (0, 2) not in neighbours.ways


def test_jobs_take_synthesised_schedules_for_their_hosts() -> None:
    spec = JobsSpec.model_validate(
        {
            "topo": "leafspine,leaves=2,spines=2,hosts=4",
            "algo": "tacos",
            "servers": 0,
            "size": 0.001,
            "jobs": [{"model": "resnet50", "ranks": ranks, "iterations": 1} for ranks in (3, 4)],
        }
    )
    [case] = JobsExperiment(spec).run()
    assert [row.wrong for row in case.rows] == [0, 0]
    with pytest.raises(ConfigError, match="unknown algorithm, got 'tacos-allgather'"):
        JobsSpec.model_validate({"jobs": [{"model": "resnet50"}], "algo": "tacos-allgather"})


def test_workloads_take_them_for_each_group() -> None:
    graph = build_topology(TORUS, rate_bps=10**11, delay_ps=10**6, hosts=None)
    scheduling = Scheduling(graph, ["tacos-allgather"], hosts(graph)[::-1])
    made = scheduling.schedule(
        MatchedWork(CalledCollective.ALL_GATHER, (0, 2, 4), (0, 0, 0), 4096), 3000
    )
    assert made.algorithm == "tacos"
    assert made.ranks == 3


def test_many_sizes_share_a_schedule() -> None:
    assert [about("tacos", size) for size in (0, 1, 4096, 4097)] == [1, 1, 4096, 8192]
    assert about("ring", 4097) == 4097
    known = WithSynthesised(["ring"])
    assert "tacos" in known
    assert "taccl:file.yaml" in known
    assert "tacos:file.yaml" not in known
    assert list(known) == ["ring"]
