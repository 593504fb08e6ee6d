"""PSA in BMv2 JSON: two parsers, structs of standard metadata, and externs with methods.

Methods become the primitives that v1model has, or new ones where it has none; an InternetChecksum's
state is a field of a hidden header. p4c keeps no calls of a DirectCounter or a DirectMeter, which
therefore count every hit.
Source: p4c `backends/bmv2/psa_switch/psaSwitch.cpp`, behavioral-model `targets/psa_switch/externs`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ringleaf.switches.json.expressions import ExpressionReader, number_of, where_of
from ringleaf.switches.json.form import MOST_CELLS
from ringleaf.switches.source import (
    PSA,
    V1MODEL,
    Architecture,
    Calculation,
    Constant,
    ConstantInput,
    Expression,
    FieldSource,
    HeaderField,
    HeaderSource,
    Instances,
    MeterArray,
    Named,
    OperationSource,
    Primitive,
    refusal,
)

Json = dict[str, Any]

CHECKSUMS = "$checksums"  # the hidden header with the sum of each InternetChecksum
SUM_BITS = 16
NOWHERE = FieldSource(CHECKSUMS, "$nowhere")  # for the colours of meters that nothing takes
ALL_ONES = Constant((1 << SUM_BITS) - 1)

_KNOWN = (
    *("Counter", "DirectCounter", "Meter", "DirectMeter", "Register", "Random", "Digest"),
    *("Hash", "InternetChecksum", "ActionProfile", "ActionSelector"),
)
ONES_COMPLEMENT = "csum16"
NO_NAME = "<null>"  # p4c's for the algorithm ONES_COMPLEMENT16 of a Hash


def architecture_of(data: Json, path: Path) -> Architecture:
    """Return the architecture of a program, which the names of its parsers tell.

    Raises:
        ConfigError: If it is PNA.
    """
    names = [item["name"] for item in data["parsers"]]
    if "main_parser" in names:
        raise refusal(path, "PNA is not supported; v1model and PSA are", "a main_parser")
    return PSA if "ingress_parser" in names else V1MODEL


def add_structs(instances: Instances, data: Json) -> Instances:
    """Add the structs and fields of PSA that p4c left out, and the engine's hidden headers."""
    sums = [i["name"] for i in data.get("extern_instances", []) if i["type"] == "InternetChecksum"]
    headers = dict(instances.headers)
    structs = {**PSA.structs, CHECKSUMS: {**dict.fromkeys(sums, SUM_BITS), NOWHERE.name: 32}}
    for name, bits in structs.items():
        own = headers[name].fields if name in headers else ()
        known = {item.name for item in own}
        missing = [
            HeaderField(field, width, False, 0)
            for field, width in bits.items()
            if field not in known
        ]
        headers[name] = HeaderSource(name, (*own, *missing), True)
    return replace(instances, headers=headers)


def _read_meters(data: Json) -> dict[str, MeterArray]:
    return {
        item["name"]: MeterArray(
            item["name"], _size(item, "n_meters"), _attribute(item, "type") == "bytes"
        )
        for item in data.get("extern_instances", [])
        if item["type"] == "Meter"
    }


def _attribute(item: Json, name: str) -> Any:
    return {part["name"]: part["value"] for part in item["attribute_values"]}[name]


def _size(item: Json, name: str) -> int:
    value = _attribute(item, name)
    size = value if isinstance(value, int) else number_of(value)
    if not 0 <= size <= MOST_CELLS:
        raise ValueError(f"{item['name']} has 0 to {MOST_CELLS} cells, not {size}")
    return size


class PsaExpressions(ExpressionReader):
    """Reads primitives of PSA; `calculations` grow by one per call of a Hash or a checksum."""

    def __init__(self, path: Path, instances: Instances, data: Json) -> None:
        super().__init__(path, instances)
        self._instances = instances
        self._externs = {item["name"]: item for item in data.get("extern_instances", [])}
        self.meters = _read_meters(data)

    def check_externs(self, items: list[Json]) -> None:
        """Refuse extern instances of types that are not PSA's, or that p4c does not write."""
        for item in items:
            if item["type"] not in _KNOWN:
                raise self.refuse("extern is not supported", item["type"], item)

    def primitive(self, item: Json) -> Primitive:
        """Read a primitive; methods of PSA's externs become v1model's primitives where it can."""
        read = _METHODS.get(item["op"])
        if read is not None:
            return read(self, item)
        primitive = super().primitive(item)
        if primitive.op == "generate_digest":  # p4c leaves out v1model's receiver
            return replace(primitive, op="pack", parameters=primitive.parameters[-1:])
        return primitive

    def count(self, item: Json) -> Primitive:
        """Read `Counter.count`."""
        counter, index = item["parameters"]
        array = Named("counter_array", counter["value"])
        return Primitive("count", (array, self.operand(index)), where_of(item))

    def execute_meter(self, item: Json) -> Primitive:
        """Read `execute`; of a colour that nothing takes, p4c has the index alone, and last."""
        meter, *others = item["parameters"]
        operands = [self.operand(other) for other in others]
        if len(operands) == 1 or not isinstance(operands[-1], FieldSource):
            operands = [operands[-1], NOWHERE]
        array = Named("meter_array", meter["value"])
        return Primitive("execute_meter", (array, *operands), where_of(item))

    def get_hash(self, item: Json) -> Primitive:
        """Read `Hash.get_hash` of data alone, whose result is as wide as the algorithm's."""
        instance, target, fields = item["parameters"]
        operands = self.operand(target), self._hash_of(instance["value"], fields, item)
        return Primitive("get_hash", operands, where_of(item))

    def get_hash_mod(self, item: Json) -> Primitive:
        """Read `Hash.get_hash` with a base and a maximum, as v1model's `hash`."""
        instance, target, base, fields, most = item["parameters"]
        return Primitive(
            "modify_field_with_hash_based_offset",
            (
                self.operand(target),
                self.expression(base),
                self._hash_of(instance["value"], fields, item),
                self.expression(most),
            ),
            where_of(item),
        )

    def change_sum(self, item: Json) -> Primitive:
        """Read `add` or `subtract`, whose data are whole 16-bit words."""
        checksum, fields = item["parameters"]
        inputs = self._inputs(fields, item)
        bits = sum(map(self._width, inputs))
        if bits % SUM_BITS:
            raise self.refuse("an InternetChecksum takes multiples of 16 bits", bits, item)
        op = "add_to_sum" if item["op"].endswith("add") else "subtract_from_sum"
        calculation = self._calculation(ONES_COMPLEMENT, inputs)
        return Primitive(
            op, (FieldSource(CHECKSUMS, checksum["value"]), calculation), where_of(item)
        )

    def set_sum(self, item: Json) -> Primitive:
        """Read `clear` or `set_state`."""
        checksum, *value = item["parameters"]
        operand = self.expression(value[0]) if value else Constant(0)
        target = FieldSource(CHECKSUMS, checksum["value"])
        return Primitive("assign", (target, operand), where_of(item))

    def get_sum(self, item: Json) -> Primitive:
        """Read `get`, `get_state`, or the comparison of `get` with a field (`get_verify`)."""
        checksum, target, *others = item["parameters"]
        value: Expression = FieldSource(CHECKSUMS, checksum["value"])
        if item["op"] != "_InternetChecksum_get_state":
            value = OperationSource("^", value, ALL_ONES)
        for other in others:
            value = OperationSource(
                "b2d", None, OperationSource("==", self.expression(other), value)
            )
        return Primitive("assign", (self.operand(target), value), where_of(item))

    def _hash_of(self, name: str, fields: Json, item: Json) -> Named:
        """Return the calculation of a Hash; BMv2 pads its input to whole bytes on the left."""
        inputs = self._inputs(fields, item)
        padding = -sum(map(self._width, inputs)) % 8
        if padding:
            inputs = (ConstantInput(0, padding), *inputs)
        algorithm = _attribute(self._externs[name], "algo")
        return self._calculation(ONES_COMPLEMENT if algorithm == NO_NAME else algorithm, inputs)

    def _calculation(
        self, algorithm: str, inputs: tuple[FieldSource | ConstantInput, ...]
    ) -> Named:
        name = f"input {len(self.calculations)} of {algorithm}"
        self.calculations[name] = Calculation(name, algorithm, inputs, with_payload=False)
        return Named("calculation", name)

    def _inputs(self, fields: Json, item: Json) -> tuple[FieldSource | ConstantInput, ...]:
        inputs: list[FieldSource | ConstantInput] = []
        value = fields["value"]
        listed = value if isinstance(value, list) else [value]
        for part in listed:
            operand = self.operand(part)
            if isinstance(operand, Constant) and ("bitwidth" in part or len(listed) == 1):
                digits = part["value"].removeprefix("0x")  # of whole bytes, as p4c writes them
                inputs.append(ConstantInput(operand.value, part.get("bitwidth", 4 * len(digits))))
            elif isinstance(operand, FieldSource):
                inputs.append(operand)
            elif isinstance(operand, Named) and operand.kind == "header":
                header = self._instances.headers[operand.name]
                inputs += [FieldSource(header.name, each.name) for each in header.fields]
            else:
                raise self.refuse("only fields can be hashed or added up", part["type"], item)
        return tuple(inputs)

    def _width(self, item: FieldSource | ConstantInput) -> int:
        if isinstance(item, ConstantInput):
            return item.width
        fields = self._instances.headers[item.header].fields
        return {field.name: field.width for field in fields}[item.name]


_METHODS: dict[str, Callable[[PsaExpressions, Json], Primitive]] = {
    "_Counter_count": PsaExpressions.count,
    "_Meter_execute": PsaExpressions.execute_meter,
    "_Hash_get_hash": PsaExpressions.get_hash,
    "_Hash_get_hash_mod": PsaExpressions.get_hash_mod,
    "_InternetChecksum_add": PsaExpressions.change_sum,
    "_InternetChecksum_subtract": PsaExpressions.change_sum,
    "_InternetChecksum_clear": PsaExpressions.set_sum,
    "_InternetChecksum_set_state": PsaExpressions.set_sum,
    "_InternetChecksum_get": PsaExpressions.get_sum,
    "_InternetChecksum_get_state": PsaExpressions.get_sum,
    "_InternetChecksum_get_verify": PsaExpressions.get_sum,
}
