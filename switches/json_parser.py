"""Parser states in BMv2 JSON."""

from __future__ import annotations

from switches.json_expressions import ExpressionReader, Json, number_of
from switches.source import (
    VALID,
    Expression,
    Field,
    Header,
    LookAhead,
    ParserState,
    Primitive,
    Transition,
)


class ParserReader:
    def __init__(self, expressions: ExpressionReader, headers: dict[str, Header]) -> None:
        self._expressions = expressions
        self._headers = headers

    def state(self, item: Json) -> ParserState:
        keys = []
        for key in item["transition_key"]:
            if key["type"] not in ("field", "lookahead"):
                raise self._expressions.refuse("unsupported kind of select key", key["type"], item)
            keys.append(self._expressions.expression(key))
        widths = [_width_of(key, self._headers) for key in keys]
        return ParserState(
            item["name"],
            tuple(self._parser_op(op) for op in item["parser_ops"]),
            tuple(keys),
            tuple(self._transition(transition, widths) for transition in item["transitions"]),
        )

    def _parser_op(self, item: Json) -> Primitive:
        if item["op"] == "primitive":  # an extern's method, or setValid, inside the parser
            return self._expressions.primitive(
                item["parameters"][0] | {"source_info": item.get("source_info")}
            )
        if item["op"] == "extract" and item["parameters"][0]["type"] != "regular":
            kind = item["parameters"][0]["type"]
            raise self._expressions.refuse("unsupported kind of extraction", kind, item)
        return self._expressions.primitive(item)

    def _transition(self, item: Json, widths: list[int]) -> Transition:
        if item["type"] == "default":
            return Transition((), (), item["next_state"])
        if item["type"] != "hexstr":
            raise self._expressions.refuse("unsupported kind of transition", item["type"], item)
        full = "f" * 2 * sum(-(-width // 8) for width in widths)
        return Transition(
            _split_key(item["value"], widths),
            _split_key(item["mask"] or full, widths),
            item["next_state"],
        )


def _width_of(key: Expression, headers: dict[str, Header]) -> int:
    if isinstance(key, LookAhead):
        return key.width
    assert isinstance(key, Field)
    if key.name == VALID:
        return 1
    return next(f.width for f in headers[key.header].fields if f.name == key.name)


def _split_key(text: str, widths: list[int]) -> tuple[int, ...]:
    """Cut a select value, each part of which is padded to whole bytes, into numbers."""
    value = number_of(text)
    parts = []
    for width in reversed(widths):
        padded = 8 * -(-width // 8)
        parts.append(value & ((1 << width) - 1))
        value >>= padded
    return tuple(reversed(parts))
