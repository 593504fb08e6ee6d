"""Lists of digests on their way to a controller (section 9.8), without I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ringleaf.switches.engine.updates import DigestMessage

PS_PER_NS = 1000
MOST_MESSAGES = 1024  # of a list, whatever size its controller has asked for
MOST_LISTS = 256  # that wait to be acknowledged


@dataclass(frozen=True, slots=True)
class DigestList:
    """Messages that one p4.v1.DigestList carries to a controller: a value per field of each."""

    digest_id: int
    list_id: int
    messages: tuple[tuple[int, ...], ...]


@dataclass(slots=True)
class _Buffer:
    since_ps: int
    messages: dict[tuple[int, ...], None] = field(default_factory=dict)  # in order, each once


class DigestLists:
    """Collects digests into lists, and holds back values that a controller was sent just before.

    `configs` are the p4.v1.DigestEntry.Config of the digests that are enabled, by id.
    """

    def __init__(self) -> None:
        self._buffers: dict[int, _Buffer] = {}
        self._sent: dict[tuple[int, int], tuple[int, frozenset[tuple[int, ...]]]] = {}
        self._next = 1

    def add(
        self, digest_id: int, message: DigestMessage, configs: Mapping[int, Any], now_ps: int
    ) -> list[DigestList]:
        """Take a message; return the list that it completes, if any."""
        self._expire(configs, now_ps)
        if digest_id not in configs or self._is_sent(digest_id, message.values):
            return []
        buffer = self._buffers.setdefault(digest_id, _Buffer(now_ps))
        buffer.messages[message.values] = None
        config = configs[digest_id]
        full = len(buffer.messages) >= min(config.max_list_size or MOST_MESSAGES, MOST_MESSAGES)
        return [self._take(digest_id, now_ps)] if full or not config.max_timeout_ns else []

    def poll(self, configs: Mapping[int, Any], now_ps: int) -> list[DigestList]:
        """Return the lists that have waited long enough."""
        self._expire(configs, now_ps)
        due = [
            digest_id
            for digest_id, buffer in self._buffers.items()
            if digest_id in configs
            and now_ps - buffer.since_ps >= configs[digest_id].max_timeout_ns * PS_PER_NS
        ]
        return [self._take(digest_id, now_ps) for digest_id in due]

    def acknowledge(self, digest_id: int, list_id: int) -> None:
        """Forget a list that the controller has, so that its values may be sent again."""
        self._sent.pop((digest_id, list_id), None)

    def forget(self) -> None:
        """Forget all lists, as for another controller."""
        self._buffers.clear()
        self._sent.clear()

    def _take(self, digest_id: int, now_ps: int) -> DigestList:
        messages = tuple(self._buffers.pop(digest_id).messages)
        taken = DigestList(digest_id, self._next, messages)
        self._sent[digest_id, self._next] = now_ps, frozenset(messages)
        self._next += 1
        if len(self._sent) > MOST_LISTS:
            del self._sent[next(iter(self._sent))]  # the oldest is as if it were acknowledged
        return taken

    def _expire(self, configs: Mapping[int, Any], now_ps: int) -> None:
        """Forget what was acknowledged by time, and digests that are not enabled any more."""
        for digest_id in self._buffers.keys() - configs.keys():
            del self._buffers[digest_id]
        for key, (sent_ps, _) in list(self._sent.items()):
            config = configs.get(key[0])
            if config is None or now_ps - sent_ps >= config.ack_timeout_ns * PS_PER_NS:
                del self._sent[key]

    def _is_sent(self, digest_id: int, values: tuple[int, ...]) -> bool:
        return any(
            digest_id == sent_id and values in messages
            for (sent_id, _), (_, messages) in self._sent.items()
        )
