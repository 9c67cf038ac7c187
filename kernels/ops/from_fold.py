"""Reductions from plain scalar functions: `redispatch.library.reduction`.

    def square(x):
        return x * x

    def root(total, count):
        return math.sqrt(total)

    @reduction("mylib::length(Tensor x, int[1]? dim=None, bool keepdim=False) -> Tensor", identity=0.0, each=square,
               finish=root, derivative=...)
    def add(total, x):
        return total + x

It is a `Planned` operator like the library's own, over the same loops (kernels/cpu/reduce.py), whose blocks and threads
take it that the decorated function is associative. Its backward is one pointwise operator: the gradient times the slope
of the result by one element. Read next: kernels/declare/from_scalar.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from redispatch.dispatch import FunctionSchema, Library, call, place_of
from redispatch.dispatch.schema.parser import parse_schema
from redispatch.dispatch.specialiser.annotations import frozen
from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.operand import DTYPES
from redispatch.kernels.cpu.reduce import REASSOCIATE, Recipe, Reduction
from redispatch.kernels.engine.convert import as_is

from ..declare.custom_op import parse_name, register_batching
from ..declare.declare import taking
from ..declare.from_scalar import FromScalar, Removable, Rule, Rules, backward, check_slope, check_text, is_formula
from ..declare.scalar_functions import Function, ScalarFunction, compiled
from ..declare.structured import not_implemented
from .reductions import Reduced, reduced_dims, with_kept_dims

EXAMPLE = "mylib::name(Tensor x, int[1]? dim=None, bool keepdim=False) -> Tensor"
FOLDS: list[Fold] = []  # all that were made: a backend gives each of them its kernels
WANTED = f"write '{EXAMPLE}'"


def reduction(
    schema: str,
    function: Function | None = None,
    /,
    *,
    identity: float,
    derivative: Function | bool,
    each: Function | None = None,
    finish: Function | None = None,
    autocast: str | Mapping[str, str] | None = None,
    lib: Library | None = None,
) -> Any:
    """Makes a reduction of a function of two numbers; a decorator where `function` is not given.

    schema: "mylib::length(Tensor x, int[1]? dim=None, bool keepdim=False) -> Tensor"; no `dim` means all dimensions.
    function: combines what was gathered with one more number, or with what was gathered of other elements. It must be
        associative, with `identity` for a neutral element, which is the result where there are no elements.
    each: what becomes of an element before it is combined. finish: `finish(gathered, count)` gives the result.
    derivative: a scalar function of the element and, if it likes, of `result`, which gives the result's slope by that
        element; or a formula in tensor operators, whose first parameter is `grad` and which gets `grad` and `result`
        with the reduced dimensions kept, beside the tensor. False: no gradient flows through.
    autocast, lib: as in `elementwise`.

    Floating dtypes are gathered in float32 at least, long float32 ones in float64. Others are refused.
    Errors: TypeError for another schema, other parameters, and (with the line) Python without meaning for one element.
    """

    check_text("reduction", schema, EXAMPLE)
    if isinstance(identity, bool) or not isinstance(identity, int | float):
        raise TypeError(f"reduction: identity= is the number that combining starts from, got {identity!r}")

    def make(function: Function) -> FromScalar:
        parsed = checked_schema(schema)
        tensor = parsed.arguments[0].name
        check_count(function, 2, "combines two numbers")
        check_count(each, 1, "takes an element")
        check_count(finish, 2, "takes what was gathered, and the number of elements")
        if derivative is True or derivative is None:
            raise TypeError(f"{parsed.name}: a reduction's derivative is not derived; pass a function, or False")
        slope = None if derivative is False else derivative
        if slope is not None:
            check_slope(slope, [tensor, "result"], parsed)
        op = FromScalar(parsed, function, lib)
        try:
            op.fold = in_python(function, identity, each, finish)
            name = parsed.name.partition("::")[2]
            fold = Reduction(name, recipe(function, identity, each, finish), fastmath=REASSOCIATE)
            operator = Fold(op.library, parsed, fold, slope)
            op.library.undo_with(register_batching(operator.functional, batched(operator), place_of(function)))
            return op.finish(operator, autocast, slope is not None)
        except BaseException:
            op.remove()
            raise

    return make if function is None else make(function)


@frozen
class Fold(Removable, Reduced):
    """A reduction made of scalar functions."""

    def __init__(self, library: Library, schema: FunctionSchema, fold: Reduction, slope: Function | None) -> None:
        super().__init__(library, str(schema), reduction=fold, check=self.check_floating, out="out")
        self.slope, self.parsed = slope, schema
        self.differentiate(None if slope is None else Rules(self.rule))
        FOLDS.append(self)

    def check_floating(self, x: Tensor, dim: Any, keepdim: bool) -> None:
        if not x._dtype.is_floating_point:
            raise not_implemented(self.base_name, x._dtype)

    def rule(self) -> list[Rule]:
        """The formula of the derivative: the slope's own, once the shapes broadcast against the tensor's."""
        tensor, slope = self.names[0], self.slope
        assert slope is not None
        if is_formula(slope):
            wanted = list(inspect.signature(slope).parameters)
            formula: Function = slope
        else:
            wanted = ["grad", *ScalarFunction(slope).parameters]
            name = f"{self.base_name}_backward_{tensor}"
            formula = backward(self.library, self.parsed, name, slope)

        @taking("grad", tensor, "result", "dim", "keepdim")
        def gradient(grad: Any, x: Any, result: Any, dim: Any, keepdim: bool) -> Any:
            values = {"grad": with_kept_dims(grad, x.shape, dim, keepdim), tensor: x}
            values["result"] = with_kept_dims(result, x.shape, dim, keepdim)
            return formula(*[values[one] for one in wanted])

        return [((tensor,), gradient)]


def recipe(function: Function, identity: float, each: Function | None, finish: Function | None) -> Any:
    """Returns what the loops are told of a dtype."""
    combine = compiled(function)
    load = as_is if each is None else compiled(each)
    last = keep if finish is None else compiled(finish)

    def of_dtype(dtype: str) -> Recipe:
        accumulator = "float64" if dtype == "float32" else DTYPES[dtype].compute
        block = "float32" if dtype == "float32" else None
        return Recipe(load, np.dtype(accumulator).type(identity), combine, last, block)

    return of_dtype


def keep(gathered, count):
    return gathered


def in_python(function: Function, identity: float, each: Function | None, finish: Function | None) -> Function:
    """The reduction of a sequence of numbers, by Python: what the loops are compared with."""

    def reduced(numbers: Sequence[float]) -> float:
        gathered = identity
        for number in numbers:
            gathered = function(gathered, number if each is None else each(number))
        return gathered if finish is None else finish(gathered, len(numbers))

    return reduced


def batched(operator: Fold) -> Function:
    """The batching rule: the batch in front, and what is reduced one dimension further."""

    def rule(info: Any, in_dims: Sequence[Any], x: Any, dim: Any = None, keepdim: bool = False) -> tuple[Any, int]:
        rank = x.dim() - 1
        x = x.movedim(in_dims[0], 0)
        if rank == 0:
            reduced_dims(dim, rank)  # which are none; an error where they are out of range
            return call(operator.functional, [x.unsqueeze(1), [1], False]), 0
        return call(operator.functional, [x, [d + 1 for d in reduced_dims(dim, rank)], keepdim]), 0

    return rule


def checked_schema(text: str) -> FunctionSchema:
    """The schema of a reduction. TypeError where it is none, ValueError without a namespace."""
    schema = parse_schema(text)
    parse_name(schema.name if not schema.overload_name else f"{schema.name}.{schema.overload_name}")
    arguments = [(str(one.type), one.name) for one in schema.arguments]
    fits = len(arguments) == 3 and arguments[0][0] == "Tensor" and not schema.is_mutable
    fits = fits and arguments[1] == ("Optional[List[int]]", "dim")
    fits = fits and arguments[2] == ("bool", "keepdim") and [str(one.type) for one in schema.returns] == ["Tensor"]
    if not fits or arguments[0][1] in ("grad", "result", "grad_output"):
        raise TypeError(f"{text!r} is not the schema of a reduction; {WANTED}")
    return schema


def check_count(function: Function | None, count: int, what: str) -> None:
    """TypeError unless a scalar function has so many parameters."""
    if function is not None:
        read = ScalarFunction(function)
        if len(read.parameters) != count:
            raise read.error(f"it {what}, but has the parameters ({', '.join(read.parameters)})", None)
