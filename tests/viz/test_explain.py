"""`explain` for calls and functions, and what notebooks show of explanations, traces and tensors."""

import json

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch.overrides import TorchFunctionMode
from redispatch.utils._python_dispatch import TorchDispatchMode


class Log(TorchDispatchMode):
    called = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Log.called += 1
        return func(*args, **(kwargs or {}))


class Above(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def test_a_call_of_an_operator_is_explained_in_the_present_state_and_not_made():
    x = rd.ones(2, 3)
    Log.called = 0
    with rd.autocast("cpu"), Log(), Above():
        text = rd.explain(rd.ops.aten.mm, x, rd.ones(3, 2))
    assert Log.called == 1  # the `ones`
    assert_expected_inline(
        text,
        """\
aten::mm(Tensor self, Tensor mat2) -> Tensor
DispatchKeySet(CPU, BackendSelect, Python, ADInplaceOrView, AutogradCPU, AutocastCPU, PythonTLSSnapshot) for \
(f32[2, 3], f32[3, 2])
  before any key         Above.__torch_function__                     is asked first
  PythonTLSSnapshot      python_tls_snapshot                          backend fallback
  AutocastCPU            autocast                                     kernel; lower_precision_fp
  AutogradCPU            autograd                                     backend fallback; MmBackward0(self, mat2)
  ADInplaceOrView        skipped                                      backend fallback
  Python                 python                                       backend fallback; asks Log
  BackendSelect          skipped                                      backend fallback
  CPU                    structured mm                                kernel""",
    )


def test_a_packet_takes_the_overload_that_the_arguments_fit():
    assert rd.explain(rd.ops.aten.add, rd.ones(1), 1).startswith("aten::add.Tensor(")
    with pytest.raises(RuntimeError, match="no overload of aten.mm fits"):
        rd.explain(rd.ops.aten.mm, 1, 2)
    with pytest.raises(TypeError, match="expected an operator such as .* or a function"):
        rd.explain(3)


def test_a_function_is_explained_by_what_it_calls():
    assert_expected_inline(
        rd.explain(lambda x, w: rd.nn.functional.linear(x, w), rd.ones(2, 3, requires_grad=True), rd.ones(4, 3)),
        """\
aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor
DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU) for (f32[2, 3], f32[4, 3], None)
  AutogradCPU            linear                                       math kernel
      aten::t(Tensor(a) self) -> Tensor(a)
      DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU) for (f32[4, 3])
        AutogradCPU            autograd                                     backend fallback; TBackward0(self)
        ADInplaceOrView        ad_inplace_or_view                           kernel
        BackendSelect          skipped                                      backend fallback
        CPU                    matrix_transposed                            default backend kernel
      aten::matmul(Tensor self, Tensor other) -> Tensor
      DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU) for (f32[2, 3], f32[3, 4])
        AutogradCPU            matmul_composite                             math kernel
            aten::mm(Tensor self, Tensor mat2) -> Tensor
            DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU) for (f32[2, 3], f32[3, 4])
              AutogradCPU            autograd                                     backend fallback; \
MmBackward0(self, mat2)
              ADInplaceOrView        skipped                                      backend fallback
              BackendSelect          skipped                                      backend fallback
              CPU                    structured mm                                kernel
        ADInplaceOrView        skipped                                      backend fallback
        BackendSelect          skipped                                      backend fallback
        CPU                    matmul_composite                             math kernel
  ADInplaceOrView        skipped                                      backend fallback
  BackendSelect          skipped                                      backend fallback
  CPU                    linear                                       math kernel""",
    )


def test_modes_and_classes_that_are_asked_are_named():
    with Log(), Above():
        text = rd.explain(lambda x: rd.exp(x), rd.ones(2))
    assert text.startswith("exp is given to Above.__torch_function__\n  aten::exp(Tensor self) -> Tensor\n")
    assert "python                                       backend fallback; asks <" in text


def test_explaining_a_function_changes_nothing():
    x, kept = rd.zeros(3), []
    leaf = rd.ones(3, requires_grad=True)
    middle = leaf * 2
    before = rd.get_rng_state()

    def function(x, middle):
        x.add_(1)
        middle.mul_(2).sum().backward()
        kept.append(rd.randn(2))

    norm = rd.nn.BatchNorm1d(3)
    rd.explain(function, x, middle)
    rd.explain(norm, rd.randn(4, 3, generator=rd.Generator().manual_seed(0)))
    assert x.tolist() == [0, 0, 0] and middle.tolist() == [2, 2, 2] and leaf.grad is None and middle._version == 0
    assert norm.num_batches_tracked.item() == 0 and norm.running_mean.tolist() == [0, 0, 0]
    assert rd.equal(rd.get_rng_state(), before) and len(kept) == 1


def test_arguments_that_are_one_tensor_stay_one():
    x = rd.zeros(3)
    seen = []
    rd.explain(lambda a, b: seen.append((a is b, a is x)), x, x)
    assert seen == [(True, False)]


def test_an_error_is_part_of_the_explanation():
    text = rd.explain(lambda x: x.exp() @ rd.ones(2, 3), rd.ones(2, 3))
    assert text.startswith("aten::exp(") and "then it raises RuntimeError: mat1 and mat2" in text
    assert rd.explain(lambda: 1).endswith("calls no operator")


def test_an_explanation_is_a_table_in_a_notebook():
    html = rd.explain(rd.nn.functional.linear, rd.ones(2, 3), rd.ones(4, 3))._repr_html_()
    assert html.count("<table>") == html.count("</table>") == 4
    assert "<th>AutogradCPU</th><td>linear</td>" in html
    assert "<script" not in html


# Notebooks and other programs -----------------------------------------------------------------------------------------


def test_a_tensor_in_a_notebook_shows_what_decides():
    x = rd.ones(2, 3, dtype=rd.float64, requires_grad=True).t()
    html = x._repr_html_()
    for name, value in (("shape", "(3, 2)"), ("strides", "(1, 3)"), ("dtype", "float64"), ("device", "cpu")):
        assert f"<small>{name}</small>{value}" in html
    assert "AutogradCPU" in html and "grad_fn=&lt;TBackward0&gt;" in html


def test_a_trace_in_a_notebook_is_a_tree():
    with rd.trace() as hops:
        rd.nn.functional.linear(rd.ones(2, 3), rd.ones(4, 3))
    html = hops._repr_html_()
    assert html.count("<details") == html.count("</details>") > 3
    assert html.count('class="hop"') + html.count("<details") == sum(1 for _ in hops.walk())
    with rd.trace() as hops:
        for _ in range(600):
            rd.ones(1).exp()
    assert "hops more" in hops._repr_html_()


def test_chromes_events_lie_inside_one_another(tmp_path):
    with rd.trace() as hops, Log():
        rd.nn.functional.linear(rd.ones(2, 3), rd.ones(4, 3))
    hops.chrome(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    walked = [hop for _, hop in hops.walk()]
    assert [event["args"]["key"] for event in spans] == [hop.key for hop in walked]
    at = {id(hop): event for hop, event in zip(walked, spans, strict=True)}
    for hop in walked:
        for child in hop.children:
            inner, outer = at[id(child)], at[id(hop)]
            assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 1e-3
    assert {event["cat"] for event in spans} == {"dispatch", "handler"}


def test_an_operator_alone_is_explained_for_plain_tensors():
    text = rd.explain(rd.ops.aten.mm.default)
    assert text.splitlines()[1].endswith("for plain tensors on the CPU") and "structured mm" in text
    assert len(rd.explain(rd.ops.aten.mm).calls) == len(rd.ops.aten.mm.overloads()) == 2
    assert rd.explain("aten::mm") == text
