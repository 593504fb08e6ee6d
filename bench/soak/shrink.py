"""Shrinking of failing input."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.soak.inputs.mutators import places

Fails = Callable[[bytes], bool]


def shrink(data: bytes, fails: Fails, seconds: float) -> bytes:
    """Return a smaller input that fails the same way, as small as the time allows."""
    until = time.monotonic() + seconds
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, (dict, list)):
        data = _shrink_json(data, fails, until)
    return _shrink_bytes(data, fails, until)


def _shrink_json(data: bytes, fails: Fails, until: float) -> bytes:
    """Remove parts of a document, the large ones first, for as long as that helps."""
    smaller = True
    while smaller and time.monotonic() < until:
        smaller = False
        for candidate in _without_parts(data):
            if time.monotonic() >= until:
                break
            if fails(candidate):
                data, smaller = candidate, True
                break
    return data


def _without_parts(data: bytes) -> Iterator[bytes]:
    document = json.loads(data)
    found = [(len(json.dumps(item[key])), item, key) for item, key in places(document)]
    for _, item, key in sorted(found, key=lambda part: -part[0]):
        kept: Any = item[key]
        del item[key]
        yield json.dumps(document).encode()
        if isinstance(item, dict):
            item[key] = kept
        else:
            item.insert(key, kept)


def _shrink_bytes(data: bytes, fails: Fails, until: float) -> bytes:
    """Remove stretches, each half as long as those before (delta debugging)."""
    size = len(data) // 2
    while size:
        at = 0
        while at < len(data) and time.monotonic() < until:
            candidate = data[:at] + data[at + size :]
            if fails(candidate):
                data = candidate
            else:
                at += size
        size //= 2
    return data
