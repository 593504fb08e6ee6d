"""Packages whose code fails: one line names them and the line of their code; all else goes on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from notices import without_notice

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.collective import Collective
from ringleaf.core.plugins import PluginError, failure, find_plugins
from ringleaf.core.registry import Registry
from ringleaf.errors import ConfigError, ScheduleError
from ringleaf.experiments.commands.cli import perform

MEMBER = """
from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.collective import Collective
from ringleaf.errors import ScheduleError

def build(request):
    {call}

ALGORITHM = Algorithm("bad", Collective.ALLREDUCE, "bad", build, build)
"""


class Package:
    """A package in a folder on the path, whose module has a text of its own each time."""

    def __init__(self, folder: Path, points: str) -> None:
        self.module = folder / "failing.py"
        info = folder / "failing-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: failing\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(points)

    def says(self, text: str) -> None:
        self.module.write_text(text)
        sys.modules.pop("failing", None)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two texts may be of one second
    monkeypatch.setattr("ringleaf.core.plugins._loaded", set())
    monkeypatch.setattr("ringleaf.core.plugins._warned", set())
    return Package(tmp_path, "[ringleaf.algorithms]\nbad = failing:ALGORITHM\n")


def algorithms() -> Registry[Algorithm]:
    return Registry(
        "algorithms", "algorithm", "collectives/algorithms", "ALGORITHM", kind=Algorithm
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\nraise ValueError('a\\nb')", r"ValueError: a b at .*failing\.py:2;"),
        ("def f(:", r"SyntaxError: .* at .*failing\.py:1;"),
        ("import nothing_of_that_name", r"ModuleNotFoundError: .* at .*failing\.py:1;"),
        ("import sys\n\nsys.exit(3)", r"SystemExit: 3 at .*failing\.py:3;"),
        ("", r"AttributeError: .* has no attribute 'ALGORITHM';"),
        ("ALGORITHM = 3", r"must be an Algorithm, got int;"),
    ],
)
def test_a_package_that_can_not_be_loaded_is_one_line(
    package: Package, text: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    package.says(text)
    members = algorithms()

    where = "algorithm bad: can't be loaded, got 'failing:ALGORITHM' of package failing 1.2: "
    with pytest.raises(PluginError, match=f"^{re.escape(where)}{told} mend or remove") as failed:
        members.find("bad")
    assert "\n" not in str(failed.value)
    assert members["ring"].collective is Collective.ALLREDUCE

    assert "bad" not in dict(members.items())
    assert all(isinstance(each, Algorithm) for each in members.values())
    assert capsys.readouterr().err.count("\n") == 1  # the warning, once


def test_an_error_of_ours_is_told_as_the_package_has_raised_it(package: Package) -> None:
    package.says(
        "from ringleaf.errors import ConfigError\nraise ConfigError('bad: needs a licence')"
    )
    with pytest.raises(ConfigError, match=r"^bad: needs a licence$"):
        algorithms().find("bad")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("return {}['x']", "KeyError: 'x'"),
        ("raise OSError(2, 'No such file', 'data')", "FileNotFoundError: [Errno 2] No such file"),
        ("return int('seven')", "ValueError: invalid literal for int()"),
        ("raise SystemExit(4)", "SystemExit: 4"),
        ("assert False", "AssertionError"),
    ],
)
def test_a_package_that_fails_when_it_is_called_is_one_line(
    package: Package, call: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    package.says(MEMBER.format(call=call))
    assert verify_bad() == 1
    said = capsys.readouterr().err
    assert said.startswith(f"ringleaf: package failing 1.2: {told}")
    assert re.search(r" at .*failing\.py:7; mend or remove that package\n$", said)
    assert said.count("\n") == 1


def verify_bad() -> int:
    """Verify the package's algorithm, which the process's registry does not know yet."""
    from ringleaf.collectives.registry import ALGORITHMS

    [plugin] = [each for each in find_plugins("algorithms") if each.name == "bad"]
    ALGORITHMS.added["bad"] = plugin.load("algorithm")
    try:
        return perform(["verify", "bad", "--ranks", "4"])
    finally:
        del ALGORITHMS.added["bad"]


def test_a_packages_own_complaint_is_told_as_it_is(
    package: Package, capsys: pytest.CaptureFixture[str]
) -> None:
    package.says(MEMBER.format(call="raise ScheduleError('bad: ranks must be even, got 3')"))
    assert verify_bad() == 2
    assert capsys.readouterr().err == "ringleaf: bad: ranks must be even, got 3\n"


def test_an_error_elsewhere_names_the_packages_in_use(package: Package) -> None:
    try:
        raise ScheduleError("x")
    except ScheduleError as error:
        ours = error
    assert failure(ours) == ""
    package.says(MEMBER.format(call="pass"))
    algorithms().find("bad")
    told = (
        r"ScheduleError: x at .*test_plugins\.py:\d+, with 'bad' of package failing 1\.2; --debug"
    )
    assert re.match(told, failure(ours))


def test_rows_list_packages_and_say_which_fail(
    package: Package, capsys: pytest.CaptureFixture[str]
) -> None:
    points = package.module.parent / "failing-1.2.dist-info" / "entry_points.txt"
    points.write_text(
        "[ringleaf.algorithms]\nring = failing:ALGORITHM\n"
        "[ringleaf.codecs]\nmine = failing:ALGORITHM\n[ringleaf.codexes]\nother = failing:X\n"
    )
    package.says(MEMBER.format(call="pass"))
    sys.path.insert(0, str(points.parent.parent / ""))  # a path that was not looked at before
    try:
        assert perform(["rows", "plugin", "--json"]) == 0
    finally:
        sys.path.pop(0)
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}

    assert rows["mine"]["title"] == "codecs, failing:ALGORITHM"
    assert rows["mine"]["source"] == "package failing 1.2"
    assert "fails: its name is taken" in rows["ring"]["title"]
    assert "did you mean 'codecs'?" in rows["other"]["title"]


FAMILIES = {
    "workloads": "sync",
    "formats": "csv",
    "sparse_allreduces": "oktopk",
    "synthesisers": "tacos",
    "systems": "switchml",
    "algorithms": "ring",
    "topology_formats": "astra",
    "machines": "dgx1",
    "topologies": "fattree",
    "disciplines": "fifo",
    "codecs": "base3",
    "compressors": "topk",
    "windows": "a2tp",
    "allocators": "equal",
    "models": "vgg16",
    "schedulers": "fifo",
    "schemes": "sync",
    "offloads": "fcsn",
    "recoveries": "oobleck",
    "controllers": "dcqcn",
    "circuits": "helios",
}
"""The families, each with the name of a member of ours."""

FOREIGN = (("systems", "tree"), ("algorithms", "tacos"), ("algorithms", "oktopk"))
"""Names that members of ours of other families have."""


def test_the_list_of_families_is_whole() -> None:
    root = Path(__file__).parents[1]
    rooms = ("collectives", "experiments", "hosts", "ina", "networks", "ringleaf", "topologies")
    texts = [path.read_text() for room in rooms for path in (root / room).rglob("*.py")]
    named = {name for text in texts for name in re.findall(r'Registry\(\s*"(\w+)"', text)}
    assert named == set(FAMILIES)


@pytest.mark.parametrize("words", [["run", "--help"], ["run", "--dry-run"], ["nic", "--help"]])
@pytest.mark.parametrize("are_taken", [True, False])
def test_members_that_fail_disable_no_command(
    words: list[str], are_taken: bool, tmp_path: Path
) -> None:
    """One process per command, with a package that has a member for each family."""
    members = [*FAMILIES.items(), *FOREIGN] if are_taken else [(each, "new") for each in FAMILIES]
    grouped: dict[str, list[str]] = {}
    for family, name in members:
        grouped.setdefault(family, []).append(f"{name} = failing:MEMBER\n")
    points = "".join(f"[ringleaf.{family}]\n{''.join(lines)}" for family, lines in grouped.items())
    Package(tmp_path, points).says("MEMBER = 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "ringleaf", *words],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[1]}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for line in without_notice(done.stderr).splitlines():
        assert re.match(
            r"ringleaf: (package failing 1\.2: .* left out|.* of package failing)", line
        )
    if are_taken:
        loaded = ("ring", "tree", "tacos", "oktopk", "switchml")
        for name in ("fcsn",) if words[0] == "nic" else loaded:
            assert f"must have a name of its own, got '{name}'" in done.stderr
