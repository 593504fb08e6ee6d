"""Registration of the backend, and the link that all process groups of this process share."""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

from ringleaf.errors import ConfigError
from ringleaf.experiments.train.backend import NAME, base_class, make_class
from ringleaf.experiments.train.clock import Clock, parse_compute
from ringleaf.experiments.train.link import Link
from ringleaf.experiments.train.observer import Observer
from ringleaf.experiments.train.wire import FOLDER, SETTINGS

_KEY = "ringleaf-fabric"
_START = timedelta(minutes=5)

_links: list[Link] = []


def register() -> None:
    """Make `ringleaf` a backend of `torch.distributed`; once is enough."""
    if NAME.upper() not in dist.Backend._plugins:
        dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu"])


def current_link() -> Link | None:
    """Return this process's link to the fabric, if it has one."""
    return _links[0] if _links else None


def _create(options: Any, _: Any) -> Any:
    """Make a process group, or a backend, for PyTorch."""
    rank, ranks = options.group_rank, options.group_size
    members = list(options.global_ranks_in_group) or list(range(ranks))
    if not _links:
        _links.append(_connect(options.store, rank, ranks))
    link = _links[0]
    with link.clock:
        group = f"{options.group_id}:{','.join(map(str, members))}"
        link.join(group, members)
        return make_class(base_class())(link, group, rank, ranks)


def _connect(store: Any, rank: int, ranks: int) -> Link:
    """Return a new link to the fabric, which rank 0 starts if nobody else has."""
    folder, settings = os.environ.get(FOLDER), os.environ.get(SETTINGS, "")
    if folder is None:
        if rank == 0:
            from ringleaf.experiments.train.alone import start_fabric

            store.set(_KEY, json.dumps(start_fabric(settings, ranks)))
        store.wait([_KEY], _START)
        folder, settings = json.loads(store.get(_KEY))
    assert folder is not None
    return _link(Path(folder), json.loads(settings), rank, ranks)


def _link(folder: Path, settings: dict[str, Any], rank: int, ranks: int) -> Link:
    compute = parse_compute(settings["compute"])
    try:
        link = Link(folder, rank, ranks, Clock(compute.factor))
    except OSError as error:
        raise ConfigError(
            f"rank {rank}: there must be a fabric at {folder}, got {error.strerror or error}"
        ) from error
    Observer(link, compute, timeline=settings["timeline"]).begin()
    _abandon_on_exceptions(link)
    return link


def _abandon_on_exceptions(link: Link) -> None:
    """Have a script that fails leave without goodbye, so that the fabric knows."""
    usual = sys.excepthook

    def excepthook(*about: Any) -> None:
        link.abandon()
        usual(*about)

    sys.excepthook = excepthook
