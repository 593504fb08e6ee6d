"""What markers require, and how a run ends: skips counted by reason, hung tests ended."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = (Path(__file__).parent / "conftest.py").read_text()
MARKERS = "[pytest]\nmarkers =\n  live: x\n  bmv2: x\n  p4c: x\n  shell: x\n"

pytest_plugins = ["pytester"]


@pytest.fixture
def tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Return a folder for tests, on a machine with nothing optional."""
    monkeypatch.setenv("PATH", "")
    pytester.makeconftest(CONFTEST)
    pytester.makefile(".ini", pytest=MARKERS)
    return pytester


def test_the_last_line_counts_skips_by_reason(tests: pytest.Pytester) -> None:
    tests.makepyfile(
        """
        import pytest

        @pytest.mark.p4c
        @pytest.mark.parametrize("n", [1, 2])
        def test_compiler(n): raise AssertionError

        @pytest.mark.bmv2
        def test_bmv2(): raise AssertionError

        def test_other(): pass
        """
    )

    result = tests.runpytest_inprocess()

    result.assert_outcomes(passed=1, skipped=3)
    assert result.outlines[-1] == (
        "skipped: 2 x p4c-bm2-ss is not installed; 1 x BMv2's simple_switch_grpc is not installed"
    )


def test_live_tests_say_all_that_they_miss(tests: pytest.Pytester) -> None:
    tests.makepyfile(
        """
        import pytest

        @pytest.mark.live
        def test_network(): raise AssertionError
        """
    )

    result = tests.runpytest_inprocess()

    result.assert_outcomes(skipped=1)
    assert "mnexec: apt install mininet" in result.outlines[-1]


def test_nothing_skipped_is_said_too(tests: pytest.Pytester) -> None:
    tests.makepyfile("def test_all(): pass")

    assert tests.runpytest_inprocess().outlines[-1] == "skipped: none"


def test_packets_that_were_kept_from_bmv2_are_counted(tests: pytest.Pytester) -> None:
    tests.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", [3, 4])
        def test_differential(number, record_property):
            record_property("packets kept away from BMv2", number)
        """
    )

    *_, away, skipped = tests.runpytest_inprocess().outlines

    assert "built without its checks (Release): 7 packets" in away
    assert skipped == "skipped: none"


def test_a_test_that_hangs_ends_even_in_compiled_code(pytester: pytest.Pytester) -> None:
    """A compiled loop holds the interpreter's lock; only a watchdog outside of it can end it."""
    pytester.makefile(
        ".ini", pytest="[pytest]\nfaulthandler_timeout = 3\nfaulthandler_exit_on_timeout = true\n"
    )
    pytester.makepyfile(
        """
        from numba import njit

        @njit
        def loop(n):
            while n:
                n += 1 if n < 100 else -1
            return n

        def test_hangs():
            loop(1)
        """
    )

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=60)

    assert result.ret != 0
    result.stderr.fnmatch_lines(["*Timeout*", "*test_hangs*"])
