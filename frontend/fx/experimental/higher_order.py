"""Higher-order operators in graphs: the nodes that `make_fx` enters for `cond`, `while_loop`, `map`, `scan` and others.

A graph holds for all values, and a branch or a loop depends on them. So the operator itself becomes a node, and each
function that it takes a graph of its own, a module of the whole (`true_graph_0`), traced on copies of the tensors that
it is given. An operator that takes no function is entered as it is.

Where a gradient is wanted, nothing is entered here: the body runs, and its operators are recorded and entered one by
one.

Read next: ../../_higher_order_ops/.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch._higher_order_ops.control_flow import Flat, check_alike, cond_op, map_impl, scan_op, while_loop_op
from redispatch._higher_order_ops.effects import auto_functionalized_v2, with_effects
from redispatch._higher_order_ops.effects import print as print_op
from redispatch._higher_order_ops.regions import (
    _foreach_map,
    hints_wrapper,
    invoke_subgraph,
    local_map_hop,
    strict_mode_op,
)
from redispatch._higher_order_ops.rng import run_and_save_rng_state, run_with_rng_state
from redispatch._higher_order_ops.wrap import auto_functionalized, out_dtype
from redispatch.dispatch import STATE, wants_gradient
from redispatch.dispatch.higher_order import HigherOrderOperator
from redispatch.dispatch.pytree import tree_flatten, tree_leaves
from redispatch.dispatch.tensor import Tensor
from redispatch.modes.fake_tensor import FakeTensorMode

from ..node import IMPURE
from .proxy_tensor import ProxyTorchDispatchMode, make_fx


def is_recorded(*args: Any) -> bool:
    """Returns whether a gradient is wanted through these arguments."""
    return STATE.get().grad_enabled and any(isinstance(x, Tensor) and wants_gradient(x) for x in tree_leaves(args))


def entered(mode: ProxyTorchDispatchMode, op: HigherOrderOperator, args: Any, kwargs: Any, result: Any) -> Any:
    """`result`, as that of a node which is entered for the call."""
    proxy = mode.tracer.create_proxy("call_function", op, args, kwargs, name=op.name())
    mode.tracer.track_tree(result, proxy)
    return result


def graph_of(
    mode: ProxyTorchDispatchMode, function: Callable[..., Any], leaves: Sequence[Any], name: str, single: bool = False
) -> tuple[Any, Any]:
    """(the graph of a function of tensors, a module of the graph that is being made; what it gave while it was traced).

    The function returns a list of leaves, or one leaf if it is `single`.
    """
    copies = [x.clone() if isinstance(x, Tensor) else x for x in leaves]  # what it writes is its own affair
    results: list[Any] = []

    def traced(*given: Any) -> Any:
        results.append(function(*given) if single else tuple(function(*given)))
        return results[0]

    with mode:  # so that tensors of the graph around it are known, and refused
        made = make_fx(traced, mode.decomposition_table, pre_dispatch=mode.pre_dispatch)(*copies)
    number = 0
    while hasattr(mode.tracer.root, f"{name}{number}"):
        number += 1
    setattr(mode.tracer.root, f"{name}{number}", made)
    return made, results[0]


def metadata(leaves: Sequence[Any]) -> list[Any]:
    """Returns the metadata that must be alike where either of two results may come."""
    return [f"{x.dtype}{list(x.shape)}" if isinstance(x, Tensor) else x for x in leaves]


@cond_op.py_impl(ProxyTorchDispatchMode)
def cond_in_graph(mode: Any, pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """Both branches as graphs. RuntimeError where their results are not alike."""
    if is_recorded(pred, operands):
        return NotImplemented
    specs = [tree_flatten(operand)[1] for operand in operands]
    leaves = tuple(tree_leaves(operands))
    true_flat, false_flat = Flat(true_fn, *specs), Flat(false_fn, *specs)
    true_graph, found = graph_of(mode, true_flat, leaves, "true_graph_")
    false_graph, other = graph_of(mode, false_flat, leaves, "false_graph_")
    if true_flat.structure != false_flat.structure or metadata(found) != metadata(other):
        raise RuntimeError(
            "cond: expected both branches to return tensors of the same structure, shapes and dtypes, so that a graph "
            f"holds for either; the first returns {metadata(found)}, the second {metadata(other)}"
        )
    args = (pred, true_graph, false_graph, leaves)
    result = found if mode.tracing_mode != "real" else cond_op(*args)
    return true_flat.restored(entered(mode, cond_op, args, {}, result))


@while_loop_op.py_impl(ProxyTorchDispatchMode)
def while_loop_in_graph(mode: Any, cond_fn: Any, body_fn: Any, carried: Any, additional: Any = ()) -> Any:
    """The condition and the body as graphs."""
    if is_recorded(carried, additional):
        return NotImplemented
    specs = [tree_flatten(one)[1] for one in (*carried, *additional)]
    leaves, more = tuple(tree_leaves(carried)), tuple(tree_leaves(additional))
    predicate = Flat(cond_fn, *specs)
    cond_graph, _ = graph_of(
        mode, lambda *given: predicate(*given)[0], (*leaves, *more), "while_loop_cond_graph_", single=True
    )
    body = Flat(body_fn, *specs)
    body_graph, found = graph_of(mode, body, (*leaves, *more), "while_loop_body_graph_")
    check_alike(leaves, found)
    args = (cond_graph, body_graph, leaves, more)
    result = found if mode.tracing_mode != "real" else while_loop_op(*args)
    return body.restored(entered(mode, while_loop_op, args, {}, result))


@map_impl.py_impl(ProxyTorchDispatchMode)
def map_in_graph(mode: Any, f: Any, xs: Any, args: Any = ()) -> Any:
    """The function of a slice as a graph."""
    if is_recorded(xs, args):
        return NotImplemented
    body, _ = graph_of(mode, f, [*(x.select(0, 0) for x in xs), *args], "body_graph_")
    given = (body, list(xs), list(args))
    return entered(mode, map_impl, given, {}, map_impl(*given))


@scan_op.py_impl(ProxyTorchDispatchMode)
def scan_in_graph(mode: Any, combine_fn: Any, init: Any, xs: Any, additional_inputs: Any = ()) -> Any:
    """The step as a graph."""
    if is_recorded(init, xs, additional_inputs):
        return NotImplemented
    first = [*init, *(x.select(0, 0) for x in xs), *additional_inputs]
    combine, _ = graph_of(mode, combine_fn, first, "scan_combine_graph_")
    given = (combine, list(init), list(xs), tuple(additional_inputs))
    return entered(mode, scan_op, given, {}, scan_op(*given))


def whole_in_graph(op: HigherOrderOperator) -> None:
    """Has an operator that takes no functions be entered as it is."""

    @op.py_impl(ProxyTorchDispatchMode)
    def in_graph(mode: Any, *args: Any, **kwargs: Any) -> Any:
        return NotImplemented if is_recorded(args, kwargs) else entered(mode, op, args, kwargs, op(*args, **kwargs))


for whole in (auto_functionalized, auto_functionalized_v2, out_dtype, with_effects):
    whole_in_graph(whole)
for drawing in (run_and_save_rng_state, run_with_rng_state):
    whole_in_graph(drawing)


# --- Regions, whose function is a graph, and which return what it returns --------------------------------------------


def region_in_graph(op: HigherOrderOperator, name: str, position: int, operands: Callable[..., Any]) -> None:
    """Has an operator be entered with the function at `position` as a graph. operands: of a call, in its arguments."""

    @op.py_impl(ProxyTorchDispatchMode)
    def in_graph(mode: Any, *args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten(operands(*args, **kwargs))
        if is_recorded(leaves):
            return NotImplemented
        flat = Flat(lambda given: args[position](*given[0], **given[1]), spec)
        key = args[position], tuple(map(str, metadata(leaves)))
        if op is invoke_subgraph and key in mode.tracer.regions:
            graph = mode.tracer.regions[key]
            found = flat(*leaves)
        else:
            graph, found = graph_of(mode, flat, leaves, name)
            mode.tracer.regions[key] = graph
        given = list(args)
        given[position] = graph
        result = tuple(found) if mode.tracing_mode != "real" else op(*given, **kwargs)
        return flat.restored(entered(mode, op, tuple(given), kwargs, result))


region_in_graph(strict_mode_op, "strict_graph_", 0, lambda function, operands: (tuple(operands), {}))
region_in_graph(
    hints_wrapper, "hints_wrapper_body_graph_", 0, lambda function, args, kwargs=None, hints=None: (args, kwargs or {})
)
region_in_graph(invoke_subgraph, "repeated_subgraph", 0, lambda function, identifier, *operands: (operands, {}))
region_in_graph(_foreach_map, "foreach_map_graph_", 0, lambda function, *operands: (operands, {}))
region_in_graph(local_map_hop, "local_map_graph_", 0, lambda function, *operands: (operands, {}))


# --- Prints: when the graph runs, and not before ---------------------------------------------------------------------


IMPURE.update((print_op, with_effects))


@print_op.py_impl(ProxyTorchDispatchMode)
def print_in_graph(mode: Any, *args: Any, **kwargs: Any) -> None:
    entered(mode, print_op, args, kwargs, None)


@print_op.py_impl(FakeTensorMode)
def nothing_to_print(mode: Any, *args: Any, **kwargs: Any) -> None:
    """Fake tensors have no values."""
