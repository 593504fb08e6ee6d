"""A system brings all that others need to know of it, and two may share switches."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.shipped import P4, built_program, built_programs
from ringleaf.errors import ConfigError
from ringleaf.ina.atp.system import Atp
from ringleaf.ina.registry import SYSTEMS, layer_modules, program_of
from ringleaf.ina.switchml.system import SwitchML
from ringleaf.ina.systems import Costs, ResourceShare, System
from ringleaf.topologies.registry import build
from ringleaf.topologies.ways import TopologyRoutes


class Noted(SwitchML):
    """SwitchML by another name, which notes its jobs' shares of the switches."""

    name = "noted"

    def __init__(self) -> None:
        self.shares: list[ResourceShare] = []

    def join(self, *given: Any) -> Any:
        self.shares.append(given[-1].share)
        return super().join(*given)


class Bare(System):
    """The least that a system must have."""

    name = "bare"

    def program(self, lanes: int) -> str:
        return "forward"

    def join(self, *given: Any) -> Any:
        raise NotImplementedError

    def error_bound(self, tensors: Any, lanes: int) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("names", "program"),
    [
        ([], "plain"),
        (["omnireduce"], "plain"),
        (["switchml"], "switchml-64"),
        (["omnireduce", "atp"], "atp-64"),
        (["switchml", "atp"], "atp-switchml-64"),
        (["atp", "omnireduce", "switchml"], "atp-switchml-64"),
    ],
)
def test_jobs_programs_are_joined(names: list[str], program: str) -> None:
    assert program_of([SYSTEMS[name] for name in names], 64, "plain") == program


def test_systems_of_one_program_need_no_other() -> None:
    assert program_of([Noted(), SwitchML()], 256) == "switchml-256"
    assert program_of([Noted(), Atp()], 256) == "atp-switchml-256"


def test_programs_that_nothing_joins_are_refused() -> None:
    class Other(Noted):
        name = "other"

        def program(self, lanes: int) -> str:
            return "other"

    with pytest.raises(ConfigError, match=r"no P4 program serves .* got \['atp', 'other'\]"):
        program_of([Other(), Atp()], 64)


def test_systems_of_one_program_share_its_slots() -> None:
    from ringleaf.networks.groups import Group
    from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork

    one, other = Noted(), Noted()
    graph = build("leafspine,leaves=1,spines=1,hosts=4")
    groups = [Group(1, ("h0", "h1"), (), one), Group(2, ("h2", "h3"), (), other)]
    VirtualNetwork(graph, NetworkOptions(lanes=64), groups=groups).close()

    assert [*one.shares, *other.shares] == [ResourceShare(0, 2), ResourceShare(1, 2)]


def test_the_least_system_has_an_answer_to_all() -> None:
    bare = Bare()
    ways = TopologyRoutes(build("leafspine,leaves=1,spines=1,hosts=2"))

    assert (bare.algorithm.title, bare.algorithm.in_network) == ("bare", True)
    assert bare.algorithm is bare.algorithm
    assert bare.costs == Costs()
    assert bare.reader() is None
    assert (bare.examples(), bare.rounds()) == ({}, {})
    from ringleaf.ina.loads import Aggregation

    # 1,000 float32 take 320 ns at 100 Gbit/s, and the way from host to host 2 us.
    needs = bare.demand(ways, Aggregation((0, 1), (), 1000, is_float=True, lanes=64))
    assert (needs.chain_ps, needs.loads.least_ps()) == (2_000_000, 320_000)


def test_ours_bring_programs_layers_and_algorithms() -> None:
    assert SYSTEMS.shipped() == [
        "a2tp",
        "atp",
        "esa",
        "netreduce",
        "omnireduce",
        "omnireduce-switch",
        "panama",
        "sharp",
        "sharp-quantum2",
        "switchml",
        "tern",
        "vote",
    ]
    with_layers = (  # the others have packets of these
        *("atp", "netreduce", "omnireduce", "omnireduce_switch", "switchml", "tern", "vote"),
    )
    assert layer_modules() == [f"ringleaf.ina.{name}.layers" for name in with_layers]
    for name in SYSTEMS.shipped():
        system = SYSTEMS[name]
        assert system.name == name
        assert ALGORITHMS[name] is system.algorithm
        for target in system.builds:
            assert target.name in built_programs()
            assert (P4 / target.source).is_file()
        assert set(system.joint.values()) <= {target.name for target in system.builds}
        assert set(system.examples()) == {target.name for target in system.builds}
        assert set(system.rounds()) == set(system.examples()) - set(system.joint.values())


class Brought(Bare):
    """A system of another package, with a P4 program of its own."""

    name = "a-brought-one"

    def __init__(self, program: str) -> None:
        self.own = program

    def examples(self) -> Any:
        mine = SwitchML().examples()["switchml-64"]
        return {self.own: mine, "switchml-64": lambda: replace(mine(), story="no")}

    def rounds(self) -> Any:
        return {self.own: SwitchML().rounds()["switchml-64"]}


@pytest.fixture
def brought(tmp_path: Path) -> Iterator[Path]:
    """The path of a P4 program of another package's system."""
    path = tmp_path / "mine.json"
    shutil.copy(built_program("switchml-64"), path)
    SYSTEMS.added["a-brought-one"] = Brought(str(path.with_suffix("")))
    yield path
    del SYSTEMS.added["a-brought-one"]


def test_a_system_brings_its_programs_examples_and_loads(brought: Path) -> None:
    from bench import loads
    from ringleaf.experiments.walk.examples import example

    ours = example("switchml-64")
    assert ours.story.endswith("this one completes the sum")  # no other package replaces ours
    found = example("mine")
    assert (found.packets, found.entities) == (ours.packets, ours.entities)
    assert {"mine", "switchml-64"} <= set(loads.names())
    mine, load = loads.load("mine"), loads.load("switchml-64")
    assert mine == replace(load, path=brought)


def test_systems_are_described_without_anything_that_takes_long() -> None:
    code = (
        "import sys\nfrom ringleaf.ina.registry import SYSTEMS\n"
        "assert [each.costs for each in SYSTEMS.values()]\n"
        "print({'torch', 'numba', 'numpy', 'networkx', 'finsy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"


MIB = 1 << 20


@pytest.mark.parametrize(
    ("names", "costs"),
    [
        (("a2tp", "atp", "esa"), (6 * MIB, 400_000, 0.9)),
        (("netreduce",), (4 * MIB, 450_000, 1.6)),
        (("omnireduce",), (MIB // 16, 800_000, 2.0)),
        (
            (
                *("omnireduce-switch", "panama", "sharp", "sharp-quantum2"),
                *("switchml", "tern", "vote"),
            ),
            (4 * MIB, 550_000, 1.3),
        ),
        ((), (MIB, 400_000, 2.0)),
    ],
)
def test_estimates_take_what_was_measured(
    names: tuple[str, ...], costs: tuple[int, float, float]
) -> None:
    """A switch's registers, arrivals in a second, and packets per packet that a worker sends."""
    for costed in (SYSTEMS[name].costs for name in names) if names else [Costs()]:
        assert (costed.switch_bytes, costed.hops_per_s, costed.packets) == costs


@pytest.mark.parametrize(
    ("of", "entries", "index", "moving", "cut", "exchanged"),
    [
        (1, None, 0, 0, (0, 100), 0),
        (3, None, 0, 0, (0, 33), 0),
        (3, None, 1, 2, (33, 33), 66),
        (3, None, 2, 3, (66, 34), 100),
        (3, 10, 2, 1, (6, 4), 3),
        (3, 1000, 2, 3, (66, 34), 100),
    ],
)
def test_shares_by_hand(
    of: int, entries: int | None, index: int, moving: int, cut: tuple[int, int], exchanged: int
) -> None:
    """Of 100 entries of a switch, or of fewer."""
    share = ResourceShare(index, of, entries, moving)
    assert share.cut(100) == cut
    assert share.exchanged(100) == exchanged


@pytest.mark.parametrize(
    ("flag", "names"),
    [
        (
            "is_forgetful",  # SwitchML's workers keep no results, and so do those made from it
            {
                *("netreduce", "omnireduce-switch", "panama", "sharp", "sharp-quantum2"),
                *("switchml", "tern", "vote"),
            },
        ),
        ("leases", {"a2tp", "atp", "esa", "panama", "switchml", "tern"}),
        ("has_windows", {"a2tp", "atp", "esa", "panama"}),
        ("has_trees", {"panama"}),
        ("moves", {"a2tp", "atp", "esa", "switchml"}),
        (
            "rebuilds",
            {
                *("a2tp", "atp", "esa", "omnireduce-switch", "panama", "sharp", "sharp-quantum2"),
                *("switchml", "tern", "vote"),
            },
        ),
        ("deals_on", {"a2tp", "atp", "esa", "omnireduce", "panama"}),
    ],
)
def test_systems_say_what_they_can(flag: str, names: set[str]) -> None:
    assert {name for name in SYSTEMS.shipped() if getattr(SYSTEMS[name], flag)} == names
    assert getattr(Bare(), flag) is False


@pytest.mark.parametrize(
    ("name", "added"),
    [("omnireduce-switch", 4 * 64), ("tern", 576 - 192), ("vote", 576 - 96), ("switchml", 0)],
)
def test_a_switch_may_add_bytes_to_a_packet(name: str, added: int) -> None:
    """Values to one without any, or counts of six bits to elements of two or one."""
    assert SYSTEMS[name].added_bytes(64) == added
    assert Bare().added_bytes(64) == 0
