"""One run directory, one writer: the lock ends with its process, and says who holds it."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import running
from fake_network import FakeConnect

from ringleaf.errors import ConfigError
from ringleaf.experiments.records import lock
from ringleaf.experiments.records.folder import RunFolder, check_own
from ringleaf.experiments.records.lock import Lock, check_free

SMALL = {"topo": "leafspine,leaves=2,spines=1,hosts=2", "algo": "ring", "size": "1K"}
HOLD = """
import sys, time
from pathlib import Path
from ringleaf.experiments.records.lock import Lock
kept = Lock(Path(sys.argv[1]), print)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_writer_is_refused_and_told_who_is_first(tmp_path: Path) -> None:
    first = Lock(tmp_path, print)
    who = rf"held by process {os.getpid()} on .+, since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC;"
    for refused in (lambda: Lock(tmp_path, print), lambda: check_free(tmp_path)):
        with pytest.raises(ConfigError, match=f"out: another run is writing there, got .*{who}"):
            refused()
    first.release()

    assert list(tmp_path.iterdir()) == []
    check_free(tmp_path)
    Lock(tmp_path, print).release()


def test_a_killed_holder_locks_nothing(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(ConfigError, match=f"held by process {other.pid} on "):
            check_own(tmp_path)
        other.send_signal(signal.SIGKILL)
        other.wait()

    assert (tmp_path / lock.FILE).exists()
    with RunFolder(tmp_path, print):
        pass


def test_a_run_is_refused_while_another_writes_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with Lock(tmp_path, print), pytest.raises(ConfigError, match="another run is writing there"):
        running.run({**SMALL, "out": str(tmp_path)}, emit=print, connect=FakeConnect(), drawn=False)

    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_lock_whose_file_goes_meanwhile_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last holder removes the file between our opening it and locking it."""
    real = fcntl.flock

    def late(file: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        (tmp_path / lock.FILE).unlink()
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    kept = Lock(tmp_path, print)

    with pytest.raises(ConfigError, match=f"held by process {os.getpid()}"):
        check_free(tmp_path)
    kept.release()


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_disk_without_locks_is_named_and_written(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    said: list[str] = []
    monkeypatch.setattr(fcntl, "flock", refuse)
    with RunFolder(tmp_path, said.append) as folder:
        folder.note(["a.txt"])

    [line] = said
    assert re.match(r"# out: no locks on its disk \(.+\); start no other run there", line)


def test_what_a_holder_says_is_one_printable_line(tmp_path: Path) -> None:
    kept = Lock(tmp_path, print)
    (tmp_path / lock.FILE).write_bytes(b"\x1b[31mred\nround\xff" + b"x" * 999)
    with pytest.raises(ConfigError) as refused:
        check_free(tmp_path)
    kept.release()

    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 500
