"""Meters, action profiles and digests in BMv2 JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ringleaf.switches.json.expressions import ExpressionReader
from ringleaf.switches.source import ActionProfile, Calculation, Digest, FieldSource, MeterArray

Json = dict[str, Any]


def read_meters(data: Json) -> dict[str, MeterArray]:
    """Return all meters, direct ones too, by their names."""
    return {item["name"]: _meter(item) for item in data["meter_arrays"]}


def _meter(item: Json) -> MeterArray:
    by_bytes = item["type"] == "bytes"
    if not item["is_direct"]:
        return MeterArray(item["name"], item["size"], by_bytes)
    target = FieldSource(*item["result_target"])
    return MeterArray(item["name"], item["size"], by_bytes, item["binding"], target)


def read_profiles(data: Json) -> dict[str, ActionProfile]:
    """Return the action profiles of both pipelines by their names."""
    return {
        item["name"]: ActionProfile(
            item["name"],
            item["max_size"],
            _selector(item) if "selector" in item else "",
        )
        for item in _profiles(data)
    }


def selectors(data: Json, read: Callable[[Json], Calculation]) -> dict[str, Calculation]:
    """Return the inputs and algorithms of action selectors, as calculations."""
    calculations = {}
    for item in _profiles(data):
        if "selector" in item:
            name = _selector(item)
            calculations[name] = read({"name": name, **item["selector"]})
    return calculations


def read_digests(data: Json, expressions: ExpressionReader) -> dict[int, Digest]:
    """Return the digests by their numbers, which are the arguments of `generate_digest`."""
    return {
        item["id"]: Digest(
            item["id"],
            item["name"],
            tuple(expressions.expression(element) for element in item["elements"]),
        )
        for item in data["learn_lists"]
    }


def _selector(item: Json) -> str:
    return f"selector of {item['name']}"


def _profiles(data: Json) -> Iterator[Json]:
    for pipeline in data["pipelines"]:
        yield from pipeline["action_profiles"]
