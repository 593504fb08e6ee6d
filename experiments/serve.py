"""`ringleaf switch`: switches that wait for controllers, until they are told to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path

from ringleaf.errors import ConfigError
from switches.p4runtime.device import Device
from switches.p4runtime.server import Server
from switches.program import Program

Emit = Callable[[str], None]


def serve(
    path: Path | None,
    *,
    p4info: Path | None,
    address: str,
    first: int,
    count: int,
    ports: int,
    cpu_port: int | None,
    emit: Emit,
) -> None:
    """Serve devices `first`, `first` + 1, ... until SIGINT or SIGTERM.

    Raises:
        ConfigError: If the program can't be run.
        BackendError: If the address is taken.
    """
    if count < 1:
        raise ConfigError(f"count must be at least 1, got {count}")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    numbers = range(first, first + count)
    devices = [Device(number, ports=ports, cpu_port=cpu_port) for number in numbers]
    program = _load(path, p4info, devices) if path else "no program yet"
    with Server(devices, address) as server:
        ids = f"device {first}" if count == 1 else f"devices {first} to {numbers[-1]}"
        emit(f"P4Runtime at {server.address}, {ids}: {program}")
        stop.wait()


def _load(path: Path, p4info: Path | None, devices: list[Device]) -> str:
    """Put a program on all devices, compiled, so that their first packets need not wait."""
    program = Program.load(path, p4info)
    text = path.read_bytes()
    for device in devices:
        device.pipelines.load(program, text)
    program.prepare()
    return program.name
