"""A run's header names the options that were asked for and change nothing, and says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ringleaf
from ringleaf.errors import ConfigError
from ringleaf.experiments.records.idle import idle, rounded
from ringleaf.experiments.runs.request import resolve
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve as resolve_collective
from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment
from ringleaf.experiments.workloads.jobs.kind import resolve_jobs

RACK = "leafspine,leaves=1,spines=0,hosts=3"
NO_ADDERS = "no algorithm adds in switches"
OWN_RATE = "rate (all links have their own)"
ADDERS = "all algorithms add in switches"
IN_KERNEL = "ecn (BMv2's queues are in the kernel)"
SMALL = {"layers": "2", "hidden": "64", "heads": "4", "pp": "2"}
NO_WEIGHTS = "weight of jobs (fifo has no weights)"
NO_WEIGHTS_P3 = "weight of jobs (p3 has no weights)"
TWICE = "a way by another rack passes a node twice"
IN_FLOWS = "stall (net=flow); threads (net=flow)"
BMV2 = {"net": "mininet", "switch": "bmv2"}


def said(**typed: Any) -> str:
    """Return what the header of a run says, without its beginning."""
    return "".join(idle(resolve(typed).spec)).removeprefix("without effect here: ")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"algo": "ring", "window": "8", "cc": "dctcp", "ecn": "5"}, ""),
        (
            {"topo": "circuits", "circuits": "sipocs,dead=50us,period=1ms,senders=pause"},
            "period, dead, senders of circuits (sipocs: set up once)",
        ),
        (
            {"topo": "circuits", "circuits": "topoopt,drain=0"},
            "drain of circuits (topoopt: set up once)",
        ),
        ({"topo": "circuits", "circuits": "topoopt,period=100us,dead=25us"}, ""),
        ({"topo": "circuits", "circuits": "helios,dead=50us,period=1ms"}, ""),
        ({"algo": "ring", "slots": "4", "lanes": "64"}, f"slots, lanes ({NO_ADDERS})"),
        ({"algo": "ring,switchml", "slots": "4", "window": "8"}, ""),
        ({"algo": "switchml", "cc": "dctcp", "window": "8"}, f"window, cc ({ADDERS})"),
        ({"algo": "switchml", "ina_cc": "dctcp"}, "ina_cc (switchml has windows of one size)"),
        ({"algo": "atp", "servers": "1", "ina_cc": "dctcp", "ecn": "5"}, ""),
        ({"algo": "atp", "servers": "1", "cc": "dctcp"}, ""),  # which has switches mark
        ({"algo": "atp", "servers": "1", "cc": "dctcp", "ecn": "5"}, f"cc ({ADDERS})"),
        ({"algo": "atp", "servers": "1", "cc": "swift"}, f"cc ({ADDERS})"),
        ({"algo": "switchml", "trees": "2"}, "trees (switchml can't have several trees)"),
        ({"algo": "switchml,panama", "trees": "2"}, ""),
        ({"algo": "vote", "lanes": "64"}, "lanes (vote has packets of one size)"),
        ({"algo": "vote,switchml", "lanes": "64"}, ""),
        ({"algo": "ring", "ecn": "5"}, "ecn (marks mean nothing to cc=fixed)"),
        ({"algo": "ring", "ecn": "5", "cc": "swift"}, "ecn (marks mean nothing to cc=swift)"),
        ({"algo": "ring", "ecn": "0"}, ""),  # as without
        ({"algo": "switchml", "ecn": "5", **BMV2}, IN_KERNEL),
        ({"algo": "ring", "ecn": "5", **BMV2}, IN_KERNEL),
        ({"algo": "ring", "overlap": "50%"}, "overlap (density=100%)"),
        ({"algo": "ring", "overlap": "50%", "density": "1%"}, ""),
        ({"algo": "ring", "reroute": "1us", "shrink": "1us"}, "reroute, shrink (no faults)"),
        ({"algo": "ring", "reroute": "1us", "faults": "s0 down at 1ms for 1us"}, ""),
        ({"algo": "ring", "reroute": "1us", "faults": "s0 rate 1G"}, "reroute (nothing goes down)"),
        ({"algo": "ring", "topo": "leafspine", "routes": "valiant"}, f"routes ({TWICE})"),
        ({"algo": "ring", "topo": "leafspine", "routes": "ecmp"}, ""),
        ({"algo": "ring", "topo": "torus2d", "routes": "valiant"}, ""),
        ({"algo": "ring", "topo": "leafspine,node=8xh100,hosts=1", "routes": "valiant"}, ""),
        ({**SMALL, "recovery": "swarm", "repair": "1s"}, "repair (no failures are drawn)"),
        (
            {**SMALL, "recovery": "swarm", "checkpoint_cost": "1s"},
            "checkpoint_cost (no checkpoints with swarm)",
        ),
        ({**SMALL, "recovery": "swarm,checkpoint", "checkpoint_cost": "1s"}, ""),
        ({"algo": "ring", "topo": "fattree,rate=1G", "rate": "2G", "delay": "2us"}, OWN_RATE),
        ({"algo": "ring", "topo": "examples/topologies/two_racks.edges", "rate": "2G"}, OWN_RATE),
        ({"algo": "ring", "topo": "fattree,rate=1G"}, ""),
        ({"algo": "ring", "topo": "fattree", "rate": "2G"}, ""),
        ({"algo": "ring", "topo": "fattree", "inject": "2G"}, ""),
        ({"algo": "ring", "stall": "9s"}, "stall (net=virtual)"),
        ({"algo": "ring", "stall": "9s", "net": "mininet"}, ""),
        ({"algo": "ring", "threads": "2", "net": "mininet"}, "threads (net=mininet)"),
        ({"algo": "ring", "threads": "2", "stall": "9s", "net": "flow"}, IN_FLOWS),
        ({"algo": "ring", "threads": "2", "net": "flow", "check_packets": "yes"}, ""),
        ({"algo": "ring", "threads": "2"}, ""),
        ({"jobs": [{"model": "vgg16"}], "algo": "ring", "entries": "8"}, f"entries ({NO_ADDERS})"),
        ({"jobs": [{"model": "vgg16", "algo": "switchml"}], "algo": "ring", "entries": "8"}, ""),
        (
            {"jobs": [{"model": "vgg16"}], "algo": "sharp", "memory": "inalloc"},
            "memory (sharp keeps its part of switches' memory)",
        ),
        ({"jobs": [{"model": "vgg16"}], "algo": "sharp,atp", "memory": "inalloc"}, ""),
        (
            {"jobs": [{"model": "vgg16"}], "algo": "omnireduce", "entries": "8"},
            "entries (omnireduce takes no entries of switches)",
        ),
        ({"jobs": [{"model": "vgg16"}], "algo": "omnireduce,sharp", "entries": "8"}, ""),
        ({"jobs": [{"model": "vgg16"}], "algo": "switchml", "window": "8"}, f"window ({ADDERS})"),
        (
            {"jobs": [{"model": "vgg16", "algo": "switchml"}], "algo": "ring", "window": "8"},
            f"window ({ADDERS})",
        ),
        ({"jobs": [{"model": "vgg16"}], "algo": "switchml,ring", "window": "8"}, ""),
        ({"jobs": [{"model": "vgg16", "weight": 2}], "algo": "ring"}, NO_WEIGHTS),
        ({"jobs": [{"model": "vgg16", "weight": 2}], "scheduler": "p3"}, NO_WEIGHTS_P3),
        ({"jobs": [{"model": "vgg16", "weight": 2}], "scheduler": "fifo,jpas"}, ""),
        ({"jobs": [{"model": "vgg16", "weight": 2}], "scheduler": "shares"}, ""),
        ({"jobs": [{"model": "vgg16", "weight": 2}], "scheduler": "sincronia"}, ""),
        ({"jobs": [{"model": "vgg16"}], "scheduler": "p3"}, ""),
        (
            {"jobs": [{"model": "vgg16"}], "scheduler": "dear,mg-wfbp", "fuse": "1M"},
            "fuse (dear makes groups of its own)",
        ),
        ({"jobs": [{"model": "vgg16"}], "scheduler": "dear,fifo", "fuse": "1M"}, ""),
        (
            {"jobs": [{"model": "vgg16"}], "scheduler": "liquid", "placement": "packed"},
            "placement (liquid has hosts of its own choice)",
        ),
        ({"jobs": [{"model": "vgg16"}], "scheduler": "tereis", "placement": "packed"}, ""),
        ({"workload": "incast", "flows": "9"}, "flows (flows are not random)"),
        (
            {"offload": "guo", "lanes": "64", "trees": "3", "ina_cc": "a2tp", "window": "8"},
            f"lanes, ina_cc, trees ({NO_ADDERS})",
        ),
        ({"workload": "websearch", "flows": "9"}, ""),
        (
            {"workload": "websearch", "flow_sizes": "1K"},
            "flow_sizes (websearch has sizes of its own)",
        ),
        ({"workload": "websearch", "flow_sizes": "hadoop"}, ""),
        ({"workload": "random", "flow_sizes": "1K,2K"}, ""),
        (
            {"workload": "ring", "flow_sizes": "1K,2K"},
            "flow_sizes but the first (all messages of a ring have one size)",
        ),
        ({"workload": "ring", "flow_sizes": "1K,1024"}, ""),
        ({"workload": "ring", "flow_sizes": "hadoop"}, ""),
    ],
)
def test_what_has_no_effect_is_told_with_its_reason(options: dict[str, Any], expected: str) -> None:
    assert said(**options) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"slots": "7"}, ["slots=7: atp takes 8, netreduce takes 4"]),  # powers of two
        ({"slots": "8"}, []),
        ({"slots": "3000"}, ["slots=3000: atp takes 4096, netreduce takes 1024"]),
        ({}, []),
    ],
)
def test_slots_that_systems_round_are_told(options: dict[str, Any], expected: list[str]) -> None:
    spec = resolve({"algo": "ring,switchml,atp,netreduce", **options}).spec

    assert list(rounded(spec)) == expected


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"algo": "atp,ring,panama,switchml"}, ["atp, panama"]),
        ({"algo": "atp", "ina_cc": "dctcp"}, ["atp"]),
        ({"algo": "ring,switchml"}, []),
        ({"jobs": [{"model": "vgg16", "algo": "a2tp"}], "algo": "atp"}, ["a2tp"]),
    ],
)
def test_windows_that_bmv2_never_marks_are_told(options: dict[str, Any], names: list[str]) -> None:
    """Live BMv2's queues are in the kernel: a window that goes by marks grows to its greatest."""
    lines = list(idle(resolve({"servers": "1", **options, **BMV2}).spec))
    assert [line.partition(": windows grow and never shrink")[0] for line in lines] == names
    assert not list(idle(resolve({"servers": "1", **options, "net": "mininet"}).spec))


TWO_ROOTS = "leafspine,leaves=2,spines=2,hosts=2"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"trees": "9"}, ["trees=9: panama has 2, one for each of the best roots"]),
        ({"trees": "2"}, []),
        ({"trees": "1"}, []),
        ({"trees": "2", "slots": "1"}, ["trees=2: panama has 1, one for each slot"]),
        ({"slots": "7"}, ["slots=7: panama takes 6, as many for each tree"]),
        ({"slots": "8"}, []),
        ({}, []),
    ],
)
def test_trees_that_there_are_not_are_told(options: dict[str, Any], expected: list[str]) -> None:
    """Both spines are as good roots as one another."""
    usual = {"topo": TWO_ROOTS, "algo": "ring,panama,switchml", "size": "4K"}
    spec = resolve_collective({**usual, **options})
    about = CollectiveExperiment(spec).results.about
    assert [line for line in about if "panama" in line] == expected


@pytest.mark.parametrize(("placement", "count"), [("packed", "1 or 2"), ("spread", "2")])
def test_trees_of_jobs_are_told_by_their_places(placement: str, count: str) -> None:
    """A job in one rack has its switch as the root; one in several racks has the two spines.

    Packed, the first job has a rack, and the second one the two others.
    """
    jobs = [{"model": "vgg16", "ranks": ranks, "algo": "panama"} for ranks in (2, 3)]
    options = {"topo": "leafspine,leaves=3,spines=2,hosts=2", "servers": "0", "trees": "3"}
    spec = resolve_jobs({**options, "placement": placement, "jobs": jobs})
    line = f"trees=3: panama has {count}, one for each of the best roots"
    assert line in JobsExperiment(spec).results.about


@pytest.mark.parametrize(
    ("asked", "had"), [({"trees": "9"}, {"trees": "2"}), ({"slots": "7"}, {"slots": "6"})]
)
def test_what_is_told_of_trees_is_true(asked: dict[str, Any], had: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"topo": TWO_ROOTS, "algo": "panama", "size": "64K"}
    assert ringleaf.run(**usual, **asked).rows == ringleaf.run(**usual, **had).rows


def test_several_reasons_are_told_in_one_line() -> None:
    assert said(algo="ring", slots="4", cluster="2") == (
        f"slots ({NO_ADDERS}); cluster (density=100%)"
    )


@pytest.mark.parametrize(
    ("algo", "options"),
    [
        ("ring", {"slots": 2, "lanes": 64, "ecn": 1, "cluster": 4, "reroute": "1us"}),
        ("ring", {"ecn": 1, "cc": "swift"}),
        (
            "switchml",
            {"window": 2, "cc": "dctcp", "queue_pairs": 4, "rank_order": "random", "trees": 2},
        ),
    ],
)
def test_what_is_told_is_true(
    algo: str, options: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    usual: dict[str, Any] = {"topo": RACK, "algo": algo, "size": "64K", "queue": "16K"}
    usual |= {"cc": options["cc"]} if algo == "ring" and "cc" in options else {}
    run = ringleaf.run(**(usual | options), show=True)
    assert run.rows == ringleaf.run(**usual).rows
    assert "# without effect here: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workload": "gpt13b", "load": "20%"}, "load: is of flows, got 0.2 for workload: llm"),
        ({"workload": "gpt13b", "groups": "g.json"}, "groups: are of traces, got 'g.json'"),
        ({"workload": "incast", "flops": "4T"}, "flops: is of traces, got .* for flows"),
        ({"workload": "incast", "groups": "g.json"}, "groups: is of traces, got 'g.json'"),
        ({"workload": "random", "load": "9%", "interval": "1us"}, "load: can't go with interval"),
    ],
)
def test_options_of_other_workloads_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve(options)


def test_files_of_flows_have_all_that_patterns_have(tmp_path: Path) -> None:
    (tmp_path / "my.csv").write_text("source,target,size,start\n0,1,4096,0\n")
    with pytest.raises(ConfigError, match=r"files: has the flows .* or ranks or flow_sizes; leave"):
        resolve({"workload": str(tmp_path / "my.csv"), "flow_sizes": "4K"})


def test_an_interval_takes_the_place_of_a_usual_load() -> None:
    loads = [
        resolve({"workload": "websearch", **more}).spec.mean_load  # type: ignore[attr-defined]
        for more in ({}, {"interval": "1us"}, {"load": "20%"})
    ]
    assert loads == [0.3, None, 0.2]
