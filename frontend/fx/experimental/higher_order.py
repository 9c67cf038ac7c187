"""Higher-order operators in graphs: what `make_fx` enters for `cond`, `while_loop`, `map`, `scan` and their like.

A graph holds for all values, and a branch or a loop depends on them. So the operator itself becomes a node, and each
function that it takes a graph of its own, a module of the whole (`true_graph_0`), traced on copies of the tensors that
it is given. An operator that takes no function is entered as it is.

Where a gradient is wanted, nothing is entered here: the body runs, and its operators are recorded and entered one by
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch._higher_order_ops.auto_functionalize import auto_functionalized
from redispatch._higher_order_ops.body import Flat
from redispatch._higher_order_ops.cond import cond_op
from redispatch._higher_order_ops.map import map_impl
from redispatch._higher_order_ops.out_dtype import out_dtype
from redispatch._higher_order_ops.scan import scan_op
from redispatch._higher_order_ops.while_loop import check_alike, while_loop_op
from redispatch.dispatch import STATE, wants_gradient
from redispatch.dispatch.higher_order import HigherOrderOperator
from redispatch.dispatch.tensor import Tensor
from redispatch.utils._pytree import tree_flatten, tree_leaves

from .proxy_tensor import ProxyTorchDispatchMode, make_fx


def is_recorded(*args: Any) -> bool:
    """Whether a gradient is wanted through these arguments."""
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
    while hasattr(mode.tracer.root, f"{name}_{number}"):
        number += 1
    setattr(mode.tracer.root, f"{name}_{number}", made)
    return made, results[0]


def metadata(leaves: Sequence[Any]) -> list[Any]:
    """What must be alike where either of two results may come."""
    return [f"{x.dtype}{list(x.shape)}" if isinstance(x, Tensor) else x for x in leaves]


@cond_op.py_impl(ProxyTorchDispatchMode)
def cond_in_graph(mode: Any, pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """Both branches as graphs. RuntimeError where their results are not alike."""
    if is_recorded(pred, operands):
        return NotImplemented
    specs = [tree_flatten(operand)[1] for operand in operands]
    leaves = tuple(tree_leaves(operands))
    true_flat, false_flat = Flat(true_fn, *specs), Flat(false_fn, *specs)
    true_graph, found = graph_of(mode, true_flat, leaves, "true_graph")
    false_graph, other = graph_of(mode, false_flat, leaves, "false_graph")
    if true_flat.structure != false_flat.structure or metadata(found) != metadata(other):
        raise RuntimeError(
            "cond: expected both branches to return tensors of the same structure, shapes and dtypes, so that a graph "
            f"holds for either; the first returns {metadata(found)}, the second {metadata(other)}"
        )
    args = (pred, true_graph, false_graph, leaves)
    result = found if mode.tracing_mode == "fake" else cond_op(*args)
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
        mode, lambda *given: predicate(*given)[0], (*leaves, *more), "while_loop_cond_graph", single=True
    )
    body = Flat(body_fn, *specs)
    body_graph, found = graph_of(mode, body, (*leaves, *more), "while_loop_body_graph")
    check_alike(leaves, found)
    args = (cond_graph, body_graph, leaves, more)
    result = found if mode.tracing_mode == "fake" else while_loop_op(*args)
    return body.restored(entered(mode, while_loop_op, args, {}, result))


@map_impl.py_impl(ProxyTorchDispatchMode)
def map_in_graph(mode: Any, f: Any, xs: Any, args: Any = ()) -> Any:
    """The function of a slice as a graph."""
    if is_recorded(xs, args):
        return NotImplemented
    body, _ = graph_of(mode, f, [*(x.select(0, 0) for x in xs), *args], "body_graph")
    given = (body, list(xs), list(args))
    return entered(mode, map_impl, given, {}, map_impl(*given))


@scan_op.py_impl(ProxyTorchDispatchMode)
def scan_in_graph(mode: Any, combine_fn: Any, init: Any, xs: Any, additional_inputs: Any = ()) -> Any:
    """The step as a graph."""
    if is_recorded(init, xs, additional_inputs):
        return NotImplemented
    first = [*init, *(x.select(0, 0) for x in xs), *additional_inputs]
    combine, _ = graph_of(mode, combine_fn, first, "scan_combine_graph")
    given = (combine, list(init), list(xs), tuple(additional_inputs))
    return entered(mode, scan_op, given, {}, scan_op(*given))


def whole_in_graph(op: HigherOrderOperator) -> None:
    """Has an operator that takes no functions be entered as it is."""

    @op.py_impl(ProxyTorchDispatchMode)
    def in_graph(mode: Any, *args: Any, **kwargs: Any) -> Any:
        return NotImplemented if is_recorded(args, kwargs) else entered(mode, op, args, kwargs, op(*args, **kwargs))


whole_in_graph(auto_functionalized)
whole_in_graph(out_dtype)
