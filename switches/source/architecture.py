"""The architectures that programs are written for, as far as their standard metadata go.

What becomes of a packet at the end of ingress and of egress is written by the generator:
`generate/module.py` for v1model, `generate/psa.py` for PSA.
Source: p4c `p4include/v1model.p4` and `p4include/bmv2/psa.p4`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ringleaf.switches.source.names import STANDARD

Bits = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Architecture:
    """What a program gets from the switch; `structs` have the most bits of each field, by name."""

    name: str
    include: str  # the file that declares it
    sides: tuple[str, ...]  # the prefixes of its parsers' and deparsers' names in BMv2 JSON
    structs: Mapping[str, Bits]

    def __reduce__(self) -> str:
        """Return what it is called here, as there is one of each: copies are itself."""
        return self.name.upper()


V1MODEL = Architecture(
    "v1model",
    "v1model.p4",
    ("",),
    {
        STANDARD: {
            **dict.fromkeys(("ingress_port", "egress_spec", "egress_port"), 9),
            **dict.fromkeys(("mcast_grp", "egress_rid"), 16),
            "priority": 3,
        }
    },
)

_PORT, _SESSION, _GROUP, _CLASS, _TIME, _WORD = 32, 16, 32, 8, 64, 32

PSA = Architecture(
    "PSA",
    "psa.p4",
    ("ingress_", "egress_"),
    {
        STANDARD: {"parser_error": _WORD, "packet_length": _WORD},  # hidden: the engine's own
        "psa_ingress_parser_input_metadata": {"ingress_port": _PORT, "packet_path": _WORD},
        "psa_ingress_input_metadata": {
            "ingress_port": _PORT,
            "packet_path": _WORD,
            "ingress_timestamp": _TIME,
            "parser_error": _WORD,
        },
        "psa_ingress_output_metadata": {
            "class_of_service": _CLASS,
            "clone": 1,
            "clone_session_id": _SESSION,
            "drop": 1,
            "resubmit": 1,
            "multicast_group": _GROUP,
            "egress_port": _PORT,
        },
        "psa_egress_parser_input_metadata": {"egress_port": _PORT, "packet_path": _WORD},
        "psa_egress_input_metadata": {
            "class_of_service": _CLASS,
            "egress_port": _PORT,
            "packet_path": _WORD,
            "instance": 16,
            "egress_timestamp": _TIME,
            "parser_error": _WORD,
        },
        "psa_egress_output_metadata": {"clone": 1, "clone_session_id": _SESSION, "drop": 1},
        "psa_egress_deparser_input_metadata": {"egress_port": _PORT},
    },
)
