"""Reads MSCCL's XML, which is data that anybody may have written.

Document types and entities are refused, and sizes are bounded. Everything that can be checked
element by element is checked here, so messages name the line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.parsers import expat

from ringleaf.collectives.files.format import MOST_CELLS, MOST_RANKS
from ringleaf.collectives.files.msccl.document import (
    BUFFERS,
    USES_DST,
    USES_SRC,
    Block,
    Gpu,
    Instruction,
    InstructionKind,
    MscclProgram,
    Range,
)
from ringleaf.errors import ScheduleError

MOST_STEPS = 2_000_000
MOST_PLACES = 1 << 20  # ranks x chunks
MOST_CHANNELS = 4096
MOST_SHOWN = 40  # letters of a value in messages
MOST_MOVES = 4_000_000  # chunks that all steps move
MOST_CLOCKS = 1 << 28  # thread blocks times steps: each may have to know of all others


def parse(text: str, where: str) -> MscclProgram:
    """Return the program of a text; `where` is how messages begin.

    Raises:
        ScheduleError: If the text is no such program; the message names the line.
    """
    reader = _Reader(where)
    try:
        reader.parser.Parse(text, True)
    except expat.ExpatError as error:
        what = expat.ErrorString(error.code)
        raise ScheduleError(f"{where}: line {error.lineno}: not XML: {what}") from None
    assert reader.program is not None  # no root would not be XML
    reader.program.gpus.sort(key=lambda gpu: gpu.id)
    _check(reader.program, reader.ngpus)
    return reader.program


class _Reader:
    """Builds the program as expat meets elements, whose lines it knows."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.program: MscclProgram | None = None
        self.ngpus = 0  # as the root says
        self._open: list[str] = []
        self._steps = self._moves = self._blocks = 0
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = lambda name: self._open.pop()
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype

    def _refuse_doctype(self, *args: object) -> None:
        raise self._error("document types are not allowed, got one; leave it out")

    def _error(self, problem: str) -> ScheduleError:
        return ScheduleError(f"{self.where}: line {self.parser.CurrentLineNumber}: {problem}")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        expected = _NESTED.get(self._open[-1] if self._open else "", ())
        if name not in expected:
            inside = f"<{self._open[-1]}>" if self._open else "the file"
            valid = " or ".join(f"<{each}>" for each in expected) or "nothing"
            raise self._error(f"{inside} must have {valid} inside, got <{name[:MOST_SHOWN]}>")
        self._open.append(name)
        _START[name](self, _Attributes(attributes, self._error, name))
        assert self.program is not None
        for key in attributes:
            if key not in _KNOWN[name]:
                attribute = f"{_shown(key)}= of <{name}>"
                self.program.unused.setdefault(attribute, self.parser.CurrentLineNumber)

    def algo(self, attributes: _Attributes) -> None:
        """Begin a program at its <algo>."""
        self.ngpus = attributes.number("ngpus", 1, MOST_RANKS)
        self.program = MscclProgram(
            self.where,
            _shown(attributes.text("name", "program")),
            attributes.text("coll").lower(),
            attributes.number("inplace", 0, 1, default=0) == 1,
            attributes.number("nchunksperloop", 1, MOST_CELLS),
        )
        if self.ngpus * self.program.chunks > MOST_PLACES:
            raise self._error(
                f"ngpus x nchunksperloop must be at most {MOST_PLACES}, got {self.ngpus} x "
                f"{self.program.chunks}"
            )

    def copy(self, attributes: _Attributes) -> None:
        """Keep a copy within a rank, from input to output, which comes before all steps."""
        assert self.program is not None
        source, target = (attributes.number(key, 0, MOST_CELLS) for key in ("i_off", "o_off"))
        line = self.parser.CurrentLineNumber
        self.program.gpus[-1].copies.append((source, target, line))

    def gpu(self, attributes: _Attributes) -> None:
        """Begin a rank; ranks may come in any order."""
        assert self.program is not None
        rank = attributes.number("id", 0, MOST_RANKS)
        sizes = {
            each: attributes.number(f"{each}_chunks", 0, MOST_CELLS, default=0) for each in BUFFERS
        }
        line = self.parser.CurrentLineNumber
        self.program.gpus.append(Gpu(line, rank, sizes))

    def tb(self, attributes: _Attributes) -> None:
        """Begin a thread block of the latest rank."""
        assert self.program is not None
        gpu = self.program.gpus[-1]
        block = Block(
            self.parser.CurrentLineNumber,
            attributes.number("id", 0, MOST_STEPS),
            attributes.number("send", -1, MOST_RANKS, default=-1),
            attributes.number("recv", -1, MOST_RANKS, default=-1),
            attributes.number("chan", -1, MOST_CHANNELS, default=0),
        )
        if block.id in gpu.blocks:
            raise self._error(f"tb id must be new on rank {gpu.id}, got {block.id} again")
        gpu.blocks[block.id] = block
        self._blocks += 1

    def step(self, attributes: _Attributes) -> None:
        """Add a step to the latest thread block; steps must come in their order."""
        assert self.program is not None
        block = list(self.program.gpus[-1].blocks.values())[-1]
        number = attributes.number("step" if attributes.name == "op" else "s", 0, MOST_STEPS)
        if number != len(block.steps):
            raise self._error(f"step must be {len(block.steps)}, the next, got {number}")
        self._steps += 1
        if self._steps > MOST_STEPS or (self._steps + self._blocks) * self._blocks > MOST_CLOCKS:
            raise self._error(f"too many steps and thread blocks, got {self._steps} so far")
        kind = self._kind(attributes.text("type"))
        count = (
            1 if kind is InstructionKind.NOP else attributes.number("cnt", 1, MOST_CELLS, default=1)
        )
        self._moves += count
        if self._moves > MOST_MOVES:
            raise self._error(f"all steps must move at most {MOST_MOVES} chunks, got more")
        if attributes.name == "op":
            if kind in (InstructionKind.COPY, InstructionKind.REDUCE):
                raise self._error(
                    f"<op> names one range only, got type {kind.value!r}; take <step>"
                )
            src = dst = ("buf", "off")
        else:
            src, dst = ("srcbuf", "srcoff"), ("dstbuf", "dstoff")
        other, awaited = (
            attributes.number(key, -1, MOST_STEPS, default=-1) for key in ("depid", "deps")
        )
        if (other < 0) != (awaited < 0):
            raise self._error(f"depid and deps must both be -1 or none, got {other} and {awaited}")
        block.steps.append(
            Instruction(
                self.parser.CurrentLineNumber,
                kind,
                attributes.range(*src, count) if kind in USES_SRC else None,
                attributes.range(*dst, count) if kind in USES_DST else None,
                None if other < 0 else (other, awaited),
                attributes.number("hasdep", 0, 1, default=0) == 1,
            )
        )

    def _kind(self, text: str) -> InstructionKind:
        try:
            return InstructionKind(text)
        except ValueError:
            valid = ", ".join(kind.value for kind in InstructionKind)
            raise self._error(f"unknown type, got {text[:MOST_SHOWN]!r}; valid: {valid}") from None


def _shown(name: str) -> str:
    """Return a name as it can be printed anywhere."""
    return "".join(letter if letter.isprintable() else "?" for letter in name[:MOST_SHOWN])


_NESTED = {"": ("algo",), "algo": ("gpu",), "gpu": ("tb", "copy"), "tb": ("step", "op")}
_STEP = ("type", "cnt", "depid", "deps", "hasdep")
_RANGES = ("srcbuf", "srcoff", "dstbuf", "dstoff")
_KNOWN = {
    "algo": {
        *("name", "ngpus", "coll", "inplace", "nchunksperloop"),
        *("proto", "nchannels", "outofplace", "minBytes", "maxBytes", "redop"),
    },
    "gpu": {"id", "i_chunks", "o_chunks", "s_chunks"},
    "copy": {"i_off", "o_off"},
    "tb": {"id", "send", "recv", "chan"},
    "step": {"s", *_STEP, *_RANGES},
    "op": {"step", "buf", "off", *_STEP, *_RANGES},
}
"""By element, the attributes that are used or, like the size of an input, have no effect here."""

_START = {
    "algo": _Reader.algo,
    "gpu": _Reader.gpu,
    "copy": _Reader.copy,
    "tb": _Reader.tb,
    "step": _Reader.step,
    "op": _Reader.step,
}


class _Attributes:
    """The attributes of an element."""

    def __init__(
        self, values: Mapping[str, str], error: Callable[[str], ScheduleError], name: str
    ) -> None:
        self._values, self._error, self.name = values, error, name

    def text(self, key: str, default: str | None = None) -> str:
        """Return an attribute; without a default it must be there."""
        text = self._values.get(key, default)
        if text is None:
            raise self._error(f"<{self.name}> needs {key}=, got none")
        return text

    def number(self, key: str, least: int, most: int, default: int | None = None) -> int:
        """Return a whole number from `least` to `most`."""
        text = self.text(key, None if default is None else str(default))
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 12):
            raise self._error(f"{key} must be a whole number, got {text[:MOST_SHOWN]!r}")
        if not least <= int(text) <= most:
            raise self._error(f"{key} must be {least} to {most}, got {text}")
        return int(text)

    def range(self, buffer: str, offset: str, count: int) -> Range:
        """Return `count` chunks of a buffer, named by two attributes."""
        name = self.text(buffer)
        if name not in BUFFERS:
            valid = ", ".join(BUFFERS)
            raise self._error(f"{buffer} must be one of {valid}, got {name[:MOST_SHOWN]!r}")
        return Range(name, self.number(offset, 0, MOST_CELLS), count)


def _check(program: MscclProgram, ngpus: int) -> None:
    """Check peers, channels and dependencies, which name other elements."""
    if program.ranks != ngpus:
        raise ScheduleError(
            f"{program.where}: ngpus must be the number of <gpu>, {program.ranks}, got {ngpus}"
        )
    for rank, gpu in enumerate(program.gpus):
        if gpu.id != rank:
            raise ScheduleError(
                f"{program.where}: line {gpu.line}: ids of <gpu> must be 0 to {ngpus - 1}, each "
                f"once, got {gpu.id} and no {rank}"
            )
        ends: dict[tuple[str, int, int], int] = {}
        for block in gpu.blocks.values():
            at = f"{program.where}: line {block.line}: rank {gpu.id}, thread block {block.id}"
            for which, peer in (("send", block.send), ("recv", block.recv)):
                if peer >= program.ranks or peer == gpu.id:
                    raise ScheduleError(f"{at}: {which} must be another rank or -1, got {peer}")
                other = ends.setdefault((which, peer, block.channel), block.id)
                if peer >= 0 and other != block.id:
                    raise ScheduleError(
                        f"{at}: {which} {peer} on channel {block.channel} must be of one thread "
                        f"block, got {other} as well; take another channel"
                    )
            for number, step in enumerate(block.steps):
                _check_step(program, gpu, block, number, step)


def _check_step(
    program: MscclProgram, gpu: Gpu, block: Block, number: int, step: Instruction
) -> None:
    at = f"{program.where}: {program.at(gpu.id, block.id, number)}"
    if step.kind.sends and block.send < 0:
        raise ScheduleError(
            f"{at}: {step.kind.value} needs a peer, got send=-1 of its thread block"
        )
    if step.kind.receives and block.recv < 0:
        raise ScheduleError(
            f"{at}: {step.kind.value} needs a peer, got recv=-1 of its thread block"
        )
    if step.after is None:
        return
    other, awaited = step.after
    if other not in gpu.blocks or awaited >= len(gpu.blocks[other].steps):
        raise ScheduleError(
            f"{at}: depends on step {awaited} of thread block {other}, which rank {gpu.id} lacks"
        )
    if not gpu.blocks[other].steps[awaited].is_awaited:
        raise ScheduleError(
            f"{at}: depends on {program.at(gpu.id, other, awaited)}, which has hasdep=0 and tells "
            "nobody that it is done; set hasdep=1"
        )
