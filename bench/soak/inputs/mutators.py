"""Mutators, which make broken and hostile input from good input."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

OWNED = "owned"
"""The file that code in hostile names creates if it is executed."""

CODE = f"__import__('pathlib').Path({OWNED!r}).touch()"

TEXTS = (
    *("", " ", "\n", "\0", "\x1b[2J", "\u2028", "\u202e", "\ud800", "'", '"', '"""', "\\", "\\\n"),
    *(f"x\n  {CODE}", f"x\n{CODE}\n#", f'"""\n{CODE}\n"""', f"x\r{CODE}", f"x\x0c{CODE}"),
    *("{0}", "{0.__class__}", "%s%n", "</script><script>alert(1)</script>", "'; touch owned; '"),
    *("$(touch owned)", "../../owned", "/etc/passwd", "!!python/object/apply:os.system [true]"),
    *("$valid$", "$stacks", "$engine", "__class__", "standard_metadata", "scalars", "lambda: 0"),
    *(
        "0x",
        "0x" + "f" * 5000,
        "-0x1",
        "0xffffffffffffffffff",
        "1e999",
        "9" * 5000,
        "é",
        "A" * 9999,
    ),
)
NUMBERS = (
    *(0, -1, 1, 7, 64, 65, 511, 512, 2048, 65_536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1),
    *(1 << 40, (1 << 63) - 1, 1 << 64, -(1 << 63), 10**400),
)
OTHERS: tuple[Any, ...] = (
    *(None, True, False, 1.5, -0.0, float("nan"), float("inf"), 1e308, [], {}, [[]], [None]),
    *({"type": "field", "value": ["ipv4", "$valid$"]}, {"op": "+"}, [[[[[[[[]]]]]]]]),
)

MOST_COPIED = 20_000
"""The most values that one change adds; copies of copies would take all memory."""

LONGEST_RENAMED = 1 << 22  # letters

Place = tuple[Any, Any]  # a list or object, and the index or key in it


def hostile_value(rng: random.Random) -> Any:
    """Return a value that is wrong in most places of a good document."""
    return rng.choice(rng.choice((TEXTS, NUMBERS, OTHERS)))


def places(document: Any) -> Iterator[Place]:
    """Yield all places of a JSON document."""
    waiting = [document]
    while waiting:
        item = waiting.pop()
        keys: Any = item.keys() if isinstance(item, dict) else range(len(item))
        for key in keys:
            yield item, key
            if isinstance(item[key], (dict, list)):
                waiting.append(item[key])


def leaf_places(document: Any) -> list[Place]:
    """Return the places of texts, numbers and other leaves, which are most of a document."""
    return [place for place in places(document) if not isinstance(place[0][place[1]], (dict, list))]


def mutate_json(rng: random.Random, text: bytes) -> bytes:
    """Return a document with a few changes, or with its bytes changed."""
    if rng.random() < 0.1:
        return mutate_bytes(rng, text)
    document = json.loads(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        rng.choice(_CHANGES)(rng, document)
    try:
        changed = json.dumps(document).encode("utf-8", "surrogatepass")
    except (RecursionError, ValueError):  # it holds itself, or is deeper than can be written
        return mutate_bytes(rng, text)
    return _nested(rng, changed) if rng.random() < 0.02 else changed


def _nested(rng: random.Random, text: bytes) -> bytes:
    """Nest a document so deep that recursion may fail."""
    before, after = rng.choice(((b"[", b"]"), (b'{"type": "expression", "value": ', b"}")))
    depth = rng.choice((10, 900, 20_000))
    return before * depth + text + after * depth


def _pick(rng: random.Random, document: Any) -> Place | None:
    """Return a random place, biased towards the few near the top."""
    item = document
    place: Place | None = None
    while isinstance(item, (dict, list)) and item:
        key = rng.choice(list(item)) if isinstance(item, dict) else rng.randrange(len(item))
        place = item, key
        item = item[key]
        if rng.random() < 0.12:
            break
    return place


def _replace(rng: random.Random, document: Any) -> None:
    place = _pick(rng, document)
    if place:
        place[0][place[1]] = copy.deepcopy(hostile_value(rng))


def _replace_alike(rng: random.Random, document: Any) -> None:
    """Replace a value by another one of the same type."""
    place = _pick(rng, document)
    if place is None:
        return
    old = place[0][place[1]]
    if isinstance(old, str):
        place[0][place[1]] = rng.choice((old + rng.choice(TEXTS), rng.choice(TEXTS)))
    elif type(old) is int:
        place[0][place[1]] = rng.choice((old + 1, old - 1, -old, 2 * old, rng.choice(NUMBERS)))
    elif type(old) is bool:
        place[0][place[1]] = not old


def _move(rng: random.Random, document: Any) -> None:
    """Put a copy of one part in another's place."""
    one, other = _pick(rng, document), _pick(rng, document)
    if one and other:
        one[0][one[1]] = copy.deepcopy(other[0][other[1]])


def _delete(rng: random.Random, document: Any) -> None:
    place = _pick(rng, document)
    if place:
        del place[0][place[1]]


def _repeat(rng: random.Random, document: Any) -> None:
    place = _pick(rng, document)
    if place and isinstance(place[0], list):
        item = place[0][place[1]]
        times = min(rng.choice((1, 2, 9, 300)), MOST_COPIED // _weight(item))
        place[0][place[1] : place[1]] = [copy.deepcopy(item) for _ in range(times)]


def _weight(item: Any) -> int:
    """Return about how many values a copy has, up to MOST_COPIED; long texts count as many."""
    count = 0
    for holder, key in places([item]):
        text = holder[key]
        count += 1 + (len(text) // 16 if isinstance(text, str) else 0)
        if count >= MOST_COPIED:
            break
    return count


def _rename(rng: random.Random, document: Any) -> None:
    """Replace a text wherever it occurs, so that references still fit."""
    texts = [place[0][place[1]] for place in leaf_places(document)]
    texts = [text for text in texts if isinstance(text, str)]
    if not texts:
        return
    old = rng.choice(texts)
    new = old + rng.choice(TEXTS) if rng.random() < 0.5 else rng.choice((*TEXTS, *texts[:50]))
    if len(new) * texts.count(old) < LONGEST_RENAMED:
        for item, key in leaf_places(document):
            if item[key] == old:
                item[key] = new


def _deepen(rng: random.Random, document: Any) -> None:
    """Wrap a part in itself, as an expression whose operand it is."""
    place = _pick(rng, document)
    if place is None:
        return
    for _ in range(rng.choice((1, 5, 60))):
        inner = place[0][place[1]]
        operation = {"op": rng.choice(("+", "<<", "~", "?", "*")), "left": inner, "right": inner}
        place[0][place[1]] = {"type": "expression", "value": {**operation, "cond": inner}}
        # Otherwise, each layer has three times as much written out.
        if rng.random() < 0.9 or 3 * _weight(inner) > MOST_COPIED:
            place[0][place[1]]["value"]["left"] = {"type": "hexstr", "value": "0x1"}
            place[0][place[1]]["value"]["cond"] = None


_CHANGES: tuple[Callable[[random.Random, Any], None], ...] = (
    *(_replace, _replace, _replace_alike, _replace_alike, _replace_alike),
    *(_move, _move, _delete, _repeat, _rename, _deepen),
)


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    """Return bytes with a few changed, taken out, put in, or doubled."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(out) + 1)
        end = min(len(out), at + rng.choice((1, 2, 4, 8, 64)))
        match rng.randrange(6):
            case 0:
                out[at:end] = rng.randbytes(end - at)
            case 1:
                del out[at:end]
            case 2:
                out[at:at] = rng.randbytes(rng.choice((1, 4, 100)))
            case 3:
                del out[at:]
            case 4:
                out[at:at] = out[at:end] * rng.choice((1, 2, 50))
            case 5:
                out[at:end] = rng.choice((b"\xff", b"\0", b"\x7f", b"\x80")) * (end - at)
    return bytes(out)


def mutate_text(rng: random.Random, text: bytes) -> bytes:
    """Return text with words, numbers and lines changed."""
    if rng.random() < 0.15:
        return mutate_bytes(rng, text)
    lines = text.decode("utf-8", "surrogateescape").split("\n")
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(lines))
        match rng.randrange(6):
            case 0:
                del lines[at]
            case 1:
                lines[at:at] = [lines[at]] * rng.choice((1, 3, 200))
            case 2:
                lines[at] = rng.choice(lines)
            case _:
                lines[at] = _changed_line(rng, lines[at])
        lines = lines or [""]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _changed_line(rng: random.Random, line: str) -> str:
    words = line.split(" ")
    at = rng.randrange(len(words))
    value = hostile_value(rng)
    new = value if isinstance(value, str) else json.dumps(value)
    words[at] = rng.choice((new, words[at] + new, f"{{{words[at]}: {new}}}", f"[{new}, {new}]"))
    return " ".join(words)
