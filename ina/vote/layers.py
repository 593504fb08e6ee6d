"""Votes for scapy, as `wire.py` has them; importing this binds them to their UDP ports."""

from __future__ import annotations

from scapy.fields import BitEnumField, FieldListField, XIntField
from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_bottom_up, bind_layers

from ringleaf.ina.switchml.layers import SwitchMLHeader
from ringleaf.ina.switchml.wire import SIZE_NONE, UDP_PORTS
from ringleaf.ina.vote.wire import COUNTS_SIZE, FIRST_UDP_PORT, PLANES, SIGNS_SIZE, WORDS


class BitWords(Packet):
    """Bits of elements: a plane of a word per 32 elements, or several, the lowest bits first."""

    name = "bits"
    fields_desc = [  # noqa: RUF012 - as scapy wants it
        FieldListField(
            "words",
            [],
            XIntField("word", 0),
            count_from=lambda packet: packet.underlayer.words,
            max_count=PLANES * WORDS,
        )
    ]


class BitsHeader(SwitchMLHeader):
    """SwitchML's header, of packets with bits in place of lanes."""

    words_of = {SIGNS_SIZE: WORDS, COUNTS_SIZE: PLANES * WORDS}  # noqa: RUF012
    """Words behind the header, by the code of their size."""

    @property
    def words(self) -> int:
        """The number of words behind the header."""
        return self.words_of.get(self.size, 0)

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Say that bits follow, if they do."""
        if self.words and len(payload) >= 4 * self.words:
            return BitWords
        return Packet.guess_payload_class(self, payload)


class VoteHeader(BitsHeader):
    """The header of a vote."""

    name = "Votes"
    fields_desc = [  # noqa: RUF012
        *SwitchMLHeader.fields_desc[:2],
        BitEnumField(
            "size", SIZE_NONE, 3, {SIGNS_SIZE: "signs", COUNTS_SIZE: "counts", SIZE_NONE: "none"}
        ),
        *SwitchMLHeader.fields_desc[3:],
    ]


for _port in range(FIRST_UDP_PORT, FIRST_UDP_PORT + UDP_PORTS):
    bind_bottom_up(UDP, VoteHeader, dport=_port)
bind_layers(UDP, VoteHeader, dport=FIRST_UDP_PORT + 1)  # the port of job 1
