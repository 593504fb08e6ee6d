"""The options that flows have no form for, and their refusal with the reason and a remedy."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ringleaf.core.faults import CORRUPT, LOSS
from ringleaf.errors import ConfigError

REMEDY = "net=virtual"

LEAST_RANKS = 512
"""The least ranks of a symmetric collective without data that is carried by classes of ranks."""

MOST_WHOLE = 1 << 13
"""The most ranks of flows whose messages are all made, where they don't go by classes."""

PACKETS_ONLY: Mapping[str, tuple[str, object]] = MappingProxyType(
    {
        "circuits": ("no fluid model covers circuits that change", None),
        "loss": ("no fluid model covers loss", 0),
        "duplicate": ("no fluid model covers packets that come twice", 0),
        "reorder": ("no fluid model covers packets that come late", 0),
        "trim_bytes": ("no fluid model covers trimming", None),
        "repath": ("flows have no probes, and no hash", None),
        "pfc": ("no fluid model covers priority flow control", None),
        "cc": ("no fluid model covers windows that change", "fixed"),
        "discipline": ("no fluid model covers this queueing discipline", "strict"),
        "program": ("flows run no P4 programs", "forward"),
        "control": ("flows run no P4 programs", ""),
        "assigned": ("flows run no P4 programs", {}),
        "cross_traffic": ("flows have no packets to share links with a capture's", None),
        "pcap": ("flows have no packets to capture", False),
        "capture": ("flows have no packets to capture", None),
        "record": ("flows have no packets to record", None),
    }
)
"""Attribute -> why flows don't carry it out, and the value that asks for nothing.

The names are attributes of specs (`NetworkSpec`) and of `NetworkOptions`.
"""


def check_flow(values: Mapping[str, object], where: str = "") -> None:
    """Check options that a network of flows shall carry out.

    Args:
        values: Values by attribute; those that are not in `PACKETS_ONLY` are passed over.
        where: The beginning of the message.

    Raises:
        ConfigError: If packets would matter.
    """
    for fault in values.get("faults") or ():  # type: ignore[attr-defined]
        if fault.kind in (LOSS, CORRUPT):
            raise ConfigError(
                f"{where}faults: no fluid model covers {fault.kind}, got {str(fault)!r}; take "
                f"{REMEDY}"
            )
    for name, (reason, nothing) in PACKETS_ONLY.items():
        value = values.get(name, nothing)
        if value != nothing:
            typed = name.removesuffix("_bytes").removesuffix("_ps")
            raise ConfigError(f"{where}{typed}: {reason}, got {_shown(value)}; take {REMEDY}")


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return repr(", ".join(map(str, value)))
    return str(value) if isinstance(value, int | float) else repr(str(value))
