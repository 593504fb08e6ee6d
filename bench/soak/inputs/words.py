"""Command lines: commands with options and values that fit, nearly fit, or are absurd.

They are carried out as by a shell, but in this process: what would start processes, threads or
connections ends the command there, as its options have then been read.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.soak.inputs.guards import SlowError, time_limit
from bench.soak.inputs.kind import PROGRAMS, ROOT, STF, TRACES, InputKind
from ringleaf.errors import choose

WORK_S = 1.0  # of a processor; a command that takes more has begun to work
WAIT_S = 30.0  # of a clock; a server waits for clients, a reader for its terminal
REFUSAL_S = 0.5  # of a processor, for a command that is refused
ENDS = (0, 1, 2)
NO_COMMANDS = frozenset({"soak", "bench"})
"""Commands that are not drawn: they run many others."""

NO_OPTIONS = frozenset({"--all", "--debug"})
"""Options that are not drawn: they end processes of others, and print tracebacks."""


class WorkError(BaseException):
    """A command's action, once it has read its options."""


class FaultError(Exception):
    """A command that ends with a status, words or a time that are not ours.

    Args:
        sign: What is the same for the same mistake.
        why: All about it.
    """

    def __init__(self, sign: str, why: str) -> None:
        super().__init__(why)
        self.sign = sign


@dataclass(frozen=True, slots=True)
class WordOption:
    """An option or argument of a command; without names it is an argument."""

    names: tuple[str, ...]
    is_flag: bool


NUMBERS = (
    *("0", "1", "2", "3", "4", "8", "-1", "-0", "1.5", "1e3", "1e400", "nan", "inf", "0x10", "1_0"),
    *("9" * 30, "9" * 5000, "-" + "9" * 30, "٣", "½", "1 2", "+1", "1,2", "1/2", "00"),
)
AMOUNTS = (
    *("1K", "64K", "4MiB", "1B", "100G", "25Gbit/s", "1us", "10ns", "1ms", "0.1%", "100%", "101%"),
    *("-1K", "1k", "1KK", "K", "%", "1e9G", "9" * 20 + "G", "1us,2us", "1K,1M", "1K..1M", "0%"),
)
NAMES = (
    *("ring", "tree", "switchml", "atp", "auto", "oktopk:1%", "tacos", "taccl:x.yaml", "alltoall"),
    *("fattree", "fattree,k=4", "fattree,k=0", "fattree,k=99999", "leafspine,leaves=2,spines=1"),
    *("leafspine,hosts=-1", "torus2d,x=2", "bcube,n=2", "ring,ring", "ring,", ",", "=", "a=b=c"),
    *("virtual", "mininet", "bmv2", "embedded", "dcqcn", "hpcc", "swift", "fifo", "topk:1%"),
    *("topk", "onebit", "resnet50", "vgg16", "float32", "int32", "none", "random", "yes", "no"),
    *("json", "csv", "first", "given", "h0", "s0", "s0-s1", "1ms:s0-s1", "forward", "acl"),
)
ABSURD = (
    *("", " ", "\n", "\t", "\x1b[2J", "\x7f", "\u202e", "\udcff", "é", "字", "👍", "'", '"', "\\"),
    *("-", "--", "---", "-x", "--no-such-option", "--help", "-h", "--version", "$(x)", "`x`"),
    *("{0}", "%s%n", "a" * 255, "a" * 5000, "x:y:z", ":", ";", "[", "[]", "{}", "null", "*", "?"),
)
PATHS = (
    *(".", "..", "/", "folder", "folder/", "file", "file/below", "no/such/file", "no.yaml"),
    *("/dev/full", "/dev/null", "/dev/zero", "/proc/self/mem", "/proc/1/root/x", "/etc/passwd"),
    *("~", "~/x", "a" * 255 + ".csv", "/" + "a/" * 3000, "empty.yaml", "empty.json", "empty.csv"),
    *("empty.xml", "empty.graphml", "empty.p4", "empty.pcap", "unreadable", "link", "x\ny.json"),
    *("bytes.yaml", "bytes.json", "bytes.csv", "bytes.xml", "bytes.p4", "bytes.pcap", "bytes.stf"),
)


@cache
def _files() -> tuple[str, ...]:
    """Return files of the repository that commands read."""
    places = [(ROOT / "examples", "*/*"), (PROGRAMS, "*"), (STF, "*"), (TRACES, "*")]
    places += [(ROOT / "p4" / "build", "f*"), (ROOT / "experiments" / "specs", "*")]
    return tuple(str(path) for place, shape in places for path in sorted(place.glob(shape)))


@cache
def _commands() -> dict[tuple[str, ...], tuple[WordOption, ...]]:
    """Return the options and arguments of all commands, by their words."""
    from typer.main import get_command

    from ringleaf.experiments.commands.cli import make_app

    found: dict[tuple[str, ...], tuple[WordOption, ...]] = {}
    waiting: list[tuple[tuple[str, ...], Any]] = [((), get_command(make_app()))]
    while waiting:
        words, command = waiting.pop()
        for name, below in getattr(command, "commands", {}).items():
            waiting.append(((*words, name), below))
        if words and words[0] not in NO_COMMANDS and words != ("net", "clean"):
            found[words] = tuple(
                WordOption(
                    tuple(each.opts) if each.param_type_name == "option" else (),
                    bool(getattr(each, "is_flag", False)),
                )
                for each in command.params
            )
    return dict(sorted(found.items()))


def _value(rng: random.Random) -> str:
    kinds = (NUMBERS, AMOUNTS, NAMES, NAMES, ABSURD, PATHS, _files())
    text = rng.choice(rng.choice(kinds))
    if rng.random() < 0.15:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(rng.choice((ABSURD, NUMBERS)))[:20] + text[at + 1 :]
    return text.replace("\0", "")


def draw_words(rng: random.Random) -> list[str]:
    """Return the words of a command line, without the program's name."""
    if rng.random() < 0.02:
        return [_value(rng) for _ in range(rng.randint(0, 3))]
    words, options = rng.choice(list(_commands().items()))
    drawn = [*words]
    for option in options:
        if not option.names:
            drawn += [_value(rng)] * (rng.random() < 0.85)
    named = [each for each in options if each.names and not NO_OPTIONS & {*each.names}]
    for option in rng.sample(named, min(len(named), rng.choice((0, 1, 1, 2, 3, 6)))):
        drawn.append(rng.choice(option.names))
        if not option.is_flag and rng.random() < 0.97:
            drawn.append(_value(rng))
    if words[0] in ("run", "nic", "train") and rng.random() < 0.5:
        drawn.append("--dry-run")
    return drawn


def _draw(rng: random.Random) -> bytes:
    import_module("torch")  # it can't be loaded again where a command was ended meanwhile
    return json.dumps(draw_words(rng)).encode()


class _Gate:
    """An audit hook that ends a command where it would begin to work, or change what is not its."""

    def __init__(self) -> None:
        self._folder = ""
        self._on = False
        sys.addaudithook(self._hear)

    @contextmanager
    def on(self, folder: Path) -> Iterator[None]:
        self._folder, self._on = str(folder.resolve()), True
        try:
            yield
        finally:
            self._on = False

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._on:
            return
        if event in _WORK:
            raise WorkError(event)
        if event in _CHANGES or (event == "open" and _writes(arguments)):
            self._check(arguments[0])

    def _check(self, path: Any) -> None:
        """Refuse to change what is not in the folder, as a system does that this user can't."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        place = os.path.realpath(os.fsdecode(path))
        if not place.startswith(f"{self._folder}/") and place not in ("/dev/null", "/dev/full"):
            raise PermissionError(13, "Permission denied", os.fsdecode(path))


_NEW_NETWORK = 0x40000000  # CLONE_NEWNET of <linux/sched.h>
_WORK = frozenset(
    {
        *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"),
        *("subprocess.Popen", "pty.spawn", "socket.connect", "socket.bind", "os.kill", "os.killpg"),
        *("_thread.start_new_thread", "_thread.start_joinable_thread"),
    }
)
_CHANGES = frozenset(
    {
        *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.chmod"),
        *("os.truncate", "shutil.rmtree", "os.chown", "os.utime"),
    }
)


def _writes(arguments: tuple[Any, ...]) -> bool:
    _, mode, flags = arguments
    changing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
    return bool((flags or 0) & changing) or any(letter in str(mode or "") for letter in "wax+")


@cache
def _gate() -> _Gate:
    """Return the hook of this process, which has a network of its own from now on, if it may."""
    ctypes.CDLL(None).unshare(_NEW_NETWORK)  # grpc's sockets are none of Python's
    return _Gate()


def _furnish(folder: Path) -> None:
    """Make the files that PATHS names."""
    (folder / "folder").mkdir()
    (folder / "file").write_text("x")
    (folder / "unreadable").write_text("x")
    (folder / "unreadable").chmod(0)
    (folder / "link").symlink_to("nowhere")
    for suffix in ("yaml", "json", "csv", "xml", "graphml", "p4", "pcap", "stf"):
        (folder / f"empty.{suffix}").touch()
        (folder / f"bytes.{suffix}").write_bytes(b"\xff\xfe\x00\x01{[<")


def feed_words(words: Sequence[str], folder: Path) -> None:
    """Carry out a command line in a folder.

    Raises:
        FaultError: If it ends with a status, words or a time that are not ours.
    """
    _furnish(folder)
    before, said = Path.cwd(), io.StringIO()
    tempfile.tempdir = str(folder)
    os.chdir(folder)
    began_s = time.process_time()
    try:
        with _gate().on(folder), redirect_stdout(io.StringIO()), redirect_stderr(said):
            status = _perform(words)
    finally:
        os.chdir(before)
        tempfile.tempdir = None
    took_s = time.process_time() - began_s
    if status is not None and (fault := _fault(status, said.getvalue(), took_s)):
        raise FaultError(
            f"{' '.join(words[:1]):.20}: {fault}", f"{fault}: {said.getvalue()[-400:]}"
        )


def _fault(status: int, said: str, took_s: float) -> str:
    """Return what is wrong with the end of a command, or ""."""
    if status not in ENDS:
        return f"status {status}"
    if "Traceback (most recent call last)" in said:
        return "a traceback"
    if status and not any(line.startswith("ringleaf: ") for line in said.split("\n")):
        return "an error without words"
    if status == 2 and took_s > REFUSAL_S:
        return f"refused after more than {REFUSAL_S:g} s"
    return ""


def _perform(words: Sequence[str]) -> int | None:
    """Carry out a command; return its status, or None if it has begun to work."""
    from ringleaf.experiments.commands import cli

    cli._app_for = _command_for
    argv, before = sys.argv, signal.signal(signal.SIGALRM, _ring)
    sys.argv = ["ringleaf", *words]
    signal.setitimer(signal.ITIMER_REAL, WAIT_S)
    try:
        with time_limit(WORK_S):
            return cli.perform(words)
    except (WorkError, SlowError):
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.argv = argv


@cache
def _command_for(first: str) -> Any:
    """Return the command line for a first word, as `cli` makes it, but once: it takes most time."""
    from typer.main import get_command

    from ringleaf.experiments.commands import cli

    names = (
        () if first.startswith("-") else (choose("command line", "command", first, cli.COMMANDS),)
    )
    return get_command(cli.make_app(*([names] if names else [])))


def _ring(*_: object) -> None:
    raise WorkError(f"waits for {WAIT_S:g} s")


def _feed(data: bytes, folder: Path) -> None:
    try:
        words = json.loads(data)
    except (ValueError, RecursionError):
        return
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        feed_words([word.replace("\0", "") for word in words], folder)


KIND = InputKind(0, _draw, _feed, is_watched=False)
"""Drawn if it is asked for: `--only words`."""
