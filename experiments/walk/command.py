"""The work of `ringleaf trace`."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ringleaf.core.disk import write_text
from ringleaf.core.shipped import built_program, built_programs
from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.runs.console import can_draw
from ringleaf.experiments.walk.packets import names_capture, origin, read_packet

PORTS = 510  # v1model's ports, without the one that drops


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """The options of `ringleaf trace`; None: the option was not given."""

    program: str
    packet: str | None
    port: int | None
    entries: Path | None
    p4info: Path | None
    html: Path | None
    as_json: bool
    plain: bool
    example: bool


def run(options: TraceOptions, emit: Callable[[str], None]) -> None:
    """Follow the packet, and print or write its walk.

    Raises:
        ConfigError: If a file, packet, entry or port is not valid.
    """
    path = find_program(options.program)
    if options.packet is None and options.program in built_programs():
        options = replace(options, example=True)  # one of ours, which has one
    if options.packet is None and not options.example:
        raise ConfigError(
            "trace: a packet is needed, got none; give --packet HEX or FILE.pcap#N, or --example"
        )
    if options.packet is not None and not names_capture(options.packet):
        read_packet(options.packet)
    run_uncompiled()
    from ringleaf.experiments.walk.page import render
    from ringleaf.experiments.walk.text import WalkText
    from ringleaf.switches.walk import walk
    from ringleaf.switches.walk.records import as_record

    switch, port, data, story = _prepare(path, options)
    seen = walk(switch, port, data)
    if options.html is not None:
        options.html.parent.mkdir(parents=True, exist_ok=True)
        write_text(options.html, render(seen, story))
    if options.as_json:
        emit(json.dumps(as_record(seen), indent=2))
        return
    emit(f"# {seen.program}: {story}")
    text = WalkText(_columns(), _colours(options.plain))
    for line in text.lines(seen):
        emit(line)
    if options.html is not None:
        emit(f"# page: {options.html}")


def run_uncompiled() -> None:
    """Keep Numba from compiling; restart the process if Numba is already imported."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        return
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    if "numba" in sys.modules:
        os.execv(
            sys.executable,
            [sys.executable, "-P", "-m", "ringleaf.experiments.commands.cli", *sys.argv[1:]],
        )


def _prepare(path: Path, options: TraceOptions) -> tuple[Any, int, bytes, str]:
    """Return the switch, the packet's port and bytes, and a phrase on the point of the walk."""
    from ringleaf.experiments.walk.examples import example
    from ringleaf.switches.program import Program
    from ringleaf.switches.switch import Switch

    program = Program.load(path, options.p4info)
    switch = Switch.alone(program, PORTS, program.name, first_port=0)
    data = read_packet(options.packet) if options.packet is not None else b""
    port, story = 1, origin(options.packet or "")
    if options.example:
        sample = example(program.name)
        switch.write(sample.entities)
        *before, (port, last) = sample.packets
        for earlier_port, earlier in before:
            switch.process(earlier_port, earlier)
        data, story = data or last, sample.story
    if options.entries is not None:
        _write_entries(switch, options.entries)
    return switch, port if options.port is None else options.port, data, story


def find_program(name: str, command: str = "trace") -> Path:
    """Return the BMv2 JSON of a program, given as a JSON or P4 file, or as one of our names."""
    path = Path(name)
    if path.suffix == ".p4" and os.path.isfile(path):
        from ringleaf.switches.stf.compiling import compile_program

        return compile_program(path)
    if path.suffix or os.path.exists(path):
        if not os.path.isfile(path):
            raise ConfigError(f"{command}: no such file, got {name!r}; give BMv2 JSON or P4")
        return path
    return built_program(choose(command, "program", name, built_programs()))


def _write_entries(switch: Any, path: Path) -> None:
    from ringleaf.networks.traces.entries import read_request

    verbs = {1: "insert", 2: "modify", 3: "delete"}
    for number, update in enumerate(read_request(path).updates):
        try:
            switch.entities.write(verbs.get(update.type, "insert"), update.entity)
        except ConfigError as exc:
            raise ConfigError(f"{path}: update {number}: {exc}") from exc
    switch.commit()


def _columns() -> int:
    return max(60, min(shutil.get_terminal_size((100, 24)).columns, 160))


def _colours(plain: bool) -> bool:
    return not plain and can_draw(sys.stdout) and "NO_COLOR" not in os.environ
