"""The page: what it holds without a browser, and what it does in headless Chromium."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ringleaf.experiments.stepper.layout import lay_out
from ringleaf.experiments.stepper.page import BLANK, render
from ringleaf.experiments.stepper.request import step_request
from ringleaf.experiments.stepper.story import Cursor, Story, show_who
from ringleaf.experiments.stepper.story_maker import tell
from ringleaf.topologies import registry

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
)

DRIVER = """
<script>
const log = [];
const note = (name) => log.push([name, {
  at: Number(document.getElementById("scrub").value),
  hash: location.hash,
  title: document.getElementById("title").textContent,
  count: document.getElementById("count").textContent,
  who: [...document.querySelectorAll("#buffers .who")].map((cell) => cell.textContent),
  changed: document.querySelectorAll("#buffers .changed").length,
  done: document.querySelectorAll("#buffers .done").length,
  rows: [...document.querySelectorAll("#switches tbody tr, #switches table > tr")].map((row) =>
    [...row.cells].map((cell) => cell.textContent)),
  pills: [...document.querySelectorAll(".pill text")].map((pill) => pill.textContent),
  links: document.querySelectorAll(".linkrow").length,
  listed: [...document.querySelectorAll("#rows .frame")].map((row) => row.textContent),
  play: document.getElementById("play").textContent,
  wide: document.documentElement.scrollWidth - innerWidth,
}]);
const press = (key) => document.body.dispatchEvent(
  new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const click = (id) => document.getElementById(id).click();
const end = () => { const out = document.createElement("pre"); out.id = "log";
  out.textContent = JSON.stringify(log); document.body.append(out); };
"""

WALK = (
    DRIVER
    + """
note("opened");
for (const key of ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "End", "Home"]) {
  press(key); note(key);
}
for (const id of ["next", "step-next", "back", "step-back", "last", "first"]) {
  click(id); note(`#${id}`);
}
document.getElementById("scrub").value = 5;
document.getElementById("scrub").dispatchEvent(new Event("input"));
note("scrub");
document.querySelectorAll("#rows .frame")[8].click();
note("row");
location.hash = "#step=2";
setTimeout(() => {
  note("hash");
  press("End"); press("ArrowLeft"); press("ArrowLeft"); press(" "); note("play");
  setTimeout(() => { note("played"); click("play"); note("again"); press(" "); end(); }, 9000);
}, 50);
</script>
"""
)


# What is painted of each cell of the matrix, and between the cells.
CELLS = (
    DRIVER
    + """
press("End"); press("ArrowLeft");
{
const canvas = document.querySelector("#buffers canvas"), rows = ROWS;
const scale = canvas.width / parseFloat(canvas.style.width);
const [left, top, wide, high, gap] =
  ["left", "top", "wide", "high", "gap"].map((name) => Number(canvas.dataset[name]));
const pen = canvas.getContext("2d", { willReadFrequently: true });
const pixels = (x, y, w, h) => {
  const { data } = pen.getImageData(x * scale, y * scale, w * scale, h * scale);
  return Array.from({ length: data.length / 4 }, (_, i) => [...data.slice(4 * i, 4 * i + 3)]);
};
const vivid = (color) => Math.max(...color) - Math.min(...color) > 60;
let painted = 0, between = 0;
for (let row = 0; row < rows; row++) for (let column = 0; column < rows; column++) {
  const x = left + column * wide, y = top + row * high;
  painted += pixels(x, y, wide - gap, high - gap).some(vivid);
  between += !pixels(x + wide - gap, y, gap, high - gap).some(vivid);
}
log.push(["cells", {
  painted, between, width: canvas.clientWidth,
  room: document.getElementById("buffers").clientWidth,
  elements: document.querySelectorAll("*").length,
  what: document.getElementById("cell").textContent,
}]);
}
end();
</script>
"""
)


@pytest.fixture(scope="module")
def ring() -> Story:
    return tell(step_request("ring", ranks=4, elements=8))


@pytest.fixture(scope="module")
def large() -> Story:
    return tell(step_request("ring", ranks=64))


@pytest.fixture(scope="module")
def switchml() -> Story:
    return tell(step_request("switchml", topo="leafspine,leaves=2,spines=1,hosts=2"))


def story_of(page: str) -> dict[str, Any]:
    found = re.search(r'id="story">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_the_page_asks_the_network_for_nothing(ring: Story) -> None:
    page = render(ring)

    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"|@import|url\(|fetch\(', page) == []
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)\S+", page) == []


def test_without_a_script_it_is_the_transcript(ring: Story) -> None:
    page = unescape(render(ring))

    for frame in ring.frames:
        assert f"<b>{frame.title}</b>" in page
        assert frame.text in page
    assert page.count('class="stage"') == ring.steps


def test_the_script_gets_the_same_states_as_python(switchml: Story) -> None:
    data = story_of(render(switchml))
    buffers = [list(row) for row in data["first"]]
    cursor = Cursor(switchml)

    for number, frame in enumerate(data["frames"], 1):
        changes = frame[7]
        for i in range(0, len(changes), 3):
            buffers[changes[i]][changes[i + 1]] = changes[i + 2]
        cursor.go(number)
        for rank, cells in enumerate(cursor.buffers):
            for cell, held in enumerate(cells):
                who, *numbers = data["cells"][buffers[rank][cell]]
                text = data["who"][who]
                assert (text, tuple(numbers)) == (show_who(held.who, 4), held.numbers)


@pytest.mark.parametrize("told", ["ring", "switchml"])
def test_the_script_gets_the_same_sentences_as_python(
    told: str, request: pytest.FixtureRequest
) -> None:
    story: Story = request.getfixturevalue(told)
    data = story_of(render(story))

    def say(pattern: int, *numbers: int) -> str:
        head, *parts = data["patterns"][pattern].split(BLANK)
        return str(head) + "".join(
            f"{number}{part}" for number, part in zip(numbers, parts, strict=True)
        )

    for sent, frame in zip(data["frames"], story.frames, strict=True):
        assert [say(*text) for text in sent[1:4]] == [frame.title, frame.text, frame.label]
        assert data["actions"][sent[0]] == frame.action.value
        assert tuple(data["paths"][sent[4]]) == frame.path


def test_a_page_of_64_ranks_is_small_and_without_a_script_still_tells_the_steps(
    large: Story,
) -> None:
    page = render(large)

    assert len(page.encode()) < 1_000_000
    assert page.count('class="stage"') == 2 * 63
    assert "ringleaf step ring --ranks 64 --elements 128 --plain" in unescape(page)


def star(count: int) -> str:
    return f"leafspine,leaves=1,spines=0,hosts={count}"


@pytest.mark.parametrize(
    "topo",
    [*registry.TOPOLOGIES, "fattree,k=8", "bcube,n=8,k=1", "leafspine,leaves=8,spines=4,hosts=8"]
    + [star(count) for count in (2, 16, 17, 32, 64, 128)],
)
def test_no_box_of_a_topology_lies_on_another(topo: str) -> None:
    graph = registry.build(topo)
    layout = lay_out(graph)

    def overlap(a: str, b: str) -> bool:
        return all(
            abs(layout.at[a][i] - layout.at[b][i]) < (layout.size[a][i] + layout.size[b][i]) / 2
            for i in (0, 1)
        )

    assert [pair for pair in combinations(graph, 2) if overlap(*pair)] == []
    assert all(0 < x < layout.width and 0 < y < layout.height for x, y in layout.at.values())


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
class TestInChromium:
    def browse(self, folder: Path, page: str, script: str, size: str, at: str = "") -> str:
        """Return the document as it is when the script is over; time is virtual."""
        assert CHROMIUM is not None
        file = folder / "page.html"
        file.write_text(page.replace("</body>", f"{script}</body>"))
        done = subprocess.run(
            [
                CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", f"--window-size={size}",
                "--virtual-time-budget=20000", "--dump-dom", f"file://{file}{at}",
            ],
            capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
        return done.stdout

    def log(self, document: str) -> dict[str, dict[str, Any]]:
        found = re.search(r'<pre id="log">(.*?)</pre>', document, re.DOTALL)
        assert found is not None, document[-2000:]
        return dict(json.loads(unescape(found[1])))

    def test_keys_buttons_and_time_walk_through_it(self, tmp_path: Path, ring: Story) -> None:
        log = self.log(self.browse(tmp_path, render(ring), WALK, "1280,800"))

        assert {name: seen["at"] for name, seen in log.items()} == {
            "opened": 0, "ArrowRight": 1, "ArrowDown": 4, "ArrowLeft": 3, "ArrowUp": 0, "End": 24,
            "Home": 0, "#next": 1, "#step-next": 4, "#back": 3, "#step-back": 0, "#last": 24,
            "#first": 0, "scrub": 5, "row": 9, "hash": 2, "play": 23, "played": 24, "again": 1,
        }  # fmt: skip
        assert log["played"]["hash"] == "#step=24"  # it follows when nothing moves any more
        assert log["opened"]["listed"][:2] == [frame.title for frame in ring.frames[:2]]
        assert log["ArrowRight"]["title"] == ring.frames[0].title
        assert log["ArrowDown"]["title"].startswith("4 at once: h0→h1, h1→h2")
        assert log["ArrowDown"]["pills"] == ["chunk 0", "chunk 1", "chunk 2", "chunk 3"]
        assert (log["ArrowDown"]["changed"], log["ArrowRight"]["changed"]) == (4, 1)
        assert log["ArrowDown"]["links"] == 8
        assert (log["End"]["done"], log["End"]["who"]) == (16, ["Σ all"] * 16)
        assert log["Home"]["who"] == [f"{{{rank}}}" for rank in range(4) for _ in range(4)]
        assert "Pause" in log["play"]["play"]
        assert "Play" in log["played"]["play"]
        assert max(seen["wide"] for seen in log.values()) <= 0

    def test_switches_on_a_phone_from_a_link(self, tmp_path: Path, switchml: Story) -> None:
        script = f'{DRIVER}note("there"); press("ArrowLeft"); note("back"); end();</script>'

        log = self.log(self.browse(tmp_path, render(switchml), script, "390,844", "#step=2"))

        assert log["there"]["at"] == 2
        assert log["there"]["rows"][0][:5] == ["0", "0", "0", "h0h1", "complete"]
        assert log["there"]["rows"][0][5].startswith("Σ{0,1} = ")
        assert log["back"]["rows"][0][4] == "sum"
        assert max(seen["wide"] for seen in log.values()) <= 0

    @pytest.mark.parametrize("ranks", [16, 64])
    def test_many_cells_keep_to_their_places(
        self, tmp_path: Path, large: Story, ranks: int
    ) -> None:
        story = large if ranks == 64 else tell(step_request("ring", ranks=ranks))
        script = CELLS.replace("ROWS", str(ranks))

        document = self.browse(tmp_path, render(story), script, "1280,800")

        seen = self.log(document)["cells"]
        assert (seen["painted"], seen["between"]) == (ranks**2, ranks**2)
        assert seen["width"] <= seen["room"]
        assert seen["elements"] < 3000
        change = story.frames[-2].buffers[0]
        assert seen["what"].startswith(f"rank {change.rank}, chunk {change.cell}: Σ all = ")


@pytest.mark.parametrize("name", ["degraded.graphml", "jellyfish.edges", "two_racks.edges"])
def test_a_file_s_topology_has_places(name: str) -> None:
    """A file need not say where nodes are."""
    topo = str(Path(__file__).parents[3] / "examples" / "topologies" / name)
    graph = registry.build(topo)
    assert set(lay_out(graph).at) == set(graph)
