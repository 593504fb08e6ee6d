"""A journal of a collective's messages: when each was given to its agent, and when it was done."""

from __future__ import annotations

from ringleaf.networks.outcome import AGGREGATE, RECEIVE, SEND, Note


class Journal:
    """Notes of messages and aggregates, in the order in which they were done.

    Args:
        most: Notes that are kept; those after them are only counted.
        start_ps: The time from which on times are counted.
    """

    def __init__(self, most: int, start_ps: int) -> None:
        self.notes: list[Note] = []
        self.left_out = 0
        self._most = most
        self._start_ps = start_ps
        self._posted: dict[tuple[int, int], int] = {}  # by node and row of the schedule

    def post(self, node: int, row: int, now_ps: int) -> None:
        """Note that a node's agent has been given a message to send, or an aggregate."""
        if len(self.notes) < self._most:
            self._posted[node, row] = now_ps

    def sent(self, node: int, peer: int, row: int, now_ps: int) -> None:
        """Note that a node knows that its peer has the whole message."""
        self._end(SEND, node, peer, row, node, now_ps)

    def received(self, node: int, peer: int, row: int, now_ps: int) -> None:
        """Note that a node has the whole message of its peer."""
        self._end(RECEIVE, node, peer, row, peer, now_ps)

    def aggregated(self, node: int, row: int, now_ps: int) -> None:
        """Note that a node has the sum of an aggregate."""
        self._end(AGGREGATE, node, -1, row, node, now_ps)

    def _end(self, kind: str, node: int, peer: int, row: int, poster: int, now_ps: int) -> None:
        start_ps = self._posted.get((poster, row))
        if start_ps is None or len(self.notes) >= self._most:
            self.left_out += 1
            return
        start_ps -= self._start_ps
        self.notes.append(Note(kind, node, peer, row, start_ps, now_ps - self._start_ps))
