"""Checks of a user's kernel: its result must be what the schema promises."""

from __future__ import annotations

from typing import Any

from ..core.base import TensorBase
from ..specialiser.annotations import inline, leaf
from .schema import TENSOR, BaseType, FunctionSchema


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
