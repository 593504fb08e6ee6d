"""The packet that a user gives: as hex digits, or as one of a capture."""

from __future__ import annotations

import re
from itertools import dropwhile
from pathlib import Path

from ringleaf.core.ethernet import LONGEST_PACKET
from ringleaf.core.units import format_count, is_whole
from ringleaf.errors import ConfigError

_CAPTURED = re.compile(r"(.+)#(.*)")

_DUMPED = re.compile(r"\s*(?:0[xX])?([\da-fA-F]{4,8})(?::[ \t]|[ \t]{2}|$)[ \t]*(.*)")
"""A line of a hex dump: its offset, and bytes that letters may follow."""

_BYTES = re.compile(r"(?:[\da-fA-F]{2} ?){0,8}(?: (?=[\da-fA-F]{2} ))?(?:[\da-fA-F]{2} ?)*")
"""The bytes of such a line; letters come after two blanks, which may also be after 8 bytes."""


def read_packet(text: str) -> bytes:
    """Return the bytes of `08 00 45 ...`, of a hex dump, or of `FILE.pcap#N`, N counted from 0.

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


def origin(text: str) -> str:
    """Return where a packet comes from, for people; Wireshark counts a capture's from 1."""
    captured = _CAPTURED.fullmatch(text.strip())
    if captured is None:
        return "what you gave"
    return f"packet {captured[2]} of {captured[1]}, from 0 (frame {int(captured[2]) + 1})"


def _from_hex(text: str) -> bytes:
    digits = _from_dump(text) or re.sub(r"[\s:.\-]|0[xX]", "", text)
    wrong = re.search(r"[^0-9a-fA-F]", digits)
    if wrong:
        what = "a file and its packet's number: FILE.pcap#0" if "pcap" in text else "0-9, a-f"
        raise ConfigError(f"packet: not hex, got {wrong[0]!r} in {_short(text)!r}; give {what}")
    if len(digits) % 2:
        raise ConfigError(f"packet: an even number of hex digits is needed, got {len(digits)}")
    return bytes.fromhex(digits)


def _from_dump(text: str) -> str:
    """Return the hex digits of a dump, as by tcpdump -xx, tshark -x, xxd or hexdump -C; or "".

    Raises:
        ConfigError: If what follows its first line is not of the same packet.
    """
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    digits = ""
    for line in dropwhile(lambda line: not _bytes_at(line, 0), lines):  # tcpdump's summary
        more = _bytes_at(line, len(digits) // 2)
        if more is None:
            raise ConfigError(
                f"packet: a hex dump must be of one packet, got {_short(line.strip())!r} after "
                f"{format_count(len(digits) // 2, 'byte')}; give its lines only"
            )
        digits += more
    return digits


def _bytes_at(line: str, offset: int) -> str | None:
    """Return the digits of a dump's line that has this offset; None if it is no such line."""
    match = _DUMPED.fullmatch(line)
    if match is None or int(match[1], 16) != offset:
        return None
    pairs = _BYTES.match(match[2])
    assert pairs is not None
    letters = match[2][pairs.end() :]
    return None if letters[:1].strip() else pairs[0].replace(" ", "")


def _captured(file: str, number: str) -> bytes:
    if not is_whole(number):
        raise ConfigError(f"{file}: packets are numbered from 0, got {number!r:.80}")
    from ringleaf.networks.traces.pcap_read import find_packet  # it is compiled

    return find_packet(Path(file), int(number))


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
