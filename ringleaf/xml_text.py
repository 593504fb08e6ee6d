"""Text in XML."""

from __future__ import annotations

import re

# Characters that XML 1.0 does not have (section 2.2), not even as references.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(text: str) -> str:
    """Return the text without what XML can't have; escaping is for whoever writes it."""
    return _NOT_XML.sub("?", text)
