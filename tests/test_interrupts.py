"""Ctrl-C and SIGTERM, at any moment: one line, a shell's exit status, and no traceback."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ExtensionFileLoader
from pathlib import Path

import pytest
import typer
from interrupting import COMMAND, LINE, Ending, end_at, heed_interrupts

from ringleaf.core import interrupts
from ringleaf.core.interrupts import EndedBySignal
from ringleaf.experiments.runs.console import guard

RUN = ["run", "--topo", "leafspine,leaves=1,spines=1,hosts=2", "--algo", "ring", "--size", "64K"]


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Signals are heeded, as they may not be in the background; what is done to them is undone."""
    before = {number: signal.getsignal(number) for number in interrupts.SIGNALS}
    for number in interrupts.SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    monkeypatch.setattr(interrupts, "_asked", None)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    yield
    for number, handle in before.items():
        signal.signal(number, handle)


def test_a_run_ends_with_one_line_at_any_moment(tmp_path: Path) -> None:
    """`tests/interrupting.py` does this at many more."""
    rng = random.Random(2)
    for moment_s in [0.0, *(rng.uniform(0, 3) for _ in range(5))]:
        ending = end_at([*RUN, "--out", str(tmp_path)], moment_s, folder=str(tmp_path))
        assert ending.is_right(signal.SIGINT), (moment_s, ending)


def test_sigterm_ends_a_command_as_ctrl_c_does(tmp_path: Path) -> None:
    ending = end_at(RUN, 0.3, signal.SIGTERM, str(tmp_path))
    assert ending.is_right(signal.SIGTERM), ending


def test_before_anything_is_imported_it_ends_at_once() -> None:
    """The command's first import sends the signal."""
    code = (
        "import builtins, os, signal\nimport ringleaf.__main__ as m\nreal = builtins.__import__\n"
        "def send(*a, **k):\n    os.kill(os.getpid(), signal.SIGINT)\n    return real(*a, **k)\n"
        "m.import_module = send\nm.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=False, preexec_fn=heed_interrupts,
    )  # fmt: skip
    assert done.stderr == (
        "ringleaf: interrupted; nothing is kept, and the same command starts over\n"
    )
    assert done.returncode == 130


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (signal.SIGINT, "ringleaf: interrupted; 2 of 3 rows are kept\n"),
        (signal.SIGTERM, "ringleaf: ended by SIGTERM; 2 of 3 rows are kept\n"),
        (signal.SIGHUP, "ringleaf: ended by SIGHUP; 2 of 3 rows are kept\n"),
    ],
)
def test_a_command_says_what_is_kept(
    number: signal.Signals, said: str, signals: None, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> None:
        try:
            os.kill(os.getpid(), number)
        except KeyboardInterrupt as error:
            error.add_note("2 of 3 rows are kept")
            raise

    with pytest.raises(typer.Exit) as ended:
        guard(command)()
    assert (ended.value.exit_code, capsys.readouterr().err) == (128 + number, said)


def test_an_error_that_a_signal_has_caused_is_the_signals(
    signals: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """A child process that has got it, too, may end first; libraries make other errors of it."""

    def command() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            raise ValueError("worker has died") from None

    with pytest.raises(typer.Exit) as ended:
        guard(command)()
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err.startswith("ringleaf: interrupted; ")


def test_an_exception_without_a_caller_comes_again(signals: None) -> None:
    class Object:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    def drop() -> None:
        thing = Object()
        del thing
        signal.pause()  # nothing was raised here: it is raised now

    interrupts.raise_instead()
    with pytest.raises(EndedBySignal):
        drop()


def test_an_extension_that_is_being_loaded_is_not_disturbed(
    signals: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm = []

    def create_module(called: Callable[[], None]) -> None:
        called()

    create_module.__code__ = create_module.__code__.replace(
        co_filename=ExtensionFileLoader.create_module.__code__.co_filename,
        co_qualname="ExtensionFileLoader.create_module",
    )

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        calm.append(True)

    def load() -> None:
        create_module(interrupt)
        signal.pause()

    interrupts.raise_instead()
    with pytest.raises(EndedBySignal):
        load()
    assert calm == [True]


def test_signals_that_are_ignored_stay_so(signals: None) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    interrupts.raise_instead()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_lines_and_endings_are_told_apart() -> None:
    assert re.fullmatch(LINE, "ringleaf: interrupted; nothing\n")
    assert not Ending(130, "Traceback (most recent call last)\n", 0.0).is_right(signal.SIGINT)
    assert not Ending(1, "", 0.0).is_right(signal.SIGINT)
    assert Ending(0, "", 0.0).is_right(signal.SIGINT)
    assert COMMAND[0] == sys.executable


ENCODED = "import sys; from ringleaf.experiments.commands import cli; cli._print_whatever_comes(); "


@pytest.mark.parametrize(
    ("encoding", "printed"),
    [
        ("ascii", b"4 us -> ## 2x ?\n"),
        ("latin-1", b"4 \xb5s -> ## 2\xd7 ?\n"),
        ("utf-8", "4 µs → ━█ 2\N{MULTIPLICATION SIGN} 字\n".encode()),
    ],
)
def test_any_encoding_prints_any_sign(encoding: str, printed: bytes) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{ENCODED}print('4 µs → ━█ 2\\u00d7 字')"],
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        check=True,
    )
    assert done.stdout == printed
