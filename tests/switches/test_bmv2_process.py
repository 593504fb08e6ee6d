"""BMv2's process ends with the code that started it; programs of the machine stand for BMv2."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ringleaf.errors import BackendError
from ringleaf.switches.bmv2 import process
from ringleaf.switches.bmv2.binaries import BINARY
from ringleaf.switches.bmv2.namespace import alone, beside
from ringleaf.switches.bmv2.process import Bmv2


@pytest.mark.parametrize("error", [BackendError("silence"), KeyboardInterrupt(), ValueError()])
def test_process_ends_when_it_does_not_start(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = tmp_path / BINARY
    binary.write_text("#!/bin/sh\nexec sleep 600\n")
    binary.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def fail(_: Bmv2) -> None:
        raise error

    monkeypatch.setattr(Bmv2, "_await_ready", fail)
    switch = Bmv2(tmp_path / "x.json", None)
    with pytest.raises(type(error)):
        switch.__enter__()
    assert switch._process.returncode is not None
    assert not Path(switch._folder.name).exists()


def test_one_that_ends_at_once_is_not_waited_for_and_its_last_words_are_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be waited for longer than a test may take."""
    monkeypatch.setattr(process, "READY_TIMEOUT_S", 1e6)
    binary = tmp_path / BINARY
    binary.write_text("#!/bin/sh\necho a.json >&2\necho no such match kind >&2\nexit 3\n")
    binary.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    with pytest.raises(BackendError, match=r"does not start: ended at once, got no such match"):
        Bmv2(tmp_path / "x.json", None).__enter__()


def test_process_ends_when_ours_is_killed() -> None:
    """Then nothing of ours cleans up, so the kernel has to."""
    started = subprocess.run(
        [sys.executable, "-c", KILLED, *alone("sleep", "600")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert started.returncode == -9
    try:
        alive = os.pidfd_open(int(started.stdout))
    except ProcessLookupError:
        return
    ended, _, _ = select.select([alive], [], [], 60)
    assert ended


LISTENS = """
import socket, sys
one = socket.create_server(("0.0.0.0", 0))
print(one.getsockname()[1], flush=True)
met, _ = one.accept()
met.sendall(b"met")
"""
MEETS = """
import socket, sys
print(socket.create_connection(("127.0.0.1", int(sys.argv[1]))).recv(3).decode())
"""


def has_networks() -> bool:
    """Whether the kernel gives this user a network, by the judgement of util-linux."""
    command = ["unshare", "--net", "true"] if os.getuid() == 0 else ["unshare", "-U", "-n", "true"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def test_only_who_is_let_in_reaches_an_enclosed_port() -> None:
    if not has_networks():
        pytest.skip("the kernel gives this user no networks")
    with subprocess.Popen(
        alone(sys.executable, "-c", LISTENS), stdout=subprocess.PIPE, text=True
    ) as listens:
        try:
            assert listens.stdout is not None
            port = listens.stdout.readline().strip()
            with pytest.raises(ConnectionRefusedError), socket.socket() as one:
                one.connect(("127.0.0.1", int(port)))
            meets = beside(listens.pid, sys.executable, "-c", MEETS, port)
            assert subprocess.check_output(meets, text=True) == "met\n"
        finally:
            listens.kill()


KILLED = """
import os, signal, subprocess, sys
from pathlib import Path
quiet = {"stdin": -3, "stdout": -3, "stderr": -3}
process = subprocess.Popen(sys.argv[1:], **quiet)
print(process.pid, flush=True)
while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\\n":
    pass
os.kill(os.getpid(), signal.SIGKILL)
"""
