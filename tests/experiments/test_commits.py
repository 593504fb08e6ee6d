"""The commit that a run notes: of the folder's repository, marked if files differ from it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ringleaf.experiments.records.config import ask_git, git_commit

PERSON = ("-c", "user.name=x", "-c", "user.email=x@example.org")


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ("git", "-C", str(folder), *words), check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_commit_is_marked_where_files_that_it_has_differ(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "kept").write_text("a")
    git(tmp_path, "add", "kept")
    assert git_commit(tmp_path) is None

    git(tmp_path, *PERSON, "commit", "-qm", "x")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "unknown").write_text("of no commit")
    assert git_commit(tmp_path) == commit

    (tmp_path / "kept").write_text("b")
    assert git_commit(tmp_path) == f"{commit}+"
    git(tmp_path, "add", "kept")
    assert git_commit(tmp_path) == f"{commit}+"


def test_a_folder_without_git_has_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_commit(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))  # there is no git
    assert git_commit(tmp_path) is None


def test_an_answer_that_was_asked_for_before_is_given_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, *PERSON, "commit", "-qm", "x", "--allow-empty")
    commit = git(tmp_path, "rev-parse", "HEAD")

    ask_git(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))  # from now on there is no git

    assert git_commit(tmp_path) == commit
    assert git_commit(tmp_path) is None
    ask_git(tmp_path)
