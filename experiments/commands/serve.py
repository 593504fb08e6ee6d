"""The work of `ringleaf switch`: switches that serve controllers until they are told to stop."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from ringleaf.errors import ConfigError
from ringleaf.interrupts import ended_within
from ringleaf.private import is_private_file
from ringleaf.switches.program import Program
from ringleaf.switches.server.device import Device
from ringleaf.switches.server.server import Server, check_address

LONGEST_END_S = 1.5  # from a signal on

SHORTEST_TOKEN = 16  # letters

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
    token: Path | None = None,
    emit: Emit,
) -> None:
    """Serve devices `first`, `first` + 1, ... until SIGINT or SIGTERM.

    Raises:
        ConfigError: If the program can't be run.
        BackendError: If the address is taken.
    """
    if count < 1:
        raise ConfigError(f"count must be at least 1, got {count}")
    secret = None if token is None else read_token(token)
    check_address(address, secret)
    with ended_within(LONGEST_END_S):
        numbers = range(first, first + count)
        devices = [Device(number, ports=ports, cpu_port=cpu_port) for number in numbers]
        program = _load(path, p4info, devices) if path else "no program yet"
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        with Server(devices, address, token=secret) as server:
            ids = f"device {first}" if count == 1 else f"devices {first} to {numbers[-1]}"
            emit(f"P4Runtime at {server.address}, {ids}: {program}")
            stop.wait()
    if not server.has_ended:
        os._exit(0)  # a thread is in a program's code, which must not be taken away from it


def read_token(path: Path) -> str:
    """Return the token of a file, which is made with a new token if it does not exist.

    Raises:
        ConfigError: If others could have written the file, or it has no token.
        OSError: If the file can't be made.
    """
    try:
        if not os.path.lexists(path):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(f"{secrets.token_urlsafe(32)}\n")
        if not is_private_file(path):
            raise ConfigError(f"token {path}: must be a file that only you can write; chmod 600 it")
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"token {path}: can't be read or made: {error}") from error
    if len(text) < SHORTEST_TOKEN or not text.isascii() or not text.isprintable():
        raise ConfigError(
            f"token {path}: must be {SHORTEST_TOKEN} letters or more, got {len(text)};"
            " remove it, and a new one is made"
        )
    return text


def _load(path: Path, p4info: Path | None, devices: list[Device]) -> str:
    """Load a program on all devices and compile it, so that first packets need not wait."""
    program = Program.load(path, p4info)
    text = path.read_bytes()
    for device in devices:
        device.pipelines.load(program, text)
    program.prepare()
    return program.name
