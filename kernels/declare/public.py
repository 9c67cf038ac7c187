"""The public face of operators: `redispatch.add`, `Tensor.add`, `Tensor.add_`, all derived from the schemas.

`public(add_op)` makes the function and attaches the methods. A face asks for overrides first (`__torch_function__`,
function modes), then reads its arguments (dispatch/entry/signature.py) and calls the operator from the top of the key
stack. That is what it means; common calls take fast paths (dispatch/entry/fast_paths.py), of which the face's code is
made when it is first called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from redispatch.dispatch import (
    EntryPoint,
    ListType,
    OfPython,
    OpOverload,
    OptionalType,
    Overload,
    Parser,
    ask,
    ask_function_mode,
    ask_mode_of_builtin_method,
    call,
    call_overridden,
    of_builtin_method,
    ops,
    overridden,
    who_overrides,
)
from redispatch.dispatch.entry.fast_paths import Attribute, Fixed, Reading, Reads, reads
from redispatch.dispatch.entry.signature import READS_SELF
from redispatch.dispatch.inspection.frames import HIDDEN
from redispatch.dispatch.schema.convert import default_of
from redispatch.dispatch.schema.schema import NO_DEFAULT
from redispatch.dispatch.specialiser.annotations import frozen
from redispatch.dispatch.tensor import SET_REQUIRES_GRAD, Tensor, ask_default

from .declare import Operator
from .describe import documented, facts, in_place, sentence
from .return_types import has_names, name_of, return_type

HIDDEN.add(__name__)  # nobody looks for a mistake here

# PyTorch's modules, as what comes behind `torch.` -> name -> function. The modules of the frontend are made of this.
FUNCTIONS: dict[str, dict[str, Any]] = {"": {}, "nn": {}, "fft": {}, "linalg": {}, "special": {}}
IN_PLACE: dict[str, Any] = {}  # functions of the package itself that write: aliases.py lists them


def public(
    *operators: Operator,
    function: bool = True,
    method: bool | None = None,
    name: str | None = None,
    module: str = "",
    function_like: Callable[..., Any] | None = None,
    method_like: Callable[..., Any] | None = None,
    doc: str = "",
) -> Any:
    """The function `name(...)` over these overloads, in the order in which they are tried.

    Also attached, where `method` is set and the first argument is `self`: `Tensor.name` and, with an in-place form,
    `Tensor.name_`; by default for functions of the package itself. Returns the function; the method where `function` is
    not set. Its `ops` are the declarations, its `op` the first of them.

    module: PyTorch's module that has the function, "nn" for what `nn.functional` calls; by default the package itself,
    or `linalg` for an operator of the name `linalg_inv`, which is the function `inv` there; so are `fft` and `special`.
    doc: what it does, in a sentence that begins with a verb; what else is to be said follows (describe.py).
    function_like, method_like: a function with the parameters that it has in PyTorch, where that has it in Python.
    """
    name = name or operators[0].base_name
    said, behind = sentence(operators, doc), facts(operators)
    written = in_place(name, said)
    prefix, _, rest = name.partition("_")
    module, name_there = (prefix, rest) if prefix and prefix in FUNCTIONS else (module, name)
    method = not module if method is None else method
    made = None
    if function:
        home = "torch.functional" if function_like else f"torch._C._{module}" if module else "torch"
        made = face(name, [(o.functional, o.out) for o in operators], home, like=function_like, doc=(said, behind))
        inplace: list[Overload] = [(o.inplace, None) for o in operators if o.inplace]
        if inplace:
            made.inplace = face(f"{name}_", inplace, home, doc=(written, behind))
        FUNCTIONS[module][name_there] = made
    if method:
        methods = [o for o in operators if o.names and o.names[0] == "self"]
        if methods:
            alone = all(len(o.names) == 1 for o in methods)
            bound = attach(name, [(o.functional, None) for o in methods], method_like, alone, (said, behind))
            made = made or bound
        into: list[Overload] = [(o.inplace, None) for o in methods if o.inplace]
        if into:
            attach(f"{name}_", into, alone=alone, doc=(written, behind))
    if made is not None:
        made.op, made.ops = operators[0], operators
        frozen(made)  # kernels that are inlined call `made.op.functional`
    return made


def private(name: str) -> Callable[..., Any] | None:
    """Returns the function of an operator whose name begins with an underscore, as `redispatch._softmax`; None where
    there is no such operator. It is made when it is asked for: few programs use any."""
    packet = getattr(ops.aten, name, None) if name.startswith("_") and not name.startswith("__") else None
    if packet is None:
        return None
    overloads = [(overload, getattr(packet, overload)) for overload in packet.overloads()]
    pairs: list[Overload] = [
        (op, getattr(packet, "out" if overload == "default" else f"{overload}_out", None))
        for overload, op in overloads
        if not op.schema.is_out
    ]
    return face(name, pairs, "torch")


def attach(
    name: str,
    overloads: Sequence[Overload],
    like: Callable[..., Any] | None = None,
    alone: bool = False,
    doc: tuple[str, str] = ("", ""),
) -> Callable[..., Any]:
    """Makes `Tensor.name` of these overloads. `alone`: they take the tensor and nothing else."""
    made = face(name, overloads, "torch.Tensor", method=True, like=like, alone=alone, doc=doc)
    setattr(Tensor, name, made)
    return made


def face(
    name: str,
    overloads: Sequence[Overload],
    module: str,
    method: bool = False,
    like: Callable[..., Any] | None = None,
    alone: bool = False,
    doc: tuple[str, str] = ("", ""),
) -> Any:
    """A Python function which reads its arguments by the overloads' signatures and calls the operator that fits."""
    parser = Parser(name, overloads, method)
    asked = OfPython(like) if like else of_builtin_method if alone else None

    def meaning(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        who = who_overrides(args, kwargs)
        if who is not None:
            return asked(function, args, kwargs) if asked else ask(function, who, args, kwargs or None)
        if method:
            if not args or not isinstance(args[0], Tensor):  # `Tensor.add(1, x)`
                given = f"a '{type(args[0]).__name__}' object" if args else "nothing"
                raise TypeError(f"descriptor '{name}' for 'Tensor' objects doesn't apply to {given}")
            op, stack, wants_grad = parser.parse(args[1:], kwargs)
            return named_result(op, call(op, [args[0], *stack]))
        op, stack, wants_grad = parser.parse(args, kwargs)
        return with_grad(named_result(op, call(op, stack)), wants_grad)

    function = EntryPoint(
        name,
        lambda: parser.signatures,
        meaning,
        module=module.removesuffix(".Tensor"),
        qualname=f"Tensor.{name}" if method else name,
        finish=finishing,
        grad=with_grad,
        ask=None if like else ask_mode_of_builtin_method if alone else ask_function_mode,
        by_default=ask_default,
    ).function
    function.__doc__ = documented(*doc, [op for op, _ in overloads])
    function.operators = [op for op, _ in overloads]
    if like is not None:
        function.__signature__ = inspect.signature(like)
    return function


class Way:
    """One way that calls of a method written by hand may go: to which operator, and where its arguments come from.

    by_position, by_keyword: names of the operator's arguments that a call may give; the first is the tensor.
    given: what stands on the stack for arguments that no call gives, where it is not the default.
    reads: what values of an argument become, where the schema's type does not say it (dispatch/entry/fast_paths.py).
    """

    def __init__(
        self,
        op: Operator,
        by_position: Sequence[str],
        by_keyword: Sequence[str] = (),
        *,
        given: Mapping[str, Fixed | Attribute] = MappingProxyType({}),
        reads: Mapping[str, Reads] = MappingProxyType({}),
    ) -> None:
        self.op, self.names, self.by_keyword, self.given, self.reads = (
            op.functional,
            by_position,
            by_keyword,
            given,
            reads,
        )

    def read(self, count: int, names: Sequence[str]) -> list[Reading]:
        """The reading of calls with `count` positions and these keywords: see fast_paths.py."""
        order = [*self.names[:count], *names]
        if (
            count > len(self.names)
            or len(set(order)) < len(order)
            or not {*self.names, *self.by_keyword}.issuperset(names)
        ):
            return []
        values: dict[str, Reads] = {}
        stack: list[int | Fixed | Attribute] = []
        for argument in self.op.schema.arguments:
            name, default = argument.name, default_of(argument)
            if name in order:
                stack.append(order.index(name))
                values[name] = READS_SELF if name == self.names[0] else self.reads.get(name) or reads_strictly(argument)
            elif name in self.given:
                stack.append(self.given[name])
            elif default is NO_DEFAULT:
                return []
            else:
                stack.append(Fixed(default))
        return [Reading(self.op, tuple(values[name] for name in order), tuple(stack))]

    def __str__(self) -> str:
        return str(self.op.schema)


def reads_strictly(argument: Any) -> Reads:
    """Returns how values are read for an argument of this type, by the rules of public functions."""
    none = None if isinstance(argument.type, OptionalType) else NO_DEFAULT
    return reads(argument.type, default_of(argument), numbers=False, strict=True, none=none)


def written(*ways: Way) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes the method of Tensor of a function written by hand. Calls that go one of the ways, tried in order, take
    lanes."""

    def attach(method: Callable[..., Any]) -> Callable[..., Any]:
        def meaning(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return call_overridden(function, args, kwargs) if overridden(args, kwargs) else method(*args, **kwargs)

        name = method.__name__
        entry = EntryPoint(
            name,
            lambda: ways,
            meaning,
            module="torch",
            qualname=f"Tensor.{name}",
            ask=ask_function_mode,
            by_default=ask_default,
        )
        function = entry.function
        function.__doc__ = method.__doc__
        setattr(Tensor, name, function)
        return function

    return attach


def with_grad(result: Any, wanted: bool) -> Any:
    """A factory's result, which requires grad if that is wanted."""
    if wanted:
        SET_REQUIRES_GRAD()(result, True)
    return result


def named_result(op: OpOverload, result: Any) -> Any:
    """Several results as a named tuple, where the schema names them: `values, indices = x.max(0)`; lists as tuples."""
    finish = finishing(op)
    return result if finish is None else finish(result)


def finishing(op: OpOverload) -> Callable[[Any], Any] | None:
    """`named_result` for the results of one operator; None where it changes nothing."""
    returns = op.schema.returns
    if len(returns) == 1 and not isinstance(returns[0].type, ListType):
        return None
    if not has_names(op.schema):
        return listed_as_tuple
    made = return_type(name_of(op.schema), tuple(r.name for r in returns))

    def named(result: Any) -> Any:
        return tuple.__new__(made, result) if type(result) is tuple else listed_as_tuple(result)

    return named


def listed_as_tuple(result: Any) -> Any:
    return tuple(result) if isinstance(result, list) else result
