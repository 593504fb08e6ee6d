"""The control plane of PSA programs: what P4Runtime has for PSA alone."""

from __future__ import annotations

import finsy as fy
import pytest
from finsy.proto import p4d, p4r, p4t
from program_cases import BUILT, PSA

from ringleaf.errors import ConfigError
from ringleaf.switches.bmv2.binaries import need_v1model
from ringleaf.switches.engine.updates import INSERT, CloneUpdate, GroupUpdate
from ringleaf.switches.json.program import load_source
from ringleaf.switches.p4runtime.data import Types
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch

RECIRCULATE = 0xFFFFFFFA  # PSA_PORT_RECIRCULATE


def test_sessions_have_a_class_and_replicas_may_be_recirculated() -> None:
    switch = Switch.alone(Program.load(PSA / "router.json"), 8)
    session = fy.P4CloneSessionEntry(5, class_of_service=6, replicas=[(2, 1), (RECIRCULATE, 2)])
    switch.write([+session, +fy.P4MulticastGroupEntry(4, replicas=[(RECIRCULATE, 3)])])
    assert switch.clone_sessions() == [CloneUpdate(INSERT, 5, ((2, 1), (RECIRCULATE, 2)), 0, 6)]
    assert switch.groups() == [GroupUpdate(INSERT, 4, ((RECIRCULATE, 3),))]
    asked = p4r.Entity()
    asked.packet_replication_engine_entry.clone_session_entry.session_id = 5
    [read] = switch.entities.read(asked)
    assert read.packet_replication_engine_entry.clone_session_entry.class_of_service == 6


def test_v1model_has_no_port_of_recirculation() -> None:
    switch = Switch.alone(Program.load(BUILT / "forward.json"), 8)
    with pytest.raises(ConfigError, match="ports are 1 to 8, got 4294967290"):
        switch.apply([GroupUpdate(INSERT, 4, ((RECIRCULATE, 3),))])


def new_type(uri: str) -> Types:
    translated = p4t.P4NewTypeTranslation(uri=uri, sdn_bitwidth=32)
    return Types(p4t.P4TypeInfo(new_types={"T": p4t.P4NewTypeSpec(translated_type=translated)}))


def test_psas_own_types_are_numbers_and_other_translations_are_refused() -> None:
    spec = p4t.P4DataTypeSpec(new_type=p4t.P4NamedType(name="T"))
    port = p4d.P4Data(bitstring=b"\xff\xff\xff\xfa")
    types = new_type("p4.org/psa/v1/PortId_t")
    assert types.encode(spec, iter([RECIRCULATE]), "x") == port
    assert types.decode(spec, port, "x") == RECIRCULATE
    with pytest.raises(ConfigError, match="translated types are not supported, got T"):
        new_type("example.org/T").encode(spec, iter([1]), "x")


def test_bmv2s_simple_switch_is_for_v1model() -> None:
    need_v1model(load_source(BUILT / "forward.json"), "fuzz")
    with pytest.raises(ConfigError, match=r"fuzz: BMv2's simple_switch_grpc runs .* got one for P"):
        need_v1model(load_source(PSA / "router.json"), "fuzz")
