"""Functionalize: programs that write and take views become programs that do neither.

A program under functionalization computes with wrappers (dispatch/tensor/functional.py), which to it are ordinary
tensors. What arrives here is worked out on their values, and nothing that goes on below writes:

    a view       its values are views of values, or copies where nothing may share memory; the wrapper of the result
                 shares the storage of its base, and knows the step that leads to it
    a write      becomes the operator's *functional form*, `add` for `add_`, whose result the wrapper shows from now on,
                 and with it all that share its storage, when they are next read
    the rest     runs on values; the results are wrapped

Operators that are written in others are taken apart, so that what they write and show comes here as well. The
functional form of an operator is found by its schema (`functional_form`); what a view is in the other direction, from
the changed view to the changed base, stands in a table. So does what a few operators mean that change how a tensor lies
in memory.

Source: PyTorch's functionalization pass (FunctionalTensorWrapper, FunctionalStorageImpl). Read next:
dispatch/tensor/functional.py, kernels/ops/functionalization.py, dispatch/transforms/functionalize.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from ..core.base import TensorBase
from ..core.interpreter import call
from ..core.key import DispatchKey
from ..core.keyset import keyset as keys
from ..core.operator import OpOverload
from ..core.registry import LISTENERS, OVERLOADS
from ..core.state import STATE, within
from ..core.table import Kernel
from ..records import dataclass
from ..rules import RuleTable, Slot
from ..schema.schema import FunctionSchema, Tag
from ..specialiser.annotations import frozen, pure
from .ad_inplace_or_view import base_position, returned_arguments, tensors_in
from .layer import layer
from .transforms import each_item, each_result, each_tensor

FUNCTIONALIZE = keys("Functionalize")
META = keys("Meta")

# (value, level) -> a wrapper around it, with memory of its own
WRAP: Slot[Callable[[Any, Any], Any]] = Slot("what wraps a value for functionalization")
# (base, value, like, op, arguments, position among the results) -> a wrapper that shares the memory of the wrapper
# `base`, of which the operator on these arguments shows a part, whose value is `value`; it lies in memory as `like`
# does
WRAP_VIEW: Slot[Callable[..., Any]] = Slot("what makes a view of a wrapper")
# (written, value, op): has a wrapper, and all that share its memory, show a value. RuntimeError where it does not fit.
WRITE: Slot[Callable[[Any, Any, OpOverload], None]] = Slot("what enters the value of a write")

# (op, stack) -> (results as a list, new values of the written arguments): runs an operator that writes on copies
WRITE_COPIES: Slot[Callable[..., Any]] = Slot("what runs an operator without functional form")

# By view operator: `put_back(base, view, ...)` with the operator's further arguments, after the position among its
# results where it has several: the base as it would be if the view of it showed the values of `view`.
INVERSES: RuleTable[Callable[..., Any]] = RuleTable("inverse")
# By operator: `rule(op, stack)`, in the place of what is said above.
FUNCTIONALIZATION: RuleTable[Callable[[OpOverload, list[Any]], Any]] = RuleTable("functionalization rule")

# By the keys of a backend that knows how its wrappers are made: `path(op, stack)`, the result of an operator that
# neither writes nor shows, wrapped; NotImplemented where `compute` is to give it.
FAST_PATHS: dict[int, Callable[[OpOverload, list[Any]], Any]] = {}


@layer("Functionalize")
def functionalize(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Runs `op` without writing, on the values in the wrappers."""
    rule = FUNCTIONALIZATION.get(op)
    if rule is not None:
        return rule(op, stack)
    composite = composite_kernel(op)
    if composite is not None:
        return composite.boxed(op, keyset, stack)
    if op.schema.is_view:
        return show(op, stack)
    if Tag.inplace_view in op.tags:
        return turn(op, stack)
    if op.schema.is_mutable:
        return write(op, stack)
    path = fast_path_of(keyset)
    if path is not None:
        found = path(op, stack)
        if found is not NotImplemented:
            return found
    return compute(op, stack)


@pure
def fast_path_of(keyset: int) -> Callable[[OpOverload, list[Any]], Any] | None:
    """The fast path of a backend in the keyset; None where there is none."""
    return next((path for keys, path in FAST_PATHS.items() if keys & keyset == keys), None)


@pure
def composite_kernel(op: OpOverload) -> Kernel | None:
    """The kernel of an operator that is written in other operators."""
    kernels = op.registrations.get(DispatchKey.CompositeImplicitAutograd)
    return kernels[-1] if kernels else None


# Wrappers and their values --------------------------------------------------------------------------------------------


def current_level() -> Any:
    """The transform whose wrappers are taken off here: the innermost, or None where none is at work."""
    return STATE.get().innermost


def is_wrapper(value: Any) -> bool:
    """Whether a value is a wrapper of the level at work."""
    return isinstance(value, TensorBase) and bool(value._keyset & FUNCTIONALIZE) and value._level is current_level()  # type: ignore[attr-defined]  # of Tensor, which this room knows as TensorBase


def value_of(tensor: Any) -> Any:
    """The value in a wrapper of the level at work; other tensors as they are."""
    return tensor.current() if is_wrapper(tensor) else tensor


def below_functionalize() -> within:
    """A region in which calls are made on values: this layer is excluded."""
    return within(STATE.get().excluding(FUNCTIONALIZE))


def are_wrapped(op: OpOverload, stack: list[Any]) -> bool:
    """Whether the results of a call are to be wrapped: where an argument is, or no tensor was given at all."""
    given = [one for position in tensors_at(op.schema) for one in tensors_in(stack[position])]
    return any(map(is_wrapper, given)) or (not given and wraps_new_tensors())


def wraps_new_tensors() -> bool:
    """Whether tensors that come to be without others are wrapped: in a region, and not where a wrapper is met by
    chance."""
    return bool(STATE.get().included & FUNCTIONALIZE)


@pure
def tensors_at(schema: FunctionSchema) -> tuple[int, ...]:
    return schema.tensor_positions + schema.tensor_list_positions


# Operators that neither write nor show --------------------------------------------------------------------------------


def compute(op: OpOverload, stack: list[Any]) -> Any:
    """The result of `op` on values, wrapped. One that is an argument's value is that argument."""
    wrapped = are_wrapped(op, stack)
    with below_functionalize():
        values = each_tensor(op.schema, stack, value_of)
        result = call(op, values)
    if not wrapped:
        return result
    given = {id(value): tensor for value, tensor in zip(values, stack, strict=True) if isinstance(value, TensorBase)}
    wrap, level = WRAP(), current_level()
    return each_result(op.schema, stack, result, lambda one: given[id(one)] if id(one) in given else wrap(one, level))


# Views ----------------------------------------------------------------------------------------------------------------


def show(op: OpOverload, stack: list[Any]) -> Any:
    """Views of a wrapper: wrappers that share its storage.

    How they lie is asked of the operator's own kernel, which is shown the wrapper: it reads where the tensor lies, and
    no elements. Where there is no kernel that serves every backend, it is read off the value.
    """
    base = stack[base_position(op.schema)]
    if not is_wrapper(base):
        return compute(op, stack)
    with below_functionalize():
        shown = call(op_for_views(op), each_tensor(op.schema, stack, value_of))
    entry = op.entry(META)
    lying = entry.kernel.boxed(op, META, stack) if entry.rule == "default backend kernel" else shown
    wrap_view = WRAP_VIEW()
    if isinstance(shown, TensorBase):
        return wrap_view(base, shown, lying, op, stack, None)
    pairs = enumerate(zip(shown, lying, strict=True))
    return type(shown)(wrap_view(base, one, like, op, stack, index) for index, (one, like) in pairs)


def op_for_views(op: OpOverload) -> OpOverload:
    """Returns the operator that stands for a view operator on values: itself, or its copy where no memory may be
    shared."""
    return op if STATE.get().reapply_views else copying_form(op)


@cache
def copying_form(op: OpOverload) -> OpOverload:
    """`view_copy` for `view`; a view operator that has no such form stays as it is."""
    return OVERLOADS.get(f"{op.packet_name}_copy", {}).get(op._overloadname, op)


def turn(op: OpOverload, stack: list[Any]) -> Any:
    """An operator such as `t_`, which has its argument show what a view of it would."""
    written = stack[0]
    if not is_wrapper(written):
        return compute(op, stack)
    shown: Any = show(view_form(op), stack)
    written.show(shown._store, shown._steps, shown._value, shown)
    written._turned = True
    return written


@cache
def view_form(op: OpOverload) -> OpOverload:
    """`t` for `t_`: the view operator with the arguments of one that changes how its argument looks."""
    arguments = names_and_types(op.schema)
    for view in OVERLOADS.get(op.packet_name.removesuffix("_"), {}).values():
        if view.schema.is_view and names_and_types(view.schema) == arguments:
            return view
    raise NotImplementedError(f"{op} changes how its argument lies in memory, and there is no view operator like it")


def names_and_types(schema: FunctionSchema) -> list[tuple[str, str]]:
    return [(argument.name, argument.type.schema_str()) for argument in schema.arguments]


# Writes ---------------------------------------------------------------------------------------------------------------


def write(op: OpOverload, stack: list[Any]) -> Any:
    """Runs the functional form of an operator that writes, and has the written wrappers show what it gives.

    A custom operator without such a form writes copies (`auto_functionalized`), but under `func.functionalize`.
    Errors: RuntimeError where the operator would write a tensor that is no wrapper, because of one that is; or where it
    has no functional form, and is one of ours or called under `func.functionalize`.
    """
    if not any(is_wrapper(one) for position in written_positions(op.schema) for one in tensors_in(stack[position])):
        if are_wrapped(op, stack):
            raise RuntimeError(
                f"mutating a non-functional tensor with a functional tensor is not allowed ({op}). Please ensure that "
                "all of your inputs are wrapped inside of a functionalize() call."
            )
        return compute(op, stack)
    form = functional_form(op)
    if form is None:
        if op.namespace == "aten" or current_level() is not None:
            raise no_functional_form(op)
        return write_copies(op, stack)
    values = values_of(form, op, stack)
    enter, wrap = WRITE(), partial(wrapped, level=current_level())
    returned = []
    for position, value in zip(form.targets, values, strict=True):
        if position is None:
            returned.append(each_item(value, wrap))
            continue
        if stack[position] is None:
            continue
        for target, one in zip(tensors_in(stack[position]), tensors_in(value), strict=True):
            enter(target, one, op)
        if position in returned_arguments(op.schema):
            returned.append(stack[position])
    return tuple(returned) if len(returned) > 1 else returned[0] if returned else None


def write_copies(op: OpOverload, stack: list[Any]) -> Any:
    """Runs a custom operator on copies of what it writes, and has the written wrappers show them."""
    with below_functionalize():
        results, values = WRITE_COPIES()(op, each_tensor(op.schema, stack, value_of))
    enter, wrap = WRITE(), partial(wrapped, level=current_level())
    for position, value in zip(written_positions(op.schema), values, strict=True):
        for target, one in zip(tensors_in(stack[position]), tensors_in(value), strict=True):
            enter(target, one, op)
    returned = tuple(
        each_item(result, wrap) if position is None else stack[position]
        for result, position in zip(results, returned_arguments(op.schema), strict=True)
    )
    return returned if len(returned) > 1 else returned[0] if returned else None


def no_functional_form(op: OpOverload) -> RuntimeError:
    if op.namespace == "aten":
        return RuntimeError(
            f"{op} has no functional form to stand in its place; declare one (kernels/ops/functional_forms.py)"
        )
    return RuntimeError(
        "Found a custom (non-ATen) operator whose output has alias annotations: "
        f"{op.schema}. We only support functionalizing operators whose outputs do not have alias annotations (e.g. "
        "'Tensor(a)' is a Tensor with an alias annotation whereas 'Tensor' is a Tensor without. The '(a)' is the alias "
        "annotation). Define it with a functional form of the same arguments, `name` for `name_`; or call it under "
        "FunctionalTensorMode, which runs it on copies."
    )


def values_of(form: FunctionalForm, op: OpOverload, stack: list[Any]) -> list[Any]:
    """The results of a functional form, as values. One that is written in other operators may write, and comes here."""
    if composite_kernel(form.op):
        results = form.run(stack)
        with below_functionalize():
            return [each_item(one, value_of) for one in results]
    with below_functionalize():
        return form.run(each_tensor(op.schema, stack, value_of))


def wrapped(value: Any, level: Any) -> Any:
    return WRAP()(value, level)


@pure
def written_positions(schema: FunctionSchema) -> tuple[int, ...]:
    """The arguments that are written, scratch memory included."""
    return tuple(position for position, argument in enumerate(schema.arguments) if argument.is_write)


# Functional forms -----------------------------------------------------------------------------------------------------


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class FunctionalForm:
    """The operator that stands for one which writes: `add` for `add_`, `add.out` and `__iadd__`.

    sources: for each of its arguments, the position of the same argument of the operator that writes; or, of a
    factory's dtype and device, the position of the `out=` argument that has them; or None for a default.
    targets: for each of its results, the position of the argument that is written with it; None for one that is
    returned.
    """

    op: OpOverload
    sources: tuple[int | None, ...]
    targets: tuple[int | None, ...]

    def run(self, stack: list[Any]) -> list[Any]:
        """The results, as a list, for the arguments of the operator that writes."""
        arguments = [
            argument.default_value if source is None else taken(argument.name, stack[source])
            for argument, source in zip(self.op.schema.arguments, self.sources, strict=True)
        ]
        result = call(self.op, arguments)
        return list(result) if len(self.op.schema.returns) > 1 else [result]


def taken(name: str, value: Any) -> Any:
    """An argument, or what an argument that is to be written says of the one asked for."""
    if isinstance(value, TensorBase) and name in FACTORY:
        return getattr(value, f"_{name}")
    return value


FACTORY = ("dtype", "device")
FACTORY_OPTIONS = (*FACTORY, "layout", "pin_memory")


@cache
def functional_form(op: OpOverload) -> FunctionalForm | None:
    """The operator with the same arguments and results that writes nothing, found by name and schema; or None.

    It is called as `op` is, without the `_` at the end, or with `_functional` behind. It returns what `op` returns, and
    then the new values of the arguments that `op` writes and does not return.
    """
    name = op.packet_name
    stem = name.removesuffix("_") if op.schema.is_inplace else name
    for candidate in (stem, f"{stem}_functional"):
        overloads = OVERLOADS.get(candidate, {})
        own = overloads.get(op._overloadname)
        for other in (*([own] if own else []), *overloads.values()):
            form = as_form(op.schema, other)
            if form is not None:
                return form
    return None


def as_form(schema: FunctionSchema, other: OpOverload) -> FunctionalForm | None:
    """`other` as the functional form of an operator that writes, if it is that."""
    if other.schema.is_mutable or other.schema.is_view:
        return None
    mine = {argument.name: position for position, argument in enumerate(schema.arguments) if not argument.is_out}
    sources: list[int | None] = []
    for argument in other.schema.arguments:
        position = mine.pop(argument.name, None)
        if position is None:
            if argument.name not in FACTORY_OPTIONS or not schema.out_positions:
                return None
            position = schema.out_positions[0] if argument.name in FACTORY else None
        elif schema.arguments[position].type.schema_str() != argument.type.schema_str():
            return None
        sources.append(position)
    returned = returned_arguments(schema)
    targets = (*returned, *(position for position in written_positions(schema) if position not in returned))
    if mine or len(other.schema.returns) != len(targets):
        return None
    return FunctionalForm(other, tuple(sources), targets)


def forget_forms(event: str, op: OpOverload) -> None:
    """Forgets cached forms, since there is another operator."""
    functional_form.cache_clear()
    copying_form.cache_clear()
    view_form.cache_clear()


LISTENERS.append(forget_forms)
