"""The names of fields are those of the P4 source, where it confirms them."""

from ringleaf.switches.source import FieldSource
from ringleaf.switches.walk.names import Names


def variable(name: str, text: str) -> str:
    return Names(text).field(FieldSource("scalars", name))


def test_a_variable_loses_what_the_compiler_has_put_around_its_name() -> None:
    assert variable("forwarding_nexthop_0", "bit<16> nexthop;") == "nexthop"


def test_a_number_in_a_comment_is_no_name() -> None:
    assert variable("depth_0", "bit<19> depth;  // from 0; packets") == "depth"
    assert variable("depth_0", "// from 0; packets") == "depth_0"
