"""Signatures: how a public Python function reads its arguments, derived from the schemas of its overloads.

`redispatch.add(input, other, *, alpha=1, out=None)` and `Tensor.add(other, *, alpha=1)` are two faces of the schemas
`add.Tensor` and `add.out`. A `Signature` is one such face; a `Parser` tries those of a name in order. Arguments are
checked more strictly than by `ops` (a str is no number, a bool no int) and the errors are TypeErrors in the
reference's words; `dim` may be called `axis` and so on, as numpy's users expect.

A signature tells the same thing twice: `bind` reads the arguments of one call, `read` says how all calls of a shape
are read, of which entries.py makes code. tests/dispatch/test_entries.py holds the two equal.

Read next: `kernels/declare/public.py`, which attaches these faces to the module and to Tensor.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

from ..core.base import ARGUMENT_TYPES, TensorBase
from ..core.operator import OpOverload
from ..schema.convert import NUMBER_FOR_TENSOR, NUMERIC, converter, default_of
from ..schema.schema import NO_DEFAULT, TENSOR, Argument, BaseType, ListType, OptionalType, Type
from ..symbolic import Number, SymInt, as_index
from .fast_paths import A_TENSOR, INTS, NONE, TENSORS, Fixed, Reading, Reads, Taken, is_default_text, reads

NUMPY_NAMES = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}

# schema type -> the word for it in messages
SPOKEN = {
    "Tensor": "Tensor",
    "Scalar": "Number",
    "int": "int",
    "SymInt": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "ScalarType": "torch.dtype",
    "Layout": "torch.layout",
    "Device": "torch.device",
    "MemoryFormat": "torch.memory_format",
    "Generator": "torch.Generator",
}


SPREAD = 6  # over how many positions `read` lets a list of ints be spread; `bind` knows no limit

Overload = tuple[OpOverload, OpOverload | None]  # an operator, and its out= form where it has one

# What a value becomes: of a method's tensor, of each int of a spread list, of `out` and of `requires_grad`
READS_SELF = Reads({A_TENSOR: Taken(A_TENSOR)}, None)
READS_SPREAD = Reads({int: Taken(int)}, frozenset([A_TENSOR]))
READS_NO_OUT = Reads({NONE: Taken(NONE, value=None)}, frozenset())
READS_OUT = Reads({A_TENSOR: Taken(A_TENSOR)}, frozenset([INTS, TENSORS]))
READS_TRUTH = Reads({bool: Taken(bool)}, None)


FACTORS = ("beta", "alpha", "value")


def fits_former(parameter: Parameter, value: Any) -> bool:
    """Whether a factor is a number, and what is no factor a tensor."""
    return isinstance(value, NUMERIC if parameter.kwarg_only else TensorBase)


class Mismatch(TypeError):
    """The reason why a call does not fit a signature; becomes the user's error if no other signature fits."""


class Parameter:
    """One parameter of a public function: a schema argument under its Python name, with a check of its own."""

    def __init__(self, argument: Argument, name: str, takes_numbers: bool) -> None:
        self.name = name
        self.names = (name, *NUMPY_NAMES.get(name, ()))
        self.type = argument.type
        self.default = default_of(argument)
        self.kwarg_only = argument.kwarg_only
        base = argument.type.elem if isinstance(argument.type, OptionalType) else argument.type
        self.optional = isinstance(argument.type, OptionalType) or argument.default is None
        self.is_int_list = isinstance(base, ListType) and _name(base.elem) in ("int", "SymInt")
        self.spoken = spoken(base)
        self.takes_numbers = takes_numbers and base == TENSOR
        self._convert = _strict(base)

    def convert(self, value: Any) -> Any:
        """The value for the stack, or TypeError."""
        if value is None and self.optional:
            return None
        if self.takes_numbers and isinstance(value, NUMERIC):
            return value
        return self._convert(value)

    def reads(self, none: Any, spread: bool) -> Reads:
        """Converts values of each kind as `convert` does, for fast paths. `none` replaces None, where it may
        be given; with `spread` a lone int is a list of one."""
        found = reads(
            self.type,
            self.default,
            numbers=self.takes_numbers,
            strict=True,
            none=none if self.optional else NO_DEFAULT,
        )
        if spread:
            found.taken[int] = Taken(int, "[{v}]", is_default_text("[{v}]", list, self.default))
            return Reads(found.taken, (found.unsure or frozenset()) | {A_TENSOR})
        return found

    def __str__(self) -> str:
        default = "" if self.default is NO_DEFAULT else f" = {self.default}"
        return f"{self.spoken} {self.name}{default}"


class Signature:
    """One overload as Python sees it, with the `out=` form that belongs to it.

    method: `self` is the tensor before the dot and no parameter. A factory (with `device` and `pin_memory`) also
    takes `requires_grad`, and always hands down a device and `pin_memory=False`.
    """

    def __init__(self, op: OpOverload, out: OpOverload | None = None, method: bool = False) -> None:
        self.op, self.out, self.method = op, out, method
        schema = op.schema
        numbers = schema.name in NUMBER_FOR_TENSOR
        self.parameters = [
            Parameter(
                argument, "input" if argument.name == "self" and argument.type == TENSOR else argument.name, numbers
            )
            for argument in schema.arguments
        ]
        self.arguments = [argument.name for argument in schema.arguments]
        if method:
            self.parameters = self.parameters[1:]
            self.arguments = self.arguments[1:]
        self.is_factory = {"device", "pin_memory"} <= {argument.name for argument in schema.arguments}
        self.needs_device = self.is_factory and not schema.tensor_positions and not schema.tensor_list_positions
        self.positional = sum(not parameter.kwarg_only for parameter in self.parameters)
        self.required = sum(p.default is NO_DEFAULT for p in self.parameters)
        extras = (1 if out else 0) + (1 if self.is_factory else 0)
        self.most = len(self.parameters) + extras
        first = self.parameters[0] if self.parameters else None
        # `zeros(2, 3)`, `x.permute(1, 0)`: a lone list of ints may be spread over the positions
        self.spreads = first is not None and first.is_int_list and self.positional == 1

    def former_orders(self) -> list[list[Parameter]]:
        """Returns orders from before factors were keywords: `addmm(beta, input, alpha, mat1, mat2)`."""
        factors = {
            p.name: p for p in self.parameters[self.positional :] if p.name in FACTORS and _name(p.type) == "Scalar"
        }
        if not factors or any(p.type != TENSOR for p in self.parameters[: self.positional]):
            return []
        before = [factors.pop("beta")] if "beta" in factors else []
        first = 0 if self.method else 1
        own, rest = self.parameters[:first], self.parameters[first : self.positional]
        full = [*before, *own, *factors.values(), *rest]
        return [full, [*before, *own, *rest]] if before else [full]

    def bind(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[OpOverload, list[Any], bool]:
        """(operator, stack without the method's self, whether requires_grad was asked for). Raises Mismatch."""
        if self.spreads and args and _is_int(args[0], in_list=True):
            args = (list(args),)
        if len(args) > self.positional:
            raise Mismatch(self._too_many(name, len(args)))
        left = dict(kwargs)
        out = left.pop("out", None) if self.out else None
        wants_grad = self.is_factory and _asked(name, "requires_grad", left.pop("requires_grad", None))
        stack: list[Any] = []
        missing = []
        for index, parameter in enumerate(self.parameters):
            given = index < len(args)
            if given:
                value = args[index]
                if any(known in left for known in parameter.names):
                    raise Mismatch(f"{name}() got multiple values for argument '{parameter.name}'")
            else:
                known = next((known for known in parameter.names if known in left), None)
                if known is None:
                    if parameter.default is NO_DEFAULT:
                        missing.append(parameter.name)
                    stack.append(parameter.default)
                    continue
                value = left.pop(known)
            if isinstance(value, TensorBase) and parameter.type != TENSOR:  # to read its number is seen by modes
                unknown = left.keys() - {known for each in self.parameters for known in each.names}
                if unknown:
                    raise Mismatch(f"{name}() got an unexpected keyword argument '{min(unknown)}'")
            try:
                stack.append(parameter.convert(value))
            except (TypeError, ValueError, OverflowError) as problem:
                raise self._wrong(name, parameter, index if given else None, value, problem) from None
        if missing:
            listed = ", ".join(f'"{missed}"' for missed in missing)
            raise Mismatch(f"{name}() missing {len(missing)} required positional arguments: {listed}")
        if left:
            raise Mismatch(f"{name}() got an unexpected keyword argument '{next(iter(left))}'")
        if self.is_factory:
            self._complete(stack)
        if out is None:
            return self.op, stack, wants_grad
        assert self.out is not None
        return self.out, self._with_out(name, stack, out), wants_grad

    @property
    def _writes_list(self) -> bool:
        """Whether the out= form writes a list of tensors."""
        return self.out is not None and isinstance(self.out.schema.arguments[-1].type, ListType)

    def _complete(self, stack: list[Any]) -> None:
        """A factory's device and pin_memory, which modes and subclasses always see."""
        for index, value in enumerate(stack):
            if value is None:
                stack[index] = self._for_none(index)

    def _for_none(self, index: int) -> Any:
        """Returns the stack value of a factory's argument given as None, or nothing."""
        if self.is_factory and self.arguments[index] == "pin_memory":
            return False
        if self.needs_device and self.arguments[index] == "device":
            return ARGUMENT_TYPES["Device"]("cpu")
        return None

    def _with_out(self, name: str, stack: list[Any], out: Any) -> list[Any]:
        assert self.out is not None
        values = dict(zip(self.arguments, stack, strict=True))
        names = [argument.name for argument in self.out.schema.arguments[1 if self.method else 0 :]]
        outs = [argument.name for argument in self.out.schema.arguments if argument.is_out]
        given = out if isinstance(out, list | tuple) else [out]
        if self._writes_list and all(isinstance(value, TensorBase) for value in given):
            given = [list(given)]  # as many as there will be results
        elif len(given) != len(outs) or not all(isinstance(value, TensorBase) for value in given):
            kinds = ", ".join(type(value).__name__ for value in given)
            raise Mismatch(
                f"{name}(): argument 'out' must be {'Tensor' if len(outs) == 1 else 'tuple of Tensors'}, not {kinds}"
            )
        values |= dict(zip(outs, given, strict=True))
        return [values[wanted] for wanted in names]

    # Reading all calls of a shape ---------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The names of what may be given by position."""
        names = [parameter.name for parameter in self.parameters[: self.positional]]
        return ["self"] * self.method + (names * SPREAD if self.spreads else names)

    def read(self, count: int, names: Sequence[str]) -> list[Reading]:
        """The reading of calls with `count` positions, `self` included, and these keywords; see fast paths.py."""
        first = 1 if self.method else 0  # where the parameters begin
        left = {name: count + i for i, name in enumerate(names)}
        spread = self.spreads and count - first > 1
        if count < first or (count - first > self.positional and not spread):
            return []
        values: dict[int, Reads] = {0: READS_SELF} if self.method else {}
        stack: list[Any] = [0] if self.method else []
        out = left.pop("out", None) if self.out else None
        wants_grad = left.pop("requires_grad", None) if self.is_factory else None
        if wants_grad is not None:
            values[wants_grad] = READS_TRUTH
        for index, parameter in enumerate(self.parameters):
            known = next((known for known in parameter.names if known in left), None)
            if index < (1 if spread else count - first):
                if known is not None:
                    return []
                at = first + index
            elif known is not None:
                at = left.pop(known)
            elif parameter.default is NO_DEFAULT:
                return []
            else:
                default = parameter.default
                stack.append(Fixed(self._for_none(index) if default is None else default))
                continue
            if spread and index == 0:
                values |= dict.fromkeys(range(at, count), READS_SPREAD)
                stack.append(tuple(range(at, count)))
            else:
                values[at] = parameter.reads(self._for_none(index), self.spreads and at < count)
                stack.append(at)
        return [] if left else self._readings(values, stack, out, wants_grad)

    def _readings(
        self, values: dict[int, Reads], stack: list[Any], out: int | None, wants_grad: int | None
    ) -> list[Reading]:
        """The reading; with `out` two: None there means that it is not given."""

        def reading(op: OpOverload, stack: list[Any]) -> Reading:
            return Reading(op, tuple(values[i] for i in range(len(values))), tuple(stack), wants_grad)

        if out is None or self.out is None:
            return [reading(self.op, stack)]
        values[out] = READS_NO_OUT
        readings = [reading(self.op, stack)]
        arguments = [argument.name for argument in self.op.schema.arguments]
        outs = [argument.name for argument in self.out.schema.arguments if argument.is_out]
        if len(outs) == 1 and not self._writes_list:
            values[out] = READS_OUT
            given = {**dict(zip(arguments, stack, strict=True)), outs[0]: out}
            readings.append(reading(self.out, [given[argument.name] for argument in self.out.schema.arguments]))
        return readings

    # Messages -----------------------------------------------------------------------------------------------------

    def _too_many(self, name: str, given: int) -> str:
        if self.method and not self.parameters:
            return f"TensorBase.{name}() takes no arguments ({given} given)"
        return (
            f"{name}() takes {self.positional} positional argument{'' if self.positional == 1 else 's'} but {given} "
            f"{'was' if given == 1 else 'were'} given"
        )

    def _wrong(
        self, name: str, parameter: Parameter, position: int | None, value: Any, problem: Exception
    ) -> TypeError:
        if isinstance(problem, Mismatch):
            return Mismatch(str(problem).replace("{position}", str(position or 0)))
        where = "" if position is None else f" (position {position + 1})"
        said = f"not {_kind(value)}"
        if parameter.is_int_list and isinstance(value, list | tuple):  # its first item says that it is one of ints
            place = next((i for i, item in enumerate(value) if not _is_int(item, in_list=True, first=i == 0)), 0)
            kind = _kind(value[place])
            if place:
                return TypeError(
                    f"{name}(): argument '{parameter.name}' failed to unpack the object at pos {place + 1} with error "
                    f'"type must be tuple of ints,but got {kind}"'
                )
            said = f"but found element of type {kind} at pos 0"
        return Mismatch(f"{name}(): argument '{parameter.name}'{where} must be {parameter.spoken}, {said}")

    def __str__(self) -> str:
        parts = [str(parameter) for parameter in self.parameters]
        if self.positional < len(parts) or (self.out and "*" not in parts) or self.is_factory:
            parts.insert(self.positional, "*")
        if self.out:
            parts.append("Tensor out = None")
        if self.is_factory:
            parts.append("bool requires_grad = False")
        return f"({', '.join(parts)})"


class Parser:
    """The signatures of one public name, tried in order.

    `overloads` are (operator, its out= form or None). The signatures are derived when the name is first called: there
    are hundreds of names, and importing the library should not pay for all of them.
    """

    def __init__(self, name: str, overloads: Sequence[Overload], method: bool = False) -> None:
        self.name, self.overloads, self.method = name, overloads, method

    @cached_property
    def signatures(self) -> list[Signature]:
        return [Signature(op, out, self.method) for op, out in self.overloads]

    def parse(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[OpOverload, list[Any], bool]:
        """Binds a call by the first signature that fits. TypeError where none does."""
        problems = []
        for signature in self.signatures:
            try:
                return signature.bind(self.name, args, kwargs)
            except Mismatch as problem:
                problems.append(str(problem))  # not the exception: its traceback would keep the arguments alive
        for signature in self.signatures:
            for order in signature.former_orders():
                if len(args) == len(order) and all(map(fits_former, order, args)):
                    self._warn_of(signature, order)
                    by_name = {p.name: value for p, value in zip(order, args, strict=True)}
                    return signature.bind(self.name, (), {**kwargs, **by_name})
        raise TypeError(self._explained(args, kwargs, problems))

    def _warn_of(self, signature: Signature, order: Sequence[Parameter]) -> None:
        former = ", ".join(f"{parameter.spoken} {parameter.name}" for parameter in order)
        out = ", *, Tensor out = None" if signature.out else ""
        warnings.warn(
            f"This overload of {self.name} is deprecated:\n\t{self.name}({former}{out})\nConsider using one of the "
            f"following signatures instead:\n\t{self.name}{signature}",
            UserWarning,
            stacklevel=5,
        )

    def _explained(self, args: Sequence[Any], kwargs: dict[str, Any], problems: list[str]) -> str:
        """The one signature's own problem if only one comes into question by the number of arguments, else all of
        them."""
        if len(self.signatures) == 1:
            return problems[0]
        given = len(args) + len(kwargs)
        near = [i for i, s in enumerate(self.signatures) if s.required <= given <= s.most]
        if len(near) == 1:
            return problems[near[0]]
        kinds = ", ".join([_kind(value) for value in args] + [f"{k}={_kind(v)}" for k, v in kwargs.items()])
        kinds += ", " * (not args and bool(kwargs))
        head = f"{self.name}() received an invalid combination of arguments - got ({kinds}), but expected "
        return head + "one of:\n" + "".join(f" * {signature}\n" for signature in self.signatures)


def _name(type_: Type) -> str:
    return type_.name if isinstance(type_, BaseType) else ""


def spoken(type_: Type) -> str:
    """A type as messages name it: `Tensor`, `Number`, `tuple of ints`."""
    if isinstance(type_, ListType):
        inner = type_.elem.elem if isinstance(type_.elem, OptionalType) else type_.elem
        return "tuple of Scalars" if _name(inner) == "Scalar" else f"tuple of {spoken(inner)}s"
    return SPOKEN.get(_name(type_), str(type_))


def _kind(value: Any) -> str:
    """The class of a value as C++ names it: numpy's with their module, others without."""
    kind = type(value)
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__


def _asked(name: str, argument: str, value: Any) -> bool:
    """Whether a flag is set. TypeError for what is no bool."""
    if value is None or isinstance(value, bool):
        return bool(value)
    raise TypeError(f"{name}(): argument '{argument}' must be bool, not {_kind(value)}")


def _is_int(value: Any, in_list: bool = False, first: bool = True) -> bool:
    """An int, or what stands for one: numpy's ints, a tensor of one integer without dimensions; a bool is none.

    in_list: so are tensors and arrays of one element; and bools, but as the first item.
    """
    if isinstance(value, int | SymInt):
        return not isinstance(value, bool) or (in_list and not first)
    if isinstance(value, TensorBase):
        return (in_list or _is_number(value)) and _index(value) is not None and value._dtype.name != "bool"
    return hasattr(value, "__index__") and (in_list or not hasattr(value, "__len__")) and _index(value) is not None


def _is_number(tensor: Any) -> bool:
    """Whether a tensor may stand for a number: it has no dimensions, and no gradient would be lost."""
    return not tensor._shape and not tensor._requires_grad()


def _index(value: Any) -> int | None:
    try:
        return value.__index__()
    except TypeError:
        return None


def _strict(type_: Type) -> Callable[[Any], Any]:
    """The converter of a type at the public face, where fewer things pass than at `ops`."""
    if isinstance(type_, ListType):
        if type_.elem == TENSOR:
            return _strict_tensor_list
        if isinstance(type_.elem, OptionalType) and type_.elem.elem == TENSOR:
            return partial(_strict_tensor_list, or_none=True)
        if _name(type_.elem) == "Scalar":
            return lambda value: _strict_numbers(value, converter(type_))
        if _name(type_.elem) in ("int", "SymInt"):
            return lambda value: _strict_int_list(value, type_.size)
        return converter(type_)
    return _STRICT.get(_name(type_)) or converter(type_)


def _strict_numbers(value: Any, convert: Callable[[Any], Any]) -> Any:
    """The numbers of a list, in which a tensor is none: so a list of tensors goes to another overload."""
    if not isinstance(value, list | tuple) or any(isinstance(item, TensorBase) for item in value):
        raise TypeError
    return convert(value)


def _strict_tensor_list(value: Any, or_none: bool = False) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError
    for index, item in enumerate(value):
        if not isinstance(item, TensorBase) and not (or_none and item is None):
            raise Mismatch(
                f"expected Tensor as element {index} in argument {{position}}, but got {type(item).__name__}"
            )
    return list(value)


def _strict_int_list(value: Any, size: int | None) -> list[int]:
    if isinstance(value, list | tuple):
        if all(_is_int(item, in_list=True, first=i == 0) for i, item in enumerate(value)):
            return [as_index(item) for item in value]
        raise TypeError
    if size is not None and _is_int(value):
        return [as_index(value)] * size
    raise TypeError


def _strict_int(value: Any) -> int:
    if _is_int(value):
        return as_index(value)
    raise TypeError


def _strict_float(value: Any) -> Any:
    if isinstance(value, Number):
        return value
    if not isinstance(value, int | float):
        stands = _is_number(value) if isinstance(value, TensorBase) else not hasattr(value, "__len__")  # no array
        if not stands or not hasattr(value, "item"):
            raise TypeError
        value = value.item()
    return float(value)


def _strict_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError


def _strict_dtype(value: Any) -> Any:
    if isinstance(value, bool | int):
        raise TypeError
    return ARGUMENT_TYPES["ScalarType"](ARGUMENT_TYPES["dtype of Python type"](value))


_STRICT: dict[str, Callable[[Any], Any]] = {
    "int": _strict_int,
    "SymInt": _strict_int,
    "float": _strict_float,
    "bool": _strict_bool,
    "ScalarType": _strict_dtype,
}
