"""P4Info that is none: what the hostile soak has found."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleaf.errors import ConfigError
from ringleaf.networks.traces.entries import load_schema, read_request
from ringleaf.switches.p4runtime.finsy_entities import Encoder, read_p4info

DEEP = b"unknown {" * 3000
TOO_GREAT = b"device_id: 4722366482869645213695 arch: 1 pkg_info { arch: 2 }"
BINARY = b"\xff"
WITHOUT_TYPE = 'registers { preamble { id: 3 name: "r" } size: 8 }'


@pytest.mark.parametrize("text", [DEEP, TOO_GREAT, BINARY])
def test_what_protobuf_cannot_read_is_refused(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.txtpb"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match="not P4Info as text"):
        read_p4info(path)
    with pytest.raises(ConfigError, match="not P4Info as text"):
        load_schema(path, path)
    with pytest.raises(ConfigError, match=r"not a p4\.v1\.WriteRequest as text"):
        read_request(path)


def test_a_register_has_a_type(tmp_path: Path) -> None:
    path = tmp_path / "info.txtpb"
    path.write_text(WITHOUT_TYPE)
    with pytest.raises(
        ConfigError, match=r"x\.json: not P4Info that p4c writes, got unknown type_spec"
    ):
        Encoder(read_p4info(path), "x.json")
