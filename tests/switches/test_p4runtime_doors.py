"""Who can connect to a P4Runtime server: by its socket's file, and by its token."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from finsy.proto import p4r, p4r_grpc

from ringleaf.errors import BackendError, ConfigError
from ringleaf.experiments.commands import shell
from ringleaf.experiments.commands.serve import check_open, read_token, serve
from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.server.server import P4RuntimeServer

TOKEN = "a token of this test"
Metadata = Sequence[tuple[str, str]]


def capabilities(address: str, metadata: Metadata = ()) -> Any:
    with grpc.insecure_channel(address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        return stub.Capabilities(p4r.CapabilitiesRequest(), timeout=20, metadata=metadata)


def read(address: str, metadata: Metadata = ()) -> Any:
    with grpc.insecure_channel(address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        return list(stub.Read(p4r.ReadRequest(device_id=9), timeout=20, metadata=metadata))


def test_a_socket_is_its_user_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "p4.sock"
    with P4RuntimeServer([SharedDevice(1)], f"unix:{path}") as server:
        assert server.address == f"unix:{path}"
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        assert capabilities(server.address).p4runtime_api_version


@pytest.mark.parametrize("call", [capabilities, read])
@pytest.mark.parametrize(
    "metadata", [(), (("authorization", TOKEN),), (("authorization", f"Bearer {TOKEN}x"),)]
)
def test_calls_without_the_token_are_turned_away(call: Any, metadata: Metadata) -> None:
    with (
        P4RuntimeServer([SharedDevice(1)], token=TOKEN) as server,
        pytest.raises(grpc.RpcError) as caught,
    ):
        call(server.address, metadata)
    assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
    assert "wants metadata 'authorization: Bearer TOKEN'" in caught.value.details()


def test_calls_with_the_token_are_answered() -> None:
    given = (("authorization", f"Bearer {TOKEN}"),)
    with P4RuntimeServer([SharedDevice(1)], token=TOKEN) as server:
        assert capabilities(server.address, given).p4runtime_api_version
        with pytest.raises(grpc.RpcError) as caught:
            read(server.address, given)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND  # it has no device 9


@pytest.mark.parametrize("address", ["0.0.0.0:9559", "[::]:0", "192.0.2.1:9559"])
def test_beyond_this_machine_a_token_is_needed(address: str) -> None:
    with pytest.raises(ConfigError, match="listens beyond this machine only with a token, got"):
        P4RuntimeServer([], address)
    P4RuntimeServer([], address, token=TOKEN)


@pytest.mark.parametrize("token", [None, Path("token")])
def test_a_port_has_a_token_or_is_open_by_intent(token: Path | None) -> None:
    with pytest.raises(
        ConfigError, match=r"a port needs a token, or none by intent, got --grpc a:1"
    ):
        check_open("a:1", token, is_open=token is not None)
    check_open("a:1", token, is_open=token is None)


def test_a_socket_is_open_to_nobody_else(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--no-token is for a port, got --grpc unix:"):
        check_open(f"unix:{tmp_path / 'switch.sock'}", None, is_open=True)


def test_p4info_goes_with_a_program(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--p4info goes with a program, got 'my.txtpb' alone"):
        serve(
            None,
            p4info=Path("my.txtpb"),
            address=f"unix:{tmp_path}",  # which no server can have
            first=1,
            count=1,
            ports=8,
            cpu_port=None,
            emit=print,
        )


def test_a_socket_in_use_is_left_alone(tmp_path: Path) -> None:
    address = f"unix:{tmp_path / 'switch.sock'}"
    check_open(address, None, is_open=False)
    with P4RuntimeServer([SharedDevice(1)], address):
        with pytest.raises(BackendError, match=r"can't listen, got unix:.*another switch does"):
            check_open(address, None, is_open=False)
        assert capabilities(address).p4runtime_api_version


def test_the_shell_finds_the_socket_that_switches_take_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, mine = tmp_path / "other", tmp_path / "mine"
    monkeypatch.setattr(shell, "state_folders", lambda: [other, mine])
    assert shell.find_default() == f"unix:{mine}/switch.sock"
    for folder in (other, mine):
        folder.mkdir(mode=0o700)
    assert shell.find_default() == f"unix:{other}/switch.sock"
    (mine / "switch.sock").touch()
    assert shell.find_default() == f"unix:{mine}/switch.sock"
    mine.chmod(0o777)  # so anybody may have put it there
    assert shell.find_default() == f"unix:{other}/switch.sock"


def test_a_token_is_made_once_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = read_token(path)
    assert len(token) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_token(path) == token
    for mode in (0o666, 0o644, 0o640):
        path.chmod(mode)
        with pytest.raises(ConfigError, match="only you can read and write; chmod 600 it"):
            read_token(path)
    path.chmod(0o600)
    path.write_text("short")
    with pytest.raises(ConfigError, match="must be 16 letters or more, got 5"):
        read_token(path)
    with pytest.raises(ConfigError, match=r"token .*: can't be read or made: .*No such file"):
        read_token(tmp_path / "no" / "token")
