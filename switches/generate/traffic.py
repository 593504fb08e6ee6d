"""The primitives that decide a packet's fate: clone, resubmit, send a digest, cut, drop.

Most only take note; the end of a pipeline acts on it (`module.py`, `engine/replication.py`).
Source: behavioral-model `targets/simple_switch/primitives.cpp`.
"""

from __future__ import annotations

from ringleaf.switches.engine.layout import DROP_PORT, KEEPS_RID, REQUESTS
from ringleaf.switches.engine.layout import EGRESS_SPEC as EGRESS_SPEC_SLOT
from ringleaf.switches.engine.layout import MCAST_GRP as MCAST_GRP_SLOT
from ringleaf.switches.generate.code import EGRESS, FunctionCode
from ringleaf.switches.generate.state import assertion_label
from ringleaf.switches.generate.storage import (
    CLONE_FIELDS,
    CLONE_SESSION,
    LEARN,
    RECIRCULATE,
    RESUBMIT,
    TRUNCATE_LEN,
)
from ringleaf.switches.source import STANDARD, Constant, FieldSource, OperationSource, Primitive

EGRESS_SPEC = FieldSource(STANDARD, "egress_spec")
MCAST_GRP = FieldSource(STANDARD, "mcast_grp")
RID = FieldSource(STANDARD, "egress_rid")

LONGEST_SESSION = (1 << 15) - 1  # BMv2's MIRROR_SESSION_ID_MASK
LONGEST_LIST = (1 << 16) - 1


def drop(code: FunctionCode, _: Primitive) -> None:
    """Write code of `mark_to_drop`; a later assignment to `egress_spec` revives the packet."""
    code.set(EGRESS_SPEC, [code.u(DROP_PORT)])
    code.set(MCAST_GRP, [code.u(0)])


def clone(code: FunctionCode, primitive: Primitive) -> None:
    """Write code that keeps a clone's session, plus 1, as 0 is none, and the fields to preserve."""
    session, fields = primitive.parameters
    number = f"({code.expressions.unsigned(session)} & {code.u(LONGEST_SESSION)})"
    # Session 0 is a session, so 0 stands for no clone only with 1 added.
    request = f"({number} + {code.u(1)})"
    if isinstance(fields, Constant) and RID in code.source.field_lists.get(fields.value, ()):
        request = f"({request} | {code.u(KEEPS_RID)})"
    code.set(CLONE_SESSION, [request])
    code.assign(CLONE_FIELDS, fields)


def truncate(code: FunctionCode, primitive: Primitive) -> None:
    """Write code that keeps the length to which the packet is cut when it leaves."""
    # Kept as length + 1, so that 0 is a packet that is not cut; the shortest wins.
    length = code.expressions.fitted(primitive.parameters[0], 32, False)[0]  # v1model's bit<32>
    asked = f"{length} + {code.u(1)}"
    before = code.read(TRUNCATE_LEN)
    whole = f"{before} == {code.u(0)}"
    code.set(TRUNCATE_LEN, [f"{asked} if {whole} else min({before}, {asked})"])


def resubmit(code: FunctionCode, primitive: Primitive) -> None:
    """Write code that asks for a resubmission with a field list; the last request counts."""
    _ask(code, RESUBMIT, primitive)


def recirculate(code: FunctionCode, primitive: Primitive) -> None:
    """Write code that asks for a recirculation with a field list; the last request counts."""
    _ask(code, RECIRCULATE, primitive)


def _ask(code: FunctionCode, flag: FieldSource, primitive: Primitive) -> None:
    """Write code that keeps the number of the field list to preserve; the last request counts."""
    (fields,) = primitive.parameters
    code.set(flag, [f"({code.expressions.unsigned(fields)} & {code.u(LONGEST_LIST)})"])


def tell(code: FunctionCode, primitive: Primitive) -> None:
    """Write code that keeps the number of a digest, which is sent when ingress ends."""
    _, digest = primitive.parameters
    assert isinstance(digest, Constant)
    code.set(LEARN, [code.u(digest.value)])


def assert_(code: FunctionCode, primitive: Primitive) -> None:
    """Write code that counts and drops a packet that violates an assertion, where BMv2 aborts."""
    holds = code.expressions.condition(OperationSource("d2b", None, primitive.parameters[0]))
    with code.block(f"if not ({holds}):"):
        violate(code, assertion_label(primitive))


def violate(code: FunctionCode, label: str) -> None:
    """Write code that counts a packet that violates an assertion, by its name, and drops it."""
    code.add(f"state[state_at + {code.u(code.state.assertions[label])}] += {code.u(1)}")
    if code.stage != EGRESS:
        code.add(f"fields[{EGRESS_SPEC_SLOT}] = {code.u(DROP_PORT)}")
        code.add(f"fields[{MCAST_GRP_SLOT}] = {code.u(0)}")
        code.add(f"fields[{REQUESTS}] = {code.u(0)}")
    code.add("return 0")
