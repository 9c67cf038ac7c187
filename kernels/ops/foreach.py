"""Operators on lists of tensors: `_foreach_add([x, y], 1)` is `(x + 1, y + 1)`, by one call.

    ("add", ["Scalar(Scalar scalar)"], "add.Tensor")   # _foreach_add.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]

A row says what is called for each tensor, and all else follows from that: in-place and out= forms, derivative, tangent,
meta device, `vmap`, dtypes. Modes and subclasses see one call; autograd records a node for each tensor, as if they had
been called one by one; forward mode and `vmap` take the call apart.

What is kept for gradients is kept before anything is written. So a list that is written must not hold one memory twice:
the gradients would be those of other values, here as in PyTorch.

They are declared when one is first looked for (`LATE`, dispatch/core/registry.py). Read next: fused_updates.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import repeat
from typing import Any

from redispatch.dispatch import ListType, OpOverload, call, call_each, entry_point_of, impl
from redispatch.dispatch.autograd.forward import PARTS
from redispatch.dispatch.layers.autograd import DERIVATIVES, any_wants_gradient
from redispatch.dispatch.namespaces import operator_named
from redispatch.dispatch.schema.convert import default_of
from redispatch.dispatch.schema.text import head
from redispatch.dispatch.tensor import Tensor, dtypes

from ..declare.declare import DECLARED, Operator
from ..declare.describe import facts, in_place
from ..declare.operator import EXPLICIT
from ..declare.out_forms import copy_into_out
from ..declare.public import FUNCTIONS, face
from .arithmetic import add_op

EACH = """
    abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round
    rsqrt sigmoid sign sin sinh sqrt tan tanh trunc zero
"""
NUMBER, NUMBERS = "Scalar(Scalar scalar)", "ScalarList(Scalar[] scalars)"
FACTORS = "Tensor[] tensor1, Tensor[] tensor2"
LENGTH = "Scalar(Scalar ord=2, ScalarType? dtype=None)"

# Names; overloads with what is behind `self`, in the order in which a call tries them; what is called for each tensor
ROWS: list[tuple[str, Sequence[str], str]] = [
    (EACH, ["()"], "{}"),
    ("add sub", [NUMBER, NUMBERS], "{}.Tensor"),
    ("add", ["Tensor(Tensor other, *, Scalar alpha=1)"], "{}.Tensor"),
    ("add sub", ["List(Tensor[] other, *, Scalar alpha=1)"], "{}.Tensor"),
    ("mul div", [NUMBERS, "Tensor(Tensor other)", "List(Tensor[] other)", NUMBER], "{}.Tensor"),
    ("clamp_min maximum", [NUMBER, NUMBERS], "clamp_min"),
    ("clamp_min maximum", ["List(Tensor[] other)"], "clamp_min.Tensor"),
    ("clamp_max minimum", [NUMBER, NUMBERS], "clamp_max"),
    ("clamp_max minimum", ["List(Tensor[] other)"], "clamp_max.Tensor"),
    ("pow", ["ScalarAndTensor(Tensor[] exponent)"], "pow.Scalar"),
    ("pow", ["Scalar(Scalar exponent)", "ScalarList(Scalar[] exponent)"], "pow.Tensor_Scalar"),
    ("pow", ["List(Tensor[] exponent)"], "pow.Tensor_Tensor"),
    (
        "lerp",
        ["Scalar(Tensor[] tensors1, Scalar weight)", "ScalarList(Tensor[] tensors1, Scalar[] weight)"],
        "{}.Scalar",
    ),
    ("lerp", ["List(Tensor[] tensors1, Tensor[] weights)"], "{}.Tensor"),
    ("addcmul addcdiv", [f"ScalarList({FACTORS}, Scalar[] scalars)", f"Tensor({FACTORS}, Tensor scalars)"], "{}"),
    ("addcmul addcdiv", [f"Scalar({FACTORS}, Scalar value=1)"], "{}"),
    ("copy", ["(Tensor[] src, bool non_blocking=False)"], "{}"),
    ("clone", ["(*, MemoryFormat? memory_format=None)"], "{}"),
    ("max", ["()"], "{}"),
    ("norm", [LENGTH], "linalg_vector_norm"),
    ("powsum", [LENGTH], "linalg__powsum"),
    ("mm", ["(Tensor[] mat2)"], "{}"),
]
NEVER_IN_PLACE = ("clone", "max", "norm", "powsum", "mm")
ALWAYS_IN_PLACE = ("zero", "copy")  # their functional forms have no function


class OnEach:
    """The calls of `of` that an operator on lists makes, one for each tensor.

    It is the derivative, too, which the layer Autograd asks before and after the call.
    """

    def __init__(self, op: OpOverload, of: OpOverload) -> None:
        self.op, self.of = op, of

    @cached_property
    def sources(self) -> list[tuple[int | None, Any]]:
        """By argument of `of`, which argument it is here: of the same name, else the next that is left; its default."""
        here = {argument.name: place for place, argument in enumerate(self.op.schema.arguments)}
        there = self.of.schema.arguments
        left = iter([place for name, place in here.items() if all(name != one.name for one in there)])
        return [(here[one.name] if one.name in here else next(left, None), default_of(one)) for one in there]

    @cached_property
    def known(self) -> tuple[str, tuple[int, ...], list[int], bool]:
        """(name, arguments that are lists of tensors, the others, whether all of these are the same for each tensor)"""
        schema = self.op.schema
        lists = schema.tensor_list_positions
        rest = [place for place in range(len(schema.arguments)) if place not in lists]
        alike = all(
            schema.arguments[place].name != "scalars" and not isinstance(schema.arguments[place].type, ListType)
            for place in rest
        )
        return schema.base_name, lists, rest, alike

    def calls(self, stack: Sequence[Any]) -> list[list[Any]]:
        """The arguments for each tensor. RuntimeError for lists that are empty, or not of one length."""
        name, lists, rest, _ = self.known
        count = check_lengths(name, [stack[place] for place in lists])
        values = [*stack]
        for place in rest:
            values[place] = each_value(self.op.schema.arguments[place], stack[place], count)
        columns = [repeat(default, count) if place is None else values[place] for place, default in self.sources]
        return [list(row) for row in zip(*columns, strict=False)]

    def kernel(self, *stack: Any) -> Any:
        name, _, _, alike = self.known
        calls = self.calls(stack)
        if name in CHECKS:
            for one in calls:
                CHECKS[name](*one)
        results = call_each(self.of, calls) if alike else [call(self.of, one) for one in calls]
        return results if self.op.schema.returns else None

    def begin(self, op: OpOverload, stack: list[Any]) -> Any:
        """For each tensor the arguments, and a node; where nothing new is made, only if that one is to be recorded."""
        rule: Any = DERIVATIVES.get(self.of)
        return [
            (one, rule.begin(self.of, one) if op.schema.returns or any_wants_gradient(self.of.schema, one) else None)
            for one in self.calls(stack)
        ]

    def finish(self, op: OpOverload, node: Any, stack: list[Any], result: Any) -> Any:
        rule: Any = DERIVATIVES.get(self.of)
        results = result if op.schema.returns else [one[0] for one, _ in node]
        tied = [
            x if single is None else rule.finish(self.of, single, one, x)
            for (one, single), x in zip(node, results, strict=True)
        ]
        return tied if op.schema.returns else result

    def __str__(self) -> str:
        return f"{DERIVATIVES.get(self.of)} for each"


def check_lengths(name: str, lists: Sequence[Sequence[Tensor]]) -> int:
    """The number of tensors in each list. RuntimeError where that is none, or not the same for all."""
    count = len(lists[0])
    for other in lists[1:]:
        if len(other) != count:
            raise RuntimeError(
                "_foreach_mm: self and mat2 must have the same number of tensors"
                if name == "_foreach_mm"
                else f"Tensor lists must have the same number of tensors, got {count} and {len(other)}"
            )
    if not count:
        raise RuntimeError(
            "_foreach_mm requires non-empty tensor lists"
            if name == "_foreach_mm"
            else "Tensor list must have at least one tensor."
        )
    return count


def each_value(argument: Any, value: Any, count: int) -> Any:
    """The values of an argument for the calls. RuntimeError for another number of them, or of dimensions."""
    if argument.name == "scalars" and isinstance(value, Tensor):
        if value.dim() != 1:
            raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {value.dim()} instead.")
        if len(value) != count:
            raise RuntimeError(
                f"Expected length of scalars to match input of length {count} but got {len(value)} instead."
            )
        return value.tolist()
    if isinstance(argument.type, ListType):
        if len(value) != count:
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        return value
    if isinstance(value, Tensor) and value.dim():
        raise RuntimeError(
            f"scalar tensor expected to be 0 dim but it has {value.dim()} dimensions and {value.numel()} elements."
        )
    return repeat(value, count)


def check_max(x: Tensor) -> None:
    if not x.numel():
        raise RuntimeError(
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is undefined."
        )


def check_norm(x: Tensor, order: float, *rest: Any) -> None:
    if not x.numel() and order == float("inf"):
        raise RuntimeError(
            "_foreach_norm cannot compute the infinity norm on an empty tensor because the operation does not have an "
            "identity"
        )


CHECKS: dict[str, Callable[..., None]] = {"_foreach_max": check_max, "_foreach_norm": check_norm}


def on_each(name: str, arguments: str, of: OpOverload) -> Operator:
    """The operator `_foreach_<name>` that calls `of` for each tensor, with its forms."""
    overload, _, inside = arguments.removesuffix(")").partition("(")
    by_number = overload == "ScalarAndTensor"  # with the list behind: nothing is there to be written
    behind = f", {inside}" if inside else ""
    op = Operator(
        f"{head(f'_foreach_{name}', overload)}({'Scalar' if by_number else 'Tensor[]'} self{behind}) -> Tensor[]"
        + " self_out" * (name in ALWAYS_IN_PLACE),
        inplace=not by_number and name not in NEVER_IN_PLACE,
        out=None if by_number or name == "mm" else f"{overload}_out".removeprefix("_"),
        refuses=DECLARED[of].refuses,
        doc=f"Calls `{of._opname}` for each tensor of a list, and returns a tuple of the results.",
        forward=PARTS,
    )
    for form, one in ((op.functional, of), (op.inplace, DECLARED[of].inplace)):
        if form is not None:
            each = OnEach(form, one or operator_named(f"aten::{of._opname}_"))
            impl(form, EXPLICIT, each.kernel, convention="positional", place=op.place, name=f"{op.base_name}_kernel")
            ON_EACH[form] = each
            if each.of in DERIVATIVES:
                DERIVATIVES.add(form, each, op.place)
    if op.out is not None:
        copy_into_out(op)
    return op


def faces(name: str, operators: Sequence[Operator]) -> None:
    """Makes the functions `_foreach_<name>` and `_foreach_<name>_` over these overloads."""
    said, behind = operators[0].doc, facts(operators)
    made, own = None, f"_foreach_{name}"
    if name not in ALWAYS_IN_PLACE:
        FUNCTIONS[""][own] = made = face(own, [(o.functional, None) for o in operators], "torch", doc=(said, behind))
        made.op, made.ops = operators[0], operators
    written = [(o.inplace, None) for o in operators if o.inplace is not None]
    if written:
        inplace = returning_first(face(f"{own}_", written, "torch", doc=(in_place(own, said), behind)))
        FUNCTIONS[""][f"{own}_"] = inplace
        inplace.op, inplace.ops = operators[0], operators


def returning_first(function: Any) -> Any:
    """A function of in-place forms that returns the list which it was given."""
    entry = entry_point_of(function)
    meaning, entry.gives_first = entry.slow, True  # the operator returns nothing

    def slow(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = meaning(args, kwargs)
        return (args[0] if args else kwargs["self"]) if result is None else result

    entry.slow = slow
    return function


ON_EACH: dict[OpOverload, OnEach] = {}  # by functional and in-place form
OPERATORS: dict[str, list[Operator]] = {}
for _names, _overloads, _target in ROWS:
    for _name in _names.split():
        _of = operator_named(f"aten::{_target.format(_name)}")
        OPERATORS.setdefault(_name, []).extend(on_each(_name, one, _of) for one in _overloads)
for _name, _operators in OPERATORS.items():
    faces(_name, _operators)
globals().update({name: function for name, function in FUNCTIONS[""].items() if name.startswith("_foreach_")})


@OPERATORS["add"][0].kernel_inplace("CPU", dispatches=True)
def add_to_each(self, scalar):
    """Adds a number to each: at once where each is one number, as counts of steps are."""
    if not self:
        raise RuntimeError("Tensor list must have at least one tensor.")
    plain = type(scalar) is int
    for x in self:
        if plain and x._dtype is dtypes.float32 and not x._shape and x._array is not None:
            x._array[x._offset] += scalar
        else:
            add_op.inplace(x, scalar)  # type: ignore[misc]  # it has an in-place form
