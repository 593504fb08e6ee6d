"""The help of all commands: it fits a screen, and its examples are of options that there are."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.experiments.commands import cli, usage
from ringleaf.experiments.runs.console import in_a_line

SCREEN = 40
"""Lines of a terminal. The longest help of a command whose options all matter has 37."""


def _below(command: Any, path: str) -> Iterator[str]:
    yield path
    for name, each in getattr(command, "commands", {}).items():
        yield from _below(each, f"{path} {name}".strip())


COMMANDS = list(_below(typer.main.get_command(cli.make_app()), ""))


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_all_commands_have_examples_and_nothing_else_has() -> None:
    assert sorted(usage.EXAMPLES) == sorted(COMMANDS)


def test_a_command_line_has_each_command_once_however_often_it_is_made() -> None:
    def count(app: typer.Typer) -> int:
        below = [each.typer_instance for each in app.registered_groups]
        return len(app.registered_commands) + sum(count(each) for each in below if each)

    assert count(cli.make_app()) == count(cli.make_app())


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_screen_and_has_examples(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.perform([*command.split(), "--help"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) <= 80 or "from-torch" in command
    for example in usage.EXAMPLES[command]:
        assert f"  {example}" in lines


@pytest.mark.parametrize(
    "example", [each for examples in usage.EXAMPLES.values() for each in examples]
)
def test_examples_are_of_commands_and_options_that_there_are(example: str) -> None:
    """Words are read before the help is shown, and unknown options refused."""
    before, _, after = example.removeprefix("sudo ").partition(" -- ")
    words = shlex.split(before)
    assert words[0] == "ringleaf"
    assert cli.perform([*words[1:], "--help"]) == 0
    if words[1] == "compare" and after:
        assert cli.perform(["run", *shlex.split(after), "--help"]) == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_lines_of_options_look_alike(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They have no full stop at the end, and are cut between words."""
    assert cli.perform([*command.split(), "--help"]) == 0

    listed = capsys.readouterr().out.partition("\nOptions:\n")[2].splitlines()
    assert not [line for line in listed if re.search(r"(?<!\.\.)\.( +\[|$)", line)]


@given(
    st.lists(st.from_regex(r"\(?[ab]{1,6}[,.:)]?", fullmatch=True), min_size=1).map(" ".join),
    st.integers(12, 40),
)
def test_a_text_is_cut_between_words(text: str, room: int) -> None:
    shown = in_a_line(text, room)

    assert len(shown) <= room
    if shown != text:
        kept = shown.removesuffix("...").split()
        assert len(kept) < len(text.split())
        assert [a.rstrip(",:(") for a in text.split()[: len(kept)]] == [
            a.rstrip(",:(") for a in kept
        ] or not kept


def test_all_options_are_shown_whole_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.perform(["run", "--help"]) == 0
    brief = capsys.readouterr().out
    assert cli.perform(["run", "--help-all"]) == 0
    whole = " ".join(capsys.readouterr().out.split())

    assert "--trim" not in brief
    assert "ringleaf run --help-all" in brief
    assert "--trim" in whole
    assert "hosts may be machines: fattree,node=8xh100; or a file: net.graphml" in whole
    assert "more options" not in whole


def test_a_scripts_own_words_are_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "own.py"
    script.write_text("")
    assert cli.perform(["train", str(script), "--dry-run", "--", "--help-all"]) == 0
    assert json.loads(capsys.readouterr().out)["script"] == [str(script), "--help-all"]


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [
        ("Loss", 10, "Loss"),
        ("Loss of links; default: none", 20, "Loss of links"),
        ("Ports.  [default: 8]", 20, "Ports."),
        ("Topologies: bcube, fattree", 20, "Topologies: bcube..."),
        ("Topologies: bcube, fattree", 26, "Topologies: bcube, fattree"),
    ],
)
def test_long_texts_end_at_a_clause_or_where_room_ends(text: str, room: int, shown: str) -> None:
    assert in_a_line(text, room) == shown
    assert len(shown) <= room


def test_all_commands_are_listed_whole_and_none_is_loaded_for_it() -> None:
    assert list(usage.SUMMARIES) == list(cli.COMMANDS)
    code = (
        "import sys; from ringleaf.experiments.commands import cli; cli.perform(['--help']);"
        "sys.exit(any(each in sys.modules for each in ('pydantic', 'numpy', 'yaml')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    listed = done.stdout.partition("Commands:\n")[2].splitlines()
    assert [line.split(maxsplit=1) for line in listed] == [
        list(each) for each in usage.SUMMARIES.items()
    ]
    assert done.returncode == 0


def test_a_shell_completes_the_options_of_a_command() -> None:
    words = {"COMP_WORDS": "ringleaf topo show --ou", "COMP_CWORD": "3"}
    code = "from ringleaf.experiments.commands import cli; cli.main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **words, cli.COMPLETION: "complete_bash"},
        capture_output=True,
        text=True,
    )
    assert "--out" in done.stdout
