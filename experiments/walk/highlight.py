"""Syntax highlighting of P4 source as HTML: comments, words and numbers."""

from __future__ import annotations

import re
from html import escape

_WORDS = (
    "action|actions|apply|bit|bool|const|control|default|default_action|else|entries|enum|error|"
    "exact|exit|extern|false|header|header_union|if|in|inout|int|key|lpm|match_kind|out|package|"
    "parser|range|return|select|size|state|struct|switch|table|ternary|transition|true|tuple|"
    "type|typedef|valueset|varbit|void"
)

_TOKEN = re.compile(
    r"(?P<c>//[^\n]*|/\*.*?\*/)|(?P<p>^[ \t]*#[^\n]*)|(?P<s>\"[^\"\n]*\")"
    rf"|(?P<k>\b(?:{_WORDS})\b)|(?P<n>\b\d+[ws]?\w*\b)",
    re.DOTALL | re.MULTILINE,
)


def highlight(source: str) -> str:
    """Return HTML with as many lines as the source; no element spans several lines."""
    out = []
    at = 0
    for token in _TOKEN.finditer(source):
        out.append(escape(source[at : token.start()]))
        kind = token.lastgroup
        lines = token[0].split("\n")
        out.append("\n".join(f'<em class="{kind}">{escape(line)}</em>' for line in lines))
        at = token.end()
    return "".join(out) + escape(source[at:])
