"""Whatever things are called, pages and reports are what they were meant to be."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ringleaf.experiments.pages.data import for_script
from ringleaf.experiments.replay.junit import TraceResult, write_junit
from ringleaf.experiments.spec.options import file_name
from ringleaf.experiments.walk.highlight import highlight
from ringleaf.experiments.walk.page import render
from ringleaf.experiments.workloads.collective.kind import run_name
from ringleaf.switches.stf.junit import write_junit as write_stf_junit
from ringleaf.switches.stf.outcome import StfOutcome, StfVerdict
from ringleaf.switches.walk.steps import Executed, PacketWalk, SourceLine

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    "\"' onmouseover='alert(1)",
    "a\0b\x1b[2J\u2028\ufffe",
    "&lt;script&gt;",
)


class Scripts(HTMLParser):
    """Counts what may run: scripts, and attributes that are code."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "img", "iframe", "object"):
            self.found.append(tag)
        self.found += [name for name, _ in attrs if name.startswith("on")]


def scripts(page: str) -> list[str]:
    parser = Scripts()
    parser.feed(page)
    return parser.found


@pytest.mark.parametrize("text", HOSTILE)
def test_data_of_scripts_is_data(text: str) -> None:
    shown = for_script({"names": [text, {text: text}]})
    assert not set(shown) & set("<>&")
    assert json.loads(shown) == {"names": [text, {text: text}]}


@pytest.mark.parametrize("text", HOSTILE)
def test_walks_show_names_and_no_more(text: str) -> None:
    step = Executed(op=text, statement=text, place=SourceLine(text, 1))
    walk: Any = PacketWalk(program=text, steps=(step,), out=(), sources={text: (text, text)})
    assert scripts(render(walk, text)) == ["script", "script"]  # our data, and our script
    assert "<" not in re.sub(r"</?em[^<>]*>", "", highlight(text))


@pytest.mark.parametrize("text", HOSTILE)
def test_junit_is_xml(text: str, tmp_path: Path) -> None:
    write_junit(tmp_path / "a.xml", [TraceResult(text, 0.0, error=text)])
    outcome: Any = StfOutcome(text, StfVerdict.FAILED, text, (text,), 0.0)
    write_stf_junit(tmp_path / "b.xml", [outcome])
    wanted = re.sub("[\0\x1b\ufffe]", "?", text)
    (error,) = ElementTree.parse(tmp_path / "a.xml").getroot().iter("error")
    (failure,) = ElementTree.parse(tmp_path / "b.xml").getroot().iter("failure")
    assert error.get("message") == failure.get("message") == failure.text == wanted


@pytest.mark.parametrize("text", [*HOSTILE, "../../x", "/etc", "..", ".", "", "a\nb", "é" * 300])
def test_folders_have_plain_names(text: str) -> None:
    for name in (run_name({"topo": text}), run_name({"topo": "star", "spec": text, "algo": text})):
        assert re.fullmatch(r"[A-Za-z0-9,=.%+_-]{1,160}", name)
        assert name.strip(".")
    assert file_name("fattree,k=4-loss=0.1%") == "fattree,k=4-loss=0.1%"


def test_folders_of_names_in_other_scripts_stay_apart() -> None:
    assert run_name({"topo": "сеть.json"}) != run_name({"topo": "граф.json"})
    assert file_name("网络") != file_name("拓扑")
    assert file_name(file_name("网络")) == file_name("网络")
