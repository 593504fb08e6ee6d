"""The handlers of a PSA program: a parser, a pipeline and a deparser each for ingress and egress.

Between the two a packet is bytes, and what ingress has decided is in the fields of its row in which
v1model's programs leave it, so that the traffic manager need not tell the architectures apart.
Metadata go along with a packet from ingress to egress as in BMv2, which has one set of them: of
resubmitted, recirculated and cloned packets they are zero.
Source: PSA specification 1.2, sections 6.2 and 6.5; behavioral-model
`targets/psa_switch/psa_switch.cpp`.
"""

from __future__ import annotations

from ringleaf.switches.engine.layout import (
    CLASSES,
    CLONE,
    DROP_PORT,
    EGRESS_CLONE,
    EGRESS_PORT,
    EGRESS_RID,
    EGRESS_SPEC,
    INGRESS_CLONE,
    INSTANCE_TYPE,
    MCAST_GRP,
    PRIORITY,
    RECIRCULATED,
    REPLICATION,
    REQUESTS,
    RESUBMIT_SHIFT,
    ROUND,
    ROUND_PORT,
    SEND,
    TRUNCATE_LEN,
    TWINNED,
)
from ringleaf.switches.generate.code import EGRESS, INGRESS, FunctionCode
from ringleaf.switches.generate.deparser import DeparserWriter
from ringleaf.switches.generate.endings import clear, load, store
from ringleaf.switches.generate.handlers import Handlers, ParserSide
from ringleaf.switches.generate.marks import DEPARSE, DROPPED, TRUNCATE, LineMark
from ringleaf.switches.generate.observing import Variant
from ringleaf.switches.generate.parser import ParserWriter
from ringleaf.switches.generate.paths import Paths
from ringleaf.switches.generate.storage import position, valid
from ringleaf.switches.generate.structure import pipeline_body
from ringleaf.switches.generate.traffic import LONGEST_SESSION
from ringleaf.switches.generate.usage import PARSER_ERROR, FieldUsage, Touched
from ringleaf.switches.source import PSA, FieldSource, ProgramSource

# Values of PSA_PacketPath_t.
PATH_NORMAL = 0
PATH_UNICAST = 1
PATH_MULTICAST = 2
PATH_CLONE_I2E = 3
PATH_CLONE_E2E = 4
PATH_RESUBMIT = 5
PATH_RECIRCULATE = 6

# A packet that is resubmitted keeps its ingress port, beside its instance type.
FROM_PORT = 1
FROM_RECIRCULATION = 2

_INGRESS_OUT, _EGRESS_OUT = "psa_ingress_output_metadata", "psa_egress_output_metadata"


class PsaHandlers(Handlers):
    """Writes a PSA program's two handlers."""

    def __init__(self, source: ProgramSource, variant: Variant) -> None:
        bodies = [
            pipeline_body(source, line, calls=variant.observed)
            for line in (source.ingress, source.egress)
        ]
        ingress, egress = source.sides()
        self._sides = [
            ParserSide(ingress, FieldUsage(ingress, bodies[0], ()), Paths(ingress)),
            ParserSide(egress, FieldUsage(egress, (), bodies[1]), Paths(egress)),
        ]
        super().__init__(source, variant)
        self._bodies = bodies
        self._shape_tables(*bodies)
        self._kept = self._metadata_kept()
        self._storage.give_slots(self._kept)

    @property
    def _comes_round(self) -> bool:
        return True

    def _metadata_kept(self) -> list[FieldSource]:
        """Return the metadata that ingress leaves to egress."""
        ingress, egress = (_touched(side.usage) for side in self._sides)
        kept = {
            item
            for item in ingress.writes & egress.reads
            if self._source.headers[item.header].metadata
            and item.header not in PSA.structs
            and not item.header.startswith("$")
        }
        return sorted(kept, key=lambda item: (item.header, item.name))

    # Ingress.

    def _ingress_lines(self) -> list[str]:
        side, body = self._sides[0], self._bodies[0]
        code = self._begin(INGRESS, side)
        port, path = _fields("psa_ingress_parser_input_metadata", "ingress_port", "packet_path")
        code.set(port, ["U(row[IN_PORT])"])
        code.add("again = row[AGAIN]")
        with code.block("if again == 0:"):
            code.add("row[PASSES] = 0")
        with code.block("else:"):
            code.add("row[AGAIN] = 0")
            code.set(path, [code.u(PATH_RESUBMIT)])
            with code.block(f"if again & 0xFF == {RECIRCULATED}:"):
                code.set(path, [code.u(PATH_RECIRCULATE)])
            with code.block(f"if again >> 8 == {FROM_RECIRCULATION}:"):
                code.set(port, [code.u(ROUND_PORT)])
        self._parse(code, side, "psa_ingress_input_metadata", "ingress")
        code.set(FieldSource(_INGRESS_OUT, "drop"), [code.u(1)])
        self._statements(code, body)
        self._end_ingress(code, side)
        return ["@handler", "def ingress(arena, at, packet, now_ps):", *code.lines.lines]

    def _end_ingress(self, code: FunctionCode, side: ParserSide) -> None:
        """Write code for PSA's end of ingress: clone, and then drop, resubmit or go on."""
        for slot in (INSTANCE_TYPE, REQUESTS, EGRESS_RID, MCAST_GRP, TRUNCATE_LEN, PRIORITY):
            code.add(f"fields[{slot}] = {code.u(0)}")
        code.add(f"fields[{EGRESS_SPEC}] = {code.u(DROP_PORT)}")
        self._clone(code, side, _INGRESS_OUT)
        with code.block(f"if {code.is_set(FieldSource(_INGRESS_OUT, 'drop'))}:"):
            code.add("return 0")
        with code.block(f"if {code.is_set(FieldSource(_INGRESS_OUT, 'resubmit'))}:"):
            port = code.read(FieldSource("psa_ingress_input_metadata", "ingress_port"))
            kept = f"{code.u(FROM_RECIRCULATION)} if {port} == {code.u(ROUND_PORT)}"
            code.add(f"origin = {kept} else {code.u(FROM_PORT)}")
            code.add(f"fields[{REQUESTS}] |= origin << {code.u(RESUBMIT_SHIFT)}")
            code.add("return 0")
        self._deparse(code, side)
        group, spec, service = (
            code.read(FieldSource(_INGRESS_OUT, name))
            for name in ("multicast_group", "egress_port", "class_of_service")
        )
        code.add(f"fields[{MCAST_GRP}] = {group}")
        code.add(f"fields[{EGRESS_SPEC}] = {spec}")
        with code.block(f"if {service} < {code.u(CLASSES)}:"):  # others count as class 0
            code.add(f"fields[{PRIORITY}] = {service}")
        for field in self._kept:
            store(code, field)
        code.add("return 0")

    # Egress.

    def _egress_lines(self) -> list[str]:
        side, body = self._sides[1], self._bodies[1]
        code = self._begin(EGRESS, side)
        port, path = _fields("psa_egress_parser_input_metadata", "egress_port", "packet_path")
        code.set(port, [f"fields[{EGRESS_PORT}]"])
        code.set(path, [code.u(PATH_UNICAST)])
        for kind, value in (
            (REPLICATION, PATH_MULTICAST),
            (INGRESS_CLONE, PATH_CLONE_I2E),
            (EGRESS_CLONE, PATH_CLONE_E2E),
        ):
            with code.block(f"if fields[{INSTANCE_TYPE}] == {code.u(kind)}:"):
                code.set(path, [code.u(value)])
        for field in self._kept:
            load(code, field)
        service, instance = _fields("psa_egress_input_metadata", "class_of_service", "instance")
        code.set(service, [f"fields[{PRIORITY}]"])
        code.set(instance, [f"fields[{EGRESS_RID}]"])
        self._parse(code, side, "psa_egress_input_metadata", "egress")
        code.set(
            FieldSource("psa_egress_deparser_input_metadata", "egress_port"), [code.read(port)]
        )
        self._statements(code, body)
        self._end_egress(code, side)
        return ["@handler", "def egress(arena, at, packet, now_ps):", *code.lines.lines]

    def _end_egress(self, code: FunctionCode, side: ParserSide) -> None:
        """Write code for PSA's end of egress: clone, and then drop, recirculate or send."""
        self._deparse(code, side)
        clones = FieldSource(_EGRESS_OUT, "clone") in _touched(side.usage).writes
        if clones:
            code.add("flags = 0")
        self._clone(code, side, _EGRESS_OUT)
        with code.block(f"if {code.is_set(FieldSource(_EGRESS_OUT, 'drop'))}:"):
            code.add("return flags" if clones else "return 0", LineMark(DROPPED))
        port = code.read(FieldSource("psa_egress_parser_input_metadata", "egress_port"))
        with code.block(f"if {port} == {code.u(ROUND_PORT)}:"):
            code.add(f"row[AGAIN] = {RECIRCULATED | FROM_RECIRCULATION << 8}")
            code.add(f"return flags | {ROUND}" if clones else f"return {ROUND}")
        code.add(f"return flags | {SEND}" if clones else f"return {SEND}", self._deparsing(side))

    # Both.

    def _begin(self, stage: str, side: ParserSide) -> FunctionCode:
        """Write the beginning of a handler, which sets all fields to zero."""
        code, usage = self._code(stage, side), side.usage
        used = usage.parser.all | usage.ingress.all | usage.egress.all | usage.deparser.all
        used |= {valid(h.name) for h in self._source.headers.values() if not h.metadata}
        used |= {position(name) for name in side.paths.moving()}
        used |= usage.extracted | usage.lengths | {PARSER_ERROR}
        used |= {
            FieldSource(name, item)
            for name, bits in PSA.structs.items()
            if name.startswith(f"psa_{stage}")
            for item in bits
        }
        self._start(code, used)
        self._leftovers.fill_lanes(code)
        if stage == EGRESS:
            with code.block(f"if fields[{TRUNCATE_LEN}] != {code.u(0)}:"):
                code.add(f"cut(row, I(fields[{TRUNCATE_LEN}]) - 1)", LineMark(TRUNCATE))
        code.add("length = row[HEAD_LEN] + row[PAYLOAD_LEN] + row[TAIL_LEN]")
        return code

    def _parse(self, code: FunctionCode, side: ParserSide, struct: str, stage: str) -> None:
        """Write the parser, and code that gives the pipeline its standard metadata."""
        ParserWriter(code, side.usage, side.paths).write()
        for name in (f"{stage}_port", "packet_path"):
            came = FieldSource(f"psa_{stage}_parser_input_metadata", name)
            code.set(FieldSource(struct, name), [code.read(came)])
        code.set(FieldSource(struct, f"{stage}_timestamp"), ["U(now_ps // PS_PER_US)"])
        code.set(FieldSource(struct, "parser_error"), [code.read(PARSER_ERROR)])

    def _deparse(self, code: FunctionCode, side: ParserSide) -> None:
        with code.marked(self._deparsing(side)):
            DeparserWriter(code, side.usage, side.paths).write()

    def _deparsing(self, side: ParserSide) -> LineMark:
        return LineMark(DEPARSE, where=side.source.deparser_where)

    def _clone(self, code: FunctionCode, side: ParserSide, struct: str) -> None:
        """Write code that makes a clone, if the program asks for one: no metadata go along."""
        flag, session = _fields(struct, "clone", "clone_session_id")
        if flag not in _touched(side.usage).writes:
            return
        there = f"{code.read(session)} <= {code.u(LONGEST_SESSION)}"
        with code.block(f"if {code.is_set(flag)} and {there}:"):
            for field in self._kept:
                clear(code, field)
            code.add(
                f"fields[{REQUESTS}] = ({code.read(session)} + {code.u(1)}) | {code.u(TWINNED)}"
            )
            code.add("row[TWIN] = copy_packet(arena, packet)")
            if code.stage == EGRESS:
                code.add(f"flags |= {CLONE}")


def _fields(struct: str, *names: str) -> tuple[FieldSource, ...]:
    return tuple(FieldSource(struct, name) for name in names)


def _touched(usage: FieldUsage) -> Touched:
    """Return the fields that a whole side reads and writes."""
    parts = usage.parser, usage.ingress, usage.egress, usage.deparser
    return Touched(
        set().union(*(part.reads for part in parts)), set().union(*(part.writes for part in parts))
    )
