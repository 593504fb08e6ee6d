"""BMv2 JSON of any compiler and age, made to say everything that p4c says today.

BMv2 takes an absent part for empty, and keeps older names. So the readers of this package see one
form: what `complete` returns.
Source: behavioral-model `src/bm_sim/P4Objects.cpp`, `docs/JSON_format.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ringleaf.errors import ConfigError
from ringleaf.switches.json.distinct import check_distinct
from ringleaf.switches.json.expressions import where_of
from ringleaf.switches.json.lengths import spell_lengths
from ringleaf.switches.json.psa import architecture_of
from ringleaf.switches.json.saturating import cast_saturating
from ringleaf.switches.json.target import place_fields
from ringleaf.switches.json.validity import split_validity
from ringleaf.switches.source import V1MODEL, VALID, refusal

Json = dict[str, Any]

# BMv2's own errors; it numbers those that a compiler left out after all others (`add_core`).
CORE_ERRORS = (
    *("NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort"),
    *("ParserTimeout", "ParserInvalidArgument"),
)

_SECTIONS = (
    *("header_types", "headers", "header_stacks", "header_union_types", "header_unions"),
    *("header_union_stacks", "extern_instances", "parse_vsets", "errors", "parsers", "deparsers"),
    *("calculations", "counter_arrays", "meter_arrays", "register_arrays", "actions", "pipelines"),
    *("checksums", "learn_lists", "field_lists", "field_aliases"),
)

_MEMBERS: dict[str, Json] = {
    "header_types": {"fields": []},
    "headers": {"metadata": False},
    "header_unions": {"header_ids": []},
    "counter_arrays": {"is_direct": False},
    "meter_arrays": {"is_direct": False},
    "calculations": {"input": []},
    "actions": {"runtime_data": [], "primitives": []},
    "parsers": {"parse_states": [], "init_state": None},
    "deparsers": {"order": []},
    "pipelines": {
        **dict.fromkeys(("action_profiles", "tables", "conditionals", "action_calls"), ()),
        "init_table": None,
    },
    "field_lists": {"elements": []},
    "learn_lists": {"elements": []},
}
_STATE: Json = {"parser_ops": [], "transition_key": [], "transitions": []}
_TRANSITION: Json = {"mask": None, "next_state": None}
_TABLE: Json = {"key": [], "with_counters": False, "next_tables": {}}


def complete(data: Json, path: Path) -> Json:
    """Return a program's JSON, whose leaves have been checked, in the newest form.

    It is changed in place.

    Raises:
        ConfigError: If BMv2 refuses it, too: for names or numbers that are given twice, or parts
            without which `simple_switch` can't run it.
    """
    if not data.keys() & set(_SECTIONS):
        raise ConfigError(
            f"{path}: not BMv2 JSON, got keys {list(data)!r:.80}; compile with p4c-bm2-ss"
        )
    for name in _SECTIONS:
        data[name] = data.get(name) or []
    for section, members in _MEMBERS.items():
        for item in data[section]:
            _fill(item, members)
    for kind in data["header_types"]:
        kind["fields"] = [field for field in kind["fields"] if field]
    return _Completion(data, path).run()


def _fill(item: Json, members: Json) -> None:
    for name, value in members.items():
        if item.get(name) is None:
            item[name] = list(value) if isinstance(value, list | tuple) else value


class _Completion:
    """Goes through one document, section by section."""

    def __init__(self, data: Json, path: Path) -> None:
        self._data = data
        self._path = path

    def run(self) -> Json:
        """Complete the document in place, and return it."""
        data = self._data
        check_distinct(data, self._refuse)
        self._errors()
        for parser in data["parsers"]:
            for state in parser["parse_states"]:
                self._state(state, {each["name"] for each in parser["parse_states"]})
        for action in data["actions"]:
            action["primitives"] = [_primitive(each) for each in action["primitives"]]
        for checksum in data["checksums"]:
            if checksum["type"] == "ipv4":
                self._ipv4_checksum(checksum)
        for pipeline in data["pipelines"]:
            self._pipeline(pipeline)
        self._direct()
        cast_saturating(data, self._refuse)
        spell_lengths(data, self._refuse)
        if architecture_of(data, self._path) is V1MODEL:
            place_fields(data, self._refuse)
        split_validity(data, self._refuse)
        return data

    def _refuse(self, what: str, got: object, item: Json | None = None) -> Exception:
        return refusal(self._path, what, got, where_of(item))

    def _errors(self) -> None:
        errors = dict(self._data["errors"])
        if len(errors) < len(self._data["errors"]) or len(set(errors.values())) < len(errors):
            raise self._refuse("errors must have names and numbers of their own", errors)
        for name in CORE_ERRORS:
            errors.setdefault(name, max(errors.values(), default=-1) + 1)
        self._data["errors"] = list(errors.items())

    # The parser.

    def _state(self, state: Json, names: set[str]) -> None:
        _fill(state, _STATE)
        state["parser_ops"] = [self._parser_op(op) for op in state["parser_ops"]]
        for transition in state["transitions"]:
            _fill(transition, _TRANSITION)
            if transition["next_state"] not in names:  # BMv2 takes any other name for the end
                transition["next_state"] = None

    def _parser_op(self, op: Json) -> Json:
        """Return an operation whose numbers are constants: older ones stand there as they are."""
        match op:
            case {"op": "shift", "parameters": [int() as size]}:  # bytes
                return op | {"op": "advance", "parameters": [_constant(8 * size)]}
            case {"op": "verify", "parameters": [condition, int() as error]}:
                if error not in dict(self._data["errors"]).values():
                    raise self._refuse("verify names an error that there is not", error, op)
                return op | {"parameters": [condition, _constant(error)]}
        return op

    # Checksums and objects of tables.

    def _ipv4_checksum(self, checksum: Json) -> None:
        """Give a checksum over a whole header, without itself, a calculation that says so."""
        header, target = checksum["target"]
        kinds = {item["name"]: item["fields"] for item in self._data["header_types"]}
        types = {item["name"]: item["header_type"] for item in self._data["headers"]}
        name = f"checksum of {header}"
        inputs = [
            _constant(0) | {"bitwidth": field[1]}
            if field[0] == target
            else {"type": "field", "value": [header, field[0]]}
            for field in kinds[types[header]]
        ]
        if all(item["name"] != name for item in self._data["calculations"]):
            self._data["calculations"].append({"name": name, "algo": "csum16", "input": inputs})
        checksum["calculation"] = name
        if checksum.get("if_cond") is None:  # BMv2 does nothing to a header that is not there
            valid = {"op": "d2b", "left": None, "right": _field(header, VALID)}
            checksum["if_cond"] = {"type": "expression", "value": valid}

    def _direct(self) -> None:
        """Name the table of each direct counter and meter; drop those that no table has."""
        data = self._data
        users = {table.get("direct_meters"): table["name"] for table in self._tables()}
        for meter in data["meter_arrays"]:
            if meter["is_direct"] and meter["name"] in users:
                meter.setdefault("binding", users[meter["name"]])
        for kind in ("meter_arrays", "counter_arrays"):
            data[kind] = [x for x in data[kind] if not x["is_direct"] or x.get("binding")]
        known = {meter["name"] for meter in data["meter_arrays"] if meter["is_direct"]}
        for name in users.keys() - {None, *known}:
            raise self._refuse("a table must name a direct meter that there is", name)

    def _tables(self) -> Iterator[Json]:
        return (table for pipeline in self._data["pipelines"] for table in pipeline["tables"])

    # Pipelines.

    def _pipeline(self, pipeline: Json) -> None:
        for table in pipeline["tables"]:
            _fill(table, _TABLE)
            self._profile(pipeline, table)
            self._keys(table)
            self._actions(table)
            self._entries(table)
        for node in pipeline["conditionals"]:
            if not {"true_next", "false_next"} & node.keys():
                raise self._refuse("a condition must say what is next", node["name"], node)
            _fill(node, {"true_next": None, "false_next": None})
        for node in pipeline["action_calls"]:
            _fill(node, {"next_node": None})

    def _profile(self, pipeline: Json, table: Json) -> None:
        """Give a table whose action profile is said inside it one of that name."""
        if table["type"] not in ("indirect", "indirect_ws") or "action_profile" in table:
            return
        if "act_prof_name" not in table:
            raise self._refuse("a table of this type needs an action profile", table["name"], table)
        name = table["action_profile"] = table["act_prof_name"]
        if any(each["name"] == name for each in pipeline["action_profiles"]):
            raise self._refuse("action profiles must have names of their own", name, table)
        own = {"name": name, "max_size": table.get("max_size", 0)}
        if table["type"] == "indirect_ws":
            own["selector"] = table["selector"]
        pipeline["action_profiles"].append(own)

    def _keys(self, table: Json) -> None:
        """Turn keys of P4_14's kind `valid`, whose target is a header, into exact ones."""
        if sum(key["match_type"] == "lpm" for key in table["key"]) > 1:
            raise self._refuse("a table has one lpm key at most", table["name"], table)
        entries = table.get("entries") or []
        for number, key in enumerate(table["key"]):
            if key["match_type"] != "valid":
                continue
            key.setdefault("name", key["target"])
            key |= {"match_type": "exact", "target": [key["target"], VALID]}
            for match in (entry["match_key"][number] for entry in entries):
                match |= {"match_type": "exact", "key": hex(bool(match["key"]))}

    def _actions(self, table: Json) -> None:
        """Give a table's actions numbers, and check that it says what is next after each."""
        names = {action["id"]: action["name"] for action in reversed(self._data["actions"])}
        if "action_ids" not in table:
            numbers = {name: number for number, name in names.items()}
            table["action_ids"] = [numbers[name] for name in table["actions"]]
        own = [names[number] for number in table["action_ids"]]
        twice = [name for i, name in enumerate(own) if name in own[:i]]
        if twice:
            raise self._refuse(f"actions of {table['name']} share a name", twice[0], table)
        following = set(table["next_tables"])
        valid = set(own) if not following & {"__HIT__", "__MISS__"} else {"__HIT__", "__MISS__"}
        if following != valid:
            wrong = sorted(following ^ valid)
            raise self._refuse(
                f"next_tables of {table['name']} must have {sorted(valid)}", wrong, table
            )

    def _entries(self, table: Json) -> None:
        entries = table.get("entries")
        if entries is None and "max_size" not in table:
            raise self._refuse("a table needs max_size or entries", table["name"], table)
        if entries is not None and table["type"].startswith("indirect"):
            raise self._refuse("entries of a table with members", table["name"], table)
        table.setdefault("max_size", len(entries or []))
        default = table.get("default_entry")
        if default is not None and "action_data" not in default:
            raise self._refuse("a default entry needs action_data", table["name"], table)


_SUMS = {  # primitives of P4_14 that are expressions today, with the operators
    **dict.fromkeys(("add", "add_to_field"), "+"),
    **dict.fromkeys(("subtract", "subtract_from_field"), "-"),
    **{"bit_and": "&", "bit_or": "|", "bit_xor": "^", "shift_left": "<<", "shift_right": ">>"},
}
_RENAMED = {"copy_header": "assign_header"}


def _primitive(primitive: Json) -> Json:
    """Return a primitive of `simple_switch`, of P4_14's perhaps, as p4c writes it today."""
    op = primitive["op"]
    if op in ("assign", "modify_field"):
        return _cell_moved(primitive)
    if op not in _SUMS:
        return primitive | {"op": _RENAMED.get(op, op)}
    target, *operands = primitive["parameters"]
    if len(operands) == 1:  # it changes its target
        operands.insert(0, target)
    left, right = operands
    value = {"op": _SUMS[op], "left": left, "right": right}
    inner = {"type": "expression", "value": value}
    return primitive | {"op": "assign", "parameters": [target, inner]}


def _cell_moved(primitive: Json) -> Json:
    """Return an assignment; one from or to a cell of a register array as a read or a write."""
    match primitive["parameters"]:
        case [target, {"type": "register", "value": [name, index]}]:
            return primitive | {"op": "register_read", "parameters": [target, _array(name), index]}
        case [{"type": "register", "value": [name, index]}, value]:
            return primitive | {"op": "register_write", "parameters": [_array(name), index, value]}
    return primitive


def _array(name: str) -> Json:
    return {"type": "register_array", "value": name}


def _constant(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def _field(header: str, name: str) -> Json:
    return {"type": "field", "value": [header, name]}
