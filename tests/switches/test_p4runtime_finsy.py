"""finsy, as a controller would use it, on a server over gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import finsy as fy
import pytest
from controller_entities import CPU_PORT, P4INFO, PATH, PORTS
from finsy.grpcutil import GRPCStatusCode
from finsy.p4entity import P4Replica

from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.server.server import P4RuntimeServer

PATIENCE_S = 30.0
FRAME = bytes.fromhex("0000000000070200000000010800") + bytes(range(46))


@pytest.fixture
def device() -> SharedDevice:
    return SharedDevice(3, ports=PORTS, cpu_port=CPU_PORT)


@pytest.fixture
def address(device: SharedDevice) -> Iterator[str]:
    with P4RuntimeServer([device]) as server:
        yield server.address


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[Any]:
    options = fy.SwitchOptions(p4info=P4INFO, p4blob=PATH, device_id=3)
    async with asyncio.timeout(PATIENCE_S), fy.Switch("s", address, options) as switch:
        yield switch


async def read(switch: Any, *entities: Any) -> list[Any]:
    return [entity async for entity in switch.read(entities)]


def test_finsy_sets_the_pipeline_and_writes_and_reads(address: str, device: SharedDevice) -> None:
    async def control() -> None:
        async with connected(address) as switch:
            assert switch.is_primary
            await switch.write(
                [
                    +entry,
                    +fy.P4MulticastGroupEntry(1, replicas=[1, (2, 5)]),
                    +fy.P4CloneSessionEntry(2, replicas=[3], packet_length_bytes=64),
                    fy.P4RegisterEntry("last_source", index=2, data=99),
                    fy.P4CounterEntry("arrivals", index=1, data=fy.P4CounterData(packet_count=5)),
                ]
            )
            (found,) = await read(switch, fy.P4TableEntry("destinations"))
            assert found.action == fy.Action("forward", port=2)
            groups = await read(switch, fy.P4MulticastGroupEntry())
            assert [group.replicas for group in groups] == [(1, P4Replica(2, instance=5))]
            (register,) = await read(switch, fy.P4RegisterEntry("last_source", index=2))
            assert register.data == 99
            assert device.process(1, FRAME) == [(2, FRAME)]
            (count,) = await read(switch, fy.P4CounterEntry("arrivals", index=1))
            assert count.packet_count == 6

            with pytest.raises(fy.P4ClientError) as caught:
                await switch.write([+fy.P4CloneSessionEntry(2, replicas=[3])])
            (error,) = caught.value.details.values()
            assert error.canonical_code == GRPCStatusCode.ALREADY_EXISTS
            await switch.delete_all()
            left = await read(switch, fy.P4TableEntry())
            assert {item.table_id for item in left} == {"fixed"}

    match = fy.Match({"dst": "00:00:00:00:00:07"})
    entry = fy.P4TableEntry("destinations", match=match, action=fy.Action("forward", port=2))
    asyncio.run(control())


def test_finsy_takes_over_a_pipeline_that_is_there(address: str, device: SharedDevice) -> None:
    async def control() -> None:
        async with connected(address) as switch:
            await switch.write([+fy.P4MulticastGroupEntry(1, replicas=[1])])
        async with connected(address) as switch:  # the cookie says that it is the same program
            assert len(await read(switch, fy.P4MulticastGroupEntry())) == 1

    asyncio.run(control())


def test_finsy_sends_and_gets_packets_and_digests(address: str, device: SharedDevice) -> None:
    sent: list[tuple[int, bytes]] = []
    device._transmit = lambda port, data: sent.append((port, data))

    async def control() -> None:
        async with connected(address) as switch:
            await switch.write([+fy.P4DigestEntry("learn_t", max_list_size=1)])
            packets, digests = switch.read_packets(), switch.read_digests("learn_t")
            waiting = [asyncio.ensure_future(anext(packets)), asyncio.ensure_future(anext(digests))]
            await asyncio.sleep(0)  # both are listening now
            out = fy.P4PacketOut(FRAME, egress_port=4, through=1, pad=0)
            await switch.write([out])
            packet, digest = await asyncio.gather(*waiting)
            assert packet.payload == FRAME
            assert packet["ingress_port"] == CPU_PORT
            assert list(digest) == [{"address": 0x020000000001, "port": CPU_PORT}]
            await switch.write([digest.ack()])
            match = fy.Match({"dst": 7})
            entry = fy.P4TableEntry("destinations", match=match, action=fy.Action("drop"))
            await switch.write([+entry])
            for generator in (packets, digests):
                await generator.aclose()

    asyncio.run(control())
    device.packet_out(_direct(6))
    assert sent == [(6, FRAME)]


def _direct(port: int) -> Any:
    packet = fy.P4PacketOut(FRAME, egress_port=port, through=0, pad=0)
    return packet.encode_update(fy.P4Schema(P4INFO)).packet


def test_of_two_controllers_one_is_the_primary(address: str) -> None:
    async def control() -> None:
        async with connected(address) as first, connected(address) as second:
            assert [first.is_primary, second.is_primary] == [True, False]
            assert len(await read(second, fy.P4TableEntry("fixed"))) == 2
            with pytest.raises(fy.P4ClientError) as caught:
                await second.write([+fy.P4MulticastGroupEntry(1, replicas=[1])])
            assert caught.value.code == GRPCStatusCode.PERMISSION_DENIED

    asyncio.run(control())
