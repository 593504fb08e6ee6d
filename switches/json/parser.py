"""The parser in BMv2 JSON."""

from __future__ import annotations

from ringleaf.core.units import format_count
from ringleaf.switches.json.expressions import ExpressionReader, Json, number_of
from ringleaf.switches.source import (
    VALID,
    Expression,
    FieldSource,
    Instances,
    LookAhead,
    Named,
    ParserState,
    Primitive,
    SelectedSource,
    Transition,
    ValueSet,
)

WORD = 64  # bits of a key that may be cut in more than one way

_SELECT_KEYS = ("field", "stack_field", "union_stack_field", "lookahead")


class ParserReader:
    """Reads parsers, and the value sets that their states match with."""

    def __init__(self, expressions: ExpressionReader, instances: Instances) -> None:
        self._expressions = expressions
        self._instances = instances
        self._set_widths: dict[str, tuple[int, ...]] = {}

    def states(self, item: Json) -> dict[str, ParserState]:
        """Read the states of one parser, by name."""
        return {state["name"]: self._state(state) for state in item["parse_states"]}

    def value_sets(self, items: list[Json]) -> dict[str, ValueSet]:
        """Read the value sets; must follow the states, which give the parts of their keys."""
        return {
            item["name"]: ValueSet(
                item["name"], self._set_widths.get(item["name"], ()), item.get("max_size", 0)
            )
            for item in items
        }

    def _state(self, item: Json) -> ParserState:
        keys, widths = [], []
        for key in item["transition_key"]:
            if key["type"] not in _SELECT_KEYS:
                raise self._expressions.refuse("unsupported kind of select key", key["type"], item)
            keys.append(self._expressions.expression(key))
            widths.append(self._width_of(self._expressions.operand(key)))
        return ParserState(
            item["name"],
            tuple(self._parser_op(op) for op in item["parser_ops"]),
            tuple(keys),
            tuple(widths),
            tuple(self._transition(transition, widths) for transition in item["transitions"]),
        )

    def _parser_op(self, item: Json) -> Primitive:
        own = {"source_info": item.get("source_info")}
        if item["op"] == "primitive":  # an extern's method, or setValid, inside the parser
            return self._expressions.primitive(own | item["parameters"][0])
        if item["op"] in ("extract", "extract_VL"):
            return self._extraction(item)
        first, *others = item["parameters"]
        read = self._expressions.operand if item["op"] == "set" else self._expressions.expression
        operands = (read(first), *(self._expressions.expression(other) for other in others))
        return Primitive(item["op"], operands, self._expressions.where(item))

    def _extraction(self, item: Json) -> Primitive:
        """Read an extraction, which takes a header or a stack, a member's name or "", a length."""
        target, *length = item["parameters"]
        kind, value = target["type"], target["value"]
        match kind:
            case "regular":
                into, member = Named("header", value), ""
            case "stack":
                into, member = Named("header_stack", value), ""
            case "union_stack":
                into, member = Named("header_union_stack", value[0]), value[1]
            case _:
                raise self._expressions.refuse("unsupported kind of extraction", kind, item)
        bits = [self._expressions.expression(part) for part in length]
        name = Named("member", member)
        where = self._expressions.where(item)
        return Primitive("extract", (into, name, *bits), where)

    def _transition(self, item: Json, widths: list[int]) -> Transition:
        kind, target = item.get("type", "hexstr"), item["next_state"]
        if kind == "default" or item["value"] == "default":
            return Transition((), (), target)
        if kind not in ("hexstr", "parse_vset"):
            raise self._expressions.refuse("unsupported kind of transition", kind, item)
        size = sum(-(-width // 8) for width in widths)
        for text in (item["value"], item["mask"]) if kind == "hexstr" else ():
            if text is not None and -(-len(text.removeprefix("0x")) // 2) != size:
                what = f"a select value or mask must have {format_count(size, 'byte')}, as its key"
                raise self._expressions.refuse(what, text, item)
        full = "f" * 2 * size
        mask = _split_key(item["mask"] or full, widths)
        if kind == "parse_vset":
            if item["mask"] is not None:
                raise self._expressions.refuse("a mask of a value set", item["mask"], item)
            known = self._set_widths.setdefault(item["value"], tuple(widths))
            if known != tuple(widths) and not sum(known) == sum(widths) <= WORD:
                raise self._expressions.refuse("a value set with two kinds of key", widths, item)
            return Transition((), mask, target, item["value"])
        return Transition(_split_key(item["value"], widths), mask, target)

    def _width_of(self, key: Expression) -> int:
        if isinstance(key, LookAhead):
            return key.width
        if isinstance(key, SelectedSource):
            key = key.options[0][1]
        assert isinstance(key, FieldSource)
        if key.name == VALID:
            return 1
        fields = self._instances.headers[key.header].fields
        return {field.name: field.width for field in fields}[key.name]


def _split_key(text: str, widths: list[int]) -> tuple[int, ...]:
    """Cut a select value into numbers; each part of it is padded to whole bytes."""
    value = number_of(text)
    parts = []
    for width in reversed(widths):
        padded = 8 * -(-width // 8)
        parts.append(value & ((1 << width) - 1))
        value >>= padded
    return tuple(reversed(parts))
