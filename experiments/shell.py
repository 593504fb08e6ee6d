"""Opens p4runtime-shell on a running switch; `make shell` runs this with the shell's own Python.

That Python has nothing of ours installed, so there is nothing but the standard library here.
"""

from __future__ import annotations

import os
import re
import socket
import sys

USAGE = 2
DEFAULT = "127.0.0.1:9559"
SWITCH = re.compile(r"(?P<host>[^/]+):(?P<port>\d{1,5})(?:/(?P<device>\d+))?")


def main() -> int:
    text = next(iter(sys.argv[1:]), "") or DEFAULT
    match = SWITCH.fullmatch(text)
    if match is None:
        return _complain(f"SWITCH must be HOST:PORT or HOST:PORT/DEVICE, got {text!r}")
    host, port, device = match["host"], int(match["port"]), match["device"] or "1"
    if not _listens(host, port):
        return _complain(
            f"nothing listens, got {host}:{port}; start a switch in another terminal:\n"
            f"  .venv/bin/ringleaf switch p4/build/forward.json --grpc {host}:{port}\n"
            "or name one: make shell SWITCH=HOST:PORT/DEVICE"
        )
    options = ["--grpc-addr", f"{host}:{port}", "--device-id", device]
    command = [sys.executable, "-m", "p4runtime_sh", *options, *sys.argv[2:]]
    return os.execv(sys.executable, command)


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=3).close()
    except (OSError, OverflowError):
        return False
    return True


def _complain(message: str) -> int:
    sys.stderr.write(f"shell: {message}\n")
    return USAGE


if __name__ == "__main__":
    sys.exit(main())
