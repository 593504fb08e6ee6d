"""Setting and getting the forwarding pipeline, over gRPC."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import finsy as fy
import grpc  # type: ignore[import-untyped]
import pytest
from finsy.proto import p4r
from p4runtime_client import INSERT, MODIFY, Client, sorted_messages

from ringleaf.errors import Code
from ringleaf.switches.p4runtime.finsy_entities import read_p4info
from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.server.server import P4RuntimeServer

PROGRAMS = Path(__file__).parent / "programs"


def config(name: str = "tables", cookie: int | None = 7) -> Any:
    path = PROGRAMS / f"{name}.json"
    return p4r.ForwardingPipelineConfig(
        p4info=read_p4info(path.with_suffix(".p4info.txtpb")),
        p4_device_config=path.read_bytes(),
        cookie=None if cookie is None else {"cookie": cookie},
    )


SCHEMA = fy.P4Schema(PROGRAMS / "tables.p4info.txtpb")


def lpm(value: int, length: int = 8) -> Any:
    match = fy.Match({"address": (value << 24, length)})
    return fy.P4TableEntry("lpm_table", match=match, action=fy.Action("set_lpm", value=value))


def entry(value: int) -> Any:
    return lpm(value).encode(SCHEMA)


def default(value: int) -> Any:
    action = fy.Action("set_lpm", value=value)
    return fy.P4TableEntry("lpm_table", is_default_action=True, action=action).encode(SCHEMA)


EVERY_ENTRY = fy.P4TableEntry("lpm_table").encode(SCHEMA)
DEFAULT = fy.P4TableEntry("lpm_table", is_default_action=True).encode(SCHEMA)


@pytest.fixture
def device() -> SharedDevice:
    return SharedDevice(1)


@pytest.fixture
def client(device: SharedDevice) -> Iterator[Client]:
    with P4RuntimeServer([device]) as server, Client(server.address) as client:
        client.bid(1)
        yield client


def looked_up(device: SharedDevice, address: int) -> int:
    """What a packet through the table has found."""
    packet = bytes([3, address, 0, 0, 0, 0, 7]) + bytes(25)
    ((_, data),) = device.process(1, packet)
    return data[33]


def refuse(call: Any, *arguments: Any) -> Code:
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments)
    return Code(caught.value.code().value[0])


def test_without_a_pipeline_there_is_nothing_to_read(client: Client) -> None:
    assert not client.get_pipeline().HasField("config")
    assert refuse(client.read) is Code.FAILED_PRECONDITION
    assert refuse(client.write) is Code.FAILED_PRECONDITION
    assert refuse(client.set_pipeline, "COMMIT") is Code.NOT_FOUND
    client.set_pipeline("VERIFY", config())
    assert not client.get_pipeline().HasField("config")


def test_a_pipeline_is_read_as_it_was_written(client: Client) -> None:
    client.set_pipeline("VERIFY_AND_COMMIT", config())
    assert client.get_pipeline().config == config()
    cookie = client.get_pipeline("COOKIE_ONLY").config
    assert cookie == p4r.ForwardingPipelineConfig(cookie={"cookie": 7})
    with_p4info = client.get_pipeline("P4INFO_AND_COOKIE").config
    assert with_p4info.p4info == config().p4info
    assert not with_p4info.p4_device_config
    with_json = client.get_pipeline("DEVICE_CONFIG_AND_COOKIE").config
    assert with_json.p4_device_config == config().p4_device_config
    assert not with_json.HasField("p4info")
    client.set_pipeline("VERIFY_AND_COMMIT", config(cookie=None))
    assert not client.get_pipeline().config.HasField("cookie")


def test_a_commit_forgets_what_was_there(client: Client) -> None:
    client.set_pipeline("VERIFY_AND_COMMIT", config())
    client.write((INSERT, entry(9)), (MODIFY, default(5)))
    client.set_pipeline("VERIFY_AND_COMMIT", config())
    assert client.read(EVERY_ENTRY) == []
    assert client.read(DEFAULT) == [default(0xDD)]


def test_a_saved_pipeline_takes_writes_and_runs_once_committed(
    device: SharedDevice, client: Client
) -> None:
    client.set_pipeline("VERIFY_AND_COMMIT", config())
    exact = fy.P4TableEntry(
        "exact_table",
        match=fy.Match({"address": 9 << 24, "port": 7, "hdr.key.$valid$": 1}),
        action=fy.Action("set_exact", value=1),
    ).encode(SCHEMA)
    client.write((INSERT, entry(9)), (INSERT, exact))
    client.set_pipeline("VERIFY_AND_SAVE", config(cookie=8))
    assert client.get_pipeline("COOKIE_ONLY").config.cookie.cookie == 8
    assert client.read(EVERY_ENTRY) == []
    client.write((INSERT, exact), (MODIFY, default(0x33)))
    assert looked_up(device, 9) == 9
    client.set_pipeline("COMMIT")
    assert looked_up(device, 9) == 0x33
    assert refuse(client.set_pipeline, "COMMIT") is Code.NOT_FOUND
    assert refuse(client.set_pipeline, "COMMIT", config()) is Code.INVALID_ARGUMENT


def test_reconciling_keeps_the_state(device: SharedDevice, client: Client) -> None:
    client.set_pipeline("VERIFY_AND_COMMIT", config())
    client.write((INSERT, entry(9)), (MODIFY, default(5)))
    before = sorted_messages(client.read(EVERY_ENTRY, DEFAULT))
    client.set_pipeline("RECONCILE_AND_COMMIT", config(cookie=3))
    assert sorted_messages(client.read(EVERY_ENTRY, DEFAULT)) == before
    assert client.get_pipeline().config.cookie.cookie == 3

    refused = refuse(client.set_pipeline, "RECONCILE_AND_COMMIT", config("stateful"))
    assert refused is Code.INVALID_ARGUMENT  # it has no such tables
    assert sorted_messages(client.read(EVERY_ENTRY, DEFAULT)) == before


def test_reconciling_keeps_the_state_beside_entries_that_are_not_const(client: Client) -> None:
    """P4Info of `entries = {...}` lacks `is_const_table`; the switch keeps them, as BMv2 does."""
    initial = config()
    (table,) = (t for t in initial.p4info.tables if t.preamble.name == "I.constant_table")
    table.is_const_table = False
    table.has_initial_entries = True
    client.set_pipeline("VERIFY_AND_COMMIT", initial)
    client.write((INSERT, entry(9)))
    every_one = p4r.Entity(table_entry=p4r.TableEntry(table_id=table.preamble.id))
    before = sorted_messages(client.read(EVERY_ENTRY, every_one))
    assert all(each.table_entry.is_const for each in client.read(every_one))
    client.set_pipeline("RECONCILE_AND_COMMIT", initial)
    assert sorted_messages(client.read(EVERY_ENTRY, every_one)) == before


def mixed() -> Any:
    other = config()
    other.p4info.CopyFrom(config("controller").p4info)
    return other


@pytest.mark.parametrize(
    ("action", "given"),
    [
        ("UNSPECIFIED", config()),
        ("VERIFY", None),
        ("VERIFY_AND_COMMIT", p4r.ForwardingPipelineConfig(p4_device_config=b"{}")),
        ("VERIFY_AND_COMMIT", p4r.ForwardingPipelineConfig(p4info=config().p4info)),
        (
            "VERIFY_AND_COMMIT",
            p4r.ForwardingPipelineConfig(p4info=config().p4info, p4_device_config=b"nonsense"),
        ),
        (
            "VERIFY_AND_COMMIT",
            p4r.ForwardingPipelineConfig(p4info=config().p4info, p4_device_config=b"\xff{}"),
        ),
        ("VERIFY_AND_COMMIT", mixed()),
    ],
)
def test_what_can_not_be_run_is_refused(client: Client, action: str, given: Any) -> None:
    client.set_pipeline("VERIFY_AND_COMMIT", config())
    client.write((INSERT, entry(9)))
    assert refuse(client.set_pipeline, action, given) is Code.INVALID_ARGUMENT
    assert len(client.read(EVERY_ENTRY)) == 1


def test_only_the_primary_sets_pipelines(client: Client) -> None:
    client.election_id = 0
    assert refuse(client.set_pipeline, "VERIFY_AND_COMMIT", config()) is Code.PERMISSION_DENIED


def test_batches_say_what_was_wrong_with_each_update(client: Client) -> None:
    client.set_pipeline("VERIFY_AND_COMMIT", config())
    updates = [(INSERT, entry(9)), (INSERT, entry(9)), (INSERT, p4r.Entity())]
    assert client.write_codes(*updates) == [0, Code.ALREADY_EXISTS, Code.INVALID_ARGUMENT]
    many = [(INSERT, entry(9))] * 100  # their messages would be more than gRPC takes
    assert client.write_codes(*many) == [Code.ALREADY_EXISTS] * 100
    with pytest.raises(
        grpc.RpcError, match=r"300 of 300; the first is number 0: .*; details of the"
    ):
        client.write(*[(INSERT, entry(9))] * 300)
    first = client.write_codes(*[(INSERT, entry(9))] * 300)  # trailers that are longer are dropped
    assert first == [Code.ALREADY_EXISTS] * len(first)
    assert first
    assert client.read_codes(EVERY_ENTRY, p4r.Entity()) == [0, Code.INVALID_ARGUMENT]


def test_batches_are_not_atomic(client: Client) -> None:
    client.set_pipeline("VERIFY_AND_COMMIT", config())
    for atomicity in ("ROLLBACK_ON_ERROR", "DATAPLANE_ATOMIC"):
        with pytest.raises(grpc.RpcError) as caught:
            client.write((INSERT, entry(9)), atomicity=atomicity)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert client.read(EVERY_ENTRY) == []


def test_long_reads_come_in_pieces(client: Client) -> None:
    client.set_pipeline("VERIFY_AND_COMMIT", config())
    entries = [
        lpm(value, 8 + length).encode(SCHEMA) for value in range(1, 70) for length in range(10)
    ]
    client.write(*((INSERT, item) for item in entries))
    assert sorted_messages(client.read(EVERY_ENTRY)) == sorted_messages(entries)


def test_a_second_server_does_not_share_the_port() -> None:
    from ringleaf.errors import BackendError

    with (
        P4RuntimeServer([SharedDevice(1)]) as server,
        pytest.raises(BackendError, match="can't listen"),
    ):
        P4RuntimeServer([SharedDevice(1)], server.address).__enter__()
