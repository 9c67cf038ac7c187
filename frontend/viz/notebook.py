"""What notebooks show of a trace: a tree to unfold. Without script: it is kept in the notebook's file."""

from __future__ import annotations

from html import escape

from redispatch.dispatch import Hop
from redispatch.dispatch.inspection.trace import name_of

from .tables import short_place, shortened

MOST = 500  # hops; a notebook keeps every output
STYLE = """<style>
.redispatch-trace{font:13px/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-x:auto}
.redispatch-trace details,.redispatch-trace .hop{margin-left:1.1em;white-space:nowrap}
.redispatch-trace summary{margin-left:-1.1em;cursor:pointer}
.redispatch-trace b{font-weight:600}
.redispatch-trace i{font-style:normal;padding:0 .45em;border-radius:.6em;background:rgba(64,120,242,.16)}
.redispatch-trace s{text-decoration:none;opacity:.62}
</style>"""


def tree(root: Hop) -> str:
    """The hops below `root`, each unfoldable; the first `MOST` of a long trace."""
    parts = [STYLE, '<div class="redispatch-trace">']
    open_at: list[int] = []  # depths of the elements that are still open
    shown = 0
    total = sum(1 for _ in root.walk())
    for depth, hop in root.walk():
        while open_at and open_at[-1] >= depth:
            parts.append("</details>")
            open_at.pop()
        if shown == MOST:
            break
        shown += 1
        if hop.children:
            parts.append(f"<details{' open' if depth < 2 else ''}><summary>{line(hop)}</summary>")
            open_at.append(depth)
        else:
            parts.append(f'<div class="hop">{line(hop)}</div>')
    parts += ["</details>"] * len(open_at)
    if shown < total:
        parts.append(
            f'<div class="hop"><s>… {total - shown} hops more: hops.html("trace.html") writes them all</s></div>'
        )
    return "".join([*parts, "</div>"])


def line(hop: Hop) -> str:
    """One hop."""
    outcome = type(hop.error).__name__ if hop.error is not None else hop.result
    return (
        f"<b>{escape(name_of(hop.op))}</b> <i>{escape(hop.key)}</i> "
        f'<span title="{escape(short_place(hop.place))}">{escape(hop.answered)}</span> '
        f"({escape(shortened(hop.arguments))}) → {escape(shortened(outcome))} <s>{hop.seconds * 1e6:.0f} µs</s>"
    )
