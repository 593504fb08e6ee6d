"""Stand-ins for modules that are imported only when something of them is used."""

import sys

import pytest
from fresh_process import printed_by

from ringleaf.core.stand_ins import standing_in


def outcome(*lines: str) -> str:
    return printed_by("import sys", "from ringleaf.core.stand_ins import standing_in", *lines)


def test_a_module_is_imported_when_something_of_it_is_used() -> None:
    told = outcome(
        "with standing_in('wsgiref', 'headers'):",
        "    from wsgiref import headers",
        "print('wsgiref.headers' in sys.modules, hasattr(sys.modules['wsgiref'], 'headers'))",
        "print(headers.Headers().items(), 'wsgiref.headers' in sys.modules)",
        "from wsgiref import headers as whole",
        "print(whole.Headers is headers.Headers, whole is sys.modules['wsgiref.headers'])",
    )

    assert told == "False False\n[] True\nTrue True"


def test_one_that_is_used_meanwhile_stays() -> None:
    told = outcome(
        "with standing_in('wsgiref', 'headers'):",
        "    from wsgiref import headers",
        "    headers.Headers",
        "print(sys.modules['wsgiref'].headers is sys.modules['wsgiref.headers'])",
    )

    assert told == "True"


def test_one_that_is_imported_already_needs_none() -> None:
    with standing_in("importlib", "metadata"):
        from importlib import metadata

    assert metadata is sys.modules["importlib.metadata"]


def test_there_must_be_such_a_package() -> None:
    with pytest.raises(ImportError, match="no_such_package"), standing_in("no_such_package", "a"):
        pass
