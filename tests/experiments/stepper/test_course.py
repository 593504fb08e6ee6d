"""The course's commands do what its pages say: every one is run, every line shown is looked for."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ringleaf.experiments.commands import cli
from ringleaf.experiments.runs import drawing, perform

ROOT = Path(__file__).resolve().parents[3]
COURSE = ROOT / "docs" / "course"
BLOCK = re.compile(r"^```text\n\$ ringleaf (.*)\n((?:.*\n)*?)```$", re.MULTILINE)
PREDICTION = re.compile(
    r"^\*\*Predict, then run\.\*\* (?:(?!\n\n).)+\n\n"
    r'<details markdown="1">\n<summary>[^\n]+</summary>\n\n'
    r"```text\n\$ ringleaf (?:(?!\n```).)+\n```\n\n"
    r"(?P<explanation>(?!</details>).+?)\n\n</details>$",
    re.MULTILINE | re.DOTALL,
)
ANSWERED = re.compile(
    r"^\*\*\d\.\*\* (?:(?!\n\n).)+\?(?:(?!\n\n).)*\n\n"
    r'<details markdown="1">\n<summary>[^\n]+</summary>\n\n(?:(?!</details>).)+\n\n</details>$',
    re.MULTILINE | re.DOTALL,
)
LEFT_OUT = "..."
ERROR = "ringleaf: "
GRADE = re.compile(r"# (\d+) of (\d+) points$")
LESSONS = 10

SHOWN = [
    pytest.param(command, shown.splitlines(), id=f"{page.stem}: {command}")
    for page in sorted(COURSE.glob("[0-9]*.md"))
    for command, shown in BLOCK.findall(page.read_text())
]


def passages(shown: list[str]) -> list[list[str]]:
    """Lines that follow one another; what is between passages is left out."""
    found: list[list[str]] = [[]]
    for line in shown:
        if line.strip() == LEFT_OUT:
            found.append([])
        else:
            found[-1].append(line.rstrip())
    return [passage for passage in found if passage]


def find(passage: list[str], lines: list[str], start: int) -> int:
    """Where the passage ends, from `start` on; -1 if it is not there."""
    for at in range(start, len(lines) - len(passage) + 1):
        if lines[at : at + len(passage)] == passage:
            return at + len(passage)
    return -1


def write_nothing(folder: Path, *_: object, **__: object) -> list[Path]:
    """Leave an empty report, as a command names those that are there."""
    report = folder / "report.html"
    report.write_text("")
    return [report]


@pytest.mark.parametrize(("command", "shown"), SHOWN)
def test_a_command_prints_what_the_page_shows(
    command: str,
    shown: list[str],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for folder in ("docs", "examples"):  # readers are at the top of the repository
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    # Figures take longer than all else, and are tested elsewhere.
    monkeypatch.setattr(perform, "drawer", lambda _: None)
    monkeypatch.setattr(drawing, "redraw", write_nothing)

    with pytest.raises(SystemExit) as exited:
        cli.make_app()(shlex.split(command))

    is_refused = shown[-1].startswith(ERROR)
    is_refused |= (grade := GRADE.match(shown[-1])) is not None and grade[1] != grade[2]
    assert (exited.value.code != 0) is is_refused
    printed = capfd.readouterr()  # ranks of a script are processes of their own
    lines = [line.rstrip() for line in (printed.out + printed.err).splitlines()]
    at = 0
    for passage in passages(shown):
        at = find(passage, lines, at)
        assert at >= 0, "not printed in this order:\n" + "\n".join(passage)


def test_there_are_all_lessons_and_all_their_commands_are_tested() -> None:
    pages = sorted(COURSE.glob("[0-9]*.md"), key=lambda page: int(page.name.partition("-")[0]))
    menu = (ROOT / "mkdocs.yml").read_text()

    assert [page.name.partition("-")[0] for page in pages] == [
        str(n) for n in range(1, LESSONS + 1)
    ]
    for page in pages:
        text = page.read_text()
        assert text.count("\n$ ") == len(BLOCK.findall(text)) >= 3, page.name
        assert page.name in (COURSE / "README.md").read_text()
        assert f"course/{page.name}" in menu


@pytest.mark.parametrize("page", sorted(COURSE.glob("[0-9]*.md")), ids=lambda page: page.stem)
def test_a_lesson_asks_for_predictions_and_explains_what_is_printed(page: Path) -> None:
    text = page.read_text()
    lesson = text.partition("\n## Try\n")[0].replace("<summary>Answer<", "<Answer<")
    predictions = list(PREDICTION.finditer(text))
    folded = lesson.count("<summary>")

    assert len(predictions) == folded == text.count("**Predict, then run.**") >= 2
    assert "md_in_html" in (ROOT / "mkdocs.yml").read_text()
    for prediction in predictions:
        assert prediction[0].count("<details") == prediction[0].count("**Predict") == 1
        assert len(prediction["explanation"]) > 80


@pytest.mark.parametrize("page", sorted(COURSE.glob("[0-9]*.md")), ids=lambda page: page.stem)
def test_questions_of_a_lesson_are_answered(page: Path) -> None:
    tried = page.read_text().partition("\n## Try\n")[2]
    questions = re.findall(r"^\*\*(\d)\.\*\* ", tried, re.MULTILINE)

    assert questions == [str(n) for n in range(1, len(questions) + 1)] != []
    assert len(ANSWERED.findall(tried)) == len(questions) == tried.count("<details")


def test_what_is_not_printed_is_noticed() -> None:
    lines = ["a", "b", "c"]

    assert passages(["a", "...", "b", "c"]) == [["a"], ["b", "c"]]
    assert find(["b", "c"], lines, 0) == 3
    assert find(["a", "c"], lines, 0) == -1
    assert find(["a"], lines, 1) == -1
