"""The packet that a user gives: as hex digits, or as one of a capture."""

from __future__ import annotations

import re
from pathlib import Path

from ringleaf.core.ethernet import LONGEST_PACKET
from ringleaf.core.units import is_whole
from ringleaf.errors import ConfigError

_CAPTURED = re.compile(r"(.+)#(.*)")


def read_packet(text: str) -> bytes:
    """Return the bytes of `08 00 45 ...`, or of `FILE.pcap#N`, N counted from 0.

    Raises:
        ConfigError: If there is no such packet, or it is longer than a switch takes.
    """
    captured = _CAPTURED.fullmatch(text.strip())
    data = _captured(captured[1], captured[2]) if captured else _from_hex(text)
    if not data:
        raise ConfigError("packet: must have at least one byte, got none")
    if len(data) > LONGEST_PACKET:
        raise ConfigError(f"packet: at most {LONGEST_PACKET} bytes, got {len(data)}")
    return data


def names_capture(text: str) -> bool:
    """Return whether a text names a packet of a capture, which takes longer to look at than hex."""
    return _CAPTURED.fullmatch(text.strip()) is not None


def _from_hex(text: str) -> bytes:
    digits = re.sub(r"[\s:.\-]|0[xX]", "", text)
    wrong = re.search(r"[^0-9a-fA-F]", digits)
    if wrong:
        what = "a file and its packet's number: FILE.pcap#0" if "pcap" in text else "0-9, a-f"
        raise ConfigError(f"packet: not hex, got {wrong[0]!r} in {_short(text)!r}; give {what}")
    if len(digits) % 2:
        raise ConfigError(f"packet: an even number of hex digits is needed, got {len(digits)}")
    return bytes.fromhex(digits)


def _captured(file: str, number: str) -> bytes:
    if not is_whole(number):
        raise ConfigError(f"{file}: packets are numbered from 0, got {number!r:.80}")
    from ringleaf.networks.traces.pcap_read import find_packet  # it is compiled

    return find_packet(Path(file), int(number))


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
