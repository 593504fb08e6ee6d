"""Frames of messages, and shared memory."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import ProtocolError
from ringleaf.experiments.workloads.train.wire import MOST_BYTES, SharedBuffers, Unpacker, pack

MESSAGES = st.lists(st.lists(st.integers() | st.text(), max_size=4).map(lambda rest: ["x", *rest]))


@given(MESSAGES, st.data())
def test_messages_arrive_however_bytes_are_cut(
    messages: list[list[object]], data: st.DataObject
) -> None:
    unpacker, found = Unpacker(), []
    left = b"".join(map(pack, messages))
    while left:
        size = data.draw(st.integers(1, len(left)))
        found += unpacker.feed(left[:size])
        left = left[size:]

    assert found == messages


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((MOST_BYTES + 1).to_bytes(4, "big"), f"at most, got {MOST_BYTES + 1}"),
        (b"\0\0\0\2{]", "must be JSON"),
        (b"\0\0\0\2[]", "must be a list that begins with a name"),
        (b"\0\0\0\4\xff\xff\xff\xff", "must be JSON"),
    ],
)
def test_what_is_no_message_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        Unpacker().feed(data)


def test_buffers_are_shared_and_private(tmp_path: Path) -> None:
    ours = SharedBuffers(tmp_path).make(2, 5, 4096)
    theirs = SharedBuffers(tmp_path).buffer(2, 5)

    ours[:3] = 7

    assert theirs[:4].tolist() == [7, 7, 7, 0]
    assert stat.S_IMODE((tmp_path / "2-5").stat().st_mode) == 0o600
