"""The path for students: every command that it shows is run, and prints what is shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ringleaf.experiments.commands import cli
from ringleaf.experiments.runs import drawing, perform

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "how-to" / "students.md").read_text()
BLOCK = re.compile(r"^```text\n\$ ringleaf (.*)\n((?:.*\n)*?)```$", re.MULTILINE)
STOP = re.compile(r"^## \d\. .*?(?=^## )", re.MULTILINE | re.DOTALL)


def write_nothing(folder: Path, *_: object, **__: object) -> list[Path]:
    """Leave an empty report: figures take longer than all else, and are tested elsewhere."""
    report = folder / "report.html"
    report.write_text("")
    return [report]


@pytest.mark.parametrize(("command", "shown"), BLOCK.findall(PAGE))
def test_a_command_prints_what_the_page_shows(
    command: str,
    shown: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(perform, "drawer", lambda _: None)
    monkeypatch.setattr(drawing, "redraw", write_nothing)

    with pytest.raises(SystemExit) as exited:
        cli.make_app()(shlex.split(command))

    assert not exited.value.code
    printed = "\n".join(line.rstrip() for line in capfd.readouterr().out.splitlines()) + "\n"
    for passage in shown.split("...\n"):
        assert passage in printed


def test_each_stop_has_a_command_a_question_and_what_to_read_next() -> None:
    stops = STOP.findall(PAGE)

    assert len(stops) == 6
    for number, stop in enumerate(stops, start=1):
        assert stop.startswith(f"## {number}. ")
        assert BLOCK.search(stop)
        assert "](../course/" in stop
        assert "**Ask yourself:**" in stop or "**Where to go from here**" in stop
        assert stop.count("**Ask yourself:**") == stop.count("<summary>Answer</summary>")


def test_what_one_is_to_predict_is_folded() -> None:
    """A command after "write down" or "guess" may be typed, but its output is not in sight."""
    asking = re.split(r"\bwrite down\b|\bguess\b", PAGE)[1:]

    assert len(asking) == 2
    for text in asking:
        assert 0 < text.index("<details") < text.index("\n```text\n$ ringleaf ")
