"""The sentences of a run's header about nodes: the time they take, and what hosts can inject."""

from __future__ import annotations

from ringleaf.units import format_rate, format_time


def inside_nodes(switch_delay_ps: int, host_delay_ps: int, message_overhead_ps: int) -> str:
    """What switches and hosts take, also if that is nothing."""
    if not switch_delay_ps and not host_delay_ps and not message_overhead_ps:
        return "switches and hosts take no time (SWITCH_DELAY=0, HOST_DELAY=0, MESSAGE_OVERHEAD=0)"
    return (
        f"each packet: SWITCH_DELAY {_time(switch_delay_ps)}, HOST_DELAY {_time(host_delay_ps)}; "
        f"each message: MESSAGE_OVERHEAD {_time(message_overhead_ps)}"
    )


def _time(time_ps: int) -> str:
    return format_time(time_ps) if time_ps else "0"


def injection(least_bps: int, most_bps: int) -> str:
    """What a host can send into the network, if hosts don't differ by more than this."""
    least, most = format_rate(least_bps), format_rate(most_bps)
    return f"a host injects up to {most if least == most else f'{least} to {most}'}"
