"""Trainings with compressed gradients: ways to train, methods, plans, and the command."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import run_any

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.compression.program import Ask, Post, TwoSided, drive
from ringleaf.collectives.compression.registry import COMPRESSORS, parse_compressor
from ringleaf.collectives.schedule import Schedule
from ringleaf.collectives.sparse.registry import SPARSE
from ringleaf.core.tensors import Array
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.drawing import read_results
from ringleaf.experiments.workloads.converge.carrier import ExchangeCarrier
from ringleaf.experiments.workloads.converge.kind import KIND
from ringleaf.experiments.workloads.converge.models import DealtModel
from ringleaf.experiments.workloads.converge.plan import make_program, read_plan
from ringleaf.experiments.workloads.converge.run import run as run_plan
from ringleaf.experiments.workloads.converge.scheme import SCHEMES, Setup
from ringleaf.networks.outcome import RunResult

TOPO = "leafspine,leaves=1,spines=0,hosts=4"
RATE = 0.05


@pytest.fixture(scope="module")
def carrier() -> Iterator[ExchangeCarrier]:
    made = ExchangeCarrier("ring", TOPO)
    yield made
    made.close()


def setup(
    carrier: ExchangeCarrier, method: str = "none", steps: int = 4, **settings: float
) -> Setup:
    carrier.take_cost()
    training = DealtModel("logistic", 4)
    return Setup(
        training,
        carrier,
        lambda rank, ranks: make_program(method, rank, ranks),
        RATE,
        steps,
        1_000_000,
        settings,
    )


def last(workload: str, made: Setup) -> Array:
    return [moment.parameters for moment in SCHEMES[workload](made)][-1]


def by_hand(steps: int) -> Array:
    """Plain SGD by the mean of four gradients."""
    training = DealtModel("logistic", 4)
    parameters = training.start()
    for step in range(steps):
        gradients = [training.gradient(parameters, rank, step) for rank in range(4)]
        parameters = parameters - np.float32(RATE) * np.mean(gradients, axis=0)
    return parameters


def test_synchronous_sgd_is_plain_sgd(carrier: ExchangeCarrier) -> None:
    assert np.allclose(last("sync", setup(carrier)), by_hand(4), atol=1e-5)


def test_local_sgd_of_one_step_and_fedavg_of_all_ranks_are_plain_sgd(
    carrier: ExchangeCarrier,
) -> None:
    assert np.allclose(last("local-sgd", setup(carrier, every=1)), by_hand(4), atol=1e-5)
    assert np.allclose(last("fedavg", setup(carrier, share=1, local=1)), by_hand(4), atol=1e-5)


def test_local_sgd_communicates_every_h_steps(carrier: ExchangeCarrier) -> None:
    moments = list(SCHEMES["local-sgd"](setup(carrier, steps=10, every=4)))
    assert [moment.step for moment in moments] == [4, 8, 10]
    assert carrier.take_cost().exchanges == 3


def test_ranks_that_are_not_drawn_add_nothing(carrier: ExchangeCarrier) -> None:
    """With one client and one step, the mean is that client's step."""
    made = setup(carrier, steps=1, share=0.25, local=1)
    training = made.training
    start = training.start()
    moment = next(iter(SCHEMES["fedavg"](made)))
    steps = [start - np.float32(RATE) * training.gradient(start, rank, 0) for rank in range(4)]
    assert sum(np.allclose(moment.parameters, each, atol=1e-6) for each in steps) == 1
    assert moment.step == 0.25


def test_gossip_keeps_the_mean(carrier: ExchangeCarrier) -> None:
    """Averaging with neighbours does not change the mean of all; gradients do, in the first step
    as in plain SGD, when all have the same parameters.
    """
    assert np.allclose(last("gossip", setup(carrier, steps=1)), by_hand(1), atol=1e-5)


def test_without_staleness_no_rank_runs_ahead(carrier: ExchangeCarrier) -> None:
    """With bound 0, n gradients take as long as the slowest rank's step at least; more with 1."""
    spans = []
    for staleness in (0, 3):
        made = setup(carrier, steps=4, staleness=staleness, spread=3)
        spans.append([moment.elapsed_ps or 0 for moment in SCHEMES["ssp"](made)])
    assert spans[0][0] >= 4_000_000  # rank 3 takes four times rank 0's microsecond
    assert spans[0][-1] >= 4 * 4_000_000
    assert spans[1][0] < spans[0][0]
    assert spans[1][-1] < spans[0][-1]


@pytest.mark.parametrize("method", ["topk:5%", "signsgd", "terngrad", "powersgd", "2x-efsign"])
def test_exchanges_of_methods_are_right(carrier: ExchangeCarrier, method: str) -> None:
    """And smaller than those of whole gradients, 650 elements: 2 (n - 1) / n of 2 600 bytes."""
    list(SCHEMES["sync"](setup(carrier, method, steps=3)))
    cost = carrier.take_cost()
    assert cost.wrong == 0
    assert 0 < cost.data_bytes.max() < 3 * 1.5 * 2600
    assert (cost.wire_bytes > cost.data_bytes).all()


def test_a_wrong_message_is_counted(
    carrier: ExchangeCarrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = carrier._network(None)
    usual = network.run

    def flip(schedule: Schedule, arrays: Sequence[Array]) -> RunResult:
        outcome = usual(schedule, arrays)
        arrays[1][0] += 1
        return outcome

    monkeypatch.setattr(network, "run", flip)
    carrier.take_cost()
    carrier.exchange([Ask(Collective.ALLREDUCE, np.ones(8, np.float32))] * 4)
    assert carrier.take_cost().wrong == 1
    carrier.exchange([Post({1: np.ones(3, np.float32)}), *[Post()] * 3])
    assert carrier.take_cost().wrong == 1


def test_messages_arrive_whatever_their_lengths(carrier: ExchangeCarrier) -> None:
    sent = [
        {to: np.arange(1, 2 + rank + to, dtype=np.float32) for to in range(4)} for rank in range(4)
    ]
    found = carrier.exchange([Post(each) for each in sent])
    for to, got in enumerate(found):
        assert isinstance(got, dict)
        assert sorted(got) == [rank for rank in range(4) if rank != to]
        for rank, words in got.items():
            message = sent[rank][to]
            assert words[: message.size].tolist() == message.tolist()
            assert not words[message.size :].any()
    cost = carrier.take_cost()
    # Rank 0 sends 2, 3 and 4 words.
    assert cost.data_bytes[0] == 4 * (2 + 3 + 4)


def test_two_sided_compression_keeps_the_rest_of_sums(carrier: ExchangeCarrier) -> None:
    """Inputs equal outputs and the rests that ranks and owners keep."""
    made = [TwoSided(parse_compressor("efsign"), rank, 4) for rank in range(4)]
    chance, came, went = np.random.default_rng(1), np.zeros(10), np.zeros(10)
    for step in range(3):
        values = [chance.standard_normal(10).astype(np.float32) for _ in range(4)]
        results = carrier.together(made, values, step)
        assert all(each.tobytes() == results[0].tobytes() for each in results)
        came, went = came + np.sum(values, axis=0), went + results[0]
    own = sum(each._mine.left[None] for each in made)
    owners = np.concatenate([each._sums.left[None] for each in made])
    assert np.allclose(went + own + 4 * owners, came, atol=1e-4)


def test_programs_must_ask_for_the_same() -> None:
    def steps(size: int):  # type: ignore[no-untyped-def]
        yield Ask(Collective.ALLREDUCE, np.zeros(size, np.float32))

    with pytest.raises(ConfigError, match="program: all ranks must ask for the same, got"):
        drive([steps(1), steps(2)], lambda asks: [])


def test_the_plan_has_every_compressor_collective_and_workload() -> None:
    cases = read_plan().cases
    names = {case.method.partition(":")[0] for case in cases}
    assert {*COMPRESSORS.shipped(), *SPARSE.shipped(), "none", "2x-onebit"} <= names
    assert {case.workload for case in cases} == set(SCHEMES)
    assert {"ring", "ps", "switchml", "ssar-split", "omnireduce"} <= {case.algo for case in cases}


def test_a_run_writes_a_table_and_figures(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        f"{{topo: '{TOPO}', compute: 1us, batch: 8, seed: 1, rate: {{logistic: 0.1}}, rates: {{}},"
        "settings: {topk: 1%}, parts: [{name: a, model: [logistic], method: [none, topk],"
        "algo: [ring], workload: [sync], steps: 2}]}"
    )
    given = {"converge": str(plan), "out": str(tmp_path / "out"), "wide": "yes"}
    printed: list[str] = []
    results = run_any(given, printed.append)
    assert [line.split()[2] for line in printed if line[0] != "#"] == ["none", "topk:1%"]
    assert "# wrong values: 0 OK" in printed
    with (tmp_path / "out" / "convergence.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 2 * 3
    assert [line["step"] for line in lines[:3]] == ["0", "1", "2"]
    assert float(lines[2]["time_us"]) > 2
    assert (tmp_path / "out" / "figures" / "a.png").is_file()
    times_us = [float(line["time_us"]) for line in lines[2::3]]
    assert [row.time_ps / 1e6 for row in results.rows] == pytest.approx(times_us, abs=5e-4)
    again = read_results(tmp_path / "out")
    assert again.rows == results.rows
    slower = run_any({**given, "rate": "1G"}, drawn=False)  # another network: the same losses
    assert slower.rows[0].time_ps > results.rows[0].time_ps
    assert slower.rows[0].loss == results.rows[0].loss
    with pytest.raises(ConfigError, match="convergence: unknown part, got 'b'; valid: a"):
        run_any({**given, "parts": "b"})


PLAN: dict[str, Any] = {
    "topo": TOPO,
    "compute": "1us",
    "batch": 8,
    "seed": 1,
    "rate": {"logistic": 0.1},
    "parts": [
        {"name": "a", "model": ["logistic"], "method": ["none"], "algo": ["ring"]}
        | {"workload": ["sync"], "steps": 2}
    ],
}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"batch": None}, "batch: .* got None"),
        ({"batch": "8"}, "batch: .* integer, got '8'"),
        ({"batch": 0}, "batch: .* greater than or equal to 1, got 0"),
        ({"compute": 20}, "compute: .* string, got 20"),
        ({"compute": "20 furlongs"}, "compute"),
        ({"rate": {"logistic": -1}}, r"rate\.logistic: .* greater than 0, got -1"),
        ({"rate": {"cnn": 0.1}}, "rate: must have logistic, got cnn"),
        ({"parts": [{**PLAN["parts"][0], "steps": None}]}, r"parts\.0\.steps: .* got None"),
        ({"parts": [{"name": "a"}]}, r"parts\.0\.model: Field required, got \{'name': 'a'\}"),
        ({"parts": [{**PLAN["parts"][0], "model": ["vgg"]}]}, "unknown model, got 'vgg'"),
        ({"setings": {}}, "setings: Extra inputs are not permitted"),
        ({"settings": {"tokp": "1%"}}, "settings: unknown method, got 'tokp'"),
        ({"rates": {"onebitadam": 0.1}}, "rates: unknown method, got 'onebitadam'"),
        ({"rate": {"logistic": 0.1, "vgg": 0.1}}, "rate: unknown model, got 'vgg'"),
        (
            {"parts": [{**PLAN["parts"][0], "method": ["none", "fast"]}]},
            "part a: method: unknown compressor, got 'fast'",
        ),
        (
            {"parts": [{**PLAN["parts"][0], "method": ["none:15"]}]},
            "part a: method: none has no settings, got 'none:15'; take none",
        ),
        (
            {"parts": [{**PLAN["parts"][0], "method": ["none", "topk:1%"], "workload": ["ssp"]}]},
            "part a: ranks of ssp send messages as they are, got method 'topk:1%'; take none",
        ),
        (
            {"parts": [{**PLAN["parts"][0], "method": ["signsgd"], "workload": ["gossip"]}]},
            "part a: ranks of gossip send messages as they are, got method 'signsgd'; take none",
        ),
    ],
)
def test_a_wrong_plan_is_refused_by_place(
    change: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps({**PLAN, **change}))
    with pytest.raises(ConfigError, match=f"convergence {path}: {complaint}"):
        read_plan(path)


def test_the_seed_is_that_of_the_options_if_they_have_one(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps({**PLAN, "seed": 7}))
    for options, seed in (({}, 7), ({"seed": "5"}, 5)):
        spec = KIND.resolve({"converge": str(path), **options})
        assert spec.seed == seed
        assert KIND.experiment(spec)._plan.seed == seed


def test_a_setting_may_be_a_number(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    part = {**PLAN["parts"][0], "method": ["qsgd"]}
    path.write_text(json.dumps({**PLAN, "parts": [part], "settings": {"qsgd": 15}}))
    assert [case.method for case in read_plan(path).cases] == ["qsgd:15"]


def test_a_method_with_a_setting_of_its_own_has_the_plan_s_rate(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    part = {**PLAN["parts"][0], "method": ["topk:5%", "topk", "none"]}
    more = {"parts": [part], "settings": {"topk": "1%"}, "rates": {"topk": 0.02}}
    path.write_text(json.dumps({**PLAN, **more}))
    rates = {case.method: case.rate for case in read_plan(path).cases}
    assert rates == {"topk:5%": 0.02, "topk:1%": 0.02, "none": 0.1}


def test_no_training_depends_on_those_before_it(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    part = {**PLAN["parts"][0], "method": ["none", "topk:1%", "terngrad"], "steps": 3}
    path.write_text(json.dumps({**PLAN, "topo": f"{TOPO},rate=10G", "parts": [part]}))
    plan = read_plan(path)
    one_by_one = [curve for case in plan.cases for curve in run_plan(replace(plan, cases=(case,)))]
    for together, alone in zip(run_plan(plan), one_by_one, strict=True):
        assert together.time_us == alone.time_us


def test_a_header_says_where_the_algorithm_has_no_part(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    parts = [
        {**PLAN["parts"][0], "algo": ["switchml"], "method": ["none", "2x-efsign", "gtopk:1%"]},
        {**PLAN["parts"][0], "algo": ["ring", "switchml"], "workload": ["gossip", "ssp"]},
    ]
    path.write_text(json.dumps({**PLAN, "parts": parts}))
    results = KIND.experiment(KIND.resolve({"converge": str(path)})).results
    assert "no allreduce, so no part for algo: gossip, ssp, 2x-efsign, gtopk:1%" in results.about
    path.write_text(json.dumps(PLAN))
    results = KIND.experiment(KIND.resolve({"converge": str(path)})).results
    assert not any("no part" in line for line in results.about)


def test_a_header_tells_what_no_algorithm_of_the_plan_looks_at(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    spines = "leafspine,leaves=2,spines=2,hosts=2"
    asked = {"ecn": "5", "ina_cc": "dctcp", "trees": "3"}

    def about(*algos: str) -> list[str]:
        parts = [{**PLAN["parts"][0], "algo": [*algos]}]
        path.write_text(json.dumps({**PLAN, "topo": spines, "parts": parts}))
        lines = KIND.experiment(KIND.resolve({"converge": str(path), **asked})).results.about
        return [line for line in lines if "without effect" in line or "trees" in line]

    why = "(no algorithm adds in switches); ecn (marks mean nothing to cc=fixed)"
    assert about("ring") == [f"without effect here: ina_cc, trees {why}"]
    assert about("ring", "panama") == ["trees=3: panama has 2, one for each of the best roots"]


@pytest.mark.parametrize("net", ["flow", "mininet"])
def test_trainings_of_a_plan_are_in_virtual_time_alone(net: str) -> None:
    message = f"net: can't carry this workload, got '{net}'; take net=virtual$"
    with pytest.raises(ConfigError, match=message):
        KIND.resolve({"converge": "all", "net": net})


def test_methods_are_refused_before_any_training(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    parts = [{**PLAN["parts"][0], "method": ["none", "gtopk:1%"]}]
    path.write_text(json.dumps({**PLAN, "parts": parts}))
    KIND.experiment(KIND.resolve({"converge": str(path)}))
    with pytest.raises(ConfigError, match="gtopk: ranks must be a power of two, got 3"):
        KIND.experiment(KIND.resolve({"converge": str(path), "hosts": "3"}))


def test_the_rate_that_hosts_inject_is_that_of_links(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps(PLAN))
    results = [
        run_any({"converge": str(path), "out": str(tmp_path / name), name: "1G"}, drawn=False)
        for name in ("inject", "rate")
    ]
    assert results[0].rows == results[1].rows
    assert "1 Gbit/s" in results[0].about[0]


@pytest.mark.parametrize(
    ("method", "complaint"),
    [
        ("2x-powersgd", "method: 2x-powersgd: sums can't be compressed by it"),
        ("fast", "method: unknown compressor, got 'fast'"),
    ],
)
def test_unknown_methods_are_refused(method: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        make_program(method, 0, 4)


def test_only_allreduces_can_be_chosen() -> None:
    with pytest.raises(ConfigError, match="algo: must be an allreduce, got 'alltoall'"):
        ExchangeCarrier("alltoall", TOPO)


def test_all_algorithms_are_those_that_add_up_any_elements() -> None:
    """`tern` and `vote` are given those of one compressor, and a plan has several methods."""
    algos = {case.algo for case in read_plan().cases if case.part == "collectives"}
    assert {"ring", "switchml", "atp", "omnireduce"} <= algos
    assert not {"tern", "vote"} & algos


def test_a_training_that_is_named_twice_is_done_once(tmp_path: Path) -> None:
    """`topk` has the setting of the plan, so it is `topk:1%`."""
    path = tmp_path / "plan.yaml"
    part = {**PLAN["parts"][0], "method": ["none", "topk", "topk:1%", "none"]}
    path.write_text(json.dumps({**PLAN, "settings": {"topk": "1%"}, "parts": [part, part]}))
    assert [case.method for case in read_plan(path).cases] == ["none", "topk:1%"]


def test_a_training_of_a_part_has_one_number_of_steps(tmp_path: Path) -> None:
    """Results know it by its part, model, method, algorithm and scheme: courses were one."""
    path = tmp_path / "plan.yaml"
    part = PLAN["parts"][0]
    path.write_text(json.dumps({**PLAN, "parts": [part, {**part, "name": "b", "steps": 3}]}))
    assert [case.steps for case in read_plan(path).cases] == [2, 3]
    path.write_text(json.dumps({**PLAN, "parts": [part, {**part, "steps": 3}]}))
    message = "part a: logistic-none-ring-sync must have one number of steps, got 2 and 3; call"
    with pytest.raises(ConfigError, match=message):
        read_plan(path)


def test_faults_that_come_after_every_exchange_are_told(tmp_path: Path) -> None:
    """Each exchange begins at 0; one of a logistic regression takes less than 1 ms."""
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps(PLAN))
    given = {"converge": str(path), "figures": "no", "wide": "yes"}
    faults = "h0-s0 rate 1G at 1ms, h1-s0 rate 1G at 1ns"
    printed: list[str] = []
    run_any({**given, "faults": faults, "out": str(tmp_path / "out")}, printed.append)
    late = "h0-s0 rate 1G at 1ms: too late for logistic-none-ring-sync"
    assert [line for line in printed if "too late" in line] == [f"# {late}"]
    assert "# faults happen in each exchange, at times after its start" in printed
    assert late in read_results(tmp_path / "out").foot()


def test_faults_that_are_there_from_the_start_are_not_told() -> None:
    given = {"converge": "all", "parts": "sparse", "faults": "h0-s0 rate 1G"}
    about = KIND.experiment(KIND.resolve(given)).results.about
    assert not any("each exchange" in line for line in about)
