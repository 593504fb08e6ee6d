"""`config.json`: what a run was asked for, with which code, on which machine.

It and `log.txt` alone hold dates and wall-clock times; of all other files, the same options and
seed give the same bytes.
"""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import ringleaf
from ringleaf.core.disk import write_text
from ringleaf.core.installed import version_of
from ringleaf.core.remembered import own_state
from ringleaf.errors import ConfigError
from ringleaf.experiments.records.folder import CONFIG, SUMMARY
from ringleaf.experiments.records.named_files import digests

SCHEMA_VERSION = 2
LOG = "log.txt"
ASIDE = ("out", "threads")
"""Options that results do not depend on."""
_PACKAGES = ("numpy", "numba", "torch", "networkx", "finsy", "matplotlib")


HERE = Path(__file__).parent


@cache
def versions() -> dict[str, str]:
    """Return the versions of Ringleaf, Python and the packages that the figures depend on."""
    by_package = {"ringleaf": ringleaf.__version__, "python": platform.python_version()}
    known = {name: version_of(name) for name in _PACKAGES}  # torch need not be there
    return by_package | {name: version for name, version in known.items() if version is not None}


_asked: dict[Path, subprocess.Popen[str]] = {}
"""Processes of git that nobody has asked for their answers."""


def ask_git(root: Path = HERE) -> None:
    """Have git look at a folder now, for `git_commit`, which then need not wait for it."""
    with suppress(OSError):
        _asked[root] = _status(root)


def _status(root: Path) -> subprocess.Popen[str]:
    about = ("status", "--porcelain=v2", "--branch", "--no-ahead-behind", "-uno")
    return subprocess.Popen(
        ("git", "-C", str(root), *about),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def git_commit(root: Path = HERE) -> str | None:
    """Return the commit of a folder, with `+` appended if files differ; None outside git."""
    try:
        process = _asked.pop(root, None) or _status(root)
    except OSError:
        return None
    lines = process.communicate()[0].splitlines()
    if process.returncode:
        return None
    commit = lines[0].removeprefix("# branch.oid ")
    if commit == "(initial)":
        return None
    return commit + ("+" if any(not line.startswith("# ") for line in lines) else "")


def code() -> dict[str, Any]:
    """Return what tells code from other code: where Git can't tell its sources, their state."""
    commit = git_commit()
    edited = None if commit is not None and not commit.endswith("+") else own_state()
    return {"git_commit": commit, "versions": versions(), "sources": edited}


def write_config(folder: Path, resolved: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Begin a run directory: write the options as given, and as resolved."""
    typed = without_aside(options)
    about: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "started": datetime.now(UTC).isoformat(),
        **code(),
        "machine": {"system": _system(), "processor": platform.machine()},
        "given": typed,
        "files": digests(typed),
    }
    write_json(folder / CONFIG, about | dict(resolved))


def without_aside(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that results depend on."""
    return {name: value for name, value in options.items() if name not in ASIDE}


def _system() -> str:
    """Return the operating system's name and version, and the C library's."""
    vars(platform.uname()).setdefault("processor", "")  # else `uname -p` is run, which takes longer
    return platform.platform()


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON for people."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def write_log(folder: Path, lines: Iterable[str]) -> None:
    """Write `log.txt`: the times that things took, which differ from run to run."""
    write_text(folder / LOG, "".join(f"{line}\n" for line in lines))


def read_json(path: Path) -> dict[str, Any]:
    """Load a file of a run directory.

    Raises:
        ConfigError: If there is no such file, or it was written in another version's format.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"run directory: can't read its {path.name}, got {str(path.parent)!r}; "
            "name a folder that a run has written"
        ) from error
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from error
    version = value.get("schema_version") if isinstance(value, dict) else None
    if version != SCHEMA_VERSION:
        raise ConfigError(f"{path}: schema_version must be {SCHEMA_VERSION}, got {version!r}")
    content: dict[str, Any] = value
    return content


def read_summary(folder: Path) -> dict[str, Any]:
    """Load a run's summary; raises as `read_json` does."""
    return read_json(folder / SUMMARY)


def done_places(plan: Mapping[str, Any]) -> list[str]:
    """Return the folders of the runs that a sweep has done, by its plan, in order.

    Others may hold runs of an earlier sweep until they are replaced. Plans of 0.2.0 name all.
    """
    done = set(plan.get("done", plan["runs"]))
    return [place for place in plan["runs"] if place in done]


def read_given(folder: Path) -> dict[str, Any]:
    """Return the options that a run was given, as typed; raises as `read_json` does."""
    options: dict[str, Any] = read_json(folder / CONFIG)["given"]
    return options
