"""The options that live networks do not carry out, and their refusal.

Command line, specs and networks that are made in Python all refuse them here, so that none is ever
ignored in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ringleaf.core.units import exact_time
from ringleaf.errors import ConfigError

VIRTUAL_ONLY: Mapping[str, object] = MappingProxyType(
    {
        "duplicate": 0,
        "reorder": 0,
        "switch_delay_ps": 0,
        "host_delay_ps": 0,
        "message_overhead_ps": 0,
        "cross_traffic": None,
        "trim_bytes": None,
        "has_data": True,
    }
)
"""Attribute -> the value that asks for nothing. Only virtual time carries out any other value.

The names are attributes of specs (`NetworkSpec`), of `NetworkOptions`, and of topologies' graphs.
"""

STRICT = "strict"


def check_live(values: Mapping[str, object], where: str = "", take: str = "net=virtual") -> None:
    """Check options that a live network shall carry out.

    Args:
        values: Values by attribute; those that are not in `VIRTUAL_ONLY` are passed over.
        where: The beginning of the message.
        take: The remedy: the network to take instead.

    Raises:
        ConfigError: If one is for virtual time only.
    """
    for name, nothing in VIRTUAL_ONLY.items():
        value = values.get(name, nothing)
        if value == nothing:
            continue
        typed = name.removesuffix("_ps").removesuffix("_bytes")
        got = _shown(name, value)
        raise ConfigError(f"{where}{typed}: not on a live network, got {got}; take {take}")


def _shown(name: str, value: object) -> str:
    if name.endswith("_ps") and isinstance(value, int):
        return repr(exact_time(value))
    if isinstance(value, tuple):
        return repr(", ".join(map(str, value)))
    return repr(value) if isinstance(value, int | float) else repr(str(value))


def check_discipline(switch: str, discipline: str, where: str = "") -> None:
    """Check that a kind of live switch has a queueing discipline.

    Raises:
        ConfigError: If it is BMv2, whose ports have strict priority only, and another is wanted.
    """
    if switch == "bmv2" and discipline != STRICT:
        raise ConfigError(
            f"{where}discipline: BMv2's ports have strict priority only, got {discipline!r}; "
            "take switch=embedded"
        )


def check_faults(switch: str, faults: Sequence[object], where: str = "") -> None:
    """Check that a kind of live switch has links that fail, if they are wanted.

    Raises:
        ConfigError: If it is BMv2, whose lines can't change in a run.
    """
    if faults and switch == "bmv2":
        got = ", ".join(map(str, faults))
        raise ConfigError(
            f"{where}faults: BMv2's lines stay as they are, got {got!r}; take switch=embedded"
        )


def check_queues(switch: str, control: str, where: str = "", *, reads: bool) -> None:
    """Check that a kind of live switch tells hosts of its queues, if their control asks.

    Args:
        switch: The kind.
        control: The name of the congestion control.
        where: The beginning of the message.
        reads: Whether it goes by marks or telemetry of switches.

    Raises:
        ConfigError: If it is BMv2, whose ports' backlog is in the kernel: programs see no queue.
    """
    if reads and switch == "bmv2":
        raise ConfigError(
            f"{where}cc: BMv2's queues are in the kernel, and so it marks nothing, got "
            f"{control!r}; take switch=embedded"
        )


def check_ways(switch: str, program: str, where: str = "") -> None:
    """Check that a kind of live switch sees its queues, if it chooses ways by them.

    Args:
        switch: The kind.
        program: The program by which it chooses.
        where: The beginning of the message.

    Raises:
        ConfigError: If it is BMv2: see `check_queues`.
    """
    if switch == "bmv2":
        raise ConfigError(
            f"{where}routes: BMv2's queues are in the kernel, and so it chooses no ways by them, "
            f"got {program!r}; take switch=embedded"
        )


def check_pausing(switch: str, pfc: object, where: str = "", *, captured: bool = False) -> None:
    """Check that a kind of live switch has priority flow control, if it is wanted.

    Args:
        switch: The kind.
        pfc: The thresholds; None: it is not wanted.
        where: The beginning of the message.
        captured: Whether packets are captured.

    Raises:
        ConfigError: If it is BMv2, or packets are captured, which live goes by traces.
    """
    if pfc is not None and switch == "bmv2":
        raise ConfigError(f"{where}pfc: BMv2 has none, got {str(pfc)!r}; take switch=embedded")
    if pfc is not None and captured:
        raise ConfigError(
            f"{where}pfc: live captures are made of traces, which have no pauses, got {str(pfc)!r} "
            "and a capture; leave out either of them"
        )
