"""Open p4runtime-shell on a running switch; `make shell` runs this with the shell's own Python.

That Python has none of our packages installed, so this module, and all that it imports, use nothing
but the standard library.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import tempfile
from pathlib import Path

from ringleaf.core.private import is_trusted_folder, xdg_folder

USAGE = 2
SOCKET = "switch.sock"
"""The socket of `ringleaf switch` in the folder of live networks' files, if none is named."""

SWITCH = re.compile(r"(?P<address>unix:/.+?|[^/]+:\d{1,5})(?:/(?P<device>\d+))?")

NAME = re.compile(r"(\w+/)?[A-Za-z]\w*")  # s1, or with its network, r1a2b/s1


def main() -> int:
    """Start p4runtime-shell in place of this process; without a switch, return an exit status."""
    text = next(iter(sys.argv[1:]), "") or "1"
    if text.isdecimal():
        text = f"{find_default()}/{text}"
    if NAME.fullmatch(text):
        addresses = find_live(text)
        if len(addresses) != 1:
            known = ", ".join(addresses) or "none; ringleaf net TOPO starts some"
            return _complain(f"SWITCH must name one live switch, got {text!r}; there are: {known}")
        (text,) = addresses.values()
    match = SWITCH.fullmatch(text)
    if match is None:
        return _complain(f"SWITCH must be 2, s1, HOST:PORT or HOST:PORT/DEVICE, got {text!r}")
    address, device = match["address"], match["device"] or "1"
    if not _listens(address):
        where = "" if address == find_default() else f" --grpc {address}"
        return _complain(
            f"nothing listens, got {address}; start a switch in another terminal:\n"
            f"  .venv/bin/ringleaf switch p4/build/forward.json{where}\n"
            "or name one: make shell SWITCH=HOST:PORT/DEVICE"
        )
    options = ["--grpc-addr", address, "--device-id", device]
    command = [sys.executable, "-P", "-m", "p4runtime_sh", *options, *sys.argv[2:]]
    return os.execv(sys.executable, command)


def find_live(name: str) -> dict[str, str]:
    """Return NETWORK/SWITCH -> HOST:PORT/DEVICE of the switches with a name.

    The files that live networks keep are described in networks/mininet/state.py.
    """
    places = {}
    for folder in filter(is_trusted_folder, state_folders()):
        for file in sorted(folder.glob("*.json")):
            record = json.loads(file.read_text())
            if _runs(*record["owner"]):
                switches = record["switches"].items()
                places.update({f"{record['name']}/{switch}": at for switch, at in switches})
    return {key: at for key, at in places.items() if name in (key, key.rpartition("/")[2])}


def find_default() -> str:
    """Return the address of `ringleaf switch` without options, whether or not it runs."""
    places = [folder / SOCKET for folder in state_folders() if is_trusted_folder(folder)]
    sockets = [place for place in places if place.exists()]
    return f"unix:{next(iter([*sockets, *places, state_folders()[-1] / SOCKET]))}"


def state_folders() -> list[Path]:
    """Return the folders in which networks.mininet.state keeps its files."""
    user = xdg_folder("XDG_RUNTIME_DIR")
    own = Path(tempfile.gettempdir(), f"ringleaf-{os.getuid()}")
    return [Path("/run/ringleaf"), *([user] if user else []), own]


def _runs(pid: int, start: int) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(fields[19]) == start and fields[0] != "Z"


def _listens(address: str) -> bool:
    try:
        if address.startswith("unix:"):
            with socket.socket(socket.AF_UNIX) as one:
                one.settimeout(3)
                one.connect(address.removeprefix("unix:"))
        else:
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), timeout=3).close()
    except (OSError, OverflowError):
        return False
    return True


def _complain(message: str) -> int:
    sys.stderr.write(f"shell: {message}\n")
    return USAGE


if __name__ == "__main__":
    sys.exit(main())
