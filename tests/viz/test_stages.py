"""Pictures of graphs of operators and the stages that they go through: graph_drawer.py, _functorch/stages.py."""

import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import redispatch as rd
from redispatch import fx
from redispatch.__main__ import main
from redispatch._functorch.partitioners import default_partition, min_cut_rematerialization_partition
from redispatch._functorch.stages import Stages, diff, stages_of
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.fx.passes.graph_drawer import FxGraphDrawer, joint_picture, picture
from redispatch.fx.passes.post_grad import run_passes
from redispatch.fx.passes.shape_prop import ShapeProp

from .browser import Browser, chromium

needs_browser = pytest.mark.skipif(chromium() is None, reason="no Chromium is installed; `make browser` installs one")


def f(x, w):
    return (x @ w).cos().cos().sum() * 1


@pytest.fixture(scope="module")
def stages():
    return stages_of(f, rd.ones(4, 4, requires_grad=True), rd.ones(4, 4, requires_grad=True))


def test_a_picture_says_of_each_node_what_it_calls_and_what_it_gives():
    module = make_fx(lambda x: x.view(-1).mul(2.5).split(2), tracing_mode="fake")(rd.ones(2, 2))
    drawn = picture(module)
    assert drawn.mermaid.startswith(
        """\
flowchart TD
  n0["x_1<br/>float32[2, 2]"]:::leaf
  n1["view<br/>aten.view(., [-1])<br/>float32[4]"]:::node
  n2["mul<br/>aten.mul.Tensor(., 2.5)<br/>float32[4]"]:::node
  n3["split<br/>aten.split.Tensor(., 2)<br/>float32[2]<br/>float32[2]"]:::node
"""
    )
    assert repr(drawn) == "<graph: 5 steps, values of 16 B>"
    assert "1 nodes not shown" in picture(module, limit=len(module.graph.nodes) - 1).dot


def test_the_cut_of_a_joint_graph_is_drawn_with_what_it_saves():
    found = {}

    def parted(partition):
        def noted(joint, inputs, num_fwd_outputs):
            both = partition(joint, inputs, num_fwd_outputs=num_fwd_outputs)
            found[partition] = joint_picture(joint, *both, num_fwd_outputs)
            return both

        return noted

    for partition in (default_partition, min_cut_rematerialization_partition):
        stages_of(f, *(rd.ones(4, 4, requires_grad=True) for _ in range(2)), partition_fn=parted(partition))
    few, many = found[min_cut_rematerialization_partition].graph, found[default_partition].graph
    again = [box.title for box in few.boxes if box.kind == "again"]
    assert again == ["cos"] and "1 computed again" in few.text and "0 computed again" in many.text
    assert "saved: 64 B" in next(box for box in few.boxes if box.title == "mm").lines
    starts = {few.boxes[start].title for start, _ in few.cut}
    assert starts == {box.title for box in few.boxes if box.kind == "saved"}
    root = ElementTree.fromstring(found[default_partition].svg())
    assert len(root.findall(".//{*}path[@class='cut']")) == len(many.cut) > 0
    assert "style=dashed" in found[default_partition].dot and "-.->" in found[default_partition].mermaid


def test_pytorchs_drawer_draws_submodules_too_and_needs_no_graphviz(tmp_path):
    class Inner(rd.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.bias = fx.symbolic_trace(rd.nn.Sequential(rd.nn.ReLU())), rd.nn.Parameter(rd.ones(2))

        def forward(self, x):
            return self.inner(x) + self.bias

    class Leafy(fx.Tracer):
        def is_leaf_module(self, m, qualified_name):
            return True

    module = Inner()
    traced = fx.GraphModule(module, Leafy().trace(module))
    ShapeProp(traced).propagate(rd.ones(2))
    drawer = FxGraphDrawer(traced, "net", ignore_getattr=True)
    assert list(drawer.get_all_dot_graphs()) == ["net", "net_inner"]
    assert "ReLU" in drawer.get_dot_graph("inner").to_string() and "get_attr" not in drawer.get_main_dot_graph().dot
    assert drawer.get_dot_graph().write_svg(tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_bytes() == drawer.get_main_dot_graph().create_svg()
    assert "float32[2]" in drawer.get_dot_graph().to_string()


def test_stages_are_differences_with_the_lines_of_the_program(stages):
    text = str(stages)
    assert [stage.name for stage in stages][:3] == ["joint graph", "forward: before", "forward: remove_noop_ops"]
    assert "in f, code: return (x @ w).cos().cos().sum() * 1" in text
    assert re.search(r'(?m)^-mul: "f32\[\]" = torch.ops.aten.mul.Tensor\(sum_1, 1\)$', text)
    assert "--- forward: before\n+++ forward: remove_noop_ops\n@@" in text
    assert "forward: constant_fold" in stages.unchanged


def test_passes_alone_have_stages_and_two_graphs_a_difference():
    module, stages = make_fx(lambda x: x.clone().sin(), tracing_mode="fake")(rd.ones(2)), Stages("own")
    run_passes(module, watch=stages.add)
    assert repr(stages) == "<own: before, remove_noop_ops>"
    before, after = (make_fx(lambda x, n=n: x * n)(rd.ones(2)) for n in (2, 3))
    assert "-mul = torch.ops.aten.mul.Tensor(x_1, 2)\n+mul" in diff(before, after).replace(': "f32[2]"', "")
    assert diff(before, before) == ""


def test_the_command_line_shows_stages_and_writes_the_page(tmp_path, capsys):
    function, values = "lambda x, w: (x @ w).cos().sum()", ["ones(2, 3)", "ones(3, 4, requires_grad=True)"]
    assert main(["graph", function, *values]) == 0
    assert f"code: {function}" in capsys.readouterr().out
    assert main(["graph", function, *values, "--html", str(tmp_path / "a.html"), "--svg", str(tmp_path / "a.svg")]) == 0
    assert "stages" in (tmp_path / "a.html").read_text() and "</svg>" in (tmp_path / "a.svg").read_text()
    assert main(["graph", "lambda x: x @ w", "ones(2)"]) == 1
    assert capsys.readouterr().err.endswith("NameError: name 'w' is not defined\n")


def test_text_of_a_program_cannot_end_the_page():
    module = make_fx(lambda x: x.sin())(rd.ones(2))
    (node,) = module.graph.find_nodes(op="call_function")
    node.stack_trace = "  </script><script>alert(1)</script>"
    stages = Stages("<b>")
    stages.add("</script>", module)
    page = stages.html()
    assert page.count("</script>") == 2 and "<title>&lt;b&gt;" in page


@needs_browser
def test_the_page_is_stepped_through_and_fits_a_phone(stages, tmp_path):
    path = tmp_path / "stages.html"
    stages.html(path)
    with Browser(390, 800) as browser:
        browser.open(path)
        assert browser.value("document.documentElement.scrollWidth") == 390
        assert browser.value("document.querySelector('#text h2').textContent") == "joint graph"
        assert browser.value("document.querySelectorAll('#drawing path.cut').length") > 0
        browser.press("ArrowRight")
        browser.press("ArrowRight")
        assert browser.value("document.querySelector('#position').textContent") == f"3 of {len(stages)}"
        assert browser.value("document.querySelectorAll('pre .gone').length") > 0
        before = browser.value("getComputedStyle(document.body).backgroundColor")
        browser.value("document.querySelector('#theme').click()")
        assert browser.value("getComputedStyle(document.body).backgroundColor") != before
        browser.value("document.querySelector('#only').click()")
        assert browser.value(
            "[...document.querySelectorAll('pre div')].filter(d => d.offsetHeight).length"
        ) == browser.value("document.querySelectorAll('pre .gone, pre .new').length")
        assert browser.value("document.documentElement.scrollWidth") == 390


@needs_browser
def test_a_page_for_the_eyes(tmp_path):
    """Saves what the page of docs/passes.md looks like, light and dark; REDISPATCH_SCREENSHOTS says where."""

    def layer(x, w, b):
        return (x @ w + b).cos().cos().relu().sum() * 1

    path, folder = tmp_path / "stages.html", Path(os.environ.get("REDISPATCH_SCREENSHOTS", tmp_path))
    stages_of(layer, *(rd.ones(4, 4, requires_grad=True) for _ in range(3))).html(path)
    with Browser() as browser:
        browser.open(path)
        for name, stage in (("light", 4), ("dark", 1)):
            if browser.value("document.documentElement.classList.contains('dark')") is not (name == "dark"):
                browser.press("d")
            browser.value(f"show({stage - 1})")
            browser.screenshot(folder / f"stages_{name}.png")
            assert browser.value("document.documentElement.scrollWidth") == 1440
            assert (folder / f"stages_{name}.png").stat().st_size > 10_000
