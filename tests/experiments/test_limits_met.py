"""Limits of the machine end a command with one line that says which, and what to do."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import typer

from ringleaf.experiments.commands import cli
from ringleaf.experiments.runs.console import guard, say, say_if_read

ERRORS = {
    "memory: there is not enough": MemoryError(),
    "threads: the system allows no more": RuntimeError("can't start new thread"),
    "library: can't be loaded": ImportError("x.so: failed to map segment from shared object"),
    "system: this process may open no more files": OSError(errno.EMFILE, "Too many open files"),
    "a.csv: files may not be as large": OSError(errno.EFBIG, "File too large", "a.csv"),
    "out: its disk is full": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "out"),
    "system: there is not enough memory": OSError(errno.ENOMEM, "Cannot allocate memory"),
}


@pytest.mark.parametrize(("told", "error"), ERRORS.items())
def test_a_limit_is_told_in_a_line(
    told: str, error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> None:
        raise error

    with pytest.raises(typer.Exit) as ended:
        guard(command)()
    assert ended.value.exit_code == 1
    said = capsys.readouterr().err
    assert said.startswith(f"ringleaf: {told}, got ")
    assert said.count("\n") == 1


def test_a_limit_that_is_met_while_commands_are_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(first: str) -> typer.Typer:
        raise MemoryError

    monkeypatch.setattr(cli, "_app_for", fail)
    assert cli.perform(["run"]) == 1
    assert capsys.readouterr().err.startswith("ringleaf: memory: there is not enough")


@pytest.mark.parametrize("error", [RuntimeError("ours"), ImportError("no name x")])
def test_faults_of_ours_are_raised(error: Exception) -> None:
    def command() -> None:
        raise error

    with pytest.raises(type(error)):
        guard(command)()


@pytest.mark.parametrize("group", ["nic", "topo", "workload"])
def test_a_group_without_a_command_says_so(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.perform([group]) == 2
    line = f"ringleaf: {group}: no command below it was given; ringleaf {group} --help shows"
    assert capsys.readouterr().err.startswith(line)


def test_a_run_goes_on_when_nobody_reads_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `| head -1`: its files are wanted all the same."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stdout:
        monkeypatch.setattr("sys.stdout", stdout)
        say_if_read("first")
        assert os.read(reader, 9) == b"first\n"
        os.close(reader)
        with pytest.raises(BrokenPipeError):
            say("second")
        say_if_read("third")
        say("fourth")


def test_a_full_disk_below_stdout_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("w") as stdout:
        monkeypatch.setattr("sys.stdout", stdout)
        with pytest.raises(OSError, match="No space left on device: 'stdout'"):
            say("a line")
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())  # so that it can be closed
