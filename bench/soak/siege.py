"""Attacks on P4Runtime servers, at full size: what they cost, and how long others wait.

    python -m bench.soak.siege --only half-open --user 65534 --token

Each attack is a process of its own against a `ringleaf switch` of its own. Meanwhile other clients
call, read, write, and open streams. After that the server gets SIGINT, while the attack goes on.
Exit codes: 0 all was within the limits, 1 something was not.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Annotated, Any

import grpc  # type: ignore[import-untyped]
import typer
from finsy.proto import U128, p4r, p4r_grpc

from bench.options import several
from bench.soak.attacks import ATTACKS, Attacker, Metadata
from ringleaf.core.shipped import P4_BUILD
from ringleaf.errors import BackendError, choose
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import FAILURE, Debug, say

PROGRAM = P4_BUILD / "switchml-256.json"
MOST_MIB = 500
MOST_WAIT_S = 2.0
MOST_END_S = 2.0
READY_S = 300.0  # a new machine compiles the program first
PATIENCE_S = 60.0  # of one call; one that takes longer has failed
PAUSE_S = 0.05  # between two calls of the others


@dataclass(slots=True)
class AttackOutcome:
    """The outcome of one attack."""

    name: str
    waits_s: dict[str, float] = field(default_factory=dict)  # the longest by kind of call
    errors: dict[str, str] = field(default_factory=dict)  # the first by kind of call
    calls: int = 0
    peak_mib: float = 0.0
    end_s: float = 0.0

    @property
    def is_good(self) -> bool:
        longest = max(self.waits_s.values(), default=PATIENCE_S)
        within = self.peak_mib < MOST_MIB and longest < MOST_WAIT_S and self.end_s < MOST_END_S
        return within and not self.errors

    def line(self) -> str:
        """Return its row of the table."""
        waits = " ".join(f"{self.waits_s.get(kind, 0.0):7.3f}" for kind in KINDS)
        row = f"{self.name:>16} {self.peak_mib:6.0f} {waits} {self.calls:6d} {self.end_s:6.2f}"
        errors = "".join(f"; {kind}: {error}" for kind, error in self.errors.items())
        return f"{row}  {'ok' if self.is_good else 'BAD'}{errors}"


class Others:
    """Other clients: one that was there before, and one that comes anew for each call."""

    def __init__(self, address: str, metadata: Metadata) -> None:
        self._address = address
        self._metadata = metadata
        self._channel, self._stub = self._connect()
        self._own = self._bid(self._stub, 1000)

    def close(self) -> None:
        self._channel.close()

    def call(self) -> None:
        """Connect and ask for capabilities."""
        channel, stub = self._connect()
        with channel:
            request = p4r.CapabilitiesRequest()
            stub.Capabilities(request, timeout=PATIENCE_S, metadata=self._metadata)

    def read(self) -> None:
        """Read a cell of a register, and the default actions of all tables."""
        entry = p4r.TableEntry(is_default_action=True)
        request = p4r.ReadRequest(device_id=1, entities=[p4r.Entity(table_entry=entry)])
        list(self._stub.Read(request, timeout=PATIENCE_S, metadata=self._metadata))

    def write(self) -> None:
        """Delete a clone session that is not there, which must be answered by just that."""
        session = p4r.CloneSessionEntry(session_id=7)
        engine = p4r.PacketReplicationEngineEntry(clone_session_entry=session)
        request = p4r.WriteRequest(device_id=1, election_id=U128.encode(1000))
        request.updates.add(type=p4r.Update.DELETE).entity.packet_replication_engine_entry.CopyFrom(
            engine
        )
        try:
            self._stub.Write(request, timeout=PATIENCE_S, metadata=self._metadata)
        except grpc.RpcError as error:
            if error.details() != "some updates were refused":
                raise

    def stream(self) -> None:
        """Connect and become a backup controller."""
        channel, stub = self._connect()
        with channel:
            self._bid(stub, 1)

    def _connect(self) -> tuple[Any, Any]:
        options = [("grpc.use_local_subchannel_pool", 1)]
        channel = grpc.insecure_channel(self._address, options)
        return channel, p4r_grpc.P4RuntimeStub(channel)

    def _bid(self, stub: Any, election_id: int) -> Any:
        """Return a stream on which it has been elected, or not."""
        number = U128.encode(election_id)
        update = p4r.MasterArbitrationUpdate(device_id=1, election_id=number)
        requests = _and_stay(p4r.StreamMessageRequest(arbitration=update))
        stream = stub.StreamChannel(requests, metadata=self._metadata)
        late = threading.Timer(PATIENCE_S, stream.cancel)
        late.daemon = True
        late.start()
        next(stream)
        late.cancel()
        return stream


KINDS: dict[str, Callable[[Others], None]] = {
    "call": Others.call,
    "read": Others.read,
    "write": Others.write,
    "stream": Others.stream,
}


def _and_stay(request: Any) -> Iterator[Any]:
    yield request
    threading.Event().wait()


class BesiegedServer:
    """A `ringleaf switch` that is attacked; use it as a context manager."""

    def __init__(self, folder: Path, token: bool) -> None:
        self._token = folder / "token" if token else None
        command = [sys.executable, "-m", "ringleaf", "switch", str(PROGRAM)]
        command += ["--grpc", "127.0.0.1:0", "--cpu-port", "64"]
        command += ["--token", str(self._token)] if self._token else ["--no-token"]
        log = (folder / "log").open("w")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()  # when it answers
        self.address = line.partition("P4Runtime at ")[2].partition(",")[0]
        if not self.address:
            raise BackendError(f"siege: the server must start, got {line!r}")

    def __enter__(self) -> BesiegedServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def metadata(self) -> Metadata:
        if self._token is None:
            return ()
        return (("authorization", f"Bearer {self._token.read_text().strip()}"),)

    @property
    def peak_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def end(self) -> float:
        """Interrupt it; return the seconds until it has ended."""
        began_s = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            return PATIENCE_S
        return time.monotonic() - began_s


@contextmanager
def _attack(name: str, address: str, user: int | None) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.soak.siege", "--attack", name]
    command += ["--at", address] + ([] if user is None else ["--user", str(user)])
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def besiege(
    name: str, seconds: float, *, token: bool = False, user: int | None = None
) -> AttackOutcome:
    """Attack a server of its own for some seconds."""
    outcome = AttackOutcome(name)
    with tempfile.TemporaryDirectory() as folder, BesiegedServer(Path(folder), token) as target:
        others = Others(target.address, target.metadata)
        with _attack(name, target.address, user):
            end_s = time.monotonic() + seconds
            for kind in cycle(KINDS):
                if time.monotonic() > end_s:
                    break
                _measure(kind, others, outcome)
                time.sleep(PAUSE_S)
            outcome.peak_mib = target.peak_mib
            outcome.end_s = target.end()
        others.close()
    return outcome


def _measure(kind: str, others: Others, outcome: AttackOutcome) -> None:
    began_s = time.monotonic()
    try:
        KINDS[kind](others)
    except (grpc.RpcError, StopIteration) as error:
        said = error.details() if isinstance(error, grpc.RpcError) else error
        outcome.errors.setdefault(kind, f"{said:.100}" if isinstance(said, str) else repr(said))
    took_s = time.monotonic() - began_s
    outcome.waits_s[kind] = max(outcome.waits_s.get(kind, 0.0), took_s)
    outcome.calls += 1


def _run_attack(name: str, address: str, user: int | None) -> None:
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    ATTACKS[name](Attacker(address, PROGRAM))


def siege_command(
    only: Annotated[list[str] | None, several(", ".join(ATTACKS))] = None,
    seconds: Annotated[float, typer.Option(min=0, help="Seconds of each attack.")] = 20.0,
    token: Annotated[bool, typer.Option("--token", help="Only the others know it.")] = False,
    user: Annotated[
        int | None, typer.Option(min=0, help="Number of the user who attacks; needs root.")
    ] = None,
    attack: Annotated[str, typer.Option(hidden=True)] = "",
    at: Annotated[str, typer.Option(hidden=True)] = "",
    debug: Debug = False,
) -> None:
    """Run attacks; end with 1 if something was not within the limits."""
    names = [choose("siege", "attack", name, ATTACKS) for name in only or ATTACKS]
    if attack:
        _run_attack(attack, at, user)
        return
    say(f"# {'attack':>14} {'peak':>6} {'longest wait for':>31} {'calls':>6} {'end':>6}")
    say(f"# {'':>14} {'(MiB)':>6} {' '.join(f'{k:>7}' for k in KINDS)} {'':>6} {'(s)':>6}")
    is_good = True
    for name in names:
        outcome = besiege(name, seconds, token=token, user=user)
        say(outcome.line())
        is_good = is_good and outcome.is_good
    if not is_good:
        raise typer.Exit(FAILURE)


if __name__ == "__main__":
    alone("python -m bench.soak.siege", siege_command)
