"""Pictures for slides: steps of a trace, keysets, modes, storages; each is XML with a title, in two themes."""

import re
from xml.etree import ElementTree

import pytest

import redispatch as rd
from redispatch import viz
from redispatch.modes.flop_counter import FlopCounterMode

SPACE = "{http://www.w3.org/2000/svg}"


def texts(drawing):
    return [one.text for one in ElementTree.fromstring(drawing).iter(f"{SPACE}text")]


@pytest.fixture
def hops():
    x = rd.ones(2, 3, requires_grad=True)
    with rd.trace() as found:
        (x @ rd.ones(3, 2)).sum().backward()
    return found


def test_a_step_shows_the_hops_that_are_under_way(hops):
    first, deepest = texts(hops.svg(1)), texts(hops.svg())
    assert first[0] == "aten.ones.default  [BackendSelect]" or first[0].startswith("aten.ones.default")
    assert any(text.startswith("aten.mm.default  [CPU]") for text in deepest)
    assert deepest[0].startswith("aten.matmul.default")  # the call from which it came
    last = texts(hops.svg(2 * sum(1 for _ in hops.walk())))
    assert "in backward" in last[-1] and any(text.startswith("gives") for text in last)
    for number in (0, 10_000):
        with pytest.raises(IndexError, match=f"step {number} of a trace of"):
            hops.svg(number)


def test_every_step_is_a_file(hops, tmp_path):
    paths = hops.frames(tmp_path / "slides", theme="dark")
    assert len(paths) == 2 * sum(1 for _ in hops.walk()) and paths == sorted(paths)
    assert (tmp_path / "slides" / paths[2].rpartition("/")[2]).read_text() == hops.svg(3, "dark")


def test_storages_modes_and_keysets_are_drawn():
    x = rd.ones(2, 3)
    found = texts(viz.storages(x=x, turned=x.T, other=rd.ones(1)).svg("light"))
    assert found.count("storage") == 2 and {"stride (3, 1)", "stride (1, 3)", "24 B"} <= {*found}
    assert texts(viz.keyset(x).svg("light"))[0] == viz.keyset(x._keyset).graph.boxes[0].title
    with FlopCounterMode(display=False):
        assert texts(viz.modes().svg("light"))[:2] == ["FlopCounterMode", "__torch_dispatch__"]


def brightness(colour):
    colour = colour if len(colour) == 7 else "#" + "".join(2 * one for one in colour[1:])
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_picture_says_what_it_is_and_can_be_read_in_both_themes(hops, theme):
    root = ElementTree.fromstring(hops.svg(5, theme))
    assert root.find(f"{SPACE}title").text == f"step 5 of {2 * sum(1 for _ in hops.walk())}"
    assert root.find(f"{SPACE}desc").text and root.get("font-family") == "sans-serif"
    grounds = [viz.graph_picture.FILLS[kind] for kind in viz.graph_picture.FILLS]
    inks = ["#111", "#444"]
    if theme == "dark":
        grounds, inks = ([viz.graph_picture.DARK[one] for one in some] for some in (grounds, inks))
    for ground in grounds:
        for ink in inks:
            low, high = sorted([brightness(ground), brightness(ink)])
            assert high / low >= 4.5, (ground, ink)
    assert re.findall(r'="(#\w+)"', hops.svg(5, theme))


def test_a_theme_that_there_is_not_is_refused(hops):
    with pytest.raises(ValueError, match="light or dark"):
        hops.svg(1, "blue")


def test_notebooks_show_graphs_schemas_and_the_page_of_a_trace(hops):
    module = rd.fx.symbolic_trace(lambda x: x.relu() + 1)
    assert "<svg" in module._repr_html_() and "relu" in module._repr_html_()
    schema = rd.ops.aten.add_.Tensor._schema._repr_html_()
    assert "written" in schema and "Tensor(a!) self" in schema
    frame = viz.Inline(hops, 300)._repr_html_()
    assert frame.startswith("<iframe") and "height:300px" in frame and frame.count('"') == 6
