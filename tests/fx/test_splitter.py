"""Graphs in parts for a backend and for the rest, and the part of a graph that differs."""

import pytest

import redispatch as rd
from redispatch import fx
from redispatch.fx.passes.net_min_base import (
    FxNetMinimizerResultMismatchError,
    FxNetMinimizerRunFuncError,
    _MinimizerBase,
    _MinimizerSettingBase,
)
from redispatch.fx.passes.operator_support import create_op_support
from redispatch.fx.passes.splitter_base import _SplitterBase, _SplitterSettingBase

X = rd.tensor([0.5, -1.0])
SUPPORT = create_op_support(lambda submodules, node: node.target in (rd.relu, rd.sin, rd.add))


def model(x):
    both = rd.sin(rd.relu(x))
    return rd.relu(rd.add(rd.cos(both), both))


def splitter(function=model, **settings):
    return _SplitterBase(fx.symbolic_trace(function), (X,), SUPPORT, _SplitterSettingBase(**settings))


def test_parts_are_by_turns_for_the_backend_and_for_the_rest():
    found = splitter().generate_split_results()
    names = ["_run_on_acc_0", "_run_on_cpu_1", "_run_on_acc_2"]
    assert [name for name, _ in found.split_module.named_children()] == names
    assert found.split_module(X).tolist() == model(X).tolist()
    assert found.submodule_inputs["_run_on_acc_0"][0] is X
    assert "cos" in splitter().node_support_preview() and "_run_on_cpu_1: 1 node(s): cos" in splitter().split_preview()


def test_parts_may_not_be_too_small_or_too_many():
    assert [name for name, _ in splitter(min_acc_module_size=3)().named_children()] == ["_run_on_cpu_0"]
    with pytest.raises(ValueError, match="Cannot fulfill max_acc_splits limit"):
        splitter(max_acc_splits=1)()


def test_numbers_do_not_go_from_part_to_part_unless_they_may():
    def sizes(x):
        return rd.add(x, rd.sum(x).dim())

    assert [name for name, _ in splitter(sizes)().named_children()] == ["_run_on_cpu_0"]
    assert "_run_on_acc_1" in [name for name, _ in splitter(sizes, allow_non_tensor=True)().named_children()]


class WrongSine(_MinimizerBase):
    def run_a(self, mod, inputs, report_idx=-1):
        return mod(*inputs)

    def run_b(self, mod, inputs, report_idx=-1):
        wrong = any(node.target is rd.sin for node in mod.graph.nodes)
        return mod(*inputs) + 1 if wrong else mod(*inputs)


@pytest.mark.parametrize("method", ["sequential", "binary"])
def test_the_node_that_differs_is_found(method):
    module = fx.symbolic_trace(lambda x: rd.cos(rd.sin(rd.relu(x))))
    compare = lambda a, b, names: ((a - b).abs().max().item(), rd.allclose(a, b))  # as it is passed
    search = WrongSine(module, (X,), compare, _MinimizerSettingBase(traverse_method=method))
    assert [node.name for node in search.minimize()] == ["sin"] and "differ" in search.reports[-1]
    with pytest.raises(FxNetMinimizerResultMismatchError, match="sin"):
        search.run_nodes("relu", "sin")
    search.run_nodes("cos")
    search.run_b = lambda mod, inputs, report_idx=-1: 1 / 0
    with pytest.raises(FxNetMinimizerRunFuncError, match="Exception raised when running"):
        search.minimize()
