"""The primitives that make headers valid, make them invalid and copy them.

Source: behavioral-model `targets/simple_switch/primitives.cpp`, `src/bm_sim/core/primitives.cpp`.
"""

from __future__ import annotations

from switches.generate.code import Code
from switches.generate.storage import LENGTH, valid
from switches.source import Expression, Field, Named, Primitive, Source


def fields_of(source: Source, header: Named) -> tuple[Field, ...]:
    return tuple(Field(header.name, item.name) for item in source.headers[header.name].fields)


def add_header(code: Code, primitive: Primitive) -> None:
    header = primitive.parameters[0]
    assert isinstance(header, Named)
    flag = valid(header.name)
    with code.block(f"if {code.read(flag)} == {code.u(0)}:"):
        for run in code.storage.runs_of(header.name):
            with code.block(f"for lane in range({run.start}, {run.start + run.count}):"):
                code.add("lanes[lane] = 0")
        for field in fields_of(code.source, header):
            if code.storage.lane(field) is None:
                code.set(field, [code.u(0)] * len(code.storage.read(field)))
        code.set(flag, [code.u(1)])
        _change_length(code, header.name, "+")


def remove_header(code: Code, primitive: Primitive) -> None:
    header = _named(primitive.parameters[0])
    with code.block(f"if {code.is_set(valid(header))}:"):
        code.set(valid(header), [code.u(0)])
        _change_length(code, header, "-")


def _change_length(code: Code, header: str, op: str) -> None:
    size = code.u(code.source.headers[header].size_bytes)
    code.set(LENGTH, [f"({code.read(LENGTH)} {op} {size})"])


def assign_header(code: Code, primitive: Primitive) -> None:
    target, origin = primitive.parameters
    assert isinstance(target, Named)
    assert isinstance(origin, Named)
    flag = code.read(valid(origin.name))
    with code.block(f"if {flag} != {code.u(0)}:"):
        runs = zip(
            code.storage.runs_of(target.name), code.storage.runs_of(origin.name), strict=True
        )
        for to, run in runs:
            with code.block(f"for lane in range({run.count}):"):
                code.add(f"lanes[lane + {to.start}] = lanes[lane + {run.start}]")
        pairs = zip(fields_of(code.source, target), fields_of(code.source, origin), strict=True)
        for field, value in pairs:
            if code.storage.lane(field) is None:
                code.assign(field, value)
    code.set(valid(target.name), [flag])


def _named(parameter: Expression) -> str:
    assert isinstance(parameter, Named)
    return parameter.name
