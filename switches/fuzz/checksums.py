"""Correct checksums for drafts, as most programs drop packets with wrong ones."""

from __future__ import annotations

from ringleaf.switches.engine.hashing import CRCS, crc
from ringleaf.switches.fuzz.headers import PacketDraft
from ringleaf.switches.source import Calculation, ConstantInput, ProgramSource


def fill_checksums(source: ProgramSource, draft: PacketDraft) -> None:
    """Set the checksums that the program verifies, but for those that include the payload."""
    for checksum in source.checksums:
        place = draft.places.get(checksum.target)
        calculation = source.calculations[checksum.calculation]
        if checksum.verify and place is not None and not calculation.with_payload:
            value = _value(calculation, draft)
            if value is not None:
                draft.put(place, value)


def _value(calculation: Calculation, draft: PacketDraft) -> int | None:
    """Return the result of a calculation over a draft; None if its kind is not known here."""
    bits, size = 0, 0
    for part in calculation.inputs:
        if isinstance(part, ConstantInput):
            value, width = part.value, part.width
        elif part in draft.places:
            value, width = draft.get(draft.places[part]), draft.places[part][1]
        else:
            continue  # of a header that is not there
        bits, size = bits << width | value, size + width
    if size % 8:
        return None
    data = bits.to_bytes(size // 8, "big")
    if calculation.algorithm == "csum16":
        return _internet_checksum(data)
    return crc(calculation.algorithm, data) if calculation.algorithm in CRCS else None


def _internet_checksum(data: bytes) -> int:
    """Return the Internet checksum of `data` (RFC 1071)."""
    data += bytes(len(data) % 2)
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF
