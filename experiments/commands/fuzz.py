"""`ringleaf fuzz`: the engine and BMv2 compared on random packets."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringleaf.core.disk import write_text
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.console import FAILURE, Debug, guard, say
from ringleaf.experiments.walk.command import find_program, run_uncompiled
from ringleaf.switches.bmv2.binaries import need_bmv2, need_v1model

if TYPE_CHECKING:
    from ringleaf.switches.fuzz.contest import Disagreement, FuzzRound
    from ringleaf.switches.fuzz.course import FuzzCourse
    from ringleaf.switches.program import Program

Emit = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FuzzOptions:
    """The options of `ringleaf fuzz`.

    Attributes:
        program: The program's path.
        seed: Seed of packets and entries.
        packets: Packets per round.
        rounds: Rounds, each with entries of its own.
        tries: The most attempts to make a difference smaller; 0: none.
        keep: File for a difference, as an STF test; None: it is only shown.
        compiled: Whether the engine runs compiled.
    """

    program: str
    seed: int = 1
    packets: int = 300
    rounds: int = 3
    tries: int = 200
    keep: Path | None = None
    compiled: bool = False


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fuzz")(guard(fuzz_command))


def fuzz_command(
    program: Annotated[
        str, typer.Argument(help="P4 program, BMv2 JSON, or name of a program of ours.")
    ],
    seed: Annotated[
        int, typer.Option("--seed", help="Seed; the same seed gives the same run.")
    ] = 1,
    packets: Annotated[int, typer.Option("--packets", "-n", help="Packets per round.")] = 300,
    rounds: Annotated[int, typer.Option("--rounds", help="Rounds, each with new entries.")] = 3,
    tries: Annotated[
        int, typer.Option("--tries", help="Attempts to make a difference smaller; 0: none.")
    ] = 200,
    keep: Annotated[
        Path | None, typer.Option("--keep", help="File for a difference, as an STF test.")
    ] = None,
    compiled: Annotated[
        bool, typer.Option("--compiled", help="Compile the engine; long runs become faster.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Send random packets through the engine and through BMv2, and compare the output."""
    options = FuzzOptions(program, seed, packets, rounds, tries, keep, compiled)
    code = run(options, say)
    if code:
        raise typer.Exit(code)


def run(options: FuzzOptions, emit: Emit) -> int:
    """Compare, and print the differences; return the exit code.

    Raises:
        ConfigError: If BMv2 is not installed, or the program can't be loaded or compared.
    """
    if options.packets < 1 or options.rounds < 1:
        raise ConfigError(
            f"fuzz: packets and rounds must be at least 1, got {options.packets}, {options.rounds}"
        )
    path = find_program(options.program, "fuzz")
    need_bmv2("fuzz:")
    if not options.compiled:
        run_uncompiled()
    from ringleaf.switches.program import Program

    program = Program.load(path)
    need_v1model(program.source, "fuzz")
    return _fuzz(program, options, emit)


def _fuzz(program: Program, options: FuzzOptions, emit: Emit) -> int:
    from ringleaf.switches.bmv2.build import has_checks, kept_away_line
    from ringleaf.switches.fuzz.campaign import run_rounds
    from ringleaf.switches.fuzz.contest import Contest, shrink
    from ringleaf.switches.fuzz.exclusions import clocks_read, unconfigured
    from ringleaf.switches.fuzz.sieve import OUTSIDE

    emit(
        f"# fuzz {program.name}: {format_count(options.rounds, 'round')} of "
        f"{format_count(options.packets, 'packet')}, seed {options.seed}"
    )
    for what in unconfigured(program.source):
        emit(f"# not set: {what}")
    times = clocks_read(program.source)
    if times:
        emit(f"# reads the time, so what depends on it is not compared: {', '.join(times)}")
    contest = Contest(program, unchecked=not has_checks())
    amounts = {"seed": options.seed, "packets": options.packets, "rounds": options.rounds}
    disagreement, kept_away = None, 0
    for number, done in enumerate(run_rounds(program, contest, **amounts), 1):
        _say_round(number, done, emit)
        kept_away += done.left_out[OUTSIDE]
        disagreement = done.difference
        if disagreement is not None:
            break
    _say_course(contest.course, emit)
    if kept_away:
        emit(f"# {kept_away_line(kept_away)}")
    if disagreement is None:
        return 0
    _show(program, shrink(disagreement, contest.replay, options.tries), options, emit)
    return FAILURE


def _say_round(number: int, done: FuzzRound, emit: Emit) -> None:
    differs = ", different" if done.difference else ""
    emit(
        f"round {number}: {format_count(done.compared, 'packet')} compared, {done.sent} "
        f"sent{differs}"
    )
    if done.masked:
        emit(f"#   {done.masked} of those sent were compared but for bytes that depend on time")
    for line in done.refused:
        emit(f"#   BMv2 takes no such update: {line}")
    for reason, count in done.left_out.items():
        port, data = done.examples[reason]
        emit(f"#   not compared: {count}, {reason}, as does port {port}, {data.hex()}")


def _say_course(course: FuzzCourse, emit: Emit) -> None:
    """Print how much of the program the packets have reached, and the points they have not."""
    from ringleaf.switches.fuzz.course import PLURALS

    kinds = course.by_kind()
    amounts = ", ".join(f"{reached} of {count} {PLURALS[kind]}" for kind, reached, count in kinds)
    emit(f"# reached: {amounts}")
    for point in course.missing():
        where = f" ({point.where})" if point.where else ""
        emit(f"#   never reached: {point.kind} {point.name}{where}")


def _show(program: Program, disagreement: Disagreement, options: FuzzOptions, emit: Emit) -> None:
    from ringleaf.switches.fuzz.stf_cases import as_stf

    text = as_stf(program, disagreement)
    emit("")
    for line in text.splitlines():
        emit(line)
    for line in disagreement.state:
        emit(f"# {line}")
    _show_packets(disagreement)
    port, data = disagreement.packets[-1]
    emit(f"# its walk: ringleaf trace {options.program} --port {port} --packet {data.hex()}")
    if options.keep is not None:
        options.keep.parent.mkdir(parents=True, exist_ok=True)
        write_text(options.keep, text)
        emit(f"# kept: {options.keep}")


def _show_packets(disagreement: Disagreement) -> None:
    """Print the first packet that differs: ours and BMv2's, side by side."""
    from rich.console import Console

    from ringleaf.experiments.replay.show import render
    from ringleaf.networks.replay import compare

    pair = _first_pair(disagreement)
    if pair is None:
        return
    sides = tuple(
        None if packet is None else compare.ComparedPacket(0, None, packet[1]) for packet in pair
    )
    width = shutil.get_terminal_size((100, 24)).columns
    console = Console(width=max(width, 100), file=sys.stdout, highlight=False)
    difference = compare.PacketDifference(compare.Deviation.CHANGED, *sides)
    console.print(render(difference, width=max(width, 100)))


def _first_pair(
    disagreement: Disagreement,
) -> tuple[tuple[int, bytes] | None, tuple[int, bytes] | None] | None:
    theirs = [packet for packet in disagreement.theirs if packet not in disagreement.ours]
    ours = [packet for packet in disagreement.ours if packet not in disagreement.theirs]
    if not theirs and not ours:
        return None
    return (theirs[0] if theirs else None), (ours[0] if ours else None)
