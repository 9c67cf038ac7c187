"""How a notebook shows a tensor: what it prints, and below that the facts that decide what happens to it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from redispatch.dispatch import describe

STYLE = """<style>
.redispatch-tensor pre{margin:0 0 .4em;font-size:13px;line-height:1.45;max-height:32em;overflow:auto}
.redispatch-tensor span{display:inline-block;margin:0 .9em .2em 0;font:12px/1.5 ui-monospace,Menlo,Consolas,monospace}
.redispatch-tensor small{opacity:.65;font-size:11px;margin-right:.4em}
</style>"""


def tensor_html(printed: str, look: Iterable[tuple[str, str]], keyset: int) -> str:
    """The text of a tensor, its facts (name, value) and its dispatch keys, as HTML."""
    keys = describe(keyset).removeprefix("DispatchKeySet(").removesuffix(")")
    facts = "".join(f"<span><small>{name}</small>{escape(value)}</span>" for name, value in (*look, ("keyset", keys)))
    return f'{STYLE}<div class="redispatch-tensor"><pre>{escape(printed)}</pre>{facts}</div>'
