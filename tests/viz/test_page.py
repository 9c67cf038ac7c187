"""The page of a trace, opened in a real browser: stepped through forward and back, and looked at."""

import json
import os
import struct
from pathlib import Path

import pytest

import redispatch as rd
from redispatch.overrides import TorchFunctionMode
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from redispatch.viz.tables import page

from .browser import Browser, chromium

needs_browser = pytest.mark.skipif(chromium() is None, reason="no Chromium is installed; `make browser` installs one")


class Log(TorchDispatchMode):
    """Sees every operator."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Above(TorchFunctionMode):
    """Sees every function."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Wrapper(rd.Tensor):
    """A tensor around another one."""

    @staticmethod
    def __new__(cls, inner):
        return rd.Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride(), dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner_args, inner_kwargs = pytree.tree_map_only(cls, lambda x: x.inner, (args, kwargs or {}))
        result = pytree.tree_map_only(rd.Tensor, cls, func(*inner_args, **inner_kwargs))
        return return_and_correct_aliasing(func, args, kwargs, result)


def nested():
    """A call through a function mode, autocast, autograd, a mode and a subclass."""
    x, w = Wrapper(rd.ones(2, 3)), rd.ones(4, 3, requires_grad=True)
    with rd.autocast("cpu"), Log(), Above(), rd.trace() as hops:
        rd.nn.functional.linear(x, w)
    return hops


@pytest.fixture(scope="module")
def browser():
    with Browser() as one:
        yield one


@pytest.fixture
def opened(browser, tmp_path):
    def opened(hops):
        path = tmp_path / "trace.html"
        hops.html(path)
        browser.open(path)
        return browser

    return opened


OVERLAP = """(() => {
    const boxes = [...document.querySelectorAll(".box, .ghost, .head")].map(e => e.getBoundingClientRect());
    return boxes.some((a, i) => boxes.some((b, j) => i < j
        && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom));
})()"""


def where(browser):
    """(step, hop) as the page shows them."""
    return browser.text("#position"), browser.texts(".row.now .name, .row.now .key")


# What the page is made of ---------------------------------------------------------------------------------------------


def tables_of(text):
    return json.loads(text.partition('<script type="application/json" id="tables">')[2].partition("</script>")[0])


def test_the_page_needs_nothing_from_elsewhere():
    before, _, rest = page(nested()).partition('<script type="application/json" id="tables">')
    text = before + rest.partition("</script>")[2]  # without the tables, which have the program's own words
    for word in ("http:", "https:", "src=", "@import", "url(", "fetch(", "XMLHttpRequest"):
        assert word not in text.replace("http://www.w3.org", ""), word


def test_the_tables_hold_each_source_once_and_each_hop_as_a_row():
    hops = nested()
    tables = tables_of(page(hops))
    rows = [hop for _, hop in hops.walk()]
    assert {len(column) for column in tables["hops"].values()} == {len(rows)}
    assert [tables["texts"][i] for i in tables["hops"]["key"]] == [hop.key for hop in rows]
    sources = [(source["file"], source["first"]) for source in tables["sources"]]
    assert len(sources) == len(set(sources)) < len(rows)
    code = [tables["texts"][call["code"]] for call in tables["calls"]]
    assert all("def " in text or "runs boxed" in text for text in code)


def test_no_text_of_a_user_ends_the_script():
    class Evil(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    Evil.__name__ = "</script><script>alert(1)</script><!--"
    with Evil(), rd.trace() as hops:
        rd.ones(1)
    text = page(hops)
    assert "</script><script>alert" not in text and "<!--" not in text
    assert Evil.__name__ in tables_of(text)["states"][0]["modes"]


# In the browser -------------------------------------------------------------------------------------------------------


@needs_browser
def test_a_nested_call_is_stepped_through_forward_and_back(opened):
    hops = nested()
    browser = opened(hops)
    count = sum(1 for _ in hops.walk())
    assert browser.text("#position") == f"step 1 of {2 * count}"
    assert "Above is asked before the dispatcher" in browser.text("#sentence")

    seen = [where(browser)]
    for _ in range(2 * count - 1):
        browser.press("ArrowRight")
        seen.append(where(browser))
    assert browser.text("#position") == f"step {2 * count} of {2 * count}"
    assert "gives" in browser.text("#sentence") and "back to the program" in browser.text("#sentence")
    shown = " ".join(" ".join(names) for _, names in seen)
    for word in ("Above", "AutocastCPU", "AutogradCPU", "Python", "Log", "Wrapper", "CPU"):
        assert word in shown

    back = [where(browser)]
    for _ in range(15):
        browser.press("ArrowLeft")
        back.append(where(browser))
    assert back[::-1] == seen[-16:]


@needs_browser
def test_a_step_shows_the_way_the_keys_the_modes_and_both_sources(opened):
    hops = nested()
    browser = opened(hops)
    walked = [hop for _, hop in hops.walk()]
    at = next(
        i for i, hop in enumerate(walked) if hop.key == "Python" and "mm" in str(hop.op) and "Wrapper" in hop.answered
    )
    browser.click("#last")
    browser.click("#first")
    browser.value(f"go(entering[{at}])")

    # the way: a column for each call under way, and where each stopped
    heads = browser.texts(".head b")
    assert heads[-1] == "mm" and "matmul" in heads
    assert browser.text(".box.now b") == "python"
    axis = browser.texts(".axis")
    assert axis[-3].startswith("Python") and axis[-1].startswith("CPU")
    # the keys: this call has only those that Python leaves to a handler
    assert "Python" in browser.text(".chip.now")
    assert not any("Autograd" in chip for chip in browser.texts(".chip"))
    # the state: the mode is asked already, and so it is off; autocast is on
    assert "bfloat16" in browser.text("#state") and "Log" not in browser.text("#state")
    # the arguments, with the numbers by which tensors are known again
    assert "Wrapper(bf16[2, 3])" in browser.text("#values") and "#" in browser.text("#values .id")
    # both sources
    assert "def python(op" in browser.text("#source pre") and "layers/python.py" in browser.text("#source h2")
    assert "def mm(" in browser.text("#special pre")
    assert any("Python" in line for line in browser.texts("#special .mine"))

    browser.press("ArrowRight")  # the handler of the class
    assert browser.text(".box.now b") == "Wrapper.__torch_dispatch__"
    assert "inner_args" in browser.text("#source pre")
    browser.press("ArrowDown")  # over: to where it is done
    assert "Wrapper.__torch_dispatch__ is done and gives Wrapper(bf16[2, 4])" in browser.text("#sentence")
    assert "result" in browser.text("#values") and browser.texts("#source .at")
    browser.press("ArrowUp")
    browser.press("ArrowUp")  # out: to the layer that asked
    assert browser.text(".box.now b") == "python"


@needs_browser
def test_a_page_for_the_eyes(opened, tmp_path):
    """Saves what the page looks like, light and dark; REDISPATCH_SCREENSHOTS says where."""
    hops = nested()
    browser = opened(hops)
    folder = Path(os.environ.get("REDISPATCH_SCREENSHOTS", tmp_path))
    at = [i for i, (_, hop) in enumerate(hops.walk()) if str(hop.op) == "aten.mm.default" and hop.key == "AutogradCPU"]
    browser.value(f"go(entering[{at[0]}])")
    was_dark = browser.value("document.documentElement.classList.contains('dark')")
    for dark in (False, True):
        if browser.value("document.documentElement.classList.contains('dark')") is not dark:
            browser.press("d")
        path = folder / f"trace_{'dark' if dark else 'light'}.png"
        browser.screenshot(path)
        width, height = struct.unpack(">II", path.read_bytes()[16:24])
        assert (width, height) == (1440, 900)
        # what is drawn lies in the page, and no box lies on another
        assert browser.value("document.documentElement.scrollWidth") <= 1440
        assert not browser.value(OVERLAP)
    if was_dark is not None and not was_dark:
        browser.press("d")


@needs_browser
def test_errors_search_and_an_empty_trace(opened):
    with rd.trace() as hops:
        rd.ones(2).exp()
        with pytest.raises(RuntimeError):
            rd.ones(2, 3) @ rd.ones(2, 3)
    browser = opened(hops)
    browser.press("End")
    assert "raises RuntimeError: mat1 and mat2 shapes" in browser.text("#sentence")
    assert browser.texts(".row.failed .key")
    browser.press("/")
    browser.type("exp")
    assert set(browser.texts(".row .name")) == {"exp"}
    browser.press("Escape")
    assert "ones" in browser.texts(".row .name")
    with rd.trace() as nothing:
        pass
    assert "No operator was called" in opened(nothing).text("#sentence")


STEP = """(() => {
    const began = performance.now(), last = entering.length - 1;
    for (let i = 0; i < 40; i++) go(entering[Math.floor(last * i / 40)]);
    return (performance.now() - began) / 40;
})()"""
LOADED = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


def training(many):
    """The hops of as many steps of training as it takes for so many."""
    model = rd.nn.Sequential(rd.nn.Linear(4, 8), rd.nn.ReLU(), rd.nn.Linear(8, 1))
    optimizer = rd.optim.SGD(model.parameters(), lr=0.01)
    x = rd.ones(3, 4)

    def steps(number):
        with rd.trace() as hops:
            for _ in range(number):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
        return hops

    return steps(many // sum(1 for _ in steps(1).walk()) + 1)


@needs_browser
@pytest.mark.parametrize("many", [5_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_a_long_trace_opens_and_is_stepped_through(opened, many):
    hops = training(many)
    count = sum(1 for _ in hops.walk())
    browser = opened(hops)
    assert count >= many and browser.value(LOADED) < 20_000  # milliseconds; 2,000 for 100,000 hops
    browser.press("End")
    assert browser.text("#position") == f"step {2 * count:,} of {2 * count:,}"
    assert len(browser.texts(".row")) < 120  # those in sight, and no more
    browser.press("ArrowLeft")
    assert browser.text("#position").startswith(f"step {2 * count - 1:,}")
    assert browser.value("document.querySelectorAll('*').length") < 3000
    assert browser.value(STEP) < 1000  # milliseconds, from anywhere to anywhere else, on a machine that has much to do
    if "REDISPATCH_SCREENSHOTS" in os.environ:
        browser.screenshot(Path(os.environ["REDISPATCH_SCREENSHOTS"]) / f"trace_of_{many}.png")
