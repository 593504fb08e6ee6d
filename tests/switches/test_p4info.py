"""P4Info that is none: what the hostile soak has found."""

from __future__ import annotations

from pathlib import Path

import pytest

from networks.traces.entries import load_schema, read_request
from ringleaf.errors import ConfigError
from switches.entities import Encoder, read_p4info

DEEP = "unknown {" * 3000
WITHOUT_TYPE = 'registers { preamble { id: 3 name: "r" } size: 8 }'


def test_nesting_has_an_end(tmp_path: Path) -> None:
    path = tmp_path / "deep.txtpb"
    path.write_text(DEEP)
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
