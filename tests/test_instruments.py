"""Instruments have one kind of command line, and those that are documented are understood."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, wraps
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import pytest
import typer
from making import make

from ringleaf.experiments.commands.cli import perform_alone

ROOT = Path(__file__).resolve().parents[1]
MUTANTS = ROOT / "tests" / "mutants"
ENDS = re.compile(r'^    alone\("python (?:-m )?(\S+)", (\w+)\)$', re.MULTILINE)
IN_TEXT = re.compile(r"`python -m ((?:bench|studies)\b[^`]*)`")
AS_LINE = re.compile(r"^ *(?:command: |- )?python -m ((?:bench|studies)\b[^`#]*?) *(?:#.*)?$", re.M)
TEXTS = (
    *("README.md", "CONTRIBUTING.md", "docs/**/*.md", "experiments/**/*.yaml", ".ci/run"),
    *("bench/**/*.py", "studies/*.py", "studies/*.yaml"),
)
MADE = (
    "bench ONLY='engine pps' OUT=b.json",
    "bench-live ONLY='fidelity pps' TOPO='fattree,k=4 torus2d' SCALE='1000 10000' REPEATS=1",
    "bench-live ALGO=ring,tree SIZE=1K SWITCH=bmv2 LOSS=1% HOSTS=4 LANES=64 OUT=b.json",
    "soak TIME=60s RUNS=3 SEED=2 CASE=1 JOBS=2",
    "soak HOSTILE=1 INPUTS=10 SEED=3",
    "mutants ONLY='one two' JOBS=2 DRAW=3 SEED=4 SINCE=main",
)


class Instrument(NamedTuple):
    """A program, by what follows `python -m`, and what carries it out."""

    name: str
    module: str
    command: str

    @property
    def carry_out(self) -> Callable[..., None]:
        found: Callable[..., None] = getattr(import_module(self.module), self.command)
        return found

    def perform(self, *words: str) -> int:
        return perform_alone(f"python -m {self.name}", self.carry_out, words)

    def understands(self, words: Sequence[str]) -> bool:
        """Return whether it takes the words; it does not do what they say."""

        @wraps(self.carry_out)
        def nothing(**_: Any) -> None:
            pass

        return perform_alone(f"python -m {self.name}", nothing, words) == 0


def instruments() -> Iterator[Instrument]:
    sys.path.insert(0, str(MUTANTS))
    for path in sorted(
        [*ROOT.glob("bench/**/*.py"), *ROOT.glob("studies/*.py"), *MUTANTS.glob("*")]
    ):
        for name, command in ENDS.findall(path.read_text()) if path.suffix == ".py" else ():
            is_mutants = path.parent == MUTANTS
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield Instrument(name, path.stem if is_mutants else module, command)


INSTRUMENTS = {each.name: each for each in instruments()}


@pytest.fixture(params=INSTRUMENTS)
def instrument(request: pytest.FixtureRequest) -> Instrument:
    return INSTRUMENTS[request.param]


def plain(text: str) -> str:
    return " ".join(text.replace("`", "").split())


def test_all_instruments_are_found() -> None:
    """What else can be started is a part of one, or of `make`, and has no options."""
    started = [path for path in ROOT.glob("studies/*.py") if "__main__" in path.read_text()]
    studies = {f"studies.{path.stem}" for path in started}
    assert studies < set(INSTRUMENTS)
    assert len(studies) == 24
    assert len(set(INSTRUMENTS) - studies) == 11


def test_help_says_what_an_instrument_does(
    instrument: Instrument, capsys: pytest.CaptureFixture[str]
) -> None:
    told = getdoc(import_module(instrument.module))
    assert told is not None

    assert instrument.perform("--help") == 0
    assert plain(told.partition("\n\n")[0]) in plain(capsys.readouterr().out)


def test_an_unknown_option_is_refused_in_a_line(
    instrument: Instrument, capsys: pytest.CaptureFixture[str]
) -> None:
    assert instrument.perform("--nope") == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(
        rf"ringleaf: {instrument.name}: no such option: --nope.*--help.*\n", said.err
    )


def test_an_option_is_given_once_for_each_of_its_values(
    instrument: Instrument, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that are numbers refuse words, and say which."""
    app = typer.Typer()
    app.command()(instrument.carry_out)
    command: Any = typer.main.get_command(app)
    hints = get_type_hints(instrument.carry_out)
    for option in (each for each in command.params if each.param_type_name == "option"):
        assert option.nargs == 1
        assert not option.multiple or "may be given several times" in option.help
        if re.search("int|float", str(hints.get(option.name))):
            assert instrument.perform(option.opts[0], "few") == 2
            assert "'few'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("studies.incast --senders 0", "got '0'"),
        ("studies.incast --case dctpc", "got 'dctpc'"),
        ("studies.incast --size 1X", "got '1X'"),
        ("studies.nodes no.csv --figure nodes.txt", "format, got '.txt'"),
        ("studies.threads --case ring", "must be options like topo=bcube algo=ring, got 'ring'"),
        ("studies.clashes --algo rong", "unknown algorithm, got 'rong'; did you mean 'ring'?"),
        ("studies.clashes --orders 0", "got '0'"),
        ("studies.trees --case panama-2", "got 'panama-2'"),
        ("studies.best --topo fattre", "got 'fattre'"),
        ("studies.regret --collective reduces", "got 'reduces'"),
        ("studies.resends --algo rong", "got 'rong'"),
        ("studies.skipping --topo fattre", "got 'fattre'"),
        ("studies.bounds_check --algo rong", "got 'rong'"),
        ("studies.scaling --workload rings", "unknown workload, got 'rings'"),
        ("studies.sparse_volume --name topk", "got 'topk'"),
        ("studies.schedulers --spec no.yaml", "no.yaml"),
        ("studies.nodes no.csv", "no.csv"),
        ("studies.nodes", "missing argument 'sweep'"),
        ("studies.nodes no.csv --nic-gbps nan", "got 'nan'"),
        ("bench.live --only all", "unknown section, got 'all'"),
        ("bench.soak.hostile --only specs", "got 'specs'"),
        ("bench.soak.hostile --file 1-2.specs", "got 'specs'"),
        ("bench.soak.siege --only half", "got 'half'"),
        ("bench.soak.damage --cases 0", "got '0'"),
    ],
)
def test_a_wrong_value_is_refused_in_a_line(
    typed: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *words = typed.split()
    assert INSTRUMENTS[name].perform(*words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


def test_the_reasons_of_known_gaps_are_found() -> None:
    """A study that starts with an error has no good command line either."""
    from studies.bounds_check import GAPS, read_gaps

    assert {gap.algo for gap in read_gaps(GAPS.read_text())} >= {"tree"}


@cache
def documented() -> dict[str, set[str]]:
    """Return what texts of the repository say that one types, after `python -m`: by file."""
    found = {}
    for path in (path for each in TEXTS for path in sorted(ROOT.glob(each))):
        text = path.read_text().replace("\\\n", " ")
        if typed := {*IN_TEXT.findall(text), *AS_LINE.findall(text)}:
            found[str(path.relative_to(ROOT))] = typed
    return found


def test_commands_in_texts_are_found() -> None:
    assert (
        "studies.nodes nodes/sweep.csv --figure nodes.png" in documented()["docs/how-to/nodes.md"]
    )
    assert "studies.incast" in documented()["docs/congestion.md"]
    assert "studies.trees" in documented()["experiments/published/shapes.yaml"]
    assert len(documented()) > 30


@pytest.mark.parametrize("name", documented())
def test_documented_commands_are_understood(name: str) -> None:
    for typed in documented()[name]:
        module, *words = shlex.split(re.sub(r"\[.*?\]", "", typed))
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), typed
        assert module not in INSTRUMENTS or INSTRUMENTS[module].understands(words), typed


@pytest.mark.parametrize("typed", MADE)
def test_what_make_types_is_understood(typed: str) -> None:
    """There is nothing to set up."""
    ready = ("STAMP=README.md", "-o", "README.md")
    words = shlex.split(make("-n", *ready, *shlex.split(typed)).replace("\\\n", " "))
    name, *words = words[words.index("-m") + 1 :] if "-m" in words else words[1:]

    assert INSTRUMENTS[name].understands(words)


def test_a_command_that_is_not_understood_is_noticed() -> None:
    assert not INSTRUMENTS["studies.scaling"].understands(["--k", "4", "6"])
    assert IN_TEXT.findall("`python -m studies.best --why` is") == ["studies.best --why"]
    assert AS_LINE.findall("  python -m bench  # all") == ["bench"]


def test_tables_that_are_not_the_same_say_in_which_columns() -> None:
    from bench.same import _differing

    before = {
        "a.csv": "order,time\nfifo,1\n",
        "b.csv": "x\n1\n",
        "c.csv": "x\n1\n",
        "d.csv": "x\n1",
    }
    now = {"a.csv": "scheduler,time\nfifo,2\n", "b.csv": "x\n1\n2\n", "d.csv": "x\n1\n"}
    assert list(_differing(before, now, {"order": "scheduler"})) == [
        "a.csv differs in time",
        "b.csv differs in rows",
        "c.csv is missing",
        "d.csv differs in form",
    ]
    assert not list(_differing(before, before, {}))
