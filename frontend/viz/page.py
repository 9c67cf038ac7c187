"""A trace as one HTML page that needs neither network nor server: tables, a style and a script in one file.

The tables travel as JSON inside the page; page.html, page.css and page.js beside this file are the page. What the page
shows of a hop is made when it is looked at, so a long trace opens as fast as a short one.
"""

from __future__ import annotations

import json
from functools import cache
from html import escape
from importlib.resources import files

from redispatch.dispatch import Hop
from redispatch.dispatch.inspection.trace import name_of

from .tables import Tables


def page(root: Hop) -> str:
    """The page."""
    title = ", ".join(dict.fromkeys(name_of(hop.op) for hop in root.children[:50])) or "nothing was called"
    parts = {
        "title": escape(title if len(title) < 80 else f"{title[:79]}…"),
        "style": part("page.css"),
        "script": part("page.js"),
        "tables": in_script(json.dumps(Tables(root).made(), separators=(",", ":"))),
    }
    text = part("page.html")
    before, *rest = text.split("{{")
    return before + "".join(parts[name] + after for name, _, after in (piece.partition("}}") for piece in rest))


@cache
def part(name: str) -> str:
    """A file of the page."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def in_script(text: str) -> str:
    """JSON that may stand in a script element: no text in it can end the element, or begin a comment."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
