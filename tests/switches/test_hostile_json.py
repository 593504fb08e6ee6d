"""BMv2 JSON with a hostile value at any place is refused by an error of ours, or loads."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program_cases import BUILT, PROGRAMS, PSA

from bench.soak.inputs.mutators import NUMBERS, OTHERS, OWNED, TEXTS, leaf_places
from ringleaf.errors import ConfigError
from ringleaf.switches.program import Program

NAMES = ("l2l3", "stacks", "unions", "varbits", "controller", "externs", "hashes", "rounds")
TEXTS_OF = {name: (PROGRAMS / f"{name}.json").read_bytes() for name in NAMES}
TEXTS_OF["ways"] = (PSA / "ways.json").read_bytes()
TEXTS_OF["forward"] = (BUILT / "forward.json").read_bytes()

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what a name may do be seen."""
    monkeypatch.chdir(tmp_path)


def load(data: Json) -> Program | None:
    """Load a program; None if it is refused."""
    path = Path("hostile.json")
    path.write_bytes(json.dumps(data).encode("utf-8", "surrogatepass"))
    program = None
    with suppress(ConfigError):
        program = Program.load(path)
    assert not Path(OWNED).exists()
    return program


@pytest.mark.parametrize("name", TEXTS_OF)
@pytest.mark.parametrize("turn", range(3))
def test_every_leaf_may_be_hostile(name: str, turn: int) -> None:
    """Each of a sample of leaves is replaced, and the program loaded."""
    rng = random.Random(f"{name} {turn}")
    data = json.loads(TEXTS_OF[name])
    for item, key in rng.sample(leaf_places(data), 25):
        kept = item[key]
        item[key] = copy.deepcopy(rng.choice(rng.choice((TEXTS, NUMBERS, OTHERS))))
        load(data)
        item[key] = kept


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_leaf_may_be_anything(data: st.DataObject) -> None:
    document = json.loads(TEXTS_OF["l2l3"])
    item, key = data.draw(st.sampled_from(leaf_places(document)))
    values = st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none())
    item[key] = data.draw(st.recursive(values, lambda inner: st.lists(inner, max_size=3)))
    load(document)


def first(data: Json, section: str, **wanted: Any) -> Json:
    """Return the first item of a section that has these values."""
    found: Json = next(
        item for item in data[section] if all(item[key] == value for key, value in wanted.items())
    )
    return found


def in_table(change: Callable[[Json], object]) -> Callable[[Json], object]:
    return lambda data: change(data["pipelines"][0]["tables"][0])


def standard(name: str, bits: int) -> Callable[[Json], None]:
    def change(data: Json) -> None:
        for field in first(data, "header_types", name="standard_metadata")["fields"]:
            field[1] = bits if field[0] == name else field[1]

    return change


def register(size: int) -> Callable[[Json], None]:
    entry = {"name": "I.huge", "size": size, "bitwidth": 65}
    return lambda data: data["register_arrays"].append(entry)


def stack(count: int) -> Callable[[Json], None]:
    def change(data: Json) -> None:
        number = first(data, "headers", metadata=False)["id"]
        data["header_stacks"].append({"name": "many", "header_ids": [number] * count})

    return change


def extra_op(op: Json) -> Callable[[Json], None]:
    return lambda data: data["parsers"][0]["parse_states"][0]["parser_ops"].append(op)


def assign(target: list[str]) -> Json:
    value = {"type": "hexstr", "value": "0x1"}
    return {"op": "set", "parameters": [{"type": "field", "value": target}, value]}


def lookahead(offset: int) -> Json:
    ahead = {"type": "lookahead", "value": [offset, 8]}
    target = {"type": "field", "value": ["scalars", "hasReturned"]}
    return {"op": "set", "parameters": [target, ahead]}


def nested(depth: int) -> Callable[[Json], None]:
    def change(data: Json) -> None:
        inner: Json = {"type": "hexstr", "value": "0x1"}
        for _ in range(depth):
            inner = {"type": "expression", "value": {"op": "~", "left": None, "right": inner}}
        op = assign(["scalars", "hasReturned"])
        op["parameters"][1] = inner
        extra_op(op)(data)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (register(1 << 40), r"size must be a size of at most 134217728, got 1099511627776"),
        (register(1 << 27), r"take at most 1073741824 bytes.*'I.huge' has 134217728.*got 2147"),
        (stack(5000), "a stack has 1 to 4096 elements: many, got 5000"),
        (nested(250), "at most 4000000 values, 400 deep, got more"),
        (standard("egress_spec", 649), "egress_spec is an unsigned number of at most 9 bits"),
        (standard("priority", 11), "priority is an unsigned number of at most 3 bits, got 11"),
        (lambda d: d["deparsers"][0]["order"].append("scalars"), "metadata is never in a packet"),
        (
            lambda d: d["field_lists"].append(
                {"id": 1, "elements": [{"type": "field", "value": ["ipv4", "$valid$"]}]}
            ),
            "validity is set by setValid alone",
        ),
        (extra_op(assign(["$engine", "parsed_len"])), "none of the engine's own"),
        (extra_op(assign(["ipv4", "$position"])), "none of the engine's own"),
        (
            extra_op({"op": "advance", "parameters": [{"type": "hexstr", "value": "-0x08"}]}),
            "an advance by so much is not supported, got -8",
        ),
        (extra_op(lookahead(9000)), "value of a lookahead must be a list of which each is"),
        (in_table(lambda t: t.update(name="a\nb")), r"name must be a name .*got 'a\\nb'"),
        (in_table(lambda t: t.update(name=7)), "name must be a name of .*, got 7"),
        (in_table(lambda t: t.update(max_size=1.5)), "max_size must be a whole number .*got 1.5"),
        (in_table(lambda t: t.update(max_size=True)), "max_size must be a whole .*got True"),
        (
            in_table(lambda t: t["default_entry"].update(action_data=["0x1"] * 9)),
            "arguments that .* does not take, got",
        ),
        (
            in_table(lambda t: t["default_entry"].update(action_id=99)),
            "an action that .* does not have, got 99",
        ),
        (
            lambda d: d["pipelines"][1]["tables"].append(d["pipelines"][0]["tables"][0]),
            "two tables or conditions have one name",
        ),
        (
            lambda d: first(d, "header_types", name="standard_metadata")["fields"].append(
                ["priority", 8, False]
            ),
            "fields must have names of their own",
        ),
        (lambda d: d["headers"].append(d["headers"][0]), "two headers have one number"),
        (lambda d: d["parsers"][0].update(init_state="no"), "refers to is not there, got 'no'"),
    ],
)
def test_what_memory_depends_on_is_checked(
    change: Callable[[Json], object], message: str, tmp_path: Path
) -> None:
    data = json.loads(TEXTS_OF["l2l3"])
    change(data)
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=message):
        Program.load(path)


def test_what_p4c_writes_of_bools_and_varbits_is_taken() -> None:
    """As in its samples header-bool-bmv2 and issue447-5-bmv2."""
    data = json.loads(TEXTS_OF["forward"])
    first(data, "header_types", name="ethernet_h")["fields"][0][2] = 0
    types = data["header_types"]
    types.append(
        {"name": "$varbit32", "id": len(types), "fields": [["field", "*"]], "max_length": 4}
    )
    headers = data["headers"]
    headers.append({"name": "v", "id": len(headers), "header_type": "$varbit32", "metadata": True})
    assert load(data) is not None


def test_a_program_has_so_many_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleaf.switches.json.form.MOST_ITEMS", 100)
    (tmp_path / "hostile.json").write_bytes(TEXTS_OF["l2l3"])
    with pytest.raises(ConfigError, match="at most 100 values, 400 deep, got more"):
        Program.load(tmp_path / "hostile.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[" * 100_000, "not JSON: maximum recursion depth"),
        (b'{"a": NaN}', "not JSON: NaN is no number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON: Exceeds the limit"),
        (b'{"a": 1e5}', "a must be a text, true or false, or a whole number"),
        (b'"' + b" " * (64 << 20) + b'"', "must have at most 67108864 bytes, got"),
    ],
)
def test_text_that_only_costs_is_refused(text: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.json"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match=message):
        Program.load(path)
