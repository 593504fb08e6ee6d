"""The work of `ringleaf switch`: switches that serve controllers until they are told to stop."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import stat
import threading
from collections.abc import Callable
from pathlib import Path

from ringleaf.core.interrupts import ended_within
from ringleaf.core.private import is_private_file
from ringleaf.errors import BackendError, ConfigError
from ringleaf.experiments.commands.shell import SOCKET
from ringleaf.networks.mininet.state import runtime_dir
from ringleaf.switches.engine.layout import LAST_PORT
from ringleaf.switches.program import Program
from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.server.server import P4RuntimeServer, check_address

LONGEST_END_S = 1.5  # from a signal on

SHORTEST_TOKEN = 16  # letters
_OTHERS = stat.S_IRWXG | stat.S_IRWXO

Emit = Callable[[str], None]


def serve(
    path: Path | None,
    *,
    p4info: Path | None,
    address: str | None,
    first: int,
    count: int,
    ports: int,
    cpu_port: int | None,
    token: Path | None = None,
    is_open: bool = False,
    emit: Emit,
) -> None:
    """Serve devices `first`, `first` + 1, ... until SIGINT or SIGTERM.

    Without an address, they listen at a socket that only this user and root can connect to.

    Raises:
        ConfigError: If the program can't be run, or everybody could write to the switches and
            `is_open` does not say so.
        BackendError: If the address is taken.
    """
    if count < 1:
        raise ConfigError(f"count must be at least 1, got {count}")
    if not 0 <= ports <= LAST_PORT:  # 0 with --cpu-port alone, as a program says
        raise ConfigError(f"ports must be in [1, {LAST_PORT}], got {ports}")
    if p4info is not None and path is None:
        raise ConfigError(
            f"switch: --p4info goes with a program, got {str(p4info)!r} alone; name the "
            "program, too, or leave both to a controller"
        )
    address = address or f"unix:{runtime_dir() / SOCKET}"
    check_open(address, token, is_open=is_open)
    secret = None if token is None else read_token(token)
    check_address(address, secret)
    with ended_within(LONGEST_END_S):
        numbers = range(first, first + count)
        devices = [SharedDevice(number, ports=ports, cpu_port=cpu_port) for number in numbers]
        program = _load(path, p4info, devices) if path else "no program yet"
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        with P4RuntimeServer(devices, address, token=secret) as server:
            ids = f"device {first}" if count == 1 else f"devices {first} to {numbers[-1]}"
            emit(f"P4Runtime at {server.address}, {ids}: {program}")
            stop.wait()
    if not server.has_ended:
        os._exit(0)  # a thread is in a program's code, which must not be taken away from it


def check_open(address: str, token: Path | None, *, is_open: bool) -> None:
    """Check that a port has a token, or is wanted without, and that a socket is not in use.

    Raises:
        ConfigError: If it has none.
        BackendError: If somebody listens at the socket.
    """
    if not address.startswith("unix:"):
        if (token is None) != is_open:
            raise ConfigError(
                f"switch: a port needs a token, or none by intent, got --grpc {address} with "
                f"{'neither' if token is None else 'both'}; say --token FILE, or --no-token, which "
                "lets every user of this machine write to the switches"
            )
    elif is_open:
        raise ConfigError(
            f"switch: --no-token is for a port, got --grpc {address}, which only you can use; "
            "leave it out, or say --grpc HOST:PORT"
        )
    elif _is_answered(address.removeprefix("unix:")):  # gRPC would take its place
        raise BackendError(f"switch: can't listen, got {address}; another switch does; end it")


def _is_answered(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as one:
        try:
            one.connect(path)
        except OSError:
            return False
    return True


def read_token(path: Path) -> str:
    """Return the token of a file, which is made with a new token if it does not exist.

    Raises:
        ConfigError: If others could have read or written the file, or it has no token.
        OSError: If the file can't be made.
    """
    try:
        if not os.path.lexists(path):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(f"{secrets.token_urlsafe(32)}\n")
        if not is_private_file(path) or path.stat().st_mode & _OTHERS:
            raise ConfigError(
                f"token {path}: must be a file that only you can read and write; chmod 600 it"
            )
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"token {path}: can't be read or made: {error}") from error
    if len(text) < SHORTEST_TOKEN or not text.isascii() or not text.isprintable():
        raise ConfigError(
            f"token {path}: must be {SHORTEST_TOKEN} letters or more, got {len(text)};"
            " remove it, and a new one is made"
        )
    return text


def _load(path: Path, p4info: Path | None, devices: list[SharedDevice]) -> str:
    """Load a program on all devices and compile it, so that first packets need not wait."""
    program = Program.load(path, p4info)
    text = path.read_bytes()
    for device in devices:
        device.pipelines.load(program, text)
    program.prepare()
    return program.name
