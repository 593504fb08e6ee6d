"""What frames take on the line, by IEEE 802.3."""

from __future__ import annotations

import pytest

from ringleaf.networks.virtual.lines import line_bytes


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (14, 84),  # padded to 64 with FCS; preamble 8, gap 12
        (60, 84),
        (61, 85),
        (1514, 1538),  # a payload of 1500 bytes
    ],
)
def test_frames_take_preamble_fcs_and_gap(frame: int, expected: int) -> None:
    assert line_bytes(frame) == expected
