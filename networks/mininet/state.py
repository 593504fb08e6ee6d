"""A record of all that a live network has made, so that it can be removed whatever happens.

A network's file is written before anything is made, and is removed last. Only things on record are
ever removed, and only if they are still the same: a process is known by the time of its start, an
interface by the network's name at the start of its own, or by its index.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from ringleaf.core.private import is_trusted_folder, private_folder, xdg_folder
from ringleaf.networks.live.processes import Identity, identify, is_running, kill

RUNTIME = Path("/run/ringleaf")
INTERFACES = Path("/sys/class/net")
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
NAME_DIGITS = 4
FOLDER = "ringleaf-net-"


@dataclass(slots=True)
class Record:
    """One network's file.

    Args:
        name: Prefix, followed by a dash, of all interfaces that Ringleaf names.
        owner: The process that runs the network.
        processes: Switches, shells and the like, by name.
        interfaces: Those in the root namespace, with their indices; 0 if the name has the prefix.
        switches: P4Runtime's address of each, as HOST:PORT/DEVICE.
        files: Sockets and the like.
        folder: A temporary one for logs, if there is one; it goes with the network.
    """

    name: str
    owner: Identity
    processes: dict[str, Identity] = field(default_factory=dict)
    interfaces: dict[str, int] = field(default_factory=dict)
    switches: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    folder: str = ""

    @property
    def path(self) -> Path:
        """Return the path of the network's file, in the user's runtime folder."""
        return runtime_dir() / f"{self.name}.json"

    def make_folder(self) -> Path:
        """Make the temporary folder."""
        folder = Path(tempfile.gettempdir(), f"{FOLDER}{self.name}")
        self.folder = str(folder)
        self.save()
        folder.mkdir(mode=0o700)
        return folder

    def save(self) -> None:
        """Write it, whole or not at all."""
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(asdict(self), indent=1))
        new.replace(self.path)


def runtime_dir() -> Path:
    """Return the folder of the networks' files, made if need be.

    It is /run/ringleaf or, if that can't be written, a folder of the user's.
    """
    for place in filter(None, (RUNTIME, xdg_folder("XDG_RUNTIME_DIR"))):
        with contextlib.suppress(OSError):
            place.mkdir(mode=0o755, parents=True, exist_ok=True)
            if os.access(place, os.W_OK) and is_trusted_folder(place):
                return place
    return private_folder(Path(tempfile.gettempdir(), f"ringleaf-{os.getuid()}"))


def new_record() -> Record:
    """Save and return the record of a new network of this process, with a unique name."""
    with _locked():
        while True:
            name = "r" + "".join(secrets.choice(DIGITS) for _ in range(NAME_DIGITS))
            record = Record(name, identify(os.getpid()))
            taken = any(each.name.startswith(f"{name}-") for each in INTERFACES.iterdir())
            kept = Path(tempfile.gettempdir(), f"{FOLDER}{name}").exists()  # of one that failed
            if not taken and not kept and not record.path.exists():
                record.save()
                return record


def records() -> list[Record]:
    """Return all networks on record, of all processes."""
    networks = []
    for path in sorted(runtime_dir().glob("*.json")):
        with contextlib.suppress(FileNotFoundError):  # its owner has just finished
            networks.append(_read(path))
    return networks


def _read(path: Path) -> Record:
    data = json.loads(path.read_text())
    data["owner"] = tuple(data["owner"])
    data["processes"] = {name: tuple(pair) for name, pair in data["processes"].items()}
    known = {each.name for each in fields(Record)}  # another version may have written more
    return Record(**{name: value for name, value in data.items() if name in known})


def clean_stale() -> list[str]:
    """Remove the remains of networks whose owners are gone; return their names."""
    with _locked():
        stale = [record for record in records() if not is_running(record.owner)]
        for record in stale:
            remove(record)
    return [record.name for record in stale]


def remove(record: Record, *, with_owner: bool = False) -> None:
    """Remove all that a network has made and is still there, and then its file."""
    if with_owner:
        kill(record.owner)
    for identity in record.processes.values():
        kill(identity)
    for identity in list(inside(record.name)):
        kill(identity)
    for name, index in record.interfaces.items():
        if is_ours(record.name, name, index):
            delete_interface(name)
    for file in record.files:
        Path(file).unlink(missing_ok=True)
    if Path(record.folder).name.startswith(FOLDER):  # never another tree, whatever is on record
        shutil.rmtree(record.folder, ignore_errors=True)
    record.path.unlink(missing_ok=True)


def is_ours(network: str, interface: str, index: int) -> bool:
    """Return whether an interface is in the root namespace, and is the one on record."""
    try:
        ifindex = int((INTERFACES / interface / "ifindex").read_text())
    except OSError:
        return False
    return ifindex == index if index else interface.startswith(f"{network}-")


def delete_interface(name: str) -> None:
    """Delete a veth with its peer; one that goes meanwhile is no error."""
    command = ["ip", "link", "delete", "dev", name]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def inside(network: str) -> Iterator[Identity]:
    """Yield the processes in other network namespaces that have an interface of this network."""
    own = os.stat("/proc/self/ns/net").st_ino
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if (entry / "ns/net").stat().st_ino == own:
                continue
            lines = (entry / "net/dev").read_text().splitlines()
            if any(line.lstrip().startswith(f"{network}-") for line in lines):
                yield identify(int(entry.name))


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """Keep other processes of ours from starting or cleaning meanwhile."""
    with (runtime_dir() / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
