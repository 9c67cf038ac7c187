"""What programs import of fx beside graphs: lazy modules, marks, meta tracing, slots, settings, backends that count."""

import copy
import gc
import math
import pickle

import pytest

import redispatch as rd
from redispatch import fx, nn
from redispatch._dynamo.testing import AotEagerAndRecordGraphs, CompileCounter, normalize_gm
from redispatch._functorch import config
from redispatch._ops import HigherOrderOperator
from redispatch.fx._compatibility import _BACK_COMPAT_OBJECTS, _MARKED_WITH_COMPATIBILITY, compatibility
from redispatch.fx._lazy_graph_module import _force_skip_lazy_graph_module, _LazyGraphModule, _use_lazy_graph_module
from redispatch.fx._utils import get_node_context, lazy_format_graph_code
from redispatch.fx.experimental import meta_tracer
from redispatch.fx.experimental.debug import set_trace
from redispatch.fx.experimental.proxy_tensor import (
    ProxyTorchDispatchMode,
    get_proxy_mode,
    get_proxy_slot,
    has_proxy_slot,
    make_fx,
    track_tensor_tree,
)
from redispatch.fx.experimental.sym_node import (
    bool_magic_methods,
    magic_methods,
    method_to_operator,
    to_node,
    unary_methods,
)
from redispatch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, bind_symbols
from redispatch.fx.graph_module import WRAPPED, _assign_attr, _copy_attr, _del_attr, _get_attr, _has_attr
from redispatch.modes.fake_tensor import FakeTensorMode
from redispatch.utils import _pytree as pytree


def doubled(x):
    return x * 2


fx.wrap("doubled")


def test_a_lazy_module_makes_code_when_it_is_asked_for():
    with _use_lazy_graph_module(True):
        module = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
        with _force_skip_lazy_graph_module():
            assert not isinstance(fx.symbolic_trace(doubled), _LazyGraphModule)
    assert isinstance(module, _LazyGraphModule) and module._needs_recompile()
    assert module(rd.ones(1, 2)).shape == (1, 2) and not module._needs_recompile()
    module.recompile()
    assert module._needs_recompile() and "return" in module.code and not module._needs_recompile()
    assert not isinstance(pickle.loads(pickle.dumps(module)), _LazyGraphModule)
    assert _LazyGraphModule.from_graphmodule(module) is module


def test_a_wrapped_function_is_a_step_of_the_code_too_and_is_let_go_with_it():
    before = len(WRAPPED)
    module = fx.symbolic_trace(lambda x: doubled(math.floor(x)))
    name = f"{__name__.replace('.', '_')}_doubled"
    assert f'torch.fx._symbolic_trace.wrap("{name}")' in module.code and f"= {name}(" in module.code
    again = fx.symbolic_trace(module)
    assert [node.target for node in again.graph.find_nodes(op="call_function")] == [math.floor, doubled]
    assert len(WRAPPED) > before
    module.recompile()
    del module, again
    gc.collect()
    assert len(WRAPPED) == before


def test_marks_of_compatibility_are_kept_and_said():
    @compatibility(is_backward_compatible=False)
    def f():
        """Returns nothing."""

    assert f in _MARKED_WITH_COMPATIBILITY and f not in _BACK_COMPAT_OBJECTS and "NOT* backward" in f.__doc__
    del _MARKED_WITH_COMPATIBILITY[f]


def test_graphs_stand_in_messages():
    module = fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    assert str(lazy_format_graph_code("name", module, 3)).startswith("TRACED GRAPH\n ===== name 3 =====")
    text = get_node_context(module.graph.output_node())
    assert text.splitlines()[0].startswith("%_0 :") and text.endswith("return _0")
    assert "pdb.set_trace()" in set_trace(module).code


def test_attributes_are_found_and_put_at_dotted_paths():
    source, target = nn.Sequential(nn.Linear(2, 2)), nn.Module()
    _copy_attr(source, target, "0.weight")
    assert _get_attr(target, "0.weight") is source[0].weight
    _assign_attr(rd.ones(2), target, "a.b")
    assert "a.b" in dict(target.named_buffers())
    _del_attr(target, "a.b")
    assert not _has_attr(target, "a.b")


def test_with_metadata_a_program_may_branch_on_shapes():
    class Branching(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 5)

        def forward(self, x):
            return self.linear(x).view(x.shape[0], -1) if x.size(0) > 2 and len(x) == 4 and x.dim() == 2 else x

    traced = meta_tracer.symbolic_trace(Branching(), meta_args={"x": rd.empty(4, 3, device="meta")})
    assert [node.op for node in traced.graph.nodes] == ["placeholder", "call_module", "call_method", "output"]
    assert traced(rd.ones(4, 3)).shape == (4, 5)
    assert len(meta_tracer.symbolic_trace(Branching(), {"x": rd.empty(1, 3, device="meta")}).graph.nodes) == 2


def test_an_operator_of_ones_own_traces_by_slots():
    class Twice(HigherOrderOperator):
        def __call__(self, x):
            return super().__call__(x)

    twice = Twice("twice_of_test_helpers")
    twice.fallthrough(rd._C.DispatchKey.AutogradCPU)

    @twice.py_impl(rd._C.DispatchKey.CompositeExplicitAutograd)
    def computed(x):
        return x * 2

    @twice.py_impl(ProxyTorchDispatchMode)
    def traced(mode, x):
        given = pytree.tree_map(mode.tracer.unwrap_proxy, (x,))
        result = twice(x)
        proxy = mode.tracer.create_proxy("call_function", twice, given, {}, name="twice")
        return track_tensor_tree(result, proxy, constant=None, tracer=mode.tracer)

    @twice.py_impl(FakeTensorMode)
    def faked(mode, x):
        with mode:
            return x * 2

    seen = []

    def program(x):
        tracer = get_proxy_mode().tracer
        seen.append((str(get_proxy_slot(x, tracer).proxy.node), has_proxy_slot(x, tracer)))
        return twice(x) + 1

    for mode in ("real", "fake"):
        module = make_fx(program, tracing_mode=mode)(rd.ones(2))
        assert [node.name for node in module.graph.nodes] == ["x_1", "twice", "add", "output"]
        assert module(rd.ones(2)).tolist() == [3, 3]
    assert seen == [("x_1", True)] * 2


def test_nodes_of_make_fx_note_the_modules_around_them():
    module = make_fx(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), record_module_stack=True)(rd.ones(1, 2))
    stacks = {node.name: node.meta.get("nn_module_stack") for node in module.graph.nodes}
    assert list(stacks["relu"]) == ["", "1"] and stacks["relu"]["1"][1].endswith(".ReLU")


def test_a_symbolic_number_computes_by_its_inside():
    env = ShapeEnv()
    five, three = (env.create_symintnode(env.create_symbol(n, dynamic_dim=DimDynamic.DYNAMIC)).node for n in (5, 3))
    assert len(magic_methods) > 40 and set(magic_methods) <= set(dir(five))
    found = five.add(three), five.sub(three), five.int_floordiv(three), five.mod(three), five.sym_max(three), five.neg()
    assert [one.guard_int("", 0) for one in found] == [8, 2, 1, 2, 5, -5]
    assert five.gt(three).is_bool() and five.int_truediv(three).is_float() and not five.wrap_int(2).is_symbolic()
    assert five.wrap_int(2).add(five.wrap_int(3)).maybe_as_int() == 5
    assert env.bound_sympy(five.expr).lower == 5  # as it was guarded to be


@pytest.mark.parametrize("name", sorted(magic_methods.keys() - {"sym_ite", "is_integer"}))
def test_numbers_that_are_symbolic_in_name_alone_compute_as_numbers_do(name):
    seed = ShapeEnv().create_unbacked_symint().node
    symbolic = {int: rd.SymInt, float: rd.SymFloat, bool: rd.SymBool}
    function = method_to_operator(name)
    unary = name in unary_methods or name == "round"
    pairs = [(True, False), (True, True)] if name in bool_magic_methods else [(5, 3), (-2, 3), (4, 0), (2.5, 1.5)]
    for pair in pairs:
        given = pair[: 1 if unary else 2]
        try:
            wanted = function(*given)
        except (ValueError, TypeError, ZeroDivisionError) as problem:
            with pytest.raises(type(problem)):
                function(*(symbolic[type(one)](to_node(seed, one)) for one in given))
            continue
        for places in range(1, 2 ** len(given)):
            found = function(
                *(symbolic[type(one)](to_node(seed, one)) if places >> i & 1 else one for i, one in enumerate(given))
            )
            assert type(found) is symbolic[type(wanted)] and type(wanted)(found) == pytest.approx(wanted)


def test_a_power_that_is_negative_is_no_whole_number():
    size = ShapeEnv().create_unspecified_symint(4)
    assert type(size**-2) is rd.SymFloat and float(size**-2) == 0.0625


def test_the_numbers_behind_symbols_are_told():
    module = make_fx(lambda x: x + 1, tracing_mode="symbolic")(rd.ones(3, 4))
    assert sorted(bind_symbols(module, rd.ones(5, 6)).values()) == [5, 6]


def test_a_number_of_elements_may_say_how_often_a_tensor_is_repeated():
    module = make_fx(lambda x, n: x.repeat(n.item()), tracing_mode="symbolic")(rd.ones(2), rd.tensor(3))
    assert module(rd.ones(2), rd.tensor(4)).shape == (8,)


def test_an_error_of_a_node_names_it_and_keeps_its_class():
    module = fx.symbolic_trace(lambda x: rd.mm(x, x))
    with pytest.raises(RuntimeError, match=r"While executing %mm : .*target=torch.mm"):
        fx.Interpreter(module).run(rd.ones(3))


def test_nodes_are_ordered_and_annotations_written():
    def f(x: list[rd.Tensor], y: "int" = 1) -> dict[str, rd.Tensor]:
        return {"a": x[0]}

    module = fx.symbolic_trace(f)
    first, *_, last = module.graph.nodes
    assert first < last and last > first and first <= first and last >= first
    assert "x : list[torch.Tensor]" in module.code and "-> dict[str,torch.Tensor]:" in module.code
    assert copy.deepcopy(module).code == module.code


def test_an_augmented_assignment_of_a_proxy_writes_nothing():
    def f(x):
        kept = x
        x += 1
        return kept, x

    x = rd.ones(2)
    kept, new = fx.symbolic_trace(f)(x)
    assert x.tolist() == kept.tolist() == [1, 1] and new.tolist() == [2, 2]


def test_settings_are_patched_for_a_block():
    with config.patch(functionalize_rng_ops=True), config.patch("check_custom_op_aliasing", False):
        assert config.functionalize_rng_ops and not config.check_custom_op_aliasing
    assert config.check_custom_op_aliasing and not config.functionalize_rng_ops


def test_backends_count_graphs_and_keep_them():
    def f(x):
        y = x.sin()
        return y + 1

    counter, kept = CompileCounter(), AotEagerAndRecordGraphs()
    for backend in (counter, kept):
        compiled = rd.compile(f, backend=backend)
        for _ in range(2):
            compiled(rd.ones(2, requires_grad=True)).sum().backward()
    assert (counter.frame_count, counter.op_count) == (1, 2)
    assert [len(one) for one in (kept.graphs, kept.fw_graphs, kept.bw_graphs)] == [1, 1, 1]
    assert "aten.sin" in normalize_gm(kept.fw_graphs[0].print_readable(print_output=False))


def test_a_function_of_the_match_says_what_takes_its_place():
    module = fx.symbolic_trace(lambda x, y: rd.relu(x + y).sum() + rd.relu(y + 1))
    asked = []

    def instead(match, graph, pattern):
        asked.append([str(one) for one in match.placeholder_nodes])
        return fx.symbolic_trace(lambda a, b: rd.tanh(a + b)).graph

    fx.subgraph_rewriter.replace_pattern_with_filters(
        module,
        lambda a, b: rd.relu(a + b),
        match_filters=[lambda match, graph, pattern: 1 not in match.placeholder_nodes],
        replacement_callback=instead,
    )
    assert asked == [["x", "y"]] and module.code.count("torch.tanh") == module.code.count("torch.relu") == 1
