"""`ringleaf synth`: search for a collective's schedule on a topology, and write it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringleaf.collectives.files.registry import find_format
from ringleaf.collectives.synthesis.names import SUFFIXES, SYNTHESISERS
from ringleaf.core import interrupts
from ringleaf.core.disk import write_text
from ringleaf.core.units import (
    PS_PER_S,
    PS_PER_US,
    format_count,
    format_size,
    parse_size,
    parse_time,
)
from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.runs.console import Debug, guard, say, say_if_read
from ringleaf.experiments.runs.progress import Progress, progress
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.experiments.spec.options import options_of
from ringleaf.experiments.spec.typed import with_options

if TYPE_CHECKING:
    from ringleaf.collectives.synthesis.problem import Problem, Synthesiser, SynthesisPlan

SHOW_EVERY_S = 0.5


class SynthSpec(NetworkSpec):
    """The options of a search's topology, and its seed."""

    takes = ("topo", "hosts", "rate", "delay", "seed")


OPTIONS = options_of(SynthSpec)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("synth")(guard(with_options(synth_command, OPTIONS, common=OPTIONS)))


def synth_command(
    typed: Mapping[str, str],
    synthesiser: Annotated[
        str, typer.Argument(help="Synthesiser; a wrong name lists the valid ones.")
    ],
    topo: Annotated[str, typer.Option("--topo", help=OPTIONS["topo"].help)],
    collective: Annotated[
        str,
        typer.Option("--collective", help=f"{', '.join(SUFFIXES)}; default: its first one."),
    ] = "",
    size: Annotated[str, typer.Option("--size", help="Bytes per rank: 4MiB.")] = "1MiB",
    chunks: Annotated[
        int | None,
        typer.Option("--chunks", help="Chunks for each rank; default: the synthesiser's choice."),
    ] = None,
    limit: Annotated[str, typer.Option("--limit", help="Time that the search may take.")] = "30s",
    sketch: Annotated[
        Path | None, typer.Option("--sketch", help="File with a sketch, for taccl.")
    ] = None,
    root: Annotated[
        int | None, typer.Option("--root", help="Root of a broadcast or reduce; default: 0.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Search again, even if a plan is kept.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File for the schedule: ring.xml, ring.csv.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Search for a schedule; print its time, a bound and the gap; maybe write it.

    Ctrl-C ends the search with the best plan so far.
    """
    member = SYNTHESISERS.find(synthesiser, "synth")
    spec = SynthSpec.read({"topo": topo, **typed})
    file_format = None if out is None else find_format(out, "out")
    from ringleaf.collectives.synthesis.problem import Problem
    from ringleaf.collectives.synthesis.sketch import read_sketch
    from ringleaf.experiments.setup.cabling import Cabling
    from ringleaf.experiments.setup.network import make_graph

    if sketch is not None and not member.takes_sketch:
        raise ConfigError(f"synth: {synthesiser} takes no sketch, got {str(sketch)!r}; take taccl")
    valid = [name for name, each in SUFFIXES.items() if each in member.collectives]
    goal = member.collectives[0]
    if chunks is not None and not member.takes_chunks:
        raise ConfigError(f"synth: chunks must be left to {synthesiser}, got {chunks}")
    if root is not None and not any(each.is_rooted for each in member.collectives):
        raise ConfigError(f"synth: {synthesiser} takes no root, got {root}; leave it out")
    if collective:
        goal = SUFFIXES[choose("synth", "collective", collective, valid)]
    tell = say if out is None else say_if_read
    graph = make_graph(spec)
    problem = Problem(
        Cabling(graph).wires,
        goal,
        parse_size(size, "size"),
        chunks,
        root or 0,
        parse_time(limit, "limit") / PS_PER_S,
        spec.seed,
        None if sketch is None else read_sketch(sketch),
    )
    tell(
        f"# {member.title}, {goal.value} of {format_size(problem.size_bytes)} on "
        f"{graph.graph['name']}: {format_count(problem.ranks, 'rank')}"
    )
    plan, how = _search(member, problem, fresh=fresh)
    tell(
        f"expected {plan.expected_ps / PS_PER_US:.2f} us, bound {plan.bound_ps / PS_PER_US:.2f} "
        f"us, gap {100 * plan.gap:.1f} %; {how}"
    )
    for name, value in plan.notes:
        tell(f"{name}: {value}")
    tell(f"{plan.schedule}: correct")
    if out is not None and file_format is not None:
        _write(out, file_format.write(plan.schedule))
        tell(f"# written: {out}")
    if how.startswith("interrupted"):
        raise typer.Exit(interrupts.status(interrupts.asked() or signal.SIGINT))


def _search(member: Synthesiser, problem: Problem, *, fresh: bool) -> tuple[SynthesisPlan, str]:
    """Return a plan that is proved, and in words how it was come by."""
    from ringleaf.collectives.synthesis.search import find_kept, synthesise
    from ringleaf.collectives.verify import verify

    kept = None if fresh else find_kept(member.name, problem)
    if kept is not None:
        return kept, "kept from an earlier search (--fresh searches again)"
    best: list[SynthesisPlan] = []

    def keep_best(plan: SynthesisPlan) -> None:
        if not best or plan.expected_ps < best[-1].expected_ps:
            best.append(plan)

    began_s = time.monotonic()
    try:
        with progress(problem.limit_s) as shown, _shown(shown, problem.limit_s, best):
            plan = synthesise(member.name, replace(problem, listener=keep_best), fresh=True)
    except KeyboardInterrupt:
        if not best:
            raise
        verify(best[-1].schedule)
        took_s = time.monotonic() - began_s
        return best[-1], f"interrupted after {took_s:.1f} s: the best so far, not kept"
    return plan, f"searched for {time.monotonic() - began_s:.1f} s"


@contextmanager
def _shown(line: Progress, limit_s: float, best: list[SynthesisPlan]) -> Iterator[None]:
    """Show every now and then how long the search has taken, and the best time so far."""
    done, began_s = threading.Event(), time.monotonic()

    def show() -> None:
        while not done.wait(SHOW_EVERY_S):
            state = f"best so far {best[-1].expected_ps / PS_PER_US:.2f} us" if best else "no plan"
            took_s = time.monotonic() - began_s
            line.stage(f"{took_s:.0f} s of {limit_s:.0f} s, {state}; Ctrl-C ends with that")

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _write(path: Path, text: str) -> None:
    try:
        write_text(path, text)
    except OSError as error:
        raise ConfigError(f"out: can't write, got {str(path)!r}: {error.strerror}") from error
