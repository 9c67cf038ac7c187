"""The page of a trace in every width and both themes: nothing beside the window, no covered button, readable text."""

import os
from pathlib import Path

import pytest

import redispatch as rd

from .. import drawing
from .browser import Browser, chromium

WIDTHS = (390, 820, 1280, 1920)
needs_browser = pytest.mark.skipif(chromium() is None, reason="no Chromium is installed (`make browser`)")

# Buttons that are small, outside of the window, or under something else
BUTTONS = """[...document.querySelectorAll("button")].filter(e => {
    const {x, y, width, height} = e.getBoundingClientRect();
    const top = document.elementFromPoint(x + width / 2, y + height / 2);
    return width < 32 || height < 32 || !(top === e || e.contains(top));
}).map(e => e.id)"""

# Text whose colour has less than 4.5 times the brightness of its ground, or the other way round
CONTRAST = """(() => {
    const scratch = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const over = (colours) => {
        scratch.clearRect(0, 0, 1, 1);
        for (const one of colours) { scratch.fillStyle = one; scratch.fillRect(0, 0, 1, 1); }
        return [...scratch.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const bright = (rgb) => {
        const [r, g, b] = rgb.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    const found = new Set();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const e = walker.currentNode.parentElement;
        const shown = e.getClientRects().length && !["SCRIPT", "STYLE"].includes(e.tagName);
        if (!shown || !walker.currentNode.textContent.trim()) continue;
        const chain = [];
        for (let a = e; a; a = a.parentElement) chain.unshift(a);
        const grounds = chain.map(a => getComputedStyle(a).backgroundColor);
        const ground = over(["#fff", ...grounds]), ink = over(["#fff", ...grounds, getComputedStyle(e).color]);
        const [low, high] = [bright(ground), bright(ink)].sort((a, b) => a - b);
        if (high / low < 4.5) found.add(`${e.tagName}.${e.className}: ${(high / low).toFixed(2)} ${ink} on ${ground}`);
    }
    return [...found];
})()"""


def program():
    x, w = rd.randn(2, 3, requires_grad=True), rd.randn(3, 2)
    with rd.trace() as hops:
        (x @ w).relu().sum().backward()  # the line that the page marks
    return hops


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "trace.html"
    program().html(path)
    return path


@needs_browser
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_a_trace_is_used_at_every_width(file, width):
    with Browser(width, 900) as browser:
        browser.open(file)
        for _ in range(2):  # in one theme, and in the other
            assert browser.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
            browser.value("scrollTo(0, 0)")
            assert browser.value(BUTTONS) == []
            for at in ("first", "forward", "last", "back"):
                browser.click(f"#{at}")
                assert browser.value(CONTRAST) == [], (width, at)
            browser.value("document.querySelector('#hops').scrollIntoView()")
            assert browser.value("document.querySelectorAll('.row').length") > 3
            assert browser.value("document.querySelector('#rows').clientHeight") > 100
            browser.value("scrollTo(0, 0)")
            browser.click("#theme")


@needs_browser
def test_the_program_is_shown_with_the_line_that_called_and_backward_is_marked(file):
    with Browser() as browser:
        browser.open(file)
        assert browser.value("document.title").startswith("test_widths.py")
        browser.press("ArrowRight")
        assert "the line that the page marks" in browser.text("#program .at")
        assert "backward" not in browser.text("#sentence")
        browser.press("End")
        assert "Called by backward()" in browser.text("#sentence") and browser.texts(".row.backward")


# The documentation, where it has been built (`make docs`) -------------------------------------------------------------

BUILT = Path(os.environ.get("REDISPATCH_DOCS", Path(__file__).parents[2] / "docs" / "_build" / "html"))
PAGES = sorted(one for one in BUILT.rglob("*.html") if "reference" not in one.parts and "_static" not in one.parts)


@needs_browser
@pytest.mark.skipif(not PAGES, reason="the pages are not built (`make docs`)")
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_of_the_documentation_scrolls_sideways(width):
    with Browser(width, 900) as browser:
        wide = []
        for page in drawing.draw(PAGES, "pages", width, count=8):
            browser.open(page)
            for theme in ("light", "dark"):
                browser.value(f"document.body.dataset.theme = {theme!r}")
                if browser.value("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                    wide.append((page.name, theme, browser.value("document.documentElement.scrollWidth")))
        assert wide == []
