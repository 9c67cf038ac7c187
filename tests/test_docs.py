"""Every Python snippet in the README and in the Markdown pages runs, top to bottom, page by page.

A ```text block shows what the snippet before it prints, and must be exactly that. The cells of executed chapters
(`{code-cell}`) run, too; it is Sphinx that shows their output, in `make docs`.
"""

import io
import linecache
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from redispatch.dispatch.core.key import KEYS
from redispatch.dispatch.core.registry import OPERATORS, remove_operator
from redispatch.dispatch.keys import undefine

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("*/*.md"))]
PAGES = [page for page in PAGES if not {"_build", "reference"} & set(page.parts)]  # what is built
BLOCK = re.compile(r"^```(python|text|\{code-cell\})\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def torch_is_given_back():
    """A page may call `install()`; the tests after it find `import torch` as it was."""
    finders, modules = sys.meta_path.copy(), sys.modules.copy()
    yield
    sys.meta_path[:] = finders
    for name in sys.modules.keys() - modules.keys():
        if name.split(".")[0] == "torch":
            del sys.modules[name]


@pytest.fixture(autouse=True)
def keys_and_operators_are_taken_back():
    """Two pages may define a key or an operator of the same name."""
    keys, operators = set(KEYS), set(OPERATORS)
    yield
    for name in [name for name in KEYS if name not in keys]:
        if name in KEYS:  # some go with another one
            undefine(KEYS[name])
    for op in [op for name, op in OPERATORS.items() if name not in operators and ".md:" in op.place]:
        remove_operator(op)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets(page, monkeypatch):
    monkeypatch.chdir(page.parent)  # as Sphinx does
    text = page.read_text()
    scope = {"__name__": page.stem}
    printed = ""
    for block in BLOCK.finditer(text):
        kind, content = block.groups()
        if kind == "text":
            assert printed.strip() == content.strip()
            continue
        # Compiled as lines of the page itself: a traceback points into it, and kernels read their source from it.
        linecache.cache[page.name] = (len(text), None, text.splitlines(True), page.name)
        lines_before = text.count("\n", 0, block.start(2))
        with redirect_stdout(io.StringIO()) as output:
            content = re.sub(r"^:tags:", "# tags:", content)
            exec(compile("\n" * lines_before + content, page.name, "exec"), scope)
        printed = output.getvalue()
