"""Every Python snippet in the README and in the Markdown pages runs, top to bottom, page by page.

Executed chapters (`{code-cell}`) are Sphinx's to run, in `make docs`.
"""

from pathlib import Path

import pytest
from mktestdocs import check_md_file

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("*/*.md"))]
PAGES = [page for page in PAGES if "_build" not in page.parts]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets(page):
    check_md_file(page, memory=True)
