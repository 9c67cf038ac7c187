"""What a kernel relies on: the shapes and dtypes of its tensors, declared beside it and checked before it runs.

    @planned_several("native_layer_norm_backward(Tensor grad_out, ...)", relies="native_layer_norm")
    @kernel("_amp_update_scale(...)", relies="self, growth_tracker, found_inf: 1")

A loop trusts its arguments, so that nobody who reaches an operator may be trusted. `relies` is one of

    a name        of the operator whose gradient this one computes. A call of that with the same arguments must be
                  possible; the first argument has the shape of its first result, and tensors that are none of its
                  arguments have those of its other results, the last ones first.
    shapes        "grad, self: n c *image; weight: c". A name stands for the same size everywhere, `*name` for any
                  number of dimensions, `_` for any size, and "#n c" for any shape of so many elements. An int argument
                  is a size by its name, a list of ints can be what gives a shape, and None is right anywhere.

with, behind `|`, tensors that have the dtype of the first among them: "convolution | input weight". What was found
right is remembered by the metadata of the arguments, and planned operators ask only when they make a plan. Read next:
declare.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from redispatch.dispatch import NO_DEFAULT, DispatchKey, Memo, OpOverload, operator_named
from redispatch.dispatch.specialiser.annotations import frozen, leaf
from redispatch.dispatch.symbolic import SymInt
from redispatch.dispatch.tensor import META, Tensor, dtypes, empty

from .plan import PLANS, is_list, metadata

RENAMED = {"input": "self", "self": "input", "training": "train"}  # forward arguments that are called otherwise here
SIZES = ("input_size", "input_sizes", "sizes")  # of the forward operator's first tensor, where it is not handed on
BLANKS = {"float": 0.0, "int": 0, "SymInt": 0, "bool": False, "number": 0}  # for numbers that decide no shape


@frozen
class Relied:
    """The check of one operator's arguments, by position."""

    def __init__(self, op: OpOverload, text: str) -> None:
        self.op, arguments = op, op.schema.arguments
        self.names = [argument.name for argument in arguments]
        self.tensors = [i for i, one in enumerate(arguments) if str(one.type) in ("Tensor", "Optional[Tensor]")]
        self.lists = [i for i, one in enumerate(arguments) if is_list(one.type)]
        shapes, _, alike = text.partition("|")
        self.alike = [self.names.index(name) for name in alike.split()]
        self.of, self.shapes = ("", parsed(shapes)) if ":" in shapes else (shapes.strip(), [])
        self.right = Memo(PLANS)

    @leaf
    def check(self, args: Sequence[Any]) -> None:
        """RuntimeError, or what the forward operator raises, where a kernel must not see these arguments."""
        for i in self.alike[1:]:
            check_scalar_type(args[self.alike[0]], args[i])
        if not (self.of or self.shapes):
            return
        facts = list(args)
        for i in self.tensors:
            if args[i] is not None:
                facts[i] = metadata(args[i])
        for i in self.lists:
            facts[i] = None if args[i] is None else tuple(args[i])
        key = tuple(facts)
        if self.right.get(key) is None:
            given = dict(zip(self.names, args, strict=True))
            if self.of:
                self.check_gradient(given)
            self.check_shapes(given)
            self.right[key] = True

    # Gradients ----------------------------------------------------------------------------------------------------

    def check_gradient(self, given: dict[str, Any]) -> None:
        """Calls the forward operator's kernel of the meta device: its checks are checks of this one, too."""
        forward = operator_named(f"{self.op.namespace}::{self.of}")
        known = {a.name for a in forward.schema.arguments}
        stack = [self.handed(a, given) for a in forward.schema.arguments]
        kernel = forward.entry_at(DispatchKey.Meta).kernel.function
        incoming = self.names[0]
        try:
            found = kernel(*stack)
        except NotImplementedError:  # of a dtype: this operator may compute in it, or else refuses it, too
            found = kernel(*(as_float(value) for value in stack))
        else:
            first = found[0] if isinstance(found, tuple | list) else found
            check_scalar_type(first, given[incoming])
        results = [x._shape for x in (found if isinstance(found, tuple | list) else [found]) if x is not None]
        wanted = {incoming: results[0]}
        saved = [self.names[i] for i in self.tensors if i and not known & {self.names[i], RENAMED.get(self.names[i])}]
        wanted |= dict(zip(reversed(saved), reversed(results), strict=False))
        for name, shape in wanted.items():
            there = given[name] is not None and (name not in saved or math.prod(shape))  # else nobody reads it
            if there and tuple(given[name]._shape) != tuple(shape):
                raise self.unexpected(name, list(shape), given[name]._shape)

    def handed(self, argument: Any, given: dict[str, Any]) -> Any:
        """Returns what the forward operator got for an argument, without data."""
        name, kind = argument.name, str(argument.type).removeprefix("Optional[").rstrip("]")
        value = given.get(name, given.get(RENAMED.get(name, ""), NO_DEFAULT))
        if isinstance(value, Tensor):
            return empty(value._shape, value._dtype, META, value._stride)
        if value is not NO_DEFAULT:
            return value
        if kind == "Tensor":
            sizes = next((given[size] for size in SIZES if size in given), None)
            return None if sizes is None else empty(tuple(sizes), given[self.names[0]]._dtype, META)
        return argument.default_value if argument.default is not NO_DEFAULT else BLANKS.get(kind)

    # Shapes -------------------------------------------------------------------------------------------------------

    def check_shapes(self, given: dict[str, Any]) -> None:
        known: dict[str, tuple[int, ...]] = {
            name: (value,) for name, value in given.items() if type(value) in (int, SymInt)
        }
        for names, wanted in self.shapes:
            for name in names:
                value = given[name]
                shape = tuple(value._shape if isinstance(value, Tensor) else value) if value is not None else None
                if shape is not None and not fits(shape, wanted, known):
                    raise self.unexpected(name, described(wanted, known), shape)

    def unexpected(self, name: str, wanted: Any, shape: Sequence[int]) -> RuntimeError:
        return RuntimeError(f"{self.op.name()}: expected {name} of shape {wanted}, but got {list(shape)}")


def check_scalar_type(x: Tensor, other: Tensor) -> None:
    """Raises RuntimeError where a kernel that knows one dtype gets two."""
    if x._dtype is not other._dtype:
        raise RuntimeError(f"expected scalar type {x._dtype.tensor_name} but found {other._dtype.tensor_name}")


def as_float(value: Any) -> Any:
    return empty(value._shape, dtypes.float32, META) if isinstance(value, Tensor) else value


def parsed(text: str) -> list[tuple[list[str], list[str]]]:
    """The names and the dimensions of each clause."""
    clauses = (clause.partition(":") for clause in text.split(";"))
    return [([name.strip() for name in names.split(",")], wanted.split()) for names, _, wanted in clauses]


def fits(shape: tuple[int, ...], wanted: Sequence[str], known: dict[str, tuple[int, ...]]) -> bool:
    """Whether a shape is as wanted; enters the sizes that it is the first to have."""
    if wanted[0][0] == "#":
        return math.prod(shape) == math.prod(size for name in wanted for size in known[name.lstrip("#")])
    lengths = [1 if one[0] != "*" else len(known[one[1:]]) if one[1:] in known else None for one in wanted]
    rest = len(shape) - sum(length for length in lengths if length is not None)
    if rest < 0 or (rest and None not in lengths):
        return False
    at = 0
    for one, length in zip(wanted, lengths, strict=True):
        part = shape[at : at + (rest if length is None else length)]
        at += len(part)
        name = one.lstrip("*")
        if part != (known.setdefault(name, part) if name != "_" and not name.isdigit() else part):
            return False
        if name.isdigit() and part != (int(name),):
            return False
    return True


def described(wanted: Sequence[str], known: dict[str, tuple[int, ...]]) -> str:
    """The dimensions that are wanted, by their sizes as far as those are known."""
    shown = (str(known[one.lstrip("*#")])[1:-1].rstrip(",") if one.lstrip("*#") in known else one for one in wanted)
    return f"[{', '.join(one for one in shown if one)}]"


def relying(op: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of an operator's arguments, behind the check of what it relies on."""
    if not op.relies:
        return function

    @wraps(function)
    def checked(*args: Any) -> Any:
        op.relied.check(args)
        return function(*args)

    return checked
