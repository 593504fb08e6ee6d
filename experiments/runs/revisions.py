"""Runs of `ringleaf run` with the files of a commit, or with the files as they are now.

A commit is looked up in the Git repository that holds the current folder: Ringleaf's own, or one
of a user with programs, specs and traces. If it is unknown there, Ringleaf's repository is asked.
A commit is checked out into a folder of its own, and the run works in that folder, so that files
that it names, and modules at its top, are the commit's. Ringleaf itself is the repository's, too,
if it is Ringleaf's; else it is the installed one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ringleaf.core.shipped import PACKAGE
from ringleaf.errors import BackendError, ConfigError

CLI = "ringleaf.experiments.commands.cli"
NOW = "."
"""The name for the files as they are now."""

_HOOKS_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Variables that Git sets for hooks. With them, it would ignore the folder that it is given."""


@dataclass(frozen=True, slots=True)
class Revision:
    """Files that a run works with.

    Attributes:
        name: The commit as it was typed, or NOW.
        commit: The commit's hash; "": the files as they are now.
        repository: The top folder of the Git repository.
        inside: The current folder, relative to the top folder.
    """

    name: str
    commit: str
    repository: Path
    inside: Path

    def __str__(self) -> str:
        if not self.commit:
            return f"the files now in {self.repository}"
        return f"{self.name} ({self.commit[:12]}) of {self.repository}"


def find_revision(name: str) -> Revision:
    """Find a commit in the current folder's repository, or else in Ringleaf's.

    Raises:
        ConfigError: If neither has such a commit.
    """
    places = _places()
    if name == NOW:
        repository, inside = places[0]
        return Revision(name, "", repository, inside)
    for repository, inside in places:
        commit = _commit(repository, name)
        if commit:
            return Revision(name, commit, repository, inside)
    searched = " or ".join(str(repository) for repository, _ in places)
    raise ConfigError(
        f"compare: no sweep.csv or results.csv there, and no commit of {searched}, got {name!r}; "
        "name a folder that a run or a sweep has written, or a commit (a shallow clone lacks "
        "earlier ones: git fetch)"
    )


def _places() -> list[tuple[Path, Path]]:
    """Return the repositories in which commits are looked up, each with the folder to run in."""
    places = []
    here = Path.cwd()
    done = _git(here, "rev-parse", "--show-toplevel")
    if done.returncode == 0:
        top = Path(done.stdout.removesuffix("\n"))
        places.append((top, here.resolve().relative_to(top.resolve())))
    own = PACKAGE.parent
    if not any(top.samefile(own) for top, _ in places):
        places.append((own, Path()))
    return places


def _commit(repository: Path, name: str) -> str:
    """Return the hash of the commit that a name means; "" if there is none."""
    if name.startswith("-"):
        return ""
    command = ("rev-parse", "--quiet", "--verify", "--end-of-options", f"{name}^{{commit}}")
    done = _git(repository, *command)
    return "" if done.returncode else done.stdout.strip()


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in _HOOKS_VARIABLES}
    try:
        return subprocess.run(
            ("git", "-C", str(folder), *arguments),
            check=False,
            capture_output=True,
            text=True,
            env=environment,
        )
    except FileNotFoundError as error:
        raise BackendError("compare: git is missing; install it to compare commits") from error


@contextmanager
def files_of(revision: Revision, tree: Path) -> Iterator[Path]:
    """Yield the top folder of a revision's files; a commit's is `tree`, and removed afterwards.

    Raises:
        BackendError: If Git can't check the commit out.
    """
    if not revision.commit:
        yield revision.repository
        return
    repository = revision.repository
    command = ("worktree", "add", "--detach", "--force", str(tree), revision.commit)
    done = _git(repository, *command)
    if done.returncode:
        message = done.stderr.strip()[-300:]
        raise BackendError(f"compare: can't check out {revision.name}: {message}")
    try:
        yield tree
    finally:
        _git(repository, "worktree", "remove", "--force", str(tree))


def run_files(
    revision: Revision, tree: Path, options: Sequence[str], out: Path
) -> subprocess.CompletedProcess[str]:
    """Run `ringleaf run` with a revision's files, and return how it ended.

    Args:
        revision: The files' revision.
        tree: The top folder of the files.
        options: The run's options. A word that names a file which only the current folder has
            means that file.
        out: The run directory.
    """
    folder = tree / revision.inside
    if not folder.is_dir():
        raise ConfigError(
            f"compare: {revision} must have the folder {str(revision.inside)!r}, got none; work in "
            "the top folder"
        )
    words = [_word(word, folder) for word in options]
    # Without -P, Python would import from the current folder before it looks at PYTHONPATH, so
    # that from the top of a clone each commit ran the code as it is now.
    command = [sys.executable, "-P", "-m", CLI, "run", *words, "--out", str(out)]
    return subprocess.run(
        command,
        cwd=folder,
        env=_environment(tree),
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )


def _word(word: str, folder: Path) -> str:
    here = Path.cwd() / word
    return str(here) if os.path.exists(here) and not os.path.exists(folder / word) else word


def _environment(tree: Path) -> Mapping[str, str]:
    paths = [str(tree), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
