"""Writes the course as one page of HTML: texts, demos with their output, templates; no script, nothing from elsewhere.

The demos run now, each in a process of its own, so that what the page shows is what this library does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from html import escape
from pathlib import Path
from typing import Any

from .lesson import LESSONS, MODULES, Lesson

PATIENCE = 120  # seconds for one demo
SHEET = Path(__file__).with_name("page.css")


def write(lessons: Mapping[str, Lesson], known: Mapping[str, Any]) -> str:
    """Returns the page; `known` is the reader's progress."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        running = {row: pool.submit(output_of, lessons[row].demo) for row in lessons}
        outputs = {}
        for number, (row, one) in enumerate(running.items(), 1):
            outputs[row] = one.result()
            print(f"\r{number} of {len(running)} demos", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    there = {module: [lessons[row] for row in rows if row in lessons] for module, rows in MODULES.items()}
    board, articles = list[str](), list[str]()
    for module, inside in there.items():
        minutes = sum(lesson.reading + lesson.writing for lesson in inside)
        board.append(f"<h2>{escape(module)} <small>{minutes / 60:.0f} h</small></h2><ol>")
        for lesson in inside:
            mine = known.get(lesson.row, {}).get("points", 0)
            done = f" <small>{mine}/{lesson.points}</small>" if mine else ""
            board.append(f'<li><a href="#{lesson.row}">{lesson.row} {escape(lesson.title)}</a>{done}</li>')
            articles.append(article(lesson, outputs[lesson.row]))
        board.append("</ol>")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>redispatch: the course</title><style>{SHEET.read_text(encoding="utf-8")}</style></head>
<body><nav aria-label="lessons"><h1>The course</h1>{"".join(board)}</nav><main>{"".join(articles)}</main></body></html>
"""


def article(lesson: Lesson, output: str) -> str:
    """Returns a lesson as HTML."""
    needs = ", ".join(f'<a href="#{row}">{row}</a>' for row in lesson.needs if row in LESSONS)
    facts = [f"{lesson.reading} minutes to read, about {lesson.writing} to write", f"{lesson.points} points"]
    facts += [f"after {needs}"] if needs else []
    parts = "".join(f"<li>{escape(part.name)}: {part.points}</li>" for part in lesson.parts)
    return f"""<article id="{lesson.row}"><p class="row">{lesson.row}, {escape(lesson.module)}</p>
{markdown(lesson.text)}<p class="facts">{"; ".join(facts)}.</p>
<h2>Demo</h2><pre><code>{escape(lesson.demo.strip())}</code></pre><pre class="output">{escape(output)}</pre>
<h2>Your part</h2><p><code>python -m redispatch learn start {lesson.row}</code> copies this file, and
<code>python -m redispatch learn check {lesson.row}</code> says which parts of it hold.</p><ul>{parts}</ul>
<details><summary>{lesson.row.lower()}.py</summary><pre><code>{escape(lesson.template.strip())}</code></pre></details>
</article>"""


def markdown(text: str) -> str:
    """Returns Markdown as HTML."""
    try:
        from markdown_it import MarkdownIt  # needed by those who make a page alone
    except ImportError:
        raise RuntimeError("the page's texts are set by markdown-it-py: pip install redispatch[learn]") from None
    return str(MarkdownIt("commonmark", {"html": False}).enable("table").render(text))


def output_of(demo: str) -> str:
    """Returns all that a demo prints; a failing one, its error, too."""
    command = [sys.executable, "-c", demo]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    return done.stdout + (done.stderr if done.returncode else "")
