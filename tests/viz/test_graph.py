"""viz.graph: what the picture shows, in each form in which it is drawn."""

import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest

import redispatch as rd
from redispatch import viz
from redispatch.viz import graph_layout


def loss_of(params):
    x = rd.ones(4, 3)
    return (x @ params["weight"] + params["bias"]).exp().sum()


@pytest.fixture
def params():
    return {"weight": rd.ones(3, 2, requires_grad=True), "bias": rd.ones(2, requires_grad=True)}


def test_the_text_names_nodes_leaves_and_what_is_saved(params):
    text = viz.graph(loss_of(params), params).mermaid
    assert text.startswith(
        """\
flowchart TD
  n0["result<br/>float32[]"]:::result
  n1["SumBackward0"]:::node
  n2["ExpBackward0<br/>saved result: float32[4, 2], 32 B"]:::node
  n3["AddBackward0"]:::node
  n4["MmBackward0<br/>saved self: float32[4, 3], 48 B"]:::node
  n5["bias<br/>float32[2]"]:::leaf
  n6["weight<br/>float32[3, 2]"]:::leaf
  n0 --> n1
  n1 --> n2
  n2 --> n3
  n3 --> n4
  n3 --> n5
  n4 --> n6
"""
    )
    drawn = viz.graph(loss_of(params), params)
    assert 'n2 [label="ExpBackward0\\nsaved result: float32[4, 2], 32 B"' in drawn.dot and "n4 -> n6;" in drawn.dot
    assert repr(drawn) == "<autograd graph: 4 nodes, 80 B saved for backward>"


def test_memory_is_counted_once_and_that_of_leaves_not_at_all():
    w = rd.ones(8, requires_grad=True)
    y = w.exp()  # keeps its result, which both products keep again; `w * w` keeps only the leaf
    assert viz.graph((y * y + y * y + w * w).sum()).graph.saved_bytes == 32


def test_to_look_runs_no_hook_and_changes_nothing(params):
    def fails(*_):
        raise AssertionError("looked at")

    with rd.autograd.graph.saved_tensors_hooks(lambda x: x, fails):
        loss = loss_of(params)
    assert "saved result: packed by a hook" in viz.graph(loss).mermaid
    loss = loss_of(params)
    viz.graph(loss).svg()
    loss.backward()
    assert "saved" not in viz.graph(loss).mermaid  # it was let go


def test_a_function_of_the_users_shows_what_it_saved():
    class Square(rd.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    shown = viz.graph(Square.apply(rd.ones(5, requires_grad=True) * 1)).mermaid
    assert "SquareBackward<br/>saved tensor 0: float32[5], 20 B" in shown


def boxes_and_arrows(svg):
    root = ElementTree.fromstring(svg)
    ns = "{http://www.w3.org/2000/svg}"
    boxes = [tuple(float(box.get(k)) for k in ("x", "y", "width", "height")) for box in root.iter(f"{ns}rect")]
    arrows = [path.get("d") for path in root.findall(f"{ns}path")]
    return boxes, arrows


def test_in_the_drawing_no_box_lies_on_another_and_no_straight_piece_of_an_arrow_on_a_box(params):
    x = rd.ones(4, requires_grad=True)
    y = x
    for _ in range(4):
        y = x + (y.exp() * x).sin()
    boxes, arrows = boxes_and_arrows(graph_layout.svg(viz.graph((y * x).sum()).graph))
    assert len(boxes) == 1 + 4 * 4 + 2 + 1
    for i, (x0, y0, w0, h0) in enumerate(boxes):
        for x1, y1, w1, h1 in boxes[:i]:
            assert x0 + w0 <= x1 or x1 + w1 <= x0 or y0 + h0 <= y1 or y1 + h1 <= y0
    for path in arrows:
        for at, begin, end in re.findall(r" ([\d.]+),([\d.]+) V([\d.]+)", path):
            for x1, y1, w1, h1 in boxes:
                between = y1 < float(end) and float(begin) < y1 + h1
                assert not (between and x1 < float(at) < x1 + w1)


def test_text_is_escaped():
    w = rd.ones(1, requires_grad=True)
    drawn = viz.graph(w * 2, {'<a & "b">': w})
    ElementTree.fromstring(graph_layout.svg(drawn.graph))
    assert '\\"b\\"' in drawn.dot and "#lt;a #amp; #quot;b#quot;#gt;" in drawn.mermaid


def test_a_large_graph_is_cut():
    x = rd.ones(1, requires_grad=True)
    y = x
    for _ in range(50):
        y = y * 2
    boxes = viz.graph(y, limit=10).graph.boxes
    assert [box.kind for box in boxes].count("node") == 10 and boxes[-1].kind == "more"


def test_it_is_shown_by_notebooks_and_saved(params, tmp_path):
    drawn = viz.graph([loss_of(params), rd.autograd.graph.get_gradient_edge(params["bias"])], params)
    bundle = drawn._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "text/html", "text/plain"} and "<svg" in bundle["text/html"]
    assert set(drawn._repr_mimebundle_(include=["text/plain"])) == {"text/plain"}
    for name, begin in (("g.svg", "<svg"), ("g.dot", "digraph"), ("g.mmd", "flowchart")):
        assert begin in drawn.save(tmp_path / name).read_text()
    with pytest.raises(ValueError, match=r"cannot write a graph to g\.png"):
        drawn.save(tmp_path / "g.png")
    with pytest.raises(ValueError, match="tensor 1 has no graph"):
        viz.graph([loss_of(params), rd.ones(1)])


@pytest.mark.parametrize("has_program", [True, False])
def test_graphviz_draws_where_it_is_installed(params, monkeypatch, has_program):
    class Graphviz:
        class ExecutableNotFound(RuntimeError):
            pass

        class Source:
            def __init__(self, text):
                assert text.startswith("digraph")

            def pipe(self, format):
                if not has_program:
                    raise Graphviz.ExecutableNotFound
                return b"<svg>by graphviz</svg>"

    monkeypatch.setitem(sys.modules, "graphviz", Graphviz)
    assert (viz.graph(loss_of(params)).svg() == "<svg>by graphviz</svg>") is has_program
