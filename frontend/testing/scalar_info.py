"""`info_of(bump)`: the OpInfo of an operator that `library.elementwise` or `library.reduction` made.

The samples follow from the schema. The reference of an elementwise operator is the very function that it was made of,
run by Python, one element after the other: it shares nothing with the compiled loops but its text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from redispatch.dispatch.schema.convert import default_of
from redispatch.dispatch.schema.schema import NO_DEFAULT
from redispatch.kernels.declare.from_scalar import FromScalar

from .op_info import FLOATS, Maker, OpInfo, SampleInput, sample

NUMBER: Mapping[str, Any] = {"float": 1.5, "number": 1.5, "int": 2, "bool": True}  # where the schema has no default


def info_of(op: FromScalar, *, low: float = -3, high: float = 4, **options: Any) -> OpInfo:
    """Returns the entry of an operator for `check_operator` and other generic tests.

    low, high: between which its elements lie, for functions that are not defined everywhere.
    options: of OpInfo, such as `tolerance`, `skips`, or another `reference`.
    """
    if op.fold is None:
        samples, reference = elementwise_samples(op, low, high), elementwise_reference(op)
    else:
        samples, reference = reduction_samples(low, high), reduction_reference(op.fold)
    defaults: dict[str, Any] = {"dtypes": FLOATS, "reference": reference, "gradients": op.differentiable}
    return OpInfo(op.qualname, samples, **{**defaults, **options})


def elementwise_samples(op: FromScalar, low: float, high: float) -> Callable[[Maker], Iterator[SampleInput]]:
    """Tensors of one shape, without dimensions, without elements; and, where there are several, broadcast ones."""
    arguments = op.op.schema.arguments
    tensors = op.op.schema.tensor_positions

    def samples(make: Maker) -> Iterator[SampleInput]:
        shapes: list[list[tuple[int, ...]]] = [[(2, 3)] * len(tensors), [()] * len(tensors), [(0, 3)] * len(tensors)]
        if len(tensors) > 1:
            shapes.append([(2, 1), *[(3,)] * (len(tensors) - 1)])
        for row in shapes:
            sizes: Iterator[tuple[int, ...]] = iter(row)
            values, named = [], {}
            for position, argument in enumerate(arguments):
                default = default_of(argument)
                if position in tensors:
                    value = make(*next(sizes), low=low, high=high)
                else:
                    value = NUMBER[str(argument.type)] if default is NO_DEFAULT else default
                if argument.kwarg_only:
                    named[argument.name] = value
                else:
                    values.append(value)
            yield sample(*values, **named)

    return samples


def elementwise_reference(op: FromScalar) -> Callable[..., Any]:
    """The scalar function, called for each element; errors of Python's arithmetic give what IEEE 754 has for them."""

    def one(*values: Any) -> float:
        try:
            return op.function(*(value.item() if isinstance(value, np.generic) else value for value in values))
        except (ValueError, ZeroDivisionError):
            return math.nan
        except OverflowError:
            return math.inf

    def reference(*values: Any, **named: Any) -> Any:
        values = (*values, *(named[one.name] for one in op.op.schema.arguments[len(values) :]))
        shape = np.broadcast_shapes(*(np.shape(value) for value in values))
        arrays = np.broadcast_arrays(*values)
        found = [one(*element) for element in zip(*(array.ravel() for array in arrays), strict=True)]
        return np.asarray(found, dtype=np.float64).reshape(shape)

    return reference


def reduction_samples(low: float, high: float) -> Callable[[Maker], Iterator[SampleInput]]:
    """All dimensions, one, several, kept ones; without dimensions, and with elements in none of the rows."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        yield sample(make(2, 3, low=low, high=high))
        yield sample(make(2, 3, low=low, high=high), [1])
        yield sample(make(2, 3, 2, low=low, high=high), [0, -1], True)
        yield sample(make(low=low, high=high))
        yield sample(make(0, 3, low=low, high=high), [1])

    return samples


def reduction_reference(fold: Callable[..., float]) -> Callable[..., Any]:
    """The functions that the reduction was made of, run by Python along the dimensions."""

    def reference(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        dims = [d % x.ndim for d in dim] if dim else list(range(x.ndim))
        kept = [d for d in range(x.ndim) if d not in dims]
        rows = x.transpose([*kept, *dims]).reshape(math.prod(x.shape[d] for d in kept), -1 if x.size else 0)
        shape = [1 if d in dims else x.shape[d] for d in range(x.ndim) if keepdim or d in kept]
        return np.asarray([fold([float(number) for number in row]) for row in rows], dtype=np.float64).reshape(shape)

    return reference
