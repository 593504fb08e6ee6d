"""A file may be a pipe: what its writer writes is read, and one without a writer is an error.

The right values follow from fifo(7): an open for reading that must not wait succeeds without a
writer, and reading gives the end of the file then.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ringleaf.collectives.files.algorithm import read_algorithm
from ringleaf.core.inputs import file_state, read_input
from ringleaf.core.yaml_file import read_yaml
from ringleaf.errors import ConfigError
from ringleaf.switches.json.program import load_source
from ringleaf.switches.p4runtime.finsy_entities import read_p4info
from ringleaf.switches.stf.parser import read_stf


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe.xml"
    os.mkfifo(path)
    return path


def test_a_pipe_without_a_writer_is_not_waited_for(pipe: Path) -> None:
    with pytest.raises(OSError, match="a pipe that nobody writes to"):
        read_input(pipe, 10)


READERS: list[Callable[[Path], object]] = [
    lambda path: read_yaml(path, "spec"),
    read_algorithm,
    load_source,
    read_p4info,
    read_stf,
]


@pytest.mark.parametrize("read", READERS)
def test_no_reader_waits_for_a_writer(pipe: Path, read: Callable[[Path], object]) -> None:
    with pytest.raises(ConfigError, match=r"pipe\.xml.*a pipe that nobody writes to"):
        read(pipe)


def test_a_pipe_is_read_to_its_end(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer has the pipe open, and writes after the reader has opened it too."""
    handle = os.open(pipe, os.O_RDWR)  # on Linux, this waits for nobody
    opened = threading.Event()
    set_blocking = os.set_blocking

    def write() -> None:
        opened.wait()
        os.write(handle, b"size: ")
        os.write(handle, b"64K")
        os.close(handle)

    def set_blocking_of_the_reader(descriptor: int, blocking: bool) -> None:
        set_blocking(descriptor, blocking)
        opened.set()

    monkeypatch.setattr(os, "set_blocking", set_blocking_of_the_reader)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert read_input(pipe, 100) == b"size: 64K"
    finally:
        opened.set()
        writer.join()


def test_a_pipe_whose_writer_has_gone_is_read(pipe: Path) -> None:
    """As shells make them of `<(command)`: the bytes are there, and the writer may have ended."""
    keeper = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    handle = os.open(pipe, os.O_WRONLY)
    os.write(handle, b"64K")
    os.close(handle)
    assert read_input(pipe, 100) == b"64K"
    os.close(keeper)


def test_a_file_with_a_byte_too_many_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_input(path, 5) == b"12345"
    with pytest.raises(ConfigError, match="file: must have at most 4 bytes, got more"):
        read_input(path, 4)


def test_an_empty_file_is_no_pipe(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    assert read_input(path, 3) == b""


def test_an_endless_file_is_too_long() -> None:
    with pytest.raises(ConfigError, match="/dev/zero: must have at most 16777216 bytes, got more"):
        read_stf(Path("/dev/zero"))


def test_the_state_of_a_pipe_stays_and_that_of_a_file_does_not(pipe: Path, tmp_path: Path) -> None:
    handle = os.open(pipe, os.O_RDWR)
    state = file_state(pipe)
    os.write(handle, b"abc")
    os.utime(pipe, (1, 1))
    assert file_state(pipe) == state
    os.close(handle)

    path = tmp_path / "file"
    assert file_state(path) == ()
    path.write_text("one")
    first = file_state(path)
    os.utime(path, (1, 1))
    assert file_state(path) != first
