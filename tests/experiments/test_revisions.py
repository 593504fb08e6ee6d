"""`ringleaf compare` of commits: each runs with its own files, and with its own Ringleaf.

Small repositories have a Ringleaf of a few lines, whose run takes the time in a file. One test
changes Ringleaf itself, in a copy of this repository, and compares from the top of the copy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ringleaf.errors import ConfigError
from ringleaf.experiments.runs import revisions
from ringleaf.experiments.runs.revisions import find_revision

ROOT = Path(__file__).resolve().parents[2]
CLI = "ringleaf.experiments.commands.cli"

RUN = """
import sys
from pathlib import Path

out = Path(sys.argv[sys.argv.index("--out") + 1])
out.mkdir(parents=True)
time = Path(sys.argv[2]).read_text().strip()
(out / "results.csv").write_text(f"algo,size_bytes,time_ps,wrong\\nring,1024,{time},0\\n")
"""
"""A Ringleaf whose only command is a run that takes the time in the file that is named."""


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    command = ("git", "-C", str(folder), *identity, *words)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--no-verify", "-m", "state")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a small Ringleaf, and a file that says how long its run takes."""
    top = tmp_path / "repository"
    package = top / "ringleaf" / "experiments" / "commands"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").write_text("")
    (package / "cli.py").write_text(RUN)
    (top / "time.txt").write_text("1000000\n")
    git(tmp_path, "init", "-q", str(top))
    commit(top)
    return top


def compare(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Type `ringleaf compare` in a folder, with this code."""
    command = (sys.executable, "-P", "-m", CLI, "compare", *words)
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | variables
    return subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True
    )


def test_a_change_of_ringleaf_is_seen_from_the_top_of_its_clone(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    no_code = shutil.ignore_patterns(
        *(".*", "__pycache__", "build", "*.egg-info", "docs", "examples", "studies", "tests")
    )
    shutil.copytree(ROOT, clone, symlinks=True, ignore=no_code)
    shutil.copytree(ROOT / "p4" / "build", clone / "p4" / "build", dirs_exist_ok=True)
    git(tmp_path, "init", "-q", str(clone))
    commit(clone)
    delays = clone / "topologies" / "delays.py"
    text = delays.read_text()
    changed = text.replace('get("switch_delay_ps", 0)', 'get("switch_delay_ps", 0) + 5000')
    assert changed != text
    delays.write_text(changed)
    options = (
        *("--topo", "leafspine,leaves=1,spines=0,hosts=2", "--algo", "ring", "--size", "64"),
        *("--figures", "no"),
    )

    here = {"PYTHONPATH": str(clone), "NUMBA_DISABLE_JIT": "1"}
    done = compare(clone, "HEAD", ".", "--threshold", "0.01%", "--", *options, **here)

    assert "1 row: 1 slower" in done.stdout, done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("inside", [".", "deep/folder"])
def test_each_commit_runs_with_its_own_files(repository: Path, inside: str) -> None:
    here = repository / inside
    here.mkdir(parents=True, exist_ok=True)
    (here / "time.txt").write_text("1000000\n")
    first = commit(repository) if inside != "." else git(repository, "rev-parse", "HEAD")
    (here / "time.txt").write_text("2000000\n")
    commit(repository)
    (here / "time.txt").write_text("4000000\n")

    done = compare(here, first, "HEAD", "--", "time.txt")
    assert "1.000       2.000    +100.000  slower" in done.stdout, done.stderr
    done = compare(here, "HEAD", ".", "--", "time.txt")
    assert "2.000       4.000    +100.000  slower" in done.stdout, done.stderr
    assert done.returncode == 1
    assert f"before: HEAD ({git(repository, 'rev-parse', 'HEAD')[:12]}) of" in done.stdout
    done = compare(here, ".", ".", "--", "time.txt")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "# 1 row: 1 equal")
    assert git(repository, "worktree", "list").count("\n") == 0


def test_a_commits_own_ringleaf_runs(repository: Path) -> None:
    source = repository / "ringleaf" / "experiments" / "commands" / "cli.py"
    source.write_text(RUN.replace("{time},0", "{time}0,0"))

    done = compare(repository, "HEAD", ".", "--", "time.txt")

    assert "1.000      10.000    +900.000  slower" in done.stdout, done.stderr


def test_files_that_a_commit_lacks_are_those_of_the_current_folder(repository: Path) -> None:
    (repository / "new.txt").write_text("3000000\n")

    done = compare(repository, "HEAD", ".", "--", "new.txt")

    assert "# 1 row: 1 equal" in done.stdout, done.stderr


def test_a_hooks_variables_do_not_lead_elsewhere(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))

    done = compare(repository, "HEAD", ".", "--", "time.txt", GIT_DIR=str(other / ".git"))

    assert done.returncode == 0, done.stderr


def test_commits_are_looked_up_here_and_then_in_ringleafs_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    git(tmp_path, "init", "-q", str(own))
    (own / "a").write_text("a")
    commit(own)
    git(own, "tag", "known")
    monkeypatch.setattr(revisions, "PACKAGE", own / "ringleaf")
    monkeypatch.chdir(repository)

    assert find_revision("HEAD").repository.samefile(repository)
    assert find_revision("known").repository.samefile(own)
    assert find_revision(".").commit == ""
    monkeypatch.chdir(tmp_path)  # in no repository
    assert find_revision("HEAD").repository.samefile(own)
    for name in ("none", "--all", "HEAD~7"):
        with pytest.raises(ConfigError, match=f"no commit of .*own, got '{name}'; name a folder"):
            find_revision(name)
