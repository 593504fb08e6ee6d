"""Texts generated from the options: help, the Makefile's names, pages of the reference, a schema.

`python -m ringleaf.experiments.runs.option_texts` writes them all (`make options`); tests check
that the files are up to date. `make help` reads one before anything is installed.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from ringleaf.collectives.compression.registry import COMPRESSORS
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.sparse.registry import SPARSE
from ringleaf.core.disciplines import names as disciplines
from ringleaf.experiments.runs.console import in_a_line
from ringleaf.experiments.runs.registry import WORKLOADS
from ringleaf.experiments.runs.request import typed
from ringleaf.experiments.runs.spec_file import CASES
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.experiments.spec.options import Option, options_of
from ringleaf.experiments.spec.typed import COMMON
from ringleaf.hosts.congestion.registry import CONTROLLERS
from ringleaf.hosts.nic.registry import OFFLOADS
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS
from ringleaf.hosts.training.model import names as models
from ringleaf.hosts.workload.llm.presets import PRESETS
from ringleaf.ina.allocation import ALLOCATORS
from ringleaf.ina.registry import SYSTEMS
from ringleaf.ina.window_registry import WINDOWS
from ringleaf.topologies.registry import TOPOLOGIES

HELP = Path("experiments/spec/options.txt")
MAKE = Path("experiments/spec/options.mk")
SCHEMA = Path("experiments/specs/schema.json")
OPTIONS_PAGE = Path("docs/reference/options.md")
NAMES_PAGE = Path("docs/reference/names.md")

_WIDTH = 18  # of a name in the help
_LONGEST_DEFAULT = 20  # letters of a column
_MANY_NAMES = re.compile(r": [\w-]+(?:, [\w-]+){9,}$")  # which a page of their own has


def make_help() -> str:
    """Return options as variables of `make exp`: the common ones, a line each, and then all."""
    spec = f"  {'SPEC=':<{_WIDTH}}YAML file of these options, with names in small letters"
    common, lines = [], []
    for name, option in typed().items():
        text = option.help + (f" [{option.default}]" if option.default else "")
        first, *others = textwrap.wrap(text, 76, break_on_hyphens=False)
        beginning = f"  {option.variable + '=':<{_WIDTH}}"
        if name in COMMON:
            common.append(beginning + in_a_line(text, 76))
        lines += [beginning + first, *(" " * (_WIDTH + 2) + other for other in others)]
    return "\n".join((*common, spec, "", *lines, spec))


def make_variables() -> str:
    """Return the Makefile's names of options, with the flag of each."""
    named = {option.variable: option.flags.split()[0] for option in typed().values()}
    flags = [option.variable for option in typed().values() if option.is_flag]
    apart = (*flags, "CC")  # the Makefile handles these: they have no value, or another meaning
    named = {name: flag for name, flag in named.items() if name not in apart}
    lines = textwrap.wrap(
        f"OPTIONS := {' '.join(named)}", 98, break_on_hyphens=False, subsequent_indent="  "
    )
    return "\n".join(
        (
            "# Made of the options by `make options`.",
            " \\\n".join(lines),
            *(f"FLAG_{name} := {flag}" for name, flag in named.items()),
        )
    )


def reference_options() -> str:
    """Return the page of all options, for the command line, files and Python."""
    options = options_of(WORKLOADS["graph"].spec)
    new = {name: each for name, each in options.items() if name not in typed()}
    lines = [
        "# Options",
        "",
        "`--rank-order` is typed so; it is the key `rank_order` of spec files, the keyword "
        "`rank_order` of `ringleaf.run`, and the variable `RANK_ORDER` of `make exp` (there, "
        "`--duplicate` is `DUP`).",
        "",
        *_rows(typed()),
        "",
        "## Options of workloads only",
        "",
        "They are keys of spec files, and those that begin with `--` are options of `ringleaf "
        "workload run` and `export`; so are the options above that "
        "[workloads](../workloads/README.md) share.",
        "",
        *_rows(new),
    ]
    return "\n".join(lines) + "\n"


def _rows(options: Mapping[str, Option]) -> Iterator[str]:
    """Yield a table of options; long texts are where a table's column gives them room."""
    yield "| option | default | meaning |"
    yield "|---|---|---|"
    for name, option in options.items():
        typed = ", ".join(f"`{flag}`" for flag in option.flags.split() or [name])
        meaning = _MANY_NAMES.sub(": see [names](names.md)", option.help)
        default = f"`{option.default}`" if option.default else ""
        if len(default) > _LONGEST_DEFAULT:
            meaning += f"; default: {str(option.default).replace(',', ', ')}"
            default = ""
        yield f"| {typed} | {default} | {meaning} |"


def reference_names() -> str:
    """Return the page on the meaning of names, family by family."""
    about = "Packages may add to each family ([how](../extending/README.md))."
    parts = ["# Names", "", about]
    parts += ["", "## Topologies", ""]
    for name, family in TOPOLOGIES.items():
        sizes = "".join(f",{key}={size}" for key, size in family.defaults.items())
        parts.append(f"- `{name}{sizes}`: {family.summary}")
    parts += ["", "## Algorithms", ""]
    for name, algorithm in ALGORITHMS.items():
        collective = algorithm.collective.value.replace("_", "-")
        where = ", in the network" if algorithm.in_network else ""
        parts.append(f"- `{name}`: {algorithm.title} ({collective}{where})")
    for title, names in (
        ("Flow schedulers", SCHEDULERS),
        ("Aggregation systems", SYSTEMS),
        ("Congestion controllers", CONTROLLERS),
        ("Congestion windows of aggregation", WINDOWS),
        ("Allocators of switches' memory", ALLOCATORS),
        ("Workloads of NICs", OFFLOADS),
        ("Port disciplines", disciplines()),
        ("Compressors", COMPRESSORS),
        ("Sparse allreduces", SPARSE),
        ("Models", models()),
        ("Models in parallel", PRESETS),
    ):
        parts += ["", f"## {title}", "", ", ".join(f"`{name}`" for name in names)]
    return "\n".join(parts) + "\n"


def schema() -> dict[str, Any]:
    """Return a JSON Schema (draft 2020-12) of spec files, for editors."""
    shipped = [WORKLOADS[name] for name in WORKLOADS.shipped()]
    others: list[dict[str, Any]] = [{"required": [kind.key]} for kind in shipped if kind.key]
    kinds = [
        _of_kind(
            spec,
            kind.lists_of(spec),
            {"required": [kind.key]} if kind.key else {"not": {"anyOf": others}},
        )
        for kind in shipped
        for spec in kind.specs()
    ]
    definitions: dict[str, Any] = {}
    for kind in kinds:
        definitions |= kind.pop("$defs", {})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Ringleaf experiment",
        "oneOf": kinds,
        "$defs": definitions,
    }


def _of_kind(
    model: type[NetworkSpec], lists: Collection[str], demand: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the schema of one kind of experiment, in which options may be swept."""
    kind_schema = model.model_json_schema()
    for definition in kind_schema.get("$defs", {}).values():
        _shown(definition)
    _shown(kind_schema)
    own: dict[str, Any] = kind_schema["properties"]
    for name, shape in own.items():
        if name not in lists:
            about = {key: shape.pop(key) for key in ("description", "default") if key in shape}
            own[name] = about | {"anyOf": [shape, {"type": "array", "items": dict(shape)}]}
    case = {"type": "object", "propertyNames": {"enum": list(own)}}
    whole = own | {
        CASES: {
            "type": "array",
            "items": case,
            "description": "Mappings of options that change together; a run for each",
        }
    }
    return kind_schema | {"properties": whole, **demand}


def _shown(definition: dict[str, Any]) -> None:
    """Remove the keys that only our command line needs."""
    definition.pop("description", None)
    definition.pop("required", None)
    for shape in definition.get("properties", {}).values():
        for key in ("flags", "variable", "title"):
            shape.pop(key, None)
        if shape.get("default") == "":
            del shape["default"]


def texts() -> Iterator[tuple[Path, str]]:
    """Yield the files, by path from the repository's root, and their contents."""
    yield HELP, make_help() + "\n"
    yield MAKE, make_variables() + "\n"
    yield SCHEMA, json.dumps(schema(), indent=1) + "\n"
    yield OPTIONS_PAGE, reference_options()
    yield NAMES_PAGE, reference_names()


if __name__ == "__main__":
    for path, text in texts():
        path.write_text(text)
        sys.stdout.write(f"{path}\n")
