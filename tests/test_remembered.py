"""Answers that are kept between commands, until a source changes."""

import os
from pathlib import Path
from typing import Any

import pytest

from ringleaf.core import remembered as module
from ringleaf.core.remembered import remembered


class Counted:
    """An answer that says how often it was made."""

    def __init__(self, package: Path) -> None:
        self.package = package
        self.times = 0

    def __call__(self) -> Any:
        return remembered("answer", self._make, self.package)

    def _make(self) -> dict[str, int]:
        self.times += 1
        return {"made": self.times}


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counted:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    package = tmp_path / "package"
    (package / "room").mkdir(parents=True)
    (package / "room" / "one.py").write_text("1")
    (package / "notes.txt").write_text("1")
    return Counted(package)


def test_an_answer_is_made_once(answer: Counted) -> None:
    assert [answer(), answer(), answer.times] == [{"made": 1}, {"made": 1}, 1]


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "one.py").write_text("12"),
        lambda folder: os.utime(folder / "one.py", ns=(1, 1)),
        lambda folder: (folder / "two.yaml").write_text("1"),
        lambda folder: (folder / "one.py").rename(folder / "other.py"),
        lambda folder: (folder / "one.py").unlink(),
    ],
)
def test_any_change_of_sources_has_it_made_again(change: Any, answer: Counted) -> None:
    answer()
    change(answer.package / "room")

    assert [answer(), answer()] == [{"made": 2}] * 2


def test_other_files_and_times_of_reading_do_not_matter(answer: Counted) -> None:
    answer()
    (answer.package / "notes.txt").write_text("other")
    (answer.package / "room" / "one.py").read_text()

    assert answer() == {"made": 1}


def test_another_python_makes_its_own(answer: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    answer()
    monkeypatch.setattr("sys.version", "another")

    assert answer() == {"made": 2}


def test_a_damaged_answer_is_made_again(answer: Counted, tmp_path: Path) -> None:
    answer()
    kept = tmp_path / "cache" / "ringleaf" / "answers" / "answer"
    kept.write_bytes(kept.read_bytes().replace(b"1}", b"7}"))

    assert [answer(), answer()] == [{"made": 2}] * 2


def test_where_nothing_can_be_kept_it_is_made_each_time(
    answer: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "write_sealed", _refuse)

    assert [answer(), answer()] == [{"made": 1}, {"made": 2}]


def _refuse(*_: object) -> None:
    raise OSError("no room")
