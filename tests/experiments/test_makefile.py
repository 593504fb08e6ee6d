"""`make` passes every option on, and its help names them all."""

import importlib.util
import re
from pathlib import Path

import pytest
from making import make, run_make

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.experiments.records.columns import LETTERS, fitting, titles
from ringleaf.experiments.runs.option_texts import make_help
from ringleaf.experiments.workloads.collective.kind import OPTIONS
from ringleaf.experiments.workloads.collective.results import COLUMNS, CollectiveResults
from ringleaf.topologies.registry import TOPOLOGIES

ROOT = Path(__file__).resolve().parents[2]


def test_every_option_is_passed_to_the_command() -> None:
    values = {option.variable: f"{number},x" for number, option in enumerate(OPTIONS.values())}
    values |= {option.variable: "1" for option in OPTIONS.values() if option.is_flag}
    given = [f"{name}={value}" for name, value in values.items()]

    command = make("-n", "exp", *given, "SPEC=a b.yaml").splitlines()[-1]

    for option in OPTIONS.values():
        flag = option.flags.split()[0]
        passed = flag if option.is_flag else f"{flag} '{values[option.variable]}'"
        assert f" {passed}" in command
    assert "--spec 'a b.yaml'" in command


@pytest.mark.parametrize("off", ["0", "no", "No", "n", "N", "false", "False", "off"])
def test_options_that_are_not_given_are_not_passed(off: str) -> None:
    command = make("-n", "exp", "TOPO=fattree", f"PCAP={off}", f"WIDE={off}").splitlines()[-1]

    assert command.split()[1:] == ["run", "--topo", "'fattree'"]


@pytest.mark.parametrize("name", ["TOPO", "SIZE", "CC", "PCAP"])
@pytest.mark.parametrize(
    "value", ["x'; touch {}; '", "`touch {}`", "$(shell touch {})", "$$(touch {})"]
)
def test_values_are_no_commands(name: str, value: str, tmp_path: Path) -> None:
    """The command is run, by a shell that has but an `echo` for it."""
    (tmp_path / "ringleaf").write_text('#!/bin/sh\nfor word; do printf "%s\\n" "$word"; done\n')
    (tmp_path / "ringleaf").chmod(0o755)
    value = value.format(tmp_path / "owned")
    ready = ("STAMP=README.md", "-o", "README.md")  # there is nothing to set up
    done = run_make("exp", f"BIN={tmp_path}", *ready, f"{name}={value}")
    assert not (tmp_path / "owned").exists()
    assert value in (done.stderr if name == "PCAP" else done.stdout.splitlines())


def test_names_from_the_environment_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make topo` takes no seed, and what is typed is from no environment."""
    monkeypatch.setenv("SEED", "7")
    monkeypatch.setenv("DATA", "/data/$(x)")
    monkeypatch.setenv("SIZE", "8K")
    said, *_, command = make("-n", "exp", "SIZE=4K").splitlines()
    assert said == "# from the environment: DATA=/data/$(x) SEED=7"
    assert "--seed '7'" in command
    assert "from the environment" not in make("-n", "topo")


@pytest.mark.parametrize("value", ["nope", "2"])
def test_switches_are_on_or_off(value: str) -> None:
    """Whatever was none of the words for off was on."""
    done = run_make("-n", "exp", f"PCAP={value}")
    assert done.returncode == 2
    assert f"PCAP: must be yes or no, got '{value}'; leave it out for no" in done.stderr
    assert " --pcap" in make("-n", "exp", "PCAP=Y").splitlines()[-1]


def test_tests_keep_what_python_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers often tell Python not to."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "python").write_text('#!/bin/sh\necho "kept away: [$PYTHONDONTWRITEBYTECODE]"\n')
    (tmp_path / "python").chmod(0o755)

    assert "kept away: []" in make("test", f"BIN={tmp_path}", "STAMP=README.md", "-o", "README.md")


@pytest.mark.parametrize("kept", [True, False])
def test_setting_up_compiles_what_python_may_not_keep(
    kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each start would compile it again: twice the time of a small run."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "" if kept else "1")

    commands = make("-n", "-B", "venv")

    imported = re.findall(r"-c 'import ([\w.,]+)'", commands)
    assert ("-m compileall" in commands) == bool(imported) == (not kept)
    for module in ",".join(imported).split(",") if imported else []:
        assert importlib.util.find_spec(module), module


def test_a_value_of_two_lines_is_refused(tmp_path: Path) -> None:
    done = run_make("-n", "exp", f"TOPO=fattree\ntouch {tmp_path}/owned")
    assert done.returncode != 0
    assert "TOPO must be one line" in done.stderr


def test_help_names_options_topologies_and_algorithms() -> None:
    common, _, whole = make_help().partition("\n\n")
    brief, text = make("help"), make("help", "ALL=1")

    assert common in brief
    assert len(brief.splitlines()) <= 50
    assert "TRIM=" not in brief
    assert whole in text
    for name in (*(option.variable for option in OPTIONS.values()), "SPEC"):
        assert f"  {name}=" in text
    for name in (*TOPOLOGIES, *ALGORITHMS):
        assert name in text


def test_old_or_missing_pythons_are_refused_with_advice(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.8.10 && exit 0\nexit 1\n')
    old.chmod(0o755)

    for python, message in (
        (str(old), "needs Python 3.11 or newer, got Python 3.8.10"),
        ("no-such-python", "no no-such-python here; install Python 3.11 or newer"),
    ):
        done = run_make("venv", f"PYTHON={python}", f"VENV={tmp_path}/venv")
        assert done.returncode != 0
        assert message in done.stderr


def test_readme_shows_the_table_as_it_is() -> None:
    page = (ROOT / "README.md").read_text()

    shown = page[page.index("$ make exp") :]
    columns = [each for each in COLUMNS if each.name != "error"]  # which no switch of it has
    assert any(
        next(titles(fitting(each, CollectiveResults.spare, LETTERS))) in shown
        for each in (COLUMNS, columns)
    )


def test_traces_take_an_example_or_a_packet() -> None:
    plain = make("-n", "trace", "PROGRAM=switchml-64", "HTML=a b.html").splitlines()[-1]
    given = make("-n", "trace", "PROGRAM=x.p4", "PACKET=x.pcap#1", "PORT=3").splitlines()

    assert " ".join(plain.split()).endswith("--html 'a b.html'")
    assert "trace 'x.p4' --packet 'x.pcap#1'" in " ".join(given)
    assert "--port '3'" in " ".join(given)


def test_stepping_takes_a_collective_and_its_options() -> None:
    plain = make("-n", "step").replace("\\\n", " ")
    given = make("-n", "step", "ALGO=tree", "RANKS=4", "ELEMENTS=8", "TOPO=fattree,k=4", "LOSS=5%")

    assert plain.split()[-2:] == ["step", "'ring'"]
    words = " ".join(given.replace("\\\n", " ").split())
    assert words.endswith("step 'tree' --ranks '4' --elements '8' --topo 'fattree,k=4' --loss '5%'")
    timed = make("-n", "step", "ALGO=atp", "SWITCH_DELAY=1us", "HOST_DELAY=2us", "INJECT=10G")
    words = " ".join(timed.replace("\\\n", " ").split())
    assert words.endswith("step 'atp' --switch-delay '1us' --host-delay '2us' --inject '10G'")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("exp", "topo=torus2d"), "make exp: unknown name, got 'topo'; did you mean 'TOPO'[?]"),
        (("exp", "TPOO=torus2d"), "make exp: unknown name, got 'TPOO'; did you mean 'TOPO'[?]"),
        (("-n", "exp", "RANKS=4"), "make exp: RANKS is called HOSTS here, got 'RANKS'"),
        (("topo", "HOSTS=4"), "make topo: unknown name, got 'HOSTS'; valid: OUT, TOPO, PYTHON"),
        (("lint", "TOPO=torus2d"), "make lint: unknown name, got 'TOPO'"),
        (("SIZE=4M",), "make help: unknown name, got 'SIZE'"),
    ],
)
def test_names_that_a_target_does_not_take_are_refused(
    arguments: tuple[str, ...], message: str
) -> None:
    done = run_make(*arguments)

    assert done.returncode == 2
    assert re.search(message.replace("?", r"\?"), done.stderr)
    assert done.stdout == ""


def test_a_name_is_refused_without_python_too() -> None:
    done = run_make("exp", "TPOO=torus2d", "PYTHON=no-such-python")

    assert done.returncode == 2
    assert "make exp: unknown name, got 'TPOO'" in done.stderr


def test_several_targets_take_the_names_of_each_and_all_take_the_tools() -> None:
    make("-n", "topo", "bench", "TOPO=fattree", "ONLY=engine", "VENV=.venv")


def test_every_name_that_a_recipe_uses_is_taken() -> None:
    """A name that the recipe of a target has but TAKES_target has not could not be given."""
    text = (ROOT / "Makefile").read_text()
    own = set(re.findall(r"^(\w+) [:?]?= ", text, re.MULTILINE))
    for target, recipe in re.findall(r"^([a-z0-9-]+):.*## .*\n((?:\t.*\n)*)", text, re.MULTILINE):
        used = set(re.findall(r"\$\((?:or \$\(|if \$\()?([A-Z]+)\b", recipe)) - own - {"FLAG_"}
        taken = re.search(rf"^TAKES_{target} := (.*)$", text, re.MULTILINE)
        names = set(taken[1].split()) if taken else set()
        assert used <= names, target
