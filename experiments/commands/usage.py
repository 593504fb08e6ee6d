"""Help that fits a screen: what a command does, examples, and the options that most people type.

Options of a panel (typer's `rich_help_panel`) are the others, which only `--help-all` shows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from ringleaf.core.units import format_count
from ringleaf.experiments.runs.console import complain, in_a_line

ALL = "--help-all"
PRINTED = ("dissector", "topo export", "workload from-torch")
"""Commands whose only file is what they print without one."""
_NAMES = 30  # letters of the widest name whose help stands beside it
_LAST_STOP = re.compile(
    r"(?<!\.)\.(?=$|  \[)"
)  # options of the model have none: all lines look alike
_SCREEN = 40  # lines of a terminal; options that most people do not type are left out above


EXAMPLES = {
    "": ("ringleaf run --topo fattree --size 4MiB", "ringleaf step ring --ranks 4"),
    "run": (
        "ringleaf run --topo fattree --algo ring,switchml --size 64K,4M",
        "ringleaf run --topo leafspine,leaves=2,spines=2,hosts=4 --loss 0.1% --explain",
        "ringleaf run --spec examples/course/priorities.yaml --scheduler fifo,layers",
    ),
    "train": (
        "ringleaf train examples/training/ddp.py --ranks 4 --topo fattree",
        "ringleaf train script.py --ranks 2 --rate 25G -- --epochs 1",
    ),
    "plot": ("ringleaf plot runs/fattree", "ringleaf plot runs/fattree --column 3.3in"),
    "compare": (
        "ringleaf compare runs/before runs/after --threshold 1%",
        "ringleaf compare main . -- --topo fattree --algo ring --size 1M",
    ),
    "step": ("ringleaf step ring --ranks 4", "ringleaf step switchml --loss 10% --html walk.html"),
    "verify": (
        "ringleaf verify halvingdoubling --ranks 8",
        "ringleaf verify examples/schedules/ring.csv --export ring.xml",
    ),
    "synth": (
        "ringleaf synth tacos --topo torus2d,x=4,y=4 --size 1M",
        "ringleaf synth tacos --topo torus2d --collective allgather -o plan.csv",
    ),
    "grade": ("ringleaf grade examples/grade/allreduce.yaml examples/grade/ring.csv",),
    "rows": ("ringleaf rows system", "ringleaf rows --json"),
    "replay": (
        "ringleaf replay tests/traces",
        "ringleaf replay tests/traces/switchml --program switchml-64 --mask IP.ttl",
    ),
    "trace": (
        "ringleaf trace switchml-64 --example",
        "ringleaf trace router.json --packet capture.pcap#3 --html walk.html",
    ),
    "dissector": ("ringleaf dissector -o ringleaf.lua",),
    "stf": ("ringleaf stf router.p4 router.stf", "ringleaf stf --suite tests --only acl"),
    "fuzz": ("ringleaf fuzz forward --packets 100", "ringleaf fuzz router.p4 --keep found.stf"),
    "net": (
        "sudo ringleaf net leafspine,leaves=1,spines=1,hosts=4",
        "sudo ringleaf net clean",
    ),
    "switch": ("ringleaf switch router.json --grpc 127.0.0.1:9559",),
    "nic": ("ringleaf nic guo --topo fattree --rows 4096 --policy lru,lfu",),
    "nic guo": ("ringleaf nic guo --topo fattree --rows 4096 --policy lru,lfu",),
    "nic fcsn": ("ringleaf nic fcsn --topo fattree --samples 64",),
    "topo": ("ringleaf topo show fattree,k=4 -o fattree.svg",),
    "topo list": ("ringleaf topo list --hosts 64",),
    "topo show": ("ringleaf topo show hammingmesh", "ringleaf topo show net.graphml -o net.svg"),
    "topo export": ("ringleaf topo export --topo fattree,k=4 -o net.graphml",),
    "workload": ("ringleaf workload run gpt13b --net flow --layers-per-stage 1",),
    "workload list": ("ringleaf workload list",),
    "workload show": ("ringleaf workload show vgg16", "ringleaf workload show incast --ranks 8"),
    "workload from-torch": (
        "ringleaf workload from-torch torchvision.models:resnet18 --input 3,224,224 -o net.yaml",
    ),
    "workload run": (
        "ringleaf workload run incast --ranks 8 --flow-sizes 256KiB --cc dctcp",
        "ringleaf workload run job.goal --topo fattree --cc dctcp,swift",
    ),
    "workload export": ("ringleaf workload export vgg16 --ranks 4 --format goal -o traces",),
}
"""Examples of each command, and of `ringleaf` itself."""

SUMMARIES = {
    "run": "Run collectives, training jobs or a workload",
    "train": "Run a training script on an emulated network",
    "nic": "Run work that NICs compute",
    "plot": "Draw figures and report of a run or a sweep again",
    "compare": "Compare two runs row by row",
    "step": "Step through a collective, message by message",
    "verify": "Prove that a schedule gives the sums that it should",
    "synth": "Search for a schedule for a topology",
    "grade": "Run a student's file through the cases of an assignment",
    "rows": "List systems, algorithms, schedulers and the like, with sources",
    "topo": "List, show or export topologies",
    "workload": "List, show, run or export models and traces",
    "replay": "Replay traces of switches, and compare what they send",
    "trace": "Follow one packet through a P4 program",
    "dissector": "Print a Lua dissector of our protocols for Wireshark",
    "stf": "Run a test in p4c's STF format, or a folder of them",
    "fuzz": "Send random packets through the engine and through BMv2",
    "net": "Start a live network and open Mininet's command line on it",
    "switch": "Serve P4Runtime until Ctrl-C",
}
"""What `ringleaf --help` says of each command, in its order; no command is loaded for that."""


class _Command(TyperCommand):
    """A command that shows all of its options if it is asked for all, or if they fit a screen."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Note whether all options are asked for, before a `--` that ends them."""
        own = args.index("--") if "--" in args else len(args)  # what follows is a script's
        ctx.meta[ALL] = ALL in args[:own]
        words = ["--help" if each == ALL else each for each in args[:own]]
        left = super().parse_args(ctx, [*words, *args[own:]])
        self._tell_repeated(ctx, words)
        self._take_stdout(ctx)
        return left

    def _take_stdout(self, ctx: Any) -> None:
        """Take `-` for no file where a command prints without one, and refuse it elsewhere."""
        for option in filter(_is_option, self.params):
            if ctx.params.get(option.name) != Path("-"):
                continue
            if ctx.command_path.partition(" ")[2] not in PRINTED:
                ctx.fail(
                    f"{option.opts[-1]} must be a name, got '-'; /dev/stdout is that of stdout"
                )
            ctx.params[option.name] = None

    def _tell_repeated(self, ctx: Any, words: list[str]) -> None:
        """Say which value an option has that is there twice: people may expect both.

        The last one counts, as everywhere, so that aliases and scripts have defaults.
        """
        if ctx.resilient_parsing:
            return
        _, _, order = self.make_parser(ctx).parse_args(list(words))
        for option, count in Counter[Any](order).items():
            values = _values(option, words) if count > 1 and _is_option(option) else []
            if len(set(values)) > 1 and not option.multiple and not option.is_flag:
                complain(
                    f"{option.opts[0]} is there {len(values)} times, and the last one counts, "
                    f"{values[-1]!r}; commas stand between several values"
                )

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help: all options, or the common ones if all do not fit a screen."""
        self.help = _kept_lines(self.help)
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        _write_examples(ctx, formatter)
        records = [
            (record, getattr(each, "rich_help_panel", None) is not None)
            for each in sorted(self.get_params(ctx), key=_is_option)
            if (record := each.get_help_record(ctx)) is not None
        ]
        common = [record for record, is_rare in records if not is_rare]
        whole = ctx.make_formatter()
        _write_options(whole, (record for record, _ in records))
        lines = (formatter.getvalue() + whole.getvalue()).count("\n")
        if ctx.meta.get(ALL) or lines <= _SCREEN or len(common) == len(records):
            _write_options(formatter, (record for record, _ in records))
            return
        room = formatter.width - min(max(len(name) for name, _ in common), _NAMES) - 4
        _write_options(formatter, ((name, in_a_line(text, room)) for name, text in common))
        formatter.write_paragraph()
        hidden = len(records) - len(common)
        formatter.write(
            f"{format_count(hidden, 'more option')}, and all that these take: "
            f"{ctx.command_path} {ALL}\n"
        )


class _Group(TyperGroup):
    """A command of commands, one of which must be named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse a group without a command."""
        if not args and not ctx.resilient_parsing:  # completion parses nothing, too
            ctx.fail("no command below it was given")
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with a line for each command."""
        self.help = _kept_lines(self.help)
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        _write_examples(ctx, formatter)
        records = (each.get_help_record(ctx) for each in self.get_params(ctx))
        _write_options(formatter, (record for record in records if record is not None))
        room = formatter.width - max(map(len, self.commands)) - 4
        firsts = {name: _LAST_STOP.sub("", _first(each)) for name, each in self.commands.items()}
        with formatter.section("Commands"):
            formatter.write_dl([(name, in_a_line(first, room)) for name, first in firsts.items()])


def _first(command: Any) -> str:
    """Return the first sentence of a command's help."""
    return (command.help or "").partition("\n\n")[0].replace("\n", " ")


def _values(option: Any, words: list[str]) -> list[str]:
    """Return the values of an option that stand in the words after its names, or behind `=`."""
    return [
        word.partition("=")[2] if "=" in word else after
        for word, after in zip(words, [*words[1:], ""], strict=True)
        if word.partition("=")[0] in option.opts
    ]


def _is_option(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "option")


def _kept_lines(text: str | None) -> str:
    """Return a help whose indented paragraphs have a mark, so that their lines stay as they are."""
    return re.sub(r"\n\n(?= )", "\n\n\b\n", text or "")


def _write_examples(ctx: Any, formatter: Any) -> None:
    examples = EXAMPLES.get(ctx.command_path.partition(" ")[2], ())
    if examples and ctx.command_path.startswith("ringleaf"):
        with formatter.section("Examples"):
            for line in examples:
                formatter.write(f"  {line}\n")


def _write_options(formatter: Any, records: Iterable[tuple[str, str]]) -> None:
    with formatter.section("Options"):
        lines = [(name, _LAST_STOP.sub("", text)) for name, text in records]
        formatter.write_dl(lines, col_max=_NAMES)


def make_plain(app: typer.Typer) -> None:
    """Have a command line's commands show such help."""
    app.info.cls = _Group
    app.rich_markup_mode = None
    for command in app.registered_commands:
        command.cls = _Command
    for group in app.registered_groups:
        assert group.typer_instance is not None
        make_plain(group.typer_instance)
