"""The election of the controller that may write (section 5): the highest election id wins."""

from __future__ import annotations

from typing import Generic, TypeVar

from ringleaf.errors import Code, ConfigError

Client = TypeVar("Client")


class Election(Generic[Client]):
    """The controllers of one device and role.

    After each change tell the clients that are returned, in this order; `code` is for each of them.
    """

    def __init__(self) -> None:
        self._ids: dict[Client, int | None] = {}
        self.highest: int | None = None  # ever; a client with a lower id is never primary

    @property
    def primary(self) -> Client | None:
        """Return the client that has the highest election id so far; None if it has left."""
        if self.highest is None:
            return None
        return next((client for client, i in self._ids.items() if i == self.highest), None)

    def bid(self, client: Client, election_id: int | None) -> list[Client]:
        """Take a client's election id, its first or a new one; None never becomes primary.

        Raises:
            ConfigError: If another client has it.
        """
        if election_id is not None and any(
            other is not client and known == election_id for other, known in self._ids.items()
        ):
            # finsy looks for "election id ... used" and tries another.
            raise ConfigError(f"election id is used by another controller, got {election_id}")
        was_primary = self.primary is client
        self._ids[client] = election_id
        if election_id is not None and election_id >= (self.highest or 0):
            self.highest = election_id
        if self.primary is client or was_primary:
            return self._all()
        return [client]

    def leave(self, client: Client) -> list[Client]:
        """Forget a client; return the clients to tell: all others if it was the primary one."""
        was_primary = self.primary is client
        self._ids.pop(client, None)
        return self._all() if was_primary else []

    def code(self, client: Client) -> int:
        """Return the code in google.rpc.Status that tells a client its role."""
        if self.primary is client:
            return 0
        return Code.NOT_FOUND if self.primary is None else Code.ALREADY_EXISTS

    def is_primary(self, election_id: int | None) -> bool:
        """Return whether a request with this election id is the primary's."""
        return self.primary is not None and election_id == self.highest

    def _all(self) -> list[Client]:
        """Return all clients, the primary last: the others hear first that they are not."""
        return sorted(self._ids, key=lambda client: client is self.primary)
