"""The store by which a script's ranks find one another: a file of the run, and no port.

PyTorch's `TCPStore` listens at all addresses of a machine, and lets in whoever comes. Ranks of
`ringleaf train` have a folder that only this user can enter, so a file there does the same.
"""

from __future__ import annotations

import secrets
import sys
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d

_ANY_NUMBER = -1  # of ranks: so nobody removes the file while others still come
_LEAST_PORT, _MOST_PORT = 1024, 65535


class PrivateStore(dist.FileStore):
    """Stands for a `TCPStore`, and takes its arguments; the same port means the same store.

    Args:
        folder: The folder of the stores' files.
        host_name: The host that would listen.
        port: Its port; 0: any.
        world_size: The number of ranks.
        is_master: Whether this rank would listen.
        timeout: The time to wait for keys.
        others: Further arguments of `TCPStore`, which say how it listens.
    """

    def __init__(
        self,
        folder: Path,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = distributed_c10d.default_pg_timeout,
        **others: Any,
    ) -> None:
        self.host = host_name
        self.port = port or _LEAST_PORT + secrets.randbelow(_MOST_PORT - _LEAST_PORT)
        super().__init__(str(folder / f"store-{self.port}"), _ANY_NUMBER)
        self.set_timeout(timeout)


def meet_in_files(folder: Path) -> None:
    """Have this process use files of a folder in place of `TCPStore`s.

    A script may begin and end process groups several times, at the same port. Each beginning has a
    store of its own, as a new `TCPStore` has no keys.
    """
    beginnings = count()

    class Store(PrivateStore):
        def __init__(self, *args: Any, **others: Any) -> None:
            super().__init__(folder, *args, **others)

    def begin(*args: Any, **others: Any) -> PrivateStore:
        place = folder / f"beginning-{next(beginnings)}"
        place.mkdir(mode=0o700, exist_ok=True)
        return PrivateStore(place, *args, **others)

    dist.TCPStore = Store
    # The name `torch.distributed.rendezvous` is a function; its module is found in `sys.modules`.
    setattr(sys.modules["torch.distributed.rendezvous"], "TCPStore", begin)  # noqa: B010
