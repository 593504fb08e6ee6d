"""Circuits through the command: rows, timelines, jobs and workloads, what is refused, the study."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from test_cli import call

from ringleaf.core.units import PS_PER_MS, PS_PER_US
from ringleaf.errors import ConfigError
from ringleaf.experiments.records.circuit_counts import tell
from ringleaf.experiments.runs import drawing, perform
from ringleaf.experiments.workloads.collective.kind import resolve
from studies import circuit_costs, circuits

SMALL = "circuits,racks=4,hosts=2"
US = PS_PER_US


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "redraw", lambda *_, **__: [])
    monkeypatch.setattr(perform, "drawer", lambda _: None)


def test_a_row_and_a_timeline_have_what_circuits_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first change is at 20 us, and dark for 5 us, as no circuit was up."""
    settings = "helios,period=20us,dead=5us"
    words = ("--topo", SMALL, "--circuits", settings, "--algo", "ring", "--size", "256K")
    assert call("run", *words, "-o", tmp_path / "run") == 0

    said = " ".join(capsys.readouterr().out.replace("\n#", " ").split())
    with (tmp_path / "run" / "results.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["wrong"] == "0"
    assert int(row["changes"]) >= 1
    assert int(row["dark_ps"]) == 5 * US * int(row["changes"])
    assert float(row["duty"]) == pytest.approx(
        1 - int(row["dark_ps"]) / int(row["time_ps"]), abs=1e-6
    )
    assert int(row["circuit_bytes"]) > int(row["packet_bytes"]) > 0
    assert f"circuits changed {row['changes']} time" in said
    assert "circuits by helios,period=20us,dead=5us,drain=empty,senders=run" in said
    (trace,) = (tmp_path / "run").rglob("ring-262144.json")
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("cat") == "circuit"]
    assert {
        "ph": "X",
        "name": "dark",
        "cat": "circuit",
        "pid": 0,
        "tid": 1,
        "ts": 20,
        "dur": 5,
    } in (events)
    ups = [event for event in events if event["name"] == "up"]
    assert len(ups) == 4 * int(row["changes"])
    assert min(event["ts"] for event in ups) == 25


def test_without_a_controller_rows_say_nothing_of_circuits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--topo", SMALL, "--algo", "ring", "--size", "64K")
    assert call("run", *words, "-o", tmp_path / "run") == 0
    assert "circuits changed" not in capsys.readouterr().out


def test_jobs_have_circuits(tmp_path: Path) -> None:
    spec = tmp_path / "jobs.yaml"
    spec.write_text(
        f'topo: "{SMALL}"\ncircuits: "cthrough,period=50us,dead=5us"\ndelay: 100ns\n'
        "jobs:\n  - {model: resnet50, ranks: 3, iterations: 1}\n"
        "  - {model: vgg16, ranks: 3, iterations: 1}\n"
        "algo: ring\nsize: 0.002\ncompute: 0.001\n"
    )
    assert call("run", "--spec", spec, "-o", tmp_path / "run") == 0
    first, second = json.loads((tmp_path / "run" / "summary.json").read_text())["rows"]
    assert first["wrong"] == second["wrong"] == 0
    assert first["changes"] == second["changes"] >= 1
    assert 0 < first["duty"] < 1


def test_flows_of_a_pattern_have_circuits(tmp_path: Path) -> None:
    words = ("--topo", SMALL, "--circuits", "cthrough,period=20us,dead=5us")
    assert (
        call("workload", "run", "permutation", "--ranks", "8", *words, "-o", tmp_path / "run") == 0
    )
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["duty"] is not None
    assert summary["wrong"] in (0, None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topo": "fattree"}, r"circuits: is for topo=circuits, got helios and topo='fattree'"),
        ({"routes": "ksp:4"}, "circuits: its controller sets routes, got helios and routes=ksp:4"),
        ({"detours": "h0-s4-h3"}, "circuits: its controller sets routes, got helios and detours"),
        ({"reroute": "5us"}, "circuits: can't go with reroute, got helios; leave out either"),
        ({"record": "traces"}, "circuits: can't go with record, got helios; leave out either"),
        ({"pfc": "64K:48K"}, "circuits: can't go with pfc, got helios; leave out either of them"),
        ({"net": "flow"}, "circuits: no fluid model covers circuits that change, got 'helios,per"),
    ],
)
def test_options_that_circuits_have_no_part_in_are_refused(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve({"topo": SMALL, "circuits": "helios", **options})


def test_nothing_is_skipped(tmp_path: Path) -> None:
    topo = "circuits,racks=4,hosts=8"  # of as many hosts that steps recur
    words = ("--topo", topo, "--circuits", "helios", "--algo", "ring", "--size", "1M")
    assert call("run", *words, "--skip", "1%", "-o", tmp_path / "run") == 0
    with (tmp_path / "run" / "results.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["skipped_percent"] == "0.0"
    assert "circuits change" in row["skipping"]


def test_the_phrase_on_circuits() -> None:
    assert list(tell(3, 75 * US, 0.8, 300, 100)) == [
        "circuits changed 3 times, dark for 75 us (duty 0.8000); 75.0 % of the bytes between "
        "switches went by circuits"
    ]
    assert list(tell(0, 0, None, 0, 0)) == []


# The study.

HEAD = "topo,circuits,algo,time_ps\n"
SWEEP = (
    f'"{circuits.BLOCKING}",,ring,{100 * US}\n"{circuits.NON_BLOCKING}",,ring,{40 * US}\n'
    f'"circuits,racks=8,hosts=4,optical=4","helios,dead=1us",ring,{50 * US}\n'
    f'"circuits,racks=8,hosts=4,optical=4","helios,dead=100us",ring,{150 * US}\n'
    f'"circuits,racks=8,hosts=4,optical=4,core=0",osa,ring,{80 * US}\n'
)


def sweep(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "sweep.csv"
    path.write_text(text)
    return path


def test_the_break_even_is_between_two_dead_times(tmp_path: Path) -> None:
    """Half way from 1 to 100 us on a logarithmic axis is 10 us."""
    times = circuits.read_times(sweep(tmp_path, HEAD + SWEEP))

    (found,) = circuits.swept(times)

    assert found.break_even_ps() == 10 * US
    assert [(round(gain, 2), round(share, 2)) for gain, share, _ in circuits.gains(times)] == [
        (2, 0.8),
        (0.67, 0.27),
        (1.25, 0.5),
    ]
    beyond = circuits.SweptTimes("ring", {US: 5, 2 * US: 6}, 7, 3)
    assert beyond.break_even_ps() is None


def test_the_break_even_after_no_dead_time_is_on_a_line() -> None:
    """A logarithmic axis has no 0: 7 is two thirds of the way from 5 to 8."""
    assert circuits.SweptTimes("ring", {0: 5, 30 * US: 8}, 7, 3).break_even_ps() == 20 * US


def test_a_sweep_in_which_a_run_has_several_times_is_refused(tmp_path: Path) -> None:
    """The last one counted of two sizes, or of two periods with one dead time."""
    again = f'"{circuits.BLOCKING}",,ring,{7 * US}\n'
    message = "hosts=4, , ring has several times; sweep one size and seed"
    with pytest.raises(ConfigError, match=message):
        circuits.read_times(sweep(tmp_path, HEAD + SWEEP + again))
    period = f'"circuits,racks=8,hosts=4,optical=4","helios,period=9us,dead=1us",ring,{7 * US}\n'
    with pytest.raises(ConfigError, match="ring must have one time for each dead time, got two"):
        circuits.swept(circuits.read_times(sweep(tmp_path, HEAD + SWEEP + period)))


def test_other_racks_have_no_part_in_the_break_even(tmp_path: Path) -> None:
    """Those without circuits are eight."""
    other = f'"circuits,racks=4,hosts=4,optical=4","helios,dead=1us",ring,{7 * US}\n'
    (found,) = circuits.swept(circuits.read_times(sweep(tmp_path, HEAD + SWEEP + other)))
    assert found.times_ps == {US: 50 * US, 100 * US: 150 * US}


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", HEAD + "x,y\n"])
def test_a_file_that_is_no_such_sweep_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="circuits: must"):
        circuits.swept(circuits.read_times(sweep(tmp_path, text)))


def test_the_study_draws_and_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure = tmp_path / "figure.png"
    circuits.circuits_command(sweep(tmp_path, HEAD + SWEEP), figure)
    assert "# ring: helios breaks even at 10 us of dead time" in capsys.readouterr().out
    assert figure.stat().st_size > 1000


def test_costs_are_told_for_each_part(capsys: pytest.CaptureFixture[str]) -> None:
    circuit_costs.circuit_costs_command(topo=SMALL, algo="ring", elements=50_000)
    said = capsys.readouterr().out
    for part in ("demand", "controller", "routes", "a stop"):
        assert said.count(f"  {part}\n") == 1
    assert PS_PER_MS == 1000 * US
