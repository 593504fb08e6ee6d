"""Options that have other names elsewhere, or had before: old files and habits are told."""

from __future__ import annotations

from collections.abc import Collection

from ringleaf.errors import ConfigError, choose

RENAMED = {"order": "scheduler", "scheduler": "discipline"}
"""New names by old ones. Ports have a queueing discipline; jobs have a flow scheduler."""

_PARTIES = "nodes workers gpus npus world_size nproc nproc_per_node np num_nodes num_ranks"

_ELSEWHERE = {
    "algo": "algorithm algorithms collective collectives",
    "delay": "latency link_latency link_delay propagation_delay",
    "hosts": f"ranks {_PARTIES}",
    "loss": "packet_loss loss_rate drop_rate drop",
    "net": "network backend simulator",
    "out": "output output_dir out_dir outdir",
    "queue": "buffer buffer_size queue_size",
    "ranks": f"hosts {_PARTIES}",
    "rate": "bandwidth link_rate link_bandwidth link_speed speed",
    "size": "sizes message_size msg_size data_size bytes",
    "topo": "topology",
}
"""Names of options, and what others call the same: torchrun, mpirun, nccl-tests, simulators."""


def other_name(name: str, valid: Collection[str]) -> tuple[str, str]:
    """Return an option's name here, and since when or where: `here`; two of "" if it has no other.

    Args:
        name: The name, with `_` or `-`.
        valid: The names of all options.
    """
    if name in valid:
        return "", ""
    if RENAMED.get(name) in valid:
        return RENAMED[name], "since 0.2.0"
    plain = name.replace("-", "_")
    new = next((new for new in valid if plain in _ELSEWHERE.get(new, "").split()), "")
    return new, "here" if new else ""


def choose_option(where: str, name: str, valid: Collection[str]) -> None:
    """Check that there is an option of this name.

    Args:
        where: The beginning of messages: `spec jobs.yaml`.
        name: The name, as typed or from a file.
        valid: The names of all options.

    Raises:
        ConfigError: If there is none; the message has its new name, or near ones.
    """
    new, when = other_name(name, valid)
    if new:
        raise ConfigError(f"{where}: {name} is called {new} {when}, got {name!r}")
    choose(where, "option", name, valid)
