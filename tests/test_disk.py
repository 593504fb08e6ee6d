"""A disk that is full: errors of traces and captures name the file that could not be written."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from ringleaf.core.disk import naming, write_text
from ringleaf.networks.traces.manifest import ARRIVALS
from ringleaf.networks.traces.pcap_write import PcapWriter
from ringleaf.networks.traces.writer import TraceWriter

FULL = Path("/dev/full")  # takes nothing: each write ends with ENOSPC

needs_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


def test_an_error_without_a_name_gets_one_and_others_keep_theirs() -> None:
    with pytest.raises(OSError, match=r"'a\.pcap'") as caught, naming(Path("a.pcap")):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match=r"'b\.pcap'"), naming(Path("a.pcap")):
        raise OSError(errno.EACCES, "Permission denied", "b.pcap")


@needs_full
def test_a_device_is_written_and_stays_one() -> None:
    with pytest.raises(OSError, match="'/dev/full'"):
        write_text(FULL, "text")
    assert FULL.is_char_device()


def test_a_pipe_is_written_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_an_error_has_the_name_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_text(tmp_path / "none" / "a.csv", "text")
    assert (caught.value.filename, caught.value.filename2) == (str(tmp_path / "none/a.csv"), None)


@needs_full
def test_a_capture_on_a_full_disk_names_its_path(tmp_path: Path) -> None:
    writer = PcapWriter(tmp_path / "port1.pcap")
    writer.append(0, bytes(60))
    (tmp_path / "port1.pcap").unlink()
    (tmp_path / "port1.pcap").symlink_to(FULL)

    with pytest.raises(OSError, match=r"port1\.pcap") as caught:
        writer.flush()
    assert caught.value.errno == errno.ENOSPC


@needs_full
def test_a_trace_on_a_full_disk_names_the_file(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace")
    arrivals = tmp_path / "trace" / ARRIVALS
    arrivals.unlink()
    arrivals.symlink_to(FULL)

    def receive_many() -> None:
        for order in range(10_000):
            writer.received(order, 1, bytes(60), order)

    with pytest.raises(OSError, match=re.escape(ARRIVALS)) as caught:
        receive_many()
    assert caught.value.errno == errno.ENOSPC
