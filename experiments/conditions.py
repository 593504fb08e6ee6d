"""Sentences about nodes in a run's header: the time they take, and the rate hosts can inject."""

from __future__ import annotations

from ringleaf.units import format_rate, format_time


def inside_nodes(switch_delay_ps: int, host_delay_ps: int, message_overhead_ps: int) -> str:
    """Return a sentence on the time that switches and hosts take, also if that is none."""
    if not switch_delay_ps and not host_delay_ps and not message_overhead_ps:
        return "switches and hosts take no time (SWITCH_DELAY=0, HOST_DELAY=0, MESSAGE_OVERHEAD=0)"
    return (
        f"each packet: SWITCH_DELAY {_time(switch_delay_ps)}, HOST_DELAY {_time(host_delay_ps)}; "
        f"each message: MESSAGE_OVERHEAD {_time(message_overhead_ps)}"
    )


def _time(time_ps: int) -> str:
    return format_time(time_ps) if time_ps else "0"


def injection(least_bps: int, most_bps: int) -> str:
    """Return a phrase on the rate that a host can inject, given the hosts' least and most."""
    least, most = format_rate(least_bps), format_rate(most_bps)
    return f"a host injects up to {most if least == most else f'{least} to {most}'}"
