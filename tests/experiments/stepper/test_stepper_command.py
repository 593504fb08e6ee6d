"""`ringleaf step` and `make step` as people type them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.experiments.commands import cli


def call(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as exited:
        cli.make_app()([str(argument) for argument in arguments])
    code = exited.value.code
    assert isinstance(code, int)
    return code


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name not in ("tern", "vote")])
def test_every_collective_is_told_to_a_pipe(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("step", name, "--ranks", "3") == 0

    told = capsys.readouterr().out
    assert "3 ranks" in told
    assert "\x1b" not in told
    assert told.endswith("cells hold what they must: all right\n")


def test_votes_have_no_sums_to_step_through(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("step", "vote", "--ranks", "3") != 0
    assert "vote: elements must be" in capsys.readouterr().err


def test_a_page_is_written_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "new" / "ring.html"

    assert call("step", "ring", "--ranks", "4", "--elements", "8", "--html", page) == 0

    assert capsys.readouterr().out == f"# page: {page}\n"
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "ringleaf step ring --ranks 4 --elements 8" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ring", "--elements", "2"), "elements must be 4 or more, one for each chunk of ring"),
        (("ring", "--ranks", "1"), "step: ranks must be 2 to 64, got 1"),
        (("rng",), "did you mean 'ring'?"),
        (("broadcast", "--root", "7"), "root must be one of 4 ranks, got 7"),
        (("ring", "--html", "/dev/null/x.html"), "step: can't write the page, got"),
    ],
)
def test_mistakes_exit_2_with_a_message(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("step", *arguments) == 2

    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""
