"""Fuzzing with broken and hostile input, each of which must work or be refused.

    python -m bench.soak.hostile --inputs 100000 --seed 1

Input number i of a seed is always the same. Each is fed in a process with a folder of its own and
limits of time and memory, which may write nowhere else, start nothing and connect to nothing. An
input that ends in anything but an error of ours is made smaller, kept in a file, and reported with
the command that repeats it. Exit codes: 0 there was none, 1 there were some.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import shutil
import tempfile
import time
import traceback
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.soak.inputs.guards import (
    AuditWatch,
    BreachError,
    SlowError,
    limit_memory,
    time_limit,
)
from bench.soak.inputs.mutators import OWNED
from bench.soak.inputs.words import FaultError
from bench.soak.kinds import KINDS, REFUSALS, prepare
from bench.soak.shrink import shrink
from ringleaf.core.private import cache_folder
from ringleaf.errors import choose
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import FAILURE, Debug, say

LIMIT_S = 10.0  # of a processor, for one input; a large program takes one second
STUCK_S = 300.0  # without a word from a process, which is then ended
MORE_BYTES = 1 << 30  # of memory, beyond a process's memory at first
LONGEST = 4 << 20  # bytes of an input
SHRINK_S = 20.0
BATCH = 50  # inputs between two reports of a process


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure that an input caused; `sign` is the same for the same mistake."""

    number: int
    kind: str
    sign: str
    story: str
    file: Path | None = None


@dataclass(slots=True)
class InputTally:
    fed: Counter[str] = field(default_factory=Counter)
    worked: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)


def draw(seed: int, number: int, only: str | None = None) -> tuple[str, bytes]:
    """Return an input and its kind."""
    rng = random.Random(f"{seed} {number}")
    shares = {name: each.share for name, each in KINDS.items()} if only is None else {only: 1}
    kind = rng.choices(list(shares), list(shares.values()))[0]
    return kind, KINDS[kind].draw(rng)[:LONGEST]


class Feeder:
    """A feeder of inputs in this process, one per process: its watch and folder can't be undone."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._watch = AuditWatch([scratch, cache_folder()])
        os.chdir(scratch)

    def feed(self, kind: str, data: bytes) -> tuple[bool, str, str]:
        """Return whether an input worked, and the sign and story of its failure, if any."""
        folder = self._scratch / "input"
        folder.mkdir()
        worked, sign, story = False, "", ""
        try:
            of = KINDS[kind]
            with self._watch.on() if of.is_watched else nullcontext(), time_limit(LIMIT_S):
                of.feed(data, folder)
            worked = True
        except REFUSALS:
            pass
        except (Exception, SlowError, BreachError) as error:  # noqa: BLE001  that is what we look for
            sign, story = _sign(error), traceback.format_exc()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if self._watch.breaches or (self._scratch / OWNED).exists():
            (self._scratch / OWNED).unlink(missing_ok=True)
            what = "; ".join(self._watch.breaches) or "code in a name was executed"
            sign, story = f"breach: {what:.100}", f"{what}\n{story}"
        return worked, sign, story

    def smaller(self, kind: str, data: bytes, sign: str) -> bytes:
        """Return a smaller input with the same failure."""
        if sign.startswith("SlowError"):
            return data  # shrinking it would take all the time there is
        return shrink(data, lambda less: self.feed(kind, less)[1] == sign, SHRINK_S)


def _sign(error: BaseException) -> str:
    """Return the error's type and place: the innermost line of our own code."""
    if isinstance(error, FaultError):
        return error.sign
    places = traceback.extract_tb(error.__traceback__)
    root = str(Path(__file__).resolve().parents[2])
    ours = [place for place in places if place.filename.startswith(root)]
    ours = [place for place in ours if "/.venv/" not in place.filename] or list(places)
    place = ours[-1]
    return f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}"


# Processes.


def _work(pipe: Connection, scratch: Path, seed: int, numbers: range, only: str | None) -> None:
    """Feed inputs; report each failure, and after each batch how many were fed and worked."""
    feeder = Feeder(scratch)
    limit_memory(MORE_BYTES)
    fed, worked = Counter[str](), Counter[str]()
    for number in numbers:
        pipe.send(("at", number))
        kind, data = draw(seed, number, only)
        good, sign, story = feeder.feed(kind, data)
        fed[kind] += 1
        worked[kind] += good
        if sign:
            pipe.send(("failed", number, kind, sign, story, data))
        if (number - numbers.start) % BATCH == BATCH - 1 or number == numbers[-1]:
            pipe.send(("fed", dict(fed), dict(worked)))
            fed.clear()
            worked.clear()


def _shrink_apart(pipe: Connection, scratch: Path, kind: str, data: bytes, sign: str) -> None:
    feeder = Feeder(scratch)
    feeder.feed(kind, data)
    limit_memory(MORE_BYTES)
    pipe.send(feeder.smaller(kind, data, sign))


class Soak:
    """A soak, which feeds a seed's inputs by one process after the other, until time is over."""

    def __init__(self, seed: int, keep: Path, only: str | None = None) -> None:
        self._seed = seed
        self._keep = keep
        self._only = only
        self._signs: Counter[str] = Counter()
        self.tally = InputTally()

    def run(self, numbers: range, until: float) -> None:
        while numbers and time.monotonic() < until:
            numbers = numbers[self._process(numbers, until) :]

    def _process(self, numbers: range, until: float) -> int:
        """Feed numbers in one process; return how many of them it has finished."""
        here, there = multiprocessing.Pipe(duplex=False)
        at = numbers.start
        with tempfile.TemporaryDirectory(prefix="ringleaf-soak-") as scratch:
            process = multiprocessing.Process(
                target=_work, args=(there, Path(scratch), self._seed, numbers, self._only)
            )
            process.start()
            there.close()
            try:
                while time.monotonic() < until:
                    if not here.poll(STUCK_S):
                        self._died(at, f"no word for {STUCK_S:g} s")
                        return at + 1 - numbers.start
                    message = here.recv()
                    at = self._hear(message, at)
            except EOFError:
                process.join()
                if process.exitcode:
                    self._died(at, f"the process ended with {process.exitcode}")
                    return at + 1 - numbers.start
                return len(numbers)
            finally:
                process.kill()
                process.join()
                here.close()
        return len(numbers)

    def _hear(self, message: Any, at: int) -> int:
        match message:
            case ("at", int(number)):
                return number
            case ("fed", fed, worked):
                self.tally.fed.update(fed)
                self.tally.worked.update(worked)
            case ("failed", number, kind, sign, story, data):
                self._failed(number, kind, sign, story, data)
        return at

    def _died(self, number: int, why: str) -> None:
        kind, data = draw(self._seed, number, self._only)
        self._failed(number, kind, f"died: {why} ({kind})", why, data, shrinks=False)

    def _failed(
        self, number: int, kind: str, sign: str, story: str, data: bytes, *, shrinks: bool = True
    ) -> None:
        self._signs[sign] += 1
        if self._signs[sign] > 1:
            return  # one of a sign is enough to fix it
        if shrinks:
            data = self._smaller(kind, data, sign)
        self._keep.mkdir(parents=True, exist_ok=True)
        file = self._keep / f"{self._seed}-{number}.{kind}"
        file.write_bytes(data)
        failure = Failure(number, kind, sign, story, file)
        self.tally.failures.append(failure)
        say(f"FAILED     input {number} ({kind}): {sign}")
        say("\n".join(f"           {line}" for line in story.strip().splitlines()[-6:]))
        say(f"           kept, made smaller: {file} ({len(data)} bytes)")
        say(f"           again: python -m bench.soak.hostile --file {file}")

    def _smaller(self, kind: str, data: bytes, sign: str) -> bytes:
        here, there = multiprocessing.Pipe(duplex=False)
        with tempfile.TemporaryDirectory(prefix="ringleaf-soak-") as scratch:
            process = multiprocessing.Process(
                target=_shrink_apart, args=(there, Path(scratch), kind, data, sign)
            )
            process.start()
            there.close()
            try:
                return bytes(here.recv()) if here.poll(3 * SHRINK_S) else data
            except EOFError:
                return data
            finally:
                process.kill()
                process.join()


def again(file: Path) -> bool:
    """Feed a kept input, and print the outcome; return whether it is now refused, or works."""
    kind, data = file.suffix.removeprefix("."), file.read_bytes()
    with tempfile.TemporaryDirectory(prefix="ringleaf-soak-") as scratch:
        worked, sign, story = Feeder(Path(scratch)).feed(kind, data)
        os.chdir("/")
    say(story or ("works" if worked else "is refused"))
    return not sign


def hostile_command(
    inputs: Annotated[int, typer.Option(min=1, help="Number of inputs.")] = 1000,
    first: Annotated[int, typer.Option(min=0, help="Number of the first input.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of all inputs.")] = 1,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="Seconds after which to stop.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(help=f"Kind of input, the only one: {', '.join(KINDS)}.")
    ] = None,
    keep: Annotated[Path, typer.Option(help="Folder for failures.")] = Path("runs/hostile"),
    file: Annotated[Path | None, typer.Option(help="Input file to feed again.")] = None,
    debug: Debug = False,
) -> None:
    """Feed inputs; end with 1 if there was a failure."""
    kind = file.suffix.removeprefix(".") if file else only
    if kind is not None:
        choose("hostile", "kind of input", kind, KINDS)
    prepare()  # here, as processes are forks of this one
    if file:
        if not again(file):
            raise typer.Exit(FAILURE)
        return
    started = time.monotonic()
    soak = Soak(seed, keep.resolve(), only)
    soak.run(range(first, first + inputs), started + (math.inf if seconds is None else seconds))
    took, tally = time.monotonic() - started, soak.tally
    for kind in KINDS:
        if tally.fed[kind]:
            say(f"# {kind:<8} {tally.fed[kind]:>7} inputs, {tally.worked[kind]} of which work")
    total = tally.fed.total()
    say(f"# {total} inputs in {took:.0f} s, {total / took:.0f} per second, seed {seed}")
    say(f"# {len(tally.failures)} kinds of failure: {'OK' if not tally.failures else 'FAILED'}")
    if tally.failures:
        raise typer.Exit(FAILURE)


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    alone("python -m bench.soak.hostile", hostile_command)
