"""Names and numbers that may be given once: BMv2 refuses those that are given twice.

Source: behavioral-model `src/bm_sim/P4Objects.cpp`, `DupIdChecker` and `add_new_object`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Json = dict[str, Any]
Refuse = Callable[..., Exception]

_BY_NAME = {
    "header_types": "header types",
    "headers": "headers",
    "header_stacks": "header stacks",
    "parse_vsets": "value sets",
    "parsers": "parsers",
    "deparsers": "deparsers",
    "calculations": "calculations",
    "meter_arrays": "meters",
    "register_arrays": "registers",
    "pipelines": "pipelines",
}
"""Objects that have a name and a number of their own."""

_BY_NUMBER = {
    "counter_arrays": "counters",  # direct ones have no name of their own
    "actions": "actions",  # several tables may have a NoAction each
    "checksums": "checksums",
    "learn_lists": "digests",
    "field_lists": "field lists",
}


def check_distinct(data: Json, refuse: Refuse) -> None:
    """Check that no name and no number is given twice where BMv2 allows it once.

    Args:
        data: The document, whose sections are all there.
        refuse: Makes the error of what is wrong, the value, and the part of the document.

    Raises:
        ConfigError: Naming the first one.
    """
    for section, what in _BY_NAME.items():
        _check(refuse, what, data[section], "id", "name")
    for section, what in _BY_NUMBER.items():
        _check(refuse, what, data[section], "id")
    for section, what in (("header_unions", "unions"), ("header_union_stacks", "union stacks")):
        _check(refuse, what, data[section], "name")
    indirect = [item for item in data["counter_arrays"] if not item["is_direct"]]
    _check(refuse, "counters", indirect, "name")
    for parser in data["parsers"]:
        _check(refuse, "parser states", parser["parse_states"], "id", "name")
    _check_pipelines(refuse, data["pipelines"])


def _check_pipelines(refuse: Refuse, pipelines: Sequence[Json]) -> None:
    """Check names, of which one namespace serves all pipelines, and numbers, which are theirs."""
    nodes, profiles = [], []
    for pipeline in pipelines:
        for kind, what in (("tables", "tables"), ("conditionals", "conditions")):
            _check(refuse, what, pipeline[kind], "id")
            nodes += pipeline[kind]
        nodes += pipeline["action_calls"]
        _check(refuse, "action profiles", pipeline["action_profiles"], "id")
        profiles += pipeline["action_profiles"]
    _check(refuse, "tables or conditions", nodes, "name")
    _check(refuse, "action profiles", profiles, "name")


def _check(refuse: Refuse, what: str, items: Sequence[Json], *keys: str) -> None:
    for key in keys:
        seen: set[Any] = set()
        for item in items:
            value = item.get(key, 0 if key == "id" else "")
            if value in seen:
                noun = "number" if key == "id" else "name"
                raise refuse(f"two {what} have one {noun}", value, item)
            seen.add(value)
