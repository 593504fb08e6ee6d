"""Trainings that lose hosts, through the command line: packets and flows, files and refusals."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from ringleaf.core.units import format_time
from ringleaf.experiments.commands.cli import make_app

MODEL: dict[str, Any] = {
    "workload": "llm",
    **{"layers": 4, "hidden": 64, "heads": 4, "sequence": 64},
    **{"tp": 2, "pp": 2, "dp": 2, "micro_batches": 4, "flops": "100G"},
    **{"detect": "100us", "regroup": "100us", "restart": "500us", "checkpoint_cost": "50us"},
    "iterations": 6,
}


def typed(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(make_app(), list(arguments))
    return result.exit_code, result.output


def run(folder: Path, *more: str, **options: Any) -> tuple[dict[str, Any], str]:
    path, out = folder / "recovery.yaml", folder / "out"
    path.write_text(yaml.safe_dump(MODEL | options))
    code, output = typed("run", "--spec", str(path), "--out", str(out), "--figures", "no", *more)
    assert code == 0, output
    return json.loads((out / "summary.json").read_text()), output


def test_a_loss_in_packets_has_exact_sums_and_a_row(tmp_path: Path) -> None:
    summary, output = run(
        tmp_path, recovery="checkpoint", faults="h3 down at 2ms", checkpoint_interval="1ms"
    )

    [row] = summary["rows"]
    assert "# wrong values: 0 OK" in output
    assert "# checkpoints are 1 ms apart at least, as asked for" in output
    assert (row["losses"], row["iterations"], row["wrong"]) == (1, 6, 0)
    assert row["detect_ps"] == 100_000_000
    assert row["recover_ps"] == 600_000_000  # detected, and begun anew
    usual_ps, slower_ps = summary["usual_ps"], row["last_ps"]
    # an iteration, its checkpoint, what was lost from then to 2 ms, and 5 by one pipeline
    phases = list(csv.DictReader((tmp_path / "out" / "phases.csv").open()))
    assert sum(int(each["end_ps"]) - int(each["start_ps"]) for each in phases) == row["time_ps"]
    assert row["first_ps"] == usual_ps
    assert 1.2 * usual_ps < slower_ps < 2 * usual_ps  # the whole batch by half of the workers
    assert row["pipelines"] == 1
    assert row["lost_ps"] == 2_000_000_000 - (usual_ps + 50_000_000)
    assert row["share"] == pytest.approx(6 * usual_ps / row["time_ps"])
    trace = json.loads((tmp_path / "out" / "timelines" / "recovery.json").read_text())
    bars = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [(e["ts"], e["dur"]) for e in bars if e["name"] == "h3: 1"] == [(2000, 600)]
    assert sum(event["name"] == "iteration" for event in bars) == 6
    [loss] = csv.DictReader((tmp_path / "out" / "losses.csv").open())
    assert (loss["workers"], loss["kinds"], loss["at_ps"]) == ("1", "h3", "2000000000")


def test_all_recoveries_in_packets_have_exact_sums(tmp_path: Path) -> None:
    names = ["checkpoint", "oobleck", "bamboo", "recycle", "swarm"]
    summary, _ = run(tmp_path, recovery=names, faults="h3 down at 2ms, h4 down at 9ms for 5ms")

    assert summary["wrong"] == 0
    rows = {row["recovery"]: row for row in summary["rows"]}
    assert list(rows) == names
    assert {row["losses"] for row in rows.values()} == {2}
    assert rows["bamboo"]["copied_bytes"] > 0 == rows["checkpoint"]["copied_bytes"]
    # nothing is copied for a micro-batch that a peer takes over, until h4 is there again
    lines = list(csv.DictReader((tmp_path / "out" / "losses.csv").open()))
    copied = {each["recovery"]: each["copied"] for each in reversed(lines)}
    assert copied["recycle"] == "0"


def test_flows_have_the_same_courses_and_times_near_those_of_packets(tmp_path: Path) -> None:
    options = {"recovery": "checkpoint", "faults": "h3 down at 2ms"}
    packets, _ = run(tmp_path, **options)
    flows, _ = run(tmp_path, "--net", "flow", **options)

    assert flows["usual_ps"] == pytest.approx(packets["usual_ps"], rel=0.05)
    assert flows["rows"][0]["losses"] == 1


def test_a_ring_of_servers_injects_as_much_as_one_link(tmp_path: Path) -> None:
    """A server of a ring has two ports, of 50 Gbit/s each here."""
    ring = {"recovery": "checkpoint", "net": "flow", "topo": "torus2d,x=8,y=1"}
    by_rate, _ = run(tmp_path, **ring, rate="50G")
    by_ports, _ = run(tmp_path, **ring, inject="100G")

    assert by_ports["usual_ps"] == by_rate["usual_ps"]


def test_the_command_takes_a_recovery_beside_a_workload(tmp_path: Path) -> None:
    sizes = ("--layers", "4", "--hidden", "64", "--heads", "4", "--kv-heads", "4")
    small = (*sizes, "--ffn", "256", "--sequence", "64", "--tp", "1", "--pp", "2", "--dp", "2")
    code, output = typed(
        *("workload", "run", "gpt13b", *small, "--recovery", "checkpoint", "--iterations", "2"),
        *("--out", str(tmp_path / "out"), "--figures", "no"),
    )

    assert code == 0, output
    assert "gpt13b, 4 workers of 1 host" in output
    assert "checkpoint" in output


def test_one_that_cannot_go_on_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    one = {"dp": 1, "faults": "h0 down at 2ms", "least_workers": 1}
    summary, output = run(tmp_path, "--net", "flow", recovery="checkpoint, oobleck", **one)

    checkpoint, oobleck = summary["rows"]
    assert (checkpoint["iterations"] < 6, checkpoint["losses"]) == (True, 1)
    assert (oobleck["iterations"], oobleck["pipelines"]) == (6, 1)
    assert summary["ended"] == [
        "recovery checkpoint: a pipeline needs 2 workers, got 1 that are left; take more spares, "
        "or hosts that come back, at 2.1 ms"
    ]
    assert "# recovery checkpoint: a pipeline needs 2 workers" in output
    path = tmp_path / "alone.yaml"
    path.write_text(yaml.safe_dump(MODEL | one | {"recovery": "checkpoint", "net": "flow"}))
    code, output = typed("run", "--spec", str(path), "--out", str(tmp_path / "alone"))
    assert code == 1
    assert "ringleaf: recovery checkpoint: a pipeline needs 2 workers, got 1" in output


def test_options_that_no_recovery_looks_at_are_told(tmp_path: Path) -> None:
    """Models in pipelines add up, and have no all-to-all, as they have no experts."""
    short = {"recovery": "checkpoint", "iterations": 1, "wide": "yes"}
    output = run(tmp_path, **short, algo="ring,alltoall", topk=1, sequence_parallel="yes")[1]
    idle = [line for line in output.splitlines() if "without effect" in line]
    line = "# without effect here:"
    assert idle == [
        f"{line} algo=alltoall (no such collectives are called)",
        f"{line} topk (no experts)",
    ]


def test_options_of_recoveries_need_one() -> None:
    code, output = typed("workload", "run", "gpt13b", "--spares", "1")
    assert code == 2
    assert "spares is of trainings that lose hosts, got '1'; give --recovery" in output


def test_hosts_of_a_worker_are_down_apart_and_late_losses_are_told(tmp_path: Path) -> None:
    """Worker 1 has h2 and h3, and is back when both are; too late, as all is over by then."""
    faults = "h3 down at 2ms for 100us, h2 down at 2050us for 1s, h5 down at 1s"
    summary, output = run(tmp_path, "--net", "flow", recovery="oobleck", faults=faults)

    [row] = summary["rows"]
    assert (row["losses"], row["copied_bytes"]) == (1, 0)  # nobody is taken in again
    assert "# h5 down at 1s: too late for oobleck" in output


def test_links_that_lose_packets_are_the_networks(tmp_path: Path) -> None:
    faults = "s0-s8 loss 20% at 1600us for 1ms, h3 down at 9ms"
    summary, _ = run(tmp_path, recovery="recycle", faults=faults, topo="fattree")
    rows = (tmp_path / "out" / "results.csv").read_bytes()

    assert summary["retransmissions"] > 0
    assert summary["wrong"] == 0
    phases = list(csv.DictReader((tmp_path / "out" / "phases.csv").open()))
    first, second, third = (int(each["end_ps"]) - int(each["start_ps"]) for each in phases[:3])
    assert second > first == third
    run(tmp_path, "--threads", "2", recovery="recycle", faults=faults, topo="fattree")
    assert (tmp_path / "out" / "results.csv").read_bytes() == rows


def test_drawn_failures_recur_and_are_the_same_for_all(tmp_path: Path) -> None:
    options = {
        **{"recovery": ["checkpoint", "recycle"], "failures": "llama3", "failures_times": 1e9},
        **{"repair": "5ms", "iterations": 80, "spares": 1, "seed": 4, "data": "none"},
    }
    summary, output = run(tmp_path, "--net", "flow", **options)

    assert "Llama 3 405B, 54 days of 16,384 GPUs" in output
    mttf_s = 54 * 86400 * 16384 / (419 * 1e9 * len(summary["config"]["hosts_of_ranks"]))
    apart = format_time(round(1e12 * math.sqrt(2 * 50e-6 * mttf_s)))
    assert f"# checkpoints are {apart} apart at least, by Young's formula" in output
    first = (tmp_path / "out" / "results.csv").read_bytes()
    lines = list(csv.DictReader((tmp_path / "out" / "losses.csv").open()))
    assert all(row["losses"] > 2 for row in summary["rows"])
    assert {"GPU", "HBM3"} & {each["kinds"] for each in lines}
    names = ("checkpoint", "recycle")
    first_ps = {next(e["at_ps"] for e in lines if e["recovery"] == name) for name in names}
    assert len(first_ps) == 1
    assert summary["simulations"] < 40  # of more than 400 iterations
    run(tmp_path, "--net", "flow", **options)
    assert (tmp_path / "out" / "results.csv").read_bytes() == first


def test_a_straggler_slows_all_but_those_who_send_it_less(tmp_path: Path) -> None:
    names = ["recycle", "swarm"]
    summary, _ = run(tmp_path, recovery=names, faults="h2 slow 8 at 0", flops="10G")

    usual_ps = summary["usual_ps"]
    recycle, swarm = (row["last_ps"] for row in summary["rows"])
    assert recycle > 4 * usual_ps
    assert swarm < 0.6 * recycle
    assert summary["wrong"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workload": "incast"}, "recovery: is of models in pipelines, got workload 'flows'"),
        ({"zero": 1}, "zero: must be 0 with recoveries, as replicas share"),
        ({"schedule": "gpipe"}, "schedule: must be 1f1b with recoveries"),
        ({"least_workers": 3}, "least_workers: must be at most pp, 2, got 3"),
        ({"pcap": "yes"}, "pcap: not with recoveries"),
        ({"net": "mininet"}, "net: can't carry this workload"),
        ({"faults": "h99 down at 1ms"}, "faults: no such node or link, got 'h99'"),
        (
            {"hosts": 16, "faults": "h9 down at 1ms"},
            "faults: a host that is down must have a worker, got 'h9 down at 1ms'; like one of h0",
        ),
        ({"faults": "h3 down at 1ms for 5ms, h3 down at 4ms"}, "faults: two must not be at one"),
        ({"recovery": "varuna"}, "recovery: unknown recovery, got 'varuna'; valid: "),
    ],
)
def test_refusals(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    values = {"recovery": "checkpoint"} | options
    plain = values if "workload" in values else MODEL | values
    path = tmp_path / "recovery.yaml"
    path.write_text(yaml.safe_dump(plain))

    code, output = typed("run", "--spec", str(path), "--out", str(tmp_path / "out"))

    assert code != 0
    assert message in " ".join(output.split())
