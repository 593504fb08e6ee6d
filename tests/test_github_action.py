"""The GitHub action's steps, in a scratch repository of somebody else's, with a local Git.

Steps are taken from `action.yml` and run one after the other, as a runner does: expressions are
filled in, and folders in GITHUB_PATH are on the PATH of later steps. Installing is recorded and not
done, and `gh` keeps comments in a file.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
ACTION = ROOT / ".github" / "actions" / "replay"

PYTHON = """#!{python}
import os, pathlib, sys
words = sys.argv[1:]
if words[:2] == ["-m", "venv"]:
    commands = pathlib.Path(words[2]) / "bin"
    commands.mkdir(parents=True)
    for name in ("python", "ringleaf"):
        (commands / name).symlink_to(pathlib.Path(__file__).parent / f"installed-{{name}}")
else:
    os.execv({python!r}, [{python!r}, *words])
"""
"""A `python3` that makes an environment with the two commands below."""

PIP = """#!{python}
import os, sys
with open(os.environ["RUNNER_TEMP"] + "/pip.txt", "w") as file:
    file.write("\\n".join(sys.argv[1:]))
"""

RINGLEAF = """#!/bin/sh
NUMBA_DISABLE_JIT=1 PYTHONPATH={root} exec {python} -P -m ringleaf.experiments.commands.cli "$@"
"""

GH = """#!{python}
import json, os, pathlib, sys
words = sys.argv[1:]
store = pathlib.Path(os.environ["RUNNER_TEMP"]) / "comments.json"
comments = json.loads(store.read_text()) if store.exists() else {{"1": "<!-- another's -->"}}
if os.environ.get("GH_TOKEN") != "secret":
    sys.exit("HTTP 403: Resource not accessible by integration")
place = next(word for word in words if word.startswith("repos/"))
if "--method" not in words:
    assert place == "repos/someone/theirs/issues/7/comments", place
    found = [i for i, text in comments.items() if text.startswith(os.environ["MARK"])]
    print("\\n".join(found))
    sys.exit()
body = next(word for word in words if word.startswith("body=@"))
text = pathlib.Path(body.removeprefix("body=@")).read_text()
if words[words.index("--method") + 1] == "PATCH":
    assert place.startswith("repos/someone/theirs/issues/comments/"), place
    comments[place.rpartition("/")[2]] = text
else:
    assert place == "repos/someone/theirs/issues/7/comments", place
    comments[str(len(comments) + 1)] = text
store.write_text(json.dumps(comments))
"""


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    command = ("git", "-C", str(folder), *identity, *words)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@dataclass
class Runner:
    """A machine that does an action's steps in a checked-out repository."""

    folder: Path
    temp: Path
    values: dict[str, str]

    def step(self, name: str) -> subprocess.CompletedProcess[str]:
        """Do the step of this name."""
        (step,) = (each for each in steps() if each["name"] == name)
        variables = {key: self._fill(str(value)) for key, value in step.get("env", {}).items()}
        paths = (self.temp / "path.txt").read_text().split() if self._has_path() else []
        environment = os.environ | {
            **variables,
            "PATH": os.pathsep.join([*paths, str(self.temp / "bin"), os.environ["PATH"]]),
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_ACTION_PATH": str(ACTION),
            "GITHUB_PATH": str(self.temp / "path.txt"),
            "GITHUB_STEP_SUMMARY": str(self.temp / "summary.md"),
        }
        return subprocess.run(
            ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]),
            cwd=self.folder, env=environment, check=False, capture_output=True, text=True,
        )  # fmt: skip

    def comments(self) -> dict[str, str]:
        """Return the pull request's comments."""
        found: dict[str, str] = json.loads((self.temp / "comments.json").read_text())
        return found

    def _has_path(self) -> bool:
        return (self.temp / "path.txt").exists()

    def _fill(self, text: str) -> str:
        return re.sub(r"\$\{\{ *([\w.]+) *\}\}", lambda match: self.values[match[1]], text)


def steps() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((ACTION / "action.yml").read_text())["runs"][
        "steps"
    ]
    return found


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A shallow clone of somebody's repository, in which links have become slower."""
    origin, clone, temp = (tmp_path / name for name in ("origin", "clone", "temp"))
    git(tmp_path, "init", "-q", str(origin))
    shutil.copytree(ROOT / "tests" / "traces" / "l2l3", origin / "traces" / "l2l3")
    links = "h0 s0 rate={0}\nh1 s0 rate={0}\n"
    commits = []
    for rate in ("100G", "40G"):
        (origin / "pair.edges").write_text(links.format(rate))
        git(origin, "add", "-A")
        git(origin, "commit", "-q", "-m", rate)
        commits.append(git(origin, "rev-parse", "HEAD"))
    subprocess.run(("git", "clone", "-q", "--depth=1", f"file://{origin}", str(clone)), check=True)
    (temp / "bin").mkdir(parents=True)
    fakes = {"python3": PYTHON, "installed-python": PIP, "installed-ringleaf": RINGLEAF, "gh": GH}
    for name, text in fakes.items():
        path = temp / "bin" / name
        path.write_text(text.format(python=sys.executable, root=ROOT))
        path.chmod(0o755)
    values = {
        "inputs.traces": "traces",
        "inputs.run": "--topo pair.edges --algo ring --size 4K",
        "inputs.base": commits[0],
        "inputs.threshold": "0.1%",
        "inputs.token": "secret",
        "github.event.pull_request.number": "7",
        "github.repository": "someone/theirs",
    }
    return Runner(clone, temp, values)


def test_the_action_works_in_another_repository(runner: Runner) -> None:
    installed = runner.step("Install Ringleaf")
    assert installed.returncode == 0, installed.stderr
    pip = (runner.temp / "pip.txt").read_text().split("\n")
    assert pip[:3] == ["-m", "pip", "install"]
    assert pip[-3:] == ["-c", str(ROOT / "constraints.txt"), str(ROOT)]

    replayed = runner.step("Replay")
    assert replayed.returncode == 0, replayed.stderr
    assert "testsuite" in (runner.temp / "replay.xml").read_text()

    compared = runner.step("Compare")
    assert compared.returncode == 1, compared.stderr
    assert "1 row: 1 slower" in (runner.temp / "summary.md").read_text()

    assert runner.step("Comment").returncode == 0
    assert runner.step("Comment").returncode == 0  # the next push
    first, comment = runner.comments().values()
    assert first == "<!-- another's -->"
    assert "1 row: 1 slower" in comment
    assert "--topo pair.edges" in comment

    runner.values["inputs.token"] = "a fork's"
    refused = runner.step("Comment")
    assert refused.returncode == 0
    assert "permissions: pull-requests: write" in refused.stdout


def test_a_run_that_can_not_be_compared_says_so(runner: Runner) -> None:
    runner.step("Install Ringleaf")
    runner.values["inputs.run"] = "--topo none.edges --algo ring"

    done = runner.step("Compare")

    assert done.returncode == 2
    assert "none.edges" in done.stderr
    assert "could not be compared" in (runner.temp / "comparison.md").read_text()


def test_steps_are_pinned_and_keep_the_junit_file() -> None:
    used = [str(step["uses"]) for step in steps() if "uses" in step]

    assert used == ["actions/upload-artifact@v4"]
    assert all(step.get("shell") == "bash" for step in steps() if "run" in step)
    assert all("${{" not in str(step.get("run")) for step in steps()), "values are no program text"
