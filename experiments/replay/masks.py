"""`--mask`: byte ranges, or fields of known layers, that are not compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ringleaf.core.units import is_whole
from ringleaf.errors import ConfigError
from ringleaf.experiments.replay.dissect import dissect

_RANGE = re.compile(r"(\d+):(\d+)")
_FIELD = re.compile(r"[A-Za-z]\w*(#\d+)?\.\w+")

Mask = Callable[[bytes], bytes]


def parse_masks(texts: Sequence[str]) -> Mask | None:
    """Return a function that sets a packet's masked bits to zero; None if nothing is masked.

    Each mask is `offset:length` in bytes from the Ethernet header's start, or `Layer.field` as the
    differences name them: `IP.ttl`, `SwitchML.exponent`.

    Raises:
        ConfigError: If one is neither.
    """
    ranges: list[tuple[int, int]] = []
    fields: set[str] = set()
    for text in (part.strip() for each in texts for part in each.split(",")):
        if (match := _RANGE.fullmatch(text)) and all(map(is_whole, match.groups())):
            start, length = int(match[1]), int(match[2])
            ranges.append((start, start + length))
        elif _FIELD.fullmatch(text):
            fields.add(_known(text))
        else:
            raise ConfigError(
                f"mask: must be offset:length in bytes or Layer.field, got {text!r}; "
                "write it like 14:2 or IP.ttl"
            )
    if not ranges and not fields:
        return None

    def mask(data: bytes) -> bytes:
        bits = [(8 * start, 8 * end) for start, end in ranges]
        if fields:
            bits += [(f.start_bit, f.end_bit) for f in dissect(data) if f.full_name in fields]
        return _clear(data, bits)

    return mask


def _known(text: str) -> str:
    """Return the field's name, if a layer that scapy has loaded has such a field."""
    from scapy.config import conf

    dissect(b"")  # loads them
    layer, _, field = text.partition(".")
    kinds = [kind for kind in conf.layers if kind.__name__ == layer.partition("#")[0]]
    if layer == "Padding":
        return text
    if not kinds:
        raise ConfigError(
            f"mask: unknown layer, got {text!r}; a packet that differs is shown with its layers"
        )
    names = [each.name for kind in kinds for each in kind.fields_desc]
    if field not in names:
        raise ConfigError(f"mask: unknown field, got {text!r}; valid: {', '.join(names)}")
    return text


def _clear(data: bytes, bits: Sequence[tuple[int, int]]) -> bytes:
    """Set ranges of bits to zero; bit 0 is the first byte's highest."""
    total = 8 * len(data)
    number = int.from_bytes(data, "big")
    for start, end in bits:
        start, end = min(start, total), min(end, total)
        number &= ~(((1 << (end - start)) - 1) << (total - end))
    return number.to_bytes(len(data), "big")
