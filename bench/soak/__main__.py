"""`python -m bench.soak`: run random cases; check sums, ends, bounds, resends and leaks."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from threading import Timer
from typing import TYPE_CHECKING, Annotated

import typer

from ringleaf.core.safe_path import safe_path
from ringleaf.core.units import PS_PER_S, parse_time
from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import FAILURE, Debug, say

if TYPE_CHECKING:
    from concurrent.futures import Future

    from bench.soak.any_case import AnyCase

SAY_EVERY_S = 10.0
LATE_S = 60.0  # cases that take longer are named, as they may never end
MOST_SHRINKS = 200  # cases tried to make a failing one smaller

Seconds = Annotated[
    str, typer.Option("--time", help="Duration: 60s; the last case is run to its end.")
]
Runs = Annotated[int | None, typer.Option("--runs", help="Number of runs, in place of a duration.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of all cases.")]
Only = Annotated[
    int | None, typer.Option("--case", help="Number of the only case to run; every run is shown.")
]
Smaller = Annotated[
    str,
    typer.Option("--smaller", help="Way from the only case to a smaller one, as a soak says it."),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Number of processes.")]


@dataclass(slots=True)
class SoakTally:
    """The counts of a soak so far."""

    seed: int
    began_s: float = field(default_factory=time.monotonic)
    cases: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    bad: list[int] = field(default_factory=list)

    @property
    def runs(self) -> int:
        return sum(self.ends.values())

    def line(self) -> str:
        """Return the counts as one line of text."""
        took_s = time.monotonic() - self.began_s
        ends = ", ".join(f"{n} {what}" for what, n in self.ends.most_common())
        return (
            f"# seed {self.seed}: {self.cases} cases, {self.runs} runs in {took_s:.0f} s "
            f"({self.runs / max(took_s, 1e-9):.1f} runs/s): {ends or 'nothing yet'}"
        )


def soak_command(
    seconds: Seconds = "60s",
    runs: Runs = None,
    seed: Seed = 1,
    case: Only = None,
    smaller: Smaller = "",
    jobs: Jobs = 1,
    debug: Debug = False,
) -> None:
    """Run random cases for a given time, or one."""
    from bench.soak.any_case import draw_any

    if case is not None:
        if _show_case(follow(draw_any(seed, case), read_way(smaller))):
            raise typer.Exit(FAILURE)
        return
    tally = SoakTally(seed)
    limit_s = parse_time(seconds, "time") / PS_PER_S

    def is_over() -> bool:
        if runs is not None:
            return tally.runs >= runs
        return time.monotonic() - tally.began_s >= limit_s

    try:
        _soak(tally, is_over, jobs)
    finally:
        say(tally.line())
    if tally.bad:
        raise typer.Exit(FAILURE)


def read_way(text: str) -> list[int]:
    """Return the numbers of a way to a smaller case, as a soak prints them.

    Raises:
        ConfigError: If these are no numbers.
    """
    parts = text.split(",") if text else []
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ConfigError(f"smaller: must be numbers like 0,3,1, got {text!r:.80}")
    return [int(part) for part in parts]


def _soak(tally: SoakTally, is_over: Callable[[], bool], jobs: int) -> None:
    from bench.soak.any_case import draw_any

    said_s = tally.began_s
    for number, findings in _findings(tally.seed, is_over, jobs):
        tally.cases += 1
        tally.ends.update(what for what, _, _ in findings)
        bad = [each for each in findings if each[0] not in _GOOD]
        if bad:
            tally.bad.append(number)
            what, where, why = bad[0]
            say(f"case {number}: {what}: {where}: {why}")
            say(f"  again: python -m bench.soak --seed {tally.seed} --case {number}")
            if len(tally.bad) <= _SHRUNK:
                _say_smallest(draw_any(tally.seed, number), tally.seed, what)
        if time.monotonic() - said_s >= SAY_EVERY_S:
            said_s = time.monotonic()
            sys.stderr.write(f"{tally.line()}\n")


_GOOD = ("ok", "ended", "refused")  # as `trial.GOOD`, which takes long to load
_CRASH = "crash"
_SHRUNK = 3  # failing cases are made smaller, then only counted

Found = list[tuple[str, str, str]]


def _findings(seed: int, is_over: Callable[[], bool], jobs: int) -> Iterator[tuple[int, Found]]:
    """Yield cases' numbers and findings until the soak is over."""
    if jobs == 1:
        for number in count():
            if is_over():
                return
            yield number, try_number(seed, number)
        return
    numbers = count()
    while lost := (yield from _by_processes(seed, numbers, is_over, jobs)):
        for number in lost:
            yield number, apart(try_number, seed, number)


def _by_processes(
    seed: int, numbers: Iterator[int], is_over: Callable[[], bool], jobs: int
) -> Generator[tuple[int, Found], None, list[int]]:
    """Yield as `_findings`; return the numbers of cases whose results a process lost that died."""
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import active_children

    under_way: set[int] = set()
    waiting: dict[Future[Found], int] = {}
    others = set(active_children())
    with safe_path(), ProcessPoolExecutor(jobs) as pool:

        def submit() -> None:
            number = next(numbers)
            under_way.add(number)  # before the pool may say that it is broken
            waiting[pool.submit(try_number, seed, number)] = number

        try:
            for _ in range(0 if is_over() else 2 * jobs):
                submit()
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)  # one may take long
                for future in done:
                    findings, number = future.result(), waiting.pop(future)
                    under_way.remove(number)
                    yield number, findings
                    if not is_over():
                        submit()
        except BrokenProcessPool:
            return sorted(under_way)
        except BaseException:  # it is cut short: nobody waits for what is under way
            for process in set(active_children()) - others:
                process.kill()  # the pool, which waits for its processes, ends with them
            raise
    return []


def apart(function: Callable[..., Found], *arguments: object) -> Found:
    """Return a case's findings by a process of its own, which may crash."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    with safe_path(), ProcessPoolExecutor(1) as pool:
        try:
            return pool.submit(function, *arguments).result()
        except BrokenProcessPool:
            return [(_CRASH, "case", "its process died")]


def try_number(seed: int, number: int) -> Found:
    """Run a case; return its findings as plain tuples. A case that takes long is named."""
    from bench.soak.any_case import draw_any

    again = f"python -m bench.soak --seed {seed} --case {number}"
    late = f"case {number}: not over after {LATE_S:g} s: {again}\n"
    watch = Timer(LATE_S, sys.stderr.write, [late])
    watch.daemon = True
    watch.start()
    try:
        return try_plain(draw_any(seed, number))
    finally:
        watch.cancel()


def try_plain(case: AnyCase) -> Found:
    """Run a case; return its findings as plain tuples."""
    from bench.soak.cases import SoakCase
    from bench.soak.flow_trial import try_flows
    from bench.soak.job_cases import SoakJobs
    from bench.soak.job_trial import try_jobs  # compiles, or loads compiled code
    from bench.soak.nic_cases import NicCase
    from bench.soak.nic_trial import try_nics
    from bench.soak.recovery_cases import RecoveryCase
    from bench.soak.recovery_trial import try_recoveries
    from bench.soak.threads import try_threads
    from bench.soak.trial import try_case
    from bench.soak.workload_cases import WorkloadCase
    from bench.soak.workload_trial import try_workloads

    if isinstance(case, NicCase):
        found = try_nics(case)
    elif isinstance(case, RecoveryCase):
        found = try_recoveries(case)
    elif isinstance(case, WorkloadCase):
        found = try_threads(case, try_workloads)
    elif isinstance(case, SoakJobs):
        found = try_threads(case, try_jobs)
    else:
        found = try_threads(case, try_case)
    plain = [(each.what, each.where, each.why) for each in found]
    return plain + (try_flows(case.given) if isinstance(case, SoakCase) else [])


def shrink(case: AnyCase, fails: Callable[[AnyCase], bool]) -> list[int]:
    """Return the way from a case to the smallest one found that still fails, for `follow`.

    Args:
        case: One that fails.
        fails: Function that returns whether a case fails in the same way.
    """
    from bench.soak.any_case import simpler_any

    way: list[int] = []
    tried = 0
    while tried < MOST_SHRINKS:
        for number, smaller in enumerate(simpler_any(case)):
            tried += 1
            if fails(smaller):
                case = smaller
                way.append(number)
                break
            if tried >= MOST_SHRINKS:
                return way
        else:
            return way
    return way


def follow(case: AnyCase, way: Iterable[int]) -> AnyCase:
    """Return the case to which a way leads: at each step, one of the simpler cases by number.

    Raises:
        ConfigError: If there is no such simpler case.
    """
    from bench.soak.any_case import simpler_any

    for number in way:
        simpler = simpler_any(case)
        if not 0 <= number < len(simpler):
            raise ConfigError(f"smaller: must be numbers below {len(simpler)} here, got {number}")
        case = simpler[number]
    return case


def _say_smallest(case: AnyCase, seed: int, what: str) -> None:
    attempt = partial(apart, try_plain) if what == _CRASH else try_plain
    way = shrink(case, lambda each: any(end == what for end, _, _ in attempt(each)))
    smallest = follow(case, way)
    trouble = f", with {smallest.trouble}" if smallest.trouble else ""
    smaller = f" --smaller {','.join(map(str, way))}" if way else ""
    say(f"  smallest: {smallest.command}{trouble}")
    say(f"  again: python -m bench.soak --seed {seed} --case {case.number}{smaller}")


def _show_case(case: AnyCase) -> bool:
    """Run one case, saying how each run of it ended; return whether any is bad."""
    say("# " + case.command.replace("\n", "\n# "))
    if case.trouble:
        say(f"# {case.trouble}")
    found = try_plain(case)
    for what, where, why in found:
        say(f"{what:<8} {where:<24} {why}")
    return any(what not in _GOOD for what, _, _ in found)


if __name__ == "__main__":
    alone("python -m bench.soak", soak_command)
