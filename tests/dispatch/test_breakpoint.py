"""`breakpoint`: calls stop in the debugger at a key, boxed or specialised, and nowhere else."""

import sys

import pytest

import redispatch as rd
from redispatch.dispatch import STATE, explain, ops
from redispatch.dispatch.inspection.frames import STOPS


@pytest.fixture
def stops(monkeypatch):
    """What the debugger would see, stop by stop: (operator, key, number of arguments)."""
    found = []

    def debugger():
        seen = sys._getframe(1).f_locals
        assert set(seen) >= {"op", "keyset", "stack", "entry"}
        found.append((str(seen["op"]), seen["entry"].key.name, len(seen["stack"])))

    monkeypatch.setattr(sys, "breakpointhook", debugger)
    yield found
    assert STOPS == []


def often(function):
    """Often enough for specialised code."""
    for _ in range(4):
        function()


def test_a_call_stops_at_the_key_and_goes_on(stops):
    x = rd.ones(2, 2, requires_grad=True)
    often(lambda: x @ x)
    with rd.breakpoint("aten::mm", key="AutogradCPU") as point:
        assert (x @ x).tolist() == [[2, 2], [2, 2]]
        assert (x @ x).grad_fn.name() == "MmBackward0"
        assert "aten.mm.default" in repr(point) and "removed" not in repr(point)
    often(lambda: x @ x)
    assert stops == [("aten.mm.default", "AutogradCPU", 2)] * 2
    assert repr(point).endswith("removed>")


def test_specialised_code_stops_and_comes_back_afterwards(stops):
    x = rd.ones(3)
    op = rd.ops.aten.exp.default
    often(lambda: op(x))
    point = rd.breakpoint(op, key="CPU")
    often(lambda: op(x))
    assert len(stops) == 4
    assert not any(op.tables[facts] for facts in op.tables)  # boxed meanwhile
    point.remove()
    point.remove()
    often(lambda: op(x))
    assert len(stops) == 4
    if rd.config.specialize:
        assert any(op.tables[facts] for facts in op.tables)


def test_a_packet_an_alias_key_and_every_operator(stops):
    x = rd.ones(2, requires_grad=True)
    with rd.breakpoint(rd.ops.aten.mul, key="Autograd"):
        x * 2
        x * x
        x + 1
    assert [op for op, _, _ in stops] == ["aten.mul.Tensor"] * 2
    stops.clear()
    with rd.breakpoint(key="AutogradCPU"):
        (x * 2).sum()
    assert stops == [("aten.mul.Tensor", "AutogradCPU", 2), ("aten.sum.default", "AutogradCPU", 2)]
    stops.clear()
    with rd.breakpoint("exp"):
        x.exp()
    assert [key for _, key, _ in stops] == ["AutogradCPU", "CPU"]


def test_two_at_one_place_both_stop_and_tables_read_as_before(stops):
    x = rd.ones(2)
    before = explain(ops.aten.exp.default, x)
    with rd.breakpoint("exp", key="CPU"), rd.breakpoint(key="CPU"), rd.trace() as hops:
        assert explain(ops.aten.exp.default, x) == before
        x.exp()
    assert len(stops) == 2
    assert "unary" in str(hops) or "pointwise" in str(hops)
    assert STATE.get().tracer is None


def test_mistakes_are_said():
    with pytest.raises(TypeError, match="say which operator, which key, or both"):
        rd.breakpoint()
    with pytest.raises(ValueError, match="no call of aten.exp.default stops at ADInplaceOrView"):
        rd.breakpoint(rd.ops.aten.exp.default, key="ADInplaceOrView")
    with pytest.raises(TypeError, match="expected an operator"):
        rd.breakpoint(len, key="CPU")
    with pytest.raises(RuntimeError, match="there is no operator"):
        rd.breakpoint("aten::nothing")
    with pytest.raises(ValueError, match="Autograd"):
        rd.breakpoint("exp", key="AutogradCP")
    assert STOPS == []
