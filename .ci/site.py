"""Hooks of mkdocs for the site: it must need no network, and its table of options has a class."""

from __future__ import annotations

import logging
import re
from typing import Any

LOG = logging.getLogger("mkdocs.hooks.site")
OPTIONS = "reference/options.md"
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\ssrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?=[^>]*\srel=["']?(?:stylesheet|preload|preconnect|icon))[^>]*"""
    r"""\shref=["']?((?:https?:)?//[^"'\s>]+)""",
    re.IGNORECASE,
)


def loaded(page: str) -> list[str]:
    """Return what a page would load from other hosts; links that a reader follows are none."""
    return [first or second for first, second in LOADED.findall(page)]


def on_page_content(html: str, *, page: Any, **_: Any) -> str:
    """Mark the table of options, whose columns the style sheet knows."""
    if page.file.src_uri == OPTIONS:
        return f'<div class="options">{html}</div>'
    return html


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    """Warn, which a strict build does not forgive, of a page that needs a network."""
    for address in loaded(output):
        LOG.warning(
            "%s: loads %s from another host, so it is not whole offline", page.file.src_uri, address
        )
    return output
