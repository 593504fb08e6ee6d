from contextlib import suppress
from pathlib import Path

import pytest

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.marking import Marking, from_depth
from ringleaf.errors import ConfigError, RingleafError
from ringleaf.experiments.runs.registry import WORKLOADS
from ringleaf.experiments.runs.request import resolve as request_of
from ringleaf.experiments.runs.spec_file import read_cases
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.experiments.workloads.collective import spec as collective
from ringleaf.experiments.workloads.collective.kind import OPTIONS, make_command, resolve, run_name
from ringleaf.experiments.workloads.jobs.spec import JobsSpec


def test_defaults_compare_all_six_over_a_sweep() -> None:
    spec = resolve({})

    assert spec.topo == "fattree"
    assert spec.algos == collective.ALGORITHMS
    assert set(spec.algos) <= set(ALGORITHMS)
    assert spec.sizes_bytes == tuple(1024 * 4**i for i in range(8))
    assert (spec.rate_bps, spec.delay_ps, spec.dtype) == (100_000_000_000, 1_000_000, "float32")
    assert spec.out == Path("runs/fattree")


def test_sweep_ends_at_or_below_its_maximum() -> None:
    assert resolve({"min": "8", "max": "100", "factor": "3"}).sizes_bytes == (8, 24, 72)


def test_listed_sizes_keep_their_order() -> None:
    assert resolve({"size": "1MB,4KiB"}).sizes_bytes == (1_000_000, 4096)
    assert resolve({"size": "64K,4,65536,64KiB"}).sizes_bytes == (65536, 4)  # each once


@pytest.mark.parametrize(("size", "rate"), [("4T", "1M"), ("1000000T", "100G")])
def test_sizes_whose_times_overflow_are_refused(size: str, rate: str) -> None:
    # 4 TiB at 1 Mbit/s are 3.5e7 s, which is 3.5e19 ps; 2^63 is 9.2e18.
    with pytest.raises(ConfigError, match=f"size: needs more than 100000 s at .*, got '{size}'"):
        resolve({"size": size, "rate": rate, "net": "flow", "data": "none"})
    assert resolve({"size": "100T", "rate": "100G"}).sizes_bytes == (100 << 40,)


def test_repeated_algorithms_run_once() -> None:
    assert resolve({"algo": "ring, switchml,ring"}).algos == ("ring", "switchml")


def test_repeated_counts_and_entries_run_once() -> None:
    typed = {"jobs": [{"model": "resnet50"}] * 2, "counts": [2, 1, 1], "entries": "64, 64,128"}
    spec = JobsSpec.model_validate(typed)
    assert (spec.counts, spec.entries) == ((2, 1), (64, 128))


def test_every_option_reaches_the_spec() -> None:
    spec = resolve(
        {
            "hosts": "8", "rate": "25G", "delay": "500ns", "loss": "0.1%", "duplicate": "0.01",
            "reorder": "1%", "seed": "7", "dtype": "int32", "lanes": "64", "slots": "128",
            "mtu": "1024", "window": "9", "routes": "ecmp", "ecn": "65", "queue": "1MiB",
            "pcap": "yes", "out": "here", "switch_delay": "400ns", "host_delay": "0.6us",
            "message_overhead": "1us",
        }
    )  # fmt: skip

    assert (spec.hosts, spec.rate_bps, spec.delay_ps) == (8, 25_000_000_000, 500_000)
    assert (spec.loss, spec.duplicate, spec.reorder) == (0.001, 0.01, 0.01)
    assert (spec.seed, spec.dtype, spec.lanes, spec.slots) == (7, "int32", 64, 128)
    assert (spec.mtu_bytes, spec.queue_bytes, spec.pcap) == (1024, 1 << 20, True)
    assert (spec.window, spec.routes, spec.ecn) == (9, "ecmp", from_depth(65))
    assert (spec.switch_delay_ps, spec.host_delay_ps) == (400_000, 600_000)
    assert spec.message_overhead_ps == 1_000_000
    assert spec.inject_bps is None
    assert resolve({"inject": "40G"}).inject_bps == 40 * 10**9
    assert spec.out == Path("here")


def test_marks_of_controllers_that_count_bytes_follow_the_rate_and_the_packets() -> None:
    """By hand: DCQCN's 5 and 200 kB at 40 Gbit/s, with a hundredth of packets of 1 kB."""
    given = {"rate": "40G", "mtu": "1024", "cc": "dcqcn"}
    assert resolve(given).ecn == Marking(5, 195, 0.01)
    assert resolve({**given, "cc": "dctcp"}).ecn == from_depth(96)
    assert resolve({**given, "ecn": "7"}).ecn == from_depth(7)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        (
            "algo",
            "ringz",
            r"algo: unknown algorithm, got 'ringz'; did you mean 'ring'. valid: a2tp, ",
        ),
        ("algo", ",", r"algo: nothing to run, got ','; valid: a2tp"),
        ("size", "big", r"size: not understood, got 'big'; write it like 4MiB"),
        ("size", "0", r"size: must be whole elements of 4 bytes and at least one, got '0'"),
        ("size", "6", r"size: must be whole elements of 4 bytes and at least one, got '6'"),
        ("min", "2", r"min: must be whole elements of 4 bytes"),
        ("max", "512", r"max: must not be below min \(1K\), got '512'"),
        ("factor", "1", r"factor: must be at least 2, got '1'"),
        ("factor", "1.5", r"factor: must be a whole number, got '1.5'"),
        ("hosts", "1", r"hosts: must be at least 2, got '1'"),
        ("hosts", "999999", r"hosts: must be at most 4096, got '999999'"),
        ("window", "8388608", r"window: must be at most 8388607, got '8388608'"),
        ("hosts", "many", r"hosts: must be a whole number, got 'many'"),
        ("rate", "fast", r"rate: not understood, got 'fast'; write it like 100Gbps"),
        ("rate", "0", r"rate: must be above 0, got '0'"),
        ("delay", "5", r"delay: not understood, got '5'; write it like 1us"),
        ("switch_delay", "5", r"switch_delay: not understood, got '5'; write it like 1us"),
        ("host_delay", "-1us", r"host_delay: not understood, got '-1us'"),
        ("message_overhead", "x", r"message_overhead: not understood, got 'x'"),
        ("inject", "0", r"inject: must be above 0, got '0'"),
        ("loss", "100%", r"loss: must be in \[0, 1\), got '100%'"),
        ("duplicate", "x", r"duplicate: not understood, got 'x'"),
        ("reorder", "-1", r"reorder: not understood, got '-1'"),
        ("seed", "-1", r"seed: must be at least 0, got '-1'"),
        (
            "dtype",
            "float16",
            r"dtype: unknown element type, got 'float16'; did you mean 'float32'. valid: float",
        ),
        ("lanes", "32", r"lanes: unknown value, got '32'; valid: 64, 256"),
        ("slots", "0", r"slots: must be at least 1, got '0'"),
        ("mtu", "1500", r"mtu: unknown value, got '1500'; valid: 256, 512, 1024, 2048, 4096"),
        ("window", "0", r"window: must be at least 1, got '0'"),
        ("routes", "best", r"routes: unknown way, got 'best'; valid: dealt, ecmp"),
        ("routes", "grid", r"routes: grid is for one collective with parameter servers, got s"),
        ("adds", "9G", r"adds: is for routes=grid, got 9G and 'dealt'"),
        ("trees", "0", r"trees: must be at least 1, got '0'"),
        ("ina_cc", "x", r"ina_cc: unknown window, got 'x'; valid: a2tp, a2tp-ns3, aimd, dctcp"),
        (
            "detours",
            "h0-h1",
            "detours: must be a host, switches and a host, got 'h0-h1'; like h3-s1-h8",
        ),
        ("detours", "h0-s1-h2,s1", "detours: must be a host, switches and a host, got 's1'"),
        ("ecn", "x", r"ecn: must be a depth in packets, or two and a probability, got 'x'"),
        ("queue", "-1", r"queue: not understood, got '-1'"),
        ("switch", "bmv2", r"switch: needs net=mininet, got 'bmv2'"),
        ("scale", "0", "scale: must be at least 1, got '0'"),
        ("net", "real", r"net: unknown network, got 'real'; valid: virtual, flow, mininet"),
        ("pcap", "maybe", r"pcap: unknown answer, got 'maybe'; valid: yes, "),
        ("color", "red", r"options: unknown option, got 'color'; valid: topo, algo"),
    ],
)
def test_wrong_values_are_named_with_the_valid_ones(option: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve({option: value})


@pytest.mark.parametrize(("text", "expected"), [("y", True), ("N", False), ("On", True)])
def test_answers_may_be_a_letter(text: str, expected: bool) -> None:
    assert resolve({"pcap": text}).pcap is expected


def test_live_networks_are_slower_unless_told_otherwise() -> None:
    assert resolve({}).scale == 1
    assert resolve({"net": "mininet"}).scale == 1000
    assert resolve({"net": "mininet", "switch": "bmv2"}).scale == 100_000
    live = resolve({"net": "mininet", "switch": "bmv2", "scale": "10"})
    assert (live.net, live.switch, live.scale) == ("mininet", "bmv2", 10)


def test_injection_and_rate_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="inject: can't go with rate, got 40G; give either"):
        resolve({"inject": "40G", "rate": "100G"})


def test_size_and_sweep_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="size: can't go with max, got '1K'; give either"):
        resolve({"size": "1K", "max": "1M"})


def test_yaml_is_read_as_if_typed(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("topo: leafspine\nsize: [1K, 1M]\nseed: 3\npcap: true\nloss: 0.1%\n")

    (case,) = read_cases(path)
    spec = resolve(case)

    assert (spec.topo, spec.sizes_bytes, spec.seed, spec.pcap, spec.loss) == (
        "leafspine", (1024, 1 << 20), 3, True, 0.001,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- ring\n", r"spec .*: must be a mapping like 'topo: fattree', got list"),
        ("topo: [\n", r"spec .*: not YAML: "),
        (
            "topology: fattree\n",
            r"spec .*: topology is called topo here, got 'topology'",
        ),
    ],
)
def test_wrong_yaml_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_cases(path)


def test_missing_spec_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"spec: can't read, got '.*none.yaml': No such file"):
        read_cases(tmp_path / "none.yaml")


def test_run_directory_says_what_is_not_default() -> None:
    assert run_name({}) == "fattree"
    assert run_name({"seed": "1", "topo": "bcube,n=4", "loss": "0.1%"}) == "bcube,n=4-loss=0.1%"
    assert run_name({"topo": "../x"}) == ".._x"


def test_long_run_directories_are_cut_and_stay_apart() -> None:
    names = {run_name({"size": ",".join(["1K"] * 100 + [last])}) for last in ("1M", "2M")}

    assert len(names) == 2
    assert max(map(len, names)) < 200


def test_command_repeats_the_options() -> None:
    assert make_command({"topo": "fattree,k=8", "loss": "1 %", "out": "x"}) == (
        "make exp TOPO=fattree,k=8 LOSS='1 %'"
    )


def test_defaults_as_shown_are_valid() -> None:
    sweep = ("size", "out", "hosts", "slots", "window", "queue", "inject")
    assert resolve({name: o.default for name, o in OPTIONS.items() if name not in sweep}) == (
        resolve({})
    )


TOO_LONG = (
    "9" * 300,
    "x" * 300,
    "x" * 5000,
    f"{'x' * 300}.p4",
    f"s0={'x' * 300}.json",
    "a/" * 3000,
)
"""Texts that no file can have as its name."""


@pytest.mark.parametrize(
    ("key", "name"),
    [(kind.key, name) for kind in WORKLOADS.values() for name in kind.spec.names().values()],
)
def test_no_text_is_too_long_to_be_refused_in_words_of_ours(key: str, name: str) -> None:
    """Files are looked for by such texts; the system refuses to look for these."""
    for text in TOO_LONG:
        options = {key: text, name: text} if key else {name: text}
        with suppress(RingleafError):
            request = request_of(options)
            if name == "script":
                request.kind.check(request.spec, count_nodes(request.spec))


@pytest.mark.parametrize(
    ("name", "text"),
    [("loss", "0.1%,1%"), ("rate", "10G, 25G"), ("topo", "fattree,torus2d"), ("mtu", "256,512")],
)
def test_several_values_of_one_run_are_told_the_way_to_several_runs(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: one run has one value, got '{text}'; a spec"):
        NetworkSpec.read({name: text})
    with pytest.raises(ConfigError, match="one run has one value"):
        NetworkSpec.read({name: text.split(",")})


@pytest.mark.parametrize(
    ("name", "text"), [("loss", "0.1%,x"), ("mtu", "256,"), ("program", "s0=a.p4,s0=a.p4")]
)
def test_a_wrong_value_among_several_is_just_wrong(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: (?!one run)"):
        NetworkSpec.read({name: text})
