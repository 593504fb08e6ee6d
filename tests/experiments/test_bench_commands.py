"""Whole commands are timed, and compared with those of a commit."""

from pathlib import Path
from typing import Any

import pytest

from bench import commands
from bench.peers.process import Used
from ringleaf.errors import BackendError, ConfigError


def test_a_command_is_timed_whole() -> None:
    lines: list[str] = []
    figures = commands.run(lines.append, only="topologies")

    assert lines[-1].split()[::4] == ["topologies", "-"]
    assert figures["topologies"]["before"] is None
    assert figures["topologies"]["now"]["wall_s"] > 0
    assert 5e6 < figures["topologies"]["now"]["peak_bytes"] < 1e9


def test_trees_take_turns_and_the_fastest_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first turn, which may compile, does not count."""
    ran: list[str] = []
    walls = iter([9.0, 9.0, 2.0, 6.0, 1.0, 4.0, 3.0, 5.0])

    def once(name: str, words: str, tree: Path, at: Path, *, cold: bool) -> Used:
        ran.append(tree.name)
        return Used(next(walls), 0.0, 0)

    monkeypatch.setattr(commands, "_once", once)
    [(_, waiting)] = commands._in_turns(Path("now"), Path("then"), tmp_path, "run's help")

    assert ran == ["now", "then"] * 4
    assert (waiting.now.wall_s, waiting.ratio) == (1.0, "0.25")


def test_only_the_cold_row_begins_with_empty_caches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[Any] = []

    def run_command(name: str, words: list[str], room: Path) -> Used:
        caches = [word.partition("=")[2] for word in words if word.startswith("XDG_CACHE_HOME=")]
        started.append([name, [list(Path(each).iterdir()) for each in caches]])
        (room.parent / "caches" / "compiled").touch()
        return Used(1.0, 1.0, 1)

    monkeypatch.setattr(commands, "run_command", run_command)
    rows = list(commands._in_turns(Path("now"), Path("then"), tmp_path, "small, "))

    assert [name for name, _ in rows] == ["small, no figures", commands.COLD]
    assert started == [["small, no figures", []]] * 8 + [[commands.COLD, [[]]]] * 2


def test_a_commit_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="got 'nosuch'"):
        commands.run(print, "nosuch")


def test_a_command_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "COMMANDS", {"wrong": "topo show nosuch"})
    with pytest.raises(BackendError, match=r"^wrong: must end with exit code 0, got 2: "):
        commands.run(print, only="wrong")
