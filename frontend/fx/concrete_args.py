"""Values that are known when a function is traced: `symbolic_trace(f, concrete_args={"x": {"a": PH, "b": 3}})`.

Of a value that is a tree, `PH` says which leaves are inputs. Each leaf gets a placeholder: a known one for the check
that the graph is called with the value that it was made for. Read next: _symbolic_trace.py.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from redispatch._checks import _assert
from redispatch.dispatch import pytree

from .codegen import PyTreeCodeGen
from .node import has_side_effect
from .proxy import Proxy, TracerBase


class PHBase:
    """Stands for a leaf that is an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """Stands for a leaf that is an input, whose node gets the attributes that this object has."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


@has_side_effect
def assert_is_none(value: Any, message: str) -> None:
    """AssertionError with this message for anything but None."""
    assert value is None, message


has_side_effect(_assert)


def leaves_of(tracer: TracerBase, parameter: inspect.Parameter, value: Any) -> Any:
    """Returns the value of a parameter, with proxies for its inputs; each leaf has a placeholder, `x_1`, `x_2`."""
    default = () if parameter.default is parameter.empty else (parameter.default,)
    count = 0

    def placed(leaf: Any) -> Any:
        nonlocal count
        count += 1
        proxy = tracer.create_proxy("placeholder", f"{parameter.name}_{count}", default, {})
        if isinstance(leaf, PHBase):
            vars(proxy.node).update(vars(leaf))
            return proxy
        expect(proxy, parameter.name, leaf)
        return leaf

    return pytree.tree_map(placed, value)


def expect(proxy: Proxy, name: str, value: Any) -> None:
    """Enters a step that refuses another value than the one that the graph was made for, where code can tell."""
    text = f"{name} has been specialized to have value {value} but got another value"
    if value is None:
        proxy.tracer.create_proxy("call_function", assert_is_none, (proxy, text), {})
    elif isinstance(value, bool | int | float | str) and value == value:
        proxy.tracer.create_proxy("call_function", _assert, (proxy == value, text), {})
    else:
        warnings.warn(
            f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the "
            "user to make sure that your inputs match the inputs you specialized the function with.",
            stacklevel=4,
        )


def flattened(
    tracer: TracerBase, call: Callable[[list[Any]], Any], args: list[Any], names: Sequence[str]
) -> tuple[Callable[[list[Any]], Any], list[Any]]:
    """Returns (a function of a list of leaves, the leaves): where arguments are trees, the graph takes their leaves.

    The code takes its arguments apart and gives results as trees.
    """
    leaves, spec = pytree.tree_flatten(list(args))
    if all(child.is_leaf() for child in spec.children_specs):
        return call, args
    own = args[: len(args) - len(names)]  # the module, of a forward
    leaves, spec = pytree.tree_flatten(list(args[len(own) :]))

    def called(leaves: list[Any]) -> Any:
        out, out_spec = pytree.tree_flatten(call([*own, *pytree.tree_unflatten(leaves, spec)]))
        tracer.graph.set_codegen(PyTreeCodeGen(list(names), spec, out_spec))
        return out

    return called, leaves
