"""p4c's BMv2 JSON, read into types and checked, so that the generator need not look twice.

Features that the engine does not execute yet are refused here, by name and with the P4 source line.
Source: behavioral-model `docs/JSON_format.md`, format version 2.
"""

from __future__ import annotations

from pathlib import Path

from ringleaf.core.inputs import read_input
from ringleaf.errors import ConfigError
from ringleaf.switches.json.compatibility import complete
from ringleaf.switches.json.consistency import check_source
from ringleaf.switches.json.expressions import ExpressionReader, Json, number_of, where_of
from ringleaf.switches.json.externs import read_digests, read_meters, read_profiles, selectors
from ringleaf.switches.json.form import MOST_BYTES, read_json
from ringleaf.switches.json.headers import HeaderReader
from ringleaf.switches.json.parser import ParserReader
from ringleaf.switches.json.psa import PsaExpressions, add_structs, architecture_of
from ringleaf.switches.source import (
    NO_ACTION,
    PSA,
    VALID,
    ActionCall,
    ActionSource,
    Calculation,
    Checksum,
    Conditional,
    ConstantInput,
    ConstEntry,
    CounterArray,
    FieldSource,
    MatchKey,
    Node,
    PipelineSource,
    ProgramSource,
    RegisterArray,
    SideSource,
    TableSource,
)

FORMAT_MAJOR = 2


def load_source(path: Path) -> ProgramSource:
    """Read and check a BMv2 JSON file.

    Raises:
        ConfigError: If it can't be read, is not BMv2 JSON, or uses unsupported features.
    """
    try:
        text = read_input(path, MOST_BYTES)
    except OSError as exc:
        raise ConfigError(f"{path}: can't be read: {exc.strerror}") from exc
    return parse_source(text, path)


def parse_source(text: bytes, path: Path) -> ProgramSource:
    """Check BMv2 JSON and return its program, as `load_source`; errors call it `path`."""
    data = read_json(text, path)
    try:
        source = _Reader(path, complete(data, path)).read()
        check_source(source)
    except KeyError as exc:
        raise ConfigError(
            f"{path}: not BMv2 JSON: a name or part that it refers to is not there, got {exc};"
            " compile with p4c-bm2-ss"
        ) from exc
    except (LookupError, TypeError, ValueError, AttributeError, AssertionError) as exc:
        raise ConfigError(
            f"{path}: not BMv2 JSON, got {type(exc).__name__} {exc}; compile with p4c-bm2-ss"
        ) from exc
    except RecursionError as exc:
        raise ConfigError(f"{path}: the program is nested too deeply, got {exc}") from exc
    return source


_NO_DEFAULT: Json = {"action_id": NO_ACTION, "action_data": []}
"""The default of a table with an action profile: a miss does nothing until a default is set."""


class _Reader:
    """Walks one JSON document."""

    def __init__(self, path: Path, data: Json) -> None:
        self._path = path
        self._data = data
        self._architecture = architecture_of(data, path)
        self._instances = HeaderReader(path, data).read()
        self._expressions = ExpressionReader(path, self._instances)
        if self._architecture is PSA:
            self._instances = add_structs(self._instances, data)
            self._expressions = PsaExpressions(path, self._instances, data)

    def read(self) -> ProgramSource:
        """Return the whole program.

        Raises:
            ConfigError: If something in it is not supported.
        """
        self._check_version()
        data = self._data
        self._expressions.check_externs(data["extern_instances"])
        actions = {item["id"]: self._action(item) for item in data["actions"]}
        reader = ParserReader(self._expressions, self._instances)
        side, *others = [self._side(reader, name) for name in self._architecture.sides]
        ingress, egress = (
            self._pipeline(self._named("pipelines", name), actions)
            for name in ("ingress", "egress")
        )
        return ProgramSource(
            path=self._path,
            instances=self._instances,
            errors=dict(data["errors"]),
            first_state=side.first_state,
            states=side.states,
            value_sets=reader.value_sets(data["parse_vsets"]),
            emitted=side.emitted,
            deparser=side.deparser,
            registers={item["name"]: self._register(item) for item in data["register_arrays"]},
            counters={
                item["name"]: CounterArray(item["name"], item["size"])
                for item in data["counter_arrays"]
                if not item["is_direct"]
            },
            calculations={
                **{item["name"]: self._calculation(item) for item in data["calculations"]},
                **selectors(data, self._calculation),
                **self._expressions.calculations,
            },
            checksums=tuple(self._checksum(item) for item in data["checksums"]),
            actions=actions,
            ingress=ingress,
            egress=egress,
            field_lists={
                item["id"]: tuple(
                    FieldSource(*element["value"])
                    for element in item["elements"]
                    if element["type"] != "hexstr"  # a constant has no place to be copied to
                )
                for item in data["field_lists"]
            },
            deparser_where=side.deparser_where,
            direct_counters={
                item["name"]: item["binding"]
                for item in data["counter_arrays"]
                if item["is_direct"]
            },
            meters=read_meters(data) | self._expressions.meters,
            profiles=read_profiles(data),
            digests=read_digests(data, self._expressions),
            architecture=self._architecture,
            egress_side=others[0] if others else None,
        )

    def _side(self, reader: ParserReader, name: str) -> SideSource:
        parser = self._named("parsers", f"{name}parser")
        deparser = self._named("deparsers", f"{name}deparser")
        return SideSource(
            first_state=parser["init_state"],
            states=reader.states(parser),
            emitted=tuple(deparser["order"]),
            deparser=tuple(
                self._expressions.primitive(item) for item in deparser.get("primitives", [])
            ),
            deparser_where=where_of(deparser),
        )

    def _refuse(self, what: str, got: object, item: Json | None = None) -> ConfigError:
        return self._expressions.refuse(what, got, item)

    def _check_version(self) -> None:
        version = self._data.get("__meta__", {}).get("version", [FORMAT_MAJOR, 0])
        if version[0] != FORMAT_MAJOR:
            raise self._refuse(f"BMv2 JSON format {FORMAT_MAJOR} is needed", version)

    def _named(self, section: str, name: str) -> Json:
        """Return the parser, deparser or pipeline that `simple_switch` takes: by its name."""
        named: dict[str, Json] = {item["name"]: item for item in self._data[section]}
        if name not in named:
            raise self._refuse(f"{section} must have one named {name!r}", sorted(named))
        return named[name]

    def _register(self, item: Json) -> RegisterArray:
        return RegisterArray(item["name"], item["size"], item["bitwidth"])

    def _action(self, item: Json) -> ActionSource:
        return ActionSource(
            item["id"],
            item["name"],
            tuple(data["bitwidth"] for data in item["runtime_data"]),
            tuple(self._expressions.primitive(primitive) for primitive in item["primitives"]),
            tuple(data["name"] for data in item["runtime_data"]),
            where_of(item),
        )

    def _calculation(self, item: Json) -> Calculation:
        inputs: list[FieldSource | ConstantInput] = []
        with_payload = False
        for part in item["input"]:
            match part["type"]:
                case "field":
                    inputs.append(FieldSource(*part["value"]))
                case "hexstr":
                    inputs.append(ConstantInput(number_of(part["value"]), part["bitwidth"]))
                case "header":
                    header = self._instances.headers[part["value"]]
                    inputs += [
                        FieldSource(header.name, field.name)
                        for field in header.fields
                        if field.name != VALID
                    ]
                case "payload":
                    with_payload = True
                case kind:
                    raise self._refuse("unsupported calculation input", kind, item)
        return Calculation(item["name"], item["algo"], tuple(inputs), with_payload)

    def _checksum(self, item: Json) -> Checksum:
        condition = item.get("if_cond")
        return Checksum(
            FieldSource(*item["target"]),
            item["calculation"],
            None if condition is None else self._expressions.expression(condition),
            item.get("verify", True),
            item.get("update", True),
            where_of(item),
        )

    def _pipeline(self, item: Json, actions: dict[int, ActionSource]) -> PipelineSource:
        nodes: dict[str, Node] = {}
        for table in item["tables"]:
            nodes[table["name"]] = self._table(table, actions)
        for node in item["conditionals"]:
            nodes[node["name"]] = Conditional(
                node["name"],
                self._expressions.expression(node["expression"]),
                node["true_next"],
                node["false_next"],
                where_of(node),
            )
        for node in item.get("action_calls", []):
            nodes[node["name"]] = ActionCall(node["name"], node["action_id"], node["next_node"])
        return PipelineSource(item["name"], item["init_table"], nodes)

    def _table(self, item: Json, actions: dict[int, ActionSource]) -> TableSource:
        name = item["name"]
        if item["type"] not in ("simple", "indirect", "indirect_ws"):
            raise self._refuse(f"table type is not supported: {name}", item["type"], item)
        default = item.get("default_entry", _NO_DEFAULT)
        numbers = tuple(item["action_ids"])
        following = item["next_tables"]
        by_hit = "__HIT__" in following or "__MISS__" in following
        base = item.get("base_default_next")
        keys = tuple(self._match_key(key) for key in item["key"])
        return TableSource(
            name=name,
            keys=keys,
            actions=numbers,
            max_size=item["max_size"],
            counted=item["with_counters"],
            default_action=default["action_id"],
            default_arguments=tuple(number_of(text) for text in default["action_data"]),
            default_const=default.get("action_entry_const", False),
            action_const=default.get("action_const", False),
            entries=tuple(self._entry(entry, keys) for entry in item.get("entries", [])),
            next_by_action={
                number: following.get(actions[number].name, base) for number in numbers
            },
            by_hit=by_hit,
            next_hit=following.get("__HIT__", base),
            next_miss=following.get("__MISS__", base),
            where=where_of(item),
            profile=item.get("action_profile", ""),
            meter=item.get("direct_meters") or "",
            timed=item.get("support_timeout", False),
            next_none=base,
        )

    def _match_key(self, item: Json) -> MatchKey:
        if item["match_type"] not in ("exact", "lpm", "ternary", "range", "optional"):
            raise self._refuse("unsupported match kind", item["match_type"], item)
        if not isinstance(item["target"], list):  # BMv2 does not load this either
            raise self._refuse(
                "a key that is an element of a stack at a varying index is not supported;"
                " copy it to metadata",
                item["name"],
                item,
            )
        target = FieldSource(*item["target"])
        name = item.get("name", ".".join(item["target"]))
        mask = item.get("mask")
        return MatchKey(item["match_type"], target, name, None if mask is None else number_of(mask))

    def _entry(self, item: Json, keys: tuple[MatchKey, ...]) -> ConstEntry:
        values: list[tuple[int, ...]] = []
        for match, key in zip(item["match_key"], keys, strict=True):
            match match["match_type"]:
                case "exact":
                    values.append((self._cut(match["key"], key),))
                case "lpm":
                    values.append((self._cut(match["key"], key), match["prefix_length"]))
                case "ternary" | "optional":
                    values.append((self._cut(match["key"], key), self._cut(match["mask"], key)))
                case "range":
                    values.append((number_of(match["start"]), number_of(match["end"])))
                case kind:
                    raise self._refuse("unsupported match kind", kind)
        action = item["action_entry"]
        return ConstEntry(
            tuple(values),
            action["action_id"],
            tuple(number_of(text) for text in action["action_data"]),
            item.get("priority", 0),
        )

    def _cut(self, text: str, key: MatchKey) -> int:
        """Return a number without the bits of its first byte that the key lacks, as in BMv2."""
        width = self._instances.field_of(key.target.header, key.target.name).width
        number = number_of(text)
        return number % (1 << width) if number >> 8 * -(-width // 8) == 0 else number
