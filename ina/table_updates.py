"""Updates of the switches' tables that follow from changed holdings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ringleaf.ina.holdings import Holding

if TYPE_CHECKING:
    import finsy as fy


def updates(
    by_switch: Mapping[str, Sequence[Any]], tables: Collection[str], before: Holding, after: Holding
) -> dict[str, list[Any]]:
    """Return how a job's entries in some tables change with its holding.

    Args:
        by_switch: All entities of the job, as its new holding wants them.
        tables: The names of the tables that depend on the holding. Their entries are deleted while
            the job holds nothing.
        before: Its holding so far.
        after: Its new holding.
    """
    import finsy as fy

    changes: dict[str, list[Any]] = {}
    for switch, entities in by_switch.items():
        own = [
            replace(each)
            for each in entities
            if isinstance(each, fy.P4TableEntry) and each.table_id in tables
        ]
        if not after.entries:
            changes[switch] = [-each for each in own]
        elif not before.entries:
            changes[switch] = [+each for each in own]
        else:
            changes[switch] = [~each for each in own]
    if not before.entries and not after.entries:
        return {}
    return changes


def between(
    before: Mapping[str, Sequence[Any]], after: Mapping[str, Sequence[Any]]
) -> dict[str, list[Any]]:
    """Return how a job's entities, by switch, become others: table entries and multicast groups."""
    changes = {}
    for switch in sorted({*before, *after}):
        old = {_key(each): each for each in before.get(switch, ())}
        new = {_key(each): each for each in after.get(switch, ())}
        changes[switch] = [
            *(-replace(each) for key, each in old.items() if key not in new),
            *(~replace(each) for key, each in new.items() if key in old and each != old[key]),
            *(+replace(each) for key, each in new.items() if key not in old),
        ]
    return {switch: changes[switch] for switch in changes if changes[switch]}


def changed(items: Sequence[Any], entities: Sequence[Any]) -> list[Any]:
    """Return a switch's entities after updates of some; items of other kinds stay."""
    import finsy as fy
    from finsy.p4schema import P4UpdateType

    left = {_key(each): each for each in entities}
    kept = []
    for item in items:
        key = _key(item) if isinstance(item, fy.P4TableEntry | fy.P4MulticastGroupEntry) else None
        update = left.pop(key, None) if key is not None else None
        if update is None:
            kept.append(item)
        elif update._update_type != P4UpdateType.DELETE:
            kept.append(replace(update))
    return [*kept, *map(replace, left.values())]


def _key(entry: fy.P4TableEntry | fy.P4MulticastGroupEntry) -> tuple[Any, ...]:
    import finsy as fy

    if isinstance(entry, fy.P4MulticastGroupEntry):
        return ("multicast group", entry.multicast_group_id)
    return entry.table_id, *sorted((entry.match or {}).items())
