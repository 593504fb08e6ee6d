"""Who is primary among controllers: the rules alone, then over gRPC."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from finsy.proto import p4r, rpc_code
from google.protobuf import any_pb2  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from p4runtime_client import Client

from ringleaf.errors import ConfigError
from ringleaf.switches.server.arbitration import Election
from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.server.server import P4RuntimeServer

STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.none() | st.integers(0, 5) | st.just("leave")), max_size=30
)


@given(STEPS)
def test_the_highest_id_ever_is_the_primary(steps: list[tuple[int, int | str | None]]) -> None:
    election: Election[int] = Election()
    ids: dict[int, int | None] = {}
    highest = -1
    for client, step in steps:
        before = election.primary
        if step == "leave":
            told = election.leave(client)
            ids.pop(client, None)
        else:
            assert step is None or isinstance(step, int)
            if step is not None and step in (v for k, v in ids.items() if k != client):
                with pytest.raises(ConfigError, match="election id is used by another"):
                    election.bid(client, step)
                continue
            told = election.bid(client, step)
            ids[client] = step
            highest = max(highest, -1 if step is None else step)

        expected: list[int | None] = [k for k, v in ids.items() if v == highest]
        assert [election.primary] == (expected or [None])
        if election.primary != before:
            assert set(told) == set(ids)
        if election.primary in told:
            assert told[-1] == election.primary
        for other in ids:
            assert (election.code(other) == 0) == (other == election.primary)
        assert election.is_primary(highest) == bool(expected)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with P4RuntimeServer([SharedDevice(number) for number in range(1, 30)]) as server:
        yield server.address


UNUSED = iter(range(1, 20))


@pytest.fixture
def device() -> int:
    """A device that no other test has used."""
    return next(UNUSED)


def code_of(client: Client) -> str:
    """The code of a write of nothing; without a pipeline it gets no further than arbitration."""
    with pytest.raises(grpc.RpcError) as caught:
        client.write()
    return str(caught.value.code().name)


def test_backups_learn_who_is_primary_and_may_not_write(address: str, device: int) -> None:
    with Client(address, device) as first, Client(address, device) as second:
        assert first.bid(None).status.code == rpc_code.NOT_FOUND
        answer = first.bid(5)
        assert (answer.status.code, answer.election_id.low) == (rpc_code.OK, 5)
        answer = second.bid(4)
        assert (answer.status.code, answer.election_id.low) == (rpc_code.ALREADY_EXISTS, 5)
        assert code_of(second) == "PERMISSION_DENIED"
        assert code_of(first) == "FAILED_PRECONDITION"  # no pipeline yet, but it may

        assert second.bid(6).status.code == rpc_code.OK
        lost = first.receive().arbitration
        assert (lost.status.code, lost.election_id.low) == (rpc_code.ALREADY_EXISTS, 6)
        assert code_of(first) == "PERMISSION_DENIED"

        second.leave()
        assert first.receive().arbitration.status.code == rpc_code.NOT_FOUND
        assert code_of(second) == "PERMISSION_DENIED"  # its id is the highest, but it is gone
        answer = first.bid(5)
        assert (answer.status.code, answer.election_id.low) == (rpc_code.NOT_FOUND, 6)
        assert first.bid(6).status.code == rpc_code.OK


def test_a_primary_may_step_down(address: str, device: int) -> None:
    with Client(address, device) as first, Client(address, device) as second:
        first.bid(9)
        second.bid(3)
        assert first.bid(1).status.code == rpc_code.NOT_FOUND
        assert second.receive().arbitration.status.code == rpc_code.NOT_FOUND


def test_roles_elect_apart(address: str, device: int) -> None:
    with Client(address, device) as first, Client(address, device) as second:
        assert first.bid(1).status.code == rpc_code.OK
        answer = second.bid(1, role=p4r.Role(name="stats"))
        assert (answer.status.code, answer.role.name) == (rpc_code.OK, "stats")


@pytest.mark.parametrize(
    ("bids", "code"),
    [
        ([{"device": 99}], "NOT_FOUND"),
        ([{}, {"device": 29}], "FAILED_PRECONDITION"),
        ([{}, {"role": p4r.Role(name="other")}], "FAILED_PRECONDITION"),
        ([{"role": p4r.Role(name="x", config=any_pb2.Any())}], "INVALID_ARGUMENT"),
        ([{"election_id": 77}], "INVALID_ARGUMENT"),
        ([{}, {"election_id": 77}], "INVALID_ARGUMENT"),
    ],
)
def test_wrong_bids_end_the_stream(
    address: str, device: int, bids: list[dict[str, Any]], code: str
) -> None:
    with Client(address, device) as rival, Client(address, device) as client:
        rival.bid(77)
        *accepted, last = [{"election_id": 2} | bid for bid in bids]
        for bid in accepted:
            client.bid(**bid)
        with pytest.raises(grpc.RpcError) as caught:
            client.bid(**last)
        assert caught.value.code().name == code
        assert rival.bid(78).status.code == rpc_code.OK


def test_who_says_nothing_may_not_send(address: str, device: int) -> None:
    with Client(address, device) as client:
        client.send(packet=p4r.PacketOut(payload=b"x"))
        error = client.receive().error
        assert error.canonical_code == rpc_code.PERMISSION_DENIED
        assert error.packet_out.packet_out.payload == b"x"
        client.send(digest_ack=p4r.DigestListAck(digest_id=1))
        assert client.receive().error.WhichOneof("details") == "digest_list_ack"
        client.send()
        assert client.receive().error.WhichOneof("details") == "other"


def test_unknown_role_and_device_are_not_found(address: str, device: int) -> None:
    with Client(address, device) as client:
        client.bid(1)
        with pytest.raises(grpc.RpcError) as caught:
            client.write(role="nobody")
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        client.device = 1234
        for call in (client.write, client.read, client.get_pipeline):
            with pytest.raises(grpc.RpcError) as caught:
                call()
            assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_many_devices_have_controllers_of_their_own(address: str) -> None:
    clients = [Client(address, number) for number in range(20, 29)]
    assert [client.bid(1).status.code for client in clients] == [rpc_code.OK] * len(clients)
    assert [client.bid(2).device_id for client in clients] == list(range(20, 29))
    for client in clients:
        client.leave()
        client.__exit__(None, None, None)


def test_capabilities_are_those_of_the_api(address: str) -> None:
    with Client(address) as client:
        response = client.stub.Capabilities(p4r.CapabilitiesRequest())
        assert response.p4runtime_api_version == "1.5.0"
