"""Data in pages."""

from __future__ import annotations

import json
from typing import Any


def for_script(data: Any) -> str:
    """Return data as JSON for a page, so that nothing in it can end the script or change it.

    A `<` may begin `</script>`, or `<!--`, after which `</script>` no longer ends a script.
    """
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
