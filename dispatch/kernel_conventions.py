"""Conventions of kernels: from a function as its author wrote it to a boxed kernel. Four, named in `Kernel.convention`:

boxed        function(op, keyset, stack)           a layer: one function for every operator
positional   function(*stack)                      a built-in kernel: every schema argument by position
python       function(*args, **kwargs)             a user's kernel: see `unbind`
keyset       function(keyset, *args, **kwargs)     a user's kernel that redispatches
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .core.base import TensorBase
from .core.boxing import unbind
from .core.table import Boxed, Kernel
from .keys import DispatchKeySet
from .schema.schema import TENSOR, BaseType, FunctionSchema
from .specialiser.annotations import inline, leaf

# Checks of a user's kernel: its result must be what the schema promises -----------------------------------------------


@inline
def checked(schema: FunctionSchema, result: Any) -> Any:
    """A result of a user's function, which must be what the schema promises where it promises tensors.

    Errors: RuntimeError for something else than a tensor, and for a wrong number of results.
    """
    returns = schema.returns
    if len(returns) == 1:
        if returns[0].type == TENSOR and not isinstance(result, TensorBase):
            raise no_tensor(schema, result)
        if returns[0].type != TENSOR:
            check_plain(schema, result)
        return result
    if not returns:
        check_nothing(schema, result)
        return None
    if not (isinstance(result, tuple | list) and len(result) == len(returns)):
        raise wrong_results(schema, result)
    return tuple(result)


@leaf
def check_nothing(schema: FunctionSchema, result: Any) -> None:
    """A function of its own: what is raised here would be one more way out, wherever a layer calls."""
    if result is not None:
        raise wrong_results(schema, result)


# What a result of such a type must be; of other types anything goes.
PLAIN_RESULTS: dict[str, Any] = {
    **dict.fromkeys(("int", "SymInt"), int),
    **dict.fromkeys(("float", "SymFloat"), (int, float)),
    "bool": bool,
    "str": str,
}


@leaf
def check_plain(schema: FunctionSchema, result: Any) -> None:
    """RuntimeError for a text where a number is promised, and the like. Numpy's numbers pass for numbers.

    None passes, too: from a handler that is asked for the shape (`aten::dim`), it means that the tensor's own holds.
    """
    if result is None:
        return
    promised = schema.returns[0].type
    wanted = PLAIN_RESULTS.get(promised.name) if isinstance(promised, BaseType) else None
    if wanted is not None and not isinstance(result, wanted) and not hasattr(result, "__index__"):
        raise no_tensor(schema, result)


def no_tensor(schema: FunctionSchema, result: Any) -> RuntimeError:
    promised = schema.returns[0].type
    return RuntimeError(f"Unable to cast {result!r} to {promised}: {schema} returns {promised}")


def wrong_results(schema: FunctionSchema, result: Any) -> RuntimeError:
    promised = f"{len(schema.returns)} values" if schema.returns else "nothing"
    return RuntimeError(f"{schema} returns {promised}, but its function returned {result!r}")


def box(function: Callable[..., Any], op: Any, convention: str) -> Boxed:
    """The boxed form of `function`, a kernel of `op` which takes its arguments by `convention`."""
    if convention == "boxed":
        return function
    if convention == "positional":

        @inline
        def positional_kernel(op: Any, keyset: int, stack: list[Any]) -> Any:
            return function(*stack)

        return positional_kernel
    schema = op.schema
    if convention == "python":

        @inline
        def python_kernel(op: Any, keyset: int, stack: list[Any]) -> Any:
            args, kwargs = unbind(schema, stack)
            return checked(schema, function(*args, **kwargs))

        return python_kernel
    if convention == "keyset":

        @inline
        def keyset_kernel(op: Any, keyset: int, stack: list[Any]) -> Any:
            args, kwargs = unbind(schema, stack)
            return checked(schema, function(DispatchKeySet(keyset), *args, **kwargs))

        return keyset_kernel
    raise ValueError(f"unknown calling convention {convention!r}")


def box_fallback(function: Callable[..., Any], with_keyset: bool) -> Boxed:
    """The boxed form of a user's fallback for all operators: `function([keyset,] op, *args, **kwargs)`."""

    @inline
    def fallback(op: Any, keyset: int, stack: list[Any]) -> Any:
        args, kwargs = unbind(op.schema, stack)
        return function(DispatchKeySet(keyset), op, *args, **kwargs) if with_keyset else function(op, *args, **kwargs)

    return fallback


def _fall_through(op: Any, keyset: int, stack: list[Any]) -> Any:
    raise RuntimeError(
        "fallthrough_kernel was executed but it should have been short-circuited by the dispatcher: there is nothing "
        f"but fallthroughs for these arguments of {op}"
    )


def fallthrough(place: str, library: str = "") -> Kernel:
    """The kernel that stands for "skip this key", at no cost when a call runs."""
    return Kernel(_fall_through, _fall_through, "fallthrough", place, library)
