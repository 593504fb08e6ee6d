"""Frames as another implementation reads them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.frames import host_frame, switch_mac, udp_frame
from ringleaf.topologies.registry import build

u8, u16, u32, u48 = (st.integers(0, (1 << bits) - 1) for bits in (8, 16, 32, 48))


@given(
    macs=st.tuples(u48, u48),
    addresses=st.tuples(u32, u32),
    ports=st.tuples(u16, u16),
    body=st.binary(max_size=64),
    tos=u8,
    identification=u16,
)
def test_frames_say_what_was_asked(
    macs: tuple[int, int],
    addresses: tuple[int, int],
    ports: tuple[int, int],
    body: bytes,
    tos: int,
    identification: int,
) -> None:
    data = udp_frame(macs, addresses, ports, body, tos=tos, identification=identification)
    frame = Ether(data)
    ip, udp = frame[IP], frame[UDP]

    assert [int(text.replace(":", ""), 16) for text in (frame.src, frame.dst)] == list(macs)
    assert bytes(ip)[12:20] == b"".join(each.to_bytes(4, "big") for each in addresses)
    assert (ip.tos, ip.id, ip.ttl, ip.len) == (tos, identification, 64, 28 + len(body))
    assert (udp.sport, udp.dport, udp.len) == (*ports, 8 + len(body))
    assert data[42:] == body
    seen = ip.chksum
    del ip.chksum
    assert IP(bytes(ip)).chksum == seen


def test_another_protocol_has_its_number_and_a_checksum_that_holds() -> None:
    frame = Ether(udp_frame((1, 2), (3, 4), (5, 6), bytes(16), protocol=6))
    seen = frame[IP].chksum
    del frame[IP].chksum

    assert frame[IP].proto == 6
    assert IP(bytes(frame[IP])).chksum == seen


def test_a_host_sends_from_its_own_addresses() -> None:
    graph = build("leafspine,leaves=1,spines=1,hosts=2")
    to = switch_mac(graph, "h1"), ipv4(graph, "h0")
    frame = Ether(host_frame(graph, "h1", to, 4791, b"x"))

    assert (frame.src, frame.dst) == ("02:00:00:00:10:01", "02:01:00:00:00:02")
    assert (frame[IP].src, frame[IP].dst) == ("10.0.0.2", "10.0.0.1")
    assert (frame[UDP].sport, frame[UDP].dport) == (4791, 4791)
    assert to[0] == mac(graph, "s0", 2)
