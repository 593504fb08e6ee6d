"""Runs by the workers of a Dask scheduler, on this machine or others.

Dask's messages are pickles, and its tasks any code: whoever may talk to the scheduler runs code as
its workers' users, and, by their answers, as this one. So the scheduler must be encrypted, and know
its clients by their certificates, unless the user says that it need not.
"""

from __future__ import annotations

import os.path
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleaf.core.extras import require
from ringleaf.errors import BackendError, ConfigError
from ringleaf.experiments.runs.isolated_run import Leavings, run_apart

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

CONNECT_S = 10
"""Seconds that a named scheduler may take to answer."""

ENCRYPTED = "tls://"

_FILES = {"tls-ca-file": "tls_ca_file", "tls-cert": "tls_client_cert", "tls-key": "tls_client_key"}
"""Our options, which are called as those of `dask scheduler`, and Dask's names of them."""


@dataclass(frozen=True, slots=True)
class DaskScheduler:
    """A Dask scheduler, and how it and this process know each other.

    Files that are not named are those of Dask's own configuration.

    Args:
        address: `tls://host:8786`.
        ca_file: The certificate of who vouches for the scheduler, its workers and this process.
        cert: This process's certificate.
        key: Its private key.
        unencrypted: Whether the scheduler has no encryption, and trusts whoever reaches it.
    """

    address: str
    ca_file: str | None = None
    cert: str | None = None
    key: str | None = None
    unencrypted: bool = False

    @property
    def trusted(self) -> str:
        """A line that says who can run code as this user from now on."""
        if self.unencrypted:
            return (
                f"# runs on {self.address}, unencrypted: whoever reaches its port, or a wire on "
                "the way, can run code as you"
            )
        return (
            f"# runs on {self.address}: whoever has a key that its CA vouches for can run code "
            "as you"
        )

    def check(self) -> None:
        """Check that it is encrypted, or need not be.

        Raises:
            ConfigError: If it is not, or certificates are missing.
        """
        is_encrypted = self.address.startswith(ENCRYPTED)
        if not is_encrypted and not self.unencrypted:
            raise ConfigError(
                f"on: must be an encrypted scheduler, {ENCRYPTED}HOST:PORT, got {self.address!r}; "
                "start `dask scheduler` and its workers with --tls-ca-file, --tls-cert and "
                "--tls-key, or say --unencrypted: then whoever reaches its port can run code as you"
            )
        named = [name for name, file in self._named.items() if file is not None]
        if self.unencrypted and (is_encrypted or named):
            got = f"--{named[0]}" if named else self.address
            raise ConfigError(
                f"on: an unencrypted scheduler has no certificates, got {got!r} and --unencrypted; "
                "leave one out"
            )

    @property
    def _named(self) -> dict[str, str | None]:
        return dict(zip(_FILES, (self.ca_file, self.cert, self.key), strict=True))

    def security(self) -> Security:
        """Return what Dask is to know of certificates.

        Raises:
            ConfigError: If a file is missing, or the key can be read by everybody.
        """
        from distributed.security import Security

        if self.unencrypted:
            return Security(require_encryption=False)
        named = {_FILES[name]: file for name, file in self._named.items() if file is not None}
        security = Security(require_encryption=True, **named)
        for name, known in _FILES.items():
            _check_file(name, getattr(security, known))
        return security


def _check_file(name: str, path: str | None) -> None:
    if not path:
        raise ConfigError(
            f"on: an encrypted scheduler needs --{name} FILE, got none, and none in Dask's "
            "configuration"
        )
    if "\n" in path:  # Dask's configuration may have the text itself
        return
    if not os.path.isfile(path):
        raise ConfigError(f"on: no such file, got --{name} {path!r}; name one in PEM")
    mode = Path(path).stat().st_mode
    if name == "tls-key" and mode & stat.S_IROTH:
        raise ConfigError(
            f"on: everybody can read the key, got {path!r} with {stat.filemode(mode)}; "
            f"chmod 600 {path}"
        )


def run_there(
    cases: Mapping[str, Mapping[str, Any]], scheduler: DaskScheduler
) -> Iterator[tuple[str, Leavings]]:
    """Perform runs by a scheduler's workers, and yield each one's name and output as it ends.

    Raises:
        ConfigError: If `distributed` is missing, or the scheduler does not answer.
        BackendError: If one run has killed several workers.
        RingleafError: The error that a run raised.
    """
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    with _client(scheduler) as client:
        names = {
            client.submit(run_apart, dict(case), pure=False): name for name, case in cases.items()
        }
        for future in as_completed(names):
            try:
                yield names[future], future.result()
            except KilledWorker as error:
                raise BackendError(
                    f"run {names[future]}: every worker that tried it died, got {error}; "
                    "it may need more memory than there is"
                ) from error


@contextmanager
def _client(scheduler: DaskScheduler) -> Iterator[Client]:
    """Yield a connection to a scheduler."""
    from distributed import Client

    try:
        client = Client(scheduler.address, security=scheduler.security(), timeout=CONNECT_S)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"on: no Dask scheduler answers, got {scheduler.address!r}: {error}; "
            "start one with `dask scheduler`, and workers beside it with `dask worker`"
        ) from error
    with client:
        yield client


def check_dask() -> None:
    """Check that Dask is installed.

    Raises:
        ConfigError: If it is not, with the command that installs it.
    """
    require("distributed", "on: a Dask scheduler")
