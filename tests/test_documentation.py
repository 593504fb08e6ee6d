"""README is short, links lead somewhere, menus have all pages, and commands are typed one way.

`make docs` builds the pages strictly, in CI; the tests here need no build.
"""

from __future__ import annotations

import re
import runpy
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import yaml

import ringleaf
from ringleaf.experiments.commands.cli import COMMANDS
from ringleaf.experiments.runs.request import typed
from ringleaf.experiments.workloads.collective.rows import CollectiveRow

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = sorted(DOCS.rglob("*.md"))
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]*)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
ABOUT_MAKE = {"docs/install.md", "docs/reference/options.md"}
OWN_VARIABLES = {"docs/how-to/live-networks.md"}  # of `make bench-live`
CHAPTER = [DOCS / "architecture.md", *sorted((DOCS / "architecture").glob("*.md"))]
PICTURES = runpy.run_path(str(ROOT / ".ci" / "pictures.py"))
TYPED_ELSEWHERE = {
    *(".", "git", "dask", "marimo", "mininet>", "mn", "openssl", "p4c-bm2-ss", "pip", "printf"),
    "tshark",
}
"""First words of commands that are other programs', or the shell's."""
INSTRUMENT = re.compile(r"python -m (ringleaf|bench|studies)\.")
VARIABLE = re.compile(r"^[A-Z_]+=('[^']*'|\S*) torchrun ")
MAKE_FOR_RUNS = re.compile(r"\bmake (exp|step|net|trace|replay|topo|clean-net)\b")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """Return the headings to which a link leads on GitHub as well as in the site."""
    found = set()
    for heading in HEADING.findall(FENCE.sub("", page.read_text())):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        kept = re.sub(r"[^\w\s-]", "", text).strip().lower()
        slug = re.sub(r"\s", "-", kept)
        if slug == re.sub(r"[-\s]+", "-", kept) and slug.isascii():
            found.add(slug)
    return found


def broken(page: Path, inside: Path) -> Iterator[str]:
    """Yield links of a page that lead nowhere, or out of the folder `inside`."""
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if link.startswith(("http://", "https://")):
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        leads = path.exists() and path.is_relative_to(inside)
        if not leads or (anchor and anchor not in anchors(path)):
            yield link


def linked(entry: object) -> Iterator[str]:
    """Yield the pages of a part of the navigation."""
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        entry = list(entry.values())
    if isinstance(entry, list):
        for part in entry:
            yield from linked(part)


def test_readme_is_short() -> None:
    text = README.read_text()

    assert len(text.splitlines()) <= 150
    assert len(text.split()) <= 1000


def test_readme_sets_up_runs_and_tests_by_two_commands_one_and_one() -> None:
    shells = re.findall(r"```sh\n(.*?)```", README.read_text(), re.DOTALL)
    commands = [
        [line.partition("#")[0].strip() for line in shell.splitlines()] for shell in shells[:3]
    ]

    assert len(commands[0]) == 2
    assert commands[0][0].startswith("git clone ")
    assert commands[0][1:] == ["make venv"]
    assert commands[1:] == [["make exp TOPO=fattree"], ["make test"]]


def test_readme_has_a_picture_and_three_doors() -> None:
    text = README.read_text()

    assert len(re.findall(r"^!\[.+\]\(docs/figures/.+\)$", text, re.MULTILINE)) == 1
    for door in ("researchers", "students", "ci"):
        assert f"](docs/how-to/{door}.md)" in text
        assert f"](how-to/{door}.md)" in (DOCS / "index.md").read_text()
    assert "](docs/limits.md)" in text


@pytest.mark.parametrize("page", [README, ROOT / "CONTRIBUTING.md", *PAGES], ids=name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    """Pages of the site keep to `docs`: a site has nothing else."""
    inside = DOCS if page.is_relative_to(DOCS) else ROOT
    assert list(broken(page, inside)) == []


def test_broken_links_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    links = "[x](#one-two) [x](b.md) [x](#one) [x](../c.md)"
    page.write_text(f"# One, two\n{links}\n```\n[x](d)\n```\n")
    (tmp_path.parent / "c.md").write_text("")

    assert list(broken(page, tmp_path)) == ["b.md", "#one", "../c.md"]


def test_every_page_is_in_the_navigation_once() -> None:
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert sorted(linked(menu)) == sorted(str(page.relative_to(DOCS)) for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_are_typed_in_one_way(page: Path) -> None:
    """`ringleaf ...`; `make` has what a clone needs, and `python -m` the modules that there are."""
    text = page.read_text()

    assert ".venv/bin/ringleaf" not in text
    assert ".venv/bin/python" not in text
    assert name(page) in ABOUT_MAKE or not MAKE_FOR_RUNS.search(text)
    variables = set(re.findall(r"`([A-Z_]+)=", FENCE.sub("", text)))
    assert name(page) in OWN_VARIABLES or not variables & {
        each.variable for each in typed().values()
    }


def typed_lines(text: str) -> Iterator[str]:
    """Yield the commands of a page's shells, without what they print."""
    for shell in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        for line in shell.replace("\\\n", " ").splitlines():
            if line and line[0] not in "# 0123456789":
                yield line


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_command_is_ringleafs_makes_an_instrument_or_another_programs(page: Path) -> None:
    for line in typed_lines(page.read_text()):
        first = line.split()[0]
        is_ours = first in ("ringleaf", "make") or INSTRUMENT.match(line)
        assert is_ours or first in TYPED_ELSEWHERE or VARIABLE.match(line), line


def test_other_dialects_are_noticed() -> None:
    page = "```sh\nringleaf run\npython3 run.py\n./run\n```\n"
    assert [line.split()[0] for line in typed_lines(page)] == ["ringleaf", "python3", "./run"]


def test_the_install_page_alone_says_how_commands_are_typed() -> None:
    heading = "## How commands are typed\n"
    pages = [name(page) for page in PAGES if heading in page.read_text()]

    assert pages == ["docs/install.md"]
    assert "](install.md)" in (DOCS / "index.md").read_text()


@pytest.mark.parametrize("page", [README, *PAGES], ids=name)
def test_modules_that_are_named_exist(page: Path) -> None:
    for module in re.findall(r"python -m ringleaf\.([\w.]+\w)(?!\.\.)", page.read_text()):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module


def test_the_page_of_commands_has_them_all() -> None:
    page = (DOCS / "reference" / "commands.md").read_text()
    listed = re.findall(r"^\| `ringleaf ([\w-]+)`", page, re.MULTILINE)

    assert sorted(listed) == sorted(COMMANDS)


def test_the_page_of_results_has_the_columns_that_scripts_read() -> None:
    section = (DOCS / "reference" / "results.md").read_text().partition("## results.csv\n")[2]
    rows = re.findall(r"^\| (`[^|]*`) \|", section.partition("## The files")[0], re.MULTILINE)

    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(each.name for each in fields(CollectiveRow))


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())

    assert citation["version"] == ringleaf.__version__
    assert citation["license"] == "Apache-2.0"
    assert {"cff-version", "message", "title", "authors"} <= set(citation)


def tracked() -> set[str]:
    """Return the repository's files and folders, by paths from its top."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.splitlines()
    return {*listed, *(str(folder) for path in listed for folder in Path(path).parents)}


@pytest.fixture(scope="module")
def ends() -> set[str]:
    """Return the ends of paths by which pages may name files: `hosts/rc/layers.py`, `layers.py`."""
    parts = [Path(path).parts for path in tracked()]
    return {"/".join(each[start:]) for each in parts for start in range(len(each))}


PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*|\w+\.(?:py|yaml))`")
MADE = ("runs/", "p4/build/")
"""Folders of which a clone has not all."""


@pytest.mark.parametrize("page", CHAPTER, ids=name)
def test_files_that_the_architecture_names_exist(page: Path, ends: set[str]) -> None:
    named = [path.rstrip("/") for path in PATH.findall(page.read_text())]
    missing = [path for path in named if path not in ends and f"{path}.py" not in ends]

    assert [path for path in missing if not path.startswith(MADE)] == []


@pytest.mark.parametrize("page", CHAPTER, ids=name)
def test_a_page_of_the_architecture_has_a_picture_and_is_short(page: Path) -> None:
    text = page.read_text()

    assert re.search(r"^!\[.+\]\([\w/-]+\.svg\)$", text, re.MULTILINE)
    assert len(text.split()) <= 1600


@pytest.mark.parametrize("name", PICTURES["pictures"]())
def test_a_picture_is_what_its_rows_say(name: str) -> None:
    """`python .ci/pictures.py` mends a difference."""
    picture = PICTURES["pictures"]()[name]
    boxes, _ = PICTURES["place"](picture["rows"])

    assert (DOCS / f"{name}.svg").read_text() == PICTURES["draw"](picture)
    for box in boxes.values():
        assert not box.is_room or (ROOT / picture["in"] / box.name).exists(), box.name


def test_boxes_of_a_picture_are_apart_and_inside() -> None:
    for name, picture in PICTURES["pictures"]().items():
        boxes, height = PICTURES["place"](picture["rows"])
        for box in boxes.values():
            assert 0 < box.x < box.x + box.width < PICTURES["WIDTH"], name
            assert 0 < box.y < box.y + box.height < height, name
            longest = max(map(len, box.lines), default=0) * PICTURES["LETTER"]
            assert max(longest, len(box.title) * PICTURES["WIDE_LETTER"]) <= box.width, box.name


def test_a_page_that_loads_from_another_host_is_noticed() -> None:
    loaded = runpy.run_path(str(ROOT / ".ci" / "site.py"))["loaded"]
    page = (
        '<a href="https://a.example/">a</a><link rel="canonical" href="https://b.example/">'
        '<script src="assets/own.js"></script><script async src="https://c.example/x.js"></script>'
        '<link rel="stylesheet" href="//d.example/x.css"><img src="figures/a.png">'
    )
    assert loaded(page) == ["https://c.example/x.js", "//d.example/x.css"]


def test_the_page_on_citing_names_the_source_of_all_that_has_one() -> None:
    """`python .ci/citing.py` mends a difference."""
    tool = runpy.run_path(str(ROOT / ".ci" / "citing.py"))
    page = (DOCS / "citing.md").read_text()

    assert page.partition(tool["HEADING"])[2].strip() == tool["tables"]().strip()
    assert f"version = {{{ringleaf.__version__}}}" in page


def test_a_term_of_the_glossary_has_one_meaning() -> None:
    rows = re.findall(r"^\| \*\*(.+?)\*\* \|", (DOCS / "glossary.md").read_text(), re.MULTILINE)

    assert len(rows) > 60
    assert len(set(rows)) == len(rows)


def test_the_extra_docs_has_the_theme_and_the_plugins() -> None:
    site = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)
    plugins = [each if isinstance(each, str) else next(iter(each)) for each in site["plugins"]]
    wanted = [("mkdocs.themes", site["theme"]["name"]), *(("mkdocs.plugins", n) for n in plugins)]
    tool = runpy.run_path(str(ROOT / ".ci" / "notice.py"))
    extra = tool["needs"]("ringleaf", "docs")

    for group, name in wanted:
        (point,) = entry_points(group=group, name=name)
        assert point.dist is not None
        assert tool["normal"](point.dist.name) in extra, name


def test_the_build_is_strict_and_ci_does_it() -> None:
    """With `--quiet`, mkdocs counts no warnings, and a strict build forgives them."""
    (line,) = re.findall(r"^\t.*mkdocs build.*$", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert line.split()[1:] == ["-m", "mkdocs", "build", "--strict"]
    assert "\nmake docs\n" in (ROOT / ".ci" / "run").read_text()
