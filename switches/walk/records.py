"""A walk as plain data, for JSON."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from ringleaf.switches.walk.steps import PacketLeaves, PacketWalk, StateSelected, Step

_KINDS: dict[type[Step], str] = {StateSelected: "Selected", PacketLeaves: "Sent"}
"""Kinds in files where they are not the classes' names."""


def as_record(walk: PacketWalk) -> dict[str, Any]:
    """Return a walk with steps as dicts, each with its `kind`; bytes are hex."""
    return {
        "program": walk.program,
        "steps": [
            {"kind": _KINDS.get(type(step), type(step).__name__)} | _plain(step)
            for step in walk.steps
        ],
        "out": [{"port": port, "data": data.hex()} for port, data in walk.out],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    return value
